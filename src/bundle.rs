//! The source bundle: everything that somebody needs to build the artifacts again, in one directory
//! or archive that is the same whoever makes it.
//!
//! ```text
//! README.md          how to build, verify and replay from here
//! bundle.json        what is here, with digests, and how it is packaged
//! plan.json          the plan that follows from the pins
//! sources/           the pins file and the files beside it
//! manifest.json      of the delivered artifacts, and
//! attestation.json   what their builder says of them, where they are there
//! vendor/            with `vendor`: every input, as --vendor takes them
//! ```
//!
//! No time, no owner and no path of this machine is in it; what it says follows from the pins, and
//! the inputs are those that the pins name.

mod check;
mod contents;
mod inputs;
mod pack;
mod vendor;

pub use check::{Checked, Flaw, check, directory_of};
pub use contents::Vendored;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::artifact::encoding::{EncodingError, FileId};
use crate::bounded::{self, read_head};
use crate::build::{Prepared, check_recorded};
use crate::digest::Digest;
use crate::error::{Class, Fault, Result};
use crate::exec::{Observe, local};
use crate::interrupt::Interrupt;
use crate::manifest::Manifest;
use crate::provenance::{self, Attestation};
use crate::settings::Settings;
use crate::step::Action;
use crate::verify;

/// The file in a vendor directory that says which of its repositories stands for which url.
pub const MIRRORS: &str = "mirrors.toml";

/// The file that says what a bundle is.
pub const CONTENTS: &str = "bundle.json";

/// The schema of [`CONTENTS`].
const SCHEMA: u32 = 1;

/// The most bytes of a manifest or an attestation: as many as a manifest may have.
const LARGEST: u64 = 64 << 20;

/// Who made a bundle.
const PROGRAM: &str = concat!("rebuild-model ", env!("CARGO_PKG_VERSION"));

/// What to put into a bundle, and where.
#[derive(Debug, Clone)]
pub struct Request {
    /// Make this directory.
    pub directory: Option<PathBuf>,
    /// Make this archive, a tar of that directory in gzip.
    pub archive: Option<PathBuf>,
    /// Put every input into it.
    pub vendor: bool,
    /// The manifest; the one that the pins name, when it is there, if none is given.
    pub manifest: Option<PathBuf>,
    /// The attestation; the one beside the manifest, when it is there, if none is given.
    pub attestation: Option<PathBuf>,
    /// The archive's level.
    pub level: u8,
}

/// A bundle that was made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundled {
    /// Digest of the plan.
    pub plan: Digest,
    /// The directory, when one was made.
    pub directory: Option<PathBuf>,
    /// The archive, when one was made.
    pub archive: Option<PathBuf>,
    /// The archive's digest and size.
    pub archive_id: Option<FileId>,
    /// How many files there are, and how many bytes they have together.
    pub files: usize,
    /// See `files`.
    pub bytes: u64,
    /// Whether a manifest is in it.
    pub manifest: bool,
    /// Whether an attestation is in it.
    pub attestation: bool,
    /// The inputs that are in it.
    pub vendored: Vec<Vendored>,
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Something stands where the directory should be made.
    #[error("{path} is there already")]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// It is a bundle as it was downloaded.
    #[error("{path} is an archive, and a bundle is used unpacked")]
    Packed {
        /// The archive.
        path: PathBuf,
    },
    /// Directory and archive are asked for at one place.
    #[error("{path} cannot be both the directory and the archive")]
    Both {
        /// The path.
        path: PathBuf,
    },
    /// What stands where the archive should be made is no bundle.
    #[error("{path} is there already, and is no earlier bundle")]
    NoArchive {
        /// The path.
        path: PathBuf,
    },
    /// The attestation is of another build than the one that is bundled.
    #[error("attestation {path} is of a build with pins of sha256 {found}, and the pins file has {expected}")]
    OtherBuild {
        /// The attestation.
        path: PathBuf,
        /// The pins file's digest.
        expected: Digest,
        /// The digest of the pins file that it names.
        found: String,
    },
    /// The attestation's pins give another plan here: another version of this program built.
    #[error("attestation {path} is of a build with plan {found}, and the pins give plan {expected} here")]
    OtherPlan {
        /// The attestation.
        path: PathBuf,
        /// The plan here.
        expected: Digest,
        /// The plan that it names.
        found: Digest,
    },
    /// Reading or writing failed.
    #[error("cannot use {path}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What should say what is in a bundle does not.
    #[error("{path} is not the list of a bundle: {reason}")]
    NoList {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// What would be in a bundle is not of one build.
    #[error("what would be in the bundle does not hold together: {}", in_short(.0))]
    Contradicts(Vec<Flaw>),
    /// A bundle is not what it says it is.
    #[error("{}", describe(.0))]
    Failed(Checked),
    /// The archive could not be compressed.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
}

