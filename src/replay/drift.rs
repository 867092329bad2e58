//! Tools of this host that are not those of the recorded build.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Source;
use crate::error::{Class, Result};
use crate::host::{self, Host, Remembered};
use crate::interrupt::Interrupt;
use crate::pins::Name;
use crate::plan::Plan;
use crate::provenance::{Attestation, ResourceDescriptor};
use crate::step::StepId;

/// A tool that is not the one of the recorded build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolDrift {
    /// Its name.
    pub name: Name,
    /// Version and digest then.
    pub recorded: String,
    /// Version and digest here; what is wrong with it when it will not do.
    pub here: String,
}

/// Why the plan cannot run on this host.
pub(super) struct Lacking {
    /// As a sentence that names the tool, and what it was in the recorded build.
    pub reason: String,
    /// What can be done about it.
    pub hint: Option<String>,
    /// Every tool that is another one, or will not do.
    pub drift: Vec<ToolDrift>,
}

/// Looks for the plan's tools; what is wrong with them is an answer and not an error.
pub(super) fn probe(source: &Source, interrupt: &Interrupt) -> Result<Result<Host, Lacking>> {
    let plan = source.plan();
    let error = match Host::probe(plan, &Remembered::default(), interrupt) {
        Ok(host) => return Ok(Ok(host)),
        Err(error) if error.class() == Class::Preflight => error,
        Err(error) => return Err(error),
    };
    let mut reason = error.to_string();
    let mut drift = Vec::new();
    for tool in recorded_tools(source.attestation()) {
        let wanted = plan.tools.iter().find(|(name, _)| name.as_str() == tool.name());
        let Some((name, wanted)) = wanted.filter(|(_, wanted)| wanted.provided.is_none()) else { continue };
        match host::probe(name, wanted, interrupt) {
            Ok(here) => drift.extend(compare(tool, &here)),
            Err(lacking) => {
                let recorded = describe_recorded(tool);
                // Of several, the one that the error is about.
                if reason == lacking.to_string() {
                    reason = format!("{reason}; the recorded build had {name} {recorded}");
                }
                drift.push(ToolDrift { name: name.clone(), recorded, here: lacking.to_string() });
            }
        }
    }
    interrupt.check()?;
    Ok(Err(Lacking { reason, hint: error.hint(), drift }))
}

/// The tools of this host that are not those that the recorded steps ran.
pub(super) fn find_drift(attestation: &Attestation, host: &Host) -> Vec<ToolDrift> {
    recorded_tools(attestation).filter_map(|tool| compare(tool, host.tools.get(tool.name())?)).collect()
}

/// Whether one of these steps, or one of those that they follow from, runs a tool that is another one.
pub(super) fn concerns<'a>(drift: &[ToolDrift], plan: &Plan, steps: impl IntoIterator<Item = &'a str>) -> bool {
    let mut waiting: Vec<&str> = steps.into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(step) = waiting.pop().and_then(|id| plan.step(id)) {
        if !seen.insert(&step.id) {
            continue;
        }
        if drift.iter().any(|tool| step.runs(&tool.name)) {
            return true;
        }
        waiting.extend(step.inputs.iter().map(|input| input.step.as_str()));
    }
    false
}

/// The names of the tools among these that one of `steps` itself runs.
pub(super) fn run_by<'a>(
    drift: &'a [ToolDrift],
    plan: &Plan,
    steps: impl IntoIterator<Item = &'a StepId>,
) -> BTreeSet<&'a Name> {
    let steps = steps.into_iter().filter_map(|id| plan.step(id.as_str()));
    steps.flat_map(|step| drift.iter().map(|tool| &tool.name).filter(|name| step.runs(name))).collect()
}

fn recorded_tools(attestation: &Attestation) -> impl Iterator<Item = &ResourceDescriptor> {
    attestation.dependencies().filter(|dependency| dependency.kind() == "tool")
}

fn describe_recorded(tool: &ResourceDescriptor) -> String {
    let digest = tool.digest.get("sha256").cloned().unwrap_or_default();
    format!("{} (sha256 {digest})", tool.annotation("version"))
}

fn compare(tool: &ResourceDescriptor, here: &host::Tool) -> Option<ToolDrift> {
    let same = tool.annotation("version") == here.version && tool.sha256_of() == Some(here.sha256);
    (!same).then(|| ToolDrift {
        name: tool.name().parse().unwrap_or_else(|_| Name::constant("unknown")),
        recorded: describe_recorded(tool),
        here: format!("{} (sha256 {})", here.version, here.sha256),
    })
}
