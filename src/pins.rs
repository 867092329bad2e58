//! What a person wrote and reviewed: `pins.toml`, schema 1, typed and spanned.
//!
//! Parsing is pure: no file but the given text is read and nothing is computed that is not written.
//! [`Pins`] is generic in its recipe's parameters, so that this module does not know any recipe.

mod address;
mod check;
mod gates;
mod source;
mod text;
mod tool;

pub(crate) use address::secret_parameter;
pub use address::{FileUrl, GitUrl, NotAnAddress};
pub use check::{PinsError, parse, refuse};
pub use gates::{Gates, Rule};
pub use source::{
    Archive, FileSource, GitSource, Images, PackageFile, PackageSource, PatchPin, PythonPins, Registry, Submodule,
    WheelPin,
};
pub use text::{Commit, NOT_RECORDED, Name, PackageName, PackageVersion, Platform, Recorded, RelativePath};
pub use tool::{ToolPin, Version, VersionRange};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The schema of pins files that this version reads and writes.
pub const SCHEMA: u32 = 1;

/// A pins file. `R` is the table of recipe parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins<R> {
    /// Always 1 ([`SCHEMA`]).
    pub schema: u32,
    /// `[recipe.<name>]`: which recipe, and its parameters.
    pub recipe: R,
    /// `[git.<name>]`: sources by commit.
    #[serde(default)]
    pub git: BTreeMap<Name, GitSource>,
    /// `[package.<name>]`: packages of `PyPI` or npm by name, version and digest.
    #[serde(default)]
    pub package: BTreeMap<Name, PackageSource>,
    /// `[file.<name>]`: plain files by digest.
    #[serde(default)]
    pub file: BTreeMap<Name, FileSource>,
    /// `[patch.<name>]`: patches to a source, applied in name order.
    #[serde(default)]
    pub patch: BTreeMap<Name, PatchPin>,
    /// `[python]`: the interpreter's version and its packages.
    pub python: Option<PythonPins>,
    /// `[tool.<name>]`: programs that steps run.
    #[serde(default)]
    pub tool: BTreeMap<Name, ToolPin>,
    /// `[gates]`: what the artifacts need not satisfy.
    #[serde(default)]
    pub gates: Gates,
    /// `[packaging]`: what becomes of the artifacts.
    #[serde(default)]
    pub packaging: Packaging,
}

/// `[packaging]`: encodings, places and limits of what is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Packaging {
    /// The directory that receives the artifacts, relative to the pins file.
    pub destination: RelativePath,
    /// The manifest's path, relative to the pins file. An existing one keeps its other entries.
    pub manifest: toml::Spanned<RelativePath>,
    /// How the compressed artifacts are encoded.
    pub encoding: Encoding,
    /// Compression level: 0 to 9 for gzip, 0 to 11 for brotli.
    pub level: u8,
    /// The largest size in bytes that a delivered file may have. 26 214 400 (25 MiB) by default,
    /// the limit of hosts that have one.
    pub size_limit: u64,
    /// Whether a larger file is delivered in parts, with a list of them; otherwise it ends the build.
    pub split: bool,
}

/// The largest file that the usual static hosts accept, in bytes.
pub const HOST_FILE_LIMIT: u64 = 25 * 1024 * 1024;

impl Default for Packaging {
    fn default() -> Self {
        Self {
            destination: RelativePath::constant("dist"),
            manifest: toml::Spanned::new(0..0, RelativePath::constant("dist/manifest.json")),
            encoding: Encoding::Gzip,
            level: 9,
            size_limit: HOST_FILE_LIMIT,
            split: false,
        }
    }
}

/// A content encoding, named as HTTP names it (RFC 9110, section 8.4.1; `br`: RFC 7932).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// RFC 1952, one member, no name, time 0, operating system 255 (unknown).
    #[serde(rename = "gzip")]
    Gzip,
    /// Brotli.
    #[serde(rename = "br")]
    Brotli,
    /// As it is.
    #[serde(rename = "identity")]
    Identity,
}

impl Encoding {
    /// What is appended to the file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Brotli => ".br",
            Self::Identity => "",
        }
    }

    /// The name as it stands in pins and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Identity => "identity",
        }
    }

    /// The levels that the encoder knows.
    pub fn levels(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Self::Gzip => 0..=9,
            Self::Brotli => 0..=11,
            Self::Identity => 0..=u8::MAX,
        }
    }
}
