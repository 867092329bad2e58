//! The manifest: which files were delivered, with both digests, in a JSON file that a site may share.
//!
//! Schema 1 is an object with `schema` (the number 1) and `artifacts`, an object from the path of
//! each delivered file, relative to the directory it was delivered to, to an [`Entry`]:
//!
//! ```json
//! {
//!   "schema": 1,
//!   "artifacts": {
//!     "model/lib.wasm.gz": {
//!       "role": "model-library",
//!       "encoding": "gzip",
//!       "encoder": "flate2 1.1.11, zlib-rs 0.6.8, level 9",
//!       "packed": { "sha256": "…", "size": 1 },
//!       "unpacked": { "sha256": "…", "size": 2 },
//!       "integrity": { "packed": "sha256-…", "unpacked": "sha256-…" },
//!       "hashedName": "lib.0123456789abcdef.wasm.gz"
//!     }
//!   }
//! }
//! ```
//!
//! Whatever else stands in the file belongs to the site and keeps its bytes: other keys at every
//! level, other artifacts, the order of keys, the way numbers are written, the indentation. Only in
//! `integrity` does verification accept no key but the two.

mod entry;
mod error;
pub mod joined;
mod json;
mod merge;
pub mod parts;

pub(crate) use entry::hashed_name;
pub use entry::{Entry, Integrity, integrity_of};
pub use error::ManifestError;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use self::json::Node;
use crate::artifact::encoding::FileId;
use crate::pins::RelativePath;
use crate::printable::{cut, escape_name};
use crate::replace::{self, Replacement};

/// The schema of manifests that this version reads and writes.
pub const SCHEMA: u32 = 1;

/// The most bytes that a manifest may have: some 90 000 artifacts, far more than a site delivers,
/// and little enough to be held in memory several times over.
pub const LARGEST: u64 = 64 << 20;

/// A build's artifacts, by path from the directory they are delivered to.
pub type Entries = BTreeMap<RelativePath, Entry>;

/// A manifest as it stands in a file.
#[derive(Debug, Clone)]
pub struct Manifest {
    text: String,
    root: Node,
    has_schema: bool,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    fn of(text: &str, at: usize) -> Self {
        let before = &text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl Manifest {
    /// Reads the file at `path`, a regular one of at most [`LARGEST`] bytes.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        Self::parse(path, read_file(path)?)
    }

    /// Reads `bytes`; `path` is for errors only.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, ManifestError> {
        let invalid = |place, reason| ManifestError::Invalid { path: path.to_owned(), place, reason };
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let start = String::from_utf8_lossy(&error.as_bytes()[..valid]);
            invalid(Place::of(&start, start.len()), "a byte is not UTF-8".into())
        })?;
        let root = json::parse(&text).map_err(|fault| invalid(fault.place, fault.reason))?;
        let wrong = |node: &Node, reason: &str| invalid(Place::of(&text, node.span.start), reason.into());
        if root.members().is_none() {
            return Err(wrong(&root, "an object is wanted"));
        }
        if let Some(artifacts) = root.get("artifacts").filter(|artifacts| artifacts.members().is_none()) {
            return Err(wrong(artifacts, "`artifacts` must be an object"));
        }
        let schema = root.get("schema");
        if let Some(node) = schema {
            let found = &text[node.span.clone()];
            let digits = !found.is_empty() && found.bytes().all(|byte| byte.is_ascii_digit());
            if !digits || found == "0" {
                return Err(wrong(
                    node,
                    &format!("`schema` must be a whole number from 1, found {}", cut(&escape_name(found), 80)),
                ));
            }
            if found.parse::<u32>().ok().is_none_or(|number| number > SCHEMA) {
                return Err(ManifestError::Newer { path: path.to_owned(), found: cut(found, 80) });
            }
        }
        let has_schema = schema.is_some();
        Ok(Self { text, root, has_schema })
    }

    /// A manifest with nothing but `entries`, as a new file has it.
    pub fn fresh(entries: &Entries) -> String {
        format!("{:#}\n", document(entries))
    }

    /// Whether it says which schema it has.
    pub fn has_schema(&self) -> bool {
        self.has_schema
    }

    /// Whether it has a member called `key`.
    pub fn has_member(&self, key: &str) -> bool {
        self.root.get(key).is_some()
    }

    /// Path and JSON text of each artifact, in the file's order.
    pub fn artifacts(&self) -> impl Iterator<Item = (&str, &str)> {
        let members = self.root.get("artifacts").and_then(Node::members).unwrap_or_default();
        members.iter().map(|member| (member.key.as_str(), &self.text[member.value.span.clone()]))
    }

    /// Every artifact, all of which must be entries as this version writes them.
    pub fn entries(&self, path: &Path) -> Result<Entries, ManifestError> {
        let members = self.root.get("artifacts").and_then(Node::members).unwrap_or_default();
        let entry = |member: &json::Member| {
            let invalid = |reason: String| ManifestError::Invalid {
                path: path.to_owned(),
                place: Place::of(&self.text, member.key_span.start),
                reason,
            };
            let name = member.key.parse::<RelativePath>().map_err(|error| invalid(error.to_string()))?;
            let entry = serde_json::from_str(&self.text[member.value.span.clone()])
                .map_err(|error| invalid(escape_name(&format!("artifact {}: {error}", member.key))))?;
            Ok((name, entry))
        };
        members.iter().map(entry).collect()
    }

    /// Its text with `entries` in it.
    pub fn with(&self, entries: &Entries) -> String {
        merge::merge(&self.text, &self.root, &document(entries))
    }
}

