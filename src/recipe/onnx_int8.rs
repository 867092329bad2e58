//! Recipe `onnx-int8`: a small language model as an ONNX file with 8-bit weights, for onnxruntime in a
//! browser, with its tokenizer and a contract of how it is made to speak.
//!
//! The steps: a Python environment, the model's files by digest, export by `torch.onnx.export`,
//! quantization, masks computed instead of stored, parity with the framework, what the model says
//! natively. What is known of these tools, with the versions of `pins/tinystories-1m.toml`:
//!
//! - `dynamo=False` needs no `onnxscript`, and its file is the smaller one: the other exporter's has
//!   36 MiB in 8 bits.
//! - `create_causal_mask` of transformers 5 cannot be traced. Without it GPT-Neo stays causal, since
//!   its attention has a triangle of its own; other architectures do not. Hence the list
//!   [`Architecture`], and a probe in each build.
//! - `quantize_dynamic` quantizes the embedding's `Gather` too, since onnxruntime 1.32 at the latest.
//!   That is why TinyStories-1M comes to 15 MB: without it there are 24.5 MiB.
//! - The first dimension of the logits is symbolic, not 1.
//! - More than half of that file are two masks of 2048 × 2048 bytes, which are computed from their row and
//!   column ([`Masks::Computed`]): 7 MB.
//! - Activations in 8 bits ([`Activations::Dynamic`]) make two runtimes speak differently: a last bit that
//!   differs becomes a whole step of 8 bits, in one token of five. So do onnxruntime's optimizations
//!   beyond `basic`.
//! - The whole model runs for each token, without a cache of keys and values.

mod generation;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::draft::{Delivery, Draft, cost};
use super::parts::{self, PYTHON};
use crate::pins::{Name, RelativePath};
use crate::plan::PlanError;
use crate::step::CheckGraph;

pub use generation::Generation;

/// `[recipe.onnx-int8]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The model's architecture, as its configuration names it.
    pub architecture: Architecture,
    /// The `[file.<name>]` of `config.json`.
    pub config: Name,
    /// The `[file.<name>]` of `pytorch_model.bin` or `model.safetensors`.
    pub weights: Name,
    /// The `[file.<name>]`s of the tokenizer; one of them is `tokenizer.json`. All are delivered.
    pub tokenizer: Vec<Name>,
    /// The version of ONNX's default operators.
    pub opset: u16,
    /// What becomes of masks that are stored element by element.
    pub masks: Masks,
    /// The `[package.<name>]` of `onnxruntime-web`. When given, it is delivered in `runtime`.
    pub web_runtime: Option<Name>,
    /// The model's path in the destination; a name that ends in `.onnx`.
    pub model: RelativePath,
    /// How large the Python environment is.
    pub environment: Environment,
    /// `[recipe.onnx-int8.quantization]`.
    pub quantization: Quantization,
    /// `[recipe.onnx-int8.parity]`.
    pub parity: Parity,
    /// `[recipe.onnx-int8.graph]`.
    pub graph: Graph,
    /// `[recipe.onnx-int8.generation]`.
    pub generation: Generation,
}

/// About how much space the Python environment takes: torch of `PyPI` brings CUDA's libraries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Its wheels, in MiB.
    pub wheels_mib: u32,
    /// What is installed of them, in MiB.
    pub installed_mib: u32,
}

/// Architectures that stay causal without transformers' mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// GPT-Neo, whose layers have triangular buffers, some of them with a window.
    GptNeo,
}

/// What becomes of masks that are stored element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Masks {
    /// They stay.
    Stored,
    /// Nodes compute them, and it is verified that no bit of the logits changes. A model without such
    /// masks is an error.
    Computed,
}

/// `[recipe.onnx-int8.quantization]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantization {
    /// Operators whose weights are quantized.
    pub operators: BTreeSet<Operator>,
    /// A scale for each output of a matrix, instead of one for the matrix.
    pub per_channel: bool,
    /// How activations are calculated with.
    pub activations: Activations,
}

/// An operator with weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operator {
    /// Products of matrices.
    MatMul,
    /// The embedding.
    Gather,
}

/// How activations are calculated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activations {
    /// As floats. Runtimes agree to the last few bits.
    Float,
    /// In 8 bits with scales found while the model runs: `quantize_dynamic`. Runtimes agree less well.
    Dynamic,
}

/// `[recipe.onnx-int8.parity]`: how near the logits must be to the framework's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parity {
    /// Numbers of tokens to compare with; beyond a local window too.
    pub lengths: Vec<u16>,
    /// The largest difference that a logit may have before quantization.
    pub float_difference: f64,
    /// The least cosine between centred logits of a token before and after quantization.
    pub cosine: f64,
}

/// `[recipe.onnx-int8.graph]`: what the delivered graph must be, beyond its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The size of the vocabulary: the last dimension of the logits.
    pub vocabulary: u32,
    /// The largest file, in bytes.
    pub size_limit: u64,
    /// How often operators must occur. A version of the exporter or of the quantization that changes
    /// layers shows here.
    #[serde(default)]
    pub operators: BTreeMap<String, u32>,
}

