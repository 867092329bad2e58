//! Steps: what a build does, as plain serializable data.
//!
//! **Invariant**: no closure, clock, absolute path or IO is in here. Where a path on disk is meant a
//! [`Template`] stands, which only the workspace can resolve.

mod action;
mod gate;
mod template;

pub use action::*;
pub use gate::{Gate, GatedFile, GatedLibrary};
pub use template::{Reference, Template, TemplateError};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::pins::Name;

/// A step's id, unique in its plan; also the name of its output directory and of its log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(Name);

impl StepId {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for StepId {
    type Err = <Name as FromStr>::Err;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its id.
    pub id: StepId,
    /// What it is for, as a person would say it.
    pub title: String,
    /// What is done.
    pub action: Action,
    /// The outputs of earlier steps that it reads. No others can be seen in its templates.
    pub inputs: Vec<OutputRef>,
    /// What it leaves in its output directory: exactly these entries, and below them anything.
    pub outputs: Vec<String>,
    /// Environment variables beyond the scrubbed base that every command gets.
    pub environment: BTreeMap<String, Template>,
    /// Whether it may use the network. A step that may not runs without one where the host can do that.
    pub network: bool,
    /// What it is expected to need.
    pub cost: Cost,
}

/// An output of an earlier step: `step` and the entry's name in its output directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputRef {
    /// The step that makes it.
    pub step: StepId,
    /// Which of its outputs.
    pub output: String,
}

/// Estimates, from builds that were measured. They order and bound the work; they never fail it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Processor time in seconds.
    pub cpu_s: u32,
    /// Peak memory in MiB.
    pub memory_mib: u32,
    /// Size of what it leaves on disk in MiB.
    pub disk_mib: u32,
}

impl Step {
    /// Every reference in its templates.
    pub fn references(&self) -> Vec<&Reference> {
        let mut references: Vec<&Reference> =
            self.action.templates().into_iter().flat_map(Template::references).collect();
        references.extend(self.environment.values().flat_map(Template::references));
        references
    }

    /// The tools that its templates name. These enter the step's key.
    pub fn tools(&self) -> BTreeSet<&Name> {
        let mut tools = BTreeSet::new();
        for reference in self.references() {
            if let Reference::Tool(tool) = reference {
                tools.insert(tool);
            }
        }
        tools
    }

    /// Whether it runs the tool called `name`, by name or as the client that its action implies.
    pub fn runs(&self, name: &Name) -> bool {
        self.tools().contains(name) || self.action.implied_tools().contains(&name.as_str())
    }
}
