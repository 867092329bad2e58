// SPDX-License-Identifier: Apache-2.0
// A headless Chromium driven through its own pipe: file descriptors 3 and 4 carry JSON messages of
// the DevTools protocol, each ended by a zero byte. No port is opened.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu-sandbox",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  "--disable-background-networking",
  "--no-first-run",
  "--remote-debugging-pipe",
];

/** Chromium could not be started at all. */
export class Unavailable extends Error {}

/** Start the browser with an empty profile. `close` ends it and removes the profile. */
export async function launch(path) {
  const home = mkdtempSync(join(tmpdir(), "driver-"));
  const child = spawn(path, [...FLAGS, `--user-data-dir=${join(home, "profile")}`, "about:blank"], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    env: { ...process.env, HOME: home, TMPDIR: home },
    detached: true,
  });
  const pending = new Map();
  const listeners = new Set();
  let ended = null;
  const exited = new Promise((resolve) => {
    const end = (error) => {
      ended ??= error;
      pending.forEach(({ reject }) => reject(ended));
      pending.clear();
      resolve();
    };
    child.on("error", (error) => end(new Error(`${path}: ${error.code}`)));
    child.on("exit", (code, signal) => end(new Error(`${path} ended (${code ?? signal})`)));
  });

  const [output, input] = [child.stdio[3], child.stdio[4]];
  output.on("error", () => {});
  input.on("error", () => {});
  let buffered = "";
  input.setEncoding("utf8").on("data", (text) => {
    const messages = (buffered + text).split("\0");
    buffered = messages.pop();
    for (const message of messages.map((json) => JSON.parse(json))) {
      const waiting = pending.get(message.id);
      if (waiting === undefined) {
        listeners.forEach((listener) => listener(message.method, message.params));
        continue;
      }
      pending.delete(message.id);
      if (message.error) waiting.reject(new Error(message.error.message));
      else waiting.resolve(message.result);
    }
  });

  let id = 0;
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      pending.set(++id, { resolve, reject });
      output.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });

  const close = async () => {
    // The browser leads a process group of its own, so this reaches its helpers and nothing else.
    if (!ended) process.kill(-child.pid, "SIGKILL");
    await exited;
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  try {
    await send("Browser.getVersion");
  } catch (error) {
    await close();
    throw new Unavailable(error.message);
  }
  return { send, close, onEvent: (listener) => listeners.add(listener) };
}

/** Open a page and return a function that evaluates an expression there, promises awaited. */
export async function openPage(browser, url) {
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  for (const domain of ["Runtime", "Log", "Page"]) {
    await browser.send(`${domain}.enable`, {}, sessionId);
  }
  const loaded = new Promise((resolve) => {
    browser.onEvent((method) => method === "Page.loadEventFired" && resolve());
  });
  await browser.send("Page.navigate", { url }, sessionId);
  await loaded;
  return async (expression) => {
    const parameters = { expression, awaitPromise: true, returnByValue: true };
    const reply = await browser.send("Runtime.evaluate", parameters, sessionId);
    if (reply.exceptionDetails) {
      const { exception, text } = reply.exceptionDetails;
      throw new Error(exception?.description ?? text);
    }
    return reply.result.value;
  };
}
