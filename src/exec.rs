//! Performing steps: one file for each kind of action, and the loop that runs a plan.
//!
//! **Invariant**: only `command` spawns processes, only the fetch actions use the network in this
//! process, and no step writes outside its own directory below the workspace.

pub mod collect;
pub mod command;
        /// Its record.
        /// The step.
        /// Why it runs.
        /// Why.
        error: &'a Error,
        reason: &'a Reason,
        record: &'a Record,
        step: &'a Step,
    /// A step begins.
    /// A step ended well.
    /// A step failed.
    /// A step's earlier result stands.
    /// Performs `step` at `place`, leaving its outputs in the place's output directory.
    /// Takes notice of `event`.
    /// What the action reports, for the journal.
    /// Whether its commands ran without a network.
    Done {
    Failed {
    Fresh {
    Started {
    fn observe(&self, event: &Event<'_>);
    fn perform(&self, step: &Step, place: &Place<'_>, log: &StepLog) -> Result<Performed>;
    pub isolated: bool,
    pub report: serde_json::Value,
    },
#[derive(Debug)]
#[derive(Debug, Clone, Default)]
/// Does what a step says. The real one is [`perform::Performer`]; tests have deterministic ones.
/// Hears what happens during a run, from several threads.
/// Something that happened.
/// What a performed step reports.
mod place;
mod run;
mod step_run;
pub enum Event<'a> {
pub mod environment;
pub mod file;
pub mod git;
pub mod input;
pub mod log;
pub mod package;
pub mod registry;
pub mod symbols;
pub mod unpack;
pub struct Performed {
pub trait Observe: Sync {
pub trait Perform: Sync {
pub use place::Place;
pub use run::{Limits, Run, run};
pub use step_run::{StepError, decide_on_disk};
use crate::error::{Error, Result};
use crate::journal::Record;
use crate::key::Reason;
use crate::step::Step;
use log::StepLog;
}
