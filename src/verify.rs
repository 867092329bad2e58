//! Verification: do artifacts, manifest, attestation and pins agree?
//!
//! Packed digest and size of each artifact first, then what decoding gives. Where there is an
//! attestation, it is held against the manifest, and against itself: the plan must follow from the pins
//! that it carries, each step from the plan and the steps before it, what was delivered from the last.
//! It fails closed: what is not stated, not readable or not understood is a finding, and every finding
//! is collected. Files are checked on every core, the largest first, in constant memory, once.
//!
//! **Invariant**: nothing here runs a tool or writes a file.

mod attested;
mod claim;
mod derived;
mod dispute;
mod files;
mod kept;
mod parts;
mod policy;
mod problem;
mod traced;

pub use dispute::Dispute;
pub use policy::{Policy, PolicyError};
pub use problem::{Finding, Problem};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::interrupt::{Interrupt, Interrupted};
use crate::manifest::{Manifest, ManifestError};
use crate::pins::Platform;
use crate::provenance::{self, Attestation, AttestationError, PublicKey, ResourceDescriptor};

/// The schema of reports.
pub const SCHEMA: u32 = 1;

/// What to verify besides what stands there.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directory that the artifacts' paths start from; the manifest's own when not given.
    pub root: Option<PathBuf>,
    /// The manifest of an attestation, when it is not the one that it stands beside.
    pub manifest: Option<PathBuf>,
    /// Keys that must have signed the attestation.
    pub keys: Vec<PublicKey>,
    /// How many of them; all when not given.
    pub threshold: Option<usize>,
    /// What else is demanded of the attestation.
    pub policy: Option<Policy>,
    /// A journal that must be the attested one.
    pub journal: Option<PathBuf>,
    /// Accept artifacts in the manifest of which the attestation does not speak.
    pub allow_unattested: bool,
}

impl Options {
    fn check(&self) -> Result<(), VerifyError> {
        match self.threshold.filter(|threshold| *threshold > self.keys.len()) {
            Some(threshold) => Err(VerifyError::Threshold { threshold, keys: self.keys.len() }),
            None => Ok(()),
        }
    }

    /// Whether an attestation is needed.
    pub(crate) fn need_attestation(&self) -> bool {
        !self.keys.is_empty() || self.policy.is_some() || self.journal.is_some() || self.allow_unattested
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Always 1 ([`SCHEMA`]).
    pub schema: u32,
    /// The manifest; none when only an attestation was there.
    pub manifest: Option<PathBuf>,
    /// The directory that the artifacts' paths start from.
    pub root: PathBuf,
    /// Every artifact that is listed, in order.
    pub artifacts: Vec<String>,
    /// What the attestation says, where there is one.
    pub attestation: Option<Attested>,
    /// Everything that is wrong: signatures, then files in the manifest's order, then the attestation.
    pub findings: Vec<Finding>,
}

/// What an attestation says, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attested {
    /// The attestation.
    pub path: PathBuf,
    /// The plan's digest.
    pub plan: Digest,
    /// The platform it was for.
    pub platform: Platform,
    /// Who built: the builder's id, and its versions.
    pub builder: String,
    /// Ids of the given keys that have signed it.
    pub signed_by: Vec<String>,
    /// Key ids, as the envelope says them, of signatures that nobody gave a key for.
    pub unchecked: Vec<String>,
    /// Artifacts of the manifest of which it does not speak.
    pub unattested: Vec<String>,
}

/// Why something cannot be verified, or that what it says does not hold.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The manifest itself cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The attestation itself cannot be used.
    #[error(transparent)]
    Attestation(#[from] AttestationError),
    /// More keys are wanted than there are.
    #[error("a threshold of {threshold} cannot be met by {keys} keys")]
    Threshold {
        /// How many must have signed.
        threshold: usize,
        /// How many different keys there are.
        keys: usize,
    },
    /// A manifest was given for a file that is one itself.
    #[error("{} is a manifest, and so is {}, given with --manifest", .path.display(), .other.display())]
    TwoManifests {
        /// The file to verify.
        path: PathBuf,
        /// The other.
        other: PathBuf,
    },
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
    let attested = report.attestation.as_ref().map(|attested| &attested.path);
    let path = report.manifest.as_ref().or(attested).unwrap_or(&report.root).display();
    match report.findings.as_slice() {
        [only] => format!("{path} does not hold: {only}"),
        [first, rest @ ..] => format!("{path} does not hold: {first}; and {} more", rest.len()),
        [] => format!("{path} holds"),
    }
}

