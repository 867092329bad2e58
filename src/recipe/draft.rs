//! What recipes are written with: steps for each kind of pin, and a short way to write a command step.

mod deliver;
mod run;

pub(super) use deliver::{Delivery, LibraryDraft};
pub(super) use run::RunDraft;

use std::collections::{BTreeMap, BTreeSet};

use super::AnyPins;
use crate::pins::{GitSource, Name, PackageFile, PackageSource, Platform, RelativePath, Submodule, ToolPin};
use crate::plan::{Plan, PlanError, PlannedTool, ProvidedTool, first_part};
use crate::step::{
    Action, CheckGraph, CheckSymbols, Checkout, Collect, Copy, Cost, FetchFile, FetchGit, FetchPackage, FetchWheels,
    FileOrigin, OutputRef, Patch, PatchFile, Reference, Step, SubmoduleCheckout, Take, Template, Unpack,
};

/// Steps in the making.
pub(super) struct Draft<'a> {
    pins: &'a AnyPins,
    platform: &'a Platform,
    recipe: Name,
    tools: BTreeMap<Name, PlannedTool>,
    steps: Vec<Step>,
    /// Pins that some step uses, as `kind.name`.
    used: BTreeSet<String>,
}

type Result<T> = std::result::Result<T, PlanError>;

/// `cost(cpu seconds, memory MiB, disk MiB)`.
pub(super) const fn cost(cpu_s: u32, memory_mib: u32, disk_mib: u32) -> Cost {
    Cost { cpu_s, memory_mib, disk_mib }
}

/// What any small step in this process costs.
const SMALL: Cost = cost(1, 64, 16);

impl<'a> Draft<'a> {
    /// A draft without steps.
    pub(super) fn new(pins: &'a AnyPins, platform: &'a Platform) -> Result<Self> {
        let recipe = pins.recipe.name();
        let recipe = Name::constant(recipe);
        let mut draft =
            Self { pins, platform, recipe, tools: BTreeMap::new(), steps: Vec::new(), used: BTreeSet::new() };
        for (name, tool) in &pins.tool {
            draft.add_tool(name, tool)?;
        }
        if let Some(python) = &pins.python {
            let install = Some(format!("install Python {} with pip and venv", python.version));
            let tool = PlannedTool { version: python.version.clone(), install, provided: None };
            draft.tools.insert(Name::constant("python"), tool);
        }
        Ok(draft)
    }

