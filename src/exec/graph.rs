//! Looking into an ONNX model: is it what a page will feed, and no larger than a host takes?
//!
//! An exporter that another version of a framework sends another way ends well: with one input more,
//! with layers that were not quantized, with half of its data in a file beside it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::artifact::onnx::{self, Constant, Dimension, Model, OnnxError, ValueInfo};
use crate::error::{Class, Fault};
use crate::printable::{cut, escape_name};
use crate::step::CheckGraph;

/// The largest file that is read into memory, in bytes.
const LARGEST: u64 = 1 << 30;

/// How many of the largest constants are listed.
const LISTED: usize = 6;

/// A share of the file, in percent, from which constants that could be computed are worth a word.
const WORTH_A_WORD: u32 = 5;

/// What was found in a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphReport {
    /// Always 1.
    pub schema: u32,
    /// The file's size in bytes.
    pub size: u64,
    /// The program that wrote it.
    pub producer: String,
    /// The version of ONNX's own operators.
    pub opset: Option<u64>,
    /// What it is fed.
    pub inputs: Vec<String>,
    /// What it gives.
    pub outputs: Vec<String>,
    /// How often each operator occurs.
    pub operators: std::collections::BTreeMap<String, u32>,
    /// Those that calculate with, or make or unmake, 8 bits.
    pub quantized: std::collections::BTreeMap<String, u32>,
    /// The largest constants, largest first, with their share of the file in percent.
    pub largest: Vec<String>,
    /// What is no fault and yet not as it should be.
    pub notes: Vec<String>,
}

/// Why a model is not what it must be.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// It cannot be read.
    #[error("cannot read the model {path}")]
    Read {
        /// The model.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than anything that is read.
    #[error("the model {path} has {size} bytes, more than the {LARGEST} that are read")]
    TooLarge {
        /// The model.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// It is no ONNX, or damaged.
    #[error("the model {path} is damaged")]
    Damaged {
        /// The model.
        path: PathBuf,
        /// What is wrong.
        source: OnnxError,
    },
    /// It is something else than what is wanted.
    #[error("the model {path} is not what is wanted: {}{}", flaws[0], more(flaws))]
    Unfit {
        /// The model.
        path: PathBuf,
        /// What is wrong, one sentence each; at least one.
        flaws: Vec<String>,
        /// The largest constants.
        largest: Vec<String>,
    },
}

fn more(flaws: &[String]) -> String {
    match flaws.len() {
        0 | 1 => String::new(),
        2 => "; and 1 more flaw".to_owned(),
        flaws => format!("; and {} more flaws", flaws - 1),
    }
}

impl Fault for GraphError {
    fn class(&self) -> Class {
        Class::Artifact
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unfit { flaws, .. } if flaws.iter().any(|flaw| flaw.contains("attention_mask")) => {
                "the export traced a mask: `create_causal_mask` was not replaced, so look at the versions of torch and transformers".into()
            }
            Self::Unfit { flaws, .. } if flaws[0].contains("bytes, more than") => {
                "the largest constants are listed: quantize their operators, or have masks computed (`masks = \"computed\"`)".into()
            }
            _ => "look at the log of the steps that make it, and at the versions in the requirements".into(),
        })
    }

    fn detail(&self) -> Option<String> {
        let Self::Unfit { flaws, largest, .. } = self else { return None };
        let lines = flaws.iter().cloned().chain(["largest constants:".to_owned()]);
        Some(lines.chain(largest.iter().map(|constant| format!("    {constant}"))).collect::<Vec<_>>().join("\n"))
    }
}