impl Fault for VerifyError {
    fn class(&self) -> Class {
        match self {
            Self::Manifest(error) => error.class(),
            Self::Attestation(error) => error.class(),
            Self::Threshold { .. } | Self::TwoManifests { .. } => Class::Usage,
            // Another version may plan otherwise: that says nothing about the artifacts.
            Self::Failed(report) if report.findings.iter().all(Finding::is_of_another_version) => Class::Inconclusive,
            Self::Root { .. } | Self::Failed(_) => Class::Artifact,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Manifest(error) => error.hint(),
            Self::Attestation(error) => error.hint(),
            Self::Threshold { .. } => {
                Some("give more keys with --key, each another one, or a lower --threshold".into())
            }
            Self::TwoManifests { .. } => Some(
                "--manifest names the manifest of an attestation: verify the attestation, or one of the two alone"
                    .into(),
            ),
            Self::Root { .. } => Some("give the directory that holds the artifacts with --root".into()),
            Self::Failed(report) => Some(hint(report)),
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

fn hint(report: &Report) -> String {
    let all = |wanted: fn(&Problem) -> bool| report.findings.iter().all(|finding| wanted(&finding.problem));
    let advice = if all(|problem| matches!(problem, Problem::Missing { .. })) {
        "give the directory that holds the artifacts with --root"
    } else if all(|problem| matches!(problem, Problem::LinkEscapes { .. } | Problem::LinkDangles { .. })) {
        "put the files themselves there, or give a directory that holds both links and files with --root"
    } else if report.findings.iter().all(Finding::is_of_another_version) {
        "verify with the version that built"
    } else if all(|problem| matches!(problem, Problem::Attested(Dispute::Unattested))) {
        "attest everything in one build, or accept artifacts of other builds with --allow-unattested"
    } else if all(|problem| matches!(problem, Problem::Attested(Dispute::NotSigned | Dispute::Signature(_)))) {
        "get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`"
    } else if all(|problem| matches!(problem, Problem::Attested(Dispute::Policy { .. }))) {
        "do not deliver these files, or let whoever answers for the policy decide"
    } else if all(|problem| matches!(problem, Problem::Attested(Dispute::NoAttestation { .. }))) {
        "get the attestation that the build wrote beside its manifest, or name it: `verify ATTESTATION --manifest MANIFEST`"
    } else if all(|problem| matches!(problem, Problem::Attested(Dispute::Journal { .. }))) {
        "the journal was edited, or is of another build; the attestation and the artifacts hold without it"
    } else if report.findings.iter().all(|finding| is_repacked(finding, report)) {
        "the content is what is recorded, packed by another encoder or at another level; restore the files, or package again"
    } else {
        "do not deliver these files; build and package again, or restore them from where they were built"
    };
    advice.into()
}

/// Whether it says no more than that its artifact was packed in another way.
fn is_repacked(finding: &Finding, report: &Report) -> bool {
    let of_same = |other: &Finding| {
        other.artifact == finding.artifact && matches!(other.problem, Problem::PackedDigest { same_content: true, .. })
    };
    match finding.problem {
        Problem::PackedSize { .. } | Problem::PackedDigest { .. } => report.findings.iter().any(of_same),
        _ => false,
    }
}

/// Checks what the file at `path`, a manifest or an attestation, speaks of. A report with findings is an
/// error ([`VerifyError::Failed`]), so that none can be lost.
pub fn verify(path: &Path, options: &Options, interrupt: &Interrupt) -> Result<Report, VerifyError> {
    options.check()?;
    let report = inspect(path, options, interrupt)?;
    if report.findings.is_empty() { Ok(report) } else { Err(VerifyError::Failed(report)) }
}

/// An attestation that was held against its manifest and itself; the artifacts were not looked at.
#[derive(Debug, Clone)]
pub struct Held {
    /// The digest of its pins, where it says one.
    pub pins: Option<Digest>,
    /// What it says.
    pub attested: Attested,
    /// What went in.
    pub dependencies: Vec<ResourceDescriptor>,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
}

/// Holds the attestation at `path` against a manifest, itself and the options, where no artifacts are.
pub fn hold(path: &Path, manifest: Option<&Path>, options: &Options) -> Result<Held, VerifyError> {
    options.check()?;
    let attestation = Attestation::read(path)?;
    let manifest = manifest.map(Manifest::read).transpose()?;
    let stated = provenance::entries(&attestation.statement().subject);
    let (attested, findings) = attested::hold(&attestation, stated, manifest.as_ref(), options);
    let pins = &attestation.statement().predicate.build_definition.external_parameters.pins;
    let dependencies = attestation.dependencies().cloned().collect();
    Ok(Held { pins: pins.sha256_of(), attested, dependencies, findings })
}

fn inspect(path: &Path, options: &Options, interrupt: &Interrupt) -> Result<Report, VerifyError> {
    let (manifest_path, attestation) = find(path, options)?;
    let stated = attestation.as_ref().map(|attestation| provenance::entries(&attestation.statement().subject));
    let manifest = match &manifest_path {
        Some(path) => Manifest::read(path)?,
        // Without a manifest the subjects stand for it.
        None => {
            Manifest::parse(path, Manifest::fresh(&stated.clone().and_then(Result::ok).unwrap_or_default()).into())?
        }
    };
    let beside = manifest_path.as_deref().unwrap_or(path).parent();
    let beside = beside.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = options.root.clone().unwrap_or_else(|| beside.to_owned());
    let (artifacts, mut findings) = files::inspect(&manifest, &root, interrupt)?;
    // Joined only when each is what its entry says: what is wrong with one is said once.
    if findings.is_empty() {
        findings.extend(parts::check(&manifest, &root, interrupt));
    }
    let mut attested = None;
    if let (Some(attestation), Some(stated)) = (&attestation, stated) {
        let manifest = manifest_path.as_deref().map(|_| &manifest);
        let (what, disputes) = attested::hold(attestation, stated, manifest, options);
        findings.extend(disputes);
        attested = Some(what);
    } else if options.need_attestation() {
        let path = provenance::beside(path).display().to_string();
        findings.push(Finding::new(None, Problem::Attested(Dispute::NoAttestation { path })));
    }
    // Without the signature nothing else that an attestation says means much.
    findings.sort_by_key(|finding| !finding.is_of_signature());
    Ok(Report { schema: SCHEMA, manifest: manifest_path, root, artifacts, attestation: attested, findings })
}

/// Manifest and attestation that belong to `path`, which is one of them.
fn find(path: &Path, options: &Options) -> Result<(Option<PathBuf>, Option<Attestation>), VerifyError> {
    if !is_attestation(path) {
        if let Some(other) = &options.manifest {
            // What is no manifest either is said first.
            Manifest::read(path)?;
            return Err(VerifyError::TwoManifests { path: path.to_owned(), other: other.clone() });
        }
        let beside = provenance::beside(path);
        let attestation = if fs::symlink_metadata(&beside).is_ok() { Some(Attestation::read(&beside)?) } else { None };
        return Ok((Some(path.to_owned()), attestation));
    }
    let attestation = Attestation::read(path)?;
    let beside = provenance::manifest_of(path).filter(|manifest| fs::symlink_metadata(manifest).is_ok());
    Ok((options.manifest.clone().or(beside), Some(attestation)))
}

/// By its name, or else by what it says it is. What cannot be told is taken for a manifest, whose reader
/// says what is wrong with it.
fn is_attestation(path: &Path) -> bool {
    if provenance::manifest_of(path).is_some() {
        return true;
    }
    let says = |manifest: Manifest| manifest.has_member("_type") || manifest.has_member("payloadType");
    Manifest::read(path).is_ok_and(says)
}
