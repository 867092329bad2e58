//! One step from decision to record.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::job::Run;
use super::place::{Place, tools_of};
use super::step_error::StepError;
use super::{Event, Performed, environment};
use crate::clock;
use crate::digest::hash_path;
use crate::error::{Class, Error, Result};
use crate::host::Host;
use crate::journal::{Outcome, Output, Record, ToolRecord};
use crate::key::{Decision, KeyParts, decide};
use crate::pins::Name;
use crate::plan::PlannedTool;
use crate::printable::without_secrets;
use crate::process::log::StepLog;
use crate::step::{OutputRef, Step, StepId};
use crate::workspace::{check_space, outputs_in};

/// Where Python keeps bytecode.
const BYTECODE: &str = "__pycache__";

/// A step with what it needs to run.
pub(super) struct StepRun<'a> {
    pub run: &'a Run<'a>,
    pub step: &'a Step,
    /// Its inputs as earlier steps recorded them, by `step/output`.
    pub inputs: BTreeMap<String, Output>,
}

/// How a step ended: a record to be kept or one that stands from earlier, or an error with its record.
pub(super) enum Ended {
    Fresh(Record),
    Done(Record),
    Failed(Option<Record>, Error),
}

/// Decides and, where needed, performs the step.
pub(super) fn run_step(this: &StepRun<'_>) -> Ended {
    let started = clock::now();
    let clock = Instant::now();
    let tools = tool_records(this.step, this.run.host);
    let parts = key_parts(this.step, &this.inputs, &tools);
    let last = this.run.earlier.get(&this.step.id);
    let on_disk = outputs_on_disk(this.step, this.run.workspace.root(), last);
    let reason = match decide(this.step, &parts, last, &on_disk) {
        Decision::Fresh => match last {
            Some(record) => return Ended::Fresh(record.clone()),
            // `decide` calls nothing fresh that has no record.
            None => crate::key::Reason::NeverRan,
        },
        Decision::Run(reason) => reason,
    };
    this.run.observer.observe(&Event::Started { step: this.step, reason: &reason });

    let (performed, notes) = this.perform();
    let log = this.run.workspace.log(&this.step.id);
    let record = |outcome, outputs, done: &Performed, error| Record {
        step: this.step.id.clone(),
        key: parts.key(),
        parts: parts.clone(),
        outcome,
        outputs,
        tools: tools.clone(),
        isolated: done.isolated,
        notes: notes.clone(),
        report: masked(done.report.clone()),
        error,
        started: started.clone(),
        duration_ms: u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX),
        log: this.run.workspace.relative(&log),
    };
    match performed {
        Ok((done, outputs)) => Ended::Done(record(Outcome::Done, outputs, &done, None)),
        Err(error) => {
            let outcome = if error.class() == Class::Interrupted { Outcome::Interrupted } else { Outcome::Failed };
            let failed = record(outcome, BTreeMap::new(), &Performed::default(), Some(error.to_string()));
            Ended::Failed(Some(failed), error)
        }
    }
}

/// The decision about `step` in the workspace at `root`, in which nothing is written.
pub fn decide_on_disk(step: &Step, host: &Host, root: &Path, earlier: &BTreeMap<StepId, Record>) -> Decision {
    let input = |input: &OutputRef| {
        let output = earlier.get(&input.step)?.outputs.get(&input.output)?;
        Some((format!("{}/{}", input.step, input.output), *output))
    };
    let inputs = step.inputs.iter().filter_map(input).collect();
    let parts = key_parts(step, &inputs, &tool_records(step, host));
    let last = earlier.get(&step.id);
    decide(step, &parts, last, &outputs_on_disk(step, root, last))
}

/// The host's tools that the step names.
fn tool_records(step: &Step, host: &Host) -> BTreeMap<Name, ToolRecord> {
    let named = step.tools();
    let of_host = host.tools.iter().filter(|(name, _)| named.contains(name));
    of_host.map(|(name, tool)| (name.clone(), tool.record())).collect()
}

fn key_parts(step: &Step, inputs: &BTreeMap<String, Output>, tools: &BTreeMap<Name, ToolRecord>) -> KeyParts {
    let digests = inputs.iter().map(|(name, output)| (name.clone(), output.sha256)).collect();
    KeyParts::new(step, &environment::constant(), digests, tools)
}

/// What stands at each of the step's outputs, hashed now: nothing that was left is trusted.
fn outputs_on_disk(step: &Step, root: &Path, last: Option<&Record>) -> BTreeMap<String, Option<Output>> {
    if last.is_none_or(|record| record.outcome != Outcome::Done) {
        return BTreeMap::new();
    }
    let directory = outputs_in(root, &step.id);
    let hash = |output: &String| {
        let found = hash_path(&directory.join(output)).ok();
        (output.clone(), found.map(|(sha256, size)| Output { sha256, size }))
    };
    step.outputs.iter().map(hash).collect()
}

/// A report without the passwords of urls, whoever wrote it.
fn masked(report: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match report {
        Value::String(text) => without_secrets(&text).into(),
        Value::Array(values) => values.into_iter().map(masked).collect(),
        Value::Object(values) => values.into_iter().map(|(key, value)| (key, masked(value))).collect(),
        other => other,
    }
}

