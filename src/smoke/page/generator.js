// SPDX-License-Identifier: Apache-2.0
// Has a generator check itself, with what is delivered beside it.
"use strict";
const smoke = {
  async check({ module }) {
    const { check } = await import(module.split("/").map(encodeURIComponent).join("/"));
    if (typeof check !== "function") throw new Error("it exports no function check");
    // What cannot be written as JSON is the generator's fault, and must not become the browser's.
    return JSON.parse(JSON.stringify((await check()) ?? null));
  },
};
