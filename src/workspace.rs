//! The workspace: the only thing that knows where a step's paths lie on disk.
//!
//! It owns the lock, the journal and the logs. A step's outputs are made in `tmp/<step>/<run>/out` and
//! renamed to `out/<step>` when the step succeeds; a failed step's tree stays where it is.
//!
//! **Invariant**: it knows nothing of pins.

mod place;

pub use place::{WorkspaceError, check_path, check_space, default_root, free_mib};

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::step::StepId;

/// A directory that one build at a time works in.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// How many runs there have been, this one included.
    run: u32,
    /// The lock ends with the process, however that ends.
    lock: File,
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Closing would not do: a child that another thread has just forked holds the file open until
        // it becomes its program.
        let _ = self.lock.unlock();
    }
}

/// The file that marks a directory as a workspace, and that is locked. It holds the number of runs.
const LOCK: &str = "lock";

impl Workspace {
    /// Makes a new workspace at `root`, which may not exist yet.
    ///
    /// The enclosing git repository, if there is one, must ignore it.
    pub fn create(root: &Path) -> Result<Self, WorkspaceError> {
        check_new(root)?;
        let failed = |source| WorkspaceError::Io { path: root.to_owned(), source };
        fs::create_dir_all(root).map_err(failed)?;
        let workspace = Self::lock(root)?;
        workspace.make_directories()?;
        Ok(workspace)
    }

    /// Opens the workspace that an earlier build made at `root`.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        check_old(root)?;
        place::check_ignored(root)?;
        let workspace = Self::lock(root)?;
        workspace.make_directories()?;
        Ok(workspace)
    }

    fn make_directories(&self) -> Result<(), WorkspaceError> {
        for directory in ["out", "tmp", "logs", "cache"] {
            let path = self.root.join(directory);
            fs::create_dir_all(&path).map_err(|source| WorkspaceError::Io { path, source })?;
        }
        Ok(())
    }

    fn lock(root: &Path) -> Result<Self, WorkspaceError> {
        let mut lock = take_lock(root)?;
        let run = count_run(&mut lock).map_err(|source| WorkspaceError::Io { path: root.join(LOCK), source })?;
        Ok(Self { root: root.to_owned(), run, lock })
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        journal_in(&self.root)
    }

    /// The plan as JSON.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// What was found out about the host's tools.
    pub fn tools(&self) -> PathBuf {
        tools_in(&self.root)
    }

    /// Where tools of the build keep what they want to keep.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// The outputs of a finished step.
    pub fn outputs(&self, step: &StepId) -> PathBuf {
        outputs_in(&self.root, step)
    }

    /// The scratch directory of a running or failed step: of this run's own, because grandchildren of
    /// one that was killed may still be writing into theirs.
    pub fn scratch(&self, step: &StepId) -> PathBuf {
        self.tries(step).join(self.run.to_string())
    }

    fn tries(&self, step: &StepId) -> PathBuf {
        self.root.join("tmp").join(step.as_str())
    }

    /// Where a running step makes its outputs.
    pub fn making(&self, step: &StepId) -> PathBuf {
        self.scratch(step).join("out")
    }

    /// The step's log.
    pub fn log(&self, step: &StepId) -> PathBuf {
        self.root.join("logs").join(format!("{step}.log"))
    }

    /// `path` relative to the workspace, for records.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Clears what an earlier try of `step` left and makes its directories anew.
    pub fn begin(&self, step: &StepId) -> io::Result<()> {
        for stale in [self.tries(step), self.outputs(step)] {
            remove_tree(&stale)?;
        }
        for directory in ["out", "tmp", "home"] {
            fs::create_dir_all(self.scratch(step).join(directory))?;
        }
        Ok(())
    }

    /// Makes what `step` left in its directory its outputs.
    pub fn finish(&self, step: &StepId) -> io::Result<()> {
        fs::rename(self.making(step), self.outputs(step))?;
        remove_tree(&self.tries(step))
    }

    /// Writes a file of the workspace's own, whole or not at all.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
        let failed = |source| WorkspaceError::Io { path: path.to_owned(), source };
        let mut file = tempfile::NamedTempFile::new_in(&self.root).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        file.persist(path).map(drop).map_err(|error| failed(error.error))
    }
}

/// Refuses a place where no workspace can be made; nothing is written.
pub fn check_new(root: &Path) -> Result<(), WorkspaceError> {
    check_path(root)?;
    if root.symlink_metadata().is_ok() {
        return Err(WorkspaceError::Exists { path: root.to_owned(), resumable: root.join(LOCK).is_file() });
    }
    place::check_ignored(root)
}

/// Refuses a place where no earlier build has worked; nothing is written.
pub fn check_old(root: &Path) -> Result<(), WorkspaceError> {
    check_path(root)?;
    if root.join(LOCK).is_file() { Ok(()) } else { Err(WorkspaceError::NotAWorkspace { path: root.to_owned() }) }
}

/// The journal of the workspace at `root`, whether or not it is open.
pub fn journal_in(root: &Path) -> PathBuf {
    root.join("journal.jsonl")
}

/// What was found out about the host's tools in the workspace at `root`.
pub fn tools_in(root: &Path) -> PathBuf {
    root.join("tools.json")
}

/// The outputs of `step` in the workspace at `root`.
pub fn outputs_in(root: &Path, step: &StepId) -> PathBuf {
    root.join("out").join(step.as_str())
}

fn take_lock(root: &Path) -> Result<File, WorkspaceError> {
    let failed = |source| WorkspaceError::Io { path: root.join(LOCK), source };
    let mut options = File::options();
    // A link in its place would have us write somewhere else.
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.create(true).read(true).write(true).truncate(false).custom_flags(no_link);
    let file = options.open(root.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(WorkspaceError::Locked { path: root.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Adds one to the number in the lock file. What is no number counts as none: an older version, or a
/// crash before it was written.
fn count_run(lock: &mut File) -> io::Result<u32> {
    let mut bytes = Vec::new();
    lock.read_to_end(&mut bytes)?;
    let runs: u32 = String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0);
    let run = runs.saturating_add(1);
    lock.rewind()?;
    lock.set_len(0)?;
    lock.write_all(format!("{run}\n").as_bytes())?;
    Ok(run)
}

/// Removes a tree if it is there, also below directories that a tool made read-only.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            for entry in walkdir::WalkDir::new(path).into_iter().filter_map(Result::ok) {
                if entry.file_type().is_dir() {
                    let writable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                    fs::set_permissions(entry.path(), writable)?;
                }
            }
            fs::remove_dir_all(path)
        }
        Err(error) => Err(error),
    }
}
