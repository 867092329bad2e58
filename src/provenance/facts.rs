//! From what a build knows of itself to the statement about it.

use std::collections::BTreeMap;

use super::builder_id::BuilderId;
use super::carried::CarriedFile;
use super::dependencies::{Inputs, pins};
use super::descriptor::ResourceDescriptor;
use super::statement::{
    BuildDefinition, Builder, ExternalParameters, InternalParameters, Metadata, Provenance, RunDetails, Statement,
};
use super::step_record::StepRecord;
use super::{BUILD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, sbom, subjects};
use crate::digest::Digest;
use crate::journal::{Record, RunRecord, ToolRecord};
use crate::manifest::Entries;
use crate::pins::Name;
use crate::plan::Plan;
use crate::step::StepId;

/// The annotation `kind` of the byproduct that is the bill of materials.
pub(super) const BILL: &str = "sbom";

/// What a finished build knows of itself.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The pins file's name, without its directory.
    pub pins_name: &'a str,
    /// Its text.
    pub pins: &'a str,
    /// The files beside it that the plan takes.
    pub files: &'a [CarriedFile],
    /// The plan.
    pub plan: &'a Plan,
    /// Who built.
    pub builder: &'a BuilderId,
    /// The run.
    pub run: &'a RunRecord,
    /// Whether inputs without a recorded digest were accepted.
    pub record_unknown: bool,
    /// The host's tools.
    pub tools: &'a BTreeMap<Name, ToolRecord>,
    /// The record of every step.
    pub records: &'a BTreeMap<StepId, Record>,
    /// What was delivered.
    pub entries: &'a Entries,
    /// Digest of the journal's bytes.
    pub journal: Digest,
    /// Digests of the logs' bytes, by their paths in the workspace.
    pub logs: &'a BTreeMap<String, Digest>,
    /// When the last step had ended, RFC 3339.
    pub finished: &'a str,
}

/// The statement about the build that `facts` tells of.
pub fn statement(facts: &Facts<'_>) -> Statement {
    let named_pins = ResourceDescriptor::named(facts.pins_name).sha256(Digest::of(facts.pins.as_bytes()));
    // A resumed build began when its earliest step did. RFC 3339 in UTC sorts as text.
    let starts = facts.records.values().map(|record| &record.started).chain([&facts.run.started]);
    let started = starts.min().cloned().unwrap_or_default();
    let invocation = Digest::of_value(&(facts.plan.digest(), &facts.run.started, facts.journal));
    let (program, version) = facts.run.builder.split_once(' ').unwrap_or((&facts.run.builder, ""));
    let subject = subjects(facts.entries);
    let build_definition = BuildDefinition {
        build_type: BUILD_TYPE.into(),
        external_parameters: ExternalParameters { pins: named_pins, record_unknown: facts.record_unknown },
        internal_parameters: InternalParameters {
            recipe: facts.plan.recipe.clone(),
            platform: facts.plan.platform.clone(),
            plan: facts.plan.digest(),
            jobs: facts.run.jobs,
            isolation: facts.run.isolation,
            passed_through: facts.run.passed_through.clone(),
        },
        resolved_dependencies: dependencies(facts),
    };
    let version = BTreeMap::from([(program.to_owned(), version.to_owned())]);
    let builder = Builder { id: facts.builder.to_string(), version };
    let bill = Digest::of(&sbom::bill(&subject, &build_definition, &builder));
    let metadata =
        Metadata { invocation_id: invocation.to_string(), started_on: started, finished_on: facts.finished.to_owned() };
    let run_details = RunDetails { builder, metadata, byproducts: byproducts(facts, bill) };
    Statement {
        kind: STATEMENT_TYPE.into(),
        subject,
        predicate_type: PREDICATE_TYPE.into(),
        predicate: Provenance { build_definition, run_details },
    }
}

/// The pins file, then what the steps took in, then the tools.
fn dependencies(facts: &Facts<'_>) -> Vec<ResourceDescriptor> {
    let mut found = vec![pins(facts.pins_name, facts.pins)];
    found.extend(Inputs { plan: facts.plan, records: facts.records, files: facts.files }.dependencies());
    for (name, tool) in facts.tools {
        let descriptor = ResourceDescriptor::named(name.as_str()).sha256(tool.sha256);
        found.push(descriptor.note("kind", "tool").note("version", tool.version.as_str()));
    }
    found
}

fn byproducts(facts: &Facts<'_>, bill: Digest) -> Vec<ResourceDescriptor> {
    let described = |name: &str, kind: &str, media: &str, digest| {
        let descriptor = ResourceDescriptor { media_type: Some(media.into()), ..ResourceDescriptor::named(name) };
        descriptor.sha256(digest).note("kind", kind)
    };
    let mut found = vec![
        // Of the plan's canonical JSON, which is what people quote to each other.
        described("plan", "plan", "application/json", facts.plan.digest()),
        described("bill of materials", BILL, "application/vnd.cyclonedx+json", bill),
        described("journal.jsonl", "journal", "application/jsonl", facts.journal),
    ];
    for step in &facts.plan.steps {
        if let Some(record) = facts.records.get(&step.id) {
            found.push(StepRecord::new(step, record).descriptor(step.id.as_str()));
        }
    }
    found.extend(facts.logs.iter().map(|(path, digest)| described(path, "log", "text/plain", *digest)));
    found
}
