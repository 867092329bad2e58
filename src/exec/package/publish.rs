//! Publishing: a package's files go to their destination, then the manifest that speaks of them.
//!
//! Every file is written completely beside its place, checked and synced before the first one is
//! renamed. The manifest is renamed last. A failure before the renames leaves the destination as it
//! was; after a crash between them, old manifest and new files disagree, `verify` says so, and the
//! same command run again completes it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::artifact::encoding::FileId;
use crate::digest::{Hasher, hash_file};
use crate::error::{Class, Fault};
use crate::interrupt::{Interrupt, Interrupted};
use crate::manifest::{Change, Entries, ManifestError, Update};
use crate::pins::RelativePath;
use crate::replace::Replacement;

/// What publishing did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Old and new identity of every artifact.
    pub changes: Vec<Change>,
    /// Files that were written; the others were there already, byte for byte.
    pub written: Vec<RelativePath>,
}

/// Why a package was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Something that is not a file stands in an artifact's place.
    #[error("cannot deliver {artifact}: {path} is not a file")]
    Occupied {
        /// The artifact.
        artifact: RelativePath,
        /// Its place.
        path: PathBuf,
    },
    /// A directory on the way is a link to somewhere else.
    #[error("cannot deliver {artifact}: {path} leads out of {destination}")]
    Outside {
        /// The artifact.
        artifact: RelativePath,
        /// The directory.
        path: PathBuf,
        /// The destination.
        destination: PathBuf,
    },
    /// An artifact would overwrite the manifest.
    #[error("cannot deliver {artifact}: {path} is the manifest")]
    IsManifest {
        /// The artifact.
        artifact: RelativePath,
        /// The manifest.
        path: PathBuf,
    },
    /// An artifact would overwrite a document about the artifacts.
    #[error("cannot deliver {artifact}: {path} is a document about the artifacts")]
    IsDocument {
        /// The artifact.
        artifact: RelativePath,
        /// The document.
        path: PathBuf,
    },
    /// A document about the artifacts cannot be written.
    #[error("cannot write {path}")]
    Document {
        /// The document.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The packaged file is not the one that was recorded.
    #[error("packaged file {artifact} changed after it was recorded: expected sha256 {} and {} bytes, found {} and {}",
        expected.sha256, expected.size, found.sha256, found.size)]
    Changed {
        /// The artifact.
        artifact: RelativePath,
        /// What was recorded.
        expected: FileId,
        /// What is there.
        found: FileId,
    },
    /// Reading or writing failed.
    #[error("cannot deliver {artifact} to {path}")]
    Io {
        /// The artifact.
        artifact: RelativePath,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for PublishError {
    fn class(&self) -> Class {
        match self {
            Self::Io { .. } | Self::Document { .. } => Class::Preflight,
            Self::Manifest(error) => error.class(),
            Self::Interrupted(interrupted) => interrupted.class(),
            _ => Class::Artifact,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Occupied { path, .. } => Some(format!("move {} away, or choose another destination", path.display())),
            Self::Outside { path, .. } => Some(format!("make {} a directory", path.display())),
            Self::IsManifest { .. } | Self::IsDocument { .. } => {
                Some("set `manifest` under [packaging] to another path".into())
            }
            Self::Changed { .. } => Some("remove the package step's output and run again with --resume".into()),
            Self::Io { source, .. } | Self::Document { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some("make the destination writable; nothing in it has been changed".into())
            }
            Self::Io { source, .. } | Self::Document { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space; nothing in the destination has been changed".into())
            }
            Self::Io { .. } | Self::Document { .. } => {
                Some("run again; `verify` tells whether the destination is whole".into())
            }
            Self::Manifest(error) => error.hint(),
            Self::Interrupted(interrupted) => interrupted.hint(),
        }
    }
}

/// Something that is written about the artifacts, beside the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it goes.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Copies the files of `entries` from `files` (see [`files_of`](super::files_of)) to `destination`
/// and puts the entries into the manifest at `manifest`. Touches nothing else.
pub fn publish(
    files: &Path,
    entries: &Entries,
    destination: &Path,
    manifest: &Path,
    interrupt: &Interrupt,
) -> Result<Published, PublishError> {
    publish_with(files, entries, &[], destination, manifest, interrupt)
}

/// The same with `documents`, which are put in their places after the artifacts and before the manifest.
pub fn publish_with(
    files: &Path,
    entries: &Entries,
    documents: &[Document],
    destination: &Path,
    manifest: &Path,
    interrupt: &Interrupt,
) -> Result<Published, PublishError> {
    let mut made = MadeDirectories::default();
    // Read first: a manifest that cannot be used must stop everything.
    made.make(manifest.parent()).map_err(|source| ManifestError::Write { path: manifest.to_owned(), source })?;
    let update = Update::prepare(manifest, entries)?;
    let mut staged = Vec::new();
    for (artifact, entry) in entries {
        interrupt.check()?;
        let target = destination.join(artifact.as_str());
        let failed = |source| PublishError::Io { artifact: artifact.clone(), path: target.clone(), source };
        made.make(target.parent()).map_err(failed)?;
        check_place(artifact, &target, destination, manifest, documents)?;
        if is_there(&target, entry.packed).map_err(failed)? {
            continue;
        }
        // A link is replaced itself: what it points to is not ours.
        let mut replacement = Replacement::begin_unfollowed(&target).map_err(failed)?;
        let found = copy(&files.join(artifact.as_str()), &mut replacement).map_err(failed)?;
        if found != entry.packed {
            return Err(PublishError::Changed { artifact: artifact.clone(), expected: entry.packed, found });
        }
        staged.push((artifact, target, replacement));
    }
    let mut staged_documents = Vec::new();
    for document in documents {
        made.make(document.path.parent()).map_err(document.failed())?;
        let mut replacement = Replacement::begin(&document.path).map_err(document.failed())?;
        replacement.write_all(&document.bytes).and_then(|()| replacement.sync()).map_err(document.failed())?;
        staged_documents.push((document, replacement));
    }
    interrupt.check()?;
    made.keep();
    let mut written = Vec::new();
    for (artifact, path, replacement) in staged {
        replacement.commit().map_err(|source| PublishError::Io { artifact: artifact.clone(), path, source })?;
        written.push(artifact.clone());
    }
    for (document, replacement) in staged_documents {
        replacement.commit().map_err(document.failed())?;
    }
    Ok(Published { changes: update.commit()?, written })
}

impl Document {
    fn failed(&self) -> impl Fn(io::Error) -> PublishError + '_ {
        |source| PublishError::Document { path: self.path.clone(), source }
    }
}

