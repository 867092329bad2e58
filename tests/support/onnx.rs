//! Writes small ONNX files by hand, field by field.

/// A message in the making.
#[derive(Default, Clone)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A field with a number.
    pub fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    /// A field with bytes, a text or a message.
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub const FLOAT: u64 = 1;
pub const INT8: u64 = 3;
pub const INT64: u64 = 7;
pub const BOOL: u64 = 9;

/// A `TensorProto` with raw data.
pub fn tensor(name: &str, kind: u64, dimensions: &[u64], raw: &[u8]) -> Message {
    let message = dimensions.iter().fold(Message::default(), |message, &size| message.number(1, size));
    message.number(2, kind).bytes(8, name).bytes(9, raw)
}

/// A `TensorProto` whose data lies in the file `location`.
pub fn external(name: &str, location: &str) -> Message {
    let entry = |key: &str, value: &str| Message::default().bytes(1, key).bytes(2, value);
    let message = Message::default().number(1, 4).number(2, FLOAT).bytes(8, name);
    message.bytes(13, entry("offset", "0")).bytes(13, entry("location", location)).number(14, 1)
}

/// A dimension: a size, or a name.
pub enum Size<'a> {
    Is(u64),
    Any(&'a str),
}

/// A `ValueInfoProto` of a tensor.
pub fn value(name: &str, kind: u64, sizes: &[Size<'_>]) -> Message {
    let dimension = |size: &Size<'_>| match size {
        Size::Is(size) => Message::default().number(1, *size),
        Size::Any(name) => Message::default().bytes(2, name),
    };
    let shape = sizes.iter().fold(Message::default(), |shape, size| shape.bytes(1, dimension(size)));
    let tensor = Message::default().number(1, kind).bytes(2, shape);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, tensor))
}

/// A `NodeProto`.
pub fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let message = inputs.iter().fold(Message::default(), |message, input| message.bytes(1, input));
    message.bytes(2, output).bytes(4, operator)
}

/// A square of truth values: row ≥ column, and row − column < window.
pub fn mask(size: usize, window: usize) -> Vec<u8> {
    let at = |row: usize, column: usize| u8::from(row >= column && row - column < window);
    (0..size * size).map(|place| at(place / size, place % size)).collect()
}

/// A model from the parts of its graph, with operators of version 17.
pub fn model(parts: &[(u64, Message)]) -> Vec<u8> {
    let graph = parts.iter().fold(Message::default(), |graph, (field, part)| graph.bytes(*field, part));
    let opset = Message::default().bytes(1, "").number(2, 17);
    let model = Message::default().number(1, 8).bytes(2, "onnx.quantize").bytes(3, "0.1.0");
    model.bytes(7, graph).bytes(8, opset).0
}

pub const NODE: u64 = 1;
pub const CONSTANT: u64 = 5;
pub const INPUT: u64 = 11;
pub const OUTPUT: u64 = 12;

/// The parts of a good model with a vocabulary of 8.
pub fn good() -> Vec<(u64, Message)> {
    let any = || Size::Any("seq");
    vec![
        (NODE, node("Gather", &["words", "input_ids"], "rows")),
        (NODE, node("DequantizeLinear", &["rows", "scale"], "hidden")),
        (NODE, node("MatMul", &["hidden", "head"], "logits")),
        (CONSTANT, tensor("words", INT8, &[8, 4], &[1; 32])),
        (CONSTANT, tensor("scale", FLOAT, &[], &[0; 4])),
        (CONSTANT, tensor("head", FLOAT, &[4, 8], &[0; 128])),
        (INPUT, value("input_ids", INT64, &[Size::Is(1), any()])),
        (OUTPUT, value("logits", FLOAT, &[Size::Any("logits_dim_0"), any(), Size::Is(8)])),
    ]
}
