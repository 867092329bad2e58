//! Resolved dependencies: everything that went into a build, with the digests that it had.
//!
//! What was pinned comes from the plan, what was found from the steps' reports in the journal: the
//! tree of a commit, the wheels that a requirements file allows, a digest that nobody had recorded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::descriptor::{Content, ResourceDescriptor};
use super::facts::Facts;
use crate::digest::Digest;
use crate::exec::git::{FetchedRepository, GitReport};
use crate::pins::Registry;
use crate::step::{Action, Checkout, FetchFile, FetchGit, FetchPackage, FileOrigin, Step, Take};

/// The annotation by which a reader finds the pins file among the dependencies.
pub(super) const PINS: &str = "pins";

/// Every dependency: the pins file, then what the steps took in, in plan order, then the tools.
pub(super) fn dependencies(facts: &Facts<'_>) -> Vec<ResourceDescriptor> {
    let mut found = vec![pins(facts)];
    for step in &facts.plan.steps {
        let record = facts.records.get(&step.id);
        let report = record.map_or(&Value::Null, |record| &record.report);
        match &step.action {
            Action::FetchGit(fetch) => add_repositories(&mut found, step, fetch, report),
            Action::FetchFile(fetch) => add_file(&mut found, facts, fetch, report),
            Action::FetchPackage(fetch) => add_package(&mut found, fetch, report),
            Action::FetchWheels(fetch) => {
                found.extend(carried(facts, fetch.requirements.as_str(), &BTreeMap::new()));
                add_wheels(&mut found, report);
            }
            Action::Patch(patch) => {
                for file in &patch.patches {
                    let notes = BTreeMap::from([("patch".to_owned(), Value::from(file.name.as_str()))]);
                    found.extend(carried(facts, file.file.as_str(), &notes));
                }
            }
            Action::Unpack(_) | Action::Collect(_) | Action::Run(_) | Action::CheckSymbols(_) | Action::Package(_) => {}
        }
    }
    for (name, tool) in facts.tools {
        let descriptor = ResourceDescriptor::named(name.as_str()).sha256(tool.sha256);
        found.push(descriptor.note("kind", "tool").note("version", tool.version.as_str()));
    }
    let mut unique: Vec<ResourceDescriptor> = Vec::new();
    for descriptor in found {
        if !unique.contains(&descriptor) {
            unique.push(descriptor);
        }
    }
    unique
}

fn pins(facts: &Facts<'_>) -> ResourceDescriptor {
    let text = facts.pins.as_bytes();
    ResourceDescriptor {
        content: Some(Content(text.to_vec())),
        media_type: Some("application/toml".into()),
        ..ResourceDescriptor::named(facts.pins_name)
    }
    .sha256(Digest::of(text))
    .note("kind", PINS)
    .note("size", text.len())
}

/// The file beside the pins at `path`.
fn carried(facts: &Facts<'_>, path: &str, notes: &BTreeMap<String, Value>) -> Option<ResourceDescriptor> {
    let file = facts.files.iter().find(|file| file.path == path)?;
    let mut descriptor =
        ResourceDescriptor::named(path).sha256(file.sha256).note("kind", file.kind).note("size", file.size);
    descriptor.annotations.extend(notes.clone());
    descriptor.content = file.content.clone().map(Content);
    if descriptor.content.is_none() {
        descriptor = descriptor.note("note", "too large to be carried here");
    }
    Some(descriptor)
}

/// A repository's url as everybody can use it; one on the builder's host is nothing to others.
fn git_uri(url: &str, commit: &str) -> Option<String> {
    let public = ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| url.starts_with(scheme));
    // The form that SPDX gave a download location, and SLSA's examples have.
    public.then(|| format!("git+{url}@{commit}"))
}

