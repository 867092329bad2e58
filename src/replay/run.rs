//! One run of a recorded plan in a fresh workspace, and what it made beside what was recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::partial;
use super::variation::Variant;
use super::verdict::Outcome;
use super::{ReplayError, Request, Source, ToolDrift};
use crate::diff::{self, Finding};
use crate::error::{Class, Error, Result};
use crate::exec::{self, Limits, Observe, Run, package, perform::Performer};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::manifest::Entries;
use crate::past::{self, Past, StepDifference, find_differences};
use crate::settings::Settings;
use crate::step::{Action, StepId};
use crate::workspace::{Workspace, outputs_in};

/// What a run made, beside what was recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// How it was run.
    pub label: String,
    /// Its workspace.
    pub workspace: PathBuf,
    /// What came of it.
    pub outcome: Outcome,
    /// How many steps were replayed.
    pub steps: usize,
    /// The steps, in plan order, that made something else.
    pub differing: Vec<StepFinding>,
    /// Why it ended before its end.
    pub failure: Option<Failure>,
    /// Digest of each output of each replayed step, to compare runs with each other.
    #[serde(skip)]
    pub(super) made: BTreeMap<StepId, Past>,
    /// Whether something was made different in it.
    #[serde(skip)]
    pub(super) varied: bool,
    /// What its package step would deliver.
    #[serde(skip)]
    pub(super) entries: Option<Entries>,
}

/// A step that made something else.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepFinding {
    /// What differs.
    #[serde(flatten)]
    pub difference: StepDifference,
    /// How its first differing output differs, where the recorded one is at hand.
    pub detail: Vec<Finding>,
}

/// Why a run ended early.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The step, when it was one.
    pub step: Option<String>,
    /// The error.
    pub message: String,
    /// What was behind it.
    pub causes: Vec<String>,
    /// Several lines of context.
    pub detail: Option<String>,
    /// What can be done about it.
    pub hint: Option<String>,
    /// Its class.
    pub class: Class,
}

/// What every run of a replay has in common.
pub(super) struct Setting<'a> {
    pub source: &'a Source,
    pub request: &'a Request,
    pub settings: &'a Settings,
    pub observer: &'a dyn Observe,
    pub interrupt: &'a Interrupt,
    pub host: &'a Host,
    pub drift: &'a [ToolDrift],
}

/// Runs the plan once.
pub(super) fn run(setting: &Setting, variant: &Variant, number: usize) -> Result<RunReport> {
    let Setting { source, request, interrupt, host, .. } = *setting;
    if let Some(parent) = variant.workspace.parent() {
        std::fs::create_dir_all(parent).map_err(|source| ReplayError::Io { path: parent.to_owned(), source })?;
    }
    let workspace = Workspace::create(&variant.workspace)?;
    let part = match &request.part {
        Some(part) => partial::prepare(source, part, request.recorded.as_deref(), &workspace)?,
        None => partial::Prepared {
            plan: source.plan().clone(),
            earlier: BTreeMap::new(),
            replayed: source.plan().steps.iter().map(|step| step.id.clone()).collect(),
        },
    };
    let ended = perform(setting, variant, &part, &workspace);
    let failure = match ended {
        Err(error) if error.class() == Class::Interrupted => return Err(error),
        Err(error) => Some(describe(&error)),
        Ok(()) => None,
    };
    let mut made = past::finished(&journal::latest(journal::read(&workspace.journal())?));
    made.retain(|id, _| part.replayed.contains(id));
    let mut recorded = source.past().clone();
    // Of a run that ended early, only what it finished can be compared.
    recorded.retain(|id, _| made.contains_key(id));
    let order = source.plan().steps.iter().map(|step| &step.id);
    let differences = find_differences(order, &recorded, &made);
    let differing: Vec<StepDifference> =
        differences.into_iter().filter(|difference| !difference.outputs.is_empty()).collect();
    let entries = deliverable(source, &part.replayed, workspace.root()).filter(|_| failure.is_none());
    let outcome = super::verdict::of_run(setting, &differing, failure.as_ref(), entries.as_ref());
    let detailed = |(index, difference): (usize, StepDifference)| {
        let detail = if index == 0 { look_closer(setting, &difference, workspace.root()) } else { Vec::new() };
        StepFinding { difference, detail }
    };
    tracing::debug!("run {number} of {} ended", host.platform);
    interrupt.check()?;
    Ok(RunReport {
        label: variant.label.clone(),
        workspace: workspace.root().to_owned(),
        outcome,
        steps: part.replayed.len(),
        differing: differing.into_iter().enumerate().map(detailed).collect(),
        failure,
        made,
        varied: variant.varied,
        entries,
    })
}

