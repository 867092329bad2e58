//! What was fetched, as the journal keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pins::Commit;

/// What was fetched, for the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitReport {
    /// Every repository, in path order; the outermost has the path `.`.
    pub repositories: Vec<FetchedRepository>,
}

/// One fetched repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedRepository {
    /// Where it stands in the tree.
    pub path: String,
    /// Where it is published.
    pub url: String,
    /// The place that served it: the url or a mirror's path or url.
    pub place: String,
    /// The commit.
    pub commit: Commit,
    /// The commit's tree.
    pub tree: Commit,
    /// How it was obtained.
    pub how: How,
    /// Bytes of packed objects received; 0 where none crossed the network or the host's `git` does not tell.
    pub bytes: u64,
    /// What was tried in vain before, in words.
    pub fallbacks: Vec<String>,
    /// The commits that it records of its submodules, by path in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub submodules: BTreeMap<String, Commit>,
}

/// How a repository was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The commit without its history.
    Shallow,
    /// All branches and tags with their history.
    Full,
    /// The commit without its history, by the host's `git`.
    HostGit,
    /// All branches and tags, by the host's `git`.
    HostGitFull,
    /// Read from a repository on this host, without a copy.
    Local,
}
