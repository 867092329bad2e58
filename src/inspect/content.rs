//! What is in a file: which kind it is, and that kind's facts.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::InspectError;
use crate::artifact::browser::{self, BrowserModule};
use crate::artifact::encoding::FileId;
use crate::artifact::library::{self, Library};
use crate::artifact::onnx;
use crate::artifact::wasm;
use crate::artifact::weights::{self, TensorCache};
use crate::manifest::{Entries, Manifest};
use crate::pins::Encoding;

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "facts")]
pub enum Content {
    /// A WebAssembly module, with what makes it a model library.
    Wasm(Box<Library>),
    /// A browser module: JavaScript.
    BrowserModule(BrowserModule),
    /// A list of a model's shards.
    TensorCache(TensorCache),
    /// A manifest of this program.
    Manifest(ManifestFacts),
    /// LLVM bitcode.
    Bitcode(Bitcode),
    /// An ONNX model.
    Onnx(Box<onnx::Model>),
    /// Some other JSON document, with the keys of its object.
    Json {
        /// The keys.
        keys: BTreeSet<String>,
    },
    /// Anything else.
    Unknown,
}

/// What a manifest lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestFacts {
    /// Its artifacts, largest first.
    pub artifacts: Vec<Artifact>,
}

/// An artifact in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Its path.
    pub path: String,
    /// What it is to the site.
    pub role: String,
    /// How it is encoded.
    pub encoding: Encoding,
    /// The file as it is delivered.
    pub packed: FileId,
    /// What decoding gives.
    pub unpacked: FileId,
}

/// How LLVM bitcode is wrapped ("LLVM Bitcode File Format").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bitcode {
    /// Whether a wrapper header stands before it.
    pub wrapped: bool,
    /// The wrapper's word for the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_type: Option<u32>,
}

/// `'BC' 0xC0DE`.
const BITCODE: &[u8] = b"BC\xc0\xde";

/// The wrapper's magic, 0x0B17C0DE, little-endian.
const WRAPPER: &[u8] = b"\xde\xc0\x17\x0b";

/// Whether a file that begins with `head` and is called `name` is of a kind that is read as a whole.
pub(super) fn is_read(head: &[u8], name: &str) -> bool {
    head.starts_with(wasm::MAGIC) || is_script(name) || matches!(suffix(name), "wasm" | "onnx") || is_json(head, name)
}

fn is_script(name: &str) -> bool {
    matches!(suffix(name), "js" | "cjs" | "mjs")
}

fn suffix(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

fn is_json(head: &[u8], name: &str) -> bool {
    suffix(name) == "json" || head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// What is in `bytes`, the start or the whole of a file of `size` bytes called `name`. `path` is for
/// errors.
pub(super) fn read(path: &Path, name: &str, bytes: &[u8], size: u64) -> Result<Content, InspectError> {
    let malformed = |reason: String| InspectError::Malformed { path: path.to_owned(), reason };
    if bytes.starts_with(wasm::MAGIC) || suffix(name) == "wasm" {
        let library = library::read(bytes).map_err(|source| InspectError::Library { path: path.to_owned(), source })?;
        return Ok(Content::Wasm(Box::new(library)));
    }
    if bytes.starts_with(BITCODE) || bytes.starts_with(WRAPPER) || suffix(name) == "bc" {
        return bitcode(bytes, size).map(Content::Bitcode).map_err(malformed);
    }
    if suffix(name) == "onnx" {
        let model = onnx::read(bytes).map_err(|error| malformed(error.to_string()))?;
        return Ok(Content::Onnx(Box::new(model)));
    }
    if is_script(name) {
        return Ok(Content::BrowserModule(browser::read(&String::from_utf8_lossy(bytes))));
    }
    if is_json(bytes, name) {
        return json(path, name, bytes);
    }
    Ok(Content::Unknown)
}

fn json(path: &Path, name: &str, bytes: &[u8]) -> Result<Content, InspectError> {
    let malformed = |reason: String| InspectError::Malformed { path: path.to_owned(), reason };
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) if suffix(name) == "json" => return Err(malformed(format!("not JSON: {error}"))),
        Err(_) => return Ok(Content::Unknown),
    };
    let keys: BTreeSet<String> = value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    if matches!(name, "tensor-cache.json" | "ndarray-cache.json") || value["records"].is_array() {
        return weights::read(bytes).map(Content::TensorCache).map_err(|error| malformed(error.to_string()));
    }
    if !keys.contains("artifacts") || !keys.contains("schema") {
        return Ok(Content::Json { keys });
    }
    // Checks the file in the strict way of the manifest's own reader.
    Manifest::parse(path, bytes.to_vec()).map_err(|error| malformed(error.to_string()))?;
    let entries: Entries = serde_json::from_value(value["artifacts"].clone())
        .map_err(|error| malformed(format!("not a manifest of this program: {error}")))?;
    let mut artifacts: Vec<Artifact> = entries
        .into_iter()
        .map(|(path, entry)| Artifact {
            path: path.to_string(),
            role: entry.role,
            encoding: entry.encoding,
            packed: entry.packed,
            unpacked: entry.unpacked,
        })
        .collect();
    artifacts.sort_by(|a, b| b.packed.size.cmp(&a.packed.size).then_with(|| a.path.cmp(&b.path)));
    Ok(Content::Manifest(ManifestFacts { artifacts }))
}

/// The wrapper is five words: magic, version, offset and size of the bitcode, processor.
fn bitcode(bytes: &[u8], size: u64) -> Result<Bitcode, String> {
    if bytes.starts_with(BITCODE) {
        return Ok(Bitcode { wrapped: false, cpu_type: None });
    }
    if !bytes.starts_with(WRAPPER) {
        return Err("expected LLVM bitcode, which begins with `BC` 0xc0de or a wrapper".into());
    }
    let word = |index: usize| {
        let four = bytes.get(4 * index..4 * index + 4)?;
        Some(u32::from_le_bytes(four.try_into().ok()?))
    };
    let (offset, length) = word(2).zip(word(3)).ok_or("the bitcode wrapper ends before its fifth word")?;
    if u64::from(offset) + u64::from(length) > size {
        return Err(format!(
            "the wrapper announces {length} bytes of bitcode at offset {offset:#x}, but the file has {size}"
        ));
    }
    Ok(Bitcode { wrapped: true, cpu_type: word(4) })
}
