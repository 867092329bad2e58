//! Files that were delivered in parts: are they what their list says when they are joined?

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::Value;

use super::problem::{Finding, Problem};
use crate::artifact::decoding::decode_from;
use crate::interrupt::Interrupt;
use crate::manifest::Manifest;
use crate::manifest::joined::{join, read_list};
use crate::manifest::parts::{LIST_ROLE, PART_ROLE, Part, Parts};

/// What is wrong with the lists of parts in `manifest`, whose artifacts lie below `root` and are what
/// their own entries say.
pub(super) fn check(manifest: &Manifest, root: &Path, interrupt: &Interrupt) -> Vec<Finding> {
    let entries: BTreeMap<&str, Value> =
        manifest.artifacts().map(|(name, text)| (name, serde_json::from_str(text).unwrap_or_default())).collect();
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for (name, _) in entries.iter().filter(|(_, entry)| entry["role"] == LIST_ROLE) {
        match check_list(name, &entries, root, interrupt) {
            Ok(parts) => listed.extend(parts.parts.into_iter().map(|part| part.path.to_string())),
            Err(reason) => findings.push(Finding::new(Some(name), Problem::Parts { reason })),
        }
    }
    // Without a whole list nobody can join them, and with a wrong one that was said.
    let parts = entries.iter().filter(|(name, entry)| entry["role"] == PART_ROLE && !listed.contains(**name));
    if findings.is_empty() {
        findings.extend(parts.map(|(name, _)| {
            Finding::new(Some(name), Problem::Parts { reason: "it is a part, and no list names it".into() })
        }));
    }
    findings
}

fn check_list(
    name: &str,
    entries: &BTreeMap<&str, Value>,
    root: &Path,
    interrupt: &Interrupt,
) -> Result<Parts, String> {
    let parts = read_list(root, name)?;
    for Part { path, id } in &parts.parts {
        let Some(entry) = entries.get(path.as_str()) else {
            return Err(format!("its part {path} is not in the manifest"));
        };
        let (sha256, size) = (&entry["packed"]["sha256"], &entry["packed"]["size"]);
        if *sha256 != id.sha256.to_string() || *size != id.size {
            return Err(format!("the manifest says something else of its part {path}"));
        }
    }
    let joined = join(root, &parts.parts)?;
    let found = decode_from(joined, parts.encoding, parts.unpacked.size, io::sink(), interrupt);
    let found = found.map_err(|error| error.to_string())?;
    if found.packed != parts.packed {
        return Err(format!("joined: expected sha256 {}, found {}", parts.packed.sha256, found.packed.sha256));
    }
    match found.unpacked {
        Ok(unpacked) if unpacked == parts.unpacked => Ok(parts),
        Ok(unpacked) => Err(format!("decoded: expected sha256 {}, found {}", parts.unpacked.sha256, unpacked.sha256)),
        Err(error) => Err(format!("joined: {error}")),
    }
}
