//! What is tried: the files of one library, or of one generator, unpacked.

mod whole;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::weights;
use crate::artifact::decoding::{decode, decode_from};
use crate::error::{Class, Fault, Result};
use crate::interrupt::{Interrupt, Interrupted};
use crate::manifest::joined::join;
use crate::manifest::{Entries, Entry, Manifest};
use crate::pins::RelativePath;
use crate::printable::escape_name;

use self::whole::Joints;
use role::{ENGINE, GENERATOR, LIBRARY, MODULE, WEIGHTS};

/// The roles that a manifest gives to what is needed here.
pub mod role {
    /// A library's WebAssembly module.
    pub const LIBRARY: &str = "model-library";
    /// The runtime's browser module.
    pub const MODULE: &str = "browser-module";
    /// The engine with that browser module in it.
    pub const ENGINE: &str = "engine";
    /// A tensor cache: its index and its shards.
    pub const WEIGHTS: &str = "weights";
    /// An ES module that runs a model with the files beside it, and whose `check` says how that went.
    pub const GENERATOR: &str = "generator";

    /// Whether what has this role can be tried by itself.
    pub fn is_tried(role: &str) -> bool {
        role == LIBRARY || role == GENERATOR
    }
}

/// What one trial is of.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A library for the GPU.
    Library(Library),
    /// A model that brings its own runtime and its own check.
    Generator(Generator),
}

impl Subject {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Library(library) => &library.name,
            Self::Generator(generator) => &generator.name,
        }
    }
}

/// A module and everything that is delivered with it.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Its name.
    pub name: String,
    /// Its path among `files`.
    pub module: String,
    /// The unpacked files of the manifest, by their paths from its root, without the encoding's suffix.
    pub files: BTreeMap<String, PathBuf>,
}

/// The files of one library, as a page would get them.
#[derive(Debug, Clone)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// The WebAssembly module.
    pub library: PathBuf,
    /// The runtime's browser module that goes with it, as `CommonJS`.
    pub browser_module: PathBuf,
    /// The engine, as an ES module.
    pub engine: Option<PathBuf>,
    /// A directory with a tensor cache.
    pub weights: Option<PathBuf>,
}

/// The subjects of a manifest; the unpacked files go with it.
#[derive(Debug)]
pub struct Subjects {
    /// Libraries before generators, each in the order in which they were asked for, or the manifest's.
    pub subjects: Vec<Subject>,
    _unpacked: TempDir,
}

/// Why nothing can be tried.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The manifest lists no such thing.
    #[error("{manifest} lists no artifact with the role {role}")]
    NoRole {
        /// The manifest.
        manifest: PathBuf,
        /// The role.
        role: &'static str,
    },
    /// It lists several.
    #[error("{manifest} lists several artifacts with the role {role}: {found}")]
    Several {
        /// The manifest.
        manifest: PathBuf,
        /// The role.
        role: &'static str,
        /// The artifacts.
        found: String,
    },
    /// There is no library of that name.
    #[error("no library is called {wanted}; there are {found}")]
    NoModel {
        /// The name that was asked for.
        wanted: String,
        /// The names there are.
        found: String,
    },
    /// A file is not what the manifest says.
    #[error("{path} is not what the manifest says: {reason}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("cannot unpack {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for SubjectError {
    fn class(&self) -> Class {
        match self {
            Self::NoRole { .. } | Self::Several { .. } | Self::NoModel { .. } => Class::Usage,
            Self::Wrong { .. } | Self::Io { .. } => Class::Artifact,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoRole { .. } | Self::Several { .. } => {
                Some("name the files with --library and --browser-module".into())
            }
            Self::Wrong { .. } => Some("`rebuild-model verify` checks the whole manifest".into()),
            _ => None,
        }
    }
}

/// Finds the libraries and generators in the manifest at `path`, or those that `wanted` names, and unpacks
/// what goes with them. Paths in the manifest start from `root`, or from its own directory.
pub fn read_manifest(path: &Path, root: Option<&Path>, wanted: &[String], interrupt: &Interrupt) -> Result<Subjects> {
    let mut entries = Manifest::read(path)?.entries(path)?;
    let root = root.or_else(|| path.parent()).unwrap_or(Path::new("."));
    let joints = whole::add(root, &mut entries)?;
    let with_role = |role| entries.iter().filter(move |(_, entry)| entry.role == role).collect::<Vec<_>>();
    let there = entries.iter().filter(|(_, entry)| role::is_tried(&entry.role)).collect();
    let chosen = choose(path, there, wanted)?;
    let unpacked = tempfile::Builder::new().prefix("smoke-").tempdir();
    let unpacked = unpacked.map_err(|source| SubjectError::Io { path: std::env::temp_dir(), source })?;
    let unpack = |found: (&RelativePath, &Entry)| unpack(root, found, &joints, unpacked.path(), interrupt);

    let (generators, libraries): (Vec<Found>, Vec<Found>) =
        chosen.into_iter().partition(|(_, entry)| entry.role == GENERATOR);
    let mut subjects = Vec::new();
    if !libraries.is_empty() {
        let module = only(path, MODULE, &with_role(MODULE))?;
        let engines = with_role(ENGINE);
        let browser_module = unpack(module)?;
        let engine = if engines.is_empty() { None } else { Some(unpack(only(path, ENGINE, &engines)?)?) };
        // Weights in a manifest of several libraries could be anybody's.
        let alone = with_role(LIBRARY).len() == 1;
        let weights = if alone { unpack_weights(&entries, &unpack, unpacked.path())? } else { None };
        for found in libraries {
            subjects.push(Subject::Library(Library {
                name: name_of(found.0).to_owned(),
                library: unpack(found)?,
                browser_module: browser_module.clone(),
                engine: engine.clone(),
                weights: weights.clone(),
            }));
        }
    }
    if !generators.is_empty() {
        // What a generator asks for is its own affair: everything is there.
        let unpack_named = |found: Found<'_>| Ok((unpacked_name(found.0, found.1).to_owned(), unpack(found)?));
        let files: BTreeMap<_, _> = entries.iter().map(unpack_named).collect::<Result<_, SubjectError>>()?;
        subjects.extend(generators.into_iter().map(|(path, entry)| {
            let module = unpacked_name(path, entry).to_owned();
            Subject::Generator(Generator { name: module.clone(), module, files: files.clone() })
        }));
    }
    Ok(Subjects { subjects, _unpacked: unpacked })
}

