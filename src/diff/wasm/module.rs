//! A module taken apart, as far as two of them are compared.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use wasmparser::{
    BinaryReader, BinaryReaderError, DataKind, FunctionBody, KnownCustom, Name, Operator, Parser, Payload,
    ProducersSectionReader, TypeRef,
};

/// A module.
#[derive(Default)]
pub(super) struct Module<'a> {
    /// Name and content of each section, in order.
    pub(super) sections: Vec<(String, &'a [u8])>,
    /// What is imported, by `module.name`.
    pub(super) imports: Vec<(String, String)>,
    /// What is exported, by name.
    pub(super) exports: Vec<(String, String)>,
    /// Types, tables, memories, globals, element segments, tags, the start function: as texts.
    pub(super) items: BTreeMap<&'static str, Vec<String>>,
    /// The functions with a body.
    pub(super) functions: Vec<Function<'a>>,
    /// How many functions are imported: the index of the first with a body.
    pub(super) imported: usize,
    /// Data segments.
    pub(super) segments: Vec<Segment<'a>>,
    /// Custom sections but those that were compared elsewhere.
    pub(super) customs: Vec<(String, &'a [u8])>,
    /// Names of functions, by index.
    pub(super) names: BTreeMap<u32, String>,
    /// Signatures, by type index.
    pub(super) types: Vec<String>,
}

/// A function with a body.
pub(super) struct Function<'a> {
    /// From the name section, or of an export.
    pub(super) name: Option<String>,
    pub(super) signature: String,
    pub(super) body: FunctionBody<'a>,
}

/// A data segment.
pub(super) struct Segment<'a> {
    /// Its place in memory, where that is a constant.
    pub(super) address: Option<u64>,
    /// What it is called, when it has a name.
    pub(super) name: Option<String>,
    pub(super) bytes: &'a [u8],
}

impl<'a> Module<'a> {
    /// Takes the module apart. It is not validated: a difference in a broken module is one, too.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut reading = Reading::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            let range = match &payload {
                Payload::CodeSectionStart { unchecked_range, .. } => Some(unchecked_range.clone()),
                Payload::CodeSectionEntry(_) => None,
                payload => payload.as_section().map(|(_, range)| range),
            };
            if let Some(range) = range {
                reading.module.sections.push((section_name(&payload), slice(bytes, &range)));
            }
            reading.take_declaration(&payload)?;
            reading.take_content(payload)?;
        }
        Ok(reading.finish())
    }

    fn item(&mut self, kind: &'static str, text: String) {
        self.items.entry(kind).or_default().push(text);
    }

    fn show_import(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Func(index) | TypeRef::FuncExact(index) => self.signature(index).to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// The signature with this type index.
    pub(super) fn signature(&self, index: u32) -> &str {
        self.types.get(index as usize).map_or("", String::as_str)
    }

    /// What function `index` is called: by name, import, or number.
    pub(super) fn name_of(&self, index: u32) -> String {
        let at = index as usize;
        let named = match at.checked_sub(self.imported) {
            Some(defined) => self.functions.get(defined).and_then(|function| function.name.clone()),
            None => self.names.get(&index).cloned(),
        };
        named.unwrap_or_else(|| format!("#{index}"))
    }
}

/// A module in the making.
#[derive(Default)]
struct Reading<'a> {
    module: Module<'a>,
    /// Type indices of the functions with a body.
    declared: Vec<u32>,
    /// Names under which functions are exported, by index.
    exported: BTreeMap<u32, String>,
    /// Names of data segments, by index.
    data_names: BTreeMap<u32, String>,
}

