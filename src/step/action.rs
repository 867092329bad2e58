//! The closed list of what a step can do. A new variant is one struct here and one file in `exec/`;
//! the compiler names the matches that must learn of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Gate, Template};
use crate::digest::Digest;
use crate::pins::{Commit, Encoding, Images, Name, Recorded, Registry, RelativePath, WheelPin};

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Checks out a commit with its submodules.
    FetchGit(FetchGit),
    /// Obtains one file by digest: from a url or from beside the pins file.
    FetchFile(FetchFile),
    /// Obtains one published file of a package.
    FetchPackage(FetchPackage),
    /// Obtains every wheel of a requirements file.
    FetchWheels(FetchWheels),
    /// Unpacks an archive (zip, wheel, tar, tar.gz).
    Unpack(Unpack),
    /// Copies files and trees of earlier steps together.
    Collect(Collect),
    /// Applies patches to a copy of a tree.
    Patch(Patch),
    /// Runs commands.
    Run(Run),
    /// Looks for exported symbols in a native library.
    CheckSymbols(CheckSymbols),
    /// Holds an ONNX model against what a page will feed it.
    CheckGraph(CheckGraph),
    /// Judges artifacts before they are packaged.
    Gate(Gate),
    /// Encodes artifacts, checks their sizes and writes them with the manifest to their destination.
    Package(Package),
}

/// See [`Action::FetchGit`]. Output: `tree`, without any `.git`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchGit {
    /// The checkout.
    pub checkout: Checkout,
}

/// A repository at a commit, with what stands at each of its submodules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkout {
    /// Where it is published; `./…` is relative to the pins file.
    pub url: String,
    /// The commit.
    pub commit: Commit,
    /// The commit's tree, when pinned.
    pub tree: Option<Commit>,
    /// Every submodule of every level, by path from this checkout's root.
    pub submodules: BTreeMap<RelativePath, SubmoduleCheckout>,
}

/// What is expected and what is taken at a submodule's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmoduleCheckout {
    /// The commit that the parent must record.
    pub recorded: Recorded<Commit>,
    /// What is put there.
    pub take: Take,
}

/// What is put at a submodule's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The recorded commit, from the url in `.gitmodules` or from the one given.
    Recorded {
        /// Replaces the url in `.gitmodules`.
        url: Option<String>,
    },
    /// Another pinned source with its own submodules.
    Override(Box<Checkout>),
    /// Nothing: the directory stays empty.
    Nothing,
}

/// See [`Action::FetchFile`]. Output: the file under `name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchFile {
    /// The name it gets.
    pub name: String,
    /// Where it comes from.
    pub from: FileOrigin,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when pinned.
    pub size: Option<u64>,
}

/// Where a plain file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrigin {
    /// An `http` or `https` url.
    Url(String),
    /// A path relative to the pins file.
    Path(RelativePath),
}

/// See [`Action::FetchPackage`]. Output: the file under its published name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchPackage {
    /// Which registry.
    pub registry: Registry,
    /// The package's name.
    pub package: String,
    /// The exact version.
    pub version: String,
    /// The published file's name.
    pub file: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when pinned.
    pub size: Option<u64>,
}

/// See [`Action::FetchWheels`]. Outputs: the directory `wheels`, and `requirements.txt` with all that is required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchWheels {
    /// The requirements file, relative to the pins file; every requirement has hashes.
    pub requirements: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Wheels beyond those that it lists.
    pub wheels: BTreeMap<Name, WheelPin>,
}

/// See [`Action::Unpack`]. Output: `tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unpack {
    /// The archive.
    pub archive: Template,
    /// How many leading parts of each member's path are dropped.
    pub strip: u32,
    /// Only members whose remaining path begins with one of these; all when empty.
    pub only: Vec<String>,
    /// Not members whose remaining path begins with one of these.
    pub except: Vec<String>,
}

/// See [`Action::Collect`]. Outputs: the first parts of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// What is copied where. Two entries may meet in a directory, never in a file.
    pub copies: Vec<Copy>,
}

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// A file or directory of an earlier step.
    pub from: Template,
    /// Its place in the output directory.
    pub to: RelativePath,
}

/// See [`Action::Patch`]. Output: `tree`, a patched copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The tree that is copied and patched.
    pub tree: Template,
    /// The patches, in order.
    pub patches: Vec<PatchFile>,
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchFile {
    /// The pin's name.
    pub name: Name,
    /// The patch, relative to the pins file.
    pub file: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Blob ids before and after of each file it names; empty when none is pinned.
    pub images: BTreeMap<RelativePath, Images>,
}

/// See [`Action::Run`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Program and arguments of each command, run one after another.
    pub commands: Vec<Vec<Template>>,
    /// The working directory.
    pub directory: Template,
}

/// See [`Action::CheckSymbols`]. Output: `symbols.json`, what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSymbols {
    /// The library (ELF or Mach-O).
    pub library: Template,
    /// Symbols that it must export.
    pub exports: Vec<String>,
}

/// See [`Action::CheckGraph`]. Output: `graph.json`, what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckGraph {
    /// The model.
    pub model: Template,
    /// Its only input: token ids, int64, 1 × any number.
    pub input: String,
    /// Its only output: logits, float32, 1 × any number × the vocabulary.
    pub output: String,
    /// The size of the vocabulary.
    pub vocabulary: u32,
    /// The version of ONNX's own operators.
    pub opset: u16,
    /// How often operators must occur.
    pub operators: BTreeMap<String, u32>,
    /// The largest file, in bytes.
    pub size_limit: u64,
}

