//! Why a git source could not be fetched.

use std::io;
use std::path::PathBuf;

use crate::error::{Class, Fault};
use crate::interrupt::Interrupted;
use crate::pins::Commit;

/// Why a git source could not be fetched. `path` is always the repository's or file's path in the
/// whole tree, `.` for the outermost repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No place could be reached.
    #[error("cannot fetch commit {commit} of {url} for {path}")]
    Unreachable {
        /// Where it was to stand.
        path: String,
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
        /// What happened at each place.
        attempts: Vec<String>,
    },
    /// A repository was reached and does not have the commit.
    #[error("commit {commit} is not in {url}, wanted for {path}")]
    CommitMissing {
        /// Where it was to stand.
        path: String,
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
        /// What happened at each place.
        attempts: Vec<String>,
    },
    /// Offline, and no place on this host is known.
    #[error("offline, and no mirror on this host serves {url}, wanted for {path} at commit {commit}")]
    Offline {
        /// Where it was to stand.
        path: String,
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
    },
    /// The commit's tree is not the pinned one.
    #[error("{url} at commit {commit}, for {path}: expected tree {expected}, found {found}")]
    TreeDiffers {
        /// Where it was to stand.
        path: String,
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
        /// The pinned tree.
        expected: Commit,
        /// The commit's tree.
        found: Commit,
    },
    /// A parent records another commit for a submodule than is pinned.
    #[error("submodule {path}: expected commit {expected}, and {parent} at {commit} records {found}")]
    LinkMoved {
        /// The submodule.
        path: String,
        /// Where the parent is published.
        parent: String,
        /// The parent's commit.
        commit: Commit,
        /// The pinned commit.
        expected: Commit,
        /// The recorded one.
        found: Commit,
    },
    /// A submodule has no pin.
    #[error("submodule {path} is recorded at commit {commit} and is not pinned")]
    Unpinned {
        /// The submodule.
        path: String,
        /// The key that its pin would have.
        pin: String,
        /// The recorded commit.
        commit: Commit,
        /// Its url as it stands in `.gitmodules`.
        url: Option<String>,
    },
    /// A pin for a submodule that is none.
    #[error("{path} is pinned as a submodule, and the tree of {url} has no submodule there")]
    NotASubmodule {
        /// The pinned path.
        path: String,
        /// Where the parent is published.
        url: String,
    },
    /// A pin for a submodule of one that is skipped or replaced.
    #[error("{path} is pinned as a submodule, and lies in {parent}, which is skipped or comes from another source")]
    Replaced {
        /// The pinned path.
        path: String,
        /// The submodule around it.
        parent: String,
    },
    /// A submodule's url is not in `.gitmodules`.
    #[error("submodule {path} has no url in .gitmodules")]
    NoUrl {
        /// The submodule.
        path: String,
    },
    /// A relative submodule url that leads out of its parent's.
    #[error("submodule {path}: the url {url} cannot be taken relative to {parent}")]
    BadUrl {
        /// The submodule.
        path: String,
        /// Its url as it stands in `.gitmodules`.
        url: String,
        /// Where the parent is published.
        parent: String,
    },
    /// `.gitmodules` cannot be read.
    #[error("the .gitmodules of {path} is not valid: {reason}")]
    BadModules {
        /// The repository.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A tree has an entry that must not be written.
    #[error("{url} at commit {commit} has the unsafe path `{path}`: {reason}")]
    UnsafePath {
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
        /// The path in the repository.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Paths that this file system takes for the same.
    #[error("this file system does not tell apart paths of {path}: {}", .pairs.join(", "))]
    Collision {
        /// The repository.
        path: String,
        /// The colliding paths.
        pairs: Vec<String>,
    },
    /// The destination is in use.
    #[error("{} is not empty", .path.display())]
    NotEmpty {
        /// The destination.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An object that was there cannot be read.
    #[error("cannot read object {object} of {path}")]
    Object {
        /// The file or repository it belongs to.
        path: String,
        /// The object's id.
        object: String,
        /// Why.
        source: git2::Error,
    },
    /// A temporary repository cannot be made.
    #[error("cannot make a repository in {}", .path.display())]
    Scratch {
        /// The repository.
        path: PathBuf,
        /// Why.
        source: git2::Error,
    },
    /// libgit2 does not let its options be set.
    #[error("cannot take the host's configuration away from libgit2: {reason}")]
    Library {
        /// Why.
        reason: String,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for GitError {
    fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } | Self::CommitMissing { .. } | Self::Offline { .. } => Class::Unavailable,
            Self::TreeDiffers { .. }
            | Self::LinkMoved { .. }
            | Self::Unpinned { .. }
            | Self::NotASubmodule { .. }
            | Self::Replaced { .. }
            | Self::NoUrl { .. }
            | Self::BadUrl { .. }
            | Self::BadModules { .. }
            | Self::UnsafePath { .. } => Class::PinMismatch,
            Self::Collision { .. } => Class::Preflight,
            Self::NotEmpty { .. }
            | Self::Io { .. }
            | Self::Object { .. }
            | Self::Scratch { .. }
            | Self::Library { .. } => Class::Step,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreachable { url, .. } | Self::Offline { url, .. } => format!(
                "serve the repository from another place with --mirror {url}=PATH_OR_URL; `git clone --mirror` makes one"
            ),
            Self::CommitMissing { url, .. } => format!(
                "if the commit was removed upstream, name a repository that still has it with --mirror {url}=PATH_OR_URL; otherwise correct the pin"
            ),
            Self::TreeDiffers { .. } => {
                "a commit id fixes its tree, so one of the two pins is wrong; review the commit and correct it".into()
            }
            Self::LinkMoved { .. } => "review what changed between the two commits, then pin the recorded one".into(),
            Self::Unpinned { pin, commit, .. } => {
                format!(
                    "add \"{pin}\" = {{ commit = \"{commit}\" }} to the source's submodules, with `skip = true` if it is not needed"
                )
            }
            Self::NotASubmodule { .. } => {
                "remove the pin, or correct its path; paths begin at the root of the outermost repository of the source"
                    .into()
            }
            Self::Replaced { .. } => "remove the pin; submodules of another source are pinned with that source".into(),
            Self::NoUrl { .. } | Self::BadUrl { .. } => "give the submodule's pin a `url`".into(),
            Self::BadModules { .. } => "give each submodule's pin a `url`, and tell the upstream".into(),
            Self::UnsafePath { .. } => "nothing was written; pin a commit without that path".into(),
            Self::Collision { .. } => "choose a --workspace on a case-sensitive file system".into(),
            Self::NotEmpty { .. } => "nothing is deleted; remove the directory or choose another --workspace".into(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room on the disk, then run again with --resume".into()
            }
            Self::Interrupted(interrupted) => return interrupted.hint(),
            Self::Io { .. } | Self::Object { .. } | Self::Scratch { .. } | Self::Library { .. } => return None,
        })
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Unreachable { attempts, .. } | Self::CommitMissing { attempts, .. } if !attempts.is_empty() => {
                Some(attempts.join("\n"))
            }
            _ => None,
        }
    }
}
