//! What can be wrong with a manifest as a file.

use std::io;
use std::path::PathBuf;

use super::{LARGEST, Place, SCHEMA};
use crate::error::{Class, Fault};

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("cannot read the manifest {path}")]
    Read {
        /// The manifest.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a directory, a pipe, a device or the like.
    #[error("the manifest {path} is not a regular file")]
    NotAFile {
        /// The manifest.
        path: PathBuf,
    },
    /// It is too large to be one.
    #[error("the manifest {path} is larger than {LARGEST} bytes")]
    TooLarge {
        /// The manifest.
        path: PathBuf,
    },
    /// It is a symbolic link to nothing.
    #[error("the manifest {path} is a symbolic link to {target}, which does not exist")]
    Dangling {
        /// The manifest.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// Its text is not JSON, or not the JSON that is wanted here.
    #[error("the manifest {path} is not valid at {place}: {reason}")]
    Invalid {
        /// The manifest.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What is wrong.
        reason: String,
    },
    /// It was written by a later version.
    #[error("the manifest {path} has schema {found}, expected at most {SCHEMA}")]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// It lists artifacts, and not all that this build makes.
    #[error("the manifest {path} lists artifacts, and lacks {}", .missing.join(", "))]
    Lacking {
        /// The manifest.
        path: PathBuf,
        /// Keys that it lacks.
        missing: Vec<String>,
    },
    /// It cannot be written.
    #[error("cannot write the manifest {path}")]
    Write {
        /// The manifest.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Fault for ManifestError {
    fn class(&self) -> Class {
        match self {
            Self::Write { .. } => Class::Preflight,
            _ => Class::Artifact,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "name the manifest that a build wrote; `manifest` under [packaging] says where that is".into()
            }
            Self::Read { .. } => "make the manifest a readable file".into(),
            Self::NotAFile { .. } | Self::TooLarge { .. } => {
                "name the manifest that a build wrote, or move away what stands in its place".into()
            }
            Self::Dangling { .. } => "restore what the link points to, or remove the link".into(),
            Self::Invalid { .. } => "mend the manifest by hand, or restore it from version control".into(),
            Self::Lacking { missing, .. } => format!(
                "if they are new, begin their entries by hand: put `\"{}\": {{}}` under `artifacts`; if not, the pins \
                 name them otherwise than the manifest does",
                missing.first().map_or("", String::as_str)
            ),
            Self::Newer { .. } => "use the version of rebuild-model that wrote it, or a later one".into(),
            Self::Write { .. } => "the old manifest is untouched; free the disk or make the directory writable".into(),
        })
    }
}
