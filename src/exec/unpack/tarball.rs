//! Tar archives.

use std::io::{self, Read};

use tar::{Archive, EntryType};

use super::UnpackError;
use super::member::Tree;

pub(super) fn unpack(reader: impl Read, tree: &mut Tree) -> Result<(), UnpackError> {
    let mut archive = Archive::new(reader);
    let entries = archive.entries().map_err(|source| tree.damaged(source))?;
    for entry in entries {
        let entry = entry.map_err(|source| tree.damaged(source))?;
        let kind = entry.header().entry_type();
        // A remark on the members that follow (git archive writes its commit there).
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let name = entry.path_bytes().into_owned();
        let Some(place) = tree.place(&name)? else { continue };
        let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        match kind {
            EntryType::Directory => tree.directory(&place)?,
            // The oldest form marks a directory by the end of its name.
            EntryType::Regular if name.ends_with(b"/") => tree.directory(&place)?,
            EntryType::Regular | EntryType::Continuous => {
                let mode = entry.header().mode().map_err(|source| tree.damaged(source))?;
                let size = entry.size();
                tree.file(&place, mode & 0o111 != 0, size, entry)?;
            }
            EntryType::Symlink => tree.link(&place, &target)?,
            EntryType::Link => tree.hard_link(&place, &target)?,
            EntryType::Char | EntryType::Block => return Err(tree.special(&place, "a device")),
            EntryType::Fifo => return Err(tree.special(&place, "a named pipe")),
            other => return Err(tree.special(&place, format!("of tar type `{}`", char::from(other.as_byte())))),
        }
    }
    // The checksum of gzip stands behind the last member.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|source| tree.damaged(source))?;
    Ok(())
}