#[cfg(test)]
mod tests;

const IMPORTS: &str = include_str!("onnx_int8/imports.py");
const FACTS: &str = include_str!("onnx_int8/facts.py");
const EXPORT: &str = include_str!("onnx_int8/export.py");
const QUANTIZE: &str = include_str!("onnx_int8/quantize.py");
const COMPACT: &str = include_str!("onnx_int8/compact.py");
const PARITY: &str = include_str!("onnx_int8/parity.py");
const GENERATE: &str = include_str!("onnx_int8/generate.py");
const BROWSER: &str = include_str!("onnx_int8/generate.mjs");

/// Lengths for the probe of causality, and for the comparison of masks.
const PROBED: &str = "[2, 17, 300]";

pub(super) fn add_steps(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    check(draft, parameters)?;
    parts::python_of_size(draft, parameters.environment.wheels_mib, parameters.environment.installed_mib)?;
    let files = add_model(draft, parameters)?;
    add_export(draft, parameters)?;
    let model = add_quantization(draft, parameters)?;
    add_graph(draft, parameters, model)?;
    add_parity(draft, parameters, model)?;
    add_generation(draft, parameters, model)?;
    add_results(draft, parameters, model, &files)
}

/// What the types of the parameters cannot say.
fn check(draft: &Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let fault = |key: &str, reason: String| Err(draft.bad_parameter(key, reason));
    let model = parameters.model.as_str();
    if std::path::Path::new(model).extension().is_none_or(|suffix| suffix != "onnx") {
        return fault("model", format!("`{model}` does not end in .onnx"));
    }
    if parameters.quantization.operators.is_empty() {
        return fault("quantization.operators", "there is no operator to quantize".into());
    }
    if parameters.parity.lengths.is_empty() || parameters.parity.lengths.contains(&0) {
        return fault("parity.lengths", "lengths of at least 1 are wanted".into());
    }
    match parameters.generation.flaw() {
        Some((key, reason)) => fault(&format!("generation.{key}"), reason.into()),
        None => Ok(()),
    }
}

/// A tokenizer's file: its template and its name.
type Files = Vec<(String, String)>;

