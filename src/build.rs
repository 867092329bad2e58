//! A build from a request: read the pins, plan, check the host, run, publish.

mod delivery;
mod names;
mod previous;
mod reasons;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::delivery::{Built, deliver};
use self::reasons::Before;
use crate::bounded;
use crate::digest::Digest;
use crate::error::{Class, Fault, Result};
use crate::exec::{self, Limits, Observe, Run, perform::Performer};
use crate::host::{Host, Remembered};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal, Outcome, Record};
use crate::key::Decision;
use crate::manifest::{self, Entries, ManifestError, parts};
use crate::pins::{self, PinsError, Platform, RelativePath};
use crate::plan::Plan;
use crate::provenance::{self, BuilderId};
use crate::recipe::{self, AnyPins};
use crate::replace::check_directory;
use crate::settings::Settings;
use crate::step::{Action, Package, Step, StepId};
use crate::workspace::{self, Workspace, check_space};

/// A pins file with its plan.
#[derive(Debug)]
pub struct Prepared {
    /// The pins file.
    pub path: PathBuf,
    /// The directory that relative paths in it start from.
    pub directory: PathBuf,
    /// The file's text.
    pub text: String,
    /// Digest of the text.
    pub digest: Digest,
    /// What it says.
    pub pins: AnyPins,
    /// What follows from it here.
    pub plan: Plan,
}

/// The most bytes that a pins file may have.
pub(crate) const LARGEST_PINS: u64 = 16 << 20;

/// Reads the pins file at `path` and plans. Nothing else is read, and nothing is written.
pub fn prepare(path: &Path, platform: &Platform) -> Result<Prepared> {
    let unreadable = |source| PinsError::Unreadable { path: path.display().to_string(), source };
    let text = bounded::read_text(path, LARGEST_PINS).map_err(unreadable)?;
    let full = std::path::absolute(path).map_err(unreadable)?;
    let directory = full.parent().unwrap_or(Path::new("/")).to_owned();
    prepare_text(text, path, directory, platform)
}

/// Plans what `text` says, the text of the pins file at `path` (used in messages only), as if it stood
/// in `directory`. Nothing is read or written.
pub fn prepare_text(text: String, path: &Path, directory: PathBuf, platform: &Platform) -> Result<Prepared> {
    let pins: AnyPins = pins::parse(&text, &path.display().to_string())?;
    let plan = recipe::plan(&pins, platform)?;
    names::check(&pins, &plan, &text, &path.display().to_string())?;
    Ok(Prepared { path: path.to_owned(), directory, digest: Digest::of(text.as_bytes()), text, pins, plan })
}

/// Inputs have no recorded digest.
#[derive(Debug, thiserror::Error)]
#[error("{} no recorded digest: {}", count(.inputs.len()), .inputs.join(", "))]
pub struct NotRecorded {
    /// Steps, and what they take in.
    pub inputs: Vec<String>,
}

impl Fault for NotRecorded {
    fn class(&self) -> Class {
        Class::PinMismatch
    }

    fn hint(&self) -> Option<String> {
        Some(
            "`rebuild-model pins lock` records them; --record-unknown builds with whatever is found and says so".into(),
        )
    }
}

fn count(inputs: usize) -> String {
    if inputs == 1 { "1 input has".into() } else { format!("{inputs} inputs have") }
}

/// Refuses inputs whose digest nobody recorded.
pub fn check_recorded(plan: &Plan) -> Result<(), NotRecorded> {
    let inputs = plan.unrecorded_inputs();
    if inputs.is_empty() { Ok(()) } else { Err(NotRecorded { inputs }) }
}

/// Where and how to build.
#[derive(Debug, Clone)]
pub struct Request {
    /// The workspace.
    pub workspace: PathBuf,
    /// Go on in an existing workspace.
    pub resume: bool,
    /// Build although digests are not recorded.
    pub record_unknown: bool,
    /// The most steps at a time; as many as there are cores when not given.
    pub jobs: Option<usize>,
    /// Memory in MiB that steps may be expected to need together; what is free when not given.
    pub memory_mib: Option<u64>,
    /// Replaces the pins' destination directory.
    pub output: Option<PathBuf>,
    /// Who builds, as the attestation will state it.
    pub builder: BuilderId,
}

