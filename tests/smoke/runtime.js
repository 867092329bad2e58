// A runtime with as much of the real one's form as a smoke test calls, on the real browser's GPU. What
// the "library" says is how it behaves: stream, whole, faulty, forgetful, hang.
const PARAMS = [0, 1, 2, 3].map((i) => ({ name: `p${i}.q_weight`, shape: [2500000], dtype: "uint32" }));
const METADATA = {
  model_type: "made-up", quantization: "q4f32_1", context_window_size: 64, sliding_window_size: -1, prefill_chunk_size: 8,
  attention_sink_size: -1, max_batch_size: 1, kv_state_kind: "kv_cache", active_vocab_size: 100, params: PARAMS,
};
const WIDTH = 64;
const shader = (access) => `
  @group(0) @binding(0) var<storage, read> words: array<u32>;
  @group(0) @binding(1) var<storage, ${access}> out: array<f32>;
  @compute @workgroup_size(${WIDTH}) fn main(@builtin(global_invocation_id) at: vec3u) {
    out[at.x] = f32(words[at.x] & 255u) / 16.0;
  }`;

exports.Scalar = class {};
exports.createPolyfillWASI = () => ({});
exports.detectGPUDevice = async () => {
  const adapter = await navigator.gpu.requestAdapter();
  return adapter ? { adapter, device: await adapter.requestDevice() } : undefined;
};

exports.instantiate = async (bytes) => {
  const mode = new TextDecoder().decode(bytes).trim();
  let device;
  let buffers = [];
  let kept = [];
  const sync = () => device.queue.onSubmittedWorkDone();
  const make = (size) => {
    const { COPY_DST, COPY_SRC, STORAGE } = GPUBufferUsage;
    const buffer = device.createBuffer({ size, usage: COPY_DST | COPY_SRC | STORAGE });
    buffers.push(buffer);
    return buffer;
  };

  async function stream(url, buffer) {
    const reader = (await fetch(url)).body.getReader();
    let [at, left, unsynced] = [0, new Uint8Array(), 0];
    for (let piece; (piece = await reader.read()), !piece.done; ) {
      const joined = left.length ? new Uint8Array([...left, ...piece.value]) : piece.value;
      const size = joined.length & ~3;
      device.queue.writeBuffer(buffer, at, joined, 0, size);
      left = joined.slice(size);
      at += size;
      if ((unsynced += size) > 2 ** 20) unsynced = await sync() ?? 0;
    }
  }

  async function whole(url, buffer) {
    const body = await (await fetch(url)).arrayBuffer();
    kept.push(body);
    device.queue.writeBuffer(buffer, 0, body);
  }

  async function compute(kind) {
    const code = shader(mode === "faulty" ? "read" : "read_write");
    const module = device.createShaderModule({ code });
    const pipeline = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
    const out = make(4 * WIDTH);
    const entries = [buffers[0], out].map((buffer, binding) => ({ binding, resource: { buffer, size: 4 * WIDTH } }));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
    pass.dispatchWorkgroups(1);
    pass.end();
    const host = device.createBuffer({ size: 4 * WIDTH, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    encoder.copyBufferToBuffer(out, 0, host, 0, 4 * WIDTH);
    device.queue.submit([encoder.finish()]);
    await host.mapAsync(GPUMapMode.READ);
    const values = new Float32Array(host.getMappedRange().slice());
    host.destroy();
    return values;
  }

  let pending = Promise.resolve();
  const answer = () => {
    const logits = { shape: [1, 1, WIDTH], dtype: "float32" };
    pending = compute().then((values) => (logits.values = values));
    return { size: () => 1, get: () => logits };
  };
  const functions = { _metadata: () => JSON.stringify(METADATA), create_kv_cache: () => [], prefill: answer, decode: answer };
  return {
    initWebGPU: (given) => (device = given),
    webgpu: () => ({ sync: async () => { await pending; await sync(); } }),
    cpu: () => "cpu",
    withNewScope: (action) => action(),
    detachFromCurrentScope: (value) => value,
    beginScope: () => {},
    endScope: () => {},
    createVirtualMachine: () => ({
      getFunction: (name) => {
        if (!functions[name]) throw new Error(`no function ${name}`);
        return functions[name];
      },
      getInternalModule: () => "module",
    }),
    asyncLoadWebGPUPipelines: async () => {},
    tensorCacheClear: () => {
      if (mode !== "forgetful") buffers.forEach((buffer) => buffer.destroy());
      [buffers, kept] = [[], []];
    },
    fetchTensorCache: async (base) => {
      if (mode === "hang") await new Promise(() => {});
      const { records } = await (await fetch(new URL("tensor-cache.json", base))).json();
      const take = (shard) => (mode === "whole" ? whole : stream)(new URL(shard.dataPath, base), make(shard.nbytes));
      if (mode === "whole") await Promise.all(records.map(take));
      else for (const shard of records) await take(shard);
    },
    getParamsFromCacheByName: (names) => names,
    makeShapeTuple: (values) => values,
    makeTVMArray: (values) => values,
    empty: (shape, dtype, place) => ({
      shape, dtype,
      copyFrom(source) { this.source = source; return this; },
      toArray() { return this.source.values; },
    }),
  };
};
