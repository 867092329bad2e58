//! Which steps run when: order, lanes, memory, failures. Nobody here starts a process.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rebuild_model::error::{Class, Fault, Result};
use rebuild_model::exec::{Perform, Performed, Place};
use rebuild_model::process::log::StepLog;
use rebuild_model::step::{Step, StepId};

use crate::lab::{Lab, plain, wait_until};

/// Performs by calling a function.
struct Fake<F> {
    act: F,
    company: Company,
}

/// Who runs, and who has run, at the same time.
#[derive(Default)]
struct Company {
    running: Mutex<BTreeSet<String>>,
    seen: Mutex<BTreeSet<BTreeSet<String>>>,
}

impl Company {
    fn enter(&self, step: &Step) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(step.id.to_string());
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(running.clone());
    }

    fn leave(&self, step: &Step) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(step.id.as_str());
    }

    fn largest(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().map(BTreeSet::len).max().unwrap_or(0)
    }

    /// Stays until `count` steps have been here together; alone for ever would be a failure.
    fn meet(&self, count: usize) {
        assert!(wait_until(|| self.largest() >= count), "nobody came");
    }
}

impl<F: Fn(&Step, &Company) -> Result<()> + Sync> Fake<F> {
    fn new(act: F) -> Self {
        Self { act, company: Company::default() }
    }
}