impl Fault for BundleError {
    fn class(&self) -> Class {
        match self {
            Self::Exists { .. } | Self::Both { .. } | Self::Packed { .. } | Self::NoArchive { .. } => Class::Usage,
            Self::OtherBuild { .. } | Self::OtherPlan { .. } => Class::PinMismatch,
            Self::Failed(checked) if checked.findings.iter().all(Flaw::is_of_another_version) => Class::Inconclusive,
            Self::NoList { .. } | Self::Contradicts(_) | Self::Failed(_) => Class::Artifact,
            Self::Io { .. } => Class::Preflight,
            Self::Encoding(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => Some("name a directory that is not there yet".into()),
            Self::Both { .. } => Some("give --directory another name than --output".into()),
            Self::Packed { path } => {
                Some(format!("unpack it with `tar -xzf {}`, and name the directory that comes of it", path.display()))
            }
            Self::NoArchive { .. } => Some("name a file that is not there yet, or an earlier bundle".into()),
            Self::OtherBuild { .. } => {
                Some("build again, or name the attestation of these pins with --attestation".into())
            }
            Self::OtherPlan { .. } => {
                Some("bundle with the version of rebuild-model that built, or build again with this one".into())
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some("the disk is full".into()),
            Self::Io { .. } => None,
            Self::Contradicts(_) => Some("name manifest and attestation of one build with these pins".into()),
            Self::NoList { .. } => Some("get the bundle again from whoever made it".into()),
            Self::Failed(checked) if checked.findings.iter().all(Flaw::is_of_another_version) => {
                Some("check it with the version that made it".into())
            }
            Self::Failed(_) => Some("get the bundle again; do not build from this one".into()),
            Self::Encoding(error) => error.hint(),
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Failed(Checked { findings, .. }) | Self::Contradicts(findings) if findings.len() > 1 => {
                Some(findings.iter().map(Flaw::to_string).collect::<Vec<_>>().join("\n"))
            }
            _ => None,
        }
    }
}

fn describe(checked: &Checked) -> String {
    format!("the bundle in {} does not hold: {}", checked.bundle.display(), in_short(&checked.findings))
}

fn in_short(findings: &[Flaw]) -> String {
    match findings {
        [first, rest @ ..] if !rest.is_empty() => format!("{first}; and {} more", rest.len()),
        findings => findings.iter().map(Flaw::to_string).collect(),
    }
}

/// A function that names the path in an error.
fn at(path: &Path) -> impl Fn(io::Error) -> BundleError {
    let path = path.to_owned();
    move |source| BundleError::Io { path: path.clone(), source }
}

/// Refuses what is an archive in gzip, where a bundle that was unpacked or a file of one is wanted.
pub fn refuse_packed(path: &Path) -> Result<(), BundleError> {
    let head = read_head(path, 2).ok().flatten().unwrap_or_default();
    if head == [0x1f, 0x8b] { Err(BundleError::Packed { path: path.to_owned() }) } else { Ok(()) }
}

/// Refuses to replace what is no bundle, such as the pins file or a delivered artifact.
fn check_archive(path: &Path) -> Result<(), BundleError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    // Asked before it is opened: opening a pipe would wait for ever.
    let is_file = fs::metadata(path).map_err(at(path))?.is_file();
    let is_ours = is_file && pack::is_bundle(path).map_err(at(path))?;
    if is_ours { Ok(()) } else { Err(BundleError::NoArchive { path: path.to_owned() }) }
}

/// Where a path is, however the directory that it is in is spelled.
fn place_of(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (full.parent().map(fs::canonicalize), full.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => full,
    }
}

/// Makes the bundle of what `prepared` plans.
///
/// Everything is made in a temporary directory beside its place and renamed when it is whole. Only
/// with `vendor` are inputs obtained, as a build obtains them.
pub fn bundle(
    prepared: &Prepared,
    request: &Request,
    settings: &Settings,
    observer: &dyn Observe,
    interrupt: &Interrupt,
) -> Result<Bundled> {
    if let Some(path) = request.directory.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(BundleError::Exists { path: path.clone() }.into());
    }
    if let Some(path) = &request.archive {
        if request.directory.as_deref().is_some_and(|directory| place_of(directory) == place_of(path)) {
            return Err(BundleError::Both { path: path.clone() }.into());
        }
        check_archive(path)?;
    }
    if let Some(path) = &request.manifest {
        Manifest::read(path)?;
    }
    if request.vendor {
        check_recorded(&prepared.plan)?;
    }
    local::check_all(&prepared.plan, &prepared.directory)?;
    let records = find_records(prepared, request)?;
    let beside = [&request.directory, &request.archive].into_iter().flatten().next();
    let parent = beside.and_then(|path| path.parent()).filter(|path| !path.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".bundle-").tempdir_in(parent).map_err(at(parent))?;
    let root = scratch.path().join("bundle");
    let vendored = if request.vendor {
        vendor::vendor(prepared, &root.join("vendor"), settings, observer, interrupt)?
    } else {
        Vec::new()
    };
    let (files, bytes) = contents::write(prepared, &records, &vendored, &root)?;
    // Nothing is made that `verify` would refuse.
    let checked = check::examine(&root, &verify::Options::default(), interrupt)?;
    if !checked.findings.is_empty() {
        return Err(BundleError::Contradicts(checked.findings).into());
    }
    interrupt.check()?;
    let name = format!("{}-sources", prepared.plan.recipe);
    let archive_id = match &request.archive {
        Some(archive) => Some(pack::pack(&root, &name, archive, request.level, scratch.path(), interrupt)?),
        None => None,
    };
    if let Some(directory) = &request.directory {
        fs::rename(&root, directory).map_err(at(directory))?;
    }
    Ok(Bundled {
        plan: prepared.plan.digest(),
        directory: request.directory.clone(),
        archive: request.archive.clone(),
        archive_id,
        files,
        bytes,
        manifest: records.manifest.is_some(),
        attestation: records.attestation.is_some(),
        vendored,
    })
}

