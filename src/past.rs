//! What a build recorded of its steps, and how two builds' records differ, step by step.
//!
//! This is what `explain`, `diff` and `replay` have in common: a difference between artifacts is a
//! symptom, and the first step in plan order that made something else from equal inputs its cause.

mod differences;

pub use differences::{Cause, OutputChange, StepDifference, find_causes, find_differences};

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Class, Fault, Result};
use crate::journal::{self, Entry, Outcome, Output, Record, ToolRecord};
use crate::key::KeyParts;
use crate::pins::Name;
use crate::plan::{self, Plan};
use crate::provenance::StepRecord;
use crate::step::StepId;
use crate::workspace;

/// What a finished step was made from, and what it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Its key.
    pub key: Digest,
    /// What the key was made of.
    pub parts: KeyParts,
    /// Digest and size in bytes of each output.
    pub outputs: BTreeMap<String, Output>,
    /// The tools that it ran.
    pub tools: BTreeMap<Name, ToolRecord>,
}

impl From<&Record> for Past {
    fn from(record: &Record) -> Self {
        Self {
            key: record.key,
            parts: record.parts.clone(),
            outputs: record.outputs.clone(),
            tools: record.tools.clone(),
        }
    }
}

impl From<&StepRecord> for Past {
    fn from(record: &StepRecord) -> Self {
        Self {
            key: record.key,
            parts: record.parts.clone(),
            outputs: record.outputs.clone(),
            tools: record.tools.clone(),
        }
    }
}

/// The steps of `records` that finished.
pub fn finished(records: &BTreeMap<StepId, Record>) -> BTreeMap<StepId, Past> {
    let done = records.iter().filter(|(_, record)| record.outcome == Outcome::Done);
    done.map(|(id, record)| (id.clone(), Past::from(record))).collect()
}

/// What a workspace holds in writing.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The plan of its last run.
    pub plan: Plan,
    /// Its journal.
    pub entries: Vec<Entry>,
}

/// Why a recorded plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// It cannot be read.
    #[error("cannot read the plan {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no plan.
    #[error("{path} is not a plan")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A newer version wrote it.
    #[error("{path} has schema {found}, and this version reads schema {}", plan::SCHEMA)]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema it says.
        found: u32,
    },
}

impl Fault for PastError {
    fn class(&self) -> Class {
        Class::Workspace
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Malformed { .. } => Some("the plan was edited or damaged; build in another workspace".into()),
            Self::Schema { .. } => Some("use the version that wrote it".into()),
        }
    }
}

/// The most bytes that a plan may have; the largest of ours has 100 kB.
const LARGEST_PLAN: u64 = 64 << 20;

impl Recorded {
    /// Reads what the workspace at `root` holds; nothing is written, and it may be in use.
    pub fn read(root: &Path) -> Result<Self> {
        workspace::check_old(root)?;
        let plan = read_plan(&root.join("plan.json"))?;
        Ok(Self { plan, entries: journal::read(&workspace::journal_in(root))? })
    }

    /// The last record of each step.
    pub fn latest(&self) -> BTreeMap<StepId, Record> {
        journal::latest(self.entries.clone())
    }

    /// Every record of the step called `id`, in the order in which they were written.
    pub fn records_of<'a>(&'a self, id: &StepId) -> Vec<&'a Record> {
        let of_step = |entry: &'a Entry| match entry {
            Entry::Step(record) if record.step == *id => Some(&**record),
            _ => None,
        };
        self.entries.iter().filter_map(of_step).collect()
    }
}

/// Reads a plan as builds write it.
pub fn read_plan(path: &Path) -> Result<Plan, PastError> {
    let unreadable = |source| PastError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(unreadable)?.take(LARGEST_PLAN).read_to_end(&mut bytes).map_err(unreadable)?;
    parse_plan(path, &bytes)
}

/// Reads a plan from `bytes`; `path` is for errors only.
pub fn parse_plan(path: &Path, bytes: &[u8]) -> Result<Plan, PastError> {
    let plan: Plan =
        serde_json::from_slice(bytes).map_err(|source| PastError::Malformed { path: path.to_owned(), source })?;
    if plan.schema != plan::SCHEMA {
        return Err(PastError::Schema { path: path.to_owned(), found: plan.schema });
    }
    Ok(plan)
}
