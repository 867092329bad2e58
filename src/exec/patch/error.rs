//! Why a patch is refused.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::flaw::Flaw;
use super::report::Difference;
use crate::error::{Class, Fault};
use crate::pins::{Commit, RelativePath};

/// Why a patch is refused, or does not apply.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is not a patch that can be applied exactly.
    #[error("patch {patch}, line {line}: {flaw}")]
    Structure {
        /// The patch's name.
        patch: String,
        /// The line of the patch, from 1.
        line: usize,
        /// What is wrong there.
        flaw: Flaw,
    },
    /// No file header is in the text.
    #[error("patch {patch} names no file: it has no `diff --git` line and no `---` and `+++` lines")]
    Empty {
        /// The patch's name.
        patch: String,
    },
    /// The file to change does not exist.
    #[error("patch {patch}: {path} is not in the tree")]
    Missing {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// Files of the same name elsewhere in the tree.
        namesakes: Vec<String>,
    },
    /// The file to create exists.
    #[error("patch {patch}: {path} is to be created and exists already, as blob {found}")]
    Exists {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// Its blob id.
        found: Commit,
    },
    /// The path leads through a symbolic link, or is one.
    #[error("patch {patch}: {path} is reached through the symbolic link {link}")]
    Symlink {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// The link, by its path in the tree.
        link: String,
    },
    /// Something on the path is a file where a directory is needed, or the reverse.
    #[error("patch {patch}: {path} cannot be a file: {obstacle} is {found}")]
    Obstacle {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// What is in the way, by its path in the tree.
        obstacle: String,
        /// What it is.
        found: &'static str,
    },
    /// The lines of a hunk do not stand where its header says.
    #[error("patch {patch}: {path}: hunk {number} of {of} ({header}) does not fit: {difference}")]
    Hunk {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// The hunk, from 1.
        number: usize,
        /// How many hunks the file has.
        of: usize,
        /// The hunk's header.
        header: String,
        /// In which way the lines differ.
        difference: Difference,
        /// Expected and found lines, and the nearest match.
        report: String,
    },
    /// A hunk ends without a context line before the end of the file.
    #[error(
        "patch {patch}: {path}: hunk {number} of {of} ({header}) has no context line after its last change, and ends at line {last} of {lines}"
    )]
    LooseEnd {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// The hunk, from 1.
        number: usize,
        /// How many hunks the file has.
        of: usize,
        /// The hunk's header.
        header: String,
        /// The last line it covers, from 1.
        last: usize,
        /// How many lines the file has.
        lines: usize,
    },
    /// A file to delete has content that the patch does not name.
    #[error("patch {patch}: {path} is to be deleted, and has content that the patch does not name ({lines} lines)")]
    Remains {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// How many lines would remain.
        lines: usize,
    },
    /// The mode to change is another one.
    #[error("patch {patch}: {path} has mode {found}, and the patch changes mode {expected}")]
    Mode {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// The mode that the patch expects.
        expected: &'static str,
        /// The file's mode.
        found: &'static str,
    },
    /// A blob is not the promised one.
    #[error("patch {patch}: {path} {image} the patch is {found}, and {promise} says {expected}")]
    ImageDiffers {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// Which of the two.
        image: Image,
        /// Who promised.
        promise: Promise,
        /// The promised id, or `no file`.
        expected: String,
        /// The id there is, or `no file`.
        found: String,
    },
    /// The patch touches a file that its pin does not list.
    #[error("patch {patch} touches {path}, which its pinned images do not list")]
    NotPinned {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
    },
    /// The pin lists a file that the patch does not touch.
    #[error("patch {patch} does not touch {path}, which its pinned images list")]
    NotTouched {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
    },
    /// The patch makes of a file what it was.
    #[error("patch {patch} changes nothing in {path}")]
    NothingChanged {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
    },
    /// Every file is its own post-image.
    #[error("patch {patch} is already applied: {} already the patch's post-image", list(paths, "is", "are"))]
    AlreadyApplied {
        /// The patch's name.
        patch: String,
        /// The files, by blob id.
        paths: Vec<RelativePath>,
    },
    /// Some files are their own post-images.
    #[error(
        "patch {patch} is applied in part: {} already the patch's post-image, {} not",
        list(done, "is", "are"),
        list(open, "is", "are")
    )]
    PartlyApplied {
        /// The patch's name.
        patch: String,
        /// The files that are, by blob id.
        done: Vec<RelativePath>,
        /// The files that are not.
        open: Vec<RelativePath>,
    },
    /// libgit2 does not apply what fits line by line.
    #[error("patch {patch}: {path}: the hunks fit line by line, and libgit2 does not apply them")]
    Git {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// libgit2's reason.
        source: git2::Error,
    },
    /// libgit2 makes another blob than we do.
    #[error("patch {patch}: {path} becomes {ours}, and libgit2 makes {theirs} of it")]
    Disagreement {
        /// The patch's name.
        patch: String,
        /// The file.
        path: RelativePath,
        /// The id of our post-image, or `no file`.
        ours: String,
        /// The id of libgit2's, or `no file`.
        theirs: String,
    },
    /// The tree cannot be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// Before or after the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// The pre-image.
    Before,
    /// The post-image.
    After,
}

