//! Filling in what a pins file does not know yet.
//!
//! The steps that take in something without a recorded digest are run in a workspace of their own,
//! with all that they read from; what they report is written into the file, whose comments and
//! layout stay.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bounded;
use crate::build::{LARGEST_PINS, Prepared};
use crate::digest::hash_file;
use crate::error::{Class, Fault, Result};
use crate::exec::perform::Performer;
use crate::exec::{self, Event, Observe, Run};
use crate::host::{Host, Remembered};
use crate::interrupt::Interrupt;
use crate::journal::{Journal, Record};
use crate::pins::NOT_RECORDED;
use crate::plan::Plan;
use crate::recipe::AnyPins;
use crate::replace::{CannotWrite, check, replace};
use crate::settings::Settings;
use crate::step::{Action, FileOrigin, Step, StepId};
use crate::workspace::Workspace;

/// A value that was filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// The key's path in the file.
    pub key: String,
    /// What stood there.
    pub before: String,
    /// What stands there now.
    pub after: String,
}

/// Why a pins file cannot be filled in.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The pins file cannot be read again.
    #[error("cannot read {path}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file parsed as pins and does not parse as a document: it changed meanwhile.
    #[error("{path} changed while it was read")]
    Changed {
        /// The path.
        path: String,
        /// Why.
        source: toml::de::Error,
    },
}