impl<F: Fn(&Step, &Company) -> Result<()> + Sync> Perform for Fake<F> {
    fn perform(&self, step: &Step, place: &Place<'_>, _: &StepLog) -> Result<Performed> {
        self.company.enter(step);
        let acted = (self.act)(step, &self.company);
        self.company.leave(step);
        acted?;
        std::fs::write(place.out().join("o"), step.id.as_str()).unwrap();
        Ok(Performed::default())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("as the test wants it")]
struct Wanted;

impl Fault for Wanted {
    fn class(&self) -> Class {
        Class::Step
    }
}

/// Long enough for another step to begin, if anything lets it.
fn linger() {
    std::thread::sleep(Duration::from_millis(40));
}

fn costly(id: &str, memory_mib: u32) -> Step {
    let mut step = plain(id, &[]);
    step.cost.memory_mib = memory_mib;
    step
}

#[test]
fn every_step_runs_once_and_after_what_it_reads() {
    let reads: [&[&str]; 9] =
        [&["s1", "s2"], &["s3"], &["s3", "s4"], &["s8"], &["s5"], &[], &["s5"], &["s0", "s6"], &[]];
    let steps: Vec<Step> = (0..9).map(|index| plain(&format!("s{index}"), reads[index])).collect();
    for jobs in [1, 2, 8] {
        let lab = Lab::new(jobs);
        let finished = lab.run_with(steps.clone(), &Fake::new(|_, _| Ok(()))).unwrap();
        assert_eq!((finished.records.len(), finished.ran.len()), (9, 9));
        let events = lab.events();
        let at = |event: String| {
            let found: Vec<_> = (0..events.len()).filter(|&index| events[index] == event).collect();
            assert_eq!(found.len(), 1, "{event}");
            found[0]
        };
        for step in &steps {
            for input in &step.inputs {
                assert!(at(format!("done {}", input.step)) < at(format!("started {}", step.id)), "{}", step.id);
            }
        }
    }
}

#[test]
fn independent_steps_overlap() {
    let lab = Lab::new(3);
    let fake = Fake::new(|_, company| {
        company.meet(3);
        Ok(())
    });
    lab.run_with(["a", "b", "c"].map(|id| plain(id, &[])).into(), &fake).unwrap();
    assert_eq!(fake.company.largest(), 3);
}

#[test]
fn one_job_is_one_step_at_a_time() {
    let lab = Lab::new(1);
    let fake = Fake::new(|_, _| {
        linger();
        Ok(())
    });
    lab.run_with(["a", "b", "c"].map(|id| plain(id, &[])).into(), &fake).unwrap();
    assert_eq!(fake.company.largest(), 1);
    let events = lab.events();
    let kinds: Vec<_> = events.iter().filter_map(|event| event.split(' ').next()).collect();
    assert_eq!(kinds, ["started", "done", "started", "done", "started", "done"]);
}

#[test]
fn steps_that_wait_for_the_network_have_lanes_of_their_own() {
    let lab = Lab::new(1);
    let fake = Fake::new(|_, company| {
        company.meet(5);
        linger();
        Ok(())
    });
    let mut steps = vec![plain("compute", &[])];
    for id in ["f1", "f2", "f3", "f4"] {
        let mut step = plain(id, &[]);
        step.network = true;
        steps.push(step);
    }
    lab.run_with(steps, &fake).unwrap();
    assert_eq!(fake.company.largest(), 5);
}

#[test]
fn memory_bounds_what_runs_together() {
    let mut lab = Lab::new(8);
    lab.limits.memory_mib = 100;
    let fake = Fake::new(|_, company| {
        company.meet(2);
        linger();
        Ok(())
    });
    lab.run_with(["a", "b", "c", "d"].map(|id| costly(id, 40)).into(), &fake).unwrap();
    assert_eq!(fake.company.largest(), 2);
}

#[test]
fn a_step_larger_than_all_memory_runs_alone() {
    let mut lab = Lab::new(8);
    lab.limits.memory_mib = 100;
    let fake = Fake::new(|_, _| {
        linger();
        Ok(())
    });
    lab.run_with(vec![costly("a", 30), costly("large", 5000), costly("b", 30)], &fake).unwrap();
    let seen = fake.company.seen.lock().unwrap();
    assert!(seen.iter().all(|steps| steps.len() == 1 || !steps.contains("large")), "{seen:?}");
    assert!(seen.iter().any(|steps| steps.contains("large")));
}

#[test]
fn the_longest_chain_begins_first() {
    let lab = Lab::new(1);
    let mut last = plain("last", &["second"]);
    last.cost.cpu_s = 50;
    let mut single = plain("single", &[]);
    single.cost.cpu_s = 20;
    let steps = vec![plain("a", &[]), single, plain("first", &[]), plain("second", &["first"]), last];
    lab.run_with(steps, &Fake::new(|_, _| Ok(()))).unwrap();
    let events = lab.events();
    let started: Vec<_> = events.iter().filter_map(|event| event.strip_prefix("started ")).collect();
    assert_eq!(started, ["first", "second", "last", "single", "a"]);
}

#[test]
fn after_a_failure_running_steps_end_and_no_other_begins() {
    let lab = Lab::new(2);
    let fake = Fake::new(|step, company| {
        company.meet(2);
        if step.id.as_str() == "fails" {
            return Err(Wanted.into());
        }
        assert!(wait_until(|| lab.has_seen("failed fails")));
        Ok(())
    });
    let steps = vec![plain("fails", &[]), plain("runs", &[]), plain("waits", &[]), plain("reads", &["runs"])];
    let error = lab.run_with(steps.clone(), &fake).unwrap_err();
    assert_eq!(error.to_string(), "step fails: as the test wants it");
    assert_eq!((error.class(), error.step()), (Class::Step, Some("fails")));
    let events = lab.events();
    assert_eq!(events[2..], ["failed fails", "done runs"]);
    // What ended well stands the next time.
    let finished = lab.run_with(steps, &Fake::new(|_, _| Ok(()))).unwrap();
    let ran: Vec<_> = finished.ran.iter().map(StepId::as_str).collect();
    assert_eq!(ran, ["fails", "reads", "waits"]);
}

#[test]
fn of_two_failures_the_first_is_told() {
    let lab = Lab::new(2);
    let fake = Fake::new(|step, company| {
        company.meet(2);
        if step.id.as_str() == "second" {
            assert!(wait_until(|| lab.has_seen("failed first")));
        }
        Err(Wanted.into())
    });
    let error = lab.run_with(vec![plain("first", &[]), plain("second", &[])], &fake).unwrap_err();
    assert_eq!(error.step(), Some("first"));
    assert_eq!(lab.journal().matches("\"outcome\":\"failed\"").count(), 2);
}

#[test]
fn an_interrupt_lets_nothing_more_begin() {
    let lab = Lab::new(1);
    let fake = Fake::new(|_, _| {
        lab.interrupt.raise();
        Ok(())
    });
    let error = lab.run_with(vec![plain("a", &[]), plain("b", &["a"])], &fake).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
    assert_eq!(lab.events(), ["started a", "done a"]);
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_fault_of_the_program_itself_ends_it() {
    // Waiting for ever for the step that will never report would be worse.
    let _ = Lab::new(2).run_with(vec![plain("a", &[])], &Fake::new(|_, _| panic!("a fault")));
}
