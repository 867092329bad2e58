//! Whether a bundle is whole: its files are those that it lists, and pins, plan and attestation in it
//! speak of one build.
//!
//! The list is not signed, so it shows what was damaged or exchanged by mistake. What was edited on
//! purpose shows where the attestation is signed: its pins have to be those in `sources/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::contents::{self, Packaging, Vendored};
use super::{BundleError, CONTENTS, at, inputs};
use crate::artifact::encoding::FileId;
use crate::build::{Prepared, prepare};
use crate::digest::{Digest, hash_file};
use crate::error::{Error, Result};
use crate::exec::local;
use crate::interrupt::Interrupt;
use crate::manifest::Manifest;
use crate::pins::Platform;
use crate::provenance;
use crate::verify::{self, Attested};

/// The most bytes of a list; that of ten thousand files is much smaller.
const LARGEST: u64 = 32 << 20;

/// `bundle.json`, as far as it is checked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    schema: u32,
    recipe: String,
    platform: Platform,
    plan: Digest,
    pins: Digest,
    pins_file: String,
    program: String,
    packaging: Vec<Packaging>,
    pub vendored: Vec<Vendored>,
    pub files: BTreeMap<String, FileId>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The bundle's directory.
    pub bundle: PathBuf,
    /// Digest of the plan.
    pub plan: Digest,
    /// How many files are listed, and how many bytes they have together.
    pub files: usize,
    /// See `files`.
    pub bytes: u64,
    /// How many inputs are in it.
    pub inputs: usize,
    /// What the attestation in it says, where there is one.
    pub attestation: Option<Attested>,
    /// Everything that is wrong.
    pub findings: Vec<Flaw>,
}

