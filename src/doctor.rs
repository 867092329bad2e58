//! Whether this host can do a build, before it tries: tools, disk, memory, isolation, path hazards.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Fault, Result};
use crate::host::{self, Tool};
use crate::interrupt::Interrupt;
use crate::pins::Name;
use crate::plan::Plan;
use crate::process::can_isolate;
use crate::workspace::{check_path, check_space, free_mib};

/// What was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Every tool that the plan wants of the host.
    pub tools: Vec<ToolFinding>,
    /// The workspace that a build would use.
    pub workspace: PathBuf,
    /// Free space there, in MiB; absent when it cannot be told.
    pub disk_free_mib: Option<u64>,
    /// What the build is expected to need there, in MiB.
    pub disk_needed_mib: u64,
    /// Memory that can be used, in MiB.
    pub memory_free_mib: u64,
    /// What the largest step is expected to need, in MiB.
    pub memory_needed_mib: u64,
    /// Processor cores.
    pub cores: usize,
    /// Whether steps without network can be run without one.
    pub isolation: bool,
    /// What stands in the way of a build.
    pub problems: Vec<Problem>,
}

/// A tool, found or not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFinding {
    /// Its name in the pins.
    pub name: Name,
    /// The versions that will do.
    pub wanted: String,
    /// How to get it, where the pins say.
    pub install: Option<String>,
    /// What stands on `PATH`, when it will do.
    pub found: Option<Tool>,
}

/// Something that stands in the way, and the way out.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// What it is.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), hint: error.hint() }
    }
}

/// The host cannot do the build.
#[derive(Debug, thiserror::Error)]
#[error("{} of what a build needs is missing or unusable", .0)]
pub struct Unfit(pub usize);

impl Fault for Unfit {
    fn class(&self) -> crate::error::Class {
        crate::error::Class::Preflight
    }
}

/// Looks at everything that a build of `plan` in a workspace at `root` needs. Nothing is written.
pub fn examine(plan: &Plan, root: &Path, interrupt: &Interrupt) -> Result<Diagnosis> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut tools = Vec::new();
    for (name, wanted) in plan.tools.iter().filter(|(_, tool)| tool.provided.is_none()) {
        interrupt.check()?;
        let found = match host::probe(name, wanted, interrupt) {
            Ok(tool) => Some(tool),
            Err(error) => {
                problems.push(Error::from(error).into());
                None
            }
        };
        let (wanted, install) = (wanted.version.to_string(), wanted.install.clone());
        tools.push(ToolFinding { name: name.clone(), wanted, install, found });
    }
    let disk_needed_mib = plan.steps.iter().map(|step| u64::from(step.cost.disk_mib)).sum();
    let memory_needed_mib = plan.steps.iter().map(|step| u64::from(step.cost.memory_mib)).max().unwrap_or(0);
    let place = check_path(root).and_then(|()| check_space(root, disk_needed_mib));
    problems.extend(place.err().map(|error| Problem::from(Error::from(error))));
    let memory_free_mib = host::free_memory_mib();
    if memory_free_mib < memory_needed_mib {
        problems.push(Problem {
            message: format!("{memory_needed_mib} MiB of memory are needed and {memory_free_mib} MiB are free"),
            hint: Some("end other programs, or build on a larger machine".into()),
        });
    }
    Ok(Diagnosis {
        tools,
        workspace: root.to_owned(),
        disk_free_mib: free_mib(root).ok(),
        disk_needed_mib,
        memory_free_mib,
        memory_needed_mib,
        cores: host::cores(),
        isolation: can_isolate(),
        problems,
    })
}
