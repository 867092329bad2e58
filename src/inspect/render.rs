//! An inspection as text for people.

use std::fmt::Write;

use super::{Content, Inspection};
use crate::artifact::browser::BrowserModule;
use crate::artifact::library::Library;
use crate::artifact::onnx::{Model, ValueInfo};
use crate::artifact::weights::TensorCache;
use crate::pins::Encoding;
use crate::printable::escape_name;

/// How many lines a list of things that repeat has.
const LISTED: usize = 10;

/// The inspection as a person reads it. Writing to a `String` cannot fail.
pub fn render(inspection: &Inspection) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", escape_name(&inspection.path.display().to_string()), kind(&inspection.content));
    if inspection.encoding == Encoding::Identity {
        line(&mut text, "sha256", &format!("{} ({} bytes)", inspection.packed.sha256, inspection.packed.size));
    } else {
        let (name, packed, unpacked) = (inspection.encoding.name(), inspection.packed, inspection.unpacked);
        line(&mut text, "packed", &format!("{} ({} bytes, {name})", packed.sha256, packed.size));
        line(&mut text, "unpacked", &format!("{} ({} bytes)", unpacked.sha256, unpacked.size));
    }
    match &inspection.content {
        Content::Wasm(library) => render_library(&mut text, library),
        Content::BrowserModule(module) => render_browser_module(&mut text, module),
        Content::TensorCache(cache) => render_tensor_cache(&mut text, cache),
        Content::Manifest(manifest) => {
            for artifact in &manifest.artifacts {
                let (size, unpacked) = (artifact.packed.size, artifact.unpacked.size);
                let encoding = artifact.encoding.name();
                let (path, role) = (escape_name(&artifact.path), escape_name(&artifact.role));
                let _ = writeln!(text, "{size:>14}  {path} ({role}, {encoding}, unpacked {unpacked})");
            }
        }
        Content::Json { keys } => line(&mut text, "keys", &keys.iter().cloned().collect::<Vec<_>>().join(", ")),
        Content::Onnx(model) => render_model(&mut text, model),
        Content::Bitcode(_) | Content::Unknown => {}
    }
    text
}

fn kind(content: &Content) -> &'static str {
    match content {
        Content::Wasm(library) if library.metadata.is_empty() => "WebAssembly module",
        Content::Wasm(_) => "model library",
        Content::BrowserModule(_) => "browser module",
        Content::TensorCache(_) => "tensor cache",
        Content::Manifest(_) => "manifest",
        Content::Bitcode(bitcode) if bitcode.wrapped => "LLVM bitcode, wrapped",
        Content::Bitcode(_) => "LLVM bitcode",
        Content::Onnx(_) => "ONNX model",
        Content::Json { .. } => "JSON document",
        Content::Unknown => "of no kind that is known",
    }
}

/// A line of its own, whatever names of the file's stand in `value`.
fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<12} {}", escape_name(value));
}

