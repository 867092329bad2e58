//! Why an archive is not unpacked.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Class, Fault};

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the archive, the member and what their texts say")]
pub enum UnpackError {
    /// Not an archive that we read.
    #[error("{archive} is {looks}, expected a zip, tar or tar.gz archive")]
    Kind { archive: PathBuf, looks: String },
    /// Damaged, or cut off.
    #[error("{archive} is damaged")]
    Damaged { archive: PathBuf, source: io::Error },
    /// A member would be written outside the directory, or has no usable name.
    #[error("{archive}: member `{member}` {reason}")]
    Name { archive: PathBuf, member: String, reason: &'static str },
    /// A link points outside the directory.
    #[error("{archive}: link `{member}` points to `{target}`, outside what is unpacked")]
    Link { archive: PathBuf, member: String, target: String },
    /// Neither file, directory nor link.
    #[error("{archive}: member `{member}` is {kind}, expected a file, a directory or a link")]
    Special { archive: PathBuf, member: String, kind: String },
    /// Two members of one path.
    #[error("{archive}: member `{member}` is there twice")]
    Twice { archive: PathBuf, member: String },
    /// A member has another size than is declared for it.
    #[error("{archive}: member `{member}` has {found} bytes or more, expected {expected}")]
    Size { archive: PathBuf, member: String, expected: u64, found: u64 },
    /// More than an archive of its size may unpack to.
    #[error("{archive} unpacks to more than {limit} bytes")]
    TooLarge { archive: PathBuf, limit: u64 },
    /// What was asked for is not in it.
    #[error("{archive} has no `{wanted}`; it has {}", if names.is_empty() { "nothing".into() } else { names.join(", ") })]
    Nothing { archive: PathBuf, wanted: String, names: Vec<String> },
    /// The directory exists and holds something.
    #[error("{path} is not empty")]
    NotEmpty { path: PathBuf },
    /// A file could not be read.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
}

impl UnpackError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

impl Fault for UnpackError {
    fn class(&self) -> Class {
        Class::Step
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Kind { .. } => "the pin names another kind of file; pin a zip, wheel, tar or tar.gz".into(),
            Self::Damaged { .. } => {
                "its digest was checked when it was fetched, so the pinned file itself is like this".into()
            }
            Self::Name { .. } | Self::Link { .. } | Self::Special { .. } | Self::Twice { .. } | Self::Size { .. } => {
                "an ordinary archive has no such member; look at it before you trust it".into()
            }
            Self::TooLarge { .. } => "an archive that grows so much is taken for a bomb".into(),
            Self::Nothing { .. } => "the paths are those after leading parts are stripped".into(),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => "the disk is full".into(),
            Self::NotEmpty { .. } | Self::Read { .. } | Self::Write { .. } => return None,
        })
    }
}
