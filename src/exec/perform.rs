//! The real performer: one match over the kinds of action.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::StepError;
use super::git::{self, GitContext, HostGit, Retries};
use super::input::{Admitted, InputContext, Patience};
use super::registry::{self, Programs};
use super::{Perform, Performed, Place, collect, file, gate, graph, local, package, patch, symbols, unpack};
use crate::error::Result;
use crate::gate::Severity;
use crate::host::Machine;
use crate::interrupt::Interrupt;
use crate::mirror::is_local;
use crate::pins::RelativePath;
use crate::process::log::StepLog;
use crate::process::{self, Invocation};
use crate::settings::Settings;
use crate::step::{self, Action, Step};

/// Performs steps for real.
#[derive(Debug)]
pub struct Performer<'a> {
    /// How inputs are obtained.
    pub settings: &'a Settings,
    /// The directory of the pins file.
    pub directory: &'a Path,
    /// Whether steps without network run without one.
    pub isolation: bool,
    /// Accept inputs without a recorded digest.
    pub record_unknown: bool,
    /// Keep the objects of every fetched commit in bare repositories below this directory.
    pub repositories: Option<&'a Path>,
    /// Program and arguments that every command is started by, as one that shows it another time.
    pub wrapper: &'a [String],
    /// Ends what is going on.
    pub interrupt: &'a Interrupt,
}

impl<'a> Performer<'a> {
    /// One that takes recorded inputs only, keeps no repositories and starts commands as they are.
    pub fn new(settings: &'a Settings, directory: &'a Path, isolation: bool, interrupt: &'a Interrupt) -> Self {
        Self { settings, directory, isolation, record_unknown: false, repositories: None, wrapper: &[], interrupt }
    }
}

impl Perform for Performer<'_> {
    fn perform(&self, step: &Step, place: &Place<'_>, log: &StepLog) -> Result<Performed> {
        let out = place.out();
        let report = match &step.action {
            Action::FetchGit(fetch) => self.fetch_git(fetch, place, log)?,
            Action::FetchFile(fetch) => {
                self.with_input_context(place, log, |context| Ok(describe(&file::fetch(fetch, &out, context)?)))?
            }
            Action::FetchPackage(fetch) => self.with_input_context(place, log, |context| {
                Ok(describe(&registry::fetch_package(fetch, &programs(place)?, &out, context)?))
            })?,
            Action::FetchWheels(fetch) => self.with_input_context(place, log, |context| {
                let fetch = &registry::record_wheels(fetch, &programs(place)?, context)?;
                let wheels = registry::fetch_wheels(fetch, &programs(place)?, &out, context)?;
                // A copy, so that the step that installs them is given what was read here.
                let text = local::read("requirements", self.directory, fetch.requirements.as_str(), &fetch.sha256)?;
                let text = registry::with_wheels(String::from_utf8_lossy(&text).into_owned(), fetch);
                write(&out.join("requirements.txt"), text.as_bytes())?;
                let pinned = fetch.wheels.iter().map(|(name, pin)| (name, &pin.sha256)).collect::<BTreeMap<_, _>>();
                Ok(json!({ "files": wheels.iter().map(describe).collect::<Vec<_>>(), "wheels": pinned }))
            })?,
            Action::Unpack(unpack) => {
                let archive = place.resolve_path(&unpack.archive)?;
                unpack::unpack(&archive, &out.join("tree"), unpack.strip, &unpack.only, &unpack.except)?;
                json!({})
            }
            Action::Collect(collect) => {
                let from = |copy: &step::Copy| Ok((place.resolve_path(&copy.from)?, copy.to.clone()));
                let copies = collect.copies.iter().map(from).collect::<Result<Vec<_>>>()?;
                collect::collect(&copies, &out)?;
                json!({})
            }
            Action::Patch(patch) => self.patch(patch, place, log)?,
            Action::Run(run) => return self.run(run, step, place, log),
            Action::CheckSymbols(check) => {
                let report = symbols::check(&place.resolve_path(&check.library)?, &check.exports)?;
                let report = to_json(&report);
                write(&out.join("symbols.json"), format!("{report:#}\n").as_bytes())?;
                report
            }
            Action::CheckGraph(check) => {
                let report = to_json(&graph::check(&place.resolve_path(&check.model)?, check)?);
                write(&out.join("graph.json"), format!("{report:#}\n").as_bytes())?;
                report
            }
            Action::Gate(gate) => self.gate(gate, place, log)?,
            Action::Package(package) => {
                let source =
                    |(index, artifact): (usize, &step::ArtifactSpec)| Ok((index, place.resolve_path(&artifact.from)?));
                let sources = package.artifacts.iter().enumerate().map(source).collect::<Result<Vec<_>>>()?;
                to_json(&package::package(package, &sources, &out, self.interrupt)?)
            }
        };
        Ok(Performed { report, isolated: false })
    }
}

