//! What the text of a patch may not contain.

use crate::pins::RelativePath;

/// What is wrong with the text of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A binary change.
    #[error("a binary change cannot be compared line by line")]
    Binary,
    /// A zero byte in a hunk.
    #[error("a hunk of text has no zero byte")]
    Nul,
    /// A rename or a copy.
    #[error("renames and copies are not applied")]
    Rename,
    /// A combined diff.
    #[error("a combined diff of a merge has no single pre-image")]
    Combined,
    /// The patch file's own line endings are CR LF.
    #[error("this header line ends in CR LF: the patch file itself was converted")]
    Converted,
    /// A path that a patch may not name.
    #[error("path `{path}` {reason}")]
    Path {
        /// The path, without its `a/` or `b/`.
        path: String,
        /// Why not.
        reason: PathFlaw,
    },
    /// Paths without git's prefixes.
    #[error("the paths in `{0}` do not begin with a/ and b/")]
    Prefix(String),
    /// A quoted path that is not closed, or has an unknown escape.
    #[error("`{0}` is not a quoted path")]
    Quotes(String),
    /// The header lines of one file name different files.
    #[error("the header names `{0}` here and `{1}` above")]
    Names(String, String),
    /// A mode that is not a plain file's.
    #[error("mode {0} is not a plain file's (100644 or 100755)")]
    Mode(String),
    /// Header lines that contradict each other or miss each other.
    #[error("the file's header lines do not agree: {0}")]
    Header(&'static str),
    /// A header that announces a change without one.
    #[error("{0} has no hunk and no other change")]
    NoHunks(RelativePath),
    /// `@@` without the rest.
    #[error("`{0}` is not a hunk header")]
    HunkHeader(String),
    /// A hunk before any file header.
    #[error("a hunk stands here without a file header")]
    StrayHunk,
    /// The text ends inside a hunk.
    #[error("the patch ends here inside a hunk; {old} old and {new} new lines are missing")]
    Cut {
        /// Missing lines of the old file.
        old: usize,
        /// Missing lines of the new file.
        new: usize,
    },
    /// The last line has no line feed.
    #[error("the patch's last line is cut off: it has no line feed")]
    NoLineFeed,
    /// A line in a hunk that begins with none of the four marks.
    #[error("`{0}` cannot stand in a hunk, which is not complete here")]
    HunkLine(String),
    /// The hunk has more lines of a kind than its header says.
    #[error("the hunk has more {0} lines than its header says")]
    Overfull(&'static str),
    /// Text after a hunk that would be ignored by others.
    #[error("`{0}` stands after a complete hunk and belongs to nothing")]
    Loose(String),
    /// A hunk that only its line number holds in place.
    #[error("the hunk has no context line before its first change, and does not begin at line 1")]
    Unanchored,
    /// A hunk that overlaps the one before.
    #[error("the hunk begins at old line {0}, before the end of the one above")]
    Order(usize),
    /// The line numbers do not follow from each other.
    #[error("the hunk's new line is {found}, and the hunks above lead to {expected}")]
    NewLine {
        /// What the counts lead to.
        expected: usize,
        /// What the header says.
        found: usize,
    },
    /// Only context.
    #[error("the hunk adds nothing and removes nothing")]
    NoChange,
    /// `\ No newline at end of file` where more lines follow.
    #[error("a line without a line feed can only be the last of its file")]
    Newline,
    /// A created file with old lines, or a deleted one with new lines.
    #[error("a file that is {0} has one hunk of {1} lines only")]
    Shape(&'static str, &'static str),
    /// Two headers for one file.
    #[error("{0} has a header of its own above already")]
    Twice(RelativePath),
    /// One named file would have to be a directory of another.
    #[error("{0} cannot be a file and a directory, which {1} needs")]
    Nested(RelativePath, RelativePath),
}

/// What is wrong with a path in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFlaw {
    /// It begins with `/`.
    #[error("is absolute")]
    Absolute,
    /// It has a part `..`.
    #[error("leaves the tree")]
    Leaves,
    /// It has a part that some file system takes for `.git`.
    #[error("lies in a git directory")]
    Git,
    /// It has a `\`.
    #[error("has a backslash")]
    Backslash,
    /// It is not UTF-8.
    #[error("is not UTF-8")]
    Encoding,
    /// It has an empty part, a part `.` or a control character.
    #[error("has an empty part, a part `.` or a control character")]
    Form,
}
