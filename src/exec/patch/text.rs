//! The structure of a patch: free text, then files with their hunks, and nothing that is ignored.
//!
//! The form is git's (gitformat-diff, "Generating patch text with -p") or a plain unified diff with
//! git's `a/` and `b/`. Other readers skip what they do not understand behind a hunk, so that a wrong
//! count loses lines silently. Here free text stands before the first file and after a mail's
//! signature only.

use super::error::PatchError;
use super::flaw::Flaw;
use super::header::{read_git_header, read_plain_header};
use super::hunk::read_hunks;
use super::path::lossy;
use crate::pins::{Commit, RelativePath};

/// A patch that can be applied exactly, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchText {
    /// What the patch is called in messages.
    pub name: String,
    /// The text before the first file, usually the reason for the change.
    pub prelude: Vec<u8>,
    /// The files, in the order of the patch; at least one, each with a change.
    pub files: Vec<PatchedFile>,
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// The file, by its path in the tree; the same before and after.
    pub path: RelativePath,
    /// The kind of change.
    pub change: Change,
    /// The `index` line, where there is one.
    pub index: Option<IndexLine>,
    /// The hunks, in order and without overlap; none where only the mode changes or the file is empty.
    pub hunks: Vec<Hunk>,
    /// The line of the patch where the file's header begins, from 1.
    pub line: usize,
}

/// A kind of change to a file, and what it says of the executable bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The file does not exist before.
    Create {
        /// It becomes executable.
        executable: bool,
    },
    /// The file does not exist after.
    Delete {
        /// It is executable before, where the patch says so.
        executable: Option<bool>,
    },
    /// The content changes.
    Content,
    /// The executable bit changes, and the content when there are hunks.
    Mode {
        /// The bit before.
        from: bool,
        /// The bit after.
        to: bool,
    },
}

/// `index BEFORE..AFTER MODE`: git's blob ids, often shortened; zeros stand for no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLine {
    /// Digits of the pre-image's id.
    pub before: String,
    /// Digits of the post-image's id.
    pub after: String,
    /// Whether the unchanged mode is executable, where the line says.
    pub executable: Option<bool>,
}

/// Consecutive lines of a file, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The `@@` line without what follows the second `@@`.
    pub header: String,
    /// The line of the patch where it stands, from 1.
    pub line: usize,
    /// The first line of the old file, from 1; where the hunk has no old line, the line before it.
    pub old_start: usize,
    /// The lines, old and new.
    pub lines: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    /// Where the line belongs.
    pub kind: LineKind,
    /// The line with its line feed; the last line of a file may have none.
    pub bytes: Vec<u8>,
}

/// Where a line of a hunk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Before and after.
    Context,
    /// Before only.
    Removed,
    /// After only.
    Added,
}

impl Hunk {
    /// The lines that the hunk needs to find.
    pub fn old_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|line| line.kind != LineKind::Added).map(|line| line.bytes.as_slice())
    }

    /// The lines that the hunk leaves.
    pub fn new_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|line| line.kind != LineKind::Removed).map(|line| line.bytes.as_slice())
    }

    /// How many lines of the old file stand before the hunk.
    pub fn first(&self) -> usize {
        if self.old_lines().next().is_some() { self.old_start - 1 } else { self.old_start }
    }

    /// Whether the last line is context, which holds the hunk's end in place.
    pub fn ends_in_context(&self) -> bool {
        self.lines.last().is_some_and(|line| line.kind == LineKind::Context)
    }
}

impl IndexLine {
    /// Whether the post-image is `id`, as far as its digits go.
    pub fn after_is(&self, id: &Commit) -> bool {
        Self::names(&self.after, Some(id))
    }

    /// Whether `digits` begin `id`, or are zeros where there is no file.
    pub fn names(digits: &str, id: Option<&Commit>) -> bool {
        match id {
            Some(id) => id.as_str().starts_with(digits),
            None => digits.bytes().all(|digit| digit == b'0'),
        }
    }
}

/// The lines of a patch, one after the other.
pub(super) struct Reader<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
}

/// A flaw and the line it is in, from 1.
pub(super) type Refusal = (usize, Flaw);

