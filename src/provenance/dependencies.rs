//! Resolved dependencies: everything that went into a build, with the digests that it had.
//!
//! What was pinned comes from the plan, what was found from the steps' reports in the journal: the
//! tree of a commit, the wheels that a requirements file allows, a digest that nobody had recorded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::carried::CarriedFile;
use super::descriptor::{Content, ResourceDescriptor};
use crate::digest::Digest;
use crate::exec::git::{FetchedRepository, GitReport};
use crate::journal::Record;
use crate::pins::{Recorded, Registry};
use crate::plan::Plan;
use crate::step::{Action, Checkout, FetchFile, FetchGit, FetchPackage, FileOrigin, Step, StepId, Take};

/// The annotation by which a reader finds the pins file among the dependencies.
pub(super) const PINS: &str = "pins";

/// Where dependencies are learned from.
pub(super) struct Inputs<'a> {
    pub plan: &'a Plan,
    pub records: &'a BTreeMap<StepId, Record>,
    pub files: &'a [CarriedFile],
}

/// What a plan alone says of its dependencies: address and digest as far as they are pinned. Tools
/// and the wheels that a requirements file allows are not among them.
pub fn pinned(plan: &Plan) -> Vec<ResourceDescriptor> {
    Inputs { plan, records: &BTreeMap::new(), files: &[] }.dependencies()
}

impl Inputs<'_> {
    /// Everything that the steps took in, in plan order, each once.
    pub(super) fn dependencies(&self) -> Vec<ResourceDescriptor> {
        let mut found = Vec::new();
        for step in &self.plan.steps {
            let report = self.records.get(&step.id).map_or(&Value::Null, |record| &record.report);
            match &step.action {
                Action::FetchGit(fetch) => add_repositories(&mut found, step, fetch, report),
                Action::FetchFile(fetch) => found.push(self.file(fetch, report)),
                Action::FetchPackage(fetch) => found.push(package(fetch, report)),
                Action::FetchWheels(fetch) => {
                    found.push(self.carried("requirements", fetch.requirements.as_str(), &fetch.sha256));
                    add_wheels(&mut found, report);
                }
                Action::Patch(patch) => {
                    for file in &patch.patches {
                        let descriptor = self.carried("patch", file.file.as_str(), &file.sha256);
                        found.push(descriptor.note("patch", file.name.as_str()));
                    }
                }
                Action::Unpack(_)
                | Action::Collect(_)
                | Action::Run(_)
                | Action::CheckSymbols(_)
                | Action::CheckGraph(_)
                | Action::Gate(_)
                | Action::Package(_) => {}
            }
        }
        let mut unique: Vec<ResourceDescriptor> = Vec::new();
        for descriptor in found {
            if !unique.contains(&descriptor) {
                unique.push(descriptor);
            }
        }
        unique
    }

    /// The file beside the pins at `path`.
    fn carried(&self, kind: &str, path: &str, pinned: &Recorded<Digest>) -> ResourceDescriptor {
        let descriptor = ResourceDescriptor::named(path).note("kind", kind);
        let Some(file) = self.files.iter().find(|file| file.path == path) else {
            return with_digest(descriptor, pinned.known());
        };
        let mut descriptor = descriptor.sha256(file.sha256).note("size", file.size);
        descriptor.content = file.content.clone().map(Content);
        if descriptor.content.is_none() {
            descriptor = descriptor.note("note", "too large to be carried here");
        }
        descriptor
    }

    fn file(&self, fetch: &FetchFile, report: &Value) -> ResourceDescriptor {
        match &fetch.from {
            FileOrigin::Path(path) => self.carried("file", path.as_str(), &fetch.sha256),
            FileOrigin::Url(url) => {
                let descriptor =
                    ResourceDescriptor { uri: Some(url.clone()), ..ResourceDescriptor::named(&fetch.name) };
                fetched(descriptor.note("kind", "file"), report, fetch.sha256.known())
            }
        }
    }
}

