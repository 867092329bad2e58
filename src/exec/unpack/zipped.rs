//! Zip archives.

use std::fs::File;
use std::io::{self, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::UnpackError;
use super::member::Tree;

/// The longest target of a symbolic link, in bytes.
const MAX_TARGET: u64 = 4096;

pub(super) fn unpack(file: File, tree: &mut Tree) -> Result<(), UnpackError> {
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|error| damaged(tree, error))?;
    // The index keeps one of two equal names; which one, readers disagree on.
    if archive.has_duplicate_names() {
        return Err(UnpackError::Twice { archive: tree.archive.to_owned(), member: "a name in its directory".into() });
    }
    if archive.has_overlapping_files().map_err(|error| damaged(tree, error))? {
        return Err(tree.damaged(io::Error::new(io::ErrorKind::InvalidData, "members overlap")));
    }
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| damaged(tree, error))?;
        let name = member.name_raw().to_vec();
        if name.contains(&b'\\') {
            let shown = String::from_utf8_lossy(&name).into_owned();
            let reason = "has a `\\` in its path";
            return Err(UnpackError::Name { archive: tree.archive.to_owned(), member: shown, reason });
        }
        let Some(place) = tree.place(&name)? else { continue };
        let mode = member.unix_mode().unwrap_or(0);
        if member.encrypted() {
            return Err(tree.special(&place, "encrypted"));
        }
        if member.is_dir() {
            tree.directory(&place)?;
        } else if member.is_symlink() {
            let mut target = Vec::new();
            member.by_ref().take(MAX_TARGET).read_to_end(&mut target).map_err(|source| tree.damaged(source))?;
            tree.link(&place, &target)?;
        } else if !matches!(mode & 0o170_000, 0 | 0o100_000) {
            return Err(tree.special(&place, format!("of mode {mode:o}")));
        } else {
            let size = member.size();
            tree.file(&place, mode & 0o111 != 0, size, member)?;
        }
    }
    Ok(())
}

fn damaged(tree: &Tree, error: ZipError) -> UnpackError {
    match error {
        ZipError::Io(source) => tree.damaged(source),
        other => tree.damaged(io::Error::new(io::ErrorKind::InvalidData, other.to_string())),
    }
}
