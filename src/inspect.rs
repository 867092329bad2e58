//! Looking into files: what they are and what is in them, as facts for people and programs.
//!
//! A packed file (`.gz`, `.br`) is unpacked first. What kind a file is its content says, for formats
//! that begin with a mark of their own, else its name.
//!
//! **Invariant**: nothing here judges. [`gate`](crate::gate) does, on the same facts.

mod content;
mod error;
mod render;

pub use content::{Artifact, Bitcode, Content, ManifestFacts};
pub use error::InspectError;
pub use render::render;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::artifact::decoding::{decode, identify};
use crate::artifact::encoding::FileId;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::pins::Encoding;

/// The schema of inspections.
pub const SCHEMA: u32 = 1;

/// The most bytes that are unpacked or held in memory.
const LARGEST: u64 = 1 << 30;

/// Bytes by which a format is recognised.
const HEAD: u64 = 64;

/// What was found in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Always 1 ([`SCHEMA`]).
    pub schema: u32,
    /// The file.
    pub path: PathBuf,
    /// How it is packed.
    pub encoding: Encoding,
    /// The file as it is.
    pub packed: FileId,
    /// What unpacking gives; the same when it is not packed.
    pub unpacked: FileId,
    /// What is in it.
    pub content: Content,
}

/// A file whose bytes were read, and what was found in it.
#[derive(Debug)]
pub struct Inspected {
    /// What was found.
    pub inspection: Inspection,
    /// The unpacked bytes; empty for a large file of a kind that is not read.
    pub bytes: Vec<u8>,
}

/// Looks into the file at `path`.
pub fn inspect(path: &Path, interrupt: &Interrupt) -> Result<Inspected> {
    let unreadable = |source| InspectError::Read { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(InspectError::NotAFile { path: path.to_owned() }.into());
    }
    let head = head(path).map_err(unreadable)?;
    let encoding = match path.extension().and_then(|extension| extension.to_str()) {
        _ if head.starts_with(&[0x1f, 0x8b]) => Encoding::Gzip,
        // One that lacks the mark is no good, whatever else it may be.
        Some("gz" | "tgz") => Encoding::Gzip,
        // Brotli has no mark of its own.
        Some("br") => Encoding::Brotli,
        _ => Encoding::Identity,
    };
    let name = inner_name(path, encoding);
    let mut bytes = Vec::new();
    let (packed, unpacked) = if encoding == Encoding::Identity && !content::is_read(&head, &name) {
        let id = identify(path, interrupt).map_err(unreadable)?;
        bytes = head;
        (id, id)
    } else {
        let decoded = decode(path, encoding, LARGEST, &mut bytes, interrupt).map_err(unreadable)?;
        let unpacked = decoded.unpacked.map_err(|source| InspectError::Packed { path: path.to_owned(), source })?;
        (decoded.packed, unpacked)
    };
    let content = content::read(path, &name, &bytes, unpacked.size)?;
    let inspection = Inspection { schema: SCHEMA, path: path.to_owned(), encoding, packed, unpacked, content };
    Ok(Inspected { inspection, bytes })
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The file's name without the encoding's suffix.
fn inner_name(path: &Path, encoding: Encoding) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let suffix = encoding.suffix();
    name.strip_suffix(suffix).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests;
