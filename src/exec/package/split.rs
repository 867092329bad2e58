//! Files over the limit, cut into parts with a list of them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::PackageError;
use crate::artifact::decoding::identify;
use crate::artifact::encoding::{Encoded, FileId};
use crate::interrupt::Interrupt;
use crate::manifest::parts::{self, LIST_ROLE, PART_ROLE, Part, Parts};
use crate::manifest::{Entries, Entry};
use crate::pins::{Encoding, RelativePath};

/// Replaces each file of `entries` below `files` that is larger than `limit` bytes by its parts and their
/// list, on disk and in `entries`.
pub(super) fn split(
    files: &Path,
    entries: &mut Entries,
    limit: u64,
    interrupt: &Interrupt,
) -> Result<(), PackageError> {
    let large: Vec<RelativePath> =
        entries.iter().filter(|(_, entry)| entry.packed.size > limit).map(|(path, _)| path.clone()).collect();
    for path in large {
        let Some(entry) = entries.remove(&path) else { continue };
        let whole = files.join(path.as_str());
        let failed = |source| PackageError::Io { path: whole.clone(), source };
        let cut = cut(files, &path, limit, interrupt).map_err(failed)?;
        fs::remove_file(&whole).map_err(failed)?;
        for part in &cut {
            add(entries, &part.path, PART_ROLE, part.id)?;
        }
        let list = Parts {
            schema: parts::SCHEMA,
            path: path.clone(),
            role: entry.role,
            encoding: entry.encoding,
            encoder: entry.encoder,
            packed: entry.packed,
            unpacked: entry.unpacked,
            parts: cut,
        };
        let name = read(&path, &parts::name_of(path.as_str()))?;
        let target = files.join(name.as_str());
        let text = serde_json::to_string_pretty(&list).map_err(|error| failed(error.into()))? + "\n";
        fs::write(&target, text).map_err(failed)?;
        add(entries, &name, LIST_ROLE, identify(&target, interrupt).map_err(failed)?)?;
    }
    Ok(())
}

fn cut(files: &Path, path: &RelativePath, limit: u64, interrupt: &Interrupt) -> io::Result<Vec<Part>> {
    let mut source = File::open(files.join(path.as_str()))?;
    let mut parts = Vec::new();
    loop {
        let name = read(path, &format!("{path}.part-{:03}", parts.len())).map_err(io::Error::other)?;
        let target = files.join(name.as_str());
        if io::copy(&mut (&mut source).take(limit.max(1)), &mut File::create_new(&target)?)? == 0 {
            fs::remove_file(target)?;
            return Ok(parts);
        }
        parts.push(Part { path: name, id: identify(&target, interrupt)? });
    }
}

/// A name made from `path`, as a path in a manifest.
fn read(path: &RelativePath, name: &str) -> Result<RelativePath, PackageError> {
    name.parse().map_err(|_| PackageError::Name { artifact: path.to_string(), path: name.into() })
}

fn add(entries: &mut Entries, path: &RelativePath, role: &str, id: FileId) -> Result<(), PackageError> {
    let encoded = Encoded { encoding: Encoding::Identity, encoder: "none".into(), packed: id, unpacked: id };
    match entries.insert(path.clone(), Entry::new(path, role, &encoded)) {
        None => Ok(()),
        Some(_) => Err(PackageError::Collision {
            first: path.as_str().into(),
            second: path.as_str().into(),
            path: path.clone(),
            other: path.clone(),
        }),
    }
}
