//! Files that lie beside the pins: patches, requirements, plain files.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::pins::Recorded;
use crate::plan::Plan;
use crate::step::{Action, FileOrigin};

/// Why a file beside the pins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// It is not there.
    #[error("{what} {path} cannot be read")]
    Unreadable {
        /// Patch, requirements or file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what is pinned.
    #[error("{what} {path} has sha256 {found}, and {expected} is pinned")]
    Differs {
        /// Patch, requirements or file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The pinned digest.
        expected: Digest,
        /// The digest of what is there.
        found: Digest,
    },
}

impl Fault for LocalError {
    fn class(&self) -> Class {
        match self {
            Self::Unreadable { .. } => Class::Unavailable,
            Self::Differs { .. } => Class::PinMismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { .. } => "paths in a pins file are relative to it".into(),
            Self::Differs { .. } => "restore the file, or review the change and pin the new digest".into(),
        })
    }
}

/// The bytes of the file at `path` below `directory`, which must have the pinned digest.
pub fn read(
    what: &'static str,
    directory: &Path,
    path: &str,
    pinned: &Recorded<Digest>,
) -> Result<Vec<u8>, LocalError> {
    let path = directory.join(path);
    let read = check_kind(&path).and_then(|()| std::fs::read(&path));
    let bytes = read.map_err(|source| LocalError::Unreadable { what, path: path.clone(), source })?;
    let found = Digest::of(&bytes);
    compare(what, path, pinned, found)?;
    Ok(bytes)
}

/// Checks every such file of `plan` before any work: a patch that is missing must not be found out
/// after an hour.
pub fn check_all(plan: &Plan, directory: &Path) -> Result<(), LocalError> {
    for (what, path, pinned) in files_of(plan) {
        identify(what, directory, path, pinned)?;
    }
    Ok(())
}

/// Digest and size in bytes of the file at `path` below `directory`, which must have the pinned digest.
pub fn identify(
    what: &'static str,
    directory: &Path,
    path: &str,
    pinned: &Recorded<Digest>,
) -> Result<(Digest, u64), LocalError> {
    let path = directory.join(path);
    let hashed = check_kind(&path).and_then(|()| crate::digest::hash_file(&path));
    let (found, size) = hashed.map_err(|source| LocalError::Unreadable { what, path: path.clone(), source })?;
    compare(what, path, pinned, found)?;
    Ok((found, size))
}

/// A pipe would be waited for, and a device may have no end.
fn check_kind(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

fn compare(what: &'static str, path: PathBuf, pinned: &Recorded<Digest>, found: Digest) -> Result<(), LocalError> {
    match pinned.known() {
        Some(&expected) if expected != found => Err(LocalError::Differs { what, path, expected, found }),
        _ => Ok(()),
    }
}

/// Every such file of `plan`: what it is, its path, and its pinned digest.
pub fn files_of(plan: &Plan) -> Vec<(&'static str, &str, &Recorded<Digest>)> {
    let mut files = Vec::new();
    for step in &plan.steps {
        match &step.action {
            Action::Patch(patch) => {
                files.extend(patch.patches.iter().map(|patch| ("patch", patch.file.as_str(), &patch.sha256)));
            }
            Action::FetchWheels(fetch) => files.push(("requirements", fetch.requirements.as_str(), &fetch.sha256)),
            Action::FetchFile(fetch) => {
                if let FileOrigin::Path(path) = &fetch.from {
                    files.push(("file", path.as_str(), &fetch.sha256));
                }
            }
            _ => {}
        }
    }
    files
}
