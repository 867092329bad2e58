//! Whether the inputs in a bundle are those that its pins and its attestation name.

use std::collections::BTreeSet;
use std::path::Path;

use super::check::{Flaw, Listed};
use super::contents::Vendored;
use super::vendor::mirrors_text;
use super::{MIRRORS, at};
use crate::digest::Digest;
use crate::error::Result;
use crate::exec::git;
use crate::interrupt::Interrupt;
use crate::provenance::ResourceDescriptor;

/// Kinds of dependencies that are files by digest in a bundle, where they have an address.
const FILES: [&str; 4] = ["pypi", "npm", "wheel", "file"];

/// Holds what lies in `vendor/` against the list of inputs, and that against `wanted`, what went in or has to.
pub(super) fn check<'a>(
    directory: &Path,
    listed: &Listed,
    wanted: impl Iterator<Item = &'a ResourceDescriptor>,
    interrupt: &Interrupt,
) -> Result<Vec<Flaw>> {
    let mut findings = Vec::new();
    let (mut files, mut commits, mut places) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut urls = BTreeSet::new();
    for input in &listed.vendored {
        interrupt.check()?;
        match input {
            Vendored::File { name, sha256, .. } => {
                let file = format!("vendor/sha256/{sha256}/{name}");
                if !listed.files.contains_key(&file) {
                    findings.push(Flaw::Missing { file: file.clone() });
                }
                files.insert(sha256.to_string());
                places.insert(file);
            }
            Vendored::Commit { url, commit, tree, repository } => {
                let place = format!("git/{}", git::place_of(url));
                if *repository != place {
                    let (expected, found) = (place.clone(), repository.clone());
                    findings.push(Flaw::Follows { what: "place of a repository", expected, found });
                }
                let file = format!("vendor/{place}");
                match git::check_kept(&directory.join(&file), commit, interrupt)? {
                    Ok(found) if found == *tree => {}
                    Ok(found) => {
                        let (expected, found) = (tree.to_string(), found.to_string());
                        findings.push(Flaw::Follows { what: "tree of a commit", expected, found });
                    }
                    Err(reason) => findings.push(Flaw::Input { file: file.clone(), reason }),
                }
                commits.insert(commit.to_string());
                places.insert(file);
                urls.insert(url.clone());
            }
        }
    }
    findings.extend(look_around(listed, &places));
    let mirrors = format!("vendor/{MIRRORS}");
    if !listed.vendored.is_empty() {
        let path = directory.join(&mirrors);
        if !listed.files.contains_key(&mirrors) {
            findings.push(Flaw::Missing { file: mirrors });
        } else if std::fs::read(&path).map_err(at(&path))? != mirrors_text(urls).into_bytes() {
            let reason = "it does not say which of these repositories stands for which url".to_owned();
            findings.push(Flaw::Input { file: mirrors, reason });
        }
        findings.extend(find_lacking(wanted, &files, &commits));
    }
    Ok(findings)
}

/// What lies at another digest's place, or belongs to no input.
fn look_around(listed: &Listed, places: &BTreeSet<String>) -> Vec<Flaw> {
    let mut findings = Vec::new();
    for (file, id) in &listed.files {
        let Some(rest) = file.strip_prefix("vendor/") else { continue };
        let by_digest = rest.strip_prefix("sha256/").and_then(|rest| rest.split('/').next()?.parse::<Digest>().ok());
        if let Some(expected) = by_digest.filter(|digest| *digest != id.sha256) {
            findings.push(Flaw::Misplaced { file: file.clone(), expected, found: id.sha256 });
            continue;
        }
        let of_repository = || {
            let place = rest.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
            places.contains(&format!("vendor/{place}"))
        };
        if rest != MIRRORS && !places.contains(file) && !of_repository() {
            findings.push(Flaw::Input { file: file.clone(), reason: "it is none of the listed inputs".into() });
        }
    }
    findings
}

fn find_lacking<'a>(
    wanted: impl Iterator<Item = &'a ResourceDescriptor>,
    files: &BTreeSet<String>,
    commits: &BTreeSet<String>,
) -> Vec<Flaw> {
    let lacks = |input: &&ResourceDescriptor| match input.kind() {
        "git" | "submodule" => input.digest.get("gitCommit").is_some_and(|commit| !commits.contains(commit)),
        // What has no address lies beside the pins.
        kind => {
            FILES.contains(&kind)
                && input.uri.is_some()
                && input.digest.get("sha256").is_some_and(|digest| !files.contains(digest))
        }
    };
    let lacking = wanted.filter(lacks);
    lacking
        .map(|input| Flaw::Input {
            file: input.name().to_owned(),
            reason: format!("this {} is not in it, and the rest is", input.kind()),
        })
        .collect()
}
