//! Reading a WebAssembly module: what it imports and exports, which features it uses, and what its
//! linear memory begins with. Facts only; what they are worth is judged elsewhere.
//!
//! The module is validated on the way, so that whatever passes here a browser compiles too. Section
//! ids and encodings: WebAssembly core specification 3.0, chapter 5.

mod features;
mod memory;

pub mod metadata;
pub mod shaders;

pub(crate) use memory::find;
pub use memory::{Image, Run};

use std::collections::BTreeSet;

use serde::Serialize;
use wasmparser::{
    BinaryReaderError, CompositeInnerType, ConstExpr, DataKind, ExternalKind, FuncType, MemoryType, Operator, Parser,
    Payload, TypeRef, ValidPayload, Validator,
};

/// What every module begins with: the magic number. A version of four bytes follows.
pub const MAGIC: &[u8] = b"\0asm";

/// Bytes of a page of linear memory.
pub const PAGE: u64 = 65536;

/// A module, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// What it imports, in order.
    pub imports: Vec<Import>,
    /// What it exports, in order.
    pub exports: Vec<Export>,
    /// Its memories, imported ones first.
    pub memories: Vec<Memory>,
    /// Names of the proposals beyond the first version of WebAssembly that it uses, as wasmparser
    /// names them, such as `bulk_memory`; also `bigint`, when a function that it imports takes or
    /// gives a 64-bit integer.
    pub features: BTreeSet<String>,
    /// What its data segments put into linear memory.
    pub image: Image,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// `code`, `data`, …; of a custom section its own name.
    pub name: String,
    /// Where its content begins in the file.
    pub offset: u64,
    /// Bytes of its content.
    pub size: u64,
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Import {
    /// The module that it is expected from.
    pub module: String,
    /// Its name there.
    pub name: String,
    /// `function`, `memory`, `table`, `global` or `tag`.
    pub kind: &'static str,
    /// A function's type, as in `(i32, i64) -> i32`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// An export.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// `function`, `memory`, `table`, `global` or `tag`.
    pub kind: &'static str,
}

/// A memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Pages of 64 KiB that it begins with.
    pub minimum: u64,
    /// The most pages that it may grow to, when that is said.
    pub maximum: Option<u64>,
    /// Whether threads share it.
    pub shared: bool,
    /// Whether its addresses have 64 bits.
    pub wide: bool,
    /// Whether it comes from outside.
    pub imported: bool,
}

/// Why a module cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WasmError {
    /// It is not valid.
    #[error("not a valid WebAssembly module: {reason}, at offset {offset:#x} of {size} bytes")]
    Invalid {
        /// What is wrong.
        reason: String,
        /// Where, in bytes from the module's start.
        offset: u64,
        /// The module's size.
        size: usize,
    },
    /// It is of another kind or version.
    #[error("a WebAssembly component, not a module")]
    Component,
}

/// Reads the module in `bytes`.
pub fn read(bytes: &[u8]) -> Result<Module, WasmError> {
    let mut module = Module {
        sections: Vec::new(),
        imports: Vec::new(),
        exports: Vec::new(),
        memories: Vec::new(),
        features: BTreeSet::new(),
        image: Image::default(),
    };
    let mut reading = Reading { types: Vec::new(), segments: Vec::new() };
    let mut validator = Validator::new();
    let mut allocations = wasmparser::FuncValidatorAllocations::default();
    let invalid = |error: BinaryReaderError| WasmError::Invalid {
        reason: error.message().to_owned(),
        offset: error.offset(),
        size: bytes.len(),
    };
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        if let Payload::Version { encoding: wasmparser::Encoding::Component, .. } = payload {
            return Err(WasmError::Component);
        }
        if let ValidPayload::Func(function, body) = validator.payload(&payload).map_err(invalid)? {
            let mut function = function.into_validator(std::mem::take(&mut allocations));
            function.validate(&body).map_err(invalid)?;
            allocations = function.into_allocations();
        }
        module.take_section(&payload);
        module.take(payload, &mut reading).map_err(invalid)?;
    }
    // The WebAssembly JavaScript interface makes a `BigInt` of such an argument.
    let has_wide = |import: &Import| import.signature.as_ref().is_some_and(|signature| signature.contains("i64"));
    if module.imports.iter().any(has_wide) {
        module.features.insert("bigint".to_owned());
    }
    module.image = Image::of(&reading.segments);
    Ok(module)
}