fn render_library(text: &mut String, library: &Library) {
    let summary = library.summary();
    if let Some(model_type) = &summary.model_type {
        let quantization = summary.quantization.as_deref().unwrap_or("no quantization named");
        line(text, "model", &format!("{model_type}, {quantization}, {} parameters", summary.parameters));
    }
    if library.metadata.len() > 1 {
        line(text, "models", &format!("{} descriptions; the first is shown", library.metadata.len()));
    }
    let plain = summary.settings.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    for (key, value) in plain {
        line(text, "setting", &format!("{key} = {value}"));
    }
    let mut memory: Vec<_> = summary.memory_usage.iter().collect();
    memory.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (function, bytes) in memory {
        line(text, "work memory", &format!("{bytes:>12} bytes  {function}"));
    }
    let shaders = &summary.shaders;
    if shaders.count > 0 {
        let f16 = if shaders.f16 > 0 { format!(", {} with 16-bit floats", shaders.f16) } else { String::new() };
        line(text, "shaders", &format!("{}, {} not valid{f16}", shaders.count, shaders.invalid));
        line(
            text,
            "bindings",
            &format!(
                "{} read, {} read_write, at most {} in one shader",
                shaders.read, shaders.read_write, shaders.most_storage
            ),
        );
        line(
            text,
            "workgroups",
            &format!(
                "at most {} invocations, {} bytes of workgroup memory",
                shaders.most_invocations, shaders.most_workgroup_bytes
            ),
        );
    }
    for kernel in library.shaders.iter().filter(|kernel| kernel.error.is_some()).take(LISTED) {
        line(text, "not valid", &format!("{}: {}", kernel.name, kernel.error.as_deref().unwrap_or_default()));
    }
    for memory in &summary.memories {
        let maximum = memory.maximum.map_or_else(|| "no maximum".to_owned(), |pages| format!("at most {pages} pages"));
        let more = [(memory.imported, ", imported"), (memory.shared, ", shared"), (memory.wide, ", 64-bit")];
        let more: String = more.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        line(
            text,
            "memory",
            &format!("{} pages, {maximum}{more}; {} bytes of data", memory.minimum, summary.data_size),
        );
    }
    for import in &library.imports {
        let signature = import.signature.as_deref().map(|signature| format!(" {signature}")).unwrap_or_default();
        line(text, "import", &format!("{}.{}{signature}", import.module, import.name));
    }
    line(text, "exports", &summary.exports.to_string());
    line(text, "features", &if summary.features.is_empty() { "none".to_owned() } else { summary.features.join(" ") });
    for section in &library.sections {
        line(text, "section", &format!("{:>10} bytes at {:#x}  {}", section.size, section.offset, section.name));
    }
}

fn render_model(text: &mut String, model: &Model) {
    line(text, "producer", &format!("{}, format {}", model.producer, model.ir_version));
    for (domain, version) in &model.opsets {
        let domain = if domain.is_empty() { "ai.onnx" } else { domain };
        line(text, "operators", &format!("of {domain}, version {version}"));
    }
    let values = |values: &[ValueInfo]| values.iter().take(LISTED).map(ToString::to_string).collect::<Vec<_>>();
    for input in values(&model.inputs) {
        line(text, "input", &input);
    }
    for output in values(&model.outputs) {
        line(text, "output", &output);
    }
    for (operator, count) in &model.operators {
        line(text, "operator", &format!("{count:>6}  {operator}"));
    }
    let quantized = model.quantized().into_iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>();
    line(text, "8 bits", &if quantized.is_empty() { "none".to_owned() } else { quantized.join(", ") });
    line(text, "constants", &model.constants.len().to_string());
    for constant in model.largest(LISTED) {
        line(text, "constant", &constant);
    }
    for file in &model.external {
        line(text, "kept in", file);
    }
}

fn render_browser_module(text: &mut String, module: &BrowserModule) {
    let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    for (name, provided) in &module.provides {
        line(text, "provides", &format!("{name}: {}", list(provided)));
    }
    if module.provides.is_empty() {
        line(text, "provides", "nothing that could be found");
    }
    line(text, "calls", &list(&module.requires));
    for (limit, value) in &module.limits {
        line(text, "asks for", &format!("{limit} = {value}"));
    }
}

fn render_tensor_cache(text: &mut String, cache: &TensorCache) {
    let largest = cache.params().map(|param| param.nbytes).max().unwrap_or(0);
    line(text, "parameters", &format!("{}, the largest of {largest} bytes", cache.params().count()));
    line(text, "shards", &format!("{}, {} bytes altogether", cache.records.len(), cache.size()));
    for shard in cache.records.iter().take(LISTED) {
        let path = escape_name(&shard.data_path);
        let _ = writeln!(text, "{:>14}  {path} ({} parameters)", shard.nbytes, shard.records.len());
    }
    if cache.records.len() > LISTED {
        let _ = writeln!(text, "{:>14}  more", cache.records.len() - LISTED);
    }
}
