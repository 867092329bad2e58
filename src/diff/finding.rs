//! What a comparison found, and the one bound on how much of it is kept.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::interrupt::{Interrupt, Interrupted};
use crate::printable::cut;

/// How two things compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The first.
    pub left: PathBuf,
    /// The second.
    pub right: PathBuf,
    /// What both are.
    pub kind: &'static str,
    /// Whether they are equal.
    pub verdict: Verdict,
    /// Where they differ, in the order in which they were looked through.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub left_out: u64,
}

/// Whether two things are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Byte for byte, or, of records, in all that counts.
    Equal,
    /// What is inside is equal, and the way it is encoded is not.
    SameUnpacked,
    /// They differ.
    Differs,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where: from the outermost to the innermost part.
    pub place: Vec<String>,
    /// What the first has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What the second has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// More about it, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// The most characters of a value that are shown.
const LONGEST: usize = 300;

/// The most lines about one finding.
pub(super) const MOST_LINES: usize = 24;

/// Takes in findings.
pub(super) struct Sink<'a> {
    findings: Vec<Finding>,
    limit: usize,
    left_out: u64,
    place: Vec<String>,
    differs: bool,
    repacked: bool,
    interrupt: &'a Interrupt,
}

impl<'a> Sink<'a> {
    pub(super) fn new(limit: usize, interrupt: &'a Interrupt) -> Self {
        Self { findings: Vec::new(), limit, left_out: 0, place: Vec::new(), differs: false, repacked: false, interrupt }
    }

    pub(super) fn interrupt(&self) -> &'a Interrupt {
        self.interrupt
    }

    pub(super) fn check(&self) -> Result<(), Interrupted> {
        self.interrupt.check()
    }

    /// What `look` finds lies in the part called `name`.
    pub(super) fn within<T>(&mut self, name: impl Into<String>, look: impl FnOnce(&mut Self) -> T) -> T {
        self.place.push(cut(&name.into(), LONGEST));
        let result = look(self);
        self.place.pop();
        result
    }

    /// The part called `name` differs.
    pub(super) fn add(&mut self, name: &str, before: Option<&str>, after: Option<&str>) {
        self.add_lines(name, before, after, Vec::new());
    }

    /// The same with lines about it.
    pub(super) fn add_lines(&mut self, name: &str, before: Option<&str>, after: Option<&str>, lines: Vec<String>) {
        self.differs = true;
        self.keep(name, before, after, lines);
    }

    /// The part called `name` is encoded in another way, and has the same content.
    pub(super) fn add_repacked(&mut self, name: &str, before: Option<&str>, after: Option<&str>) {
        self.repacked = true;
        self.keep(name, before, after, Vec::new());
    }

    fn keep(&mut self, name: &str, before: Option<&str>, after: Option<&str>, mut lines: Vec<String>) {
        if self.findings.len() >= self.limit {
            self.left_out += 1;
            return;
        }
        let more = lines.len().saturating_sub(MOST_LINES);
        lines.truncate(MOST_LINES);
        let mut lines: Vec<String> = lines.iter().map(|line| cut(line, LONGEST)).collect();
        if more > 0 {
            lines.push(format!("… {more} more lines"));
        }
        let mut place = self.place.clone();
        if !name.is_empty() {
            place.push(cut(name, LONGEST));
        }
        let shown = |text: Option<&str>| text.map(|text| cut(text, LONGEST));
        self.findings.push(Finding { place, before: shown(before), after: shown(after), lines });
    }

    /// `count` differences more that are not described.
    pub(super) fn leave_out(&mut self, count: u64) {
        self.differs |= count > 0;
        self.left_out += count;
    }

    /// Whether there is still room; without, describing can be saved.
    pub(super) fn is_full(&self) -> bool {
        self.findings.len() >= self.limit
    }

    /// Findings so far, left out or not.
    pub(super) fn count(&self) -> u64 {
        self.findings.len() as u64 + self.left_out
    }

    pub(super) fn finish(self, left: &Path, right: &Path, kind: &'static str) -> Report {
        let verdict = match (self.differs, self.repacked) {
            (true, _) => Verdict::Differs,
            (false, true) => Verdict::SameUnpacked,
            (false, false) => Verdict::Equal,
        };
        Report {
            left: left.to_owned(),
            right: right.to_owned(),
            kind,
            verdict,
            findings: self.findings,
            left_out: self.left_out,
        }
    }
}
