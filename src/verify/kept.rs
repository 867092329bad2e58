//! What was kept beside the attestation: its bill of materials, and the journal that it was made from.

use std::fs;
use std::path::Path;

use super::dispute::Dispute;
use crate::bounded;
use crate::digest::{Digest, Hasher, hash_file};
use crate::journal;
use crate::provenance::{Attestation, ResourceDescriptor};

/// Whether the bill of materials at `path`, where there is one, is the attested one.
pub(super) fn check_bill(attestation: &Attestation, path: &Path) -> Option<Dispute> {
    fs::symlink_metadata(path).ok()?;
    let found = path.is_file().then(|| hash_file(path).ok()).flatten().map(|(digest, _)| digest);
    let stated = attestation.statement().bill_digest();
    (found.is_none() || found != stated).then(|| Dispute::Materials { path: path.display().to_string() })
}

/// What is wrong with the journal at `path`.
///
/// It is append-only, and a later build that had nothing to do leaves the attestation as it is: so the
/// attested journal is the whole file or its first lines, and what follows must leave every record as it is.
pub(super) fn check_journal(attestation: &Attestation, path: &Path) -> Vec<Dispute> {
    let wrong = |step: Option<String>, reason: String| Dispute::Journal { step, reason };
    let byproducts = &attestation.statement().predicate.run_details.byproducts;
    let stated = byproducts.iter().find(|byproduct| byproduct.kind() == "journal");
    let Some(stated) = stated.and_then(ResourceDescriptor::sha256_of) else {
        return vec![wrong(None, "the attestation has no digest of one".into())];
    };
    let bytes = bounded::read(path, journal::LARGEST);
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return vec![wrong(None, format!("{} cannot be read: {error}", path.display()))],
    };
    let entries = match journal::read(path) {
        Ok(entries) => entries,
        Err(error) => return vec![wrong(None, error.to_string())],
    };
    let latest = journal::latest(entries);
    let mut disputes = Vec::new();
    for (id, step) in attestation.steps() {
        let step_name = || Some(id.to_string());
        let Some(record) = latest.get(id) else {
            disputes.push(wrong(step_name(), format!("it has no record of step {id}, which is attested")));
            continue;
        };
        let mut differs = |what: &str, stated: String, found: String| {
            if stated != found {
                let reason = format!("its record of step {id}: {what}: {stated} is attested, found {found}");
                disputes.push(wrong(step_name(), reason));
            }
        };
        differs("key", step.key.to_string(), record.key.to_string());
        differs("parts", step.parts.key().to_string(), record.parts.key().to_string());
        for name in step.outputs.keys().chain(record.outputs.keys().filter(|name| !step.outputs.contains_key(*name))) {
            let show = |output: Option<&journal::Output>| {
                output.map_or_else(
                    || "nothing".to_owned(),
                    |output| format!("{} of {} bytes", output.sha256, output.size),
                )
            };
            differs(&format!("output {name}"), show(step.outputs.get(name)), show(record.outputs.get(name)));
        }
        let tools = |tools: &_| Digest::of_value(tools).to_string();
        differs("tools", tools(&step.tools), tools(&record.tools));
    }
    if disputes.is_empty() && !begins_with(&bytes, stated) {
        let found = Digest::of(&bytes);
        let reason = format!("sha256 {stated} is attested, found {found}; its records of the steps agree");
        disputes.push(wrong(None, reason));
    }
    disputes
}

/// Whether `bytes` up to the end of some line have the digest `wanted`.
fn begins_with(bytes: &[u8], wanted: Digest) -> bool {
    let mut hasher = Hasher::new();
    bytes.split_inclusive(|&byte| byte == b'\n').any(|line| {
        hasher.update(line);
        hasher.clone().finish().0 == wanted
    })
}
