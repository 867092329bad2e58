// SPDX-License-Identifier: Apache-2.0
// The WASI functions that a TVM model library imports, in place of Emscripten's generated adapter.
// A library has no files, arguments or environment: it reads a clock and writes messages.
const SUCCESS = 0;
const BADF = 8;

export default class EmccWASI {
  constructor() {
    let memory;
    let line = "";
    const view = () => new DataView(memory.buffer);
    const write = (_fd, vectors, count, written) => {
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const address = view().getUint32(vectors + 8 * i, true);
        const size = view().getUint32(vectors + 8 * i + 4, true);
        line += new TextDecoder().decode(new Uint8Array(memory.buffer, address, size));
        total += size;
      }
      const lines = line.split("\n");
      line = lines.pop();
      lines.forEach((text) => console.log(text));
      view().setUint32(written, total, true);
      return SUCCESS;
    };
    const wasi = {
      clock_time_get: (_clock, _precision, out) => {
        view().setBigUint64(out, BigInt(Math.round(performance.now() * 1e6)), true);
        return SUCCESS;
      },
      environ_sizes_get: (count, size) => {
        view().setUint32(count, 0, true);
        view().setUint32(size, 0, true);
        return SUCCESS;
      },
      environ_get: () => SUCCESS,
      fd_write: write,
      fd_read: () => BADF,
      fd_seek: () => BADF,
      fd_close: () => BADF,
      proc_exit: (code) => {
        throw new Error(`model library exited with ${code}`);
      },
    };
    this.imports = { wasi_snapshot_preview1: wasi };
    this.start = (instance) => {
      memory = instance.exports.memory;
      instance.exports._initialize();
    };
  }
}
