// SPDX-License-Identifier: Apache-2.0
// Serves the page and the artifacts on 127.0.0.1, where browsers allow WebGPU and the Cache API.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const TYPES = { ".mjs": "text/javascript", ".json": "application/json", ".wasm": "application/wasm" };
const PAGE = "<!doctype html><title>decoder</title><link rel=icon href=data:,>";

const SHARD_MS = 20;

/** The file's bytes; of a file that is there as FILE.gz only, those, and the encoding's name. */
async function read(file) {
  try {
    return { body: await readFile(file) };
  } catch {
    return { body: await readFile(`${file}.gz`), encoding: "gzip" };
  }
}

/**
 * Start the server. `shards` counts the weight files requested, and how many at most were on their
 * way at one time; each takes SHARD_MS, so that requests made together are seen together.
 */
export async function serve(artifacts) {
  const shards = { requested: 0, parallel: 0 };
  let open = 0;
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const shard = /params_shard_\d+\.bin$/.test(path);
    if (shard) {
      shards.requested += 1;
      shards.parallel = Math.max(shards.parallel, (open += 1));
      response.on("close", () => (open -= 1));
      await sleep(SHARD_MS);
    }
    const prefix = "/artifacts/";
    let file = null;
    if (path === "/page.mjs") file = join(HERE, "page.mjs");
    else if (path.startsWith(prefix)) file = join(artifacts, path.slice(prefix.length));
    try {
      const { body, encoding } = path === "/" ? { body: PAGE } : await read(file ?? "");
      const type = path === "/" ? "text/html" : TYPES[/\.\w+$/.exec(path)?.[0]];
      const headers = { "content-type": type ?? "application/octet-stream" };
      if (encoding) headers["content-encoding"] = encoding;
      response.writeHead(200, headers).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, shards, close };
}
