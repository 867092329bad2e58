//! Obtaining every input of a plan, and laying it out as `--vendor` takes it.
//!
//! The steps that fetch are run as in a build, in a workspace that is thrown away; so everything is
//! checked as in a build, and comes from wherever a build would get it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::contents::Vendored;
use super::{MIRRORS, at};
use crate::build::Prepared;
use crate::digest::hash_file;
use crate::error::Result;
use crate::exec::input::move_file;
use crate::exec::perform::Performer;
use crate::exec::{self, Finished, Observe, Run, git};
use crate::host::{Host, Remembered};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::plan::Plan;
use crate::settings::Settings;
use crate::step::{Action, FileOrigin, Step};
use crate::workspace::Workspace;

/// Puts every input of the plan below `into`, and says what that is.
pub(super) fn vendor(
    prepared: &Prepared,
    into: &Path,
    settings: &Settings,
    observer: &dyn Observe,
    interrupt: &Interrupt,
) -> Result<Vec<Vendored>> {
    let plan = fetching_part(&prepared.plan)?;
    let repositories = into.join("git");
    fs::create_dir_all(&repositories).map_err(at(&repositories))?;
    let host = Host::probe(&plan, &Remembered::default(), interrupt)?;
    // Not beside the bundle, whose place may have a path or a repository that workspaces do not survive.
    let scratch = std::env::temp_dir();
    let scratch = tempfile::Builder::new().prefix("rebuild-bundle-").tempdir().map_err(at(&scratch))?;
    let work = scratch.path().canonicalize().map_err(at(scratch.path()))?;
    let workspace = Workspace::create(&work.join("workspace"))?;
    let performer = Performer {
        repositories: Some(&repositories),
        ..Performer::new(settings, &prepared.directory, host.isolation, interrupt)
    };
    let run = Run::first(&plan, &workspace, &host, &performer, observer);
    let mut journal = Journal::open(&workspace.journal())?;
    let finished = exec::run(&run, &mut journal)?;
    let mut vendored = keep_files(&plan, &workspace, into)?;
    vendored.extend(keep_repositories(&finished, into)?);
    vendored.sort();
    vendored.dedup();
    Ok(vendored)
}

/// The steps that obtain what is not beside the pins file; they read from no other.
fn fetching_part(plan: &Plan) -> Result<Plan> {
    let fetches = |step: &&Step| match &step.action {
        Action::FetchFile(fetch) => matches!(fetch.from, FileOrigin::Url(_)),
        Action::FetchGit(_) | Action::FetchPackage(_) | Action::FetchWheels(_) => true,
        _ => false,
    };
    let steps: Vec<Step> = plan.steps.iter().filter(fetches).cloned().collect();
    let used = |name: &crate::pins::Name| steps.iter().any(|step| step.runs(name));
    let tools = plan.tools.iter().filter(|(name, _)| used(name));
    let tools = tools.map(|(name, tool)| (name.clone(), tool.clone())).collect();
    Ok(Plan::new(plan.recipe.clone(), plan.platform.clone(), tools, steps)?)
}

/// Moves every fetched file to where it is found by its digest.
fn keep_files(plan: &Plan, workspace: &Workspace, into: &Path) -> Result<Vec<Vendored>> {
    let mut vendored = Vec::new();
    for step in plan.steps.iter().filter(|step| !matches!(step.action, Action::FetchGit(_))) {
        let out = workspace.outputs(&step.id);
        let directory = if matches!(step.action, Action::FetchWheels(_)) { out.join("wheels") } else { out };
        for entry in walkdir::WalkDir::new(&directory).sort_by_file_name() {
            let entry = entry.map_err(|error| at(&directory)(error.into()))?;
            if !entry.file_type().is_file() {
                continue;
            }
            let (sha256, size) = hash_file(entry.path()).map_err(at(entry.path()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let place = into.join("sha256").join(sha256.to_string());
            fs::create_dir_all(&place).map_err(at(&place))?;
            move_file(entry.path(), &place.join(&name)).map_err(at(&place))?;
            vendored.push(Vendored::File { name, sha256, size });
        }
    }
    Ok(vendored)
}

/// Says which repository stands for which url.
fn keep_repositories(finished: &Finished, into: &Path) -> Result<Vec<Vendored>> {
    let mut vendored = Vec::new();
    let mut urls = BTreeSet::new();
    for record in finished.records.values() {
        let Ok(report) = serde_json::from_value::<git::GitReport>(record.report.clone()) else { continue };
        for repository in report.repositories {
            urls.insert(repository.url.clone());
            let place = format!("git/{}", git::place_of(&repository.url));
            vendored.push(Vendored::Commit {
                url: repository.url,
                commit: repository.commit,
                tree: repository.tree,
                repository: place,
            });
        }
    }
    let path = into.join(MIRRORS);
    let text = mirrors_text(urls);
    fs::write(&path, text).map_err(at(&path))?;
    Ok(vendored)
}

/// [`MIRRORS`] for repositories of these urls.
pub(super) fn mirrors_text(urls: BTreeSet<String>) -> String {
    let mut rules = toml::Table::new();
    for url in urls {
        let place = format!("git/{}", git::place_of(&url));
        rules.insert(url, toml::Value::String(place));
    }
    let mut document = toml::Table::new();
    document.insert("mirrors".to_owned(), toml::Value::Table(rules));
    format!("# Which repository stands for which url, for `--vendor` and `[mirrors]`.\n{document}")
}