impl Fault for LockError {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// Obtains what is not recorded, writes it into the pins file unless `dry_run`, and says what.
pub fn lock(prepared: &Prepared, settings: &Settings, dry_run: bool, interrupt: &Interrupt) -> Result<Vec<Filled>> {
    let plan = unrecorded_part(&prepared.plan)?;
    if plan.steps.is_empty() {
        return Ok(Vec::new());
    }
    let shown = prepared.path.display().to_string();
    let failed = |source| LockError::Io { path: shown.clone(), source };
    if !dry_run {
        check(&prepared.path)?;
    }
    let scratch = tempfile::Builder::new().prefix("rebuild-lock").tempdir();
    // By its kind alone: the whole names the directory that could not be made.
    let scratch = scratch.map_err(|error| CannotWrite { path: std::env::temp_dir(), source: error.kind().into() })?;
    let workspace = Workspace::create(&scratch.path().join("workspace"))?;
    let host = Host::probe(&plan, &Remembered::default(), interrupt)?;
    let performer =
        Performer { record_unknown: true, ..Performer::new(settings, &prepared.directory, host.isolation, interrupt) };
    let run = Run::first(&plan, &workspace, &host, &performer, &Quiet);
    let mut journal = Journal::open(&workspace.journal())?;
    let records = exec::run(&run, &mut journal)?.records;

    let text = bounded::read_text(&prepared.path, LARGEST_PINS).map_err(failed)?;
    let document = DeTable::parse(&text).map_err(|source| LockError::Changed { path: shown.clone(), source })?;
    let values = plan.steps.iter().filter_map(|step| Some(values_of(step, records.get(&step.id)?, prepared)));
    let mut edits: Vec<Edit> = Vec::new();
    for value in values.flatten() {
        if let Some(root) = document.get_ref().get(value.table) {
            find_places(root, value.table, &value, &mut edits);
        }
    }
    // From the end to the beginning, so that the places of the others stay what they are.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.place.start));
    edits.dedup_by_key(|edit| edit.place.start);
    if !dry_run {
        let mut changed = text.clone();
        for edit in &edits {
            changed.replace_range(edit.place.clone(), &format!("\"{}\"", edit.filled.after));
        }
        replace(&prepared.path, changed.as_bytes())?;
    }
    Ok(edits.into_iter().rev().map(|edit| edit.filled).collect())
}

struct Quiet;

impl Observe for Quiet {
    fn observe(&self, _: &Event<'_>) {}
}

/// The steps with something unrecorded, and those they read from.
fn unrecorded_part(plan: &Plan) -> Result<Plan> {
    let mut wanted: BTreeSet<&StepId> = BTreeSet::new();
    for step in plan.steps.iter().rev() {
        if wanted.contains(&step.id) || !step.action.unrecorded_inputs().is_empty() {
            wanted.insert(&step.id);
            wanted.extend(step.inputs.iter().map(|input| &input.step));
        }
    }
    let steps: Vec<Step> = plan.steps.iter().filter(|step| wanted.contains(&step.id)).cloned().collect();
    let used = |name: &crate::pins::Name| steps.iter().any(|step| step.runs(name));
    let tools =
        plan.tools.iter().filter(|(name, _)| used(name)).map(|(name, tool)| (name.clone(), tool.clone())).collect();
    Ok(Plan::new(plan.recipe.clone(), plan.platform.clone(), tools, steps)?)
}

/// A value that a step found out, and where in the file it belongs: to `key` in each table below
/// `[table]` whose `mark.0` is `mark.1`, or, without a mark, which lies at the path `under`.
struct Value {
    table: &'static str,
    mark: Option<(&'static str, String)>,
    under: Vec<String>,
    key: &'static str,
    text: String,
}

struct Edit {
    place: Range<usize>,
    filled: Filled,
}

/// What `step`'s record tells about pins that it came from.
fn values_of(step: &Step, record: &Record, prepared: &Prepared) -> Vec<Value> {
    let marked = |table, mark: &'static str, wanted: &str, value: Option<String>| {
        let value = value?;
        Some(Value { table, mark: Some((mark, wanted.to_owned())), under: Vec::new(), key: "sha256", text: value })
    };
    let reported = || record.report["sha256"].as_str().map(str::to_owned);
    let beside = |path: &str| hash_file(&prepared.directory.join(path)).ok().map(|(digest, _)| digest.to_string());
    let found: Vec<Option<Value>> = match &step.action {
        Action::FetchFile(fetch) => match &fetch.from {
            FileOrigin::Url(url) => {
                vec![marked("file", "url", url, reported()), marked("tool", "url", url, reported())]
            }
            FileOrigin::Path(path) => vec![marked("file", "path", path.as_str(), reported())],
        },
        Action::FetchPackage(fetch) => vec![marked("package", "file", fetch.file.as_str(), reported())],
        Action::FetchWheels(fetch) => {
            let path = fetch.requirements.as_str();
            let wheels = fetch.wheels.keys().map(|name| {
                let text = record.report["wheels"][name.as_str()].as_str()?.to_owned();
                let under = vec!["wheels".to_owned(), name.to_string()];
                Some(Value { table: "python", mark: None, under, key: "sha256", text })
            });
            wheels.chain([marked("python", "requirements", path, beside(path))]).collect()
        }
        Action::FetchGit(_) => {
            let mut values = Vec::new();
            add_submodules(&prepared.pins, step.id.as_str(), "", record, &mut values);
            values
        }
        Action::Patch(patch) => {
            let files = patch.patches.iter().map(|patch| patch.file.as_str());
            files.map(|file| marked("patch", "file", file, beside(file))).chain(image_values(record)).collect()
        }
        Action::Unpack(_)
        | Action::Collect(_)
        | Action::Run(_)
        | Action::CheckSymbols(_)
        | Action::CheckGraph(_)
        | Action::Gate(_)
        | Action::Package(_) => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

/// The commits that a checkout found recorded of the submodules of `[git.<source>]`, which stands at
/// `place` in it, and of the sources that stand in their place.
fn add_submodules(pins: &AnyPins, source: &str, place: &str, record: &Record, values: &mut Vec<Option<Value>>) {
    let Some(git) = pins.git.get(source) else { return };
    for (path, submodule) in &git.submodules {
        let full = format!("{place}{path}");
        let under = vec![source.to_owned(), "submodules".to_owned(), path.to_string()];
        let text = recorded_commit(record, &full);
        values.push(text.map(|text| Value { table: "git", mark: None, under, key: "commit", text }));
        if let Some(other) = &submodule.source {
            add_submodules(pins, other.get_ref().as_str(), &format!("{full}/"), record, values);
        }
    }
}

/// The commit that the repository around the submodule at `full` records of it.
fn recorded_commit(record: &Record, full: &str) -> Option<String> {
    record.report["repositories"].as_array()?.iter().find_map(|repository| {
        let below = match repository["path"].as_str()? {
            "." => full,
            parent => full.strip_prefix(parent)?.strip_prefix('/')?,
        };
        repository["submodules"][below].as_str().map(str::to_owned)
    })
}

/// The blob ids that a patch step reports.
fn image_values(record: &Record) -> impl Iterator<Item = Option<Value>> {
    let files = record.report["files"].as_array().into_iter().flatten();
    files.flat_map(|file| {
        ["before", "after"].map(|key| {
            let text = |name: &str| file[name].as_str().map(str::to_owned);
            let under = vec![text("patch")?, "images".to_owned(), text("path")?];
            Some(Value { table: "patch", mark: None, under, key, text: text(key)? })
        })
    })
}

/// Finds every place below `item`, which stands at `path`, that `value` belongs to and that says
/// that it is not recorded.
fn find_places(item: &Spanned<DeValue<'_>>, path: &str, value: &Value, edits: &mut Vec<Edit>) {
    match item.get_ref() {
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_places(item, &format!("{path}[{index}]"), value, edits);
            }
        }
        DeValue::Table(table) => {
            let text = |key: &str| table.get(key).and_then(|item| item.get_ref().as_str());
            let here = match &value.mark {
                Some((mark, wanted)) => text(mark) == Some(wanted),
                None => path == format!("{}.{}", value.table, value.under.join(".")),
            };
            if here
                && text(value.key) == Some(NOT_RECORDED)
                && let Some(item) = table.get(value.key)
            {
                let key = format!("{path}.{}", value.key);
                let filled = Filled { key, before: NOT_RECORDED.to_owned(), after: value.text.clone() };
                edits.push(Edit { place: item.span(), filled });
            }
            for (name, item) in table {
                find_places(item, &format!("{path}.{}", name.get_ref()), value, edits);
            }
        }
        _ => {}
    }
}