fn document(entries: &Entries) -> serde_json::Value {
    json!({ "schema": SCHEMA, "artifacts": entries })
}

/// Both identities of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identities {
    /// As delivered.
    pub packed: FileId,
    /// As built.
    pub unpacked: FileId,
}

/// What a build changes in the record of one artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The artifact.
    pub path: RelativePath,
    /// How it differs.
    pub kind: ChangeKind,
    /// What the manifest said before; nothing when it had no readable entry.
    pub before: Option<Identities>,
    /// What it says now.
    pub after: Identities,
}

/// How an artifact differs from the one recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// It was not recorded before.
    Added,
    /// Both digests are as they were.
    Same,
    /// The content is as it was, and the encoded bytes are not.
    Repacked,
    /// The content is another.
    Changed,
}

/// What `new` changes in `old`, by path.
pub fn changes(old: Option<&Manifest>, new: &Entries) -> Vec<Change> {
    let recorded: BTreeMap<&str, &str> = old.into_iter().flat_map(Manifest::artifacts).collect();
    let change = |(path, entry): (&RelativePath, &Entry)| {
        let text = recorded.get(path.as_str());
        let before: Option<Identities> = text.and_then(|text| serde_json::from_str(text).ok());
        let after = Identities { packed: entry.packed, unpacked: entry.unpacked };
        let kind = match before {
            None if text.is_none() => ChangeKind::Added,
            Some(before) if before == after => ChangeKind::Same,
            Some(before) if before.unpacked == after.unpacked => ChangeKind::Repacked,
            _ => ChangeKind::Changed,
        };
        Change { path: path.clone(), kind, before, after }
    };
    new.iter().map(change).collect()
}

/// A new text for a manifest, written beside it and not yet in its place.
#[derive(Debug)]
pub struct Update {
    path: PathBuf,
    replacement: Option<Replacement>,
    changes: Vec<Change>,
}

impl Update {
    /// Reads the manifest at `path`, if there is one, and writes the text with `entries` beside it.
    ///
    /// A symbolic link stays one: the file it points to is the one that will be replaced.
    pub fn prepare(path: &Path, entries: &Entries) -> Result<Self, ManifestError> {
        let target = resolve(path)?;
        let old = match Manifest::read(path) {
            Ok(manifest) => Some(manifest),
            Err(ManifestError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let changes = changes(old.as_ref(), entries);
        let text = old.as_ref().map_or_else(|| Manifest::fresh(entries), |old| old.with(entries));
        let replacement = if old.is_some_and(|old| old.text == text) {
            None
        } else {
            Some(
                write_beside(&target, &text)
                    .map_err(|source| ManifestError::Write { path: path.to_owned(), source })?,
            )
        };
        Ok(Self { path: path.to_owned(), replacement, changes })
    }

    /// What it changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Puts the new text in the manifest's place. A text that would not change is not written.
    pub fn commit(self) -> Result<Vec<Change>, ManifestError> {
        if let Some(replacement) = self.replacement {
            replacement.commit().map_err(|source| ManifestError::Write { path: self.path, source })?;
        }
        Ok(self.changes)
    }
}

fn write_beside(target: &Path, text: &str) -> io::Result<Replacement> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut replacement = Replacement::begin(target)?;
    replacement.write_all(text.as_bytes())?;
    replacement.sync()?;
    Ok(replacement)
}

fn read_file(path: &Path) -> Result<Vec<u8>, ManifestError> {
    let failed = |source| ManifestError::Read { path: path.to_owned(), source };
    // Asked before it is opened: opening a pipe would wait for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ManifestError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    // Whatever size the system tells, a file may go on.
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ManifestError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

/// Where the file is that `path` means.
fn resolve(path: &Path) -> Result<PathBuf, ManifestError> {
    replace::resolve(path).map_err(|error| match fs::read_link(path) {
        Ok(target) if error.kind() == io::ErrorKind::NotFound => {
            ManifestError::Dangling { path: path.to_owned(), target }
        }
        _ => ManifestError::Read { path: path.to_owned(), source: error },
    })
}

#[cfg(test)]
mod tests;
