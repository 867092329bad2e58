//! Replaying a part of a plan: the steps before it are not run, what they made is taken from a
//! workspace of the recorded build, and must be what was recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Part, ReplayError, Source};
use crate::digest::hash_path;
use crate::error::Result;
use crate::exec::{collect::collect, environment};
use crate::journal::{Outcome, Record};
use crate::key::KeyParts;
use crate::pins::RelativePath;
use crate::plan::Plan;
use crate::step::{Action, Collect, Step, StepId};
use crate::workspace::{Workspace, outputs_in};

/// A part that is ready to be run.
pub(super) struct Prepared {
    /// The part's steps, and stand-ins for those that they read from.
    pub plan: Plan,
    /// Records of the stand-ins.
    pub earlier: BTreeMap<StepId, Record>,
    /// The steps that are replayed.
    pub replayed: BTreeSet<StepId>,
}

/// The steps of `part`, in plan order.
pub(super) fn steps_of(plan: &Plan, part: &Part) -> Result<BTreeSet<StepId>, ReplayError> {
    let (Part::Step(wanted) | Part::From(wanted)) = part;
    let first = plan.step(wanted).ok_or_else(|| ReplayError::NoSuchStep {
        wanted: wanted.clone(),
        known: plan.steps.iter().map(|step| step.id.to_string()).collect(),
    })?;
    let mut steps = BTreeSet::from([first.id.clone()]);
    if let Part::From(_) = part {
        for step in &plan.steps {
            if step.inputs.iter().any(|input| steps.contains(&input.step)) {
                steps.insert(step.id.clone());
            }
        }
    }
    Ok(steps)
}

/// Copies what the part reads from the recorded workspace into `workspace`.
pub(super) fn prepare(
    source: &Source,
    part: &Part,
    recorded: Option<&Path>,
    workspace: &Workspace,
) -> Result<Prepared> {
    let plan = source.plan();
    let replayed = steps_of(plan, part)?;
    let inputs = plan.steps.iter().filter(|step| replayed.contains(&step.id)).flat_map(|step| &step.inputs);
    let needed: BTreeSet<&StepId> = inputs.map(|input| &input.step).filter(|id| !replayed.contains(*id)).collect();
    let (Part::Step(first) | Part::From(first)) = part;
    let mut prepared = Prepared { plan: plan.clone(), earlier: BTreeMap::new(), replayed: replayed.clone() };
    prepared.plan.steps.clear();
    for step in &plan.steps {
        if replayed.contains(&step.id) {
            prepared.plan.steps.push(step.clone());
        } else if needed.contains(&step.id) {
            let Some(root) = recorded else {
                return Err(ReplayError::NoRecordedInputs { step: first.clone(), count: needed.len() }.into());
            };
            let stand_in = stand_in(step);
            let record = take(source, step, &stand_in, root, workspace)?;
            prepared.earlier.insert(step.id.clone(), record);
            prepared.plan.steps.push(stand_in);
        }
    }
    Ok(prepared)
}

/// A step that has the outputs of `step` and does nothing, so that it needs no tool and no input.
fn stand_in(step: &Step) -> Step {
    Step {
        action: Action::Collect(Collect { copies: Vec::new() }),
        inputs: Vec::new(),
        environment: BTreeMap::new(),
        network: false,
        ..step.clone()
    }
}

/// Copies a step's outputs, which must be what was recorded, and gives the stand-in's record.
fn take(source: &Source, step: &Step, stand_in: &Step, root: &Path, workspace: &Workspace) -> Result<Record> {
    let from = outputs_in(root, &step.id);
    let past = source.past().get(&step.id);
    let mut copies = Vec::new();
    let mut outputs = BTreeMap::new();
    for output in &step.outputs {
        let path = from.join(output);
        let found = hash_path(&path).ok().map(|(sha256, _)| sha256);
        let Some(expected) = past.and_then(|past| past.outputs.get(output)).copied() else { continue };
        if found != Some(expected.sha256) {
            return Err(ReplayError::InputDiffers {
                path,
                step: step.id.to_string(),
                expected: expected.sha256,
                found: found.map_or_else(|| "nothing".to_owned(), |found| found.to_string()),
            }
            .into());
        }
        // A declared output is one part of a path, which the plan's steps were checked for.
        if let Ok(place) = output.parse::<RelativePath>() {
            copies.push((path, place));
        }
        outputs.insert(output.clone(), expected);
    }
    let into = workspace.outputs(&step.id);
    std::fs::create_dir_all(&into).map_err(|source| ReplayError::Io { path: into.clone(), source })?;
    collect(&copies, &into)?;
    let parts = KeyParts::new(stand_in, &environment::constant(), BTreeMap::new(), &BTreeMap::new());
    Ok(Record {
        step: step.id.clone(),
        key: parts.key(),
        parts,
        outcome: Outcome::Done,
        outputs,
        tools: BTreeMap::new(),
        isolated: false,
        notes: vec![format!("taken from {}", root.display())],
        report: serde_json::json!({}),
        error: None,
        started: String::new(),
        duration_ms: 0,
        log: String::new(),
    })
}
