//! Recipe `mlc-webgpu`: WebGPU model libraries compiled by MLC-LLM, and the browser module that runs
//! them.
//!
//! Compiler, `mlc_llm`'s passes and the browser's runtime must be of one pair; the pins choose where
//! each of them comes from, and this file turns the choice into steps. None of upstream's own build
//! scripts is run: their flags stand here.

mod compiler;
mod runtime;

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::draft::{Delivery, Draft, LibraryDraft, cost};
use super::parts::{self, PYTHON};
use crate::pins::{Name, RelativePath};
use crate::plan::PlanError;

/// `[recipe.mlc-webgpu]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Where the sources of the browser's runtime come from.
    pub runtime: Runtime,
    /// Where the Python package `mlc_llm` comes from.
    pub mlc_llm: MlcLlm,
    /// Which tvm-ffi library the compiler loads.
    pub tvm_ffi: TvmFfi,
    /// Which WASI adapter the browser module holds.
    pub adapter: Adapter,
    /// The `[package.<name>]` of `@mlc-ai/web-llm`. When given, a copy of its bundle is delivered in
    /// which the TVM module is ours.
    pub web_llm: Option<Name>,
    /// `[recipe.mlc-webgpu.models.<name>]`: what is compiled.
    pub models: BTreeMap<Name, Model>,
}

/// Where the sources of the browser's runtime come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Runtime {
    /// From git, compiled to LLVM bitcode as upstream's Makefiles do it; `mlc_llm compile` links it.
    Git {
        /// The `[git.<name>]` of MLC-LLM, in which TVM stands at `3rdparty/tvm`.
        mlc_llm: Name,
        /// The `[git.<name>]` of TVM. Patches to TVM name it as their target.
        tvm: Name,
    },
    /// From the wheels `[package.apache-tvm]` and `[package.apache-tvm-ffi]`, compiled to objects.
    /// `mlc_llm` must be able to write objects to a `.tar`, and the library is linked here.
    Wheel {
        /// The `[file.<name>]` that lists what a page provides, as an Emscripten JavaScript library.
        /// What the wheels' sources lack, patches to `apache-tvm` add.
        imports: Name,
    },
}

/// Where the Python package `mlc_llm` comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MlcLlm {
    /// The wheel of this name in `[python.wheels]`.
    Wheel(Name),
    /// The directory `python` of this `[git.<name>]`, without its native library.
    Source(Name),
}

/// Which tvm-ffi library the compiler loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TvmFfi {
    /// The one in the Python requirements.
    AsRequired,
    /// One built from TVM's own submodule, put before the one in the requirements. Needs the runtime
    /// from git.
    Native(NativeFfi),
}

/// A tvm-ffi package that is built from source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeFfi {
    /// The version that it is given, and must say that it has.
    pub version: String,
    /// Symbols that its library must export.
    pub exports: Vec<String>,
}

/// Which WASI adapter the browser module holds: the functions that a library imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adapter {
    /// Emscripten's, linked from the same runtime as the libraries.
    Generated,
    /// This `[file.<name>]`.
    Own(Name),
}

/// One model to compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The `[file.<name>]` of its `mlc-chat-config.json`. Weights are neither needed nor touched.
    pub config: Name,
    /// MLC's name of the quantization of its weights.
    pub quantization: String,
    /// The most sequences that the library works on at a time: the leading dimension of its caches
    /// and work buffers.
    pub max_batch_size: NonZeroU16,
    /// Settings of the configuration that must have these values, such as `context_window_size`.
    #[serde(default)]
    pub settings: BTreeMap<Name, u32>,
    /// The library's path in the destination; a name that ends in `.wasm`.
    pub library: RelativePath,
}

#[cfg(test)]
mod tests;

const SETTINGS: &str = include_str!("mlc_webgpu/settings.py");
const SUBSTITUTE: &str = include_str!("mlc_webgpu/substitute.mjs");

