// SPDX-License-Identifier: Apache-2.0
// Runs inside the browser: loads the model library as a web page would and makes the calls that
// reference.json lists. Figures: milliseconds, and absolute differences of logits.

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
    throw new Error(`${path} needs ${name}, which a browser does not have`);
  };
  new Function("module", "exports", "require", text)(module, module.exports, require);
  return module.exports;
}

function argmax(row) {
  return row.reduce((best, value, i) => (value > row[best] ? i : best), 0);
}

/** Compare logits (rows × vocab) with the expected rows; rows beyond those are padding. */
function compare(actual, expected, width) {
  let difference = 0;
  let zero = true;
  let agree = true;
  expected.forEach((row, r) => {
    const got = Array.from(actual.subarray(r * width, (r + 1) * width));
    if (!got.every(Number.isFinite)) difference = NaN;
    zero &&= got.every((value) => value === 0);
    agree &&= argmax(got) === argmax(row);
    row.forEach((value, i) => {
      difference = Math.max(difference, Math.abs(got[i] - value));
    });
  });
  return { difference, zero, agree };
}

/** The device of the page's adapter, or the reason why there is none. */
async function findDevice(tvmjs) {
  try {
    const found = await tvmjs.detectGPUDevice();
    return found === undefined ? { reason: "the browser has no WebGPU" } : { device: found.device };
  } catch (error) {
    return { reason: error.message.split(".")[0] };
  }
}

/** Load everything; returns what the calls need. */
async function load(tvmjs, device) {
  const library = await bytes("/artifacts/decoder-webgpu.wasm");
  const tvm = await tvmjs.instantiate(library, tvmjs.createPolyfillWASI());
  tvm.initWebGPU(device);
  const gpu = tvm.webgpu();
  const weights = new URL("/artifacts/weights/", location.href).href;
  await tvm.fetchTensorCache(weights, gpu);
  tvm.beginScope();
  const machine = tvm.createVirtualMachine(gpu);
  await tvm.asyncLoadWebGPUPipelines(machine.getInternalModule());
  const metadata = JSON.parse(machine.getFunction("_metadata")());
  const params = tvm.getParamsFromCacheByName(metadata.params.map((param) => param.name));
  const cache = machine.getFunction("create_kv_cache")();
  return { tvm, gpu, machine, metadata, params, cache };
}

/** One call of prefill or decode. Returns its logits on the host and the new cache. */
async function step({ tvm, gpu, machine, params }, cache, call) {
  const ids = tvm.empty([1, call.input_ids.length], "int32", gpu);
  ids.copyFrom(Int32Array.from(call.input_ids));
  const position = tvm.makeShapeTuple([call.position]);
  const result = machine.getFunction(call.function)(ids, position, cache, params);
  const logits = result.get(0);
  const host = tvm.empty(logits.shape, "float32", tvm.cpu());
  host.copyFrom(logits);
  await gpu.sync();
  const tensors = Array.from({ length: result.size() - 1 }, (_, i) => result.get(i + 1));
  return { logits: host.toArray(), width: logits.shape[2], cache: tvm.makeTVMArray(tensors) };
}

/** The whole check. `problems` is empty when the library is sound. */
export async function run() {
  const tvmjs = await commonJs("/artifacts/tvmjs.cjs");
  const { device, reason } = await findDevice(tvmjs);
  if (device === undefined) return { inconclusive: reason };
  const problems = [];
  device.addEventListener("uncapturederror", (event) => problems.push(event.error.message));

  const reference = await (await fetch("/artifacts/weights/reference.json")).json();
  const start = performance.now();
  const state = await load(tvmjs, device);
  const figures = { load_ms: Math.round(performance.now() - start), max_abs_diff: 0 };
  let cache = state.cache;
  for (const call of reference.calls) {
    const begin = performance.now();
    const result = await step(state, cache, call);
    figures[`${call.function}_ms`] ??= Math.round(performance.now() - begin);
    cache = result.cache;
    const { difference, zero, agree } = compare(result.logits, call.logits, result.width);
    figures.max_abs_diff = Math.max(figures.max_abs_diff, difference);
    const name = `${call.function} at ${call.position}`;
    if (zero) problems.push(`${name}: all logits are zero`);
    if (!(difference <= reference.tolerance)) problems.push(`${name}: logits off by ${difference}`);
    if (!agree) problems.push(`${name}: another token is the most likely`);
  }
  return { ...figures, calls: reference.calls.length, problems };
}
