// SPDX-License-Identifier: Apache-2.0
// Loads the model library as a site would and makes the calls it is told to. Each function of `smoke`
// is one stage, called from outside in the order in which they stand here.
"use strict";
const smoke = (() => {
  let tvmjs, tvm, gpu, machine, metadata, kind, params, device;

  async function bytes(path) {
    const response = await fetch(path);
    if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
    return response.arrayBuffer();
  }

  /** Evaluate a CommonJS bundle and return its exports. */
  async function commonJs(path) {
    const text = new TextDecoder().decode(await bytes(path));
    const module = { exports: {} };
    const require = (name) => {
      throw new Error(`the browser module needs ${name}, which a browser does not have`);
    };
    new Function("module", "exports", "require", text)(module, module.exports, require);
    return module.exports;
  }

  const has = (name) => {
    try {
      const found = machine.getFunction(name);
      return found !== undefined;
    } catch {
      return false;
    }
  };

  /** The adapter, or why there is none. */
  async function findAdapter() {
    if (!navigator.gpu) return { missing: "this browser has no WebGPU" };
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return { missing: "this browser finds no WebGPU adapter" };
    const { vendor, architecture, description } = adapter.info;
    const limits = {};
    for (const name of ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeInvocationsPerWorkgroup", "maxStorageBuffersPerShaderStage"]) {
      limits[name] = adapter.limits[name];
    }
    return { vendor, architecture, description, features: [...adapter.features].sort(), limits };
  }

  /** Load the browser module and find a device with it. */
  async function openModule() {
    tvmjs = await commonJs("/tvmjs.cjs");
    for (const name of ["instantiate", "createPolyfillWASI", "detectGPUDevice"]) {
      if (typeof tvmjs[name] !== "function") throw new Error(`the browser module does not export ${name}`);
    }
    try {
      device = (await tvmjs.detectGPUDevice())?.device;
    } catch (error) {
      // It asks for limits that the adapter may not have.
      return { missing: error.message.slice(0, 500) };
    }
    return device ? {} : { missing: "the browser module finds no device" };
  }

  /** Instantiate the library and ask it what it is. */
  async function openLibrary() {
    tvm = await tvmjs.instantiate(await bytes("/library.wasm"), tvmjs.createPolyfillWASI(), (text) => console.log(text));
    tvm.initWebGPU(device);
    gpu = tvm.webgpu();
    machine = tvm.withNewScope(() => tvm.detachFromCurrentScope(tvm.createVirtualMachine(gpu)));
    const text = tvm.withNewScope(() => machine.getFunction("_metadata")());
    metadata = JSON.parse(text);
    tvm.beginScope();
    kind = has("embed") && has("create_tir_paged_kv_cache") ? "mlc" : has("create_kv_cache") && has("decode") ? "decoder" : "unknown";
    tvm.endScope();
    return { metadata, kind };
  }

  /** Load the weights through the runtime's own loader, from a cache that is empty. */
  async function load({ url, watch }) {
    tvm.tensorCacheClear();
    await gpu.sync();
    if (watch) instruments.watch();
    const begin = performance.now();
    await tvm.fetchTensorCache(new URL(url, location.href).href, gpu, `smoke-${watch ? "watched" : "timed"}`);
    await gpu.sync();
    const ms = performance.now() - begin;
    const bodies = watch ? instruments.unwatch() : undefined;
    return { ms, bodies, gpu: instruments.gpu() };
  }

  /** Compile every shader. */
  async function compile() {
    const begin = performance.now();
    await tvm.asyncLoadWebGPUPipelines(machine.getInternalModule());
    await gpu.sync();
    return { ms: performance.now() - begin };
  }

  /** What holds the conversation so far. */
  function createState() {
    if (kind === "decoder") return { cache: machine.getFunction("create_kv_cache")() };
    const tuple = (...values) => tvm.makeShapeTuple(values);
    const sliding = metadata.sliding_window_size > 0;
    const window = sliding ? metadata.sliding_window_size : metadata.context_window_size;
    const create = machine.getFunction("create_tir_paged_kv_cache");
    const states = [create(tuple(1), tuple(window), tuple(metadata.prefill_chunk_size), tuple(16), tuple(sliding ? 1 : 0))];
    if (metadata.kv_state_kind === "hybrid") states.push(machine.getFunction("create_rnn_state")(tuple(1), tuple(1)));
    const sequence = new tvmjs.Scalar(0, "int64");
    for (const state of states) tvm.getGlobalFunc("vm.builtin.kv_state_add_sequence")(state, sequence);
    return { states };
  }

  /** One call of a library of MLC's: one row of logits, that of the last token. */
  function forwardMlc({ states }, call) {
    const tuple = (...values) => tvm.makeShapeTuple(values);
    const count = call.input_ids.length;
    const first = call.function === "prefill";
    for (const state of states) tvm.getGlobalFunc("vm.builtin.kv_state_begin_forward")(state, tuple(0), tuple(count));
    const ids = tvm.empty([count], "int32", gpu).copyFrom(Int32Array.from(call.input_ids));
    const embedded = machine.getFunction("embed")(ids, params);
    const hidden = embedded.shape[embedded.shape.length - 1];
    let result;
    if (metadata.kv_state_kind === "hybrid") {
      const input = embedded.view([1, count, hidden]);
      if (first) {
        const last = tvm.empty([1], "int32", gpu).copyFrom(Int32Array.of(count - 1));
        result = machine.getFunction("batch_prefill")(input, last, ...states, params);
      } else {
        result = machine.getFunction("batch_decode")(input, ...states, params);
      }
    } else {
      result = machine.getFunction(first ? "prefill" : "decode")(embedded.view([1, count, hidden]), ...states, params);
    }
    for (const state of states) tvm.getGlobalFunc("vm.builtin.kv_state_end_forward")(state);
    return result.get(0);
  }

  /** One call of a library with a functional cache: a row of logits for every token. */
  function forwardDecoder(state, call) {
    const ids = tvm.empty([1, call.input_ids.length], "int32", gpu).copyFrom(Int32Array.from(call.input_ids));
    const result = machine.getFunction(call.function)(ids, tvm.makeShapeTuple([call.position]), state.cache, params);
    const tensors = Array.from({ length: result.size() - 1 }, (_, i) => result.get(i + 1));
    state.cache = tvm.makeTVMArray(tensors);
    return result.get(0);
  }

  function base64(values) {
    const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    let text = "";
    for (let at = 0; at < raw.length; at += 24576) text += btoa(String.fromCharCode(...raw.subarray(at, at + 24576)));
    return text;
  }

  /** Make the calls with a state of their own. A call without ids takes the most likely token before it. */
  async function run({ calls }) {
    tvm.beginScope();
    params ??= tvm.detachFromCurrentScope(tvm.getParamsFromCacheByName(metadata.params.map((param) => param.name)));
    const state = createState();
    await gpu.sync();
    const ready = instruments.gpu().live;
    const steps = [];
    let likely;
    for (const call of calls) {
      const begin = performance.now();
      const ids = call.input_ids ?? [likely];
      const forward = kind === "decoder" ? forwardDecoder : forwardMlc;
      const logits = forward(state, { ...call, input_ids: ids });
      const host = tvm.empty(logits.shape, logits.dtype, tvm.cpu());
      host.copyFrom(logits);
      await gpu.sync();
      const values = Float32Array.from(host.toArray());
      const ms = performance.now() - begin;
      const width = logits.shape[logits.shape.length - 1];
      const last = values.subarray(((call.rows ?? values.length / width) - 1) * width).subarray(0, width);
      likely = last.reduce((best, value, i) => (value > last[best] ? i : best), 0);
      steps.push({ ms, width, likely, logits: base64(values) });
    }
    tvm.endScope();
    return { ready, steps };
  }

  /** What was measured and complained of in all. */
  function finish() {
    return { gpu: instruments.gpu(), wasm_memory: tvm?.memory?.memory?.buffer?.byteLength ?? null, errors: instruments.errors() };
  }

  return { findAdapter, openModule, openLibrary, load, compile, run, finish };
})();
