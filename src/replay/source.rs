//! What an attestation carries, laid out as a build finds it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::ReplayError;
use crate::build::{Prepared, prepare_text};
use crate::error::Result;
use crate::past::Past;
use crate::pins::Platform;
use crate::plan::Plan;
use crate::provenance::Attestation;
use crate::step::StepId;

/// A recorded build that can be replayed.
#[derive(Debug)]
pub struct Source {
    attestation: Attestation,
    prepared: Prepared,
    /// What its steps recorded.
    past: BTreeMap<StepId, Past>,
    /// Holds the files that it carries.
    _files: Option<tempfile::TempDir>,
}

/// Reads the attestation at `path` and plans what it records.
///
/// The files beside the pins are those that it carries; with `beside`, those in that directory, which
/// are checked like any pinned file.
pub fn open(path: &Path, beside: Option<&Path>) -> Result<Source> {
    let attestation = Attestation::read(path)?;
    let (name, text) = attestation.pins()?;
    let name = Path::new(name).file_name().unwrap_or_else(|| "pins.toml".as_ref()).to_owned();
    let (directory, files) = if let Some(directory) = beside {
        (std::path::absolute(directory).map_err(|source| failed(directory, source))?, None)
    } else {
        let files = lay_out(&attestation)?;
        (files.path().to_owned(), Some(files))
    };
    let platform = &attestation.statement().predicate.build_definition.internal_parameters.platform;
    let prepared = prepare_text(text.to_owned(), &directory.join(name), directory.clone(), platform)?;
    let past = attestation.steps().iter().map(|(id, step)| (id.clone(), Past::from(step))).collect();
    Ok(Source { attestation, prepared, past, _files: files })
}

/// Writes the files that it carries to a directory of their own.
fn lay_out(attestation: &Attestation) -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("rebuild-replay-").tempdir();
    let files = made.map_err(|source| failed(&std::env::temp_dir(), source))?;
    for (path, bytes) in attestation.files()? {
        let place = files.path().join(path.as_str());
        let write = || {
            fs::create_dir_all(place.parent().unwrap_or(files.path()))?;
            fs::write(&place, bytes)
        };
        write().map_err(|source| failed(&place, source))?;
    }
    Ok(files)
}

fn failed(path: &Path, source: std::io::Error) -> ReplayError {
    ReplayError::Io { path: path.to_owned(), source }
}

impl Source {
    /// The attestation.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// What the recorded steps made, and from what.
    pub fn past(&self) -> &BTreeMap<StepId, Past> {
        &self.past
    }

    /// The directory of the pins file and the files beside it.
    pub(super) fn directory(&self) -> PathBuf {
        self.prepared.directory.clone()
    }

    /// Why this program cannot run the recorded plan at all.
    pub(super) fn obstacle(&self) -> Option<String> {
        let recorded = &self.attestation.statement().predicate.build_definition.internal_parameters;
        let plan = self.plan();
        let (planned, here) = (plan.digest(), Platform::here());
        if planned != recorded.plan {
            let builder = &self.attestation.statement().predicate.run_details.builder.version;
            let builder = builder.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>();
            return Some(format!(
                "the pins give plan {planned} here, and the recorded build had plan {}; it was built by {}, and this is {}",
                recorded.plan,
                builder.join(", "),
                concat!("rebuild-model ", env!("CARGO_PKG_VERSION"))
            ));
        }
        if recorded.platform != here {
            return Some(format!("it was built on {}, and this is {here}", recorded.platform));
        }
        let missing: Vec<&str> = plan
            .steps
            .iter()
            .map(|step| step.id.as_str())
            .filter(|id| !self.past.keys().any(|past| past.as_str() == *id))
            .collect();
        let unknown = self.past.keys().find(|id| plan.step(id.as_str()).is_none());
        match (missing.first(), unknown) {
            (Some(step), _) => Some(format!("the attestation has no record of step {step}")),
            (None, Some(step)) => {
                Some(format!("the attestation has a record of step {step}, which is not in its plan"))
            }
            (None, None) => None,
        }
    }
}
