//! A workspace, a plan made by hand, and somebody who performs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rebuild_model::error::Result;
use rebuild_model::exec::perform::Performer;
use rebuild_model::exec::{self, Event, Finished, Limits, Observe, Perform, Run};
use rebuild_model::host::Host;
use rebuild_model::interrupt::Interrupt;
use rebuild_model::journal::{self, Journal};
use rebuild_model::mirror::Mirrors;
use rebuild_model::pins::Platform;
use rebuild_model::plan::Plan;
use rebuild_model::settings::Settings;
use rebuild_model::step::{self, Action, Cost, OutputRef, Step, Template};
use rebuild_model::store::Store;
use rebuild_model::workspace::{Workspace, WorkspaceError};
use tempfile::TempDir;

pub struct Lab {
    root: TempDir,
    pub limits: Limits,
    pub interrupt: Interrupt,
    events: Mutex<Vec<String>>,
}

/// A step that runs `script` in a shell and makes `o`. It reads the `o` of each step in `reads`.
pub fn shell(id: &str, reads: &[&str], script: &str) -> Step {
    let words = [Template::literal("/bin/sh"), Template::literal("-c"), script.parse().unwrap()];
    Step {
        id: id.parse().unwrap(),
        title: "a test's".into(),
        action: Action::Run(step::Run { commands: vec![words.into()], directory: "${tmp}".parse().unwrap() }),
        inputs: reads.iter().map(|id| OutputRef { step: id.parse().unwrap(), output: "o".into() }).collect(),
        outputs: vec!["o".into()],
        environment: BTreeMap::new(),
        network: false,
        cost: Cost { cpu_s: 1, memory_mib: 1, disk_mib: 0 },
    }
}

/// A step that only says its name.
pub fn plain(id: &str, reads: &[&str]) -> Step {
    shell(id, reads, "echo done > ${out}/o")
}

pub fn plan(steps: Vec<Step>) -> Result<Plan> {
    Ok(Plan::new("test".parse().unwrap(), Platform::here(), BTreeMap::new(), steps)?)
}

impl Lab {
    pub fn new(jobs: usize) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            limits: Limits { jobs, memory_mib: 1000 },
            interrupt: Interrupt::default(),
            events: Mutex::default(),
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn text(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }

    /// Runs the steps for real, going on with what an earlier run left.
    pub fn run(&self, steps: Vec<Step>) -> Result<Finished> {
        let settings = Settings {
            mirrors: Mirrors::default(),
            store: Store::open(Vec::new(), self.path("cache"))?,
            offline: true,
            git: None,
            builder: None,
        };
        self.run_with(
            steps,
            &Performer {
                repositories: None,
                wrapper: &[],
                settings: &settings,
                directory: self.root.path(),
                isolation: false,
                record_unknown: false,
                interrupt: &self.interrupt,
            },
        )
    }

    pub fn run_with(&self, steps: Vec<Step>, performer: &dyn Perform) -> Result<Finished> {
        let plan = plan(steps)?;
        let root = self.path("work");
        let workspace = if root.exists() { open(&root)? } else { Workspace::create(&root)? };
        let earlier = journal::latest(journal::read(&workspace.journal())?);
        let mut journal = Journal::open(&workspace.journal())?;
        let host = Host {
            platform: Platform::here(),
            tools: BTreeMap::new(),
            isolation: false,
            cores: self.limits.jobs,
            memory_mib: self.limits.memory_mib,
        };
        let run = Run {
            plan: &plan,
            workspace: &workspace,
            host: &host,
            performer,
            observer: self,
            interrupt: &self.interrupt,
            limits: self.limits,
            earlier: &earlier,
        };
        exec::run(&run, &mut journal)
    }

    /// What happened since the last call.
    pub fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether something has happened.
    pub fn has_seen(&self, event: &str) -> bool {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|seen| seen == event)
    }

    pub fn journal(&self) -> String {
        std::fs::read_to_string(self.path("work/journal.jsonl")).unwrap()
    }
}

impl Observe for Lab {
    fn observe(&self, event: &Event<'_>) {
        let text = match event {
            Event::Started { step, .. } => format!("started {}", step.id),
            Event::Fresh { step } => format!("fresh {}", step.id),
            Event::Done { step, .. } => format!("done {}", step.id),
            Event::Failed { step, .. } => format!("failed {}", step.id),
        };
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Opens a workspace that this test has left. Another test's child may hold its lock for the moment
/// between fork and exec.
fn open(root: &Path) -> Result<Workspace> {
    let mut opened = Workspace::open(root);
    wait_until(|| {
        !matches!(opened, Err(WorkspaceError::Locked { .. })) || {
            opened = Workspace::open(root);
            false
        }
    });
    Ok(opened?)
}

/// Waits for `condition`. What is waited for always comes, unless the test is to fail.
pub fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    (0..2000).any(|_| {
        condition() || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            false
        }
    })
}
