//! What one step is, why it ran, what it read and made: from a workspace, or from a plan alone.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::digest::{Digest, hash_path};
use crate::error::{Class, Fault, Result};
use crate::journal::{Outcome, Output, Record, ToolRecord};
use crate::key::{Reason, find_reason};
use crate::past::{Cause, Recorded};
use crate::pins::Name;
use crate::plan::{self, Material, Plan};
use crate::step::{Step, StepId};
use crate::workspace::outputs_in;

/// All that is known of a step.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Digest of the plan that it stands in.
    pub plan: Digest,
    /// The step as it is planned.
    pub step: Step,
    /// The pinned inputs that it takes in.
    pub materials: Vec<Material>,
    /// The steps that read what it makes.
    pub read_by: Vec<StepId>,
    /// Digest and size of what it reads from earlier steps, by `step/output`, as its last run found
    /// them; of a step that never ran, as far as the earlier steps ran.
    pub inputs: BTreeMap<String, Option<Output>>,
    /// What it made.
    pub outputs: Vec<MadeOutput>,
    /// The tools that its last run used.
    pub tools: BTreeMap<Name, ToolRecord>,
    /// Its runs, the earliest first.
    pub runs: Vec<StepRun>,
    /// Its log, when there is one.
    pub log: Option<PathBuf>,
}

/// An output as it was recorded and as it stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeOutput {
    /// Its name.
    pub output: String,
    /// Where it stands.
    pub path: PathBuf,
    /// What the last run recorded.
    pub recorded: Option<Output>,
    /// What stands there now, hashed just now.
    pub found: Option<Output>,
}

/// One run of a step.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRun {
    /// When it began, RFC 3339.
    pub started: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its key.
    pub key: Digest,
    /// Why it ran.
    pub reason: String,
    /// What had changed since the run before it.
    pub changed: Vec<Cause>,
    /// Whether it ran without a network.
    pub isolated: bool,
    /// What its reader should know.
    pub notes: Vec<String>,
    /// What the action reported: commits, trees, blob ids, digests.
    pub report: serde_json::Value,
    /// Why it failed.
    pub error: Option<String>,
}

/// Why a step cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The plan has no such step.
    #[error("the plan has no step `{wanted}`")]
    NoSuchStep {
        /// What was asked for.
        wanted: String,
        /// The steps that there are.
        known: Vec<String>,
    },
    /// The step has left no log.
    #[error("step {step} has no log at {path}")]
    NoLog {
        /// The step.
        step: StepId,
        /// Where it would lie.
        path: PathBuf,
    },
    /// The log cannot be read.
    #[error("cannot read the log {path}")]
    Unreadable {
        /// The log.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Fault for ExplainError {
    fn class(&self) -> Class {
        match self {
            Self::NoSuchStep { .. } => Class::Usage,
            Self::NoLog { .. } | Self::Unreadable { .. } => Class::Workspace,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchStep { known, .. } => Some(format!("its steps are {}", known.join(", "))),
            Self::NoLog { .. } => Some("a step has a log once it ran in this workspace".into()),
            Self::Unreadable { .. } => None,
        }
    }
}

/// The step of `plan` called `wanted`.
pub fn find_step<'a>(plan: &'a Plan, wanted: &str) -> Result<&'a Step, ExplainError> {
    plan.step(wanted).ok_or_else(|| ExplainError::NoSuchStep {
        wanted: wanted.to_owned(),
        known: plan.steps.iter().map(|step| step.id.to_string()).collect(),
    })
}

/// What `plan` says of the step called `wanted`, which has not run anywhere.
pub fn explain_planned(plan: &Plan, wanted: &str) -> Result<Explanation> {
    let step = find_step(plan, wanted)?;
    let mut explanation = describe(plan, step);
    explanation.inputs = step.inputs.iter().map(|input| (format!("{}/{}", input.step, input.output), None)).collect();
    Ok(explanation)
}

