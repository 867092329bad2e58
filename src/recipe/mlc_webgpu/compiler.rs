//! The compiler: `mlc_llm`, the tvm-ffi library it loads, and what it makes of a model.

use super::runtime::Objects;
use super::{MlcLlm, Model, NativeFfi, Parameters, Runtime, TvmFfi, file_name};
use crate::pins::Name;
use crate::plan::PlanError;
use crate::recipe::draft::{Draft, cost};
use crate::recipe::parts::{self, FROM_WHEELS, PYTHON};

const LAUNCH: &str = include_str!("launch.py");
const IMPORT: &str = include_str!("import.py");

/// How `mlc_llm` is run.
pub(super) struct Compiler {
    /// `PYTHONPATH`.
    path: String,
    /// Whether `mlc_llm` stands there without its native library.
    from_source: bool,
    /// Whether the tvm-ffi library was built here, and so checked.
    native: bool,
}

/// Adds the steps that make the compiler ready. `tvm` is the root of TVM's sources.
pub(super) fn add(draft: &mut Draft<'_>, parameters: &Parameters, tvm: &str) -> Result<Compiler, PlanError> {
    let mut path = add_mlc_llm(draft, parameters)?;
    let native = match &parameters.tvm_ffi {
        TvmFfi::AsRequired => false,
        TvmFfi::Native(ffi) => {
            add_native_ffi(draft, ffi, tvm)?;
            path = format!("${{step:tvm-ffi-native/python}}:{path}");
            true
        }
    };
    Ok(Compiler { path, from_source: matches!(parameters.mlc_llm, MlcLlm::Source(_)), native })
}

/// Gives the directory of the patched package.
fn add_mlc_llm(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<String, PlanError> {
    let patch = cost(2, 64, 40);
    match &parameters.mlc_llm {
        MlcLlm::Source(source) => {
            let fetched = matches!(&parameters.runtime, Runtime::Git { mlc_llm, .. } if mlc_llm == source);
            if !fetched {
                draft.git(source.as_str(), cost(2, 128, 40))?;
            }
            let python = format!("${{step:{source}/tree}}");
            draft.patch("mlc-llm-patched", source.as_str(), &python, patch)?;
            Ok("${step:mlc-llm-patched/tree}/python".to_owned())
        }
        MlcLlm::Wheel(wheel) => {
            let version = draft.wheel_version(wheel.as_str())?;
            let exact = format!("{wheel}=={version}");
            let mut words =
                vec!["${tool:uv}", "pip", "install", "--quiet", "--python", PYTHON, "--target", "${out}/tree"];
            words.extend(FROM_WHEELS);
            words.push(&exact);
            draft
                .run("mlc-llm-wheel", "install mlc_llm where it can be patched")
                .env("UV_NO_INSTALLER_METADATA", "1")
                .command(&words)
                .makes(&["tree"], cost(1, 64, 40))?;
            draft.patch("mlc-llm-patched", wheel.as_str(), "${step:mlc-llm-wheel/tree}", patch)?;
            Ok("${step:mlc-llm-patched/tree}".to_owned())
        }
    }
}

/// The package is built from a copy, since building writes beside the sources.
fn add_native_ffi(draft: &mut Draft<'_>, ffi: &NativeFfi, tvm: &str) -> Result<(), PlanError> {
    let source = format!("{tvm}/3rdparty/tvm-ffi");
    let copy = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], symlinks=True)";
    let exact = format!("apache-tvm-ffi=={}", ffi.version);
    draft
        .run("tvm-ffi-native", "build the tvm-ffi package, install it and import the compiler with it")
        .env("UV_NO_INSTALLER_METADATA", "1")
        // The checkout has no tags, from which the version would be made.
        .env("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_APACHE_TVM_FFI", &ffi.version)
        .env("CXX", "${tool:cxx}")
        .env("CXXFLAGS", "-ffile-prefix-map=${tmp}/tvm-ffi=tvm-ffi")
        .env("CMAKE_GENERATOR", "Ninja")
        .env("SKBUILD_CMAKE_DEFINE", "CMAKE_MAKE_PROGRAM=${tool:ninja}")
        .command(&[PYTHON, "-c", copy, &source, "${tmp}/tvm-ffi"])
        // Named so that it stands on PATH for the build, and its version in the log.
        .command(&["${tool:cmake}", "--version"])
        .command(&[
            "${tool:uv}",
            "build",
            "--wheel",
            "--no-build-isolation",
            "--no-config",
            "--no-cache",
            "--offline",
            "--python",
            PYTHON,
            "--out-dir",
            "${tmp}/wheel",
            "${tmp}/tvm-ffi",
        ])
        .command(&[
            "${tool:uv}",
            "pip",
            "install",
            "--quiet",
            "--no-config",
            "--no-cache",
            "--offline",
            "--no-deps",
            "--no-index",
            "--find-links",
            "${tmp}/wheel",
            "--python",
            PYTHON,
            "--target",
            "${out}/python",
            &exact,
        ])
        .command(&[PYTHON, "-c", IMPORT, "${out}/python", &ffi.version])
        .makes(&["python"], cost(60, 1024, 12))?;
    let suffix = if draft.is_macos() { "dylib" } else { "so" };
    let library = format!("${{step:tvm-ffi-native/python}}/tvm_ffi/lib/libtvm_ffi.{suffix}");
    draft.check_symbols("tvm-ffi-symbols", &library, &ffi.exports)
}

