//! What a file looks like that is not the one that was wanted: the usual stand-ins.

use std::io::Read;
use std::path::Path;

/// A stand-in for the wanted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// An HTML page: a login form, an error page, a download button.
    Html,
    /// A Git LFS pointer, which stands in a repository for a large file.
    LfsPointer,
    /// A JSON or XML document, as storage services answer errors.
    ErrorDocument,
    /// No bytes at all.
    Empty,
}

impl Likeness {
    /// What it is, as part of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Html => "an HTML page in place of the file",
            Self::LfsPointer => "a Git LFS pointer in place of the file",
            Self::ErrorDocument => "a document that tells of an error in place of the file",
            Self::Empty => "an empty file",
        }
    }
}

/// What the file at `path` looks like, judged by its first bytes.
pub fn likeness(path: &Path) -> Option<Likeness> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    if head.is_empty() {
        Some(Likeness::Empty)
    } else if text.starts_with("version https://git-lfs.github.com/spec/") {
        Some(Likeness::LfsPointer)
    } else if ["<!doctype html", "<html", "<head"].iter().any(|start| text.starts_with(start)) {
        Some(Likeness::Html)
    } else if text.starts_with("<?xml") && text.contains("<error>") || text.starts_with("{\"error\"") {
        Some(Likeness::ErrorDocument)
    } else {
        None
    }
}
