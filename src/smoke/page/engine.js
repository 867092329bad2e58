// SPDX-License-Identifier: Apache-2.0
// Runs the model through the WebLLM engine: loads it and streams one chat completion.
"use strict";
const smoke = {
  async chat({ model, library, prompt, tokens, context }) {
    const webllm = await import("/web-llm.js");
    const at = (path) => new URL(path, location.href).href;
    const entry = { model: at(model), model_id: "smoke", model_lib: at(library), overrides: { context_window_size: context } };
    const begin = performance.now();
    const engine = await webllm.CreateMLCEngine("smoke", { appConfig: { useIndexedDBCache: false, model_list: [entry] }, logLevel: "WARN" });
    const loaded = performance.now();
    const ready = instruments.gpu().live;
    const pieces = [];
    let first;
    let finish = null;
    let usage = null;
    const stream = await engine.chat.completions.create({
      messages: [{ role: "user", content: prompt }],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: tokens,
      temperature: 0,
    });
    for await (const chunk of stream) {
      const choice = chunk.choices[0];
      if (choice?.delta?.content) {
        first ??= performance.now();
        pieces.push(choice.delta.content);
      }
      finish = choice?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    const end = performance.now();
    const text = pieces.join("");
    await engine.unload();
    return {
      load_ms: loaded - begin,
      first_token_ms: first === undefined ? null : first - loaded,
      stream_ms: end - loaded,
      tokens: usage?.completion_tokens ?? null,
      pieces: pieces.length,
      text: text.slice(0, 2000),
      finish,
      gpu_ready: ready,
    };
  },
  finish: () => ({ gpu: instruments.gpu(), errors: instruments.errors() }),
};