/// The pins file, called `name`, with its text.
pub(super) fn pins(name: &str, text: &str) -> ResourceDescriptor {
    let text = text.as_bytes();
    ResourceDescriptor {
        content: Some(Content(text.to_vec())),
        media_type: Some("application/toml".into()),
        ..ResourceDescriptor::named(name)
    }
    .sha256(Digest::of(text))
    .note("kind", PINS)
    .note("size", text.len())
}

fn with_digest(descriptor: ResourceDescriptor, digest: Option<&Digest>) -> ResourceDescriptor {
    match digest {
        Some(digest) => descriptor.sha256(*digest),
        None => descriptor,
    }
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
    for Taken { path, url, commit, tree } in taken {
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
        if let Some(tree) = fetched.map(|repository| repository.tree.to_string()).or(tree) {
            descriptor.digest.insert("gitTree".into(), tree);
        }
        if descriptor.uri.is_none() && url.starts_with("./") {
            descriptor = descriptor.note("path", url);
        }
        found.push(descriptor);
    }
}

/// A repository that is checked out, as far as the pins tell.
struct Taken {
    path: String,
    url: Option<String>,
    commit: Option<String>,
    tree: Option<String>,
}

fn list_checkout(taken: &mut Vec<Taken>, path: &str, checkout: &Checkout) {
    taken.push(Taken {
        path: path.to_owned(),
        url: Some(checkout.url.clone()),
        commit: Some(checkout.commit.to_string()),
        tree: checkout.tree.as_ref().map(ToString::to_string),
    });
    for (below, submodule) in &checkout.submodules {
        let place = if path == "." { below.to_string() } else { format!("{path}/{below}") };
        match &submodule.take {
            Take::Recorded { url } => {
                let commit = submodule.recorded.known().map(ToString::to_string);
                taken.push(Taken { path: place, url: url.clone(), commit, tree: None });
            }
            Take::Override(other) => list_checkout(taken, &place, other),
            Take::Nothing => {}
        }
    }
}

/// The digest and size that a fetching step reports of one file, else what was pinned.
fn fetched(descriptor: ResourceDescriptor, report: &Value, pinned: Option<&Digest>) -> ResourceDescriptor {
    let reported = report["sha256"].as_str().and_then(|text| text.parse::<Digest>().ok());
    let descriptor = with_digest(descriptor, reported.as_ref().or(pinned));
    if let Some(size) = report["size"].as_u64() {
        return descriptor.note("size", size);
    }
    descriptor
}

fn package(fetch: &FetchPackage, report: &Value) -> ResourceDescriptor {
    let (kind, uri) = match fetch.registry {
        Registry::Pypi => ("pypi", pypi_url(&fetch.package, &fetch.version)),
        Registry::Npm => ("npm", npm_url(&fetch.package, &fetch.version)),
    };
    let descriptor = ResourceDescriptor { uri: Some(uri), ..ResourceDescriptor::named(fetch.file.as_str()) };
    fetched(descriptor.note("kind", kind), report, fetch.sha256.known())
}

fn add_wheels(found: &mut Vec<ResourceDescriptor>, report: &Value) {
    for wheel in report["files"].as_array().into_iter().flatten() {
        let Some(file) = wheel["file"].as_str() else { continue };
        let descriptor = ResourceDescriptor { uri: wheel_url(file), ..ResourceDescriptor::named(file) };
        found.push(fetched(descriptor.note("kind", "wheel"), wheel, None));
    }
}

/// The package url of the wheel called `file`, whose name begins with that of its package and a version.
pub fn wheel_url(file: &str) -> Option<String> {
    let mut parts = file.split('-');
    parts.next().zip(parts.next()).map(|(name, version)| pypi_url(name, version))
}

/// A package url (ECMA-427). `PyPI`'s names are lower case, and have a hyphen for every underscore.
fn pypi_url(name: &str, version: &str) -> String {
    format!("pkg:pypi/{}@{}", name.to_lowercase().replace('_', "-"), version.replace('+', "%2B"))
}

/// A package url; the scope's `@` is escaped in it.
fn npm_url(name: &str, version: &str) -> String {
    format!("pkg:npm/{}@{}", name.replace('@', "%40"), version.replace('+', "%2B"))
}