fn add_repositories(found: &mut Vec<ResourceDescriptor>, step: &Step, fetch: &FetchGit, report: &Value) {
    let report = serde_json::from_value::<GitReport>(report.clone()).ok();
    let fetched: BTreeMap<&str, &FetchedRepository> = report
        .iter()
        .flat_map(|report| &report.repositories)
        .map(|repository| (repository.path.as_str(), repository))
        .collect();
    let mut taken = Vec::new();
    list_checkout(&mut taken, ".", &fetch.checkout);
    for (path, url, commit) in taken {
        let name = if path == "." { step.id.to_string() } else { format!("{}/{path}", step.id) };
        let fetched = fetched.get(path.as_str());
        let commit = fetched.map(|repository| repository.commit.to_string()).or(commit);
        let url = url.or_else(|| fetched.map(|repository| repository.url.clone())).unwrap_or_default();
        let mut descriptor = ResourceDescriptor::named(name)
            .note("kind", if path == "." { "git" } else { "submodule" })
            .note("step", step.id.as_str());
        if let Some(commit) = commit {
            descriptor.uri = git_uri(&url, &commit);
            descriptor.digest.insert("gitCommit".into(), commit);
        }
        if let Some(repository) = fetched {
            descriptor.digest.insert("gitTree".into(), repository.tree.to_string());
        }
        if descriptor.uri.is_none() && url.starts_with("./") {
            descriptor = descriptor.note("path", url);
        }
        found.push(descriptor);
    }
}

/// Path, url where the pins give one, and commit of each repository that is checked out.
fn list_checkout(taken: &mut Vec<(String, Option<String>, Option<String>)>, path: &str, checkout: &Checkout) {
    taken.push((path.to_owned(), Some(checkout.url.clone()), Some(checkout.commit.to_string())));
    for (below, submodule) in &checkout.submodules {
        let place = if path == "." { below.to_string() } else { format!("{path}/{below}") };
        match &submodule.take {
            Take::Recorded { url } => {
                taken.push((place, url.clone(), submodule.recorded.known().map(ToString::to_string)));
            }
            Take::Override(other) => list_checkout(taken, &place, other),
            Take::Nothing => {}
        }
    }
}

/// The digest and size that a fetching step reports of one file, else what was pinned.
fn fetched(descriptor: ResourceDescriptor, report: &Value, pinned: Option<&Digest>) -> ResourceDescriptor {
    let reported = report["sha256"].as_str().and_then(|text| text.parse::<Digest>().ok());
    let mut descriptor = match reported.as_ref().or(pinned) {
        Some(digest) => descriptor.sha256(*digest),
        None => descriptor,
    };
    if let Some(size) = report["size"].as_u64() {
        descriptor = descriptor.note("size", size);
    }
    descriptor
}

fn add_file(found: &mut Vec<ResourceDescriptor>, facts: &Facts<'_>, fetch: &FetchFile, report: &Value) {
    match &fetch.from {
        FileOrigin::Path(path) => found.extend(carried(facts, path.as_str(), &BTreeMap::new())),
        FileOrigin::Url(url) => {
            let descriptor = ResourceDescriptor { uri: Some(url.clone()), ..ResourceDescriptor::named(&fetch.name) };
            found.push(fetched(descriptor.note("kind", "file"), report, fetch.sha256.known()));
        }
    }
}

fn add_package(found: &mut Vec<ResourceDescriptor>, fetch: &FetchPackage, report: &Value) {
    let (kind, uri) = match fetch.registry {
        Registry::Pypi => ("pypi", pypi_url(&fetch.package, &fetch.version)),
        Registry::Npm => ("npm", npm_url(&fetch.package, &fetch.version)),
    };
    let descriptor = ResourceDescriptor { uri: Some(uri), ..ResourceDescriptor::named(fetch.file.as_str()) };
    found.push(fetched(descriptor.note("kind", kind), report, fetch.sha256.known()));
}

fn add_wheels(found: &mut Vec<ResourceDescriptor>, report: &Value) {
    for wheel in report["files"].as_array().into_iter().flatten() {
        let Some(file) = wheel["file"].as_str() else { continue };
        let mut parts = file.split('-');
        let uri = parts.next().zip(parts.next()).map(|(name, version)| pypi_url(name, version));
        let descriptor = ResourceDescriptor { uri, ..ResourceDescriptor::named(file) };
        found.push(fetched(descriptor.note("kind", "wheel"), wheel, None));
    }
}

/// A package url (ECMA-427). `PyPI`'s names are lower case, and have a hyphen for every underscore.
fn pypi_url(name: &str, version: &str) -> String {
    format!("pkg:pypi/{}@{}", name.to_lowercase().replace('_', "-"), version.replace('+', "%2B"))
}

/// A package url; the scope's `@` is escaped in it.
fn npm_url(name: &str, version: &str) -> String {
    format!("pkg:npm/{}@{}", name.replace('@', "%40"), version.replace('+', "%2B"))
}
