//! Subjects: every artifact, as it is delivered and as it was built; and the way back to entries of a
//! manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptor::ResourceDescriptor;
use crate::artifact::encoding::Encoded;
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

/// A subject that does not say of which artifact it speaks, or contradicts another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("subject {name}: {reason}")]
pub struct NotASubject {
    /// The subject's name.
    pub name: String,
    /// What is wrong.
    pub reason: String,
}

/// The manifest entries that `subjects` speak of: what [`subjects`] was made from.
pub fn entries(stated: &[ResourceDescriptor]) -> Result<Entries, NotASubject> {
    let refused = |subject: &ResourceDescriptor, reason: &str| NotASubject {
        name: subject.name().to_owned(),
        reason: reason.to_owned(),
    };
    let of_form = |form: &str| -> BTreeMap<&str, &ResourceDescriptor> {
        let chosen = stated.iter().filter(|subject| subject.annotation("form") == form);
        chosen.map(|subject| (subject.annotation("artifact"), subject)).collect()
    };
    let (packed, unpacked) = (of_form(PACKED), of_form(UNPACKED));
    let mut entries = Entries::new();
    for (artifact, subject) in &packed {
        let path: RelativePath = artifact.parse().map_err(|_| refused(subject, "its artifact is not a path"))?;
        let id = |subject: &ResourceDescriptor| {
            subject.file_id().ok_or_else(|| refused(subject, "it lacks a sha256 or a size"))
        };
        let encoding = serde_json::from_value(subject.annotation("encoding").into())
            .map_err(|_| refused(subject, "its encoding is not known"))?;
        let content = match unpacked.get(artifact) {
            Some(content) => content,
            None if encoding == Encoding::Identity => subject,
            None => return Err(refused(subject, "there is no subject for what decoding it gives")),
        };
        let encoder = subject.annotation("encoder").to_owned();
        let file = Encoded { encoding, encoder, packed: id(subject)?, unpacked: id(content)? };
        entries.insert(path.clone(), Entry::new(&path, subject.annotation("role"), &file));
    }
    // Names and everything else follow from the entries, so that nothing can stand beside them.
    let again = subjects(&entries);
    let mut wanted: BTreeMap<&str, &ResourceDescriptor> =
        again.iter().map(|subject| (subject.name(), subject)).collect();
    for subject in stated {
        match wanted.remove(subject.name()) {
            Some(again) if again == subject => {}
            _ => return Err(refused(subject, "it contradicts its artifact, or another subject of the same name")),
        }
    }
    // Each subject has been one of these, and each of these was made from a subject.
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::encoding::FileId;
    use crate::digest::Digest;

    fn made(files: &[(&str, Encoding)]) -> Entries {
        let entry = |(name, encoding): &(&str, Encoding)| {
            let path: RelativePath = name.parse().unwrap();
            let unpacked = FileId { sha256: Digest::of(name.as_bytes()), size: 7 };
            let packed = FileId { sha256: Digest::of(b"packed"), size: 3 };
            let packed = if *encoding == Encoding::Identity { unpacked } else { packed };
            let encoded = Encoded { encoding: *encoding, encoder: "e".into(), packed, unpacked };
            (path.clone(), Entry::new(&path, "role", &encoded))
        };
        files.iter().map(entry).collect()
    }

    #[test]
    fn entries_come_back_and_names_are_unique() {
        let files = [
            ("a.wasm", Encoding::Identity),
            ("a.wasm.gz", Encoding::Gzip),
            ("a.wasm.br", Encoding::Brotli),
            ("odd", Encoding::Gzip),
        ];
        let made = made(&files);
        let stated = subjects(&made);
        let names: Vec<_> = stated.iter().map(ResourceDescriptor::name).collect();
        assert_eq!(
            names,
            ["a.wasm", "a.wasm.br", "a.wasm.br#unpacked", "a.wasm.gz", "a.wasm.gz#unpacked", "odd", "odd#unpacked"]
        );
        assert_eq!(entries(&stated).unwrap(), made);
    }

    #[test]
    fn a_subject_that_was_changed_added_or_taken_away_is_named() {
        let stated = subjects(&made(&[("a.wasm.gz", Encoding::Gzip), ("b", Encoding::Identity)]));
        let spoilt = |spoil: &dyn Fn(&mut Vec<ResourceDescriptor>)| {
            let mut stated = stated.clone();
            spoil(&mut stated);
            entries(&stated).unwrap_err().to_string()
        };
        let shown = [
            spoilt(&|stated| stated[1].name = Some("b.wasm".into())),
            spoilt(&|stated| drop(stated.remove(1))),
            spoilt(&|stated| drop(stated.remove(0))),
            spoilt(&|stated| stated.push(stated[0].clone())),
            spoilt(&|stated| drop(stated[0].digest.remove("sha256"))),
            spoilt(&|stated| drop(stated[2].annotations.insert("encoding".into(), "zstd".into()))),
            spoilt(&|stated| drop(stated[2].annotations.insert("artifact".into(), "../b".into()))),
            spoilt(&|stated| stated.push(ResourceDescriptor::named("c").sha256(Digest::of(b"")))),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r#"
        subject b.wasm: it contradicts its artifact, or another subject of the same name
        subject a.wasm.gz: there is no subject for what decoding it gives
        subject a.wasm: it contradicts its artifact, or another subject of the same name
        subject a.wasm.gz: it contradicts its artifact, or another subject of the same name
        subject a.wasm.gz: it lacks a sha256 or a size
        subject b: its encoding is not known
        subject b: its artifact is not a path
        subject c: it contradicts its artifact, or another subject of the same name
        "#);
    }
}