fn perform(setting: &Setting, variant: &Variant, part: &partial::Prepared, workspace: &Workspace) -> Result<()> {
    let Setting { source, request, settings, observer, interrupt, host, .. } = *setting;
    exec::local::check_all(&part.plan, &source.directory())?;
    let mut text = serde_json::to_vec_pretty(&part.plan).unwrap_or_default();
    text.push(b'\n');
    workspace.write(&workspace.plan(), &text)?;
    let directory = source.directory();
    let performer = Performer {
        record_unknown: source.attestation().statement().predicate.build_definition.external_parameters.record_unknown,
        wrapper: &variant.wrapper,
        ..Performer::new(settings, &directory, host.isolation, interrupt)
    };
    let run = Run {
        plan: &part.plan,
        workspace,
        host,
        performer: &performer,
        observer,
        interrupt,
        limits: Limits { jobs: variant.jobs, memory_mib: request.memory_mib.unwrap_or(host.memory_mib) },
        earlier: &part.earlier,
    };
    let mut journal = Journal::open(&workspace.journal())?;
    run.begin(crate::digest::Digest::of(source.attestation().pins()?.1.as_bytes()), &mut journal)?;
    exec::run(&run, &mut journal).map(drop)
}

fn describe(error: &Error) -> Failure {
    Failure {
        step: error.step().map(str::to_owned),
        message: error.to_string(),
        causes: error.causes(),
        detail: error.detail(),
        hint: match error.class() {
            // Whose pins these are nobody here decides.
            Class::PinMismatch => Some("serve the pinned file with --vendor or --mirror".into()),
            // A replay cannot be gone on with.
            _ => error.hint().filter(|hint| !hint.contains("--resume")),
        },
        class: error.class(),
    }
}

/// What the package steps would deliver, when they were among those that ran.
fn deliverable(source: &Source, replayed: &BTreeSet<StepId>, root: &Path) -> Option<Entries> {
    let mut entries = Entries::new();
    let packages = source.plan().steps.iter().filter(|step| matches!(step.action, Action::Package(_)));
    for step in packages {
        if !replayed.contains(&step.id) {
            return None;
        }
        entries.extend(package::recorded(&outputs_in(root, &step.id)).ok()?);
    }
    Some(entries)
}

/// How the first differing output differs, when the recorded workspace still has the recorded one.
fn look_closer(setting: &Setting, difference: &StepDifference, root: &Path) -> Vec<Finding> {
    let Some(recorded) = &setting.request.recorded else { return Vec::new() };
    let Some(change) = difference.outputs.first() else { return Vec::new() };
    let place = |root: &Path| outputs_in(root, &difference.step).join(&change.output);
    let found = crate::digest::hash_path(&place(recorded)).ok().map(|(sha256, _)| sha256);
    if found.is_none() || found != change.before.map(|before| before.sha256) {
        return Vec::new();
    }
    let options = diff::Options { limit: 20 };
    diff::diff(&place(recorded), &place(root), &options, setting.interrupt)
        .map_or_else(|_| Vec::new(), |report| report.findings)
}
