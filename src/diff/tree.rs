//! Directories, by path.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::finding::Sink;
use super::{Body, DiffError, compare_files};

/// What stands at a path.
#[derive(PartialEq, Eq)]
enum Entry {
    Directory,
    File { executable: bool },
    Link(PathBuf),
    Other,
}

impl Entry {
    fn name(&self) -> String {
        match self {
            Self::Directory => "a directory".into(),
            Self::File { executable: false } => "a file".into(),
            Self::File { executable: true } => "an executable file".into(),
            Self::Link(target) => format!("a link to {}", shown(target)),
            Self::Other => "neither file, directory nor link".into(),
        }
    }
}

/// Compares everything below two directories.
pub(super) fn compare(left: &Path, right: &Path, sink: &mut Sink) -> Result<(), DiffError> {
    let (before, after) = (list(left)?, list(right)?);
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    for name in names {
        sink.check()?;
        let place = shown(name);
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) => {
                if one != other {
                    sink.add(&place, Some(&one.name()), Some(&other.name()));
                }
                if let (Entry::File { .. }, Entry::File { .. }) = (one, other) {
                    let (one, other) = (Body::at(&left.join(name))?, Body::at(&right.join(name))?);
                    sink.within(place, |sink| compare_files(&one, &other, 0, sink))?;
                }
            }
            (one, other) => {
                let show = |entry: Option<&Entry>| entry.map(Entry::name);
                sink.add(&place, show(one).as_deref(), show(other).as_deref());
            }
        }
    }
    Ok(())
}

fn list(root: &Path) -> Result<BTreeMap<PathBuf, Entry>, DiffError> {
    let mut entries = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.map_err(|error| DiffError::Unreadable {
            path: error.path().unwrap_or(root).to_owned(),
            source: error.into(),
        })?;
        let name = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
        let kind = entry.file_type();
        let found = if kind.is_dir() {
            Entry::Directory
        } else if kind.is_symlink() {
            Entry::Link(std::fs::read_link(entry.path()).unwrap_or_default())
        } else if kind.is_file() {
            let mode = entry.metadata().map(|metadata| metadata.permissions().mode()).unwrap_or_default();
            Entry::File { executable: mode & 0o100 != 0 }
        } else {
            Entry::Other
        };
        entries.insert(name, found);
    }
    Ok(entries)
}

/// A path for people, of which no two look alike; names need not be text.
fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), str::to_owned)
}
