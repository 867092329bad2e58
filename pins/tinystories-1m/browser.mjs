#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// usage: browser.mjs DELIVERED [--chromium PATH]
//
// Has the delivered model speak in a headless Chromium, with the module that is delivered beside it, and
// holds every token against generation.json. Prints one line of JSON. Exit status: 0 all the same,
// 1 not so or not runnable, 11 inconclusive (no Chromium).
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize, resolve } from "node:path";
import { Unavailable, launch, openPage } from "./chromium.mjs";

const TYPES = { ".mjs": "text/javascript", ".json": "application/json", ".wasm": "application/wasm" };
const TIMEOUT_MS = 300_000;

/** Serves an empty page and, below /artifacts/, the files in `directory`, on 127.0.0.1. */
async function serve(directory) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    try {
      const page = path === "/";
      const below = path.startsWith("/artifacts/") ? path.slice("/artifacts/".length) : "none";
      const body = page ? "<!doctype html><link rel=icon href=data:,>" : await readFile(join(directory, below));
      const type = page ? "text/html" : (TYPES[extname(path)] ?? "application/octet-stream");
      response.writeHead(200, { "content-type": type }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}

async function main([delivered, option, chromium = "chromium"]) {
  if (delivered === undefined || (option !== undefined && option !== "--chromium")) {
    throw new Error("usage: browser.mjs DELIVERED [--chromium PATH]");
  }
  const server = await serve(resolve(delivered));
  let browser = null;
  const stopped = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS).unref();
  });
  try {
    browser = await launch(chromium);
    const evaluate = await openPage(browser, `${server.origin}/`);
    return await Promise.race([evaluate(`import("/artifacts/generate.mjs").then((m) => m.check())`), stopped]);
  } finally {
    await browser?.close();
    server.close();
  }
}

const report = await main(process.argv.slice(2)).catch((error) => {
  if (error instanceof Unavailable) return { inconclusive: error.message };
  return { problems: [error.message.split("\n")[0]] };
});
console.log(JSON.stringify(report));
process.exitCode = report.inconclusive ? 11 : report.problems.length === 0 ? 0 : 1;
