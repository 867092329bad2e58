//! Why a delivered artifact is another than the one before: which input changed.

use std::collections::BTreeMap;
use std::path::Path;

use super::prepare_text;
use crate::exec::Finished;
use crate::journal::Record;
use crate::manifest::{Change, ChangeKind};
use crate::past::{self, Past, StepDifference, find_causes, find_differences};
use crate::pins::RelativePath;
use crate::plan::{self, Plan};
use crate::provenance::Attestation;
use crate::step::{Action, Reference, StepId};
use crate::workspace::Workspace;

/// What is known of the build whose artifacts are replaced.
pub(super) struct Before {
    plan: Option<Plan>,
    steps: BTreeMap<StepId, Past>,
}

impl Before {
    /// Reads the attestation that is about to be replaced; without one, what the workspace recorded
    /// of its earlier runs.
    pub(super) fn look(attestation: &Path, workspace: &Workspace, earlier: &BTreeMap<StepId, Record>) -> Self {
        match Attestation::read(attestation) {
            Ok(old) => {
                let platform = old.statement().predicate.build_definition.internal_parameters.platform.clone();
                let plan = old.pins().ok().and_then(|(name, text)| {
                    prepare_text(text.to_owned(), Path::new(name), "/".into(), &platform).ok()
                });
                let steps = old.steps().iter().map(|(id, step)| (id.clone(), Past::from(step))).collect();
                Self { plan: plan.map(|prepared| prepared.plan), steps }
            }
            Err(_) => Self { plan: past::read_plan(&workspace.plan()).ok(), steps: past::finished(earlier) },
        }
    }

    /// The reasons for each change of an artifact that was there before, by path.
    pub(super) fn reasons(
        &self,
        plan: &Plan,
        finished: &Finished,
        changes: &[Change],
    ) -> BTreeMap<RelativePath, Vec<String>> {
        let after = past::finished(&finished.records);
        let differences = find_differences(plan.steps.iter().map(|step| &step.id), &self.steps, &after);
        let told = changes.iter().filter(|change| matches!(change.kind, ChangeKind::Changed | ChangeKind::Repacked));
        told.map(|change| (change.path.clone(), self.explain(&change.path, plan, &differences))).collect()
    }

    fn explain(&self, path: &RelativePath, plan: &Plan, differences: &[StepDifference]) -> Vec<String> {
        if self.steps.is_empty() {
            return vec!["what it was made from before is not known: there is no attestation of it".to_owned()];
        }
        let mut reasons = Vec::new();
        for source in sources(path, plan) {
            for cause in find_causes(&source, differences) {
                let mut lines: Vec<String> = Vec::new();
                for one in &cause.causes {
                    match one {
                        past::Cause::Action => lines.extend(self.describe_action(&cause.step, plan)),
                        past::Cause::Input { .. } => {}
                        other => lines.push(other.to_string()),
                    }
                }
                if cause.present != (true, true) {
                    lines.push("the step is new, or gone".to_owned());
                } else if lines.is_empty() {
                    lines.push("made something else from the same".to_owned());
                }
                reasons.extend(lines.into_iter().map(|line| format!("step {}: {line}", cause.step)));
            }
        }
        if reasons.is_empty() {
            reasons.push("the encoder: what was packed is the same".to_owned());
        }
        reasons.dedup();
        reasons
    }

    /// Which pinned inputs of the step changed; without one it does something else with the same.
    fn describe_action(&self, id: &StepId, plan: &Plan) -> Vec<String> {
        let materials = |plan: &Plan| -> Vec<String> {
            let Some(step) = plan.step(id.as_str()) else { return Vec::new() };
            let alone = Plan { tools: BTreeMap::new(), steps: vec![step.clone()], ..plan.clone() };
            let materials = plan::materials(&alone).into_iter();
            materials
                .map(|material| format!("{} {}: {} {}", material.kind, material.name, material.uri, material.digest))
                .collect()
        };
        let (before, after) = (self.plan.as_ref().map(materials).unwrap_or_default(), materials(plan));
        let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
        let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
        let lines: Vec<String> = gone.chain(new).collect();
        if lines.is_empty() { vec![past::Cause::Action.to_string()] } else { lines }
    }
}

/// The steps from which the artifact at `path` is taken.
fn sources(path: &RelativePath, plan: &Plan) -> Vec<StepId> {
    let mut found = Vec::new();
    for step in &plan.steps {
        let Action::Package(package) = &step.action else { continue };
        for artifact in &package.artifacts {
            let bare = path.as_str().strip_suffix(artifact.encoding.suffix()).unwrap_or(path.as_str());
            let below = bare.strip_prefix(artifact.path.as_str());
            if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                let references = artifact.from.references().filter_map(|reference| match reference {
                    Reference::Step(id, _) => Some(id.clone()),
                    _ => None,
                });
                found.extend(references);
            }
        }
    }
    found
}