/// Reads the model at `path` and holds it against `wanted`.
pub fn check(path: &Path, wanted: &CheckGraph) -> Result<GraphReport, GraphError> {
    let unreadable = |source| GraphError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > LARGEST {
        return Err(GraphError::TooLarge { path: path.to_owned(), size });
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(unreadable)?;
    let model = onnx::read(&bytes).map_err(|source| GraphError::Damaged { path: path.to_owned(), source })?;
    let largest: Vec<String> = model.largest(LISTED).iter().map(|constant| escape_name(constant)).collect();
    let mut flaws = judge(&model, wanted);
    let beside = path.parent().unwrap_or(Path::new("."));
    flaws.extend(model.external.iter().map(|name| describe_external(name, beside)));
    if !flaws.is_empty() {
        return Err(GraphError::Unfit { path: path.to_owned(), flaws, largest });
    }
    let quantized = model.quantized().into_iter().map(|(name, count)| (escape_name(name), count)).collect();
    let show = |values: &[ValueInfo]| values.iter().map(|value| escape_name(&value.to_string())).collect();
    Ok(GraphReport {
        schema: 1,
        size: model.size,
        producer: escape_name(&cut(&model.producer, 80)),
        opset: model.opsets.get("").copied(),
        inputs: show(&model.inputs),
        outputs: show(&model.outputs),
        operators: model.operators.iter().map(|(name, count)| (escape_name(name), *count)).collect(),
        quantized,
        largest,
        notes: note_patterns(&model),
    })
}

/// What is wrong with the model, one sentence each; what stops a page first.
fn judge(model: &Model, wanted: &CheckGraph) -> Vec<String> {
    let mut flaws = Vec::new();
    if model.size > wanted.size_limit {
        flaws.push(format!("it has {} bytes, more than the {} that are allowed", model.size, wanted.size_limit));
    }
    let fed = matches!(model.inputs.as_slice(), [input] if is_input(input, &wanted.input));
    if !fed {
        let found = show_all(&model.inputs);
        flaws.push(format!("its inputs are {found}, and only {} int64 [1, any] is wanted", wanted.input));
    }
    let vocabulary = u64::from(wanted.vocabulary);
    let given = matches!(model.outputs.as_slice(), [output] if is_output(output, &wanted.output, vocabulary));
    if !given {
        let found = show_all(&model.outputs);
        flaws.push(format!(
            "its outputs are {found}, and only {} float32 [1 or any, any, {vocabulary}] is wanted",
            wanted.output
        ));
    }
    match model.opsets.get("") {
        Some(opset) if *opset == u64::from(wanted.opset) => {}
        Some(opset) => flaws.push(format!("it uses operators of version {opset}, and {} is wanted", wanted.opset)),
        None => {
            flaws.push(format!("it does not say which version of operators it uses, and {} is wanted", wanted.opset));
        }
    }
    for (operator, count) in &wanted.operators {
        let found = model.operators.get(operator.as_str()).copied().unwrap_or(0);
        if found != *count {
            flaws.push(format!("it has {operator} {found} times, and {count} are wanted"));
        }
    }
    if !model.constants.iter().any(is_quantized) {
        flaws.push("none of its weights has 8 bits".to_owned());
    }
    flaws
}

fn show_all(values: &[ValueInfo]) -> String {
    const SHOWN: usize = 6;
    if values.is_empty() {
        return "none".to_owned();
    }
    let shown = values.iter().take(SHOWN).map(|value| escape_name(&value.to_string())).collect::<Vec<_>>().join(", ");
    if values.len() > SHOWN { format!("{shown} and {} more", values.len() - SHOWN) } else { shown }
}

fn is_input(value: &ValueInfo, name: &str) -> bool {
    let shape = matches!(value.shape.as_deref(), Some([Dimension::Fixed(1), Dimension::Symbolic(_)]));
    value.name == name && value.element == "int64" && shape
}

fn is_output(value: &ValueInfo, name: &str, vocabulary: u64) -> bool {
    // The exporter makes the first dimension symbolic though it is always 1.
    let shape = match value.shape.as_deref() {
        Some([Dimension::Fixed(1) | Dimension::Symbolic(_), Dimension::Symbolic(_), Dimension::Fixed(last)]) => {
            *last == vocabulary
        }
        _ => false,
    };
    value.name == name && value.element == "float32" && shape
}

fn is_quantized(constant: &Constant) -> bool {
    ["int8", "uint8"].contains(&constant.element) && constant.dimensions.len() > 1
}

fn describe_external(name: &str, beside: &Path) -> String {
    let shown = escape_name(&cut(name, 120));
    // A path that leaves the directory is not looked for.
    let plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let state = if plain && beside.join(name).is_file() { "which is not delivered" } else { "which is missing" };
    format!("it keeps constants in the file {shown}, {state}: all must be in the model itself")
}

fn note_patterns(model: &Model) -> Vec<String> {
    let percent = model.computable_share() * 100.0;
    if percent < f64::from(WORTH_A_WORD) {
        return Vec::new();
    }
    let count = model.constants.iter().filter(|constant| constant.pattern.is_some()).count();
    vec![format!("{percent:.0} % of the file are {count} masks that their row and column say: they could be computed")]
}
