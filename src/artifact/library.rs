//! A model library as a whole: its module, what it says of itself, and its shaders.

use std::collections::BTreeMap;

use serde::Serialize;

use super::wasm::metadata::{self, Metadata, MetadataError};
use super::wasm::shaders::find_shaders;
use super::wasm::{self, Export, Import, Memory, Section, WasmError};
use super::wgsl::{self, BindingKind, Wgsl};

/// The most shaders that are looked into. Large models have some hundred.
const MOST_SHADERS: usize = 20_000;

/// What is in a WebAssembly module. One without metadata and shaders is no model library.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Library {
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it exports.
    pub exports: Vec<Export>,
    /// Its memories.
    pub memories: Vec<Memory>,
    /// Where the last data segment with a known place ends in linear memory.
    pub data_end: u64,
    /// Bytes that its data segments put into linear memory.
    pub data_size: u64,
    /// Proposals beyond the first version of WebAssembly that it uses.
    pub features: Vec<String>,
    /// Each description of a model in it; a model library has one.
    pub metadata: Vec<Metadata>,
    /// Its shaders, in order of address.
    pub shaders: Vec<Kernel>,
}

/// A shader, and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    /// The kernel's name; the first entry point's when none stands before it.
    pub name: String,
    /// Where it stands in linear memory, for people.
    pub place: String,
    /// Bytes of its source.
    pub size: usize,
    /// What it declares, unless it is not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wgsl: Option<Wgsl>,
    /// Why it is not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For each buffer, in order of bindings, whether the runtime binds it for writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<Vec<bool>>,
}

/// Why a library cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The module.
    #[error(transparent)]
    Wasm(#[from] WasmError),
    /// The metadata.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// Reads the module in `bytes`.
pub fn read(bytes: &[u8]) -> Result<Library, LibraryError> {
    let module = wasm::read(bytes)?;
    let metadata = metadata::find(&module.image)?.into_iter().map(|found| found.metadata).collect();
    let shaders = find_shaders(&module.image).into_iter().take(MOST_SHADERS);
    let shaders = shaders.map(|shader| {
        let (wgsl, error) = match wgsl::read(&shader.text) {
            Ok(wgsl) => (Some(wgsl), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let entry = wgsl.as_ref().and_then(|wgsl| wgsl.entry_points.first());
        Kernel {
            name: shader.name.or_else(|| entry.map(|entry| entry.name.clone())).unwrap_or_default(),
            place: shader.place,
            size: shader.text.len(),
            wgsl,
            error,
            writes: shader.writes,
        }
    });
    let ends = module.image.runs().iter().filter_map(|run| Some(run.address? + run.bytes.len() as u64));
    Ok(Library {
        data_end: ends.max().unwrap_or(0),
        data_size: module.image.size(),
        metadata,
        shaders: shaders.collect(),
        sections: module.sections,
        imports: module.imports,
        exports: module.exports,
        memories: module.memories,
        features: module.features.into_iter().collect(),
    })
}

/// Each description of a model in the module in `bytes`, without a look at its shaders.
pub fn metadata(bytes: &[u8]) -> Result<Vec<Metadata>, LibraryError> {
    let found = metadata::find(&wasm::read(bytes)?.image)?;
    Ok(found.into_iter().map(|found| found.metadata).collect())
}

/// The most of [`Library`] that a report needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The model's architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_type: Option<String>,
    /// MLC's name of the quantization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantization: Option<String>,
    /// The library's settings, as in its metadata.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Bytes of work memory that each function plans for.
    pub memory_usage: BTreeMap<String, u64>,
    /// How many parameters it takes.
    pub parameters: usize,
    /// What it imports, as `module.name`.
    pub imports: Vec<String>,
    /// How much it exports.
    pub exports: usize,
    /// Its memories.
    pub memories: Vec<Memory>,
    /// Bytes that its data segments put into linear memory.
    pub data_size: u64,
    /// Proposals beyond the first version of WebAssembly that it uses.
    pub features: Vec<String>,
    /// Its shaders.
    pub shaders: ShaderSummary,
}

/// The shaders of a library in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShaderSummary {
    /// All of them.
    pub count: usize,
    /// Those that are not valid.
    pub invalid: usize,
    /// Those with 16-bit floats.
    pub f16: usize,
    /// Storage bindings that are only read.
    pub read: usize,
    /// Storage bindings that may be written.
    pub read_write: usize,
    /// The most storage bindings of one shader.
    pub most_storage: usize,
    /// The most invocations in a workgroup.
    pub most_invocations: u64,
    /// The most bytes of workgroup memory.
    pub most_workgroup_bytes: u64,
}

impl Library {
    /// The library in short.
    pub fn summary(&self) -> Summary {
        let metadata = self.metadata.first();
        Summary {
            model_type: metadata.map(|metadata| metadata.model_type.clone()),
            quantization: metadata.and_then(|metadata| metadata.quantization.clone()),
            settings: metadata.map(|metadata| metadata.settings.clone()).unwrap_or_default(),
            memory_usage: metadata.map(|metadata| metadata.memory_usage.clone()).unwrap_or_default(),
            parameters: metadata.map_or(0, |metadata| metadata.params.len()),
            imports: self.imports.iter().map(|import| format!("{}.{}", import.module, import.name)).collect(),
            exports: self.exports.len(),
            memories: self.memories.clone(),
            data_size: self.data_size,
            features: self.features.clone(),
            shaders: self.shader_summary(),
        }
    }

    fn shader_summary(&self) -> ShaderSummary {
        let mut summary = ShaderSummary { count: self.shaders.len(), ..ShaderSummary::default() };
        for kernel in &self.shaders {
            let Some(wgsl) = &kernel.wgsl else {
                summary.invalid += 1;
                continue;
            };
            let of = |kind| wgsl.bindings.iter().filter(|binding| binding.kind == kind).count();
            let (read, read_write) = (of(BindingKind::StorageRead), of(BindingKind::StorageReadWrite));
            summary.f16 += usize::from(wgsl.f16);
            summary.read += read;
            summary.read_write += read_write;
            summary.most_storage = summary.most_storage.max(read + read_write);
            summary.most_workgroup_bytes = summary.most_workgroup_bytes.max(wgsl.workgroup_bytes);
            for entry in &wgsl.entry_points {
                let invocations =
                    entry.workgroup_size.iter().fold(1, |product: u64, n| product.saturating_mul(u64::from(*n)));
                summary.most_invocations = summary.most_invocations.max(invocations);
            }
        }
        summary
    }
}