impl Performer<'_> {
    fn fetch_git(&self, fetch: &step::FetchGit, place: &Place<'_>, log: &StepLog) -> Result<serde_json::Value> {
        let environment = place.environment()?;
        let host_git = self.settings.git.as_ref().map(|program| HostGit { program: program.clone(), environment });
        let context = GitContext {
            mirrors: &self.settings.mirrors,
            offline: self.settings.offline,
            base: self.directory,
            scratch: &place.scratch(),
            host_git: host_git.as_ref(),
            retries: Retries::default(),
            log,
            interrupt: self.interrupt,
        };
        let into = place.out().join("tree");
        Ok(to_json(&git::fetch_and_keep(&fetch.checkout, &into, self.repositories, &context)?))
    }

    fn with_input_context<T>(
        &self,
        place: &Place<'_>,
        log: &StepLog,
        fetch: impl FnOnce(&InputContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let mirrors = |url: &str| {
            let mut places = self.settings.mirrors.candidates(url);
            places.retain(|place| !self.settings.offline || is_local(place));
            places
        };
        fetch(&InputContext {
            store: &self.settings.store,
            offline: self.settings.offline,
            mirrors: &mirrors,
            pins_directory: self.directory,
            scratch: &place.scratch(),
            record_unknown: self.record_unknown,
            patience: Patience::default(),
            log,
            interrupt: self.interrupt,
        })
    }

    /// Patches a copy: the tree of an earlier step is an input, and inputs do not change.
    fn patch(&self, patch: &step::Patch, place: &Place<'_>, log: &StepLog) -> Result<serde_json::Value> {
        let from = place.resolve_path(&patch.tree)?;
        collect::collect(&[(from, RelativePath::constant("tree"))], &place.out())?;
        let mut texts = Vec::new();
        for file in &patch.patches {
            let bytes = local::read("patch", self.directory, file.file.as_str(), &file.sha256)?;
            texts.push((patch::parse(file.name.as_str(), &bytes)?, &file.images));
        }
        let applied = patch::apply(&place.out().join("tree"), &texts, log)?;
        let files = applied
            .iter()
            .map(|file| json!({ "patch": file.patch, "path": file.path, "before": file.before, "after": file.after }));
        Ok(json!({ "files": files.collect::<Vec<_>>() }))
    }

    /// What the pins accept becomes a note, so that whoever builds reads it every time.
    fn gate(&self, gate: &step::Gate, place: &Place<'_>, log: &StepLog) -> Result<serde_json::Value> {
        let directories = [("the workspace", place.root()), ("the directory of the pins file", self.directory)];
        let report = gate::judge(gate, place, &Machine::here(&directories), self.interrupt)?;
        for finding in &report.findings {
            let line = format!("{} [{}] {}", finding.artifact, finding.rule, finding.message);
            if finding.severity == Severity::Accepted { log.note(line) } else { log.line(&line) }
        }
        Ok(json!({ "largest": report.largest, "findings": report.findings }))
    }

    fn run(&self, run: &step::Run, step: &Step, place: &Place<'_>, log: &StepLog) -> Result<Performed> {
        let isolated = self.isolation && !step.network;
        let environment = place.environment()?;
        let directory = place.resolve_path(&run.directory)?;
        for words in &run.commands {
            let resolved = words.iter().map(|word| place.resolve(word));
            let words = self.wrapper.iter().cloned().map(Ok).chain(resolved).collect::<Result<Vec<_>>>()?;
            let Some((program, arguments)) = words.split_first() else { continue };
            let invocation = Invocation {
                program: PathBuf::from(program),
                arguments: arguments.iter().map(Into::into).collect(),
                directory: directory.clone(),
                environment: environment.clone(),
                isolated,
            };
            process::run(&invocation, log, self.interrupt)?;
        }
        Ok(Performed { report: json!({}), isolated })
    }
}

/// The package clients, with their environment. A step that fetches one kind of package has only
/// that kind's client; the other's name then stands for a program that is never started.
fn programs(place: &Place<'_>) -> Result<Programs> {
    let program = |name: &str| place.tool(name).unwrap_or_else(|| PathBuf::from(name));
    Ok(Programs { python: program("python"), npm: program("npm"), environment: place.environment()? })
}

fn describe(admitted: &Admitted) -> serde_json::Value {
    let name = admitted.path.file_name().map(|name| name.to_string_lossy().into_owned());
    json!({ "file": name, "sha256": admitted.digest, "size": admitted.size, "from": admitted.from })
}

fn to_json(report: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(report).unwrap_or_default()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StepError> {
    std::fs::write(path, bytes).map_err(|source| StepError::Io { path: path.to_owned(), source })
}
