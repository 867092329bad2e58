//! A constant of a graph: its type, its size, and whether what it says could be said in a line.

use serde::Serialize;

use super::OnnxError;
use super::wire::{Message, Value};

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: &'static str,
    /// Its dimensions.
    pub dimensions: Vec<u64>,
    /// How many bytes it takes in the file.
    pub bytes: u64,
    /// The operators that take it.
    pub used_by: Vec<String>,
    /// What it says, where that could be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The file that holds it, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
}

/// What a large constant says, where that could be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A square of truth values: row ≥ column.
    Causal,
    /// A square of truth values: row ≥ column, and row − column < window.
    Window(u64),
}

/// Smaller constants are not looked into, in bytes.
const LARGE: usize = 1 << 16;

/// Dimensions beyond this are not those of a tensor.
const DIMENSIONS: usize = 64;

impl std::fmt::Display for Constant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dimensions = self.dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
        let space = if dimensions.is_empty() { "" } else { " " };
        let name = crate::printable::cut(&self.name, 80);
        write!(f, "{name} ({}{space}{dimensions}, {} bytes", self.element, self.bytes)?;
        match self.pattern {
            Some(Pattern::Causal) => write!(f, ": says only that row ≥ column)"),
            Some(Pattern::Window(window)) => write!(f, ": says only that 0 ≤ row − column < {window})"),
            None => write!(f, ")"),
        }
    }
}

/// Reads a `TensorProto`.
pub(super) fn read(mut message: Message<'_>) -> Result<Constant, OnnxError> {
    let (mut dimensions, mut kind, mut name) = (Vec::new(), 0, String::new());
    let (mut bytes, mut raw, mut external) = (0, None, None);
    while let Some((number, value)) = message.next()? {
        match (number, value) {
            (1, Value::Varint(size)) => dimensions.push(size),
            (1, Value::Bytes(sizes)) => sizes.varints(|size| dimensions.push(size))?,
            (2, Value::Varint(number)) => kind = number,
            (8, Value::Bytes(text)) => name = text.text(),
            (9, Value::Bytes(data)) => {
                bytes += data.bytes().len();
                raw = Some(data.bytes());
            }
            // Packed numbers, or one of them, or one of many strings.
            (4..=7 | 10 | 11, Value::Bytes(data)) => bytes += data.bytes().len(),
            (4..=7 | 10 | 11, Value::Fixed(data)) => bytes += data.len(),
            (4..=7 | 10 | 11, Value::Varint(_)) => bytes += 1,
            (13, Value::Bytes(entry)) => {
                if let Some(location) = read_location(entry)? {
                    external = Some(location);
                }
            }
            _ => {}
        }
        if dimensions.len() > DIMENSIONS {
            return Err(OnnxError::TooMany { what: "dimensions of a tensor", limit: DIMENSIONS });
        }
    }
    let pattern = raw.filter(|raw| kind == BOOL && raw.len() >= LARGE).and_then(|raw| pattern(raw, &dimensions));
    let element = element(kind);
    Ok(Constant { name, element, dimensions, bytes: bytes as u64, used_by: Vec::new(), pattern, external })
}

/// The value of a `StringStringEntryProto` whose key is `location`.
fn read_location(mut entry: Message<'_>) -> Result<Option<String>, OnnxError> {
    let (mut key, mut text) = (String::new(), String::new());
    while let Some((number, value)) = entry.next()? {
        match (number, value) {
            (1, Value::Bytes(part)) => key = part.text(),
            (2, Value::Bytes(part)) => text = part.text(),
            _ => {}
        }
    }
    Ok((key == "location").then_some(text))
}

const BOOL: u64 = 9;

/// The name of a `TensorProto.DataType`.
pub(super) fn element(kind: u64) -> &'static str {
    const NAMES: [&str; 24] = [
        "undefined",
        "float32",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "float64",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8e4m3fn",
        "float8e4m3fnuz",
        "float8e5m2",
        "float8e5m2fnuz",
        "uint4",
        "int4",
        "float4e2m1",
    ];
    usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind)).copied().unwrap_or("unknown")
}

/// What a square of truth values says. All leading dimensions are 1.
fn pattern(raw: &[u8], dimensions: &[u64]) -> Option<Pattern> {
    let (&columns, leading) = dimensions.split_last()?;
    let (&rows, leading) = leading.split_last()?;
    let side = usize::try_from(columns).ok()?;
    if rows != columns || leading.iter().any(|&each| each != 1) || side.checked_mul(side) != Some(raw.len()) {
        return None;
    }
    // The first column says how far down the window goes.
    let window = (0..side).take_while(|row| raw[row * side] == 1).count();
    let as_said = raw.chunks_exact(side).enumerate().all(|(row, line)| {
        line.iter().enumerate().all(|(column, &value)| value == u8::from(row >= column && row - column < window))
    });
    match window {
        _ if !as_said => None,
        0 => None,
        window if window == side => Some(Pattern::Causal),
        window => Some(Pattern::Window(window as u64)),
    }
}
