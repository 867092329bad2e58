//! Recipe `tvm-webgpu`: a WebGPU model library from package registries alone.
//!
//! The apache-tvm and apache-tvm-ffi wheels are the compiler, and also the sources of the browser's
//! runtime; a git source brings the model's definition, the files that the wheels lack and the WASI
//! adapter. Compiler and runtime are of one version by construction.

use serde::{Deserialize, Serialize};

use super::draft::{Draft, cost};
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
    pub max_batch_size: u16,
    /// Version that the tvm-ffi library must say it has, as `major.minor.patch`.
    pub ffi_version: String,
    /// Symbols that the native tvm-ffi library must export.
    pub ffi_exports: Vec<String>,
}

/// Where the sources of TVM lie in the patched tree.
const TVM: &str = "${step:patched/tree}/tvm";

pub(super) fn add_steps(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let model = parameters.model.as_str();
    add_sources(draft, model)?;
    add_native_ffi(draft, parameters)?;
    add_runtime_objects(draft)?;
    add_compilation(draft, parameters)?;
    add_results(draft, model)
}

fn add_sources(draft: &mut Draft<'_>, model: &str) -> Result<(), PlanError> {
    draft.wheels("wheels", cost(8, 128, 120))?;
    draft.package("apache-tvm", 0, &["tvm/include/", "tvm/src/runtime/", "tvm/web/"], &[])?;
    // The library in the wheel gives way to the one built here.
    draft.package("apache-tvm-ffi", 0, &[], &["tvm_ffi/lib/libtvm_ffi.so"])?;
    draft.package("esbuild", 1, &["bin/"], &[])?;
    draft.git(model, cost(1, 64, 1))?;
    let overlay = format!("${{step:{model}/tree/3rdparty/overlay/tvm}}");
    let adapter = format!("${{step:{model}/tree/3rdparty/adapter/tvmjs_runtime_wasi.js}}");
    let copies = [
        ("${step:apache-tvm/tree/tvm/include}", "tree/tvm/include"),
        ("${step:apache-tvm/tree/tvm/src/runtime}", "tree/tvm/src/runtime"),
        ("${step:apache-tvm/tree/tvm/web/emcc}", "tree/tvm/web/emcc"),
        ("${step:apache-tvm/tree/tvm/web/src}", "tree/tvm/web/src"),
        ("${step:apache-tvm/tree/tvm/web/tsconfig.json}", "tree/tvm/web/tsconfig.json"),
        ("${step:apache-tvm-ffi/tree/tvm_ffi/include}", "tree/tvm/3rdparty/tvm-ffi/include"),
        ("${step:apache-tvm-ffi/tree/tvm_ffi/src}", "tree/tvm/3rdparty/tvm-ffi/src"),
        (overlay.as_str(), "tree/tvm"),
        (adapter.as_str(), "tree/tvm/web/src/tvmjs_runtime_wasi.js"),
    ];
    draft.collect("sources", "lay the wheels' sources and the overlay together", &copies, cost(1, 64, 8))?;
    draft.patch("patched", "apache-tvm", "${step:sources/tree}", cost(1, 64, 8))
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

fn add_runtime_objects(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    // A compiler that cannot compile nothing is found out before anything waits for it, and whatever
    // it keeps in its cache is there before two of it run at a time.
    draft
        .run("emscripten", "try the toolchain and warm its cache")
        .command(&["${tool:emcc}", "-x", "c++", "/dev/null", "-c", "-o", "${out}/empty.o"])
        .makes(&["empty.o"], cost(1, 128, 1))?;
    let groups: [(&str, &[&str], u32); 3] = [
        ("objects-ffi", &["ffi_pack"], 12),
        ("objects-vm", &["vm_pack"], 12),
        ("objects-runtime", &["wasm_runtime", "webgpu_runtime", "tvmjs_support"], 14),
    ];
    for (id, sources, cpu_s) in groups {
        let mut step = draft
            .run(id, "compile a part of the browser's runtime")
            // Relative include paths from the tree's root: macros such as __PRETTY_FUNCTION__ keep the
            // path that the compiler was given, and prefix maps do not reach them.
            .directory(TVM)
            .after("emscripten", "empty.o");
        for source in sources {
            let (from, to) = (format!("web/emcc/{source}.cc"), format!("${{out}}/{source}.o"));
            // -Os compiles in two thirds of -O2's time, and the kernels run on the GPU.
            step = step.command(&[
                "${tool:emcc}",
                "-Os",
                "-std=c++17",
                "-Wno-ignored-attributes",
                "-ffile-prefix-map=${step:patched/tree}=.",
                "-I.",
                "-Iinclude",
                "-I3rdparty/tvm-ffi/include",
                "-c",
                &from,
                "-o",
                &to,
            ]);
        }
        let outputs: Vec<String> = sources.iter().map(|source| format!("{source}.o")).collect();
        step.makes(&outputs.iter().map(String::as_str).collect::<Vec<_>>(), cost(cpu_s, 384, 8))?;
    }
    Ok(())
}

fn add_compilation(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    draft
        .run("python", "make the Python environment")
        // Otherwise uv notes the time stamps of the wheels that it installed from.
        .env("UV_NO_INSTALLER_METADATA", "1")
        .command(&[
            "${tool:uv}",
            "venv",
            "--quiet",
            "--no-config",
            "--no-cache",
            "--relocatable",
            "--python",
            "${tool:python}",
            "${out}/venv",
        ])
        .command(&[
            "${tool:uv}",
            "pip",
            "install",
            "--quiet",
            "--no-config",
            "--no-cache",
            "--offline",
            "--link-mode",
            "copy",
            "--python",
            "${out}/venv/bin/python",
            "--require-hashes",
            "--no-deps",
            "--no-index",
            "--find-links",
            "${step:wheels/wheels}",
            "-r",
            "${step:wheels/requirements.txt}",
        ])
        .makes(&["venv"], cost(3, 128, 400))?;
    let model = parameters.model.as_str();
    let directory = format!("${{step:{model}/tree}}");
    let (compile, weights) = (format!("{model}.compile"), format!("{model}.weights"));
    let batch = parameters.max_batch_size.to_string();
    let python = "${step:python/venv}/bin/python";
    draft
        .run("compile", "compile the model for WebGPU")
        .directory(&directory)
        .env("PYTHONPATH", "${step:ffi/python}")
        .after("ffi", "symbols.json")
        .command(&[python, "-m", &compile, "--config", "config.json", "--max-batch-size", &batch, "--out", "${out}"])
        .makes(&["devc.o", "lib0.o", "metadata.json"], cost(4, 512, 1))?;
    draft
        .run("weights", "write seeded weights and a float64 reference of the logits")
        .directory(&directory)
        .command(&[python, "-m", &weights, "--config", "config.json", "--out", "${out}/weights"])
        .makes(&["weights"], cost(1, 256, 2))
}

fn add_results(draft: &mut Draft<'_>, model: &str) -> Result<(), PlanError> {
    let library = format!("{model}-webgpu.wasm");
    let imports = format!("${{step:{model}/tree/3rdparty/overlay/link/imports.js}}");
    let to = format!("${{out}}/{library}");
    draft
        .run("link", "link the model library")
        .command(&[
            "${tool:emcc}",
            "-O1",
            "-Wl,--strip-all",
            "--no-entry",
            "-sSTANDALONE_WASM=1",
            "-sWASM_BIGINT=1",
            "-sALLOW_MEMORY_GROWTH=1",
            // An import that the page does not provide must fail here, not at the visitor.
            "-sERROR_ON_UNDEFINED_SYMBOLS=1",
            "--js-library",
            &imports,
            "${step:objects-runtime/wasm_runtime.o}",
            "${step:objects-runtime/webgpu_runtime.o}",
            "${step:objects-runtime/tvmjs_support.o}",
            "${step:objects-ffi/ffi_pack.o}",
            "${step:objects-vm/vm_pack.o}",
            "${step:compile/lib0.o}",
            "${step:compile/devc.o}",
            "-o",
            &to,
        ])
        .makes(&[&library], cost(2, 256, 8))?;
    // What only Node has stays out; the browser never gets to those imports.
    let bundle = [
        "${step:esbuild/tree}/bin/esbuild",
        "src/index.ts",
        "--bundle",
        "--format=cjs",
        "--platform=browser",
        "--log-level=warning",
        "--external:fs",
        "--external:path",
        "--external:ws",
        "--external:perf_hooks",
        "--external:crypto",
        "--external:node:*",
        "--outfile=${out}/tvmjs.cjs",
    ];
    draft
        .run("browser", "bundle the browser module")
        .directory("${step:patched/tree}/tvm/web")
        .command(&bundle)
        .makes(&["tvmjs.cjs"], cost(1, 128, 1))?;
    draft.deliver(&[
        (&format!("${{step:link/{library}}}"), library.clone(), "model-library", true),
        ("${step:browser/tvmjs.cjs}", "tvmjs.cjs".to_owned(), "browser-module", true),
        ("${step:weights/weights}", "weights".to_owned(), "weights", false),
    ])
}
