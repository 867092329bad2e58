//! The plan: everything that will happen, computed before anything happens.
//!
//! **Invariant**: a pure function of pins and platform. There is no IO here, no clock, no absolute
//! path, and nothing about the host but its platform: which program a tool name stands for is found
//! out later and enters the step keys, not the plan.

mod diff;
mod materials;
mod render;

pub use diff::{Change, diff};
pub use materials::{Material, materials};
pub use render::{render_command, render_step_text, render_text};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::pins::{Name, Platform, VersionRange};
use crate::step::{OutputRef, Reference, Step, StepId};

/// The schema of a serialized plan.
pub const SCHEMA: u32 = 1;

/// An ordered list of steps: each stands after those that it reads from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The recipe's name.
    pub recipe: Name,
    /// The platform that it is for.
    pub platform: Platform,
    /// The programs that steps run.
    pub tools: BTreeMap<Name, PlannedTool>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A program that steps run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTool {
    /// The versions that will do.
    pub version: VersionRange,
    /// How a person gets it.
    pub install: Option<String>,
    /// Where the program lies when an earlier step provides it; otherwise it is the host's.
    pub provided: Option<ProvidedTool>,
}

/// A program that a step of the plan provides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvidedTool {
    /// The output that holds it.
    pub output: OutputRef,
    /// Its path below that output.
    pub path: String,
}

/// Why steps do not make a plan. Each is a fault of a recipe or of pins that lead a recipe there.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Two steps have one id.
    #[error("duplicate id: two steps are called {0}")]
    Duplicate(StepId),
    /// Steps wait for each other.
    #[error("cycle of steps: {}", .0.iter().map(StepId::as_str).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<StepId>),
    /// A step reads what no step makes.
    #[error("step {step} reads {wanted}/{output}, which no step makes")]
    NoSuchOutput {
        /// The reader.
        step: StepId,
        /// The step it wants to read from.
        wanted: StepId,
        /// The output.
        output: String,
    },
    /// A template names an output that the step does not declare as input.
    #[error("step {step} uses {wanted}/{output} without declaring it as input")]
    Undeclared {
        /// The step.
        step: StepId,
        /// The step it refers to.
        wanted: StepId,
        /// The output.
        output: String,
    },
    /// A template names a tool that is not pinned.
    #[error("step {step} runs the tool `{tool}`, which is not pinned")]
    UnknownTool {
        /// The step.
        step: StepId,
        /// The tool.
        tool: Name,
    },
    /// Something that the recipe needs is not in the pins.
    #[error("recipe {recipe} needs [{wanted}] in the pins file")]
    MissingPin {
        /// The recipe.
        recipe: Name,
        /// The missing table.
        wanted: String,
    },
    /// A package has no file for the platform.
    #[error("[package.{package}] has no file for {platform}; it lists {listed}")]
    NoFileForPlatform {
        /// The package.
        package: Name,
        /// The platform.
        platform: Platform,
        /// The platforms that it has.
        listed: String,
    },
    /// A pin has no effect.
    #[error("recipe {recipe} does not use [{pin}]")]
    Unused {
        /// The recipe.
        recipe: Name,
        /// The table.
        pin: String,
    },
    /// Parameters that parse and do not go together.
    #[error("[recipe.{recipe}] {key}: {reason}")]
    Parameter {
        /// The recipe.
        recipe: Name,
        /// The parameter.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A recipe wrote something that is not a template, a path or an id.
    #[error("recipe {recipe}: {reason}")]
    Malformed {
        /// The recipe.
        recipe: Name,
        /// What.
        reason: String,
    },
}

impl Fault for PlanError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

impl Plan {
    /// Orders and checks `steps`.
    pub fn new(
        recipe: Name,
        platform: Platform,
        tools: BTreeMap<Name, PlannedTool>,
        steps: Vec<Step>,
    ) -> Result<Self, PlanError> {
        let steps = order(steps)?;
        let plan = Self { schema: SCHEMA, recipe, platform, tools, steps };
        plan.check()?;
        Ok(plan)
    }

