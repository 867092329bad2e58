//! What an ONNX file says of itself: inputs and outputs, operators, constants and where they lie.
//!
//! A reader of `onnx.proto` (<https://onnx.ai/onnx/repo-docs/IR.html>) of our own: the parts that are
//! asked for are a dozen messages, and what a tensor holds is looked at where it lies.

mod constant;
mod graph;
mod wire;

pub use constant::{Constant, Pattern};
pub use graph::{Dimension, ValueInfo};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use graph::Walk;
use wire::{Message, Value};

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// The version of the format.
    pub ir_version: u64,
    /// The program that wrote it, and its version.
    pub producer: String,
    /// Versions of operators by domain; ONNX's own domain is the empty one.
    pub opsets: BTreeMap<String, u64>,
    /// What it is fed, without constants that may be replaced.
    pub inputs: Vec<ValueInfo>,
    /// What it gives.
    pub outputs: Vec<ValueInfo>,
    /// How often each operator occurs, in graphs within the graph too; those of other domains as
    /// `domain.name`.
    pub operators: BTreeMap<String, u32>,
    /// Constants by size, largest first.
    pub constants: Vec<Constant>,
    /// Files in which it keeps constants, as it names them, relative to its own place.
    pub external: BTreeSet<String>,
    /// The file's size in bytes.
    pub size: u64,
}

/// Why a file cannot be read as ONNX.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OnnxError {
    /// It ends too soon.
    #[error("it is cut off: at byte {offset} a field goes on beyond the {left} bytes that are left")]
    Truncated {
        /// Where the field stands.
        offset: usize,
        /// How many bytes are left there.
        left: usize,
    },
    /// What is there is no field.
    #[error("it is no protocol buffer: at byte {offset} there is no field (wire type {kind})")]
    NoField {
        /// Where.
        offset: usize,
        /// The wire type found.
        kind: u64,
    },
    /// There is no graph.
    #[error("it is no ONNX model: it has no graph")]
    NoGraph,
    /// A graph within a graph within a graph, and so on.
    #[error("its graphs are nested deeper than {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// More of something than any model has.
    #[error("it has more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Reads a model from the bytes of its file.
pub fn read(bytes: &[u8]) -> Result<Model, OnnxError> {
    let mut message = Message::new(bytes);
    let (mut producer, mut producer_version) = (String::new(), String::new());
    let (mut ir_version, mut opsets, mut walk) = (0, BTreeMap::new(), Walk::default());
    let mut has_graph = false;
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Varint(version)) => ir_version = version,
            (2, Value::Bytes(text)) => producer = text.text(),
            (3, Value::Bytes(text)) => producer_version = text.text(),
            (7, Value::Bytes(graph)) => {
                walk.graph(graph, 0)?;
                has_graph = true;
            }
            (8, Value::Bytes(opset)) => {
                let (domain, version) = read_opset(opset)?;
                opsets.insert(domain, version);
            }
            _ => {}
        }
    }
    if !has_graph {
        return Err(OnnxError::NoGraph);
    }
    let producer = [producer, producer_version].join(" ").trim().to_owned();
    let size = bytes.len() as u64;
    let found = walk.finish();
    Ok(Model {
        ir_version,
        producer,
        opsets,
        inputs: found.inputs,
        outputs: found.outputs,
        operators: found.operators,
        constants: found.constants,
        external: found.external,
        size,
    })
}

fn read_opset(mut message: Message<'_>) -> Result<(String, u64), OnnxError> {
    let (mut domain, mut version) = (String::new(), 0);
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Bytes(text)) => domain = text.text(),
            (2, Value::Varint(number)) => version = number,
            _ => {}
        }
    }
    // The specification has two names for ONNX's own domain.
    Ok((if domain == "ai.onnx" { String::new() } else { domain }, version))
}

impl Model {
    /// How often operators occur that calculate with, or make or unmake, 8 bits or fewer.
    pub fn quantized(&self) -> BTreeMap<&str, u32> {
        let of_8_bits = |name: &str| {
            let name = name.rsplit('.').next().unwrap_or(name);
            name.starts_with("QLinear")
                || ["Integer", "Quantize", "quantize", "NBits"].iter().any(|part| name.contains(part))
        };
        let all = self.operators.iter().map(|(name, count)| (name.as_str(), *count));
        all.filter(|(name, _)| of_8_bits(name)).collect()
    }

    /// The `count` largest constants in words, with their share of the file.
    pub fn largest(&self, count: usize) -> Vec<String> {
        let show = |constant: &Constant| {
            let share = self.share(constant.bytes) * 100.0;
            let users = constant.used_by.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{constant}, {share:.1} % of the file, used by {}", crate::printable::cut(&users, 80))
        };
        self.constants.iter().take(count).map(show).collect()
    }

    /// The share of the file, from 0 to 1, that constants take which a few nodes could compute.
    pub fn computable_share(&self) -> f64 {
        let bytes: u64 =
            self.constants.iter().filter(|constant| constant.pattern.is_some()).map(|constant| constant.bytes).sum();
        self.share(bytes)
    }

    /// The share of the file that `bytes` are, from 0 to 1.
    pub fn share(&self, bytes: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share is shown in percent")]
        let share = bytes as f64 / (self.size.max(1)) as f64;
        share
    }
}