impl Compiler {
    /// Adds the steps from a configuration to the library `link-<name>/<file name>`.
    pub(super) fn compile(
        &self,
        draft: &mut Draft<'_>,
        runtime: &Runtime,
        name: &Name,
        model: &Model,
        config: &str,
        objects: &Objects,
    ) -> Result<(), PlanError> {
        let library = file_name(model.library.as_str());
        let overrides = format!("max_batch_size={}", model.max_batch_size);
        // In an empty directory: the compiler would take runtime bitcode that lies in its own.
        let (id, to) = match runtime {
            Runtime::Git { .. } => (format!("link-{name}"), format!("${{out}}/{library}")),
            Runtime::Wheel { .. } => (format!("compile-{name}"), "${tmp}/objects.tar".to_owned()),
        };
        let mut words = vec![PYTHON];
        words.extend(["-c", LAUNCH, "compile", config, "--quantization", &model.quantization, "--device", "webgpu"]);
        words.extend(["--overrides", &overrides, "-o", &to]);
        let pair = match runtime {
            Runtime::Git { .. } => None,
            Runtime::Wheel { .. } => Some(draft.package_version("apache-tvm")?),
        };
        let mut step = draft
            .run(&id, "compile the model for WebGPU")
            .env("PYTHONPATH", &self.path)
            // Without it a failure in C++ ends the process and gives no reason.
            .env("TVM_BACKTRACE", "1")
            .command(&words);
        if self.from_source {
            step = step.env("SKIP_LOADING_MLCLLM_SO", "1");
        }
        if let Some(version) = pair {
            step = step.env("RUNTIME_TVM", version);
        }
        if self.native {
            step = step.after("tvm-ffi-symbols", "symbols.json");
        }
        match (runtime, &objects.imports) {
            (Runtime::Wheel { .. }, Some(imports)) => {
                step.command(&[PYTHON, "-m", "tarfile", "-e", "${tmp}/objects.tar", "${out}"])
                    .makes(&["devc.o", "lib0.o"], cost(14, 448, 4))?;
                let model_objects = ["lib0.o", "devc.o"].map(|object| format!("${{step:{id}/{object}}}"));
                let objects: Vec<&str> = objects.runtime.iter().chain(&model_objects).map(String::as_str).collect();
                parts::link(draft, &format!("link-{name}"), library, imports, &objects)
            }
            _ => step
                .env("TVM_HOME", "${step:bitcode/tvm}")
                .env("TVM_SOURCE_DIR", "${step:bitcode/tvm}")
                .env("MLC_LLM_SOURCE_DIR", "${step:bitcode/mlc-llm}")
                // Named so that it stands on PATH, where the compiler looks for it.
                .env("EMCC", "${tool:emcc}")
                .env("EMCC_CFLAGS", "-sDEFAULT_TO_CXX=1")
                .makes(&[library], cost(78, 960, 8)),
        }
    }
}
