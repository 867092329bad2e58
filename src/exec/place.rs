//! Where a step stands: its directories, its tools, its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::environment;
use super::step_error::StepError;
use crate::error::Result;
use crate::host::{self, Host};
use crate::pins::Name;
use crate::plan::Plan;
use crate::step::{OutputRef, Reference, Step, Template};
use crate::workspace::Workspace;

/// Where a step stands: resolves its templates.
pub struct Place<'a> {
    workspace: &'a Workspace,
    tools: BTreeMap<Name, ToolPlace>,
    step: &'a Step,
}

/// Where a tool lies, and what it needs in its environment.
pub(super) struct ToolPlace {
    path: PathBuf,
    environment: BTreeMap<String, Template>,
}

impl<'a> Place<'a> {
    pub(super) fn new(workspace: &'a Workspace, tools: BTreeMap<Name, ToolPlace>, step: &'a Step) -> Self {
        Self { workspace, tools, step }
    }

    /// The directory in which it makes its outputs.
    pub fn out(&self) -> PathBuf {
        self.workspace.making(&self.step.id)
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Its scratch directory.
    pub fn scratch(&self) -> PathBuf {
        self.workspace.scratch(&self.step.id).join("tmp")
    }

    /// The program that the tool called `name` stands for, when the step needs it.
    pub fn tool(&self, name: &str) -> Option<PathBuf> {
        self.tools.get(name).map(|tool| tool.path.clone())
    }

    /// The text that `template` stands for here.
    pub fn resolve(&self, template: &Template) -> Result<String> {
        template.fill(|reference| {
            let path = match reference {
                Reference::Out => self.out(),
                Reference::Tmp => self.scratch(),
                Reference::Cache => self.workspace.cache(),
                Reference::Step(step, path) => self.workspace.outputs(step).join(path),
                // A plan names no tool that it does not list, and the host was probed for each.
                Reference::Tool(tool) => self.tool(tool.as_str()).unwrap_or_else(|| tool.as_str().into()),
            };
            path.into_os_string().into_string().map_err(|path| StepError::NotUtf8 { path: path.into() }.into())
        })
    }

    /// The path that `template` stands for here.
    pub fn resolve_path(&self, template: &Template) -> Result<PathBuf> {
        self.resolve(template).map(PathBuf::from)
    }

    /// The whole environment of the step's commands.
    pub fn environment(&self) -> Result<BTreeMap<String, OsString>> {
        let path = search_path(self.tools.values().map(|tool| &tool.path));
        let mut variables = environment::base(&self.workspace.scratch(&self.step.id), path, self.step.network);
        let of_tools = self.tools.values().flat_map(|tool| &tool.environment);
        for (name, value) in of_tools.chain(&self.step.environment) {
            variables.insert(name.clone(), self.resolve(value)?.into());
        }
        Ok(variables)
    }
}

/// `PATH` for a step: the directories of its tools, then the system's.
fn search_path<'a>(tools: impl Iterator<Item = &'a PathBuf>) -> OsString {
    let mut directories: Vec<PathBuf> = Vec::new();
    let system = ["/usr/bin", "/bin"].map(PathBuf::from);
    for directory in tools.filter_map(|tool| tool.parent().map(Path::to_owned)).chain(system) {
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    // Paths with a `:` are refused when the workspace is made, and a tool found on PATH has none.
    std::env::join_paths(directories).unwrap_or_default()
}

/// The tools that `step` names or implies: the host's, and those that earlier steps provide.
pub(super) fn tools_of(step: &Step, plan: &Plan, host: &Host, workspace: &Workspace) -> BTreeMap<Name, ToolPlace> {
    let of_host = host
        .tools
        .iter()
        .map(|(name, tool)| (name, ToolPlace { path: tool.path.clone(), environment: tool.environment.clone() }));
    let provided = plan.tools.iter().filter_map(|(name, tool)| {
        let provided = tool.provided.as_ref()?;
        let OutputRef { step, output } = &provided.output;
        let path = workspace.outputs(step).join(output).join(&provided.path);
        let environment = host::unpacked_environment(name.as_str(), &path);
        Some((name, ToolPlace { path, environment }))
    });
    let all = of_host.chain(provided).filter(|(name, _)| step.runs(name));
    all.map(|(name, place)| (name.clone(), place)).collect()
}
