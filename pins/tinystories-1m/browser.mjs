#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// usage: browser.mjs DELIVERED [--chromium PATH]
//
// Has the delivered model speak in a headless Chromium, with the module that is delivered beside it, and
// holds every token against generation.json. Prints one line of JSON. Exit status: 0 all the same,
// 1 not so or not runnable, 11 inconclusive (no Chromium).
import { resolve } from "node:path";
import { Unavailable, launch, openPage } from "../../workspace.example/driver/chromium.mjs";
import { serve } from "../../workspace.example/driver/server.mjs";

const TIMEOUT_MS = 300_000;

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