    /// The finished plan.
    ///
    /// A pin that no step uses is an error: whoever wrote it believes that it has an effect.
    pub(super) fn finish(self) -> Result<Plan> {
        let kinds = [
            ("git", self.pins.git.keys().collect::<Vec<_>>()),
            ("package", self.pins.package.keys().collect()),
            ("file", self.pins.file.keys().collect()),
            ("patch", self.pins.patch.keys().collect()),
        ];
        let mut pinned = kinds.iter().flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind}.{name}")));
        if let Some(pin) = pinned.find(|pin| !self.used.contains(pin)) {
            return Err(PlanError::Unused { recipe: self.recipe, pin });
        }
        let plan = Plan::new(self.recipe, self.platform.clone(), self.tools, self.steps)?;
        if let Some(tool) = plan.tools.keys().find(|tool| !plan.steps.iter().any(|step| step.runs(tool))) {
            let pin = if tool.as_str() == "python" { "python".to_owned() } else { format!("tool.{tool}") };
            return Err(PlanError::Unused { recipe: plan.recipe.clone(), pin });
        }
        Ok(plan)
    }

    /// A pinned tool is the host's, or, where the pins have an archive for the platform, our own copy.
    fn add_tool(&mut self, name: &Name, tool: &ToolPin) -> Result<()> {
        let mut planned = PlannedTool { version: tool.version.clone(), install: tool.install.clone(), provided: None };
        if let Some(archive) = tool.archive.get(self.platform) {
            let fetch_id = format!("fetch-tool-{name}");
            let unpack_id = format!("tool-{name}");
            let file = archive.url.as_str().rsplit('/').next().unwrap_or("archive").to_owned();
            let fetch = FetchFile {
                name: file.clone(),
                from: FileOrigin::Url(archive.url.to_string()),
                sha256: archive.sha256,
                size: archive.size,
            };
            self.add(
                &fetch_id,
                &format!("obtain {name} {}", tool.version),
                Action::FetchFile(fetch),
                &[&file],
                true,
                SMALL,
            )?;
            self.add_unpack(&unpack_id, &format!("${{step:{fetch_id}/{file}}}"), 0, &[], &[])?;
            let output = OutputRef { step: self.id(&unpack_id)?, output: "tree".to_owned() };
            planned.provided = Some(ProvidedTool { output, path: archive.program.to_string() });
        }
        self.tools.insert(name.clone(), planned);
        Ok(())
    }

    /// A step that checks out `[git.<name>]`; its output is `tree`.
    pub(super) fn git(&mut self, name: &str, cost: Cost) -> Result<()> {
        let source = self.git_source(name)?;
        let checkout = self.checkout(source)?;
        let title = format!("check out {} at {}", checkout.url, &checkout.commit.as_str()[..12]);
        self.add(name, &title, Action::FetchGit(FetchGit { checkout }), &["tree"], true, cost)
    }

    fn git_source(&mut self, name: &str) -> Result<&'a GitSource> {
        self.used.insert(format!("git.{name}"));
        self.pins.git.get(name).ok_or_else(|| self.missing(format!("git.{name}")))
    }

    fn checkout(&mut self, source: &GitSource) -> Result<Checkout> {
        let mut submodules = BTreeMap::new();
        for (path, submodule) in &source.submodules {
            let take = self.take(submodule)?;
            submodules.insert(path.clone(), SubmoduleCheckout { recorded: submodule.commit.clone(), take });
        }
        let (url, commit, tree) = (source.url.to_string(), source.commit.clone(), source.tree.clone());
        Ok(Checkout { url, commit, tree, submodules })
    }

    fn take(&mut self, submodule: &Submodule) -> Result<Take> {
        Ok(match &submodule.source {
            Some(source) => {
                let source = self.git_source(source.get_ref().as_str())?;
                Take::Override(Box::new(self.checkout(source)?))
            }
            None if submodule.skip => Take::Nothing,
            None => Take::Recorded { url: submodule.url.as_ref().map(ToString::to_string) },
        })
    }

    /// A step `fetch-<name>` for `[package.<name>]`, and a step `<name>` that unpacks it to `tree`.
    pub(super) fn package(&mut self, name: &str, strip: u32, only: &[&str], except: &[&str]) -> Result<()> {
        let pinned = self.pins.package.get_key_value(name);
        let (package_name, package) = pinned.ok_or_else(|| self.missing(format!("package.{name}")))?;
        self.used.insert(format!("package.{name}"));
        let file = self.package_file(package_name, package)?;
        let fetch = FetchPackage {
            registry: package.registry,
            package: file.package.as_ref().unwrap_or(&package.name).to_string(),
            version: package.version.to_string(),
            file: file.file.clone(),
            sha256: file.sha256,
            size: file.size,
        };
        let id = format!("fetch-{name}");
        let title = format!("obtain {} {}", package.name, package.version);
        self.add(&id, &title, Action::FetchPackage(fetch), &[file.file.as_str()], true, cost(2, 128, mib(file.size)))?;
        self.add_unpack(name, &format!("${{step:{id}/{}}}", file.file), strip, only, except)
    }

    fn package_file<'p>(&self, name: &Name, package: &'p PackageSource) -> Result<&'p PackageFile> {
        let serving = package.files.iter().find(|file| file.platform.serves(self.platform));
        serving.ok_or_else(|| PlanError::NoFileForPlatform {
            package: name.clone(),
            platform: self.platform.clone(),
            listed: package.files.iter().map(|file| file.platform.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    fn add_unpack(&mut self, id: &str, archive: &str, strip: u32, only: &[&str], except: &[&str]) -> Result<()> {
        let list = |prefixes: &[&str]| prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
        let unpack = Unpack { archive: self.template(archive)?, strip, only: list(only), except: list(except) };
        let title = format!("unpack {}", archive.trim_end_matches('}').rsplit('/').next().unwrap_or(archive));
        self.add(id, &title, Action::Unpack(unpack), &["tree"], false, cost(2, 64, 256))
    }

    /// A step `<name>` that obtains `[file.<name>]`, once, and the template of the file.
    pub(super) fn file(&mut self, name: &str) -> Result<String> {
        let pinned = self.pins.file.get(name).ok_or_else(|| self.missing(format!("file.{name}")))?;
        let (from, place) = match (&pinned.url, &pinned.path) {
            (Some(url), _) => (FileOrigin::Url(url.to_string()), url.as_str()),
            (None, Some(path)) => (FileOrigin::Path(path.clone()), path.as_str()),
            (None, None) => return Err(self.missing(format!("file.{name}"))),
        };
        let file = place.rsplit('/').next().unwrap_or(place).to_owned();
        let template = format!("${{step:{name}/{file}}}");
        if self.used.insert(format!("file.{name}")) {
            let title = format!("obtain {file}");
            let fetch = FetchFile { name: file.clone(), from, sha256: pinned.sha256, size: pinned.size };
            self.add(name, &title, Action::FetchFile(fetch), &[&file], pinned.url.is_some(), SMALL)?;
        }
        Ok(template)
    }

    /// The version of a wheel of `[python.wheels]`.
    pub(super) fn wheel_version(&self, name: &str) -> Result<&'a str> {
        let wheel = self.pins.python.as_ref().and_then(|python| python.wheels.get(name));
        wheel.map(|wheel| wheel.version.as_str()).ok_or_else(|| self.missing(format!("python.wheels.{name}")))
    }

    /// The version of `[package.<name>]`.
    pub(super) fn package_version(&self, name: &str) -> Result<&'a str> {
        let package = self.pins.package.get(name).ok_or_else(|| self.missing(format!("package.{name}")))?;
        Ok(package.version.as_str())
    }

    /// A parameter that goes with another one in no way.
    pub(super) fn bad_parameter(&self, key: &str, reason: String) -> PlanError {
        PlanError::Parameter { recipe: self.recipe.clone(), key: key.to_owned(), reason }
    }

    /// Whether the plan is for macOS.
    pub(super) fn is_macos(&self) -> bool {
        self.platform.as_str().starts_with("macos-")
    }

    /// A step that obtains the wheels of `[python]`'s requirements; its outputs are `wheels` and a
    /// copy of `requirements.txt`.
    pub(super) fn wheels(&mut self, id: &str, cost: Cost) -> Result<()> {
        let python = self.pins.python.as_ref().ok_or_else(|| self.missing("python".into()))?;
        let (requirements, wheels) = (python.requirements.clone(), python.wheels.clone());
        let fetch = FetchWheels { requirements, sha256: python.sha256, wheels };
        let outputs = ["requirements.txt", "wheels"];
        self.add(id, "obtain the wheels of the Python environment", Action::FetchWheels(fetch), &outputs, true, cost)
    }

    /// A step that copies parts of earlier trees together.
    pub(super) fn collect(&mut self, id: &str, title: &str, copies: &[(&str, &str)], cost: Cost) -> Result<()> {
        let mut list = Vec::new();
        for (from, to) in copies {
            list.push(Copy { from: self.template(from)?, to: self.path(to)? });
        }
        let mut outputs: Vec<&str> = copies.iter().map(|(_, to)| first_part(to)).collect();
        outputs.sort_unstable();
        outputs.dedup();
        self.add(id, title, Action::Collect(Collect { copies: list }), &outputs, false, cost)
    }

    /// A step that applies every patch for `target` to a copy of `tree`; its output is `tree`.
    pub(super) fn patch(&mut self, id: &str, target: &str, tree: &str, cost: Cost) -> Result<()> {
        let wanted = || self.pins.patch.iter().filter(|(_, patch)| patch.target.get_ref().as_str() == target);
        self.used.extend(wanted().map(|(name, _)| format!("patch.{name}")));
        let patches: Vec<PatchFile> = wanted()
            .map(|(name, patch)| PatchFile {
                name: name.clone(),
                file: patch.file.clone(),
                sha256: patch.sha256,
                images: patch.images.clone(),
            })
            .collect();
        let patch = Patch { tree: self.template(tree)?, patches };
        self.add(id, &format!("patch {target}"), Action::Patch(patch), &["tree"], false, cost)
    }

    /// A step that looks for symbols; its output is `symbols.json`.
    pub(super) fn check_symbols(&mut self, id: &str, library: &str, exports: &[String]) -> Result<()> {
        let check = CheckSymbols { library: self.template(library)?, exports: exports.to_vec() };
        self.add(
            id,
            "check the symbols that the library exports",
            Action::CheckSymbols(check),
            &["symbols.json"],
            false,
            SMALL,
        )
    }

    /// A step that looks into an ONNX model; its output is `graph.json`.
    pub(super) fn check_graph(&mut self, id: &str, check: CheckGraph) -> Result<()> {
        let title = "hold the graph against what a page will feed it";
        self.add(id, title, Action::CheckGraph(check), &["graph.json"], false, SMALL)
    }

    /// Begins a step that runs commands.
    pub(super) fn run(&mut self, id: &str, title: &str) -> RunDraft<'_, 'a> {
        RunDraft::new(self, id, title)
    }

    fn add(
        &mut self,
        id: &str,
        title: &str,
        action: Action,
        outputs: &[&str],
        network: bool,
        cost: Cost,
    ) -> Result<()> {
        let step = Step {
            id: self.id(id)?,
            title: title.to_owned(),
            action,
            inputs: Vec::new(),
            outputs: outputs.iter().map(|&output| output.to_owned()).collect(),
            environment: BTreeMap::new(),
            network,
            cost,
        };
        self.push(step);
        Ok(())
    }

    /// A step declares as inputs what its templates name, and what its tools lie in.
    fn push(&mut self, mut step: Step) {
        let input = |reference: &Reference| match reference {
            Reference::Step(id, path) => Some(OutputRef { step: id.clone(), output: first_part(path).to_owned() }),
            Reference::Tool(tool) => self.tools.get(tool)?.provided.as_ref().map(|provided| provided.output.clone()),
            Reference::Out | Reference::Tmp | Reference::Cache => None,
        };
        let named: Vec<OutputRef> = step.references().into_iter().filter_map(input).collect();
        let inputs: BTreeSet<OutputRef> = step.inputs.drain(..).chain(named).collect();
        step.inputs = inputs.into_iter().collect();
        self.steps.push(step);
    }

    fn id(&self, text: &str) -> Result<crate::step::StepId> {
        text.parse().map_err(|error| self.malformed(&error))
    }

    pub(super) fn template(&self, text: &str) -> Result<Template> {
        text.parse().map_err(|error| self.malformed(&error))
    }

    fn path(&self, text: &str) -> Result<RelativePath> {
        text.parse().map_err(|error| self.malformed(&error))
    }

    fn malformed(&self, error: &dyn std::fmt::Display) -> PlanError {
        PlanError::Malformed { recipe: self.recipe.clone(), reason: error.to_string() }
    }

    fn missing(&self, wanted: String) -> PlanError {
        PlanError::MissingPin { recipe: self.recipe.clone(), wanted }
    }
}

fn mib(bytes: Option<u64>) -> u32 {
    bytes.map_or(16, |bytes| u32::try_from(bytes.div_ceil(1024 * 1024)).unwrap_or(u32::MAX))
}
