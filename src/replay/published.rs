//! The published artifacts beside those that a replay made.

use std::path::Path;

use crate::artifact::decoding::decode;
use crate::artifact::encoding::FileId;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::manifest::Entries;
use crate::pins::RelativePath;

use super::ReplayError;

/// How a published artifact compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    Same,
    SameUnpacked,
    Another,
    Absent,
}

/// Compares the files below `root` with what was made.
pub(super) fn compare(root: &Path, made: &Entries, interrupt: &Interrupt) -> Result<Vec<(RelativePath, Likeness)>> {
    let mut found = Vec::new();
    for (path, entry) in made {
        let file = root.join(path.as_str());
        if !file.is_file() {
            found.push((path.clone(), Likeness::Absent));
            continue;
        }
        // A little more than was made is enough to see that it is another.
        let limit = entry.unpacked.size.saturating_add(1);
        let decoded = decode(&file, entry.encoding, limit, std::io::sink(), interrupt);
        interrupt.check()?;
        let decoded = decoded.map_err(|source| ReplayError::Io { path: file.clone(), source })?;
        let same = |one: &FileId, other: &FileId| one == other;
        let likeness = if same(&decoded.packed, &entry.packed) {
            Likeness::Same
        } else if decoded.unpacked.as_ref().is_ok_and(|unpacked| same(unpacked, &entry.unpacked)) {
            Likeness::SameUnpacked
        } else {
            Likeness::Another
        };
        found.push((path.clone(), likeness));
    }
    Ok(found)
}
