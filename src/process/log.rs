//! A step's log file, and the notes that deserve a place in the journal.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::printable::{escape_line, without_secrets};

/// The log of one run of one step. What is written here has no password that stood in a url; what
/// children write is theirs.
#[derive(Debug)]
pub struct StepLog {
    path: PathBuf,
    file: File,
    notes: Mutex<Vec<String>>,
}

impl StepLog {
    /// Creates (or empties) the log at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Appending, so that lines of ours and of children that share the file keep their order.
        File::create(path)?;
        let file = File::options().append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file, notes: Mutex::default() })
    }

    /// Where the log lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for a child's standard output and error.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes one line. A log that cannot be written does not fail the step; its disk is full, and
    /// the step's own writes will say so.
    pub fn line(&self, text: &str) {
        let _ = (&self.file).write_all(format!("{}\n", without_secrets(text)).as_bytes());
    }

    /// Writes one line and keeps it for the journal: a fall-back, a retry, anything by which this
    /// run went another way than the plan's reader expects. It stays one line, whatever is named in it.
    pub fn note(&self, text: impl Into<String>) {
        let text = escape_line(&without_secrets(&text.into()));
        tracing::warn!("{text}");
        self.line(&format!("note: {text}"));
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// The notes so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last `lines` lines, as text; bytes that are not UTF-8 are replaced.
    pub fn tail(&self, lines: usize) -> String {
        read_tail(&self.path, lines).unwrap_or_default()
    }
}

/// The last `count` lines of the file at `path`, reading no more than its last 64 KiB.
pub fn read_tail(path: &Path, count: usize) -> io::Result<String> {
    const WINDOW: u64 = 64 * 1024;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)))?;
    let mut bytes = Vec::new();
    file.take(WINDOW).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(count)..].join("\n"))
}
