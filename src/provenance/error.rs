//! What can be wrong with an attestation as a file.

use std::io;
use std::path::PathBuf;

use super::attestation::LARGEST;
use crate::error::{Class, Fault};
use crate::replace::CannotWrite;

/// Why an attestation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AttestationError {
    /// It cannot be read.
    #[error("cannot read the attestation {path}")]
    Read {
        /// The attestation.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] CannotWrite),
    /// It is too large to be one.
    #[error("the attestation {path} is larger than {LARGEST} bytes")]
    TooLarge {
        /// The attestation.
        path: PathBuf,
    },
    /// It is not JSON, or lacks what an attestation must have.
    #[error("the attestation {path} is not valid: {reason}")]
    Invalid {
        /// The attestation.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It is an attestation of something else, or of a form that this version does not know.
    #[error("the attestation {path} has `{field}` {found}, and this version reads {expected}")]
    Type {
        /// The attestation.
        path: PathBuf,
        /// `_type`, `predicateType`, `buildType` or `payloadType`.
        field: &'static str,
        /// What this version reads.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A part of it contradicts another.
    #[error("the attestation {path} contradicts itself: {what}: {reason}")]
    Contradiction {
        /// The attestation.
        path: PathBuf,
        /// Which part.
        what: String,
        /// How.
        reason: String,
    },
    /// Where a signed attestation should be written stands one of something else.
    #[error("{path} is there already, and attests something else than {signed}")]
    OtherPayload {
        /// What stands there.
        path: PathBuf,
        /// What was to be signed.
        signed: PathBuf,
    },
    /// Something that is needed is not carried in it.
    #[error("the attestation {path} does not carry {what}")]
    NotCarried {
        /// The attestation.
        path: PathBuf,
        /// What.
        what: String,
    },
}

impl Fault for AttestationError {
    fn class(&self) -> Class {
        match self {
            Self::Write(error) => error.class(),
            Self::OtherPayload { .. } => Class::Usage,
            _ => Class::Artifact,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Write(error) => return error.hint(),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "name the attestation that a build wrote beside its manifest, `<manifest>.intoto.json`".into()
            }
            Self::Read { .. } => "make the attestation a readable file".into(),
            Self::TooLarge { .. } | Self::Invalid { .. } => {
                "get the attestation again from whoever delivered the artifacts".into()
            }
            Self::Type { .. } => "use the version of rebuild-model that wrote it, or a later one".into(),
            Self::Contradiction { .. } => {
                "it was edited after it was written: get it again, and do not rely on these artifacts".into()
            }
            Self::OtherPayload { .. } => "name a file that is not there yet, or one with the same attestation".into(),
            Self::NotCarried { .. } => "get the file itself from whoever built".into(),
        })
    }
}