type Made = (Performed, BTreeMap<String, Output>);

impl StepRun<'_> {
    /// Performs the step; gives what came of it, and the notes of its log.
    fn perform(&self) -> (Result<Made>, Vec<String>) {
        let path = self.run.workspace.log(&self.step.id);
        let log = match StepLog::create(&path) {
            Ok(log) => log,
            Err(source) => return (Err(StepError::Io { path, source }.into()), Vec::new()),
        };
        let made = self.make(&log);
        if let Err(error) = &made {
            log.line(&format!("error: {error}"));
        }
        (made, log.notes())
    }

    fn make(&self, log: &StepLog) -> Result<Made> {
        let workspace = self.run.workspace;
        let scratch = workspace.scratch(&self.step.id);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::from(StepError::Io { path, source })
        };
        self.run.interrupt.check()?;
        check_space(workspace.root(), self.step.cost.disk_mib.into())?;
        workspace.begin(&self.step.id).map_err(failed(&scratch))?;
        let place = Place::new(workspace, tools_of(self.step, self.run.plan, self.run.host, workspace), self.step);
        let before = self.look_at_inputs();
        let done = self.run.performer.perform(self.step, &place, log)?;
        check_outputs(self.step, &place.out())?;
        self.check_inputs(&before)?;
        self.sweep_tools();
        let mut outputs = BTreeMap::new();
        for output in &self.step.outputs {
            let path = place.out().join(output);
            let (sha256, size) = hash_path(&path).map_err(failed(&path))?;
            outputs.insert(output.clone(), Output { sha256, size });
        }
        workspace.finish(&self.step.id).map_err(failed(&workspace.outputs(&self.step.id)))?;
        Ok((done, outputs))
    }

    /// Sizes and times of everything in the input trees. A look is cheap where hashing is not, and
    /// a tool that writes into its inputs changes at least a time.
    fn look_at_inputs(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        use std::os::unix::fs::MetadataExt;
        let entries = self.step.inputs.iter().flat_map(|input| {
            let root = self.run.workspace.outputs(&input.step).join(&input.output);
            let tool = self.is_tool(input);
            let entries = walkdir::WalkDir::new(root).into_iter();
            // A tool that is a Python program may keep bytecode beside itself, which is swept away.
            let entries = entries.filter_entry(move |entry| !(tool && entry.file_name() == BYTECODE));
            entries.filter_map(Result::ok).filter(move |entry| !(tool && entry.file_type().is_dir()))
        });
        let look = |entry: walkdir::DirEntry| {
            let metadata = entry.metadata().ok()?;
            Some((entry.into_path(), (metadata.len(), metadata.mtime(), metadata.mtime_nsec())))
        };
        entries.filter_map(look).collect()
    }

    /// Whether an input is what a tool of the plan lies in.
    fn is_tool(&self, input: &OutputRef) -> bool {
        let provided = |tool: &PlannedTool| tool.provided.as_ref().is_some_and(|provided| provided.output == *input);
        self.run.plan.tools.values().any(provided)
    }

    /// Takes away the bytecode that Python programs keep, so that what was unpacked is what stays. What
    /// cannot be taken away is found when the tree is next hashed.
    fn sweep_tools(&self) {
        for input in self.step.inputs.iter().filter(|input| self.is_tool(input)) {
            let root = self.run.workspace.outputs(&input.step).join(&input.output);
            let kept = walkdir::WalkDir::new(root).into_iter().filter_map(Result::ok);
            for entry in kept.filter(|entry| entry.file_name() == BYTECODE && entry.file_type().is_dir()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn check_inputs(&self, before: &BTreeMap<PathBuf, (u64, i64, i64)>) -> Result<(), StepError> {
        let after = self.look_at_inputs();
        if *before == after {
            return Ok(());
        }
        let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let Some(path) = before.keys().chain(after.keys()).filter(differs).max_by_key(|path| path.as_os_str().len())
        else {
            return Ok(());
        };
        let owner = self.step.inputs.iter().find(|input| path.starts_with(self.run.workspace.outputs(&input.step)));
        Err(StepError::InputChanged {
            path: self.run.workspace.relative(path),
            owner: owner.map_or_else(String::new, |input| input.step.to_string()),
        })
    }
}

/// Holds what stands in `directory` against what the step declares.
fn check_outputs(step: &Step, directory: &Path) -> Result<(), StepError> {
    let failed = |source| StepError::Io { path: directory.to_owned(), source };
    let mut written = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        written.push(entry.map_err(failed)?.file_name());
    }
    written.sort();
    let show = |names: &[std::ffi::OsString]| {
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(OsStr::new(", ")).to_string_lossy().into_owned()
        }
    };
    if let Some(output) = step.outputs.iter().find(|output| !written.contains(&std::ffi::OsString::from(output))) {
        return Err(StepError::OutputNotWritten { output: output.clone(), written: show(&written) });
    }
    let undeclared = written.iter().find(|name| !step.outputs.iter().any(|output| OsStr::new(output) == *name));
    match undeclared {
        Some(name) => Err(StepError::UndeclaredOutput {
            output: name.to_string_lossy().into_owned(),
            declared: step.outputs.join(", "),
        }),
        None => Ok(()),
    }
}
