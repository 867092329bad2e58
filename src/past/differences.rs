//! Two builds of the same plan, or of two plans, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::Past;
use crate::digest::Digest;
use crate::journal::{Output, ToolRecord};
use crate::key::{Part, PartChange};
use crate::pins::Name;
use crate::step::StepId;

/// A step that two builds do not have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepDifference {
    /// The step.
    pub step: StepId,
    /// Whether each build has it.
    pub present: (bool, bool),
    /// Whether everything that it read was the same. A step whose outputs differ although this is
    /// true, and nothing is in `causes`, did not do the same thing twice.
    pub inputs_equal: bool,
    /// What differs of that which it was made from.
    pub causes: Vec<Cause>,
    /// Which of its outputs differ.
    pub outputs: Vec<OutputChange>,
}

/// What differs of that which a step was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
pub enum Cause {
    /// What it does: its action, declared outputs, or permission to use the network.
    Action,
    /// Its environment.
    Environment,
    /// What an earlier step made.
    Input {
        /// `step/output`.
        name: String,
        /// In the first build.
        before: Option<Digest>,
        /// In the second build.
        after: Option<Digest>,
    },
    /// A tool.
    Tool {
        /// Its name.
        name: Name,
        /// Version and digest in the first build.
        before: Option<String>,
        /// Version and digest in the second build.
        after: Option<String>,
    },
}

/// An output that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputChange {
    /// Its name.
    pub output: String,
    /// What the first build made.
    pub before: Option<Output>,
    /// What the second build made.
    pub after: Option<Output>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = |digest: &Option<Digest>| digest.map_or_else(|| "absent".to_owned(), |digest| digest.to_string());
        let tool = |tool: &Option<String>| tool.clone().unwrap_or_else(|| "absent".to_owned());
        match self {
            Self::Action => f.write_str("what the step does"),
            Self::Environment => f.write_str("its environment"),
            Self::Input { name, before, after } => {
                write!(f, "input {name}: {} → {}", digest(before), digest(after))
            }
            Self::Tool { name, before, after } => write!(f, "tool {name}: {} → {}", tool(before), tool(after)),
        }
    }
}

impl Cause {
    /// The causes behind the parts of a key, which are digests, with what the records say of tools.
    pub fn list(
        changes: Vec<PartChange>,
        before: &BTreeMap<Name, ToolRecord>,
        after: &BTreeMap<Name, ToolRecord>,
    ) -> Vec<Self> {
        let show = |tools: &BTreeMap<Name, ToolRecord>, name: &Name| {
            tools.get(name).map(|tool| format!("{} (sha256 {})", tool.version, tool.sha256))
        };
        let cause = |change: PartChange| match change.part {
            Part::Action => Self::Action,
            Part::Environment => Self::Environment,
            Part::Input(name) => Self::Input { name, before: change.before, after: change.after },
            Part::Tool(name) => Self::Tool { before: show(before, &name), after: show(after, &name), name },
        };
        changes.into_iter().map(cause).collect()
    }
}

/// The steps in which `after` differs from `before`, in the given order; steps outside of it come last.
pub fn find_differences<'a>(
    order: impl IntoIterator<Item = &'a StepId>,
    before: &'a BTreeMap<StepId, Past>,
    after: &'a BTreeMap<StepId, Past>,
) -> Vec<StepDifference> {
    let mut seen = BTreeSet::new();
    let ids = order.into_iter().chain(before.keys()).chain(after.keys());
    let ids: Vec<&StepId> = ids.filter(|id| seen.insert(*id)).collect();
    ids.into_iter().filter_map(|id| compare(id, before.get(id), after.get(id))).collect()
}

fn compare(id: &StepId, before: Option<&Past>, after: Option<&Past>) -> Option<StepDifference> {
    let present = (before.is_some(), after.is_some());
    let (causes, inputs_equal) = match (before, after) {
        (None, None) => return None,
        (Some(before), Some(after)) => {
            let causes = Cause::list(before.parts.changes(&after.parts), &before.tools, &after.tools);
            (causes, before.parts.inputs == after.parts.inputs)
        }
        _ => (Vec::new(), false),
    };
    let none = BTreeMap::new();
    let (then, now) = (before.map_or(&none, |before| &before.outputs), after.map_or(&none, |after| &after.outputs));
    let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    let outputs: Vec<OutputChange> = names
        .into_iter()
        .filter(|name| then.get(*name) != now.get(*name))
        .map(|name| OutputChange {
            output: name.clone(),
            before: then.get(name).copied(),
            after: now.get(name).copied(),
        })
        .collect();
    let differs = present != (true, true) || !causes.is_empty() || !outputs.is_empty();
    differs.then(|| StepDifference { step: id.clone(), present, inputs_equal, causes, outputs })
}

