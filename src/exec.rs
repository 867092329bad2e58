//! Performing steps: one file for each kind of action, and the loop that runs a plan.
//!
//! **Invariant**: only the fetch actions use the network in this process, and no step writes outside its own directory below the workspace.

pub mod collect;
pub mod environment;
pub mod file;
pub mod gate;
pub mod git;
pub mod graph;
pub mod input;
mod job;
pub mod local;
pub mod package;
pub mod perform;
mod place;
pub mod registry;
mod run;
mod step_error;
mod step_run;
pub mod symbols;
pub mod unpack;

pub use job::{Limits, Run};
pub use place::Place;
pub use run::{Finished, run};
pub use step_error::StepError;
pub use step_run::decide_on_disk;

use crate::error::{Error, Result};
use crate::journal::Record;
use crate::key::Reason;
use crate::step::Step;

use crate::process::log::StepLog;

/// Does what a step says. The real one is [`perform::Performer`]; tests have deterministic ones.
pub trait Perform: Sync {
    /// Performs `step` at `place`, leaving its outputs in the place's output directory.
    fn perform(&self, step: &Step, place: &Place<'_>, log: &StepLog) -> Result<Performed>;
}

/// What a performed step reports.
#[derive(Debug, Clone, Default)]
pub struct Performed {
    /// What the action reports, for the journal.
    pub report: serde_json::Value,
    /// Whether its commands ran without a network.
    pub isolated: bool,
}

/// Hears what happens during a run, from several threads.
pub trait Observe: Sync {
    /// Takes notice of `event`.
    fn observe(&self, event: &Event<'_>);
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step begins.
    Started {
        /// The step.
        step: &'a Step,
        /// Why it runs.
        reason: &'a Reason,
    },
    /// A step's earlier result stands.
    Fresh {
        /// The step.
        step: &'a Step,
    },
    /// A step ended well.
    Done {
        /// The step.
        step: &'a Step,
        /// Its record.
        record: &'a Record,
    },
    /// A step failed.
    Failed {
        /// The step.
        step: &'a Step,
        /// Why.
        error: &'a Error,
    },
}
pub mod patch;
