//! Verification: is what was delivered still what the manifest says?
//!
//! Packed digest and size of each artifact first, then what decoding gives. It fails closed: what
//! is not stated, not readable or not understood is a finding, and every finding is collected.
//! Files are checked on every core, the largest first, in constant memory.
//!
//! **Invariant**: nothing here runs a tool, writes a file or knows how an artifact was built.

mod claim;
mod problem;

pub use problem::{Finding, Problem};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::claim::Claim;
use crate::artifact::decoding::{decode, identify};
use crate::error::{Class, Fault};
use crate::interrupt::{Interrupt, Interrupted};
use crate::manifest::{Manifest, ManifestError};
use crate::parallel;
use crate::pins::{Encoding, RelativePath};

/// The schema of reports.
pub const SCHEMA: u32 = 1;

/// What to verify besides what the manifest says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directory that the artifacts' paths start from; the manifest's own when not given.
    pub root: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Always 1 ([`SCHEMA`]).
    pub schema: u32,
    /// The manifest.
    pub manifest: PathBuf,
    /// The directory that the artifacts' paths start from.
    pub root: PathBuf,
    /// Every artifact that the manifest lists, in its order.
    pub artifacts: Vec<String>,
    /// Everything that is wrong, in the manifest's order.
    pub findings: Vec<Finding>,
}

/// Why a manifest cannot be verified, or that what it says does not hold.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The manifest itself cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The directory of the artifacts cannot be used.
    #[error("cannot use {path}, in which the artifacts are expected")]
    Root {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something does not hold.
    #[error("{}", describe(.0))]
    Failed(Report),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

fn describe(report: &Report) -> String {
    match report.findings.as_slice() {
        [only] => format!("{} does not hold: {only}", report.manifest.display()),
        [first, rest @ ..] => format!("{} does not hold: {first}; and {} more", report.manifest.display(), rest.len()),
        [] => format!("{} holds", report.manifest.display()),
    }
}

impl Fault for VerifyError {
    fn class(&self) -> Class {
        match self {
            Self::Manifest(error) => error.class(),
            Self::Root { .. } | Self::Failed(_) => Class::Artifact,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Manifest(error) => error.hint(),
            Self::Root { .. } => Some("give the directory that holds the artifacts with --root".into()),
            Self::Failed(report) => {
                let missing = |finding: &Finding| matches!(finding.problem, Problem::Missing { .. });
                Some(if report.findings.iter().all(missing) {
                    "give the directory that holds the artifacts with --root".into()
                } else {
                    "do not deliver these files; build and package again, or restore them from where they were built"
                        .into()
                })
            }
            // Nothing can be resumed here.
            Self::Interrupted(_) => None,
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Failed(report) if report.findings.len() > 1 => {
                Some(report.findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n"))
            }
            _ => None,
        }
    }
}

/// Checks every artifact that the manifest at `path` lists. A report with findings is an error
/// ([`VerifyError::Failed`]), so that none can be lost.
pub fn verify(path: &Path, options: &Options, interrupt: &Interrupt) -> Result<Report, VerifyError> {
    let report = inspect(path, options, interrupt)?;
    if report.findings.is_empty() { Ok(report) } else { Err(VerifyError::Failed(report)) }
}

fn inspect(path: &Path, options: &Options, interrupt: &Interrupt) -> Result<Report, VerifyError> {
    let manifest = Manifest::read(path)?;
    let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = options.root.as_deref().unwrap_or(beside);
    let failed = |source| VerifyError::Root { path: root.to_owned(), source };
    let real = fs::canonicalize(root).map_err(failed)?;
    if !real.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }

    let mut findings = Vec::new();
    if !manifest.has_schema() {
        findings.push(Finding::new(None, Problem::NoSchema));
    }
    let mut work: Vec<_> =
        manifest.artifacts().enumerate().map(|(index, (name, text))| (index, name, Claim::read(name, text))).collect();
    if work.is_empty() {
        findings.push(Finding::new(None, Problem::NoArtifacts));
    }
    let artifacts = work.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    // The largest first: then no core is left alone with it at the end.
    work.sort_by_key(|(index, _, (claim, _))| (std::cmp::Reverse(claim.cost()), *index));
    let mut results = parallel::map(&work, |(index, name, (claim, problems))| {
        let found = check(name, claim, root, &real, interrupt);
        (*index, problems.iter().cloned().chain(found).map(|problem| Finding::new(Some(name), problem)).collect())
    });
    interrupt.check()?;
    results.sort_by_key(|(index, _)| *index);
    findings.extend(results.into_iter().flat_map(|(_, found): (usize, Vec<Finding>)| found));
    Ok(Report { schema: SCHEMA, manifest: path.to_owned(), root: root.to_owned(), artifacts, findings })
}

/// What is wrong with the file of one artifact.
fn check(name: &str, claim: &Claim, root: &Path, real: &Path, interrupt: &Interrupt) -> Vec<Problem> {
    let path = match locate(name, root, real) {
        Ok(path) => path,
        Err(problem) => return vec![problem],
    };
    let unreadable = |error: io::Error| vec![Problem::Unreadable { reason: error.to_string() }];
    let size = match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        // Also because opening a pipe would wait for ever.
        Ok(_) => return vec![Problem::NotAFile],
        Err(error) => return unreadable(error),
    };
    let encoded = claim.encoding.filter(|encoding| *encoding != Encoding::Identity).zip(claim.unpacked);
    let wrong_size = claim.packed.filter(|id| id.size != size);
    let mut problems: Vec<_> =
        wrong_size.map(|id| Problem::PackedSize { expected: id.size, found: size }).into_iter().collect();
    let (packed, unpacked) = match encoded {
        // A file of another size has another digest; only its content may still be right.
        None if wrong_size.is_some() || claim.packed.is_none() => return problems,
        None => match identify(&path, interrupt) {
            Ok(found) => (found, None),
            Err(error) => return unreadable(error),
        },
        Some((encoding, expected)) => match decode(&path, encoding, expected.size, io::sink(), interrupt) {
            Ok(decoded) => (decoded.packed, Some((expected, decoded.unpacked))),
            Err(error) => return unreadable(error),
        },
    };
    if let Some(expected) = claim.packed.filter(|id| id.sha256 != packed.sha256) {
        problems.push(Problem::PackedDigest { expected: expected.sha256, found: packed.sha256 });
    }
    match unpacked {
        None => {}
        Some((_, Err(error))) => problems.push(Problem::Undecodable { reason: error.to_string() }),
        Some((expected, Ok(found))) => {
            if expected.size != found.size {
                problems.push(Problem::UnpackedSize { expected: expected.size, found: found.size });
            }
            if expected.sha256 != found.sha256 {
                problems.push(Problem::UnpackedDigest { expected: expected.sha256, found: found.sha256 });
            }
        }
    }
    problems
}

/// The file that `name` means, which must lie below `real` after every link is followed.
fn locate(name: &str, root: &Path, real: &Path) -> Result<PathBuf, Problem> {
    let root = || root.display().to_string();
    let relative: RelativePath = name.parse().map_err(|_| Problem::Escapes { root: root() })?;
    match fs::canonicalize(real.join(relative.as_str())) {
        Ok(path) if path.starts_with(real) => Ok(path),
        Ok(_) => Err(Problem::Escapes { root: root() }),
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            Err(Problem::Missing { root: root() })
        }
        Err(error) => Err(Problem::Unreadable { reason: error.to_string() }),
    }
}
