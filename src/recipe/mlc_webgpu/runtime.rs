//! The browser's runtime: its sources, what is compiled from them, and the browser module.

use super::{Adapter, Runtime};
use crate::pins::Name;
use crate::plan::PlanError;
use crate::recipe::draft::{Draft, cost};
use crate::recipe::parts::{self, Flavour, PYTHON, RUNTIME_DIRECTORIES, Unit};

/// The root of TVM's patched sources, as the two kinds of source lay them out.
pub(super) const TVM_OF_GIT: &str = "${step:tvm-patched/tree}";
const TVM_OF_WHEELS: &str = "${step:patched/tree}/tvm";

/// Adds the steps that obtain and patch TVM's sources, and gives their root.
pub(super) fn add_sources(draft: &mut Draft<'_>, runtime: &Runtime) -> Result<&'static str, PlanError> {
    match runtime {
        Runtime::Git { mlc_llm, tvm } => {
            draft.git(mlc_llm.as_str(), cost(30, 512, 700))?;
            let tree = format!("${{step:{mlc_llm}/tree}}/3rdparty/tvm");
            draft.patch("tvm-patched", tvm.as_str(), &tree, cost(2, 64, 200))?;
            Ok(TVM_OF_GIT)
        }
        Runtime::Wheel { .. } => {
            draft.package("apache-tvm", 0, &RUNTIME_DIRECTORIES, &[])?;
            draft.package("apache-tvm-ffi", 0, &["tvm_ffi/include/", "tvm_ffi/src/"], &[])?;
            parts::runtime_sources(draft, &[])?;
            Ok(TVM_OF_WHEELS)
        }
    }
}

/// What libraries and the generated adapter are linked from.
pub(super) struct Objects {
    /// The runtime, in link order, as templates.
    pub runtime: Vec<String>,
    /// The list of what a page provides, where the library is linked here.
    pub imports: Option<String>,
}

/// Adds the steps that compile the runtime.
pub(super) fn add_objects(draft: &mut Draft<'_>, runtime: &Runtime, tvm: &str) -> Result<Objects, PlanError> {
    match runtime {
        Runtime::Git { mlc_llm, .. } => {
            let flavour = Flavour {
                root: tvm,
                flags: &BITCODE_FLAGS,
                includes: &["-I.", "-Iinclude", TVM_FFI, DLPACK, "-I3rdparty/compiler-rt"],
                suffix: "bc",
            };
            parts::compile_runtime(draft, &flavour, &BITCODE)?;
            add_mlc_bitcode(draft, mlc_llm)?;
            let copies = [
                ("${step:bitcode-runtime/wasm_runtime.bc}", "tvm/web/dist/wasm/wasm_runtime.bc"),
                ("${step:bitcode-support/tvmjs_support.bc}", "tvm/web/dist/wasm/tvmjs_support.bc"),
                ("${step:bitcode-webgpu/webgpu_runtime.bc}", "tvm/web/dist/wasm/webgpu_runtime.bc"),
                ("${step:bitcode-mlc/mlc_wasm_runtime.bc}", "mlc-llm/web/dist/wasm/mlc_wasm_runtime.bc"),
            ];
            // The only place of each of these names that the compiler is told of: it takes the last
            // that it finds.
            draft.collect("bitcode", "put the bitcode where the compiler looks for it", &copies, cost(1, 64, 12))?;
            Ok(Objects { runtime: templates(&BITCODE, "bc"), imports: None })
        }
        Runtime::Wheel { imports } => {
            parts::runtime_objects(draft, &UNITS)?;
            let imports = draft.file(imports.as_str())?;
            Ok(Objects { runtime: templates(&UNITS, "o"), imports: Some(imports) })
        }
    }
}

const TVM_FFI: &str = "-I3rdparty/tvm-ffi/include";
const DLPACK: &str = "-I3rdparty/tvm-ffi/3rdparty/dlpack/include";
const BITCODE_FLAGS: [&str; 5] =
    ["-O3", "-std=c++17", "-Wno-ignored-attributes", "-emit-llvm", "-ffile-prefix-map=${step:tvm-patched/tree}=tvm"];

const BITCODE: [Unit<'_>; 3] = [
    Unit { id: "bitcode-runtime", sources: &["wasm_runtime"], cpu_s: 33 },
    Unit { id: "bitcode-support", sources: &["tvmjs_support"], cpu_s: 4 },
    Unit { id: "bitcode-webgpu", sources: &["webgpu_runtime"], cpu_s: 10 },
];

const UNITS: [Unit<'_>; 4] = [
    Unit { id: "objects-ffi", sources: &["ffi_pack"], cpu_s: 18 },
    Unit { id: "objects-vm", sources: &["vm_pack"], cpu_s: 16 },
    Unit { id: "objects-kv", sources: &["kv_pack"], cpu_s: 14 },
    Unit { id: "objects-runtime", sources: &["wasm_runtime", "webgpu_runtime", "tvmjs_support"], cpu_s: 20 },
];

fn templates(units: &[Unit<'_>], suffix: &str) -> Vec<String> {
    let of_unit = |unit: &Unit<'_>| {
        let id = unit.id.to_owned();
        unit.sources.iter().map(move |source| format!("${{step:{id}/{source}.{suffix}}}")).collect::<Vec<_>>()
    };
    units.iter().flat_map(of_unit).collect()
}

fn add_mlc_bitcode(draft: &mut Draft<'_>, mlc_llm: &Name) -> Result<(), PlanError> {
    let root = format!("${{step:{mlc_llm}/tree}}");
    let map = format!("-ffile-prefix-map={root}=mlc-llm");
    let mut words = vec!["${tool:emcc}"];
    words.extend(BITCODE_FLAGS);
    let includes = ["", "/include", "/3rdparty/tvm-ffi/include", "/3rdparty/tvm-ffi/3rdparty/dlpack/include"]
        .map(|path| format!("-I{TVM_OF_GIT}{path}"));
    words.extend(includes.iter().map(String::as_str));
    words.extend([&map, "-Icpp", "-c", "web/emcc/mlc_wasm_runtime.cc", "-o", "${out}/mlc_wasm_runtime.bc"]);
    draft
        .run("bitcode-mlc", "compile MLC's part of the browser's runtime")
        .directory(&root)
        .after("emscripten", "empty.o")
        .command(&words)
        .makes(&["mlc_wasm_runtime.bc"], cost(1, 128, 1))
}

/// Adds the steps to the browser module, with its WASI adapter.
pub(super) fn add_browser_module(
    draft: &mut Draft<'_>,
    adapter: &Adapter,
    tvm: &str,
    objects: &Objects,
) -> Result<(), PlanError> {
    let adapter = match adapter {
        Adapter::Own(file) => draft.file(file.as_str())?,
        Adapter::Generated => {
            generate_adapter(draft, tvm, objects)?;
            "${step:adapter/tvmjs_runtime_wasi.js}".to_owned()
        }
    };
    let (sources, settings) = (format!("{tvm}/web/src"), format!("{tvm}/web/tsconfig.json"));
    let copies =
        [(sources.as_str(), "web/src"), (&settings, "web/tsconfig.json"), (&adapter, "web/src/tvmjs_runtime_wasi.js")];
    draft.collect(
        "browser-sources",
        "lay the browser module's sources and the adapter together",
        &copies,
        cost(1, 64, 1),
    )?;
    parts::browser_module(draft, "${step:browser-sources/web}")
}

/// Only the JavaScript of this link is used. Its flags are upstream's, since they show in it:
/// ASYNCIFY alone makes it the longest step, which nothing but the browser module waits for.
fn generate_adapter(draft: &mut Draft<'_>, tvm: &str, objects: &Objects) -> Result<(), PlanError> {
    let mut words =
        vec!["${tool:emcc}", "-O3", "-std=c++17", "-Wno-ignored-attributes", "-o", "${tmp}/tvmjs_runtime.js"];
    words.extend(objects.runtime.iter().map(String::as_str));
    words.extend([
        "--no-entry",
        "-sWASM_BIGINT=1",
        "-sALLOW_MEMORY_GROWTH=1",
        "-sSTANDALONE_WASM=1",
        "-sERROR_ON_UNDEFINED_SYMBOLS=0",
        "-sDEFAULT_TO_CXX=1",
        "--pre-js",
        "web/emcc/preload.js",
        "-sASYNCIFY=1",
    ]);
    draft
        .run("adapter", "link the runtime for its WASI adapter")
        .directory(tvm)
        .command(&words)
        .command(&[
            PYTHON,
            "web/emcc/decorate_as_wasi.py",
            "${tmp}/tvmjs_runtime.js",
            "${out}/tvmjs_runtime_wasi.js",
            "es",
        ])
        .makes(&["tvmjs_runtime_wasi.js"], cost(305, 2048, 1))
}