impl<'a> Reading<'a> {
    /// Types, imports, tables, memories, tags, globals.
    fn take_declaration(&mut self, payload: &Payload<'a>) -> Result<(), BinaryReaderError> {
        let module = &mut self.module;
        match payload {
            Payload::TypeSection(types) => {
                for group in types.clone() {
                    module.types.extend(group?.types().map(ToString::to_string));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    let import = import?;
                    let is_function = matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                    module.imported += usize::from(is_function);
                    let shown = module.show_import(import.ty);
                    module.imports.push((format!("{}.{}", import.module, import.name), shown));
                }
            }
            Payload::FunctionSection(functions) => {
                for function in functions.clone() {
                    self.declared.push(function?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables.clone() {
                    module.item("tables", format!("{:?}", table?.ty));
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories.clone() {
                    module.item("memories", format!("{:?}", memory?));
                }
            }
            Payload::TagSection(tags) => {
                for tag in tags.clone() {
                    module.item("tags", format!("{:?}", tag?));
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals.clone() {
                    let global = global?;
                    let value = show_operators(global.init_expr.get_operators_reader());
                    module.item("globals", format!("{:?} = {value}", global.ty));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Exports, the start function, elements, bodies, data, custom sections.
    fn take_content(&mut self, payload: Payload<'a>) -> Result<(), BinaryReaderError> {
        let module = &mut self.module;
        match payload {
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let kind = format!("{:?}", export.kind).to_lowercase();
                    if kind == "func" {
                        self.exported.entry(export.index).or_insert_with(|| export.name.to_owned());
                    }
                    // A function's number says nothing: it changes with every function before it.
                    let shown = if kind == "func" { kind } else { format!("{kind} {}", export.index) };
                    module.exports.push((export.name.to_owned(), shown));
                }
            }
            Payload::StartSection { func, .. } => module.item("start", func.to_string()),
            Payload::ElementSection(elements) => {
                for element in elements {
                    let items = match element?.items {
                        wasmparser::ElementItems::Functions(items) => items.count(),
                        wasmparser::ElementItems::Expressions(_, items) => items.count(),
                    };
                    module.item("element segments", format!("{items} elements"));
                }
            }
            Payload::CodeSectionEntry(body) => {
                let ty = self.declared.get(module.functions.len()).copied();
                let signature = ty.map_or_else(String::new, |ty| module.signature(ty).to_owned());
                module.functions.push(Function { name: None, signature, body });
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    let address = match &segment.kind {
                        DataKind::Active { offset_expr, .. } => constant(offset_expr.get_operators_reader()),
                        DataKind::Passive => None,
                    };
                    module.segments.push(Segment { address, name: None, bytes: segment.data });
                }
            }
            Payload::CustomSection(custom) => {
                module.customs.push((custom.name().to_owned(), custom.data()));
                if let KnownCustom::Name(names) = custom.as_known() {
                    read_names(names, &mut module.names, &mut self.data_names);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The module with the names that were found on the way.
    fn finish(self) -> Module<'a> {
        let Self { mut module, exported, data_names, .. } = self;
        for (index, function) in module.functions.iter_mut().enumerate() {
            let index = u32::try_from(index + module.imported).unwrap_or(u32::MAX);
            function.name = module.names.get(&index).or_else(|| exported.get(&index)).cloned();
        }
        for (index, segment) in module.segments.iter_mut().enumerate() {
            segment.name = u32::try_from(index).ok().and_then(|index| data_names.get(&index)).cloned();
        }
        module
    }
}

fn slice<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(at(range.start)..at(range.end)).unwrap_or_default()
}

fn section_name(payload: &Payload) -> String {
    match payload {
        Payload::TypeSection(_) => "type".into(),
        Payload::ImportSection(_) => "import".into(),
        Payload::FunctionSection(_) => "function".into(),
        Payload::TableSection(_) => "table".into(),
        Payload::MemorySection(_) => "memory".into(),
        Payload::TagSection(_) => "tag".into(),
        Payload::GlobalSection(_) => "global".into(),
        Payload::ExportSection(_) => "export".into(),
        Payload::StartSection { .. } => "start".into(),
        Payload::ElementSection(_) => "element".into(),
        Payload::DataCountSection { .. } => "data count".into(),
        Payload::DataSection(_) => "data".into(),
        Payload::CodeSectionStart { .. } => "code".into(),
        Payload::CustomSection(custom) => format!("custom {}", custom.name()),
        other => other.as_section().map_or_else(String::new, |(id, _)| format!("number {id}")),
    }
}

/// Names of functions and data segments; what cannot be read is left out.
fn read_names(
    names: wasmparser::NameSectionReader,
    functions: &mut BTreeMap<u32, String>,
    data: &mut BTreeMap<u32, String>,
) {
    for name in names {
        let (map, into) = match name {
            Ok(Name::Function(map)) => (map, &mut *functions),
            Ok(Name::Data(map)) => (map, &mut *data),
            Ok(_) => continue,
            Err(_) => return,
        };
        into.extend(map.into_iter().map_while(Result::ok).map(|naming| (naming.index, naming.name.to_owned())));
    }
}

fn show_operators(reader: wasmparser::OperatorsReader) -> String {
    let shown: Vec<String> = reader
        .into_iter()
        .map_while(Result::ok)
        .filter(|op| *op != Operator::End)
        .map(|op| format!("{op:?}"))
        .collect();
    shown.join(" ")
}

/// The value of an expression that is one constant.
fn constant(reader: wasmparser::OperatorsReader) -> Option<u64> {
    let operators: Vec<Operator> = reader.into_iter().map_while(Result::ok).collect();
    match operators[..] {
        [Operator::I32Const { value }, Operator::End] => Some(u64::from(value.cast_unsigned())),
        [Operator::I64Const { value }, Operator::End] => Some(value.cast_unsigned()),
        _ => None,
    }
}

/// The `producers` section as a document: field, tool, version.
pub(super) fn producers(bytes: &[u8]) -> Option<Value> {
    let mut document = serde_json::Map::new();
    for field in ProducersSectionReader::new(BinaryReader::new(bytes, 0)).ok()? {
        let field = field.ok()?;
        let mut values = serde_json::Map::new();
        for value in field.values {
            let value = value.ok()?;
            values.insert(value.name.to_owned(), json!(value.version));
        }
        document.insert(field.name.to_owned(), Value::Object(values));
    }
    Some(Value::Object(document))
}
