// SPDX-License-Identifier: Apache-2.0
// Generates text in a browser as generation.json says, with onnxruntime-web and the files beside this
// one; nothing is fetched from elsewhere. `generate.py` of the build does the same step for step.

/** Numbers from 0 to 1, 1 excluded, in 32-bit arithmetic. */
function mulberry32(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** GPT-2's letters for bytes: those that print stand for themselves, the others for 256 and up. */
function byteLetters() {
  const letters = [];
  let other = 256;
  for (let byte = 0; byte < 256; ++byte) {
    const prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    letters.push(String.fromCharCode(prints ? byte : other++));
  }
  return letters;
}

/** GPT-2's tokenizer from a tokenizer.json: byte-level BPE, special tokens not looked for in texts. */
export function createTokenizer(json) {
  const { type, vocab, merges } = json.model;
  if (type !== "BPE" || json.pre_tokenizer?.type !== "ByteLevel" || json.normalizer) {
    throw new Error("tokenizer.json is not one of byte-level BPE");
  }
  const added = new Map(json.added_tokens.map((token) => [token.content, token.id]));
  const ids = new Map([...Object.entries(vocab), ...added]);
  const texts = new Map([...ids].map(([text, id]) => [id, text]));
  const ranks = new Map(merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  const letters = byteLetters();
  const bytes = new Map(letters.map((letter, byte) => [letter, byte]));
  const words = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

  function merge(word) {
    let parts = [...word];
    for (;;) {
      let best = -1;
      let lowest = Infinity;
      for (let i = 0; i + 1 < parts.length; ++i) {
        const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < lowest) [best, lowest] = [i, rank];
      }
      if (best < 0) return parts;
      const pair = [parts[best], parts[best + 1]];
      const merged = [];
      for (let i = 0; i < parts.length; ++i) {
        const both = parts[i] === pair[0] && parts[i + 1] === pair[1];
        merged.push(both ? pair.join("") : parts[i]);
        if (both) ++i;
      }
      parts = merged;
    }
  }

  return {
    idOf: (text) => ids.get(text),
    encode(text) {
      const encoded = [];
      for (const [word] of text.matchAll(words)) {
        const spelled = Array.from(new TextEncoder().encode(word), (byte) => letters[byte]).join("");
        encoded.push(...merge(spelled).map((part) => ids.get(part)));
      }
      return encoded;
    },
    decode(tokens) {
      const spelled = tokens.map((token) => texts.get(token)).join("");
      const known = (letter) => (bytes.has(letter) ? [bytes.get(letter)] : [...new TextEncoder().encode(letter)]);
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from([...spelled].flatMap(known)));
    },
  };
}

/** A token, and how near the drawn number lies to where another token would begin. */
function draw(logits, number, { top_k, temperature }) {
  // The higher logit first, of equal ones the lower id.
  const order = [];
  for (let id = 0; id < logits.length; ++id) {
    if (order.length === top_k && !(logits[id] > logits[order[top_k - 1]])) continue;
    let at = order.length;
    while (at > 0 && logits[id] > logits[order[at - 1]]) --at;
    order.splice(at, 0, id);
    order.length = Math.min(order.length, top_k);
  }
  const weights = order.map((id) => Math.exp((logits[id] - logits[order[0]]) / temperature));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const wanted = number * sum;
  let total = 0;
  for (let i = 0; i < order.length; ++i) {
    if (total + weights[i] > wanted) {
      return [order[i], Math.min(wanted - total, total + weights[i] - wanted) / sum];
    }
    total += weights[i];
  }
  return [order.at(-1), 0];
}

/** Says something. `logitsOf` gives the logits behind the last of the token ids that it is given. */
export async function say(contract, tokenizer, logitsOf, prompt, seed) {
  const ends = contract.sentence_ends.replace(/[\\\]^-]/g, "\\$&");
  const sentence = new RegExp(`^(.*?[${ends}])`, "s");
  const ids = tokenizer.encode(prompt);
  const numbers = mulberry32(seed);
  const tokens = [];
  let text = "";
  let found = null;
  let margin = 1;
  while (tokens.length < contract.max_new_tokens && found === null) {
    const [token, distance] = draw(await logitsOf([...ids, ...tokens]), numbers(), contract);
    margin = Math.min(margin, distance);
    if (token === tokenizer.idOf(contract.end_token)) break;
    tokens.push(token);
    text = [...tokenizer.decode(tokens)].filter((letter) => !contract.strip.includes(letter)).join("");
    found = sentence.exec(text);
  }
  const said = (found === null ? text : found[1]).trim();
  return { seed, prompt_tokens: ids, tokens, said, sentence: found !== null, closest_draw: margin };
}

async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return response;
}

/** Loads what lies beside this module: `{ contract, expected, say(text, seed, prompt), runtime }`. */
export async function load({ model = "model.onnx", base = new URL("./", import.meta.url) } = {}) {
  const ort = await import(new URL("runtime/ort.wasm.min.mjs", base));
  ort.env.wasm.wasmPaths = new URL("runtime/", base).href;
  ort.env.wasm.numThreads = 1;
  const json = async (path) => (await fetched(new URL(path, base))).json();
  const [generation, vocabulary] = await Promise.all([json("generation.json"), json("tokenizer/tokenizer.json")]);
  const bytes = await (await fetched(new URL(model, base))).arrayBuffer();
  const { contract } = generation;
  const session = await ort.InferenceSession.create(new Uint8Array(bytes), {
    executionProviders: ["wasm"],
    graphOptimizationLevel: contract.optimization,
  });
  const tokenizer = createTokenizer(vocabulary);
  async function logitsOf(ids) {
    const input = new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
    const { logits } = await session.run({ input_ids: input });
    const last = logits.data.slice(-logits.dims[2]);
    logits.dispose?.();
    input.dispose?.();
    return last;
  }
  return {
    contract,
    expected: generation,
    runtime: `onnxruntime-web ${ort.env.versions?.common ?? "unknown"}`,
    say: (text, seed, prompt = contract.prompt) =>
      say(contract, tokenizer, logitsOf, prompt.replace("{text}", () => text), seed),
  };
}

/** Does all that generation.json tells of, and compares. `problems` is empty when all is the same. */
export async function check(options) {
  const began = performance.now();
  const { contract, expected, runtime, say } = await load(options);
  const load_ms = Math.round(performance.now() - began);
  const problems = [];
  const compare = (name, want, got) => {
    for (const key of ["prompt_tokens", "tokens", "said", "sentence"]) {
      const [wanted, found] = [want[key], got[key]].map((value) => JSON.stringify(value));
      if (wanted !== found) problems.push(`${name}: ${key} is ${found}, natively ${wanted}`);
    }
  };
  const runs = [];
  let tokens = 0;
  const start = performance.now();
  for (const want of expected.runs) {
    const got = await say(want.text, want.seed);
    runs.push({ text: want.text, ...got });
    tokens += got.tokens.length;
    compare(`${want.text} (${want.seed})`, want, got);
    if (got.said === "") problems.push(`${want.text} (${want.seed}): nothing is said`);
  }
  const seconds = (performance.now() - start) / 1000;
  const traps = [];
  for (const want of expected.traps) {
    const got = await say(want.text, want.seed, want.prompt);
    traps.push({ prompt: want.prompt, ...got });
    compare(`the trap ${JSON.stringify(want.prompt)}`, want, got);
  }
  if (!runs.some((run) => run.sentence)) problems.push("no run has a complete sentence");
  const tokens_per_second = Number((tokens / seconds).toFixed(1));
  return { runtime, native: expected.runtime, load_ms, tokens, tokens_per_second, runs, traps, problems };
}
