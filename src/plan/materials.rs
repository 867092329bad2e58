//! The pinned inputs of a plan, as a flat list: what a reviewer reads first.

use serde::Serialize;

use super::Plan;
use crate::pins::{Commit, Recorded, Registry, RelativePath};
use crate::step::{Action, Checkout, FileOrigin, Take};

/// One pinned input. Field names follow SLSA's `resolvedDependencies` where they have a counterpart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Material {
    /// `git`, `submodule`, `pypi`, `npm`, `file`, `requirements`, `wheel`, `patch` or `tool`.
    pub kind: &'static str,
    /// What it is called in the plan.
    pub name: String,
    /// Where it comes from.
    pub uri: String,
    /// `gitCommit:…`, `sha256:…`, or `not-recorded`; for a tool of the host the wanted version.
    pub digest: String,
    /// Its size in bytes, when pinned.
    pub size: Option<u64>,
}

/// Every pinned input of `plan`, in plan order, each once.
pub fn materials(plan: &Plan) -> Vec<Material> {
    let mut found = Vec::new();
    for step in &plan.steps {
        let id = step.id.as_str();
        match &step.action {
            Action::FetchGit(fetch) => add_checkout(&mut found, id, "git", None, &fetch.checkout),
            Action::FetchFile(fetch) => {
                let uri = match &fetch.from {
                    FileOrigin::Url(url) => url.clone(),
                    FileOrigin::Path(path) => format!("./{path}"),
                };
                add(&mut found, "file", id, uri, sha256(&fetch.sha256), fetch.size);
            }
            Action::FetchPackage(fetch) => {
                let (kind, uri) = match fetch.registry {
                    Registry::Pypi => ("pypi", format!("pkg:pypi/{}@{}", fetch.package, fetch.version)),
                    // Package URLs write the scope's `@` as %40.
                    Registry::Npm => {
                        ("npm", format!("pkg:npm/{}@{}", fetch.package.replace('@', "%40"), fetch.version))
                    }
                };
                add(&mut found, kind, id, format!("{uri} ({})", fetch.file), sha256(&fetch.sha256), fetch.size);
            }
            Action::FetchWheels(fetch) => {
                add(&mut found, "requirements", id, format!("./{}", fetch.requirements), sha256(&fetch.sha256), None);
                for (name, pin) in &fetch.wheels {
                    let uri = format!("pkg:pypi/{name}@{}", pin.version);
                    add(&mut found, "wheel", name.as_str(), uri, sha256(&pin.sha256), None);
                }
            }
            Action::Patch(patch) => {
                for file in &patch.patches {
                    add(
                        &mut found,
                        "patch",
                        file.name.as_str(),
                        format!("./{}", file.file),
                        sha256(&file.sha256),
                        None,
                    );
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
    for (name, tool) in &plan.tools {
        let uri = match &tool.provided {
            Some(provided) => format!("step {}", provided.output.step),
            None => "the host".to_owned(),
        };
        add(&mut found, "tool", name.as_str(), uri, format!("version {}", tool.version), None);
    }
    found
}

fn sha256(recorded: &impl std::fmt::Display) -> String {
    match recorded.to_string() {
        digest if digest.len() == 64 => format!("sha256:{digest}"),
        other => other,
    }
}

fn git_commit(recorded: &Recorded<Commit>) -> String {
    recorded.known().map_or_else(|| recorded.to_string(), |commit| format!("gitCommit:{commit}"))
}

fn add(found: &mut Vec<Material>, kind: &'static str, name: &str, uri: String, digest: String, size: Option<u64>) {
    let material = Material { kind, name: name.to_owned(), uri, digest, size };
    if !found.contains(&material) {
        found.push(material);
    }
}

fn add_checkout(
    found: &mut Vec<Material>,
    name: &str,
    kind: &'static str,
    at: Option<&RelativePath>,
    checkout: &Checkout,
) {
    let shown = at.map_or_else(|| name.to_owned(), |path| format!("{name}/{path}"));
    let tree = checkout.tree.as_ref().map_or_else(String::new, |tree| format!(" gitTree:{tree}"));
    add(found, kind, &shown, checkout.url.clone(), format!("gitCommit:{}{tree}", checkout.commit), None);
    for (path, submodule) in &checkout.submodules {
        let place = format!("{shown}/{path}");
        match &submodule.take {
            Take::Recorded { url } => {
                let uri = url.clone().unwrap_or_else(|| "as .gitmodules says".to_owned());
                add(found, "submodule", &place, uri, git_commit(&submodule.recorded), None);
            }
            // The replaced commit is checked too: the override was decided against that one.
            Take::Override(other) => {
                let uri = format!("replaced by {}", other.url);
                add(found, "submodule", &place, uri, git_commit(&submodule.recorded), None);
                add_checkout(found, &shown, "override", Some(path), other);
            }
            Take::Nothing => {
                add(found, "submodule", &place, "left empty".to_owned(), git_commit(&submodule.recorded), None);
            }
        }
    }
}
