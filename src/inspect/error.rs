//! What can be wrong with a file that is looked into.

use std::io;
use std::path::{Path, PathBuf};

use crate::artifact::decoding::DecodingError;
use crate::artifact::library::LibraryError;
use crate::error::{Class, Fault};
use crate::interrupt::Interrupted;
use crate::printable::escape_name;

/// Why a file cannot be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// It cannot be read.
    #[error("cannot read {}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a directory, a pipe or something else.
    #[error("{} is not a regular file", shown(path))]
    NotAFile {
        /// What was given.
        path: PathBuf,
    },
    /// It cannot be unpacked.
    #[error("{} cannot be unpacked", shown(path))]
    Packed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DecodingError,
    },
    /// It is no module.
    #[error("{} is not a model library", shown(path))]
    Library {
        /// The file.
        path: PathBuf,
        /// Why.
        source: LibraryError,
    },
    /// It is not what its name says.
    #[error("{}: {reason}", shown(path))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

impl Fault for InspectError {
    fn class(&self) -> Class {
        match self {
            Self::Read { source, .. } if is_interrupted(source) => Class::Interrupted,
            Self::Read { .. } | Self::NotAFile { .. } => Class::Usage,
            Self::Packed { .. } | Self::Library { .. } | Self::Malformed { .. } => Class::Artifact,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { source, .. } if is_interrupted(source) => return None,
            Self::Read { .. } | Self::NotAFile { .. } => "name a file that you may read".into(),
            Self::Packed { .. } | Self::Library { .. } | Self::Malformed { .. } => {
                "it may have been cut short on its way: compare it with the manifest by `rebuild-model verify`".into()
            }
        })
    }
}

/// The file's name, which may be anybody's: `inspect *` names what lies there.
fn shown(path: &Path) -> String {
    escape_name(&path.display().to_string())
}

fn is_interrupted(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(source) if source.is::<Interrupted>())
}
