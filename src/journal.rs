//! What happened: append-only JSON lines, one record a step, each on disk before the next step may
//! rely on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::key::KeyParts;
use crate::pins::{Name, Platform};
use crate::step::StepId;

/// The schema of journal lines.
pub const SCHEMA: u32 = 1;

/// The most bytes that a journal may have: a build writes some hundred kilobytes.
pub(crate) const LARGEST: u64 = 256 << 20;

/// Bytes read at a time from a journal's end.
const BLOCK: u64 = 4096;

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
            Self::Io { source, .. } if source.kind() == io::ErrorKind::Other => {
                Some("no build wrote that: move it away, or build in another workspace".into())
            }
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
        match bounded::open(path) {
            Ok(file) => drop_torn_line(path, file).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
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
    let failed = |source| JournalError::Io { path: path.to_owned(), source };
    let file = match bounded::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    if file.metadata().map_err(failed)?.len() > LARGEST {
        return Err(failed(bounded::too_large(LARGEST)));
    }
    // One line at a time: what is read is a multiple of what is in it that counts.
    let mut reader = BufReader::new(file.take(LARGEST));
    let (mut entries, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(failed)?;
        if !line.ends_with(b"\n") {
            break;
        }
        let malformed = |source| JournalError::Malformed { path: path.to_owned(), line: number, source };
        let entry: Entry = serde_json::from_slice(&line).map_err(malformed)?;
        if let Entry::Run(RunRecord { schema, .. }) = &entry
            && *schema != SCHEMA
        {
            return Err(JournalError::Schema { path: path.to_owned(), found: *schema });
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Cuts off a line without its end: what a crash left of a record that nobody has relied on yet.
fn drop_torn_line(path: &Path, mut file: File) -> io::Result<()> {
    let length = file.metadata()?.len();
    // From the end, a block at a time; nearly always the last byte ends a line.
    let (mut end, mut whole) = (length, 0);
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        (&mut file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            whole = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    if whole < length { File::options().write(true).open(path)?.set_len(whole) } else { Ok(()) }
}

/// The last record of each step.
pub fn latest(entries: Vec<Entry>) -> BTreeMap<StepId, Record> {
    let records = entries.into_iter().filter_map(|entry| match entry {
        Entry::Step(record) => Some((record.step.clone(), *record)),
        Entry::Run(_) => None,
    });
    records.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_of_any_length_is_cut_off() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal.jsonl");
        for (whole, torn) in
            [("", 1), ("", 5000), ("one\ntwo\n", 0), ("one\n", 1), ("one\n", 4095), ("one\n", 4096), ("one\n", 9000)]
        {
            std::fs::write(&path, format!("{whole}{}", "x".repeat(torn))).unwrap();
            Journal::open(&path).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "{torn}");
        }
        // Not even as text does it count.
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path).unwrap(), []);
    }

    #[test]
    fn what_no_build_wrote_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal.jsonl");
        File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        for (path, reason) in
            [(path.as_path(), "it is larger than"), (Path::new("/dev/zero"), "it is not a regular file")]
        {
            let error = read(path).unwrap_err();
            assert!(error.hint().is_some());
            assert!(matches!(error, JournalError::Io { source, .. } if source.to_string().starts_with(reason)));
        }
        assert!(Journal::open(Path::new("/dev/zero")).is_err());
    }
}
