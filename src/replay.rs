//! Replaying an attestation: the recorded plan is run again in a fresh workspace, and what each step
//! makes is held against what it made then, in plan order. The first that differs is the cause; its
//! inputs, which are equal or not, say of what.
//!
//! **Invariant**: nothing but step outputs that were hashed just now counts as equal.

mod drift;
mod page;
mod partial;
mod published;
mod run;
mod source;
mod variation;
mod verdict;

pub use drift::ToolDrift;
pub(crate) use page::PAGE;
pub use page::{render_page, show_finding};
pub use run::{RunReport, StepFinding};
pub use source::{Source, open};
pub use variation::{Variation, Varied};
pub use verdict::Outcome;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::digest::Digest;
use crate::error::{Class, Fault, Result};
use crate::exec::Observe;
use crate::interrupt::Interrupt;
use crate::past::Recorded;
use crate::settings::Settings;
use crate::workspace;

/// What to replay, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// A directory in which the workspaces are made: empty, or not there yet. It is removed when all is
    /// identical.
    pub directory: PathBuf,
    /// Only some steps.
    pub part: Option<Part>,
    /// A workspace of the recorded build, from which inputs of a part are taken, and with whose outputs
    /// those that differ are compared in detail.
    pub recorded: Option<PathBuf>,
    /// Where the published artifacts lie, to be compared too.
    pub published: Option<PathBuf>,
    /// Whether they were asked for: that they cannot be compared is then no identical replay.
    pub published_wanted: bool,
    /// How often.
    pub times: u32,
    /// What is made different in a second run.
    pub vary: Vec<Variation>,
    /// The most steps at a time.
    pub jobs: Option<usize>,
    /// Memory in MiB that steps may be expected to need together.
    pub memory_mib: Option<u64>,
}

/// A part of a plan.
#[derive(Debug, Clone)]
pub enum Part {
    /// One step.
    Step(String),
    /// A step and all that follows from it.
    From(String),
}

/// What a replay found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The attestation.
    pub attestation: PathBuf,
    /// Digest of the plan that it is about.
    pub plan: Digest,
    /// What came of it: the worst of all runs.
    pub outcome: Outcome,
    /// The same as a sentence that names the culprit.
    pub summary: String,
    /// Each run.
    pub runs: Vec<RunReport>,
    /// Tools of this host that are not those of the recorded build.
    pub drift: Vec<ToolDrift>,
    /// What was varied, and what cannot have any effect.
    pub varied: Vec<Varied>,
    /// What else a reader should know.
    pub notes: Vec<String>,
    /// Where the workspaces are that were kept because something differs.
    pub kept: Option<PathBuf>,
}

/// Why nothing was replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The plan has no such step.
    #[error("the recorded plan has no step `{wanted}`")]
    NoSuchStep {
        /// What was asked for.
        wanted: String,
        /// The steps that there are.
        known: Vec<String>,
    },
    /// A part is to be replayed and there is nothing to begin with.
    #[error("step {step} reads what {count} earlier steps made, and no workspace that has it is named")]
    NoRecordedInputs {
        /// The step.
        step: String,
        /// How many steps it needs.
        count: usize,
    },
    /// The workspace that should serve inputs does not have them.
    #[error("{path} is not what step {step} made in the recorded build: expected sha256 {expected}, found {found}")]
    InputDiffers {
        /// The output.
        path: PathBuf,
        /// The step.
        step: String,
        /// As it was recorded.
        expected: Digest,
        /// As it is there; `nothing` when it is gone.
        found: String,
    },
    /// The directory for the workspaces has something in it, which would be removed with it.
    #[error("{path} is not an empty directory")]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Fault for ReplayError {
    fn class(&self) -> Class {
        match self {
            Self::NoSuchStep { .. } => Class::Usage,
            Self::NoRecordedInputs { .. } | Self::InputDiffers { .. } => Class::Inconclusive,
            Self::InUse { .. } => Class::Workspace,
            Self::Io { .. } => Class::Preflight,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchStep { known, .. } => Some(format!("its steps are {}", known.join(", "))),
            Self::NoRecordedInputs { .. } => Some(
                "name the workspace of the recorded build with --recorded, or replay the whole without --step and --from"
                    .into(),
            ),
            Self::InputDiffers { .. } => Some("replay the whole without --step and --from".into()),
            Self::InUse { .. } => Some("name a directory that is not there yet with --workspace".into()),
            Self::Io { .. } => Some(
                "--workspace names another place for the workspaces, and TMPDIR one for the files that the attestation carries"
                    .into(),
            ),
        }
    }
}

/// Replays `source` as `request` says.
pub fn replay(
    source: &Source,
    request: &Request,
    settings: &Settings,
    observer: &dyn Observe,
    interrupt: &Interrupt,
) -> Result<Report> {
    let plan = source.plan().digest();
    let mut report = Report {
        attestation: source.attestation().path().to_owned(),
        plan,
        outcome: Outcome::Identical,
        summary: String::new(),
        runs: Vec::new(),
        drift: Vec::new(),
        varied: Vec::new(),
        notes: Vec::new(),
        kept: None,
    };
    // Before the work, not after it.
    check_directory(&request.directory)?;
    let recorded = request.recorded.as_deref().map(Recorded::read).transpose()?;
    if let Some(reason) = source.obstacle() {
        report.outcome = Outcome::Inconclusive;
        report.summary = reason;
        return Ok(report);
    }
    let host = match drift::probe(source, interrupt)? {
        Ok(host) => host,
        Err(lacking) => {
            report.outcome = Outcome::ToolDrift;
            report.summary = lacking.reason;
            report.drift = lacking.drift;
            report.notes.extend(lacking.hint);
            return Ok(report);
        }
    };
    report.drift = drift::find_drift(source.attestation(), &host);
    let variants = variation::variants(request, &host);
    report.varied.clone_from(&variants.varied);
    for (number, variant) in variants.runs.iter().enumerate() {
        let setting =
            run::Setting { source, request, settings, observer, interrupt, host: &host, drift: &report.drift };
        let done = run::run(&setting, variant, number)?;
        report.runs.push(done);
    }
    verdict::judge(&mut report, source, request, recorded.as_ref(), interrupt)?;
    if report.outcome == Outcome::Identical {
        let _ = std::fs::remove_dir_all(&request.directory);
    } else {
        report.kept = Some(request.directory.clone());
    }
    Ok(report)
}

/// Refuses a directory that has something in it, or in which no workspace can be.
fn check_directory(path: &Path) -> Result<()> {
    workspace::check_path(path)?;
    match std::fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(ReplayError::InUse { path: path.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(ReplayError::InUse { path: path.to_owned() }.into())
        }
        Err(source) => Err(ReplayError::Io { path: path.to_owned(), source }.into()),
    }
}
