//! Files that were delivered in parts, as they are when they are joined: what a page gets of them.

use std::collections::BTreeMap;
use std::path::Path;

use super::SubjectError;
use crate::artifact::encoding::Encoded;
use crate::manifest::joined::read_list;
use crate::manifest::parts::{LIST_ROLE, Part};
use crate::manifest::{Entries, Entry};
use crate::pins::RelativePath;

/// The parts of each file that was delivered in some.
pub(super) type Joints = BTreeMap<RelativePath, Vec<Part>>;

/// Adds to `entries` the files that their lists of parts, which lie below `root`, are about.
pub(super) fn add(root: &Path, entries: &mut Entries) -> Result<Joints, SubjectError> {
    let lists: Vec<RelativePath> =
        entries.iter().filter(|(_, entry)| entry.role == LIST_ROLE).map(|(path, _)| path.clone()).collect();
    let mut joints = Joints::new();
    for list in lists {
        let wrong = |reason: String| SubjectError::Wrong { path: root.join(list.as_str()), reason };
        let parts = read_list(root, list.as_str()).map_err(wrong)?;
        // A list with other parts than the manifest's is not that of this delivery.
        let is_listed = |part: &Part| entries.get(&part.path).is_some_and(|entry| entry.packed == part.id);
        if let Some(part) = parts.parts.iter().find(|part| !is_listed(part)) {
            return Err(wrong(format!("the manifest says something else of its part {}", part.path)));
        }
        let encoded = Encoded {
            encoding: parts.encoding,
            encoder: parts.encoder,
            packed: parts.packed,
            unpacked: parts.unpacked,
        };
        entries.insert(parts.path.clone(), Entry::new(&parts.path, parts.role, &encoded));
        joints.insert(parts.path, parts.parts);
    }
    Ok(joints)
}