type Found<'a> = (&'a RelativePath, &'a Entry);

fn choose<'a>(manifest: &Path, libraries: Vec<Found<'a>>, wanted: &[String]) -> Result<Vec<Found<'a>>, SubjectError> {
    if libraries.is_empty() {
        return Err(SubjectError::NoRole { manifest: manifest.into(), role: "model-library or generator" });
    }
    if wanted.is_empty() {
        return Ok(libraries);
    }
    let find = |name: &String| {
        let is = |path: &RelativePath| path.as_str() == name || name_of(path) == name;
        libraries
            .iter()
            .find(|(path, _)| is(path))
            .copied()
            .ok_or_else(|| SubjectError::NoModel { wanted: escape_name(name), found: list(&libraries) })
    };
    wanted.iter().map(find).collect()
}

fn only<'a>(manifest: &Path, role: &'static str, found: &[Found<'a>]) -> Result<Found<'a>, SubjectError> {
    match found {
        [one] => Ok(*one),
        [] => Err(SubjectError::NoRole { manifest: manifest.into(), role }),
        several => Err(SubjectError::Several { manifest: manifest.into(), role, found: list(several) }),
    }
}

fn list(found: &[Found<'_>]) -> String {
    found.iter().map(|(path, _)| escape_name(name_of(path))).collect::<Vec<_>>().join(", ")
}

/// A library's file name without what follows its stem: `decoder-webgpu` of `a/decoder-webgpu.wasm.gz`.
fn name_of(path: &RelativePath) -> &str {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    name.find(".wasm").map_or(name, |end| &name[..end])
}

fn unpack_weights(
    entries: &Entries,
    unpack: &impl Fn(Found<'_>) -> Result<PathBuf, SubjectError>,
    unpacked: &Path,
) -> Result<Option<PathBuf>, SubjectError> {
    let weights: Vec<Found> = entries.iter().filter(|(_, entry)| entry.role == WEIGHTS).collect();
    let is_index = |(path, entry): &Found| unpacked_name(path, entry).rsplit('/').next() == Some(weights::INDEX);
    let Some(index) = weights.iter().find(|found| is_index(found)) else { return Ok(None) };
    let directory = unpacked.join(unpacked_name(index.0, index.1));
    for found in &weights {
        unpack(*found)?;
    }
    Ok(directory.parent().map(Path::to_owned))
}

fn unpacked_name<'a>(path: &'a RelativePath, entry: &Entry) -> &'a str {
    path.as_str().strip_suffix(entry.encoding.suffix()).unwrap_or(path.as_str())
}

fn unpack(
    root: &Path,
    (path, entry): Found<'_>,
    joints: &Joints,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<PathBuf, SubjectError> {
    let from = root.join(path.as_str());
    let to = directory.join(unpacked_name(path, entry));
    let failed = |source: io::Error| match source.downcast::<Interrupted>() {
        Ok(interrupted) => SubjectError::Interrupted(interrupted),
        Err(source) => SubjectError::Io { path: from.clone(), source },
    };
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let sink = File::create(&to).map_err(failed)?;
    let wrong = |reason: String| SubjectError::Wrong { path: from.clone(), reason };
    let (encoding, size) = (entry.encoding, entry.unpacked.size);
    let decoded = match joints.get(path) {
        Some(parts) => decode_from(join(root, parts).map_err(wrong)?, encoding, size, sink, interrupt),
        None => decode(&from, encoding, size, sink, interrupt),
    };
    let decoded = decoded.map_err(failed)?;
    let found = decoded.unpacked.map_err(|error| wrong(error.to_string()))?;
    if found != entry.unpacked {
        return Err(wrong(format!("its content is {}, not {}", found.sha256, entry.unpacked.sha256)));
    }
    Ok(to)
}

#[cfg(test)]
mod tests;
