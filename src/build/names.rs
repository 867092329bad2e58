//! Names under which a build would deliver two things: refused before an hour of work is done for it.

use std::path::{Path, PathBuf};

use crate::error::{Class, Fault};
use crate::pins::{self, PinsError};
use crate::plan::Plan;
use crate::provenance::{beside, bill_beside};
use crate::recipe::AnyPins;
use crate::step::{Action, Package};

/// A document of the build has the path of an artifact.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} would be {}, where the artifact {} is delivered: give `manifest` another name",
    .path.display(), .artifact.display()
)]
pub(super) struct Taken {
    what: &'static str,
    path: PathBuf,
    artifact: PathBuf,
}

impl Fault for Taken {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// Refuses a manifest, or what goes beside it, at the path of an artifact of `plan`. `text` is the text
/// of the pins file called `path`.
pub(super) fn check(pins: &AnyPins, plan: &Plan, text: &str, path: &str) -> Result<(), PinsError> {
    let packages = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Package(package) => Some(package),
        _ => None,
    });
    let mut taken = packages.filter_map(|package| {
        find_taken(package, Path::new(package.destination.as_str()), Path::new(package.manifest.as_str()))
    });
    match taken.next() {
        Some(taken) => {
            Err(pins::refuse(text, path, Some(pins.packaging.manifest.span()), format!("[packaging]: {taken}")))
        }
        None => Ok(()),
    }
}

/// The same for a package that goes to `destination`, with its manifest at `manifest`.
pub(super) fn check_output(package: &Package, destination: &Path, manifest: &Path) -> Result<(), Taken> {
    find_taken(package, destination, manifest).map_or(Ok(()), Err)
}

fn find_taken(package: &Package, destination: &Path, manifest: &Path) -> Option<Taken> {
    let written: [(&str, PathBuf); 3] = [
        ("the manifest", manifest.to_owned()),
        ("the attestation beside the manifest", beside(manifest)),
        ("the bill of materials beside the manifest", bill_beside(manifest)),
    ];
    package.artifacts.iter().find_map(|artifact| {
        let artifact = destination.join(format!("{}{}", artifact.path, artifact.encoding.suffix()));
        // An artifact below it would make it a directory.
        let (what, path) = written.iter().find(|(_, path)| artifact.starts_with(path))?;
        Some(Taken { what, path: path.clone(), artifact })
    })
}
