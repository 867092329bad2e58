//! Records against digests that are known from elsewhere: what was fetched from the pins, what was
//! delivered from the subjects.

use super::dispute::Dispute;
use crate::digest::{Digest, digest_of_files};
use crate::exec::registry::with_wheels;
use crate::manifest::Entries;
use crate::plan::Plan;
use crate::provenance::{Attestation, ResourceDescriptor, StepRecord};
use crate::step::{Action, ArtifactSpec, FetchWheels, Package, Reference, Step};

/// An output of a step as it must be.
struct Known<'a> {
    step: &'a str,
    output: &'a str,
    /// Why.
    from: &'static str,
    sha256: Digest,
    size: Option<u64>,
}

/// Every output that must have been another one.
pub(super) fn trace(attestation: &Attestation, plan: &Plan, entries: &Entries) -> Vec<Dispute> {
    let wheels = plan.steps.iter().filter(|step| matches!(step.action, Action::FetchWheels(_))).count();
    let known = plan.steps.iter().flat_map(|step| match &step.action {
        Action::FetchFile(fetch) => pinned(step, fetch.sha256.known(), fetch.size),
        Action::FetchPackage(fetch) => pinned(step, fetch.sha256.known(), fetch.size),
        Action::FetchWheels(fetch) => listed(attestation, step, fetch, wheels == 1),
        Action::Package(package) if !entries.is_empty() => delivered(package, entries),
        _ => Vec::new(),
    });
    known.filter_map(|known| compare(&known, attestation)).collect()
}

fn compare(known: &Known<'_>, attestation: &Attestation) -> Option<Dispute> {
    let record: &StepRecord = attestation.steps().iter().find(|(id, _)| id.as_str() == known.step)?.1;
    // That it is not there has been said.
    let made = record.outputs.get(known.output)?;
    let (expected, stated) = if made.sha256 != known.sha256 {
        (known.sha256.to_string(), made.sha256.to_string())
    } else if let Some(size) = known.size.filter(|size| *size != made.size) {
        (format!("{size} bytes"), format!("{} bytes", made.size))
    } else {
        return None;
    };
    let what = format!("output {}, from {}", known.output, known.from);
    Some(Dispute::Step { step: known.step.to_owned(), what, expected, stated })
}

/// A file that was fetched is the pinned one.
fn pinned<'a>(step: &'a Step, sha256: Option<&Digest>, size: Option<u64>) -> Vec<Known<'a>> {
    let output = step.outputs.first().map(String::as_str);
    let known = output.zip(sha256).map(|(output, sha256)| Known {
        step: step.id.as_str(),
        output,
        from: "the pins",
        sha256: *sha256,
        size,
    });
    known.into_iter().collect()
}

/// The wheels that were fetched are those that went in, and what they were chosen by is the pinned file.
fn listed<'a>(attestation: &Attestation, step: &'a Step, fetch: &FetchWheels, only: bool) -> Vec<Known<'a>> {
    let mut known = Vec::new();
    let of = |output, from, sha256| Known { step: step.id.as_str(), output, from, sha256, size: None };
    let of_kind = |kind| attestation.dependencies().filter(move |dependency| dependency.kind() == kind);
    let list = of_kind("requirements").find(|list| list.name() == fetch.requirements.as_str());
    if let Some(content) = list.and_then(|list| list.content.as_ref())
        && fetch.wheels.values().all(|pin| pin.sha256.known().is_some())
    {
        let text = with_wheels(String::from_utf8_lossy(&content.0).into_owned(), fetch);
        known.push(of("requirements.txt", "the requirements", Digest::of(text.as_bytes())));
    }
    // Of several lists nobody states which wheel is of which.
    if only {
        let file = |wheel: &ResourceDescriptor| Some((wheel.name().to_owned(), wheel.sha256_of()?));
        let files: Option<Vec<_>> = of_kind("wheel").map(file).collect();
        known.extend(files.map(|files| of("wheels", "the wheels that went in", digest_of_files(files))));
    }
    known
}

/// What a package step read is what its artifacts hold.
fn delivered<'a>(package: &'a Package, entries: &Entries) -> Vec<Known<'a>> {
    let known = |artifact: &'a ArtifactSpec| {
        let mut references = artifact.from.references();
        let (Some(Reference::Step(step, output)), None) = (references.next(), references.next()) else { return None };
        // Only whole outputs have a digest of their own.
        if output.contains('/') {
            return None;
        }
        let of =
            |sha256, size| Some(Known { step: step.as_str(), output, from: "the unpacked subjects", sha256, size });
        let suffix = artifact.encoding.suffix();
        if let Some(entry) = entries.get(format!("{}{suffix}", artifact.path).as_str()) {
            return of(entry.unpacked.sha256, Some(entry.unpacked.size));
        }
        let directory = format!("{}/", artifact.path);
        let inside = entries.iter().filter_map(|(path, entry)| {
            let inside = path.as_str().strip_prefix(&directory)?;
            Some((inside.strip_suffix(suffix).unwrap_or(inside).to_owned(), entry.unpacked.sha256))
        });
        let files: Vec<_> = inside.collect();
        if files.is_empty() { None } else { of(digest_of_files(files), None) }
    };
    // Of files in parts the subjects are the parts.
    if package.split { Vec::new() } else { package.artifacts.iter().filter_map(known).collect() }
}
