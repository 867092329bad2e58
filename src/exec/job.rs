//! What a run of a plan needs.

use std::collections::BTreeMap;

use super::perform::Performer;
use super::{Observe, Perform, environment};
use crate::clock;
use crate::digest::Digest;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::{self, Entry, Journal, JournalError, Record, RunRecord};
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

/// What was recorded before the first run.
static NOTHING: BTreeMap<StepId, Record> = BTreeMap::new();

impl<'a> Run<'a> {
    /// The first run in a workspace, with all that the host has.
    pub fn first(
        plan: &'a Plan,
        workspace: &'a Workspace,
        host: &'a Host,
        performer: &'a Performer<'a>,
        observer: &'a dyn Observe,
    ) -> Self {
        let limits = Limits { jobs: host.cores, memory_mib: host.memory_mib };
        Self { plan, workspace, host, performer, observer, interrupt: performer.interrupt, limits, earlier: &NOTHING }
    }

    /// Records in `journal` that the run begins, with pins of this digest, and says what was recorded.
    pub fn begin(&self, pins: Digest, journal: &mut Journal) -> Result<RunRecord, JournalError> {
        let record = RunRecord {
            schema: journal::SCHEMA,
            plan: self.plan.digest(),
            pins,
            builder: concat!("rebuild-model ", env!("CARGO_PKG_VERSION")).to_owned(),
            platform: self.host.platform.clone(),
            isolation: self.host.isolation,
            jobs: self.limits.jobs,
            passed_through: environment::passed_through(),
            started: clock::now(),
        };
        journal.append(&Entry::Run(record.clone()))?;
        Ok(record)
    }
}
