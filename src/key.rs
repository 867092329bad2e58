//! Step keys, and the one decision that is all of caching, resume and dry-run explanation.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::journal::{Outcome, Output, Record, ToolRecord};
use crate::pins::Name;
use crate::step::Step;

/// Everything that a step's result may depend on, by part, so that a reason can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyParts {
    /// Digest of the action, the declared outputs and the permission to use the network.
    pub action: Digest,
    /// Digest of the environment.
    pub environment: Digest,
    /// Digest of each input, by `step/output`.
    pub inputs: BTreeMap<String, Digest>,
    /// Digest of each tool: of its version and its program file.
    pub tools: BTreeMap<Name, Digest>,
}

impl KeyParts {
    /// The parts for `step` given its inputs' digests and its tools. `environment` is the scrubbed
    /// base that every command gets besides the step's own variables.
    pub fn new(
        step: &Step,
        environment: &BTreeMap<String, String>,
        inputs: BTreeMap<String, Digest>,
        tools: &BTreeMap<Name, ToolRecord>,
    ) -> Self {
        Self {
            action: Self::action_of(step),
            environment: Digest::of_value(&(environment, &step.environment)),
            inputs,
            tools: tools.iter().map(|(name, tool)| (name.clone(), Digest::of_value(tool))).collect(),
        }
    }

    /// The part that speaks of what `step` does.
    pub fn action_of(step: &Step) -> Digest {
        Digest::of_value(&(&step.action, &step.outputs, step.network))
    }

    /// The key.
    pub fn key(&self) -> Digest {
        Digest::of_value(self)
    }
}

/// Whether a step's earlier result can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It stands.
    Fresh,
    /// The step runs, for a reason.
    Run(Reason),
}

/// Why a step runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The journal has no record of it.
    NeverRan,
    /// It failed or was interrupted the last time.
    DidNotFinish,
    /// Something that it depends on is another: the names of what.
    Changed(Vec<String>),
    /// One of its inputs has no recorded digest, so nothing says that it is still the same.
    NotRecorded,
    /// An output is gone.
    OutputMissing(String),
    /// An output is not what the step left.
    OutputDiffers(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRan => f.write_str("runs: no record of an earlier run"),
            Self::DidNotFinish => f.write_str("runs: did not finish the last time"),
            Self::Changed(parts) => write!(f, "runs: changed since: {}", parts.join(", ")),
            Self::NotRecorded => f.write_str("runs: an input has no recorded digest"),
            Self::OutputMissing(output) => write!(f, "runs: output {output} is gone"),
            Self::OutputDiffers(output) => write!(f, "runs: output {output} was changed"),
        }
    }
}

/// Decides from the step, its key now, its last record and what stands on disk.
pub fn decide(
    step: &Step,
    now: &KeyParts,
    last: Option<&Record>,
    on_disk: &BTreeMap<String, Option<Output>>,
) -> Decision {
    let Some(last) = last else { return Decision::Run(Reason::NeverRan) };
    if last.outcome != Outcome::Done {
        return Decision::Run(Reason::DidNotFinish);
    }
    if !step.action.unrecorded_inputs().is_empty() {
        return Decision::Run(Reason::NotRecorded);
    }
    let changed = name_changes(&last.parts, now);
    if !changed.is_empty() {
        return Decision::Run(Reason::Changed(changed));
    }
    for output in &step.outputs {
        match (last.outputs.get(output), on_disk.get(output).copied().flatten()) {
            (_, None) | (None, _) => return Decision::Run(Reason::OutputMissing(output.clone())),
            (Some(then), Some(now)) if *then != now => return Decision::Run(Reason::OutputDiffers(output.clone())),
            (Some(_), Some(_)) => {}
        }
    }
    Decision::Fresh
}

/// Names the parts in which two keys differ.
fn name_changes(then: &KeyParts, now: &KeyParts) -> Vec<String> {
    let mut changed = Vec::new();
    if then.action != now.action {
        changed.push("action".to_owned());
    }
    if then.environment != now.environment {
        changed.push("environment".to_owned());
    }
    let inputs =
        then.inputs.keys().chain(now.inputs.keys()).filter(|name| then.inputs.get(*name) != now.inputs.get(*name));
    changed.extend(inputs.map(|name| format!("input {name}")));
    let tools = then.tools.keys().chain(now.tools.keys()).filter(|name| then.tools.get(*name) != now.tools.get(*name));
    changed.extend(tools.map(|name| format!("tool {name}")));
    changed.sort();
    changed.dedup();
    changed
}