/// Step `model` with all files of the model, `facts` with what they say, and `imports`.
fn add_model(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<Files, PlanError> {
    let config = draft.file(parameters.config.as_str())?;
    let weights = draft.file(parameters.weights.as_str())?;
    let mut files = Files::new();
    for name in &parameters.tokenizer {
        let file = draft.file(name.as_str())?;
        files.push((file.clone(), file_name(&file)));
    }
    if file_name(&config) != "config.json" {
        return Err(draft.bad_parameter("config", format!("`{}` is not config.json", file_name(&config))));
    }
    if !files.iter().any(|(_, name)| name == "tokenizer.json") {
        return Err(draft.bad_parameter("tokenizer", "none of the files is tokenizer.json".into()));
    }
    let weights_name = file_name(&weights);
    if !["pytorch_model.bin", "model.safetensors"].contains(&weights_name.as_str()) {
        let reason = format!("`{weights_name}` is neither pytorch_model.bin nor model.safetensors");
        return Err(draft.bad_parameter("weights", reason));
    }
    let all = [(config, "config.json".to_owned()), (weights, weights_name.clone())];
    let copies: Vec<_> = all.iter().chain(&files).map(|(from, name)| (from, format!("model/{name}"))).collect();
    let copies: Vec<_> = copies.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    draft.collect("model", "lay the model's files together", &copies, cost(1, 64, 20))?;
    let architecture = match parameters.architecture {
        Architecture::GptNeo => "gpt_neo",
    };
    let vocabulary = parameters.graph.vocabulary.to_string();
    draft
        .run("facts", "hold the model, its tokenizer and the pins against each other")
        .command(&[PYTHON, "-c", FACTS, MODEL, architecture, &vocabulary, &weights_name, "${out}/facts.json"])
        .makes(&["facts.json"], cost(1, 64, 1))?;
    draft
        .run("imports", "import what the build needs")
        .command(&[
            PYTHON,
            "-c",
            IMPORTS,
            "${out}/versions.json",
            "torch",
            "transformers",
            "onnx",
            "onnxruntime",
            "tokenizers",
        ])
        .makes(&["versions.json"], cost(8, 512, 1))?;
    Ok(files)
}

const MODEL: &str = "${step:model/model}";

fn add_export(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<(), PlanError> {
    let opset = parameters.opset.to_string();
    draft
        .run("export", "export the model to ONNX and probe its causality")
        .after("imports", "versions.json")
        .after("facts", "facts.json")
        .command(&[PYTHON, "-c", EXPORT, MODEL, &opset, PROBED, "${out}/model.onnx", "${out}/export.json"])
        .makes(&["export.json", "model.onnx"], cost(14, 1024, 40))
}

/// Gives the template of the finished model.
fn add_quantization(draft: &mut Draft<'_>, parameters: &Parameters) -> Result<&'static str, PlanError> {
    let settings = json(draft, &parameters.quantization)?;
    draft
        .run("quantize", "quantize the weights to 8 bits")
        .command(&[PYTHON, "-c", QUANTIZE, "${step:export/model.onnx}", &settings, "${out}/model.onnx"])
        .makes(&["model.onnx"], cost(2, 512, 16))?;
    if parameters.masks == Masks::Stored {
        return Ok("${step:quantize/model.onnx}");
    }
    let (from, to) = ("${step:quantize/model.onnx}", "${out}/model.onnx");
    draft
        .run("masks", "compute the masks instead of storing them, and compare every bit of the logits")
        .command(&[PYTHON, "-c", COMPACT, from, PROBED, to, "${out}/masks.json"])
        .makes(&["masks.json", "model.onnx"], cost(4, 1024, 8))?;
    Ok("${step:masks/model.onnx}")
}

fn add_parity(draft: &mut Draft<'_>, parameters: &Parameters, model: &str) -> Result<(), PlanError> {
    let parity = &parameters.parity;
    let lengths = json(draft, &parity.lengths)?;
    let (difference, cosine) = (parity.float_difference.to_string(), parity.cosine.to_string());
    let exported = "${step:export/model.onnx}";
    draft
        .run("parity", "compare the logits with the framework's own")
        .after("graph", "graph.json")
        .command(&[PYTHON, "-c", PARITY, MODEL, exported, model, &lengths, &difference, &cosine, "${out}/parity.json"])
        .makes(&["parity.json"], cost(14, 2048, 1))
}

fn add_generation(draft: &mut Draft<'_>, parameters: &Parameters, model: &str) -> Result<(), PlanError> {
    let contract = json(draft, &parameters.generation)?;
    let tokenizer = format!("{MODEL}/tokenizer.json");
    draft
        .run("generation", "have the model speak as the contract says")
        .after("parity", "parity.json")
        .command(&[PYTHON, "-c", GENERATE, &contract, model, &tokenizer, "${out}/generation.json"])
        .makes(&["generation.json"], cost(5, 256, 1))?;
    let write = "import sys; open(sys.argv[1], 'w', encoding='utf-8', newline='').write(sys.argv[2])";
    let module = BROWSER.replace('$', "$$");
    draft
        .run("browser", "write the browser module")
        .command(&[PYTHON, "-c", write, "${out}/generate.mjs", &module])
        .makes(&["generate.mjs"], cost(1, 16, 1))
}

fn add_results(draft: &mut Draft<'_>, parameters: &Parameters, model: &str, files: &Files) -> Result<(), PlanError> {
    let mut artifacts = vec![
        (model.to_owned(), parameters.model.to_string(), "model"),
        ("${step:generation/generation.json}".to_owned(), "generation.json".to_owned(), "generation"),
        ("${step:browser/generate.mjs}".to_owned(), "generate.mjs".to_owned(), "generator"),
    ];
    artifacts.extend(files.iter().map(|(from, name)| (from.clone(), format!("tokenizer/{name}"), "tokenizer")));
    if let Some(runtime) = &parameters.web_runtime {
        draft.package(runtime.as_str(), 1, &RUNTIME_FILES, &[])?;
        artifacts.extend(RUNTIME_FILES.iter().map(|file| {
            let from = format!("${{step:{runtime}/tree/{file}}}");
            (from, format!("runtime/{}", file_name(file)), "runtime")
        }));
    }
    let deliveries: Vec<_> = artifacts.iter().map(|(from, to, role)| Delivery::compressed(from, to, role)).collect();
    draft.deliver(&deliveries)
}

/// What a page needs of `onnxruntime-web` to run on the processor.
const RUNTIME_FILES: [&str; 3] =
    ["dist/ort.wasm.min.mjs", "dist/ort-wasm-simd-threaded.mjs", "dist/ort-wasm-simd-threaded.wasm"];

/// Step `graph`: nothing of a model that a page cannot feed is packaged.
fn add_graph(draft: &mut Draft<'_>, parameters: &Parameters, model: &str) -> Result<(), PlanError> {
    let graph = &parameters.graph;
    let check = CheckGraph {
        model: draft.template(model)?,
        input: "input_ids".to_owned(),
        output: "logits".to_owned(),
        vocabulary: graph.vocabulary,
        opset: parameters.opset,
        operators: graph.operators.clone(),
        size_limit: graph.size_limit,
    };
    draft.check_graph("graph", check)
}

/// The last part of a path or of a template of one.
fn file_name(path: &str) -> String {
    let path = path.trim_end_matches('}');
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// `value` as an argument for a script.
fn json(draft: &Draft<'_>, value: &impl Serialize) -> Result<String, PlanError> {
    let text = serde_json::to_string(value).map_err(|error| draft.bad_parameter("parameters", error.to_string()))?;
    Ok(text.replace('$', "$$"))
}
