// SPDX-License-Identifier: Apache-2.0
// Counts what the page's GPU devices and transferred bodies hold. Loaded before everything else.
//
// GPU: the sizes of all buffers created, less those destroyed. A buffer that is dropped without
// destroy() counts for ever.
// Bodies: every ArrayBuffer that a reader of a stream, or a response's or blob's arrayBuffer() or
// bytes(), gave to the page. While `watched`, each MiB given is followed by a garbage collection, and
// what of those buffers is still reachable then is what the page holds. Not counted: what the browser
// moves into its cache by itself (Cache.add), copies that the page makes, texts and JSON.
// Queue: bytes given to writeBuffer since the queue was last waited for.
"use strict";
const instruments = (() => {
  const MIB = 1048576;
  const gpu = { live: 0, peak: 0 };
  const bodies = { delivered: 0, held_peak: 0, largest: 0 };
  const queue = { unsynced: 0, unsynced_peak: 0 };
  const errors = [];
  let watched = false;
  let held = [];
  let since = 0;

  const note = (text) => errors.length < 100 && errors.push(String(text).slice(0, 2000));

  function wrap(prototype, name, around) {
    const original = prototype?.[name];
    if (typeof original !== "function") return;
    prototype[name] = function (...args) {
      return around(this, (...changed) => original.apply(this, changed), args);
    };
  }

  // GPU buffers, devices and their errors.
  const sizes = new WeakMap();
  wrap(globalThis.GPUDevice?.prototype, "createBuffer", (_device, create, args) => {
    const buffer = create(...args);
    sizes.set(buffer, buffer.size);
    gpu.live += buffer.size;
    gpu.peak = Math.max(gpu.peak, gpu.live);
    return buffer;
  });
  wrap(globalThis.GPUBuffer?.prototype, "destroy", (buffer, destroy) => {
    gpu.live -= sizes.get(buffer) ?? 0;
    sizes.delete(buffer);
    return destroy();
  });
  wrap(globalThis.GPUAdapter?.prototype, "requestDevice", async (_adapter, request, args) => {
    const device = await request(...args);
    device.addEventListener("uncapturederror", (event) => note(`GPU error: ${event.error.message}`));
    device.lost.then((info) => {
      if (info.reason !== "destroyed") note(`GPU device lost: ${info.message || info.reason}`);
    });
    return device;
  });
  wrap(globalThis.GPUQueue?.prototype, "writeBuffer", (_queue, write, args) => {
    const [, , data, , size] = args;
    queue.unsynced += size ?? data.byteLength;
    queue.unsynced_peak = Math.max(queue.unsynced_peak, queue.unsynced);
    return write(...args);
  });
  wrap(globalThis.GPUQueue?.prototype, "onSubmittedWorkDone", async (_queue, wait) => {
    await wait();
    queue.unsynced = 0;
  });

  // Bodies. What was given in this very turn is not collectable, so a turn is waited for.
  const turn = () =>
    new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(port1.close());
      port2.postMessage(null);
    });
  async function deliver(buffer, size) {
    bodies.delivered += size;
    bodies.largest = Math.max(bodies.largest, size);
    if (!watched) return;
    held.push({ buffer: new WeakRef(buffer), size });
    since += size;
    if (since < MIB) return;
    since = 0;
    await turn();
    globalThis.gc?.();
    held = held.filter((entry) => entry.buffer.deref() !== undefined);
    const sum = held.reduce((total, entry) => total + entry.size, 0);
    bodies.held_peak = Math.max(bodies.held_peak, sum);
  }
  for (const reader of [globalThis.ReadableStreamDefaultReader, globalThis.ReadableStreamBYOBReader]) {
    wrap(reader?.prototype, "read", async (_reader, read, args) => {
      const result = await read(...args);
      // The buffer of a piece, not the piece, is what is kept alive.
      if (result.value?.buffer) await deliver(result.value.buffer, result.value.byteLength);
      return result;
    });
  }
  for (const source of [Response, Blob]) {
    wrap(source.prototype, "arrayBuffer", async (_source, read) => {
      const buffer = await read();
      await deliver(buffer, buffer.byteLength);
      return buffer;
    });
    wrap(source.prototype, "bytes", async (_source, read) => {
      const piece = await read();
      await deliver(piece.buffer, piece.byteLength);
      return piece;
    });
  }

  return {
    note,
    /** Begin to watch bodies; their figures start anew. */
    watch() {
      watched = true;
      held = [];
      since = 0;
      Object.assign(bodies, { delivered: 0, held_peak: 0, largest: 0 });
      Object.assign(queue, { unsynced: 0, unsynced_peak: 0 });
    },
    /** Stop watching and tell the figures, in bytes. */
    unwatch() {
      watched = false;
      held = [];
      // Without the collector only the largest single body is known, which is less than all held.
      const known = typeof globalThis.gc === "function";
      return {
        delivered: bodies.delivered,
        held_peak: known ? Math.max(bodies.held_peak, Math.min(bodies.largest, bodies.delivered)) : null,
        largest: bodies.largest,
        unsynced_peak: queue.unsynced_peak,
      };
    },
    gpu: () => ({ ...gpu }),
    errors: () => errors.slice(),
  };
})();
