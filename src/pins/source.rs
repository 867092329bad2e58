//! Where inputs come from: git, package registries, plain files; and the patches to them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::address::{FileUrl, GitUrl};
use super::text::{Commit, Name, PackageName, PackageVersion, Platform, Recorded, RelativePath};
use super::tool::VersionRange;
use crate::digest::Digest;

/// `[git.<name>]`: a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitSource {
    /// Where the repository is published. A path that begins with `./` is relative to the pins file.
    pub url: GitUrl,
    /// The commit, in full.
    pub commit: Commit,
    /// The commit's tree, when known: it ties the content to the pin even for a host that lies.
    pub tree: Option<Commit>,
    /// Every submodule of every level, by its path from this repository's root.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub submodules: BTreeMap<RelativePath, Submodule>,
}

/// What is expected, and what is taken, at a submodule's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submodule {
    /// The commit that the parent records (its gitlink).
    pub commit: Recorded<Commit>,
    /// Where to get it instead of the url in `.gitmodules`.
    pub url: Option<GitUrl>,
    /// The `[git.<name>]` source whose commit stands there instead of the recorded one.
    pub source: Option<toml::Spanned<Name>>,
    /// The submodule is not needed and its directory stays empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
}

/// A package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// The Python package index.
    Pypi,
    /// The npm registry.
    Npm,
}

/// `[package.<name>]`: a published package, used as source or as a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSource {
    /// Which registry.
    pub registry: Registry,
    /// The package's name there, with its scope.
    pub name: PackageName,
    /// The exact version.
    pub version: PackageVersion,
    /// The published files, at most one of which serves a platform.
    pub files: Vec<PackageFile>,
}

/// One published file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageFile {
    /// The platform it serves.
    pub platform: Platform,
    /// The package's name for this platform, where every platform has a package of its own.
    pub package: Option<PackageName>,
    /// The file's name as published.
    pub file: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when known.
    pub size: Option<u64>,
}

/// `[file.<name>]`: a plain file. Exactly one of `url` and `path` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// Where it is published.
    pub url: Option<FileUrl>,
    /// Its path, relative to the pins file.
    pub path: Option<RelativePath>,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when known.
    pub size: Option<u64>,
}

/// `[patch.<name>]`: a patch, and what it makes of which files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchPin {
    /// The patch file, relative to the pins file.
    pub file: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// The source it patches.
    pub target: toml::Spanned<Name>,
    /// For each file it names, by path in the target: git's blob ids before and after.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<RelativePath, Images>,
}

/// Git blob ids of a file before and after a patch; absent where the file does not exist then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// The pre-image.
    pub before: Option<Recorded<Commit>>,
    /// The post-image.
    pub after: Option<Recorded<Commit>>,
}

/// `[python]`: the interpreter and its packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonPins {
    /// The interpreter's version; two numbers accept any patch release.
    pub version: VersionRange,
    /// A requirements file with a hash for every requirement, relative to the pins file.
    pub requirements: RelativePath,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Wheels beyond those of the requirements file, by the package's name: what belongs to the
    /// build's own pins rather than to a resolver's list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wheels: BTreeMap<Name, WheelPin>,
}

/// One wheel of `[python.wheels]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelPin {
    /// The exact version.
    pub version: PackageVersion,
    /// The digest of the wheel.
    pub sha256: Recorded<Digest>,
}

/// A tool's archive for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Where it is published.
    pub url: FileUrl,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when known.
    pub size: Option<u64>,
    /// The program's path inside the unpacked archive.
    pub program: RelativePath,
}
