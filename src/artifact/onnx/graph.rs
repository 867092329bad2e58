//! A walk through a graph and the graphs within it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::OnnxError;
use super::constant::{self, Constant};
use super::wire::{Message, Value};

/// An input or output of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueInfo {
    /// Its name.
    pub name: String,
    /// The type of its elements; `unknown` for what is no tensor.
    pub element: &'static str,
    /// Its dimensions, where they are said.
    pub shape: Option<Vec<Dimension>>,
}

/// A dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Dimension {
    /// It has this size.
    Fixed(u64),
    /// It has any size; where two have the same name, the same one.
    Symbolic(String),
}

/// Graphs nested deeper than this are refused.
const DEPTH: usize = 16;

/// More nodes than this are refused, and as many constants.
const NODES: usize = 1 << 20;

/// More inputs of nodes than this are refused.
const USES: usize = 1 << 22;

/// More different operators than this are refused.
const OPERATORS: usize = 1 << 12;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Vec<ValueInfo>,
    pub(super) operators: BTreeMap<String, u32>,
    pub(super) constants: Vec<Constant>,
    pub(super) external: BTreeSet<String>,
    nodes: usize,
    /// What is taken by which operator.
    uses: Vec<(String, String)>,
}

impl std::fmt::Display for ValueInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", crate::printable::cut(&self.name, 80), self.element)?;
        match &self.shape {
            Some(shape) => {
                let sizes = shape.iter().map(|dimension| match dimension {
                    Dimension::Fixed(size) => size.to_string(),
                    Dimension::Symbolic(name) if name.is_empty() => "?".to_owned(),
                    Dimension::Symbolic(name) => crate::printable::cut(name, 40),
                });
                write!(f, " [{}]", sizes.collect::<Vec<_>>().join(", "))
            }
            None => write!(f, " of any shape"),
        }
    }
}

impl Walk {
    /// Walks through a `GraphProto`.
    pub(super) fn graph(&mut self, mut message: Message<'_>, depth: usize) -> Result<(), OnnxError> {
        if depth > DEPTH {
            return Err(OnnxError::TooDeep { limit: DEPTH });
        }
        while let Some((number, value)) = message.next()? {
            let Value::Bytes(part) = value else { continue };
            match number {
                1 => self.node(part, depth)?,
                5 => {
                    let constant = constant::read(part)?;
                    self.constant(constant)?;
                }
                // What a graph within the graph takes and gives is nobody's business.
                11 if depth == 0 => self.inputs.push(read_value(part)?),
                12 if depth == 0 => self.outputs.push(read_value(part)?),
                _ => {}
            }
            if self.inputs.len().max(self.outputs.len()) > NODES {
                return Err(OnnxError::TooMany { what: "inputs or outputs", limit: NODES });
            }
        }
        Ok(())
    }

    /// What was found, in order.
    pub(super) fn finish(mut self) -> Self {
        let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (taken, operator) in &self.uses {
            users.entry(taken).or_default().insert(operator);
        }
        for constant in &mut self.constants {
            let names = users.get(constant.name.as_str()).into_iter().flatten();
            constant.used_by = names.map(|&name| name.to_owned()).collect();
        }
        self.constants.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        // Old files list constants among the inputs.
        let constants: BTreeSet<&str> = self.constants.iter().map(|constant| constant.name.as_str()).collect();
        self.inputs.retain(|input| !constants.contains(input.name.as_str()));
        self
    }

    fn constant(&mut self, constant: Constant) -> Result<(), OnnxError> {
        self.external.extend(constant.external.clone());
        self.constants.push(constant);
        if self.constants.len() > NODES {
            return Err(OnnxError::TooMany { what: "constants", limit: NODES });
        }
        Ok(())
    }

    /// Reads a `NodeProto`.
    fn node(&mut self, mut message: Message<'_>, depth: usize) -> Result<(), OnnxError> {
        let (mut kind, mut domain) = (String::new(), String::new());
        let (mut taken, mut given, mut own) = (Vec::new(), String::new(), Vec::new());
        while let Some((number, value)) = message.next()? {
            let Value::Bytes(part) = value else { continue };
            match number {
                1 => taken.push(part.text()),
                2 => given = part.text(),
                4 => kind = part.text(),
                5 => self.attribute(part, depth, &mut own)?,
                7 => domain = part.text(),
                _ => {}
            }
            if self.uses.len() + taken.len() > USES {
                return Err(OnnxError::TooMany { what: "inputs of nodes", limit: USES });
            }
        }
        for mut constant in own {
            // A constant within a node has its output's name.
            constant.name.clone_from(&given);
            self.constant(constant)?;
        }
        let operator = if domain.is_empty() || domain == "ai.onnx" { kind } else { format!("{domain}.{kind}") };
        self.uses.extend(taken.into_iter().map(|name| (name, operator.clone())));
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(OnnxError::TooMany { what: "nodes", limit: NODES });
        }
        *self.operators.entry(operator).or_default() += 1;
        if self.operators.len() > OPERATORS {
            return Err(OnnxError::TooMany { what: "different operators", limit: OPERATORS });
        }
        Ok(())
    }

    /// Reads an `AttributeProto`: tensors go to `own`, graphs are walked through.
    fn attribute(&mut self, mut message: Message<'_>, depth: usize, own: &mut Vec<Constant>) -> Result<(), OnnxError> {
        while let Some((number, value)) = message.next()? {
            match (number, value) {
                (5 | 10, Value::Bytes(tensor)) => own.push(constant::read(tensor)?),
                (6 | 11, Value::Bytes(graph)) => self.graph(graph, depth + 1)?,
                _ => {}
            }
            if own.len() > NODES {
                return Err(OnnxError::TooMany { what: "tensors of a node", limit: NODES });
            }
        }
        Ok(())
    }
}

/// Reads a `ValueInfoProto`.
fn read_value(mut message: Message<'_>) -> Result<ValueInfo, OnnxError> {
    let mut found = ValueInfo { name: String::new(), element: "unknown", shape: None };
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Bytes(text)) => found.name = text.text(),
            (2, Value::Bytes(mut kind)) => {
                while let Some((number, value)) = kind.next()? {
                    if let (1, Value::Bytes(tensor)) = (number, value) {
                        (found.element, found.shape) = read_tensor_type(tensor)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Reads a `TypeProto.Tensor`.
fn read_tensor_type(mut message: Message<'_>) -> Result<(&'static str, Option<Vec<Dimension>>), OnnxError> {
    let (mut element, mut shape) = ("unknown", None);
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Varint(kind)) => element = constant::element(kind),
            (2, Value::Bytes(mut dimensions)) => {
                let sizes = shape.insert(Vec::new());
                while let Some((number, value)) = dimensions.next()? {
                    if let (1, Value::Bytes(dimension)) = (number, value) {
                        sizes.push(read_dimension(dimension)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok((element, shape))
}

/// Reads a `TensorShapeProto.Dimension`; one without anything is symbolic and has no name.
fn read_dimension(mut message: Message<'_>) -> Result<Dimension, OnnxError> {
    let mut found = Dimension::Symbolic(String::new());
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Varint(size)) => found = Dimension::Fixed(size),
            (2, Value::Bytes(name)) => found = Dimension::Symbolic(name.text()),
            _ => {}
        }
    }
    Ok(found)
}