/// Where a difference in what `step` made comes from: each step, itself or earlier, in which something
/// other than an input changed, or which made something else from the same.
pub fn find_causes<'a>(step: &StepId, differences: &'a [StepDifference]) -> Vec<&'a StepDifference> {
    let mut waiting = vec![step.as_str()];
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(difference) = differences.iter().find(|difference| difference.step.as_str() == id) else { continue };
        let inputs = difference.causes.iter().filter_map(|cause| match cause {
            Cause::Input { name, .. } => name.split('/').next(),
            _ => None,
        });
        waiting.extend(inputs);
        let own = |cause: &Cause| !matches!(cause, Cause::Input { .. });
        if difference.causes.is_empty() || difference.causes.iter().any(own) {
            found.push(difference);
        }
    }
    // In the order of the differences, which is the plan's.
    found.sort_by_key(|cause| differences.iter().position(|difference| difference.step == cause.step));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyParts;

    fn past(inputs: &[(&str, &str)], tool: &str, output: &str) -> Past {
        let tools =
            BTreeMap::from([(Name::constant("cc"), ToolRecord { version: tool.into(), sha256: Digest::of(b"cc") })]);
        let parts = KeyParts {
            action: Digest::of(b"action"),
            environment: Digest::of(b""),
            inputs: inputs.iter().map(|(name, text)| ((*name).to_owned(), Digest::of(text.as_bytes()))).collect(),
            tools: tools.iter().map(|(name, tool)| (name.clone(), Digest::of_value(tool))).collect(),
        };
        let outputs = BTreeMap::from([("out".to_owned(), Output { sha256: Digest::of(output.as_bytes()), size: 1 })]);
        Past { key: parts.key(), parts, outputs, tools }
    }

    fn build(first: &str, tool: &str, second: &str) -> BTreeMap<StepId, Past> {
        let last = format!("{first}{second}");
        BTreeMap::from([
            ("z-first".parse().unwrap(), past(&[], "1.0", first)),
            ("second".parse().unwrap(), past(&[], tool, second)),
            ("a-last".parse().unwrap(), past(&[("z-first/out", first), ("second/out", second)], "1.0", &last)),
        ])
    }

    fn order() -> Vec<StepId> {
        ["z-first", "second", "a-last"].map(|id| id.parse().unwrap()).to_vec()
    }

    #[test]
    fn equal_builds_have_no_difference() {
        assert_eq!(find_differences(&order(), &build("a", "1.0", "b"), &build("a", "1.0", "b")), []);
    }

    #[test]
    fn a_cause_is_the_step_that_made_something_else_from_the_same() {
        let found = find_differences(&order(), &build("a", "1.0", "b"), &build("A", "1.0", "b"));
        let steps: Vec<_> = found.iter().map(|difference| difference.step.as_str()).collect();
        assert_eq!(steps, ["z-first", "a-last"]);
        assert!(found[0].inputs_equal && found[0].causes.is_empty());
        assert!(!found[1].inputs_equal);
        let causes = find_causes(&"a-last".parse().unwrap(), &found);
        assert_eq!(causes.iter().map(|cause| cause.step.as_str()).collect::<Vec<_>>(), ["z-first"]);
    }

    #[test]
    fn a_tool_is_named_with_both_versions() {
        let found = find_differences(&order(), &build("a", "1.0", "b"), &build("a", "1.1", "B"));
        let causes = find_causes(&"a-last".parse().unwrap(), &found);
        let [cause] = causes[..] else { panic!("{causes:?}") };
        assert_eq!(cause.step.as_str(), "second");
        let text = cause.causes[0].to_string();
        assert!(text.starts_with("tool cc: 1.0 (") && text.contains("→ 1.1 ("), "{text}");
    }

    #[test]
    fn a_step_of_one_build_only_is_told() {
        let mut other = build("a", "1.0", "b");
        other.remove(&"second".parse::<StepId>().unwrap());
        let found = find_differences(&order(), &build("a", "1.0", "b"), &other);
        assert_eq!((found[0].step.as_str(), found[0].present), ("second", (true, false)));
    }
}
