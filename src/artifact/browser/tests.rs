use proptest::prelude::*;

use super::*;

/// TVM's environment, in small.
const ENVIRONMENT: &str = r#"
class Environment {
  constructor(importObject = {}) {
    this.imports = importObject;
    this.imports.env = this.environment(this.imports.env);
  }
  environment(initEnv) {
    const defaultEnv = {
      "__cxa_thread_atexit": () => {},
      // "in_a_comment": 1,
      emscripten_notify_memory_growth: (index) => { return { notThis: 1, "norThis": 2 }; }
    };
    const newEnv = { "TVMFFIWasmSafeCall": wasmSafeCall, TVMFFIWasmFunctionDeleter, "__console_log": (msg) => { this.logger(msg); } };
    return Object.assign(defaultEnv, initEnv, newEnv);
  }
}
function call(lib) {
  lib.exports.TVMFFIFunctionCall(1);
  const message = `not ${"lib.exports.TVMInText"} at all`;
  const memory = wasm.exports["memory"];
  exports.TVMOwn = call;
  let requiredMaxStorageBuffersPerShaderStage = 10;
  const requiredMaxBufferSize = 1 << 30;
}
"#;

fn provided<'a>(module: &'a BrowserModule, name: &str) -> Vec<&'a str> {
    module.provides.get(name).into_iter().flatten().map(String::as_str).collect()
}

#[test]
fn an_adapter_written_by_hand_is_read() {
    let text = format!(
        "{ENVIRONMENT} const wasi = {{ clock_time_get: (a, b) => {{ x = {{ no: 1 }}; return 0; }}, fd_write: write, async fd_read() {{}},\n\
         get fd_seek() {{ return 1; }}, ...more, [computed]: 1 }}; this.imports = {{ wasi_snapshot_preview1: wasi }};"
    );
    let module = read(&text);
    assert_eq!(provided(&module, "wasi_snapshot_preview1"), ["clock_time_get", "fd_read", "fd_seek", "fd_write"]);
    assert_eq!(
        provided(&module, "env"),
        [
            "TVMFFIWasmFunctionDeleter",
            "TVMFFIWasmSafeCall",
            "__console_log",
            "__cxa_thread_atexit",
            "emscripten_notify_memory_growth"
        ]
    );
    assert_eq!(module.requires.iter().collect::<Vec<_>>(), ["TVMFFIFunctionCall", "memory"]);
    assert_eq!(module.limits["maxStorageBuffersPerShaderStage"], 10);
    assert_eq!(module.limits["maxBufferSize"], 1 << 30);
}

#[test]
fn emscriptens_adapters_are_read_spread_out_and_minified() {
    let spread = "var asmLibraryArg = {\n  \"fd_write\": _fd_write,\n  \"proc_exit\": _proc_exit\n};\n\
        function createWasm() {\n  var info = {\n    'env': asmLibraryArg,\n    'wasi_snapshot_preview1': asmLibraryArg,\n  };\n}";
    let minified = "function createWasm(){var info={\"env\":wasmImports,\"wasi_snapshot_preview1\":wasmImports};return a/b/c}\
        var wasmImports;function assign(){wasmImports={/** @export */fd_write:_fd_write,proc_exit:_proc_exit}}";
    let returned = "function getWasmImports(){return{env:wasmImports,wasi_snapshot_preview1:wasmImports}}\
        var wasmImports={fd_write:_fd_write,proc_exit:(code)=>{if(code)/[/}]/.test(code);throw code}};";
    for text in [spread, minified, returned] {
        let module = read(text);
        for name in ["env", "wasi_snapshot_preview1"] {
            assert_eq!(provided(&module, name), ["fd_write", "proc_exit"], "{text}");
        }
    }
}

#[test]
fn what_is_only_mentioned_is_not_provided() {
    let text = "// env: { TVMFFIGetCustomAllocator: 1 }\nconst s = '{ env: { fd_write: 1 } }'; const t = `{ env: { fd_read: ${ f({ env2: {} }) } } }`;\n\
        const r = /{ env: { a: 1 } }/; if (x) { env: { fd_seek: 1 } } call(env.fd_close, { b: fd_close });";
    assert_eq!(read(text), BrowserModule::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in "(\\PC|[{}()\\[\\],:;'\"`$/*\\\\\n]|env|return|exports\\.|é){0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn a_cut_module_never_panics(at in 0..ENVIRONMENT.len()) {
        let _ = read(&ENVIRONMENT[..at]);
    }
}