/// What the workspace at `root` knows of the step called `wanted`. Nothing is written; its outputs are
/// hashed.
pub fn explain_recorded(recorded: &Recorded, root: &Path, wanted: &str) -> Result<Explanation> {
    let step = find_step(&recorded.plan, wanted)?;
    let mut explanation = describe(&recorded.plan, step);
    let latest = recorded.latest();
    let last = latest.get(&step.id);
    let input = |input: &crate::step::OutputRef| {
        let name = format!("{}/{}", input.step, input.output);
        let made = latest.get(&input.step).and_then(|maker| maker.outputs.get(&input.output)).copied();
        // The maker may have run again since; what this step read is in its own key.
        let read = last.and_then(|last| last.parts.inputs.get(&name));
        let size = |sha256: &Digest| made.filter(|made| made.sha256 == *sha256).map_or(0, |made| made.size);
        let shown = read.map(|sha256| Output { sha256: *sha256, size: size(sha256) }).or(made);
        (name, shown)
    };
    explanation.inputs = step.inputs.iter().map(input).collect();
    let directory = outputs_in(root, &step.id);
    let output = |output: &String| {
        let path = directory.join(output);
        let found = hash_path(&path).ok().map(|(sha256, size)| Output { sha256, size });
        MadeOutput {
            output: output.clone(),
            path,
            recorded: last.and_then(|last| last.outputs.get(output)).copied(),
            found,
        }
    };
    explanation.outputs = step.outputs.iter().map(output).collect();
    explanation.tools = last.map(|last| last.tools.clone()).unwrap_or_default();
    let mut before: Option<&Record> = None;
    for record in recorded.records_of(&step.id) {
        explanation.runs.push(describe_run(step, before, record));
        before = Some(record);
    }
    explanation.log = last.map(|last| root.join(&last.log)).filter(|log| log.is_file());
    Ok(explanation)
}

fn describe(plan: &Plan, step: &Step) -> Explanation {
    let alone = Plan { tools: BTreeMap::new(), steps: vec![step.clone()], ..plan.clone() };
    let reads = |reader: &&Step| reader.inputs.iter().any(|input| input.step == step.id);
    Explanation {
        plan: plan.digest(),
        step: step.clone(),
        materials: plan::materials(&alone),
        read_by: plan.steps.iter().filter(reads).map(|reader| reader.id.clone()).collect(),
        inputs: BTreeMap::new(),
        outputs: Vec::new(),
        tools: BTreeMap::new(),
        runs: Vec::new(),
        log: None,
    }
}

fn describe_run(step: &Step, before: Option<&Record>, record: &Record) -> StepRun {
    let reason = find_reason(step, &record.parts, before);
    // A key that is the same does not make a step run; what it had made must have been gone or another.
    let reason = reason.as_ref().map_or_else(
        || "runs: an output of the run before was gone or changed".to_owned(),
        |reason| match reason {
            Reason::Changed(_) => "runs: what it is made from changed".to_owned(),
            other => other.to_string(),
        },
    );
    let changed = before
        .map_or_else(Vec::new, |before| Cause::list(before.parts.changes(&record.parts), &before.tools, &record.tools));
    StepRun {
        started: record.started.clone(),
        duration_ms: record.duration_ms,
        outcome: record.outcome,
        key: record.key,
        reason,
        changed,
        isolated: record.isolated,
        notes: record.notes.clone(),
        report: record.report.clone(),
        error: record.error.clone(),
    }
}

/// The end of a step's log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogText {
    /// The step.
    pub step: StepId,
    /// The log.
    pub path: PathBuf,
    /// Its lines; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Bytes before them that were left out.
    pub left_out: u64,
}

/// The last `lines` lines of a step's log, or all of it, but never more than its last `LARGEST_LOG` bytes.
pub fn read_log(recorded: &Recorded, root: &Path, wanted: &str, lines: Option<usize>) -> Result<LogText> {
    let step = find_step(&recorded.plan, wanted)?;
    let path = root.join("logs").join(format!("{}.log", step.id));
    if !path.is_file() {
        return Err(ExplainError::NoLog { step: step.id.clone(), path }.into());
    }
    let (text, left_out) =
        read_end(&path, lines).map_err(|source| ExplainError::Unreadable { path: path.clone(), source })?;
    Ok(LogText { step: step.id.clone(), path, text, left_out })
}

/// The most bytes of a log that are read.
const LARGEST_LOG: u64 = 8 << 20;

fn read_end(path: &Path, lines: Option<usize>) -> io::Result<(String, u64)> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut start = length.saturating_sub(LARGEST_LOG);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_LOG).read_to_end(&mut bytes)?;
    if let Some(wanted) = lines {
        let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        if let Some(at) = breaks.into_iter().nth(wanted.saturating_sub(1)) {
            start += at as u64 + 1;
            bytes.drain(..=at);
        }
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_read_by_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"one\ntwo\xff\nthree\n").unwrap();
        let read = |lines| read_end(file.path(), lines).unwrap();
        assert_eq!(read(None), ("one\ntwo\u{fffd}\nthree\n".into(), 0));
        assert_eq!(read(Some(1)), ("three\n".into(), 9));
        assert_eq!(read(Some(2)), ("two\u{fffd}\nthree\n".into(), 4));
        assert_eq!(read(Some(9)).1, 0);
        std::fs::write(file.path(), b"").unwrap();
        assert_eq!(read(Some(1)), (String::new(), 0));
    }
}
