//! Directories, by path.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::finding::Sink;
use super::{Body, DiffError, compare_files};

/// What stands at a path.
#[derive(PartialEq, Eq)]
enum Entry {
    Directory,
    File { executable: bool },
    Link(String),
    Other,
}

impl Entry {
    fn name(&self) -> String {
        match self {
            Self::Directory => "a directory".into(),
            Self::File { executable: false } => "a file".into(),
            Self::File { executable: true } => "an executable file".into(),
            Self::Link(target) => format!("a link to {target}"),
            Self::Other => "neither file, directory nor link".into(),
        }
    }
}

/// Compares everything below two directories.
pub(super) fn compare(left: &Path, right: &Path, sink: &mut Sink) -> Result<(), DiffError> {
    let (before, after) = (list(left)?, list(right)?);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        sink.check()?;
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) => {
                if one != other {
                    sink.add(name, Some(&one.name()), Some(&other.name()));
                }
                if let (Entry::File { .. }, Entry::File { .. }) = (one, other) {
                    let (one, other) = (Body::at(&left.join(name))?, Body::at(&right.join(name))?);
                    sink.within(name, |sink| compare_files(&one, &other, 0, sink))?;
                }
            }
            (one, other) => {
                let show = |entry: Option<&Entry>| entry.map(Entry::name);
                sink.add(name, show(one).as_deref(), show(other).as_deref());
            }
        }
    }
    Ok(())
}

fn list(root: &Path) -> Result<BTreeMap<String, Entry>, DiffError> {
    let mut entries = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.map_err(|error| DiffError::Unreadable {
            path: error.path().unwrap_or(root).to_owned(),
            source: error.into(),
        })?;
        let name = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_string_lossy().into_owned();
        let kind = entry.file_type();
        let found = if kind.is_dir() {
            Entry::Directory
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path());
            Entry::Link(target.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default())
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
