//! Subjects: every artifact, as it is delivered and as it was built.

use std::collections::BTreeSet;

use super::descriptor::ResourceDescriptor;
use crate::manifest::{Entries, Entry};
use crate::pins::{Encoding, RelativePath};

/// The annotation `form` of a subject that is a delivered file.
pub(super) const PACKED: &str = "packed";

/// The annotation `form` of a subject that decoding gives.
pub(super) const UNPACKED: &str = "unpacked";

/// Two subjects for each artifact, or one where nothing is encoded. The unpacked one is called what the
/// file is called without its encoding's suffix, or, where that is taken, `<path>#unpacked`.
pub fn subjects(entries: &Entries) -> Vec<ResourceDescriptor> {
    let mut taken: BTreeSet<String> = entries.keys().map(ToString::to_string).collect();
    let mut subjects = Vec::new();
    for (path, entry) in entries {
        subjects.push(packed(path, entry));
        if entry.encoding == Encoding::Identity {
            continue;
        }
        let bare = path.as_str().strip_suffix(entry.encoding.suffix()).filter(|bare| !bare.is_empty());
        let name = bare.filter(|bare| !taken.contains(*bare)).map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("{path}#unpacked"));
        taken.insert(name.clone());
        let subject = ResourceDescriptor::named(name).sha256(entry.unpacked.sha256);
        subjects.push(subject.note("artifact", path.as_str()).note("form", UNPACKED).note("size", entry.unpacked.size));
    }
    subjects
}

fn packed(path: &RelativePath, entry: &Entry) -> ResourceDescriptor {
    ResourceDescriptor::named(path.as_str())
        .sha256(entry.packed.sha256)
        .note("artifact", path.as_str())
        .note("form", PACKED)
        .note("size", entry.packed.size)
        .note("role", entry.role.as_str())
        .note("encoding", entry.encoding.name())
        .note("encoder", entry.encoder.as_str())
}
