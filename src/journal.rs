//! What happened: append-only JSON lines, one record a step, each on disk before the next step may
//! rely on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::key::KeyParts;
use crate::pins::{Name, Platform};
use crate::step::StepId;

/// The schema of journal lines.
pub const SCHEMA: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A run begins.
    Run(RunRecord),
    /// A step ended.
    Step(Box<Record>),
}

/// The beginning of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The plan's digest.
    pub plan: Digest,
    /// The digest of the pins file's bytes.
    pub pins: Digest,
    /// Version of this program.
    pub builder: String,
    /// The host's platform.
    pub platform: Platform,
    /// Whether steps without network ran without one.
    pub isolation: bool,
    /// The most steps at a time.
    pub jobs: usize,
    /// Names of environment variables that were passed through to steps with network.
    pub passed_through: Vec<String>,
    /// When, RFC 3339.
    pub started: String,
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which step.
    pub step: StepId,
    /// Its key.
    pub key: Digest,
    /// What the key was made of.
    pub parts: KeyParts,
    /// How it ended.
    pub outcome: Outcome,
    /// Digest and size in bytes of each output.
    pub outputs: BTreeMap<String, Output>,
    /// The tools that it ran.
    pub tools: BTreeMap<Name, ToolRecord>,
    /// Whether it ran without a network.
    pub isolated: bool,
    /// Fall-backs, retries and whatever else a reader should know.
    pub notes: Vec<String>,
    /// What the action reports: commits and trees, blob ids, digests found.
    pub report: serde_json::Value,
    /// The error's text, of a failed step.
    pub error: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its log, relative to the workspace.
    pub log: String,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its outputs stand.
    Done,
    /// It failed; its tree stands in the scratch directory.
    Failed,
    /// The run was interrupted.
    Interrupted,
}

/// What stands at an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Digest of the file or tree ([`crate::digest::hash_path`]).
    pub sha256: Digest,
    /// Size in bytes of all files.
    pub size: u64,
}

/// A tool as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// Its version, as it says itself.
    pub version: String,
    /// Digest of the program file.
    pub sha256: Digest,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading or writing failed.
    #[error("cannot use the journal {path}")]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a record.
    #[error("{path}, line {line}: not a journal record")]
    Malformed {
        /// The journal.
        path: PathBuf,
        /// The line's number.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// Written by a newer version.
    #[error("{path} has schema {found}, and this version reads schema {SCHEMA}")]
    Schema {
        /// The journal.
        path: PathBuf,
        /// The schema it says.
        found: u32,
    },
}

impl Fault for JournalError {
    fn class(&self) -> Class {
        Class::Workspace
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } => None,
            Self::Malformed { .. } => Some("the journal was edited or damaged; build in another workspace".into()),
            Self::Schema { .. } => Some("use the version that wrote it, or build in another workspace".into()),
        }
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal at `path` for appending, creating it when there is none.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        // A line without its end is what a crash left of a record that nobody has relied on yet.
        if let Ok(text) = std::fs::read(path)
            && !text.is_empty()
            && !text.ends_with(b"\n")
        {
            let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let file = File::options().write(true).open(path).map_err(failed)?;
            file.set_len(whole as u64).map_err(failed)?;
        }
        let file = File::options().create(true).append(true).open(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends one entry; when this returns it is on disk.
    pub fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

/// Every entry of the journal at `path`; none when there is no journal. An unfinished last line does
/// not count.
pub fn read(path: &Path) -> Result<Vec<Entry>, JournalError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(JournalError::Io { path: path.to_owned(), source }),
    };
    let mut entries = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let malformed = |source| JournalError::Malformed { path: path.to_owned(), line: index + 1, source };
        let entry: Entry = serde_json::from_str(line).map_err(malformed)?;
        if let Entry::Run(RunRecord { schema, .. }) = &entry
            && *schema != SCHEMA
        {
            return Err(JournalError::Schema { path: path.to_owned(), found: *schema });
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The last record of each step.
pub fn latest(entries: Vec<Entry>) -> BTreeMap<StepId, Record> {
    let records = entries.into_iter().filter_map(|entry| match entry {
        Entry::Step(record) => Some((record.step.clone(), *record)),
        Entry::Run(_) => None,
    });
    records.collect()
}
