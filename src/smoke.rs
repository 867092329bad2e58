//! Trying a model library in a real browser: that it loads, answers, and answers the same twice. And a
//! generator, which brings its own check.
//!
//! Knows nothing of plans and builds. What is found is a [`SmokeReport`], also where there is no
//! browser or no adapter to try it with; an error is what keeps a trial from being made at all.

mod answers;
mod browser;
mod engine;
mod inputs;
mod metadata;
mod protocol;
mod report;
mod script;
mod server;
mod subject;
mod trial;
mod values;
mod weights;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use report::{
    Adapter, Check, EngineFigures, Figures, GeneratorFigures, Model, Outcome, Said, SmokeReport, Weights,
};
pub use script::TOLERANCE;
pub use subject::{Generator, Library, Subject, SubjectError, Subjects, read_manifest, role};

use crate::bounded::read_head;
use crate::error::{Class, Error, Fault, Result};
use crate::interrupt::{Interrupt, Interrupted};
use crate::replace::{CannotWrite, check};

/// How to try a library.
#[derive(Debug, Clone)]
pub struct Request {
    /// A directory with a tensor cache, instead of what comes with the subject or of seeded weights.
    pub weights: Option<PathBuf>,
    /// What the library must answer, instead of a `reference.json` beside the weights.
    pub reference: Option<PathBuf>,
    /// Where to write the logits of the first run: the last row of each call, 32-bit floats.
    pub save_logits: Option<PathBuf>,
    /// How far a logit may be from its reference.
    pub tolerance: Option<f64>,
    /// Decode steps where no reference says which.
    pub steps: usize,
    /// For weights and prompt.
    pub seed: u64,
    /// The most bytes of a seeded shard.
    pub shard_size: u64,
    /// Bytes of further seeded tensors, which the library does not use, to see how much is loaded. Where
    /// there are any, all weights are seeded.
    pub ballast: u64,
    /// The most bytes that may be held while weights are loaded: of transferred bodies, and in the GPU's queue.
    pub max_held: Option<u64>,
    /// The browser; one on `PATH` when not given.
    pub browser: Option<PathBuf>,
    /// Use this host's GPU, and not the browser's software renderer.
    pub gpu: bool,
    /// Try the engine too, if there is one.
    pub engine: bool,
    /// How long one library may take.
    pub timeout: Duration,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            weights: None,
            reference: None,
            save_logits: None,
            tolerance: None,
            steps: 4,
            seed: 1,
            shard_size: 32 << 20,
            ballast: 0,
            max_held: None,
            browser: None,
            gpu: false,
            engine: true,
            timeout: Duration::from_mins(15),
        }
    }
}

/// The trials of several libraries.
#[derive(Debug, Serialize)]
pub struct SmokeReports {
    /// The worst of all.
    pub outcome: Outcome,
    /// One for each library.
    pub libraries: Vec<SmokeReport>,
}

impl SmokeReports {
    /// The error class of the worst; nothing when all passed.
    pub fn class(&self) -> Option<Class> {
        let classes = || self.libraries.iter().filter_map(SmokeReport::class);
        classes().find(|class| *class == Class::Artifact).or_else(|| classes().next())
    }
}

/// A trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SmokeError {
    /// A file that was named cannot be used.
    #[error("{what} {} cannot be used: {reason}", .path.display())]
    Input {
        /// The file or directory.
        path: PathBuf,
        /// What it is to the trial.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// This host does not let us.
    #[error("cannot {what}")]
    Host {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// Something stands where the logits should be written.
    #[error("{path} is there already")]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The logits cannot be written.
    #[error(transparent)]
    Write(#[from] CannotWrite),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for SmokeError {
    fn class(&self) -> Class {
        match self {
            Self::Input { .. } | Self::Exists { .. } => Class::Usage,
            Self::Host { .. } => Class::Preflight,
            Self::Write(error) => error.class(),
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Write(error) => error.hint(),
            Self::Input { what: "the directory of weights", .. } => {
                Some("name one with tensor-cache.json and its shards, or leave --weights out for seeded ones".into())
            }
            Self::Exists { .. } => Some("name a file that is not there yet, or remove it".into()),
            Self::Input { .. } => Some("mend this file, or name another for it".into()),
            Self::Host { .. } | Self::Interrupted(_) => None,
        }
    }
}

/// Tries each of `subjects`, one after another.
pub fn smoke_all(subjects: &[Subject], request: &Request, interrupt: &Interrupt) -> Result<SmokeReports> {
    if let Some(path) = &request.save_logits {
        check(path).map_err(SmokeError::from)?;
        // Numbers alone do not tell that they are logits: whatever stands there may be somebody's.
        if read_head(path, 1).is_ok_and(|head| head.is_some_and(|head| !head.is_empty())) {
            return Err(SmokeError::Exists { path: path.clone() }.into());
        }
    }
    for subject in subjects {
        inputs::check(subject, request)?;
    }
    let mut libraries = Vec::new();
    for subject in subjects {
        libraries.push(smoke(subject, request, interrupt)?);
    }
    let has = |outcome| libraries.iter().any(|report: &SmokeReport| report.outcome == outcome);
    let outcome = if has(Outcome::Failed) {
        Outcome::Failed
    } else if has(Outcome::Inconclusive) || libraries.is_empty() {
        Outcome::Inconclusive
    } else {
        Outcome::Passed
    };
    Ok(SmokeReports { outcome, libraries })
}

/// Tries one library or generator.
pub fn smoke(subject: &Subject, request: &Request, interrupt: &Interrupt) -> Result<SmokeReport> {
    let mut report = SmokeReport::begin(subject.name());
    let ended = trial::run(subject, request, &mut report, interrupt);
    match ended {
        Ok(()) => report.conclude(true),
        Err(trial::Stop::Here) => report.conclude(false),
        Err(trial::Stop::Error(error)) => return Err(Error::from(error)),
    }
    Ok(report)
}
