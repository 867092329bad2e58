//! Recipe `tvm-webgpu`: a WebGPU model library from package registries alone.
//!
//! The apache-tvm and apache-tvm-ffi wheels are the compiler, and also the sources of the browser's
//! runtime; a git source brings the model's definition, the files that the wheels lack and the WASI
//! adapter. Compiler and runtime are of one version by construction.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::draft::{Delivery, Draft, LibraryDraft, cost};
use super::parts::{self, PYTHON, RUNTIME_DIRECTORIES, Unit};
use crate::pins::Name;
use crate::plan::PlanError;

/// `[recipe.tvm-webgpu]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The `[git.<name>]` source that defines the model; also the name of its Python package, whose
    /// modules `compile` and `weights` are run, and the stem of the library's file name.
    pub model: Name,
    /// The most sequences that the library decodes at a time. It is the leading dimension of the KV
    /// cache and of most work buffers.
    pub max_batch_size: NonZeroU16,
    /// Version that the tvm-ffi library must say it has, as `major.minor.patch`.
    pub ffi_version: String,
    /// Symbols that the native tvm-ffi library must export.
    pub ffi_exports: Vec<String>,
}

pub(super) fn add_steps(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let model = parameters.model.as_str();
    add_sources(draft, model)?;
    add_native_ffi(draft, parameters)?;
    parts::emscripten(draft)?;
    parts::runtime_objects(draft, &UNITS)?;
    add_compilation(draft, parameters)?;
    add_results(draft, parameters)
}

fn add_sources(draft: &mut Draft<'_>, model: &str) -> Result<(), PlanError> {
    parts::python(draft)?;
    draft.package("apache-tvm", 0, &RUNTIME_DIRECTORIES, &[])?;
    // The library in the wheel gives way to the one built here.
    draft.package("apache-tvm-ffi", 0, &[], &["tvm_ffi/lib/libtvm_ffi.so"])?;
    draft.git(model, cost(1, 64, 1))?;
    let overlay = format!("${{step:{model}/tree/3rdparty/overlay/tvm}}");
    let adapter = format!("${{step:{model}/tree/3rdparty/adapter/tvmjs_runtime_wasi.js}}");
    parts::runtime_sources(draft, &[(&overlay, "tree/tvm"), (&adapter, "tree/tvm/web/src/tvmjs_runtime_wasi.js")])
}

/// The tvm-ffi library is built from its own sources and takes the place of the wheel's. It serves one
/// compilation, so it is not optimized.
fn add_native_ffi(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let native = format!("${{step:{}/tree/3rdparty/overlay/native}}", parameters.model);
    let (source, check) = (format!("{native}/tvm_ffi.cc"), format!("{native}/check.py"));
    let prefix_map = format!("-ffile-prefix-map={native}=native");
    let build = [
        "${tool:cxx}",
        "-O0",
        "-std=c++17",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-DTVM_FFI_EXPORTS",
        "-DTVM_FFI_USE_LIBBACKTRACE=0",
        "-DTVM_FFI_BACKTRACE_ON_SEGFAULT=0",
        &prefix_map,
        "-I.",
        "-Iinclude",
        "-shared",
        "-s",
        "-Wl,-soname,libtvm_ffi.so",
        &source,
        "-o",
        "${out}/libtvm_ffi.so",
    ];
    let mut load = vec!["${tool:python}", &check, "${out}/libtvm_ffi.so", &parameters.ffi_version];
    load.extend(parameters.ffi_exports.iter().map(String::as_str));
    draft
        .run("ffi-native", "build the tvm-ffi library, load it and ask its version")
        .directory("${step:apache-tvm-ffi/tree/tvm_ffi}")
        .command(&build)
        .command(&load)
        .makes(&["libtvm_ffi.so"], cost(24, 1024, 2))?;
    draft.check_symbols("ffi-symbols", "${step:ffi-native/libtvm_ffi.so}", &parameters.ffi_exports)?;
    let copies = [
        // With its metadata: tvm-ffi finds its library through the installed package's list of files.
        ("${step:apache-tvm-ffi/tree}", "python"),
        ("${step:ffi-native/libtvm_ffi.so}", "python/tvm_ffi/lib/libtvm_ffi.so"),
        // Read here so that nothing uses a library that lacks a symbol.
        ("${step:ffi-symbols/symbols.json}", "symbols.json"),
    ];
    draft.collect("ffi", "put the library into the tvm-ffi Python package", &copies, cost(1, 64, 16))
}

const UNITS: [Unit<'_>; 3] = [
    Unit { id: "objects-ffi", sources: &["ffi_pack"], cpu_s: 12 },
    Unit { id: "objects-vm", sources: &["vm_pack"], cpu_s: 12 },
    Unit { id: "objects-runtime", sources: &["wasm_runtime", "webgpu_runtime", "tvmjs_support"], cpu_s: 14 },
];

fn add_compilation(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let model = parameters.model.as_str();
    let directory = format!("${{step:{model}/tree}}");
    let (compile, weights) = (format!("{model}.compile"), format!("{model}.weights"));
    let batch = parameters.max_batch_size.to_string();
    draft
        .run("compile", "compile the model for WebGPU")
        .directory(&directory)
        .env("PYTHONPATH", "${step:ffi/python}")
        .after("ffi", "symbols.json")
        .command(&[PYTHON, "-m", &compile, "--config", "config.json", "--max-batch-size", &batch, "--out", "${out}"])
        .makes(&["devc.o", "lib0.o", "metadata.json"], cost(4, 512, 1))?;
    draft
        .run("weights", "write seeded weights and a float64 reference of the logits")
        .directory(&directory)
        .command(&[PYTHON, "-m", &weights, "--config", "config.json", "--out", "${out}/weights"])
        .makes(&["weights"], cost(1, 256, 2))
}

fn add_results(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let model = parameters.model.as_str();
    let library = format!("{model}-webgpu.wasm");
    let imports = format!("${{step:{model}/tree/3rdparty/overlay/link/imports.js}}");
    let objects = [
        "${step:objects-runtime/wasm_runtime.o}",
        "${step:objects-runtime/webgpu_runtime.o}",
        "${step:objects-runtime/tvmjs_support.o}",
        "${step:objects-ffi/ffi_pack.o}",
        "${step:objects-vm/vm_pack.o}",
        "${step:compile/lib0.o}",
        "${step:compile/devc.o}",
    ];
    parts::link(draft, "link", &library, &imports, &objects)?;
    parts::browser_module(draft, "${step:patched/tree}/tvm/web")?;
    let gated = LibraryDraft {
        settings: [(Name::constant("max_batch_size"), u64::from(parameters.max_batch_size.get()))].into(),
        tensor_cache: Some("${step:weights/weights}/tensor-cache.json".to_owned()),
        ..LibraryDraft::default()
    };
    draft.deliver(&[
        Delivery::library(format!("${{step:link/{library}}}"), library, gated),
        Delivery::browser_module("${step:browser/tvmjs.cjs}", "tvmjs.cjs"),
        Delivery::uncompressed("${step:weights/weights}", "weights", "weights"),
    ])
}
