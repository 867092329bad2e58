//! What can be wrong with a delivered artifact.

use std::fmt;

use serde::Serialize;

use super::dispute::Dispute;
use crate::digest::Digest;
use crate::printable::escape_name;

/// One thing that is wrong, and with which artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The artifact's path; nothing when it concerns the whole manifest.
    pub artifact: Option<String>,
    /// What is wrong.
    #[serde(flatten)]
    pub problem: Problem,
    /// The same in words.
    pub message: String,
}

impl Finding {
    /// Whether it may come from nothing but another version of this program having built.
    pub(crate) fn is_of_another_version(&self) -> bool {
        matches!(&self.problem, Problem::Attested(Dispute::PlanDiffers { by: Some(_), .. }))
    }

    pub(super) fn is_of_signature(&self) -> bool {
        matches!(&self.problem, Problem::Attested(Dispute::Signature(_) | Dispute::NotSigned))
    }

    pub(super) fn new(artifact: Option<&str>, problem: Problem) -> Self {
        let message = problem.to_string();
        Self { artifact: artifact.map(str::to_owned), problem, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.artifact {
            Some(artifact) => write!(f, "artifact {}: {}", escape_name(artifact), self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What is wrong. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// The manifest does not say which schema it has.
    #[error("the manifest has no `schema`")]
    NoSchema,
    /// There is nothing to verify, which proves nothing.
    #[error("the manifest lists no artifact")]
    NoArtifacts,
    /// A file in parts is not what its list says.
    #[error("its parts do not hold: {reason}")]
    Parts {
        /// What is wrong.
        reason: String,
    },
    /// A part of the entry is not there.
    #[error("`{field}` is missing from its entry")]
    FieldMissing {
        /// The key, with the keys above it.
        field: String,
    },
    /// A part of the entry is not what it must be.
    #[error("`{field}` must be {expected}, found {found}")]
    FieldMalformed {
        /// The key, with the keys above it.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What stands there, as JSON.
        found: String,
    },
    /// The integrity text contradicts the digest beside it.
    #[error("`{field}` does not fit the recorded digest: expected {expected}, found {found}")]
    Integrity {
        /// The key, with the keys above it.
        field: String,
        /// What the digest makes of it.
        expected: String,
        /// What stands there, as JSON.
        found: String,
    },
    /// A key stands where only known ones may, because nobody would check what it claims.
    #[error("`{}` is not known", escape_name(field))]
    FieldUnknown {
        /// The key, with the keys above it.
        field: String,
    },
    /// The content-hashed name is not the one of the recorded file.
    #[error("`hashedName` does not fit the recorded digest: expected {expected}, found {found}")]
    HashedName {
        /// What the path and the digest make of it.
        expected: String,
        /// What stands there, as JSON.
        found: String,
    },
    /// Packed and unpacked differ although nothing is encoded.
    #[error("its encoding is identity, but `packed` and `unpacked` differ")]
    NotIdentical,
    /// The path leads out of the directory that is verified.
    #[error("its path leads out of {root}")]
    Escapes {
        /// The directory.
        root: String,
    },
    /// It is there by a symbolic link, and what that points to is outside of the directory.
    #[error("the symbolic link {} leads out of {root}, to {}", escape_name(link), escape_name(target))]
    LinkEscapes {
        /// The directory.
        root: String,
        /// The link's path from there: the artifact's own, or one above it.
        link: String,
        /// What the link says.
        target: String,
    },
    /// It is there by a symbolic link, and what that points to does not exist.
    #[error("the symbolic link {} leads to nothing: {} does not exist", escape_name(link), escape_name(target))]
    LinkDangles {
        /// The link's path from the directory: the artifact's own, or one above it.
        link: String,
        /// What the link says.
        target: String,
    },
    /// There is no such file.
    #[error("there is no such file in {root}")]
    Missing {
        /// The directory.
        root: String,
    },
    /// It is a directory or something else that has no bytes of its own.
    #[error("it is not a regular file")]
    NotAFile,
    /// It cannot be read.
    #[error("it cannot be read: {reason}")]
    Unreadable {
        /// What the system says.
        reason: String,
    },
    /// The delivered file has another size.
    #[error("packed size: expected {expected} bytes, found {found}")]
    PackedSize {
        /// As recorded.
        expected: u64,
        /// As found.
        found: u64,
    },
    /// The delivered file has another digest.
    #[error("packed sha256: expected {expected}, found {found}")]
    PackedDigest {
        /// As recorded.
        expected: Digest,
        /// As found.
        found: Digest,
        /// Whether it decodes to what is recorded: it was packed by another encoder or at another level.
        #[serde(rename = "sameContent")]
        same_content: bool,
    },
    /// It cannot be decoded, or more comes out than is recorded.
    #[error("it does not decode: {reason}")]
    Undecodable {
        /// What the decoder says.
        reason: String,
    },
    /// What decoding gives has another size.
    #[error("unpacked size: expected {expected} bytes, found {found}")]
    UnpackedSize {
        /// As recorded.
        expected: u64,
        /// As found.
        found: u64,
    },
    /// What decoding gives has another digest.
    #[error("unpacked sha256: expected {expected}, found {found}")]
    UnpackedDigest {
        /// As recorded.
        expected: Digest,
        /// As found.
        found: Digest,
    },
    /// Something that the attestation says.
    #[error(transparent)]
    #[serde(untagged)]
    Attested(#[from] Dispute),
}
