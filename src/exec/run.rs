//! The loop: every step of a plan, each as soon as what it reads is there, as many at a time as
//! cores and memory allow.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

use super::Event;
use super::job::Run;
use super::step_run::{Ended, StepRun, run_step};
use crate::error::{Error, Result};
use crate::journal::{Journal, Output, Record};
use crate::step::{Step, StepId};

/// How many steps that mostly wait for the network may run besides the others.
const NETWORK_LANES: usize = 4;

/// A plan that was run to its end.
#[derive(Debug)]
pub struct Finished {
    /// The record of every step, of this run or an earlier one whose result stands.
    pub records: BTreeMap<StepId, Record>,
    /// The steps that ran. A record does not tell: what ran again may have taken as long as before.
    pub ran: BTreeSet<StepId>,
}

/// Runs the plan.
///
/// After a failure no further step is started; those that run are waited for, since their results
/// can be gone on with. The first error is returned.
pub fn run(run: &Run<'_>, journal: &mut Journal) -> Result<Finished> {
    let mut state = State::new(run);
    let (sender, receiver) = mpsc::channel();
    let mut first_error: Option<Error> = None;
    std::thread::scope(|scope| {
        loop {
            while first_error.is_none() && run.interrupt.check().is_ok() {
                let Some(step) = state.next() else { break };
                state.start(step);
                let (sender, inputs) = (sender.clone(), state.inputs(step));
                scope.spawn(move || {
                    let ended = catch_unwind(AssertUnwindSafe(|| run_step(&StepRun { run, step, inputs })));
                    let (ended, panic) = ended.map_or_else(|panic| (None, Some(panic)), |ended| (Some(ended), None));
                    // The receiver lives as long as any sender has something to say.
                    let _ = sender.send((step, ended));
                    if let Some(panic) = panic {
                        resume_unwind(panic);
                    }
                });
            }
            if state.running.is_empty() {
                break;
            }
            // A step's thread that panicked has no end to tell; the scope passes its panic on.
            let Ok((step, Some(ended))) = receiver.recv() else { break };
            if let Err(error) = state.end(step, ended, journal) {
                first_error.get_or_insert(error);
            }
        }
    });
    if let Some(error) = first_error {
        return Err(error);
    }
    run.interrupt.check()?;
    Ok(Finished { records: state.records, ran: state.ran })
}

struct State<'a> {
    run: &'a Run<'a>,
    waiting: Vec<&'a Step>,
    running: BTreeMap<StepId, &'a Step>,
    records: BTreeMap<StepId, Record>,
    ran: BTreeSet<StepId>,
    /// For each step, the CPU seconds of the longest chain of steps that begins with it.
    urgency: BTreeMap<StepId, u32>,
}

impl<'a> State<'a> {
    fn new(run: &'a Run<'a>) -> Self {
        let mut urgency: BTreeMap<StepId, u32> = BTreeMap::new();
        for step in run.plan.steps.iter().rev() {
            let readers =
                run.plan.steps.iter().filter(|reader| reader.inputs.iter().any(|input| input.step == step.id));
            let longest = readers.filter_map(|reader| urgency.get(&reader.id)).max().copied().unwrap_or(0);
            urgency.insert(step.id.clone(), longest + step.cost.cpu_s);
        }
        Self {
            run,
            waiting: run.plan.steps.iter().collect(),
            running: BTreeMap::new(),
            records: BTreeMap::new(),
            ran: BTreeSet::new(),
            urgency,
        }
    }

    /// The most urgent step that can start now.
    fn next(&self) -> Option<&'a Step> {
        let mut ready: Vec<&Step> = self.waiting.iter().copied().filter(|step| self.is_ready(step)).collect();
        ready.sort_by_key(|step| std::cmp::Reverse(self.urgency.get(&step.id)));
        ready.into_iter().find(|step| self.has_room_for(step))
    }

    fn is_ready(&self, step: &Step) -> bool {
        step.inputs.iter().all(|input| self.records.contains_key(&input.step))
    }

    fn has_room_for(&self, step: &Step) -> bool {
        let in_lane = self.running.values().filter(|other| other.network == step.network).count();
        let lanes = if step.network { NETWORK_LANES } else { self.run.limits.jobs };
        let used: u64 = self.running.values().map(|other| u64::from(other.cost.memory_mib)).sum();
        let fits = used + u64::from(step.cost.memory_mib) <= self.run.limits.memory_mib;
        // A step that is larger than the whole budget still has to run some time: alone.
        in_lane < lanes && (fits || self.running.is_empty())
    }

    fn start(&mut self, step: &'a Step) {
        self.waiting.retain(|other| other.id != step.id);
        self.running.insert(step.id.clone(), step);
    }

    fn inputs(&self, step: &Step) -> BTreeMap<String, Output> {
        let digest = |input: &crate::step::OutputRef| {
            let output = self.records.get(&input.step)?.outputs.get(&input.output)?;
            Some((format!("{}/{}", input.step, input.output), *output))
        };
        step.inputs.iter().filter_map(digest).collect()
    }

    fn end(&mut self, step: &'a Step, ended: Ended, journal: &mut Journal) -> Result<()> {
        self.running.remove(&step.id);
        let keep = |journal: &mut Journal, record: &Record| {
            journal.append(&crate::journal::Entry::Step(Box::new(record.clone())))
        };
        match ended {
            Ended::Fresh(record) => {
                self.run.observer.observe(&Event::Fresh { step });
                self.records.insert(step.id.clone(), record);
                Ok(())
            }
            Ended::Done(record) => {
                keep(journal, &record)?;
                self.run.observer.observe(&Event::Done { step, record: &record });
                self.ran.insert(step.id.clone());
                self.records.insert(step.id.clone(), record);
                Ok(())
            }
            Ended::Failed(record, error) => {
                let error = error.in_step(step.id.as_str());
                self.run.observer.observe(&Event::Failed { step, error: &error });
                if let Some(record) = record {
                    keep(journal, &record)?;
                }
                Err(error)
            }
        }
    }
}