/// What a build did.
#[derive(Debug, Serialize)]
pub struct BuildReport {
    /// Digest of the plan.
    pub plan: Digest,
    /// The workspace.
    pub workspace: PathBuf,
    /// The manifest that was written.
    pub manifest: PathBuf,
    /// The directory that its paths start from.
    pub destination: PathBuf,
    /// The attestation beside it.
    pub attestation: PathBuf,
    /// Steps that ran in this build.
    pub ran: Vec<String>,
    /// Steps whose earlier result stood.
    pub fresh: Vec<String>,
    /// Notes of the steps that ran: fall-backs and the like; under `delivery`, how the new libraries
    /// differ from those that they replaced.
    pub notes: BTreeMap<String, Vec<String>>,
    /// The delivered artifacts, by path.
    pub artifacts: Entries,
    /// Which of the manifest's entries changed.
    pub changes: Vec<manifest::Change>,
    /// Which input changed, of each artifact that is another than before, by path.
    pub reasons: BTreeMap<RelativePath, Vec<String>>,
}

/// Builds what `prepared` plans.
pub fn build(
    prepared: &Prepared,
    request: &Request,
    settings: &Settings,
    observer: &dyn Observe,
    interrupt: &Interrupt,
) -> Result<BuildReport> {
    let plan = &prepared.plan;
    if !request.record_unknown {
        check_recorded(plan)?;
    }
    exec::local::check_all(plan, &prepared.directory)?;
    check_destination(prepared, request)?;
    if !request.resume {
        // Asked before the tools are, which takes a while, and made after: a host that lacks one
        // should not leave a workspace behind.
        workspace::check_new(&request.workspace)?;
        check_space(&request.workspace, disk_estimate(plan, &BTreeMap::new()))?;
    }
    let remembered = Remembered::read(&workspace::tools_in(&request.workspace));
    let host = Host::probe(plan, &remembered, interrupt)?;
    let workspace =
        if request.resume { Workspace::open(&request.workspace)? } else { Workspace::create(&request.workspace)? };
    let earlier = journal::latest(journal::read(&workspace.journal())?);
    check_space(workspace.root(), disk_estimate(plan, &earlier))?;
    let before = Before::look(&attestation_place(prepared, request), &workspace, &earlier);
    let mut plan_text = serde_json::to_vec_pretty(plan).unwrap_or_default();
    plan_text.push(b'\n');
    workspace.write(&workspace.plan(), &plan_text)?;
    let remembered = serde_json::to_vec(&Remembered::of(&host.tools)).unwrap_or_default();
    workspace.write(&workspace.tools(), &remembered)?;

    let limits = Limits {
        jobs: request.jobs.unwrap_or(host.cores).max(1),
        memory_mib: request.memory_mib.unwrap_or(host.memory_mib),
    };
    let mut journal = Journal::open(&workspace.journal())?;
    let performer = Performer {
        record_unknown: request.record_unknown,
        ..Performer::new(settings, &prepared.directory, host.isolation, interrupt)
    };
    let run = Run {
        plan,
        workspace: &workspace,
        host: &host,
        performer: &performer,
        observer,
        interrupt,
        limits,
        earlier: &earlier,
    };
    let run_record = run.begin(prepared.digest, &mut journal)?;
    let finished = exec::run(&run, &mut journal)?;
    let built = Built { prepared, request, workspace: &workspace, host: &host, run: &run_record, finished: &finished };
    let published = deliver(&built, interrupt)?;
    let did_run = |id: &&StepId| finished.ran.contains(*id);
    let mut notes: BTreeMap<String, Vec<String>> = finished
        .ran
        .iter()
        .filter_map(|id| Some((id.to_string(), finished.records.get(id)?.notes.clone())))
        .filter(|(_, notes)| !notes.is_empty())
        .collect();
    if !published.notes.is_empty() {
        notes.insert("delivery".to_owned(), published.notes);
    }
    let (ran, fresh): (Vec<&StepId>, Vec<&StepId>) = plan.steps.iter().map(|step| &step.id).partition(did_run);
    Ok(BuildReport {
        plan: plan.digest(),
        workspace: workspace.root().to_owned(),
        manifest: published.manifest,
        attestation: published.attestation,
        notes,
        destination: published.destination,
        ran: ran.into_iter().map(ToString::to_string).collect(),
        fresh: fresh.into_iter().map(ToString::to_string).collect(),
        artifacts: published.artifacts,
        reasons: before.reasons(plan, &finished, &published.changes),
        changes: published.changes,
    })
}

/// The destination is there and is no directory.
#[derive(Debug, thiserror::Error)]
#[error("the destination {} is not a directory", .0.display())]
struct NotADirectory(PathBuf);

impl Fault for NotADirectory {
    fn class(&self) -> Class {
        Class::Preflight
    }

    fn hint(&self) -> Option<String> {
        Some("name another with --output, or set `destination` under [packaging]".into())
    }
}

