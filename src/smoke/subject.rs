//! What is tried: the files of one library, unpacked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::weights;
use crate::artifact::decoding::decode;
use crate::error::{Class, Fault, Result};
use crate::interrupt::{Interrupt, Interrupted};
use crate::manifest::{Entries, Entry, Manifest};
use crate::pins::RelativePath;
use crate::printable::escape_name;

use role::{ENGINE, LIBRARY, MODULE, WEIGHTS};

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
}

/// The files of one library, as a page would get them.
#[derive(Debug, Clone)]
pub struct Subject {
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
    /// In the manifest's order.
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

/// Finds the libraries in the manifest at `path`, or those that `wanted` names, and unpacks what goes
/// with them. Paths in the manifest start from `root`, or from its own directory.
pub fn read_manifest(path: &Path, root: Option<&Path>, wanted: &[String], interrupt: &Interrupt) -> Result<Subjects> {
    let entries = Manifest::read(path)?.entries(path)?;
    let root = root.or_else(|| path.parent()).unwrap_or(Path::new("."));
    let with_role = |role| entries.iter().filter(move |(_, entry)| entry.role == role).collect::<Vec<_>>();
    let libraries = choose(path, with_role(LIBRARY), wanted)?;
    let module = only(path, MODULE, &with_role(MODULE))?;
    let engines = with_role(ENGINE);
    let unpacked = tempfile::Builder::new().prefix("smoke-").tempdir();
    let unpacked = unpacked.map_err(|source| SubjectError::Io { path: std::env::temp_dir(), source })?;
    let unpack = |found: (&RelativePath, &Entry)| unpack(root, found, unpacked.path(), interrupt);

    let browser_module = unpack(module)?;
    let engine = if engines.is_empty() { None } else { Some(unpack(only(path, ENGINE, &engines)?)?) };
    // Weights in a manifest of several libraries could be anybody's.
    let alone = with_role(LIBRARY).len() == 1;
    let weights = if alone { unpack_weights(&entries, &unpack, unpacked.path())? } else { None };
    let subject = |found: (&RelativePath, &Entry)| {
        Ok(Subject {
            name: name_of(found.0).to_owned(),
            library: unpack(found)?,
            browser_module: browser_module.clone(),
            engine: engine.clone(),
            weights: weights.clone(),
        })
    };
    let subjects = libraries.into_iter().map(subject).collect::<Result<_, SubjectError>>()?;
    Ok(Subjects { subjects, _unpacked: unpacked })
}

type Found<'a> = (&'a RelativePath, &'a Entry);

fn choose<'a>(manifest: &Path, libraries: Vec<Found<'a>>, wanted: &[String]) -> Result<Vec<Found<'a>>, SubjectError> {
    if libraries.is_empty() {
        return Err(SubjectError::NoRole { manifest: manifest.into(), role: LIBRARY });
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
    let decoded = decode(&from, entry.encoding, entry.unpacked.size, sink, interrupt).map_err(failed)?;
    let wrong = |reason: String| SubjectError::Wrong { path: from.clone(), reason };
    let found = decoded.unpacked.map_err(|error| wrong(error.to_string()))?;
    if found != entry.unpacked {
        return Err(wrong(format!("its content is {}, not {}", found.sha256, entry.unpacked.sha256)));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::encoding::encode;
    use crate::pins::Encoding;

    /// A manifest of these artifacts, by path, role and content, gzipped where the path says so.
    fn manifest(artifacts: &[(&str, &str, &str)]) -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let mut entries = Entries::new();
        for (path, role, content) in artifacts {
            let (plain, target) = (root.path().join("plain"), root.path().join(path));
            std::fs::write(&plain, content).unwrap();
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            let encoding = if Path::new(path).extension().is_some_and(|extension| extension == "gz") {
                Encoding::Gzip
            } else {
                Encoding::Identity
            };
            let encoded = encode(&plain, &target, encoding, 6, &Interrupt::default()).unwrap();
            let path: RelativePath = path.parse().unwrap();
            entries.insert(path.clone(), Entry::new(&path, *role, &encoded));
        }
        let file = root.path().join("manifest.json");
        std::fs::write(&file, Manifest::fresh(&entries)).unwrap();
        (root, file)
    }

    fn read(path: &Path, wanted: &[&str]) -> Result<Subjects> {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.into()).collect();
        read_manifest(path, None, &wanted, &Interrupt::default())
    }

    const PAIR: [(&str, &str, &str); 4] = [
        ("a.wasm.gz", LIBRARY, "library"),
        ("tvmjs.cjs.gz", MODULE, "module"),
        ("w/tensor-cache.json.gz", WEIGHTS, "{}"),
        ("w/params_shard_0.bin", WEIGHTS, "bytes"),
    ];

    #[test]
    fn a_library_is_unpacked_with_what_goes_with_it() {
        let (_root, path) = manifest(&PAIR);
        let found = read(&path, &[]).unwrap();
        let [subject] = &found.subjects[..] else { panic!("{found:?}") };
        assert_eq!((subject.name.as_str(), &subject.engine), ("a", &None));
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((text(&subject.library).as_str(), text(&subject.browser_module).as_str()), ("library", "module"));
        let weights = subject.weights.as_ref().unwrap();
        assert_eq!(
            (text(&weights.join(weights::INDEX)), text(&weights.join("params_shard_0.bin"))),
            ("{}".into(), "bytes".into())
        );
        let directory = weights.clone();
        drop(found);
        assert!(!directory.exists());
    }

    #[test]
    fn of_several_libraries_any_can_be_named() {
        let all = [&PAIR[..], &[("b.wasm", LIBRARY, "other"), ("e.js", ENGINE, "engine")]].concat();
        let (_root, path) = manifest(&all);
        let names = |wanted: &[&str]| {
            read(&path, wanted).unwrap().subjects.into_iter().map(|subject| subject.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["a", "b"]);
        assert_eq!(names(&["b"]), ["b"]);
        assert_eq!(names(&["a.wasm.gz"]), ["a"]);
        let subject = read(&path, &["b"]).unwrap().subjects.remove(0);
        assert!(subject.engine.is_some() && subject.weights.is_none());
        let error = read(&path, &["c"]).unwrap_err();
        assert_eq!((error.class(), error.to_string()), (Class::Usage, "no library is called c; there are a, b".into()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (_root, path) = manifest(&PAIR[..1]);
        assert!(read(&path, &[]).unwrap_err().to_string().ends_with("no artifact with the role browser-module"));
        let (_root, path) = manifest(&PAIR[1..]);
        assert!(read(&path, &[]).unwrap_err().to_string().ends_with("no artifact with the role model-library"));
        let (_root, path) = manifest(&[&PAIR[..], &[("t.cjs", MODULE, "other")]].concat());
        assert!(read(&path, &[]).unwrap_err().to_string().contains("several artifacts with the role browser-module"));

        let (root, path) = manifest(&PAIR);
        std::fs::write(root.path().join("w/params_shard_0.bin"), "other").unwrap();
        let error = read(&path, &[]).unwrap_err();
        assert_eq!(error.class(), Class::Artifact);
        assert!(error.to_string().contains("is not what the manifest says"), "{error}");
        std::fs::remove_file(root.path().join("a.wasm.gz")).unwrap();
        assert_eq!(read(&path, &[]).unwrap_err().class(), Class::Artifact);
        let interrupt = Interrupt::default();
        interrupt.raise();
        let error = read_manifest(&path, None, &[], &interrupt).unwrap_err();
        assert_eq!(error.class(), Class::Interrupted);
    }
}
