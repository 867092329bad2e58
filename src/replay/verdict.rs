//! What a replay amounts to, and whose fault it is.

use serde::Serialize;

use super::drift::{self, ToolDrift};
use super::published::{self, Likeness};
use super::run::{Failure, Setting};
use super::{Report, Request, Source};
use crate::error::{Class, Result};
use crate::interrupt::Interrupt;
use crate::manifest::Entries;
use crate::past::{self, Cause, Recorded, StepDifference, find_differences};
use crate::plan::Plan;
use crate::provenance;
use crate::step::Action;

/// What came of a replay, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step made what it made then, byte for byte.
    Identical,
    /// What was packed is the same, and the packed bytes are not: another encoder, or another level.
    SameUnpacked,
    /// It cannot be said whether it is reproducible.
    Inconclusive,
    /// An input cannot be had any more.
    InputVanished,
    /// A tool is another than it was, and what it made is too, or it will not do at all.
    ToolDrift,
    /// A step made something else from the same.
    NotReproducible,
}

impl Outcome {
    /// The class of this outcome; nothing for the one that is no error.
    pub fn class(self) -> Option<Class> {
        match self {
            Self::Identical => None,
            Self::SameUnpacked | Self::NotReproducible => Some(Class::Differs),
            Self::InputVanished => Some(Class::Unavailable),
            Self::ToolDrift => Some(Class::Preflight),
            Self::Inconclusive => Some(Class::Inconclusive),
        }
    }

    /// As a person says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::SameUnpacked => "same unpacked, other encoder",
            Self::Inconclusive => "inconclusive",
            Self::InputVanished => "input vanished",
            Self::ToolDrift => "tool drift",
            Self::NotReproducible => "not reproducible",
        }
    }
}

/// The outcome of one run. `differing` are the steps that made something else, in plan order.
pub(super) fn of_run(
    setting: &Setting,
    differing: &[StepDifference],
    failure: Option<&Failure>,
    entries: Option<&Entries>,
) -> Outcome {
    let by_tool =
        |difference: &StepDifference| difference.causes.iter().any(|cause| matches!(cause, Cause::Tool { .. }));
    if let Some(first) = differing.first() {
        let plan = setting.source.plan();
        let packages = plan.step(first.step.as_str()).is_some_and(|step| matches!(step.action, Action::Package(_)));
        let stated = provenance::entries(&setting.source.attestation().statement().subject).ok();
        let same_content = |stated: &Entries, entries: &Entries| {
            stated.len() == entries.len()
                && entries
                    .iter()
                    .all(|(path, entry)| stated.get(path).is_some_and(|stated| stated.unpacked == entry.unpacked))
        };
        if packages && stated.zip(entries).is_some_and(|(stated, entries)| same_content(&stated, entries)) {
            return Outcome::SameUnpacked;
        }
        return if by_tool(first) { Outcome::ToolDrift } else { Outcome::NotReproducible };
    }
    let Some(failure) = failure else { return Outcome::Identical };
    match failure.class {
        Class::Unavailable | Class::PinMismatch => Outcome::InputVanished,
        // A step that ended well then fails with another tool, which is the likeliest reason.
        Class::Step | Class::Artifact
            if drift::concerns(setting.drift, setting.source.plan(), failure.step.as_deref()) =>
        {
            Outcome::ToolDrift
        }
        _ => Outcome::Inconclusive,
    }
}

/// The outcome of all, and the sentence that says it.
pub(super) fn judge(
    report: &mut Report,
    source: &Source,
    request: &Request,
    recorded: Option<&Recorded>,
    interrupt: &Interrupt,
) -> Result<()> {
    let worst = report.runs.iter().max_by_key(|run| run.outcome);
    let Some(worst) = worst else { return Ok(()) };
    report.outcome = worst.outcome;
    report.summary = if worst.outcome == Outcome::Identical {
        let runs = if report.runs.len() == 1 { String::new() } else { format!(" in {} runs", report.runs.len()) };
        format!("all {} steps made what they made then{runs}", worst.steps)
    } else {
        summarize(worst, source.plan(), &report.drift)
    };
    compare_runs(report, source);
    if let Some(entries) = report.runs.first().and_then(|run| run.entries.clone()) {
        compare_artifacts(report, source, request, &entries, interrupt)?;
    } else if request.published_wanted && report.outcome == Outcome::Identical {
        let text = "the published artifacts were not compared, since the step that packages was not replayed";
        conclude_nothing(report, text.to_owned());
    }
    if let Some(recorded) = recorded {
        compare_journal(report, source, recorded);
    }
    for run in &report.runs {
        let tools = drift::run_by(&report.drift, source.plan(), run.made.keys());
        if !tools.is_empty() && run.failure.is_none() && run.differing.is_empty() {
            let tools: Vec<&str> = tools.into_iter().map(crate::pins::Name::as_str).collect();
            let text = format!("other tools than those of the recorded build made the same: {}", tools.join(", "));
            report.notes.push(text);
            break;
        }
    }
    Ok(())
}

