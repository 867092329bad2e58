//! What a change of pins changes in the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::{Plan, materials};
use crate::step::Step;

/// One difference between two plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Change {
    /// A pinned input is new, gone or another.
    Material {
        /// Its kind and name.
        name: String,
        /// How the first plan pins it.
        before: Option<String>,
        /// How the second plan pins it.
        after: Option<String>,
    },
    /// Only the second plan has the step.
    StepAdded {
        /// The step.
        step: String,
    },
    /// Only the first plan has the step.
    StepRemoved {
        /// The step.
        step: String,
    },
    /// Both plans have the step and describe it differently.
    StepChanged {
        /// The step.
        step: String,
        /// Which of its fields differ.
        fields: Vec<&'static str>,
    },
    /// The step is described alike, but reads from a step that changed.
    StepRerun {
        /// The step.
        step: String,
        /// The changed steps that it reads from, directly.
        because: Vec<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        match self {
            Self::Material { name, before, after } => {
                write!(f, "input {name}\n  - {}\n  + {}", shown(before), shown(after))
            }
            Self::StepAdded { step } => write!(f, "step {step}: new"),
            Self::StepRemoved { step } => write!(f, "step {step}: gone"),
            Self::StepChanged { step, fields } => write!(f, "step {step}: other {}", fields.join(", ")),
            Self::StepRerun { step, because } => write!(f, "step {step}: runs again because of {}", because.join(", ")),
        }
    }
}

/// The differences from `before` to `after`: inputs first, then steps in the order of `after`.
pub fn diff(before: &Plan, after: &Plan) -> Vec<Change> {
    let mut changes = diff_materials(before, after);
    changes.extend(
        before
            .steps
            .iter()
            .filter(|step| after.step(step.id.as_str()).is_none())
            .map(|step| Change::StepRemoved { step: step.id.to_string() }),
    );
    let mut touched: BTreeSet<String> = BTreeSet::new();
    for step in &after.steps {
        let id = step.id.to_string();
        let change = match before.step(&id) {
            None => Some(Change::StepAdded { step: id.clone() }),
            Some(old) => describe_change(before, after, old, step, &touched),
        };
        if let Some(change) = change {
            touched.insert(id);
            changes.push(change);
        }
    }
    changes
}

fn describe_change(before: &Plan, after: &Plan, old: &Step, new: &Step, touched: &BTreeSet<String>) -> Option<Change> {
    let tools_differ = new.tools().iter().any(|tool| before.tools.get(*tool) != after.tools.get(*tool));
    let fields: Vec<&'static str> = [
        ("action", old.action != new.action),
        ("inputs", old.inputs != new.inputs),
        ("outputs", old.outputs != new.outputs),
        ("environment", old.environment != new.environment),
        ("network", old.network != new.network),
        ("tools", tools_differ),
    ]
    .into_iter()
    .filter_map(|(field, differs)| differs.then_some(field))
    .collect();
    if !fields.is_empty() {
        return Some(Change::StepChanged { step: new.id.to_string(), fields });
    }
    let mut because: Vec<String> =
        new.inputs.iter().map(|input| input.step.to_string()).filter(|step| touched.contains(step)).collect();
    because.dedup();
    (!because.is_empty()).then(|| Change::StepRerun { step: new.id.to_string(), because })
}

fn diff_materials(before: &Plan, after: &Plan) -> Vec<Change> {
    let table = |plan: &Plan| -> BTreeMap<String, String> {
        materials(plan)
            .into_iter()
            .map(|m| (format!("{} {}", m.kind, m.name), format!("{} {}", m.uri, m.digest)))
            .collect()
    };
    let (old, new) = (table(before), table(after));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| Change::Material {
            name: name.clone(),
            before: old.get(name).cloned(),
            after: new.get(name).cloned(),
        })
        .collect()
}