/// Something that is wrong with a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "flaw")]
#[allow(missing_docs, reason = "the fields say what their texts say: which file, expected, found")]
pub enum Flaw {
    /// A listed file is not there.
    #[error("{file} is not there")]
    Missing { file: String },
    /// A file is there that is not listed.
    #[error("{file} is not listed")]
    Unlisted { file: String },
    /// A listed file is another one.
    #[error("{file}: expected {} bytes with sha256 {}, found {} with {}", expected.size, expected.sha256, found.size, found.sha256)]
    Differs { file: String, expected: FileId, found: FileId },
    /// Something is neither a directory nor a regular file.
    #[error("{file} is neither a regular file nor a directory")]
    NoFile { file: String },
    /// The pins, or the files that they name, cannot be used.
    #[error("{file}: {reason}")]
    Sources { file: String, reason: String },
    /// What should follow does not.
    #[error("{what}: expected {expected}, found {found}")]
    Follows { what: &'static str, expected: String, found: String },
    /// The plan is another one, and another version of this program made the bundle.
    #[error("the pins give another plan here than they gave {program}: expected {expected}, found {found}")]
    OtherVersion { program: String, expected: Digest, found: Digest },
    /// A file lies at the place of another digest.
    #[error("{file}: its place is that of sha256 {expected}, and it has {found}")]
    Misplaced { file: String, expected: Digest, found: Digest },
    /// An input lacks, is damaged, or is none.
    #[error("{file}: {reason}")]
    Input { file: String, reason: String },
    /// Something is wrong with the attestation.
    #[error("{problem}")]
    Attested {
        problem: String,
        /// Another version of this program built, and that is all.
        #[serde(skip)]
        other_version: bool,
    },
}

impl Flaw {
    /// Another version of this program may plan otherwise; that says nothing about the files.
    pub(super) fn is_of_another_version(&self) -> bool {
        matches!(self, Self::OtherVersion { .. } | Self::Attested { other_version: true, .. })
    }
}

/// Whether `path` is a bundle's directory or its list; gives the directory.
pub fn directory_of(path: &Path) -> Option<&Path> {
    if path.is_dir() && path.join(CONTENTS).is_file() {
        return Some(path);
    }
    let is_list = path.file_name().is_some_and(|name| name == CONTENTS) && path.is_file();
    let parent = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    parent.filter(|_| is_list)
}

/// Checks the bundle in `directory`. Findings are an error ([`BundleError::Failed`]).
///
/// Of `options` those count that concern the attestation: keys and policy.
pub fn check(directory: &Path, options: &verify::Options, interrupt: &Interrupt) -> Result<Checked> {
    let checked = examine(directory, options, interrupt)?;
    if checked.findings.is_empty() { Ok(checked) } else { Err(BundleError::Failed(checked).into()) }
}

/// The same, and leaves it to the caller what findings mean.
pub(super) fn examine(directory: &Path, options: &verify::Options, interrupt: &Interrupt) -> Result<Checked> {
    let listed = read(&directory.join(CONTENTS))?;
    let mut findings = compare_files(directory, &listed, interrupt)?;
    let whole = findings.is_empty();
    let path = directory.join("attestation.json");
    let mut attestation = None;
    // A damaged file is said once, not again with all that follows from it.
    if whole {
        let prepared = follow(directory, &listed, &mut findings);
        let mut wanted = prepared.map(|prepared| provenance::pinned(&prepared.plan)).unwrap_or_default();
        let path_of_manifest = directory.join("manifest.json");
        if listed.files.contains_key("manifest.json")
            && Manifest::read(&path_of_manifest)?.entries(&path_of_manifest)?.is_empty()
        {
            findings.push(Flaw::Input { file: "manifest.json".into(), reason: "it lists no artifact".into() });
        }
        if listed.files.contains_key("attestation.json") {
            let manifest = Some(path_of_manifest).filter(|path| path.is_file());
            let held = verify::hold(&path, manifest.as_deref(), options)?;
            if held.pins != Some(listed.pins) {
                let found = held.pins.map_or_else(|| "nothing".to_owned(), |pins| pins.to_string());
                let expected = listed.pins.to_string();
                findings.push(Flaw::Follows { what: "pins of the attestation", expected, found });
            }
            findings.extend(held.findings.iter().map(|finding| Flaw::Attested {
                problem: finding.to_string(),
                other_version: finding.is_of_another_version(),
            }));
            wanted.extend(held.dependencies);
            attestation = Some(held.attested);
        }
        findings.extend(inputs::check(directory, &listed, wanted.iter(), interrupt)?);
    }
    if attestation.is_none() && options.need_attestation() {
        let problem = "there is no attestation that could be held against what is demanded".to_owned();
        findings.push(Flaw::Attested { problem, other_version: false });
    }
    Ok(Checked {
        bundle: directory.to_owned(),
        plan: listed.plan,
        files: listed.files.len(),
        inputs: listed.vendored.len(),
        bytes: listed.files.values().map(|file| file.size).sum(),
        attestation,
        findings,
    })
}

fn read(path: &Path) -> Result<Listed, BundleError> {
    let size = fs::metadata(path).map_err(at(path))?.len();
    if size > LARGEST {
        let reason = format!("it has {size} bytes, and no list is so long");
        return Err(BundleError::NoList { path: path.to_owned(), reason });
    }
    let bytes = fs::read(path).map_err(at(path))?;
    let listed: Listed = serde_json::from_slice(&bytes)
        .map_err(|error| BundleError::NoList { path: path.to_owned(), reason: error.to_string() })?;
    if listed.schema != super::SCHEMA {
        let reason = format!("its schema is {}, and this program knows {}", listed.schema, super::SCHEMA);
        return Err(BundleError::NoList { path: path.to_owned(), reason });
    }
    Ok(listed)
}

/// Holds the files that are there against the list.
fn compare_files(directory: &Path, listed: &Listed, interrupt: &Interrupt) -> Result<Vec<Flaw>> {
    let mut findings = Vec::new();
    let mut missing: BTreeMap<&str, &FileId> = listed.files.iter().map(|(name, id)| (name.as_str(), id)).collect();
    for entry in walkdir::WalkDir::new(directory).min_depth(1).sort_by_file_name() {
        interrupt.check()?;
        let entry = entry.map_err(|error| at(directory)(error.into()))?;
        if entry.file_type().is_dir() {
            continue;
        }
        let relative = entry.path().strip_prefix(directory).unwrap_or(entry.path());
        let file = relative.to_string_lossy().into_owned();
        if file == CONTENTS {
            continue;
        }
        if !entry.file_type().is_file() {
            missing.remove(file.as_str());
            findings.push(Flaw::NoFile { file });
            continue;
        }
        let Some(expected) = missing.remove(file.as_str()) else {
            findings.push(Flaw::Unlisted { file });
            continue;
        };
        let found = FileId::from(hash_file(entry.path()).map_err(at(entry.path()))?);
        if found != *expected {
            findings.push(Flaw::Differs { file, expected: *expected, found });
        }
    }
    findings.extend(missing.into_keys().map(|file| Flaw::Missing { file: file.to_owned() }));
    Ok(findings)
}

/// The plan has to follow from the pins, and the files beside them have to be the pinned ones. Gives the plan.
fn follow(directory: &Path, listed: &Listed, findings: &mut Vec<Flaw>) -> Option<Prepared> {
    let sources = |error: &Error| Flaw::Sources { file: listed.pins_file.clone(), reason: error.to_string() };
    // A name from elsewhere: it has to be one of the files that were just looked at.
    if !listed.files.contains_key(&listed.pins_file) {
        findings.push(Flaw::Missing { file: listed.pins_file.clone() });
        return None;
    }
    let prepared = match prepare(&directory.join(&listed.pins_file), &listed.platform) {
        Ok(prepared) => prepared,
        Err(error) => {
            findings.push(sources(&error));
            return None;
        }
    };
    if let Err(error) = local::check_all(&prepared.plan, &prepared.directory) {
        findings.push(sources(&error.into()));
    }
    if prepared.digest != listed.pins {
        let (expected, found) = (listed.pins.to_string(), prepared.digest.to_string());
        findings.push(Flaw::Follows { what: "digest of the pins", expected, found });
    }
    let plan = prepared.plan.digest();
    let program = super::PROGRAM;
    if listed.program != program {
        if plan != listed.plan {
            let program = listed.program.clone();
            findings.push(Flaw::OtherVersion { program, expected: listed.plan, found: plan });
        }
        return Some(prepared);
    }
    if plan != listed.plan {
        let (expected, found) = (plan.to_string(), listed.plan.to_string());
        findings.push(Flaw::Follows { what: "the plan that follows from the pins", expected, found });
        return Some(prepared);
    }
    // The same version writes the same.
    let there = ["manifest.json", "attestation.json"].map(|name| listed.files.contains_key(name));
    let documents = [
        ("plan.json", contents::text_of(&prepared.plan)),
        ("README.md", contents::readme(&prepared, there, !listed.vendored.is_empty()).into_bytes()),
    ];
    for (name, text) in documents {
        if fs::read(directory.join(name)).unwrap_or_default() != text {
            let (expected, found) = (format!("what {program} writes for plan {plan}"), "another text".to_owned());
            findings.push(Flaw::Follows { what: name, expected, found });
        }
    }
    if listed.recipe != prepared.plan.recipe.as_str() || listed.packaging != contents::packaging(&prepared) {
        let (expected, found) = (format!("those of plan {plan}"), "others".to_owned());
        findings.push(Flaw::Follows { what: "recipe and packaging in the list", expected, found });
    }
    Some(prepared)
}