fn summarize(run: &super::RunReport, plan: &Plan, drift: &[ToolDrift]) -> String {
    if let Some(finding) = run.differing.first() {
        let difference = &finding.difference;
        let outputs: Vec<&str> = difference.outputs.iter().map(|change| change.output.as_str()).collect();
        let from = match (&difference.causes[..], difference.inputs_equal) {
            ([], _) => "from equal inputs, by equal tools".to_owned(),
            (causes, true) => {
                let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
                format!("from equal inputs, but: {}", causes.join("; "))
            }
            (causes, false) => {
                let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
                format!("from other inputs: {}", causes.join("; "))
            }
        };
        return format!(
            "step {} is the first that made something else ({}) {from}",
            difference.step,
            outputs.join(", ")
        );
    }
    let failure = run.failure.as_ref();
    let text = failure.map_or_else(String::new, |failure| failure.message.clone());
    if run.outcome == Outcome::ToolDrift {
        let tools: Vec<String> =
            drift.iter().map(|tool| format!("{}: {} → {}", tool.name, tool.recorded, tool.here)).collect();
        return format!("{text}; tools that are not those of the recorded build: {}", tools.join("; "));
    }
    // Of the places of a repository the first is the nearest: what is wrong with it is what happened.
    let step = failure.and_then(|failure| plan.step(failure.step.as_deref()?));
    let fetches = step.is_some_and(|step| matches!(step.action, Action::FetchGit(_)));
    match failure.and_then(|failure| failure.detail.as_deref()?.lines().next()) {
        Some(tried) if fetches => format!("{text} ({tried})"),
        _ => text,
    }
}

/// Finds a step that does not make the same in every run.
fn compare_runs(report: &mut Report, source: &Source) {
    let Some((first, others)) = report.runs.split_first() else { return };
    let order: Vec<_> = source.plan().steps.iter().map(|step| step.id.clone()).collect();
    for other in others {
        let differences = find_differences(&order, &first.made, &other.made);
        let unlike = differences.iter().find(|difference| {
            difference.present == (true, true) && !difference.outputs.is_empty() && difference.causes.is_empty()
        });
        if let Some(unlike) = unlike {
            report.outcome = report.outcome.max(Outcome::NotReproducible);
            let varied = report.varied.iter().filter(|varied| varied.varied && other.varied);
            let varied: Vec<&str> = varied.map(|varied| varied.variation.name()).collect();
            report.summary = if varied.is_empty() {
                format!(
                    "step {} does not do the same thing twice: two runs on this host made something else from equal inputs",
                    unlike.step
                )
            } else {
                format!(
                    "step {} made something else from equal inputs on this host when this was varied: {}",
                    unlike.step,
                    varied.join(", ")
                )
            };
            return;
        }
    }
}

/// What was asked for was not done, though nothing is wrong.
fn conclude_nothing(report: &mut Report, reason: String) {
    if report.outcome == Outcome::Identical {
        report.outcome = Outcome::Inconclusive;
        report.summary = reason;
    }
}

/// Holds what was made against what the attestation states of the artifacts, and the published files.
fn compare_artifacts(
    report: &mut Report,
    source: &Source,
    request: &Request,
    entries: &Entries,
    interrupt: &Interrupt,
) -> Result<()> {
    let contradiction = match provenance::entries(&source.attestation().statement().subject) {
        Err(error) => Some(error.to_string()),
        Ok(stated) if stated == *entries => None,
        Ok(stated) => {
            let paths = stated.keys().chain(entries.keys());
            let path = paths.into_iter().find(|path| stated.get(*path) != entries.get(*path));
            path.map(|path| {
                let show = |entries: &Entries| {
                    entries.get(path).map_or_else(|| "nothing".to_owned(), |entry| entry.packed.sha256.to_string())
                };
                format!(
                    "subject {path} is stated to have sha256 {}, and was made with {}",
                    show(&stated),
                    show(entries)
                )
            })
        }
    };
    if let Some(reason) = contradiction
        && report.outcome == Outcome::Identical
    {
        report.outcome = Outcome::Inconclusive;
        report.summary =
            format!("the attestation contradicts itself: every step made what it records, and {reason}; it was edited");
    }
    let Some(root) = &request.published else { return Ok(()) };
    for (path, likeness) in published::compare(root, entries, interrupt)? {
        let (outcome, what) = match likeness {
            Likeness::Same => continue,
            Likeness::SameUnpacked => {
                (Outcome::SameUnpacked, "has the same content, and was packed by another encoder or at another level")
            }
            Likeness::Another => (Outcome::NotReproducible, "has another content"),
            Likeness::Absent => {
                let text = format!("published artifact {path} is not below {}", root.display());
                report.notes.push(text.clone());
                if request.published_wanted {
                    conclude_nothing(report, text);
                }
                continue;
            }
        };
        let text = format!("published artifact {path} {what} than what was made here");
        report.notes.push(text.clone());
        if report.outcome == Outcome::Identical || (report.outcome == Outcome::SameUnpacked && outcome > report.outcome)
        {
            report.outcome = outcome;
            report.summary = text;
        }
    }
    Ok(())
}

/// Holds the journal of the recorded workspace against the attestation that was made from it.
fn compare_journal(report: &mut Report, source: &Source, recorded: &Recorded) {
    let journal = past::finished(&recorded.latest());
    let order = source.plan().steps.iter().map(|step| &step.id);
    let Some(first) = find_differences(order, source.past(), &journal).into_iter().next() else { return };
    let text = format!(
        "the journal of the recorded workspace says otherwise of step {} than the attestation: it was edited, or is of \
         another build",
        first.step
    );
    report.notes.push(text.clone());
    if report.outcome <= Outcome::Inconclusive {
        report.outcome = Outcome::Inconclusive;
        report.summary = text;
    }
}
