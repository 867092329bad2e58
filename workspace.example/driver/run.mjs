#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// usage: run.mjs ARTIFACTS [--chromium PATH]
//
// Runs the built library in a headless Chromium and compares its logits with reference.json.
// Prints one line of JSON. Exit status: 0 sound, 1 not sound or not runnable, 11 inconclusive
// (no Chromium, or no WebGPU adapter in it).
import { resolve } from "node:path";
import { Unavailable, launch, openPage } from "./chromium.mjs";
import { serve } from "./server.mjs";

const TIMEOUT_MS = 120_000;

function options(args) {
  const parsed = { artifacts: null, chromium: "chromium" };
  for (let i = 0; i < args.length; ++i) {
    if (args[i] === "--chromium" && i + 1 < args.length) parsed.chromium = args[++i];
    else if (parsed.artifacts === null && !args[i].startsWith("-")) parsed.artifacts = args[i];
    else throw new Error(`unexpected argument: ${args[i]}`);
  }
  if (parsed.artifacts === null) throw new Error("usage: run.mjs ARTIFACTS [--chromium PATH]");
  return parsed;
}

/** Errors and warnings that the browser reports by itself, such as rejected shaders. */
function collectComplaints(browser) {
  const complaints = [];
  browser.onEvent((method, params) => {
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      complaints.push(`${params.entry.source}: ${params.entry.text}`);
    } else if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      complaints.push(params.args.map((arg) => arg.value ?? arg.description).join(" "));
    } else if (method === "Runtime.exceptionThrown") {
      complaints.push(params.exceptionDetails.exception?.description ?? "uncaught exception");
    }
  });
  return complaints;
}

async function check(browser, server) {
  const complaints = collectComplaints(browser);
  const evaluate = await openPage(browser, `${server.origin}/`);
  const result = await evaluate(`import("/page.mjs").then((page) => page.run())`);
  if (result.inconclusive) return { status: "inconclusive", reason: result.inconclusive };
  const problems = [...result.problems, ...complaints];
  if (server.shards.parallel > 1) {
    problems.push(`${server.shards.parallel} shards were fetched at one time`);
  }
  const status = problems.length === 0 ? "ok" : "failed";
  return { status, ...result, shards: server.shards.requested, problems };
}

async function main() {
  const { artifacts, chromium } = options(process.argv.slice(2));
  const server = await serve(resolve(artifacts));
  let browser = null;
  const stopped = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS).unref();
    for (const signal of ["SIGINT", "SIGTERM"]) {
      process.once(signal, () => reject(new Error(`stopped by ${signal}`)));
    }
  });
  try {
    browser = await launch(chromium);
    return await Promise.race([check(browser, server), stopped]);
  } finally {
    await browser?.close();
    server.close();
  }
}

const report = await main().catch((error) => {
  if (error instanceof Unavailable) return { status: "inconclusive", reason: error.message };
  return { status: "failed", problems: [error.message.split("\n")[0]] };
});
console.log(JSON.stringify(report));
process.exitCode = { ok: 0, failed: 1, inconclusive: 11 }[report.status];