    /// The digest that two people quote to each other: over everything in the plan.
    pub fn digest(&self) -> Digest {
        Digest::of_value(self)
    }

    /// The step called `id`.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id.as_str() == id)
    }

    /// Steps that take in something without a recorded digest or id, each with what it is.
    pub fn unrecorded_inputs(&self) -> Vec<String> {
        let of_step = |step: &Step| {
            let inputs = step.action.unrecorded_inputs().into_iter();
            inputs.map(|input| format!("{} ({input})", step.id)).collect::<Vec<_>>()
        };
        self.steps.iter().flat_map(of_step).collect()
    }

    fn check(&self) -> Result<(), PlanError> {
        for step in &self.steps {
            for input in &step.inputs {
                let made = self.step(input.step.as_str()).is_some_and(|maker| maker.outputs.contains(&input.output));
                if !made {
                    let (wanted, output) = (input.step.clone(), input.output.clone());
                    return Err(PlanError::NoSuchOutput { step: step.id.clone(), wanted, output });
                }
            }
            for reference in step.references() {
                self.check_reference(step, reference)?;
            }
            let unknown = step.action.implied_tools().iter().find(|tool| !self.tools.contains_key(**tool));
            if let Some(tool) = unknown {
                return Err(PlanError::UnknownTool { step: step.id.clone(), tool: Name::constant(tool) });
            }
        }
        Ok(())
    }

    fn check_reference(&self, step: &Step, reference: &Reference) -> Result<(), PlanError> {
        let wanted = match reference {
            Reference::Step(wanted, path) => OutputRef { step: wanted.clone(), output: first_part(path).to_owned() },
            Reference::Tool(tool) => match self.tools.get(tool) {
                None => return Err(PlanError::UnknownTool { step: step.id.clone(), tool: tool.clone() }),
                Some(PlannedTool { provided: Some(provided), .. }) => provided.output.clone(),
                Some(_) => return Ok(()),
            },
            Reference::Out | Reference::Tmp | Reference::Cache => return Ok(()),
        };
        if step.inputs.contains(&wanted) {
            return Ok(());
        }
        Err(PlanError::Undeclared { step: step.id.clone(), wanted: wanted.step, output: wanted.output })
    }
}

/// The name of the output that a path below a step's output directory belongs to.
pub(crate) fn first_part(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Puts every step after those it reads from, otherwise keeping the given order.
fn order(steps: Vec<Step>) -> Result<Vec<Step>, PlanError> {
    let mut ids = BTreeSet::new();
    if let Some(twin) = steps.iter().find(|step| !ids.insert(step.id.clone())) {
        return Err(PlanError::Duplicate(twin.id.clone()));
    }
    let mut placed: BTreeSet<StepId> = BTreeSet::new();
    let mut ordered = Vec::with_capacity(steps.len());
    let mut waiting = steps;
    while !waiting.is_empty() {
        // Steps that nobody makes are left to `check`, which names them better than a cycle would.
        let ready =
            |step: &Step| step.inputs.iter().all(|input| placed.contains(&input.step) || !ids.contains(&input.step));
        let Some(next) = waiting.iter().position(ready) else { return Err(PlanError::Cycle(find_cycle(&waiting))) };
        let step = waiting.remove(next);
        placed.insert(step.id.clone());
        ordered.push(step);
    }
    Ok(ordered)
}

/// A cycle among `waiting`, each of which waits for another of them.
fn find_cycle(waiting: &[Step]) -> Vec<StepId> {
    let mut trail: Vec<StepId> = Vec::new();
    let mut next = &waiting[0];
    while !trail.contains(&next.id) {
        trail.push(next.id.clone());
        let blocker = next.inputs.iter().find_map(|input| waiting.iter().find(|step| step.id == input.step));
        let Some(blocker) = blocker else { break };
        next = blocker;
    }
    let start = trail.iter().position(|id| *id == next.id).unwrap_or(0);
    trail.drain(..start);
    trail.push(next.id.clone());
    trail
}
