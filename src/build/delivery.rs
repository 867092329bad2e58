//! From a finished run to what is delivered: the artifacts, what is said about them, the manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Prepared, Request, places, previous};
use crate::clock;
use crate::digest::{Digest, hash_file};
use crate::error::{Class, Fault, Result};
use crate::exec::Finished;
use crate::exec::package::{self, Document};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::RunRecord;
use crate::manifest::{self, Entries};
use crate::provenance::{self, Attestation, Facts, Statement};
use crate::step::{Action, Package, StepId};
use crate::workspace::Workspace;

/// A finished run.
pub(super) struct Built<'a> {
    pub prepared: &'a Prepared,
    pub request: &'a Request,
    pub workspace: &'a Workspace,
    pub host: &'a Host,
    pub run: &'a RunRecord,
    pub finished: &'a Finished,
}

/// What was delivered, and where.
pub(super) struct Delivered {
    pub manifest: PathBuf,
    /// The directory that the manifest's paths start from.
    pub destination: PathBuf,
    pub attestation: PathBuf,
    /// What the new libraries need otherwise than those that they replaced.
    pub notes: Vec<String>,
    pub artifacts: Entries,
    pub changes: Vec<manifest::Change>,
}

/// What the run left cannot be read any more.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}, which this build wrote")]
struct Unreadable {
    path: PathBuf,
    source: std::io::Error,
}

impl Fault for Unreadable {
    fn class(&self) -> Class {
        Class::Workspace
    }
}

/// Copies what the package steps left to where the pins want it, with the attestation. Until here
/// nothing outside the workspace has changed.
pub(super) fn deliver(built: &Built<'_>, interrupt: &Interrupt) -> Result<Delivered> {
    let packages: Vec<(&StepId, &Package)> = built
        .prepared
        .plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Package(package) => Some((&step.id, package)),
            _ => None,
        })
        .collect();
    let mut artifacts = Entries::new();
    for (step, _) in &packages {
        artifacts.extend(package::recorded(&built.workspace.outputs(step))?);
    }
    let (destination, manifest) =
        packages.last().map(|(_, spec)| places(spec, built.prepared, built.request)).unwrap_or_default();
    let attestation = provenance::beside(&manifest);
    let mut documents = documents(built, &artifacts, &manifest)?;
    let (mut changes, mut notes) = (Vec::new(), Vec::new());
    for (index, (step, spec)) in packages.iter().enumerate() {
        let out = built.workspace.outputs(step);
        let entries = package::recorded(&out)?;
        let (destination, manifest) = places(spec, built.prepared, built.request);
        // One attestation speaks of all packages, and so goes with the last.
        let with = if index + 1 == packages.len() { std::mem::take(&mut documents) } else { Vec::new() };
        let files = package::files_of(&out);
        notes.extend(previous::compare(&files, &entries, &destination, interrupt));
        let published = package::publish_with(&files, &entries, &with, &destination, &manifest, interrupt)?;
        changes.extend(published.changes);
    }
    Ok(Delivered { manifest, destination, attestation, notes, artifacts, changes })
}

/// Attestation and bill of materials, as far as they do not stand there already.
fn documents(built: &Built<'_>, entries: &Entries, manifest: &Path) -> Result<Vec<Document>> {
    let statement = state(built, entries)?;
    let bill = Document { path: provenance::bill_beside(manifest), bytes: statement.bill_of_materials() };
    let attestation = Document { path: provenance::beside(manifest), bytes: statement.to_bytes() };
    let mut documents = vec![bill];
    if !built.finished.ran.is_empty() || !stands(&attestation.path, &statement) {
        documents.push(attestation);
    }
    Ok(documents)
}

/// Whether the attestation at `path` says the same of an earlier run. When nothing ran in this one
/// there is nothing new to attest, and the signatures under the old one should not be lost.
fn stands(path: &Path, statement: &Statement) -> bool {
    Attestation::read(path).is_ok_and(|old| {
        let mut old = old.statement().without_run();
        // How a run would have worked that did nothing does not matter.
        let (then, now) = (
            &mut old.predicate.build_definition.internal_parameters,
            &statement.predicate.build_definition.internal_parameters,
        );
        then.jobs = now.jobs;
        then.isolation = now.isolation;
        then.passed_through.clone_from(&now.passed_through);
        old == statement.without_run()
    })
}

fn state(built: &Built<'_>, entries: &Entries) -> Result<Statement> {
    let Built { prepared, workspace, .. } = built;
    let plan = &prepared.plan;
    let tools = built.host.tools.iter().map(|(name, tool)| (name.clone(), tool.record())).collect();
    let digest_of = |path: &Path| -> Result<Digest> {
        let (digest, _) = hash_file(path).map_err(|source| Unreadable { path: path.to_owned(), source })?;
        Ok(digest)
    };
    let mut logs = BTreeMap::new();
    for record in built.finished.records.values() {
        let path = workspace.root().join(&record.log);
        // A log is for people: that one was removed since does not make its step's outputs doubtful.
        if path.is_file() {
            logs.insert(record.log.clone(), digest_of(&path)?);
        }
    }
    let name = prepared.path.file_name().unwrap_or_default().to_string_lossy();
    Ok(provenance::statement(&Facts {
        pins_name: &name,
        pins: &prepared.text,
        files: &provenance::carry(plan, &prepared.directory)?,
        plan,
        builder: &built.request.builder,
        run: built.run,
        record_unknown: built.request.record_unknown,
        tools: &tools,
        records: &built.finished.records,
        entries,
        journal: digest_of(&workspace.journal())?,
        logs: &logs,
        finished: &clock::now(),
    }))
}
