//! How two things differ: artifacts, archives, manifests, attestations, pins, plans, workspaces, trees.
//!
//! What a file is says its content, not its name (but for brotli, which has no mark). Each kind is
//! compared by its own parts: wasm by section, function and memory; JSON by key; archives by member;
//! an encoded file by header and content, and with what it was made of. Output is bounded and says
//! what it left out; memory is bounded too, since only files below [`IN_MEMORY`] are read whole.

mod archive;
mod bytes;
mod encoded;
mod error;
mod finding;
mod json;
mod kind;
mod lossy;
mod records;
mod text;
mod tree;
mod wasm;

pub use error::DiffError;
pub use finding::{Finding, Report, Verdict};

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::interrupt::Interrupt;
use crate::pins::Encoding;
use finding::Sink;
use kind::Kind;

/// Files up to this many bytes are read whole; of larger ones only bytes are compared.
pub const IN_MEMORY: u64 = 32 << 20;

/// How deep archives in archives are followed.
const DEEPEST: usize = 6;

/// What a comparison may show.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The most findings.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { limit: 100 }
    }
}

/// Compares what stands at two paths.
pub fn diff(left: &Path, right: &Path, options: &Options, interrupt: &Interrupt) -> Result<Report, DiffError> {
    let mut sink = Sink::new(options.limit, interrupt);
    let is_directory = |path: &Path| {
        let metadata = path.metadata().map_err(|source| DiffError::Unreadable { path: path.to_owned(), source })?;
        if metadata.is_dir() || metadata.is_file() {
            return Ok(metadata.is_dir());
        }
        let source = io::Error::other("it is neither a regular file nor a directory");
        Err(DiffError::Unreadable { path: path.to_owned(), source })
    };
    let kind = match (is_directory(left)?, is_directory(right)?) {
        (true, true) if records::is_workspace(left) && records::is_workspace(right) => {
            records::compare_workspaces(left, right, &mut sink)?;
            "workspace"
        }
        (true, true) => {
            tree::compare(left, right, &mut sink)?;
            "directory"
        }
        (false, false) => compare_files(&Body::at(left)?, &Body::at(right)?, 0, &mut sink)?,
        (true, false) | (false, true) => {
            return Err(DiffError::Unlike { left: left.to_owned(), right: right.to_owned() });
        }
    };
    Ok(sink.finish(left, right, kind))
}

/// A file to be compared: one that was named, or a copy of what was inside another.
#[derive(Debug)]
pub(crate) struct Body {
    /// What it is called, for its kind.
    name: String,
    path: PathBuf,
    size: u64,
    /// Removes a copy when it is not needed any more.
    _copy: Option<tempfile::TempPath>,
}

impl Body {
    fn at(path: &Path) -> Result<Self, DiffError> {
        let size = path.metadata().map_err(|source| DiffError::Unreadable { path: path.to_owned(), source })?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, path: path.to_owned(), size, _copy: None })
    }

    /// A copy of what `write` writes.
    fn copy(name: &str, write: impl FnOnce(&mut std::fs::File) -> io::Result<()>) -> Result<Self, DiffError> {
        let made = tempfile::NamedTempFile::new().and_then(|mut file| {
            write(file.as_file_mut())?;
            let size = file.as_file().metadata()?.len();
            Ok((file.into_temp_path(), size))
        });
        let (copy, size) = made.map_err(DiffError::Scratch)?;
        Ok(Self { name: name.to_owned(), path: copy.to_path_buf(), size, _copy: Some(copy) })
    }

    fn open(&self) -> Result<std::fs::File, DiffError> {
        std::fs::File::open(&self.path).map_err(|source| DiffError::Unreadable { path: self.path.clone(), source })
    }

    /// Its bytes, when it is small enough.
    fn load(&self) -> Result<Option<Vec<u8>>, DiffError> {
        if self.size > IN_MEMORY {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.size).unwrap_or(0));
        let read = self.open()?.take(IN_MEMORY + 1).read_to_end(&mut bytes);
        read.map_err(|source| DiffError::Unreadable { path: self.path.clone(), source })?;
        Ok((bytes.len() as u64 <= IN_MEMORY).then_some(bytes))
    }
}

/// Compares two files by what they are, and says what that is.
fn compare_files(left: &Body, right: &Body, depth: usize, sink: &mut Sink) -> Result<&'static str, DiffError> {
    sink.check()?;
    if bytes::are_equal(left, right, sink.interrupt())? {
        return Ok("file");
    }
    let (kind, other) = (kind::recognize(left)?, kind::recognize(right)?);
    let nested = depth < DEEPEST;
    let encodings = [kind.encoding(), other.encoding()];
    if kind != other && nested && encodings != [Encoding::Identity; 2] {
        encoded::compare(encodings, left, right, depth, sink)?;
        return Ok("file");
    }
    if kind != other {
        sink.add("kind", Some(kind.name()), Some(other.name()));
        bytes::compare(left, right, sink)?;
        return Ok("file");
    }
    match kind {
        Kind::Encoded(_) if nested => encoded::compare(encodings, left, right, depth, sink)?,
        Kind::Zip if nested => archive::compare_zips(left, right, depth, sink)?,
        Kind::Tar if nested => archive::compare_tars(left, right, depth, sink)?,
        Kind::Wasm | Kind::Json | Kind::Toml | Kind::Text => match (left.load()?, right.load()?) {
            (Some(first), Some(second)) => match kind {
                Kind::Wasm => wasm::compare(&first, &second, sink),
                Kind::Json => json::compare_documents(&first, &second, sink),
                Kind::Toml => records::compare_tomls(&first, &second, sink),
                _ => text::compare(&first, &second, sink),
            },
            _ => bytes::compare(left, right, sink)?,
        },
        _ => bytes::compare(left, right, sink)?,
    }
    Ok(kind.name())
}
