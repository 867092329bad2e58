//! An attestation against the manifest, and against what is demanded of it.

use super::derived::{self, Derived};
use super::dispute::Dispute;
use super::policy::Demand;
use super::problem::{Finding, Problem};
use super::{Attested, Options, kept};
use crate::manifest::{Entries, Entry, Manifest};
use crate::provenance::dsse::Checked;
use crate::provenance::{self, Attestation, NotASubject, PublicKey};

/// Holds `attestation` against `manifest`, where there is one, against itself and against the options.
/// `stated` are the entries that its subjects speak of.
pub(super) fn hold(
    attestation: &Attestation,
    stated: Result<Entries, NotASubject>,
    manifest: Option<&Manifest>,
    options: &Options,
) -> (Attested, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut unattested = Vec::new();
    let entries = match stated {
        Ok(entries) => entries,
        Err(NotASubject { name, reason }) => {
            findings.push(whole(Dispute::Subject { name, reason }));
            Entries::new()
        }
    };
    // Subjects that cannot be understood have been found already; all else would follow from that.
    if let Some(manifest) = manifest.filter(|_| findings.is_empty()) {
        unattested = compare(manifest, &entries, &mut findings);
        if !options.allow_unattested {
            let finding = |name: &String| Finding::new(Some(name), Dispute::Unattested.into());
            findings.extend(unattested.iter().map(finding));
        }
    }
    let (derived, disputes) = derived::derive(attestation, &entries);
    findings.extend(disputes.into_iter().map(whole));
    // It has the attestation's name, whichever manifest was given.
    let bill = provenance::manifest_of(attestation.path()).map(|manifest| provenance::bill_beside(&manifest));
    findings.extend(bill.and_then(|bill| kept::check_bill(attestation, &bill)).map(whole));
    if let Some(journal) = &options.journal {
        findings.extend(kept::check_journal(attestation, journal).into_iter().map(whole));
    }
    let mut checked = check_signatures(attestation, &options.keys, options.threshold, &mut findings);
    if let Some(policy) = &options.policy {
        if let Some(signatures) = &policy.signatures {
            let by_policy = check_signatures(attestation, &signatures.keys, Some(signatures.threshold), &mut findings);
            checked.unknown.retain(|key| by_policy.unknown.contains(key) && !by_policy.by.contains(key));
            checked.by.extend(by_policy.by);
        }
        let demand = Demand { policy, attestation, plan: derived.as_ref().map(|Derived { plan, .. }| plan) };
        findings.extend(demand.disputes().into_iter().map(whole));
    }
    checked.by.sort();
    checked.by.dedup();
    (describe(attestation, checked, unattested), findings)
}

fn whole(dispute: Dispute) -> Finding {
    Finding::new(None, Problem::Attested(dispute))
}

fn describe(attestation: &Attestation, checked: Checked, unattested: Vec<String>) -> Attested {
    let predicate = &attestation.statement().predicate;
    let internal = &predicate.build_definition.internal_parameters;
    let builder = &predicate.run_details.builder;
    let versions: Vec<_> = builder.version.iter().map(|(name, version)| format!("{name} {version}")).collect();
    Attested {
        path: attestation.path().to_owned(),
        plan: internal.plan,
        platform: internal.platform.clone(),
        builder: format!("{} ({})", builder.id, versions.join(", ")),
        signed_by: checked.by,
        unchecked: checked.unknown,
        unattested,
    }
}

/// Holds the manifest's entries against the attested ones; gives the names of those that are not attested.
fn compare(manifest: &Manifest, entries: &Entries, findings: &mut Vec<Finding>) -> Vec<String> {
    let mut unattested = Vec::new();
    let mut listed = std::collections::BTreeSet::new();
    for (name, text) in manifest.artifacts() {
        listed.insert(name);
        let Some(stated) = entries.get(name) else {
            unattested.push(name.to_owned());
            continue;
        };
        // An entry that cannot be read has been found by whoever checked the files.
        let Ok(found) = serde_json::from_str::<Entry>(text) else { continue };
        let pairs = [
            ("packed.sha256", stated.packed.sha256.to_string(), found.packed.sha256.to_string()),
            ("packed.size", stated.packed.size.to_string(), found.packed.size.to_string()),
            ("unpacked.sha256", stated.unpacked.sha256.to_string(), found.unpacked.sha256.to_string()),
            ("unpacked.size", stated.unpacked.size.to_string(), found.unpacked.size.to_string()),
            ("role", stated.role.clone(), found.role.clone()),
            ("encoding", stated.encoding.name().to_owned(), found.encoding.name().to_owned()),
            ("encoder", stated.encoder.clone(), found.encoder.clone()),
        ];
        let differing = pairs.into_iter().filter(|(_, stated, found)| stated != found);
        findings.extend(differing.map(|(field, stated, found)| {
            Finding::new(Some(name), Dispute::EntryDiffers { field, stated, found }.into())
        }));
    }
    let unlisted = entries.keys().filter(|name| !listed.contains(name.as_str()));
    findings.extend(unlisted.map(|name| Finding::new(Some(name.as_str()), Dispute::Unlisted.into())));
    unattested
}

/// Holds the signatures against `keys`, all of which must have signed unless a threshold is given.
fn check_signatures(
    attestation: &Attestation,
    keys: &[PublicKey],
    threshold: Option<usize>,
    findings: &mut Vec<Finding>,
) -> Checked {
    let Some(envelope) = attestation.envelope() else {
        if !keys.is_empty() {
            findings.push(whole(Dispute::NotSigned));
        }
        return Checked::default();
    };
    let checked = envelope.check(keys, threshold.unwrap_or(keys.len()));
    findings.extend(checked.problems.iter().cloned().map(Dispute::Signature).map(whole));
    checked
}
