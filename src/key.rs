//! Step keys, and the one decision that is all of caching, resume and dry-run explanation.

use std::collections::{BTreeMap, BTreeSet};
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
    let last = match (last, find_reason(step, now, last)) {
        (Some(last), None) => last,
        (_, reason) => return Decision::Run(reason.unwrap_or(Reason::NeverRan)),
    };
    for output in &step.outputs {
        match (last.outputs.get(output), on_disk.get(output).copied().flatten()) {
            (_, None) | (None, _) => return Decision::Run(Reason::OutputMissing(output.clone())),
            (Some(then), Some(now)) if *then != now => return Decision::Run(Reason::OutputDiffers(output.clone())),
            (Some(_), Some(_)) => {}
        }
    }
    Decision::Fresh
}

/// Why the last record's result cannot stand, as far as that does not depend on what is on disk.
pub fn find_reason(step: &Step, now: &KeyParts, last: Option<&Record>) -> Option<Reason> {
    let Some(last) = last else { return Some(Reason::NeverRan) };
    if last.outcome != Outcome::Done {
        return Some(Reason::DidNotFinish);
    }
    if !step.action.unrecorded_inputs().is_empty() {
        return Some(Reason::NotRecorded);
    }
    let changed = last.parts.changes(now);
    let mut names: Vec<String> = changed.iter().map(|change| change.part.to_string()).collect();
    names.sort();
    (!names.is_empty()).then_some(Reason::Changed(names))
}

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The action, the declared outputs, or the permission to use the network.
    Action,
    /// The environment.
    Environment,
    /// An input, by `step/output`.
    Input(String),
    /// A tool.
    Tool(Name),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action => f.write_str("action"),
            Self::Environment => f.write_str("environment"),
            Self::Input(name) => write!(f, "input {name}"),
            Self::Tool(name) => write!(f, "tool {name}"),
        }
    }
}

/// A part in which two keys of a step differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartChange {
    /// Which.
    pub part: Part,
    /// Its digest in the first key, when it has the part.
    pub before: Option<Digest>,
    /// Its digest in the second key, when it has the part.
    pub after: Option<Digest>,
}

impl KeyParts {
    /// The parts in which `now` differs from this key.
    pub fn changes(&self, now: &Self) -> Vec<PartChange> {
        fn add<K: Ord + Clone>(
            changes: &mut Vec<PartChange>,
            then: &BTreeMap<K, Digest>,
            now: &BTreeMap<K, Digest>,
            part: impl Fn(K) -> Part,
        ) {
            let names: BTreeSet<&K> = then.keys().chain(now.keys()).collect();
            for name in names {
                let (before, after) = (then.get(name).copied(), now.get(name).copied());
                if before != after {
                    changes.push(PartChange { part: part(name.clone()), before, after });
                }
            }
        }
        let mut changes = Vec::new();
        for (part, before, after) in
            [(Part::Action, self.action, now.action), (Part::Environment, self.environment, now.environment)]
        {
            if before != after {
                changes.push(PartChange { part, before: Some(before), after: Some(after) });
            }
        }
        add(&mut changes, &self.inputs, &now.inputs, Part::Input);
        add(&mut changes, &self.tools, &now.tools, Part::Tool);
        changes
    }
}