/// A directory stands where a file has to go.
#[derive(Debug, thiserror::Error)]
#[error("{} has to be written, and is a directory", .0.display())]
struct IsADirectory(PathBuf);

impl Fault for IsADirectory {
    fn class(&self) -> Class {
        Class::Preflight
    }

    fn hint(&self) -> Option<String> {
        Some("move it away, or set `manifest` under [packaging] to another name".into())
    }
}

/// Where a package goes: the directory of its files, and its manifest.
fn places(spec: &Package, prepared: &Prepared, request: &Request) -> (PathBuf, PathBuf) {
    match &request.output {
        Some(output) => {
            let name = Path::new(spec.manifest.as_str()).file_name().unwrap_or_default();
            (output.clone(), output.join(name))
        }
        None => (prepared.directory.join(spec.destination.as_str()), prepared.directory.join(spec.manifest.as_str())),
    }
}

/// Where the attestation of an earlier build stands.
fn attestation_place(prepared: &Prepared, request: &Request) -> PathBuf {
    let spec = prepared.plan.steps.iter().rev().find_map(|step| match &step.action {
        Action::Package(spec) => Some(spec),
        _ => None,
    });
    let manifest = spec.map(|spec| places(spec, prepared, request).1).unwrap_or_default();
    provenance::beside(&manifest)
}

/// Refuses a destination that could not be published to, before an hour of work is done for it.
fn check_destination(prepared: &Prepared, request: &Request) -> Result<()> {
    for step in &prepared.plan.steps {
        let Action::Package(spec) = &step.action else { continue };
        let (destination, manifest) = places(spec, prepared, request);
        names::check_output(spec, &destination, &manifest)?;
        if destination.exists() && !destination.is_dir() {
            return Err(NotADirectory(destination).into());
        }
        check_directory(&destination)?;
        check_directory(manifest.parent().unwrap_or(&destination))?;
        if manifest.exists() {
            check_listed(spec, &manifest)?;
        }
        let documents = [provenance::beside(&manifest), provenance::bill_beside(&manifest)];
        if let Some(path) = documents.into_iter().find(|path| path.is_dir()) {
            return Err(IsADirectory(path).into());
        }
    }
    Ok(())
}

/// Refuses a manifest whose list lacks an artifact of this build: the site would go on with what it
/// lists under another name.
fn check_listed(spec: &Package, path: &Path) -> Result<(), ManifestError> {
    let manifest = manifest::Manifest::read(path)?;
    let listed: Vec<&str> = manifest.artifacts().map(|(key, _)| key).collect();
    let missing = spec.artifacts.iter().filter_map(|artifact| {
        let file = format!("{}{}", artifact.path, artifact.encoding.suffix());
        let below = format!("{}/", artifact.path);
        let parts = parts::name_of(&file);
        let stands = listed.iter().any(|key| *key == file || *key == parts || key.starts_with(&below));
        (!stands).then_some(file)
    });
    let missing: Vec<String> = missing.collect();
    if listed.is_empty() || missing.is_empty() {
        return Ok(());
    }
    Err(ManifestError::Lacking { path: path.to_owned(), missing })
}

/// Why each step of `prepared` would run in the workspace at `root`, by step id; steps whose earlier
/// result stands are left out.
///
/// Reads and hashes what is there; runs nothing but the tools' version questions, and writes nothing.
pub fn forecast(prepared: &Prepared, root: &Path, interrupt: &Interrupt) -> Result<BTreeMap<String, String>> {
    let plan = &prepared.plan;
    workspace::check_old(root)?;
    let earlier = journal::latest(journal::read(&workspace::journal_in(root))?);
    let host = Host::probe(plan, &Remembered::read(&workspace::tools_in(root)), interrupt)?;
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    for step in &plan.steps {
        interrupt.check()?;
        let upstream = step.inputs.iter().find(|input| reasons.contains_key(input.step.as_str()));
        let reason = match upstream {
            Some(input) => Some(format!("runs unless {} gives the same again", input.step)),
            None => match exec::decide_on_disk(step, &host, root, &earlier) {
                Decision::Fresh => None,
                Decision::Run(reason) => Some(reason.to_string()),
            },
        };
        if let Some(reason) = reason {
            reasons.insert(step.id.to_string(), reason);
        }
    }
    Ok(reasons)
}

/// MiB of disk that the steps without a finished record are expected to need.
fn disk_estimate(plan: &Plan, earlier: &BTreeMap<StepId, Record>) -> u64 {
    let finished = |step: &Step| earlier.get(&step.id).is_some_and(|record| record.outcome == Outcome::Done);
    plan.steps.iter().filter(|step| !finished(step)).map(|step| u64::from(step.cost.disk_mib)).sum()
}
