//! Where a workspace may be, and why it may not be elsewhere.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Class, Fault};

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Something stands there already.
    #[error("workspace {path} exists already")]
    Exists {
        /// The workspace.
        path: PathBuf,
        /// Whether it is a workspace, and not something else.
        resumable: bool,
    },
    /// Another build works in it.
    #[error("workspace {path} is locked: another build works in it")]
    Locked {
        /// The workspace.
        path: PathBuf,
    },
    /// There is no workspace to go on with.
    #[error("{path} is not a workspace of an earlier build")]
    NotAWorkspace {
        /// The path.
        path: PathBuf,
    },
    /// The enclosing repository would take it for its own content.
    #[error("workspace {path} is not ignored by the git repository {repository}")]
    NotIgnored {
        /// The workspace.
        path: PathBuf,
        /// The repository's work tree.
        repository: PathBuf,
        /// The line that would ignore it.
        rule: String,
    },
    /// The path is relative.
    #[error("workspace {path} is not an absolute path")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// Upstream's tools cannot work below this path.
    #[error("workspace {path:?} has {what} in its path, which the tools of a build do not survive")]
    Unusable {
        /// The path.
        path: PathBuf,
        /// What is in it.
        what: &'static str,
    },
    /// Too little space.
    #[error("{need_mib} MiB are needed at {path} and {free_mib} MiB are free")]
    Full {
        /// The workspace.
        path: PathBuf,
        /// What is needed.
        need_mib: u64,
        /// What is free.
        free_mib: u64,
    },
    /// Reading or writing failed.
    #[error("cannot use {path}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The enclosing repository cannot be read, so nobody knows what it ignores.
    #[error("cannot tell whether the git repository around {path} ignores it")]
    Repository {
        /// The workspace.
        path: PathBuf,
        /// Why.
        source: git2::Error,
    },
}

impl Fault for WorkspaceError {
    fn class(&self) -> Class {
        match self {
            Self::Unusable { .. } | Self::Full { .. } => Class::Preflight,
            Self::NotAbsolute { .. } => Class::Usage,
            _ => Class::Workspace,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Exists { resumable: true, .. } => {
                "go on with it by --resume, name another with --workspace, or remove it yourself".into()
            }
            Self::Exists { resumable: false, .. } => {
                "name an unused path with --workspace; nothing there was touched".into()
            }
            Self::Locked { .. } => "wait for the other build, or name another path with --workspace".into(),
            Self::NotAWorkspace { .. } => "build there first, or name the workspace of a build with --workspace; a new build goes without --resume".into(),
            Self::NotIgnored { rule, repository, .. } => {
                format!("add the line `{rule}` to {}", repository.join(".gitignore").display())
            }
            Self::NotAbsolute { .. } => "name an absolute, unused path".into(),
            Self::Unusable { .. } => "name another path with --workspace, for example below /tmp".into(),
            Self::Full { .. } => "free some space, or name a path on another disk with --workspace".into(),
            Self::Repository { source, .. } if source.code() == git2::ErrorCode::Owner => {
                "the repository belongs to somebody else; `git config --global --add safe.directory PATH` trusts it, or name a path elsewhere with --workspace".into()
            }
            Self::Io { .. } | Self::Repository { .. } => return None,
        })
    }
}

/// The directory that holds the workspaces of a site.
const USUAL: &str = ".rebuild";

/// The default workspace of a recipe: `.rebuild/<recipe>` under the directory the build is called from.
pub fn default_root(directory: &Path, recipe: &str) -> PathBuf {
    directory.join(USUAL).join(recipe)
}

/// Refuses a path in which upstream's tools cannot work: relative, or with white space, quotes or
/// bytes that are not UTF-8.
pub fn check_path(root: &Path) -> Result<(), WorkspaceError> {
    let unusable = |what| Err(WorkspaceError::Unusable { path: root.to_owned(), what });
    match root.to_str() {
        None => unusable("bytes that are not UTF-8"),
        Some(text) if text.contains(char::is_whitespace) => unusable("white space"),
        Some(text) if text.contains(['\'', '"', '$', '`', '\\', ':', ';']) => {
            unusable("a quote or another special character")
        }
        Some(_) if root.components().any(|part| part == Component::ParentDir) => unusable("`..`"),
        Some(_) if !root.is_absolute() => Err(WorkspaceError::NotAbsolute { path: root.to_owned() }),
        Some(_) => Ok(()),
    }
}

/// Refuses a workspace for which too little space is free.
pub fn check_space(path: &Path, need_mib: u64) -> Result<(), WorkspaceError> {
    let free_mib = free_mib(path)?;
    if free_mib < need_mib {
        return Err(WorkspaceError::Full { path: path.to_owned(), need_mib, free_mib });
    }
    Ok(())
}

/// Free space in MiB on the file system that holds `path`, or would hold it.
pub fn free_mib(path: &Path) -> Result<u64, WorkspaceError> {
    let standing = nearest_standing(path);
    let stat = rustix::fs::statvfs(standing)
        .map_err(|error| WorkspaceError::Io { path: standing.to_owned(), source: error.into() })?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / (1024 * 1024))
}

/// The path itself or the nearest of its parents that exists.
fn nearest_standing(path: &Path) -> &Path {
    path.ancestors().find(|parent| parent.exists()).unwrap_or(Path::new("/"))
}

/// Refuses a workspace that the git repository around it does not ignore: `git add` would take
/// gigabytes of build trees, and a build inside another repository's tracked files is not a fresh one.
pub(super) fn check_ignored(root: &Path) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::Repository { path: root.to_owned(), source };
    let standing = nearest_standing(root.parent().unwrap_or(root));
    let repository = match git2::Repository::discover(standing) {
        Ok(repository) => repository,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let Some(work_tree) = repository.workdir() else { return Ok(()) };
    // Rules that end in `/` match directories only, and libgit2 looks at the disk to tell; the
    // workspace may not exist yet, so the path is given the form of a directory.
    let inside = canonical(root).map_err(|source| WorkspaceError::Io { path: root.to_owned(), source })?;
    let work_tree_path =
        canonical(work_tree).map_err(|source| WorkspaceError::Io { path: work_tree.to_owned(), source })?;
    let Ok(relative) = inside.strip_prefix(&work_tree_path) else { return Ok(()) };
    let as_directory = PathBuf::from(format!("{}/", relative.display()));
    if repository.is_path_ignored(&as_directory).map_err(failed)? {
        return Ok(());
    }
    // The usual place is ignored as a whole; of any other exactly the workspace, since what lies around
    // it may be somebody's sources.
    let usual = relative.ancestors().find(|path| path.file_name().is_some_and(|name| name == USUAL));
    let rule = format!("/{}/", usual.unwrap_or(relative).display());
    Err(WorkspaceError::NotIgnored { path: root.to_owned(), repository: work_tree_path, rule })
}

/// The path with every link resolved in the part of it that exists.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    let standing = nearest_standing(path);
    let rest = path.strip_prefix(standing).unwrap_or(Path::new(""));
    Ok(standing.canonicalize()?.join(rest))
}