/// What is needed only while a module is read.
struct Reading<'a> {
    /// Function types, `None` for others.
    types: Vec<Option<FuncType>>,
    segments: Vec<memory::Segment<'a>>,
}

impl Reading<'_> {
    fn signature(&self, index: u32) -> Option<String> {
        let of = self.types.get(index as usize)?.as_ref()?;
        let list = |types: &[wasmparser::ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let results = if of.results().is_empty() { "()".to_owned() } else { list(of.results()) };
        Some(format!("({}) -> {results}", list(of.params())))
    }
}

impl Module {
    fn take_section(&mut self, payload: &Payload<'_>) {
        let Some((id, range)) = payload.as_section() else { return };
        let name = match (payload, id) {
            (Payload::CustomSection(custom), _) => custom.name().to_owned(),
            (_, 1) => "type".into(),
            (_, 2) => "import".into(),
            (_, 3) => "function".into(),
            (_, 4) => "table".into(),
            (_, 5) => "memory".into(),
            (_, 6) => "global".into(),
            (_, 7) => "export".into(),
            (_, 8) => "start".into(),
            (_, 9) => "element".into(),
            (_, 10) => "code".into(),
            (_, 11) => "data".into(),
            (_, 12) => "data-count".into(),
            (_, 13) => "tag".into(),
            (_, other) => format!("section {other}"),
        };
        self.sections.push(Section { name, offset: range.start, size: range.end - range.start });
    }

    fn take<'a>(&mut self, payload: Payload<'a>, reading: &mut Reading<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(types) => {
                for group in types {
                    for one in group?.into_types() {
                        let function = match one.composite_type.inner {
                            CompositeInnerType::Func(function) => Some(function),
                            _ => None,
                        };
                        if function.as_ref().is_some_and(|function| function.results().len() > 1) {
                            self.features.insert("multi_value".to_owned());
                        }
                        reading.types.push(function);
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    let mut signature = None;
                    match import.ty {
                        TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                            signature = reading.signature(index);
                        }
                        TypeRef::Memory(memory) => self.add_memory(&memory, true),
                        TypeRef::Global(global) if global.mutable => {
                            self.features.insert("mutable_global".to_owned());
                        }
                        TypeRef::Table(_) | TypeRef::Global(_) | TypeRef::Tag(_) => {}
                    }
                    let kind = match import.ty {
                        TypeRef::Func(_) | TypeRef::FuncExact(_) => "function",
                        TypeRef::Table(_) => "table",
                        TypeRef::Memory(_) => "memory",
                        TypeRef::Global(_) => "global",
                        TypeRef::Tag(_) => "tag",
                    };
                    let (module, name) = (import.module.to_owned(), import.name.to_owned());
                    self.imports.push(Import { module, name, kind, signature });
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.add_memory(&memory?, false);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let kind = match export.kind {
                        ExternalKind::Func | ExternalKind::FuncExact => "function",
                        ExternalKind::Table => "table",
                        ExternalKind::Memory => "memory",
                        ExternalKind::Global => "global",
                        ExternalKind::Tag => "tag",
                    };
                    self.exports.push(Export { name: export.name.to_owned(), kind });
                }
            }
            Payload::CodeSectionEntry(body) => {
                let mut operators = body.get_operators_reader()?;
                while !operators.eof() {
                    if let Some(name) = features::proposal(&operators.read()?)
                        && !self.features.contains(name)
                    {
                        self.features.insert(name.to_owned());
                    }
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    let address = match &segment.kind {
                        DataKind::Active { memory_index: 0, offset_expr } => constant(offset_expr),
                        // Where these land only a run can tell.
                        DataKind::Active { .. } | DataKind::Passive => None,
                    };
                    reading.segments.push(memory::Segment { address, bytes: segment.data });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_memory(&mut self, memory: &MemoryType, imported: bool) {
        for (used, name) in [(memory.memory64, "memory64"), (memory.shared, "threads")] {
            if used {
                self.features.insert(name.to_owned());
            }
        }
        if !self.memories.is_empty() {
            self.features.insert("multi_memory".to_owned());
        }
        self.memories.push(Memory {
            minimum: memory.initial,
            maximum: memory.maximum,
            shared: memory.shared,
            wide: memory.memory64,
            imported,
        });
    }
}

/// The value of an expression that is one constant.
fn constant(expression: &ConstExpr<'_>) -> Option<u64> {
    match expression.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => Some(u64::from(value.cast_unsigned())),
        Operator::I64Const { value } => Some(value.cast_unsigned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