/// Where an expected blob id is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// In the pins file.
    Pin,
    /// In the patch.
    IndexLine,
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Before { "before" } else { "after" })
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Pin { "its pin" } else { "the patch's index line" })
    }
}

/// At most three paths, and the verb that goes with their number.
fn list(paths: &[RelativePath], one: &str, many: &str) -> String {
    let shown: Vec<_> = paths.iter().take(3).map(RelativePath::as_str).collect();
    let more = paths.len() - shown.len();
    let verb = if paths.len() == 1 { one } else { many };
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more} {verb}", shown.join(", "))
}

impl Fault for PatchError {
    fn class(&self) -> Class {
        if matches!(self, Self::Io { .. }) { Class::Step } else { Class::Patch }
    }

    fn hint(&self) -> Option<String> {
        let again = "make the patch again from the pinned commit: `git diff --full-index --no-renames`";
        Some(match self {
            Self::Structure { flaw, .. } => match flaw {
                Flaw::Converted => "give the patch file its line feeds back, and keep them with `*.patch -text` in .gitattributes".into(),
                Flaw::Binary | Flaw::Nul => "pin the new file as a [file.…] source and put it in place with a step of its own".into(),
                Flaw::Prefix(_) => "make the patch again with `git diff --default-prefix`".into(),
                Flaw::Unanchored => "make the patch again with context lines: `git diff -U3`".into(),
                Flaw::Path { .. } | Flaw::Mode(_) => "a patch may change plain files below its target only".into(),
                Flaw::Cut { .. } | Flaw::NoLineFeed | Flaw::Loose(_) | Flaw::Overfull(_) => {
                    format!("the patch was cut, or edited by hand without its counts; {again}")
                }
                _ => again.into(),
            },
            Self::Empty { .. } | Self::NothingChanged { .. } | Self::Remains { .. } => again.into(),
            Self::LooseEnd { .. } => "make the patch again with context lines: `git diff -U3`".into(),
            Self::Missing { .. } => "the paths in a patch are relative to its target's root; check the target and its pin".into(),
            Self::Hunk { difference: Difference::LineEndings { .. }, .. } => {
                "line endings are part of the content: make the patch from files with the endings of the pinned source, with core.autocrlf off".into()
            }
            Self::Exists { .. } => {
                "the pinned source has the file already: check the pin, or make a patch that changes the file".into()
            }
            Self::Hunk { .. } | Self::Mode { .. } => {
                format!("there is no fuzz and no offset: {again}")
            }
            Self::ImageDiffers { image: Image::Before, .. } => {
                "the source is not what the patch was reviewed for: check the source's pin, or review the patch again and pin the new ids".into()
            }
            Self::ImageDiffers { image: Image::After, .. } => "the patch makes something else than what was reviewed: review it and pin the new id".into(),
            Self::NotPinned { .. } | Self::NotTouched { .. } => "list exactly the files that the patch touches, or none".into(),
            Self::AlreadyApplied { .. } | Self::PartlyApplied { .. } => {
                "the pinned source may contain the change already: drop the patch, or pin the source without it".into()
            }
            Self::Symlink { .. } | Self::Obstacle { .. } => "a patch may change plain files below its target only".into(),
            Self::Git { .. } | Self::Disagreement { .. } => format!("nothing was changed; {again}"),
            Self::Io { .. } => return None,
        })
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Hunk { report, .. } => Some(report.clone()),
            Self::Missing { namesakes, .. } if !namesakes.is_empty() => {
                Some(format!("files of this name in the tree:\n  {}", namesakes.join("\n  ")))
            }
            _ => None,
        }
    }
}