/// What is said about the artifacts.
struct Records {
    manifest: Option<Vec<u8>>,
    attestation: Option<Vec<u8>>,
}

fn find_records(prepared: &Prepared, request: &Request) -> Result<Records> {
    let planned = prepared.plan.steps.iter().rev().find_map(|step| match &step.action {
        Action::Package(package) => Some(prepared.directory.join(package.manifest.as_str())),
        _ => None,
    });
    // What was asked for has to be there; what is usual may be missing.
    let read = |path: &Path, asked: bool| match bounded::read(path, LARGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if !asked && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BundleError::Io { path: path.to_owned(), source }),
    };
    let manifest = request.manifest.clone().or(planned).unwrap_or_default();
    let attestation = request.attestation.clone().unwrap_or_else(|| provenance::beside(&manifest));
    let records = Records {
        manifest: read(&manifest, request.manifest.is_some())?,
        attestation: read(&attestation, request.attestation.is_some())?,
    };
    if let Some(bytes) = &records.attestation {
        let stated = Attestation::parse(&attestation, bytes)?;
        let definition = &stated.statement().predicate.build_definition;
        let pins = &definition.external_parameters.pins;
        if pins.sha256_of() != Some(prepared.digest) {
            let found = pins.digest.get("sha256").cloned().unwrap_or_default();
            return Err(BundleError::OtherBuild { path: attestation, expected: prepared.digest, found }.into());
        }
        let (expected, found) = (prepared.plan.digest(), definition.internal_parameters.plan);
        if expected != found {
            return Err(BundleError::OtherPlan { path: attestation, expected, found }.into());
        }
    }
    Ok(records)
}