pub(super) fn add_steps(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    check(draft, parameters)?;
    parts::python(draft)?;
    let tvm = runtime::add_sources(draft, &parameters.runtime)?;
    let compiler = compiler::add(draft, parameters, tvm)?;
    parts::emscripten(draft)?;
    let objects = runtime::add_objects(draft, &parameters.runtime, tvm)?;
    for (name, model) in &parameters.models {
        let config = check_settings(draft, name, model)?;
        compiler.compile(draft, &parameters.runtime, name, model, &config, &objects)?;
    }
    runtime::add_browser_module(draft, &parameters.adapter, tvm, &objects)?;
    let mut deliveries = vec![Delivery::browser_module("${step:browser/tvmjs.cjs}", "tvmjs.cjs")];
    for (name, model) in &parameters.models {
        let library = model.library.as_str();
        let from = format!("${{step:link-{name}/{}}}", file_name(library));
        deliveries.push(Delivery::library(from, library.to_owned(), gated(name, model)));
    }
    if let Some(web_llm) = &parameters.web_llm {
        add_engine(draft, web_llm.as_str())?;
        deliveries.push(Delivery::compressed("${step:engine/web-llm.js}", "web-llm.js", "engine"));
    }
    draft.deliver(&deliveries)
}

/// What a model's library must say of itself: what was asked for, and for the rest what its
/// configuration says.
fn gated(name: &Name, model: &Model) -> LibraryDraft {
    let mut settings: BTreeMap<Name, u64> =
        model.settings.iter().map(|(key, number)| (key.clone(), u64::from(*number))).collect();
    settings.insert(Name::constant("max_batch_size"), u64::from(model.max_batch_size.get()));
    LibraryDraft {
        settings,
        quantization: Some(model.quantization.clone()),
        config: Some(format!("${{step:config-{name}/mlc-chat-config.json}}")),
        tensor_cache: None,
    }
}

/// The last part of a path in the destination.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What the types of the parameters cannot say.
fn check(draft: &Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let fault = |key: &str, reason: String| Err(draft.bad_parameter(key, reason));
    if parameters.models.is_empty() {
        return fault("models", "there is no model to compile".into());
    }
    let native = matches!(parameters.tvm_ffi, TvmFfi::Native(_));
    if native && matches!(parameters.runtime, Runtime::Wheel { .. }) {
        return fault("tvm_ffi", "`native` is built from TVM's submodule, and the runtime comes from wheels".into());
    }
    let mut libraries: BTreeMap<&str, &Name> = BTreeMap::new();
    for (name, model) in &parameters.models {
        let library = model.library.as_str();
        if std::path::Path::new(library).extension().is_none_or(|suffix| suffix != "wasm") {
            return fault(&format!("models.{name}.library"), format!("`{library}` does not end in .wasm"));
        }
        if let Some(other) = libraries.insert(library, name) {
            return fault(&format!("models.{name}.library"), format!("{other} is delivered as `{library}` already"));
        }
    }
    Ok(())
}

/// The step that holds the model's configuration against its settings, and the configuration's template.
fn check_settings(draft: &mut Draft<'_>, name: &Name, model: &Model) -> Result<String, PlanError> {
    let config = draft.file(model.config.as_str())?;
    let settings: Vec<String> = model.settings.iter().map(|(key, number)| format!("{key}={number}")).collect();
    let mut words = vec![PYTHON, "-c", SETTINGS, &config];
    words.extend(settings.iter().map(String::as_str));
    let copy = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])";
    let id = format!("config-{name}");
    draft
        .run(&id, "hold the model's configuration against its settings")
        .command(&words)
        .command(&[PYTHON, "-c", copy, &config, "${out}/mlc-chat-config.json"])
        .makes(&["mlc-chat-config.json"], cost(1, 64, 1))?;
    Ok(format!("${{step:{id}/mlc-chat-config.json}}"))
}

/// Steps that put our browser module into the bundle of `WebLLM`.
fn add_engine(draft: &mut Draft<'_>, package: &str) -> Result<(), PlanError> {
    draft.package(package, 1, &["lib/index.js"], &[])?;
    let bundle = format!("${{step:{package}/tree/lib/index.js}}");
    // Its dollar signs are no references.
    let substitute = SUBSTITUTE.replace('$', "$$");
    draft
        .run("engine", "put the browser module into WebLLM's bundle")
        .command(&[
            "${tool:node}",
            "--input-type=module",
            "--eval",
            &substitute,
            "--",
            &bundle,
            "${step:browser/tvmjs.cjs}",
            "${out}/web-llm.js",
        ])
        .makes(&["web-llm.js"], cost(1, 256, 8))
}