impl<'a> Reader<'a> {
    /// The current line with its line feed.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.lines.get(self.at).copied()
    }

    /// The line after the current one.
    pub fn peek_next(&self) -> Option<&'a [u8]> {
        self.lines.get(self.at + 1).copied()
    }

    /// Goes to the next line.
    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// The current line's number.
    pub fn number(&self) -> usize {
        self.at + 1
    }

    /// `flaw`, in the current line.
    pub fn refuse<T>(&self, flaw: Flaw) -> Result<T, Refusal> {
        Err((self.number(), flaw))
    }

    /// What follows `mark` in the current line, when it begins with it: a header line, which never
    /// ends in CR LF in a patch that has not been converted.
    pub fn header(&self, mark: &[u8]) -> Result<Option<&'a [u8]>, Refusal> {
        let Some(rest) = self.peek().and_then(|line| line.strip_prefix(mark)) else { return Ok(None) };
        let Some(rest) = rest.strip_suffix(b"\n") else { return self.refuse(Flaw::NoLineFeed) };
        if rest.ends_with(b"\r") { self.refuse(Flaw::Converted) } else { Ok(Some(rest)) }
    }

    fn starts(&self, mark: &[u8]) -> bool {
        self.peek().is_some_and(|line| line.starts_with(mark))
    }

    fn at_plain_header(&self) -> bool {
        self.starts(b"--- ") && self.peek_next().is_some_and(|line| line.starts_with(b"+++ "))
    }
}

/// Reads the text of the patch called `name`.
///
/// # Errors
/// Everything that other tools guess at or skip: text behind a hunk, counts that are wrong, hunks
/// without context, renames, binary changes, paths that leave the tree, no change at all.
pub fn parse(name: &str, bytes: &[u8]) -> Result<PatchText, PatchError> {
    let refused = |(line, flaw)| PatchError::Structure { patch: name.to_owned(), line, flaw };
    let mut reader = Reader { lines: bytes.split_inclusive(|&byte| byte == b'\n').collect(), at: 0 };
    let mut prelude = Vec::new();
    let mut files: Vec<PatchedFile> = Vec::new();
    // Free text stands before the first file and after the signature of a mail.
    let mut free = true;
    while let Some(line) = reader.peek() {
        let is_git = reader.starts(b"diff --git ");
        if is_git || reader.at_plain_header() {
            let file = read_file(&mut reader, is_git).map_err(refused)?;
            check_file(&file, &files).map_err(|flaw| refused((file.line, flaw)))?;
            files.push(file);
            free = false;
            continue;
        }
        refuse_between(&reader, free).map_err(refused)?;
        free |= is_signature(line);
        if files.is_empty() {
            prelude.extend_from_slice(line);
        }
        reader.advance();
    }
    if files.is_empty() {
        return Err(PatchError::Empty { patch: name.to_owned() });
    }
    Ok(PatchText { name: name.to_owned(), prelude, files })
}

fn read_file(reader: &mut Reader<'_>, is_git: bool) -> Result<PatchedFile, Refusal> {
    let mut file = if is_git { read_git_header(reader)? } else { read_plain_header(reader)? };
    file.hunks = read_hunks(reader)?;
    Ok(file)
}

/// A line outside of files and hunks: free text, or one that must not be there.
fn refuse_between(reader: &Reader<'_>, free: bool) -> Result<(), Refusal> {
    let Some(line) = reader.peek() else { return Ok(()) };
    if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
        return reader.refuse(Flaw::Combined);
    }
    if line.starts_with(b"@@ -") {
        return reader.refuse(Flaw::StrayHunk);
    }
    if line.starts_with(b"GIT binary patch") || line.starts_with(b"Binary files ") && line.ends_with(b" differ\n") {
        return reader.refuse(Flaw::Binary);
    }
    // What diff -r and Subversion write above a plain header.
    let announces = [&b"diff -"[..], b"Index: ", b"====="].iter().any(|mark| line.starts_with(mark));
    if free || announces || line == b"\n" || is_signature(line) {
        Ok(())
    } else {
        reader.refuse(Flaw::Loose(lossy(line)))
    }
}

/// The line that git format-patch writes above its version (RFC 3676, section 4.3); editors that
/// trim lines leave two dashes of it.
fn is_signature(line: &[u8]) -> bool {
    line == b"-- \n" || line == b"--\n"
}

fn check_file(file: &PatchedFile, others: &[PatchedFile]) -> Result<(), Flaw> {
    for other in others {
        if other.path == file.path {
            return Err(Flaw::Twice(file.path.clone()));
        }
        let below = |one: &RelativePath, two: &RelativePath| {
            one.as_str().strip_prefix(two.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        if below(&other.path, &file.path) {
            return Err(Flaw::Nested(file.path.clone(), other.path.clone()));
        }
        if below(&file.path, &other.path) {
            return Err(Flaw::Nested(other.path.clone(), file.path.clone()));
        }
    }
    let only =
        |kind| file.hunks.len() <= 1 && file.hunks.iter().flat_map(|hunk| &hunk.lines).all(|line| line.kind == kind);
    match file.change {
        Change::Create { .. } if !only(LineKind::Added) => Err(Flaw::Shape("created", "added")),
        Change::Delete { .. } if !only(LineKind::Removed) => Err(Flaw::Shape("deleted", "removed")),
        Change::Content if file.hunks.is_empty() => Err(Flaw::NoHunks(file.path.clone())),
        _ => Ok(()),
    }
}
