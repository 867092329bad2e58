//! Why two things cannot be compared.

use std::io;
use std::path::PathBuf;

use crate::error::{Class, Fault};
use crate::interrupt::Interrupted;

/// Why two things cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// One of them cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// One is a directory and the other is not.
    #[error("{left} and {right} cannot be compared: one is a directory, the other a file")]
    Unlike {
        /// The first.
        left: PathBuf,
        /// The second.
        right: PathBuf,
    },
    /// There is no room for what is inside an archive.
    #[error("cannot write a temporary file")]
    Scratch(#[source] io::Error),
    /// A workspace's records cannot be used.
    #[error("{0}")]
    Records(String, Class, Option<String>),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for DiffError {
    fn class(&self) -> Class {
        match self {
            Self::Unreadable { .. } | Self::Unlike { .. } => Class::Usage,
            Self::Scratch(_) => Class::Preflight,
            Self::Records(_, class, _) => *class,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unlike { .. } => Some("name two files, or two directories".into()),
            Self::Scratch(_) => Some("TMPDIR names the directory for temporary files".into()),
            Self::Records(_, _, hint) => hint.clone(),
            Self::Unreadable { .. } => None,
            Self::Interrupted(interrupted) => interrupted.hint(),
        }
    }
}

impl From<crate::error::Error> for DiffError {
    fn from(error: crate::error::Error) -> Self {
        Self::Records(error.to_string(), error.class(), error.hint())
    }
}