/// Refuses a place that is not ours to replace.
fn check_place(
    artifact: &RelativePath,
    target: &Path,
    destination: &Path,
    manifest: &Path,
    documents: &[Document],
) -> Result<(), PublishError> {
    let failed = |path: &Path, source| PublishError::Io { artifact: artifact.clone(), path: path.to_owned(), source };
    let directory = target.parent().unwrap_or(destination);
    let real = fs::canonicalize(directory).map_err(|source| failed(directory, source))?;
    let root = fs::canonicalize(destination).map_err(|source| failed(destination, source))?;
    if !real.starts_with(&root) {
        return Err(PublishError::Outside {
            artifact: artifact.clone(),
            path: directory.to_owned(),
            destination: destination.to_owned(),
        });
    }
    let name = target.file_name().unwrap_or_default();
    let same = |path: &Path| {
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        parent.is_some_and(|parent| parent.join(path.file_name().unwrap_or_default()) == real.join(name))
    };
    if same(manifest) || fs::canonicalize(manifest).is_ok_and(|manifest| same(&manifest)) {
        return Err(PublishError::IsManifest { artifact: artifact.clone(), path: target.to_owned() });
    }
    if documents.iter().any(|document| same(&document.path)) {
        return Err(PublishError::IsDocument { artifact: artifact.clone(), path: target.to_owned() });
    }
    match fs::symlink_metadata(target) {
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            Err(PublishError::Occupied { artifact: artifact.clone(), path: target.to_owned() })
        }
        _ => Ok(()),
    }
}

fn is_there(target: &Path, wanted: FileId) -> io::Result<bool> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_file() && found.len() == wanted.size => {
            // One that cannot be read is replaced like any other.
            Ok(hash_file(target).is_ok_and(|found| FileId::from(found) == wanted))
        }
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn copy(from: &Path, to: &mut Replacement) -> io::Result<FileId> {
    let mut file = File::open(from)?;
    let mut hasher = Hasher::new();
    let mut block = vec![0; 256 * 1024];
    loop {
        let count = match file.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&block[..count]);
        to.write_all(&block[..count])?;
    }
    to.sync()?;
    Ok(hasher.finish().into())
}

/// Directories that did not exist before; removed again when publishing fails.
#[derive(Default)]
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(&mut self, directory: Option<&Path>) -> io::Result<()> {
        let Some(directory) = directory.filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(()) };
        let missing: Vec<_> = directory
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err())
            .collect();
        fs::create_dir_all(directory)?;
        self.0.extend(missing.into_iter().rev().map(Path::to_owned));
        Ok(())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // One that is not empty any more has got another purpose.
            let _ = fs::remove_dir(directory);
        }
    }
}