/// See [`Action::Package`]. Output: `package`, a directory with every delivered file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The artifacts.
    pub artifacts: Vec<ArtifactSpec>,
    /// Level of the encoders.
    pub level: u8,
    /// The largest size in bytes that a delivered file may have.
    pub size_limit: u64,
    /// Whether a larger file is delivered in parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub split: bool,
    /// The directory that receives the files, relative to the pins file.
    pub destination: RelativePath,
    /// The manifest, relative to the pins file.
    pub manifest: RelativePath,
}

/// One artifact to be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactSpec {
    /// The file, or a directory of which every file is an artifact of its own.
    pub from: Template,
    /// The path it gets in the destination, without the encoding's suffix.
    pub path: RelativePath,
    /// What it is to the site: `model-library`, `browser-module`, `weights`, …
    pub role: String,
    /// Its encoding.
    pub encoding: Encoding,
}

impl Action {
    /// The variant's name as it is serialized.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FetchGit(_) => "fetch-git",
            Self::FetchFile(_) => "fetch-file",
            Self::FetchPackage(_) => "fetch-package",
            Self::FetchWheels(_) => "fetch-wheels",
            Self::Unpack(_) => "unpack",
            Self::Collect(_) => "collect",
            Self::Patch(_) => "patch",
            Self::Run(_) => "run",
            Self::CheckSymbols(_) => "check-symbols",
            Self::CheckGraph(_) => "check-graph",
            Self::Gate(_) => "gate",
            Self::Package(_) => "package",
        }
    }

    /// Every template in the action.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::FetchGit(_) | Self::FetchFile(_) | Self::FetchPackage(_) | Self::FetchWheels(_) => Vec::new(),
            Self::Unpack(unpack) => vec![&unpack.archive],
            Self::Collect(collect) => collect.copies.iter().map(|copy| &copy.from).collect(),
            Self::Patch(patch) => vec![&patch.tree],
            Self::Run(run) => run.commands.iter().flatten().chain([&run.directory]).collect(),
            Self::CheckSymbols(check) => vec![&check.library],
            Self::CheckGraph(check) => vec![&check.model],
            Self::Gate(gate) => gate.templates(),
            Self::Package(package) => package.artifacts.iter().map(|artifact| &artifact.from).collect(),
        }
    }

    /// Names of tools that the action needs without saying so in a template. What such a tool
    /// brings is checked by digest, so the tool itself is no part of the step's key.
    pub fn implied_tools(&self) -> &'static [&'static str] {
        match self {
            Self::FetchPackage(FetchPackage { registry: Registry::Npm, .. }) => &["npm"],
            Self::FetchPackage(FetchPackage { registry: Registry::Pypi, .. }) | Self::FetchWheels(_) => &["python"],
            _ => &[],
        }
    }

    /// What the action takes in without a recorded digest or id, by name; empty in a build that can
    /// be repeated.
    pub fn unrecorded_inputs(&self) -> Vec<String> {
        let unless_known = |digest: &Recorded<Digest>, name: &str| {
            if digest.known().is_some() { Vec::new() } else { vec![name.to_owned()] }
        };
        match self {
            Self::FetchFile(fetch) => unless_known(&fetch.sha256, &fetch.name),
            Self::FetchPackage(fetch) => unless_known(&fetch.sha256, fetch.file.as_str()),
            Self::FetchWheels(fetch) => {
                let wheels = fetch.wheels.iter();
                let wheels =
                    wheels.flat_map(|(name, pin)| unless_known(&pin.sha256, &format!("{name} {}", pin.version)));
                unless_known(&fetch.sha256, fetch.requirements.as_str()).into_iter().chain(wheels).collect()
            }
            Self::FetchGit(fetch) => fetch.checkout.unrecorded(""),
            Self::Patch(patch) => patch.patches.iter().flat_map(PatchFile::unrecorded).collect(),
            Self::Unpack(_)
            | Self::Collect(_)
            | Self::Run(_)
            | Self::CheckSymbols(_)
            | Self::CheckGraph(_)
            | Self::Gate(_)
            | Self::Package(_) => Vec::new(),
        }
    }
}

impl Checkout {
    /// Paths, below `place`, of the submodules of which nobody recorded the commit.
    fn unrecorded(&self, place: &str) -> Vec<String> {
        let mut paths = Vec::new();
        for (path, submodule) in &self.submodules {
            let path = format!("{place}{path}");
            if let Take::Override(checkout) = &submodule.take {
                paths.extend(checkout.unrecorded(&format!("{path}/")));
            }
            if submodule.recorded.known().is_none() {
                paths.push(format!("the commit of {path}"));
            }
        }
        paths
    }
}

impl PatchFile {
    fn unrecorded(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.sha256.known().is_none() {
            names.push(self.file.to_string());
        }
        for (path, images) in &self.images {
            let unknown = |id: &Option<Recorded<Commit>>| id.as_ref().is_some_and(|id| id.known().is_none());
            if unknown(&images.before) || unknown(&images.after) {
                names.push(format!("{}: {path}", self.file));
            }
        }
        names
    }
}
