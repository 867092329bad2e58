//! Files against what a manifest says of them: packed digest and size, then what decoding gives.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::VerifyError;
use super::claim::Claim;
use super::problem::{Finding, Problem};
use crate::artifact::decoding::{decode, identify};
use crate::interrupt::Interrupt;
use crate::manifest::Manifest;
use crate::parallel;
use crate::pins::{Encoding, RelativePath};

/// Checks every artifact of `manifest` below `root`; gives their names and what is wrong, both in the
/// manifest's order. Each file is read once.
pub(super) fn inspect(
    manifest: &Manifest,
    root: &Path,
    interrupt: &Interrupt,
) -> Result<(Vec<String>, Vec<Finding>), VerifyError> {
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
    Ok((artifacts, findings))
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
        let same_content =
            unpacked.as_ref().is_some_and(|(wanted, found)| found.as_ref().is_ok_and(|found| found == wanted));
        problems.push(Problem::PackedDigest { expected: expected.sha256, found: packed.sha256, same_content });
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
        // A path without `..` leaves a directory by a link alone.
        Ok(_) => Err(match find_link(&relative, real, |target| !target.starts_with(real)) {
            Some((link, target)) => Problem::LinkEscapes { root: root(), link, target },
            None => Problem::Escapes { root: root() },
        }),
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            Err(match find_link(&relative, real, |target| !target.exists()) {
                Some((link, target)) => Problem::LinkDangles { link, target },
                None => Problem::Missing { root: root() },
            })
        }
        Err(error) => Err(Problem::Unreadable { reason: error.to_string() }),
    }
}

/// The first link on the way to `relative` below `root` whose target is `wanted`, and what it says.
fn find_link(relative: &RelativePath, root: &Path, wanted: impl Fn(&Path) -> bool) -> Option<(String, String)> {
    let mut path = PathBuf::new();
    for part in relative.as_str().split('/') {
        path.push(part);
        let full = root.join(&path);
        let Ok(said) = fs::read_link(&full) else { continue };
        let target = full.parent().unwrap_or(root).join(&said);
        if wanted(&fs::canonicalize(&target).unwrap_or(target)) {
            return Some((path.display().to_string(), said.display().to_string()));
        }
    }
    None
}
