//! What a run of a plan needs.

use std::collections::BTreeMap;

use super::{Observe, Perform};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::Record;
use crate::plan::Plan;
use crate::step::StepId;
use crate::workspace::Workspace;

/// Bounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most steps at a time, not counting those that wait for the network.
    pub jobs: usize,
    /// Memory that the running steps together may be expected to need, in MiB.
    pub memory_mib: u64,
}

/// Everything that a run needs.
pub struct Run<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// Where.
    pub workspace: &'a Workspace,
    /// With what.
    pub host: &'a Host,
    /// Who does it.
    pub performer: &'a dyn Perform,
    /// Who is told.
    pub observer: &'a dyn Observe,
    /// Whether to stop.
    pub interrupt: &'a Interrupt,
    /// How much at a time.
    pub limits: Limits,
    /// What earlier runs recorded.
    pub earlier: &'a BTreeMap<StepId, Record>,
}
