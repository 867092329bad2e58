//! Packaging: encodes artifacts, checks their sizes, and records them.
//!
//! The step's output `package` holds `files/`, every delivered file under its final path, and
//! `manifest.json`, a manifest of exactly these files. It can be verified where it lies; nothing
//! outside the workspace has changed until [`publish`] is called.

mod publish;
mod split;

pub use publish::{Document, PublishError, Published, publish, publish_with};

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::artifact::encoding::{EncodingError, encode};
use crate::error::{Class, Fault};
use crate::interrupt::Interrupt;
use crate::manifest::{Entries, Entry, Manifest, ManifestError};
use crate::parallel;
use crate::pins::{Encoding, RelativePath};
use crate::step;

/// How many of the largest files an error lists.
const LISTED: usize = 10;

/// Why artifacts cannot be packaged.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A source is neither a file nor a directory of files.
    #[error("artifact {artifact}: {path} {reason}")]
    Source {
        /// The artifact's path in the destination.
        artifact: String,
        /// The source.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file's name cannot be a path in a manifest.
    #[error(
        "artifact {artifact}: the name of {path} cannot stand in a manifest (no UTF-8, or has a `\\` or line break)"
    )]
    Name {
        /// The artifact's path in the destination.
        artifact: String,
        /// The source.
        path: PathBuf,
    },
    /// Two sources would be delivered to the same place, or one below the other.
    #[error("{first} and {second} would be delivered to the same place: {path} and {other}")]
    Collision {
        /// One source.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// Where the one goes.
        path: RelativePath,
        /// Where the other goes.
        other: RelativePath,
    },
    /// Files are larger than the limit.
    #[error("{} larger than the limit of {limit} bytes a file: {}", count(over.len()), show_sizes(over))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The files over it, largest first, with their sizes in bytes.
        over: Vec<(RelativePath, u64)>,
        /// The largest files of all, over the limit or not.
        largest: Vec<(RelativePath, u64)>,
    },
    /// Reading or writing failed.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file was not encoded.
    #[error("artifact {artifact} was not encoded")]
    Encoding {
        /// The artifact's path in the destination.
        artifact: RelativePath,
        /// Why.
        source: EncodingError,
    },
    /// The package's own manifest is not what this version writes.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Fault for PackageError {
    fn class(&self) -> Class {
        match self {
            Self::Source { .. } | Self::Name { .. } | Self::Collision { .. } | Self::TooLarge { .. } => Class::Artifact,
            Self::Io { .. } => Class::Step,
            Self::Encoding { source, .. } => source.class(),
            Self::Manifest(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::TooLarge { .. } => Some(
                "build smaller parts (fewer bytes a weight shard), encode with `br` or at a higher level, deliver larger files in parts (`split = true` under [packaging]), or raise `size_limit` if the host takes such files".into(),
            ),
            Self::Collision { .. } => Some("give every artifact a path of its own".into()),
            Self::Source { .. } | Self::Name { .. } => Some("look at the step that makes this file".into()),
            Self::Encoding { source, .. } => source.hint(),
            Self::Manifest(error) => error.hint(),
            Self::Io { .. } => None,
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::TooLarge { largest, .. } => {
                let lines = largest.iter().map(|(path, size)| format!("{size:>14}  {path}"));
                Some(format!("largest files, in bytes:\n{}", lines.collect::<Vec<_>>().join("\n")))
            }
            _ => None,
        }
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file is".into() } else { format!("{files} files are") }
}

fn show_sizes(files: &[(RelativePath, u64)]) -> String {
    let shown: Vec<_> = files.iter().take(3).map(|(path, size)| format!("{path} ({size} bytes)")).collect();
    let more = if files.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// One file to be delivered.
struct Delivery<'a> {
    source: PathBuf,
    size: u64,
    path: RelativePath,
    role: &'a str,
    encoding: Encoding,
}

/// Encodes the artifacts of `spec` into `out/package` and records them there.
///
/// `sources` names the file or directory of each artifact by its index in `spec.artifacts`; of a
/// directory, every file below it is an artifact of its own. Two encodings of the same source are
/// two artifacts: their suffixes keep them apart.
pub fn package(
    spec: &step::Package,
    sources: &[(usize, PathBuf)],
    out: &Path,
    interrupt: &Interrupt,
) -> Result<Entries, PackageError> {
    let mut deliveries = Vec::new();
    for (index, source) in sources {
        let artifact = &spec.artifacts[*index];
        for (file, path, size) in list_files(source, artifact)? {
            let path = format!("{path}{}", artifact.encoding.suffix()).parse::<RelativePath>();
            let path =
                path.map_err(|_| PackageError::Name { artifact: artifact.path.to_string(), path: file.clone() })?;
            deliveries.push(Delivery { source: file, size, path, role: &artifact.role, encoding: artifact.encoding });
        }
    }
    refuse_collisions(&deliveries)?;
    // The largest first, so that no core is left alone with it at the end.
    deliveries.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));

    let files = files_of(out);
    for delivery in &deliveries {
        let target = files.join(delivery.path.as_str());
        let directory = target.parent().unwrap_or(&files);
        fs::create_dir_all(directory).map_err(|source| PackageError::Io { path: directory.to_owned(), source })?;
    }
    let encoded = parallel::map(&deliveries, |delivery| {
        let target = files.join(delivery.path.as_str());
        // Identity has no level, and a level that only the other encodings have does not matter to it.
        let encoded = encode(&delivery.source, &target, delivery.encoding, spec.level, interrupt)
            .map_err(|source| PackageError::Encoding { artifact: delivery.path.clone(), source })?;
        Ok((delivery.path.clone(), Entry::new(&delivery.path, delivery.role, &encoded)))
    });
    let mut entries = encoded.into_iter().collect::<Result<Entries, PackageError>>()?;
    if spec.split {
        split::split(&files, &mut entries, spec.size_limit, interrupt)?;
    }
    check_sizes(&entries, spec.size_limit)?;
    let path = manifest_of(out);
    fs::write(&path, Manifest::fresh(&entries)).map_err(|source| PackageError::Io { path, source })?;
    Ok(entries)
}

/// The artifacts that an earlier [`package`] recorded in the step's output directory `out`.
pub fn recorded(out: &Path) -> Result<Entries, PackageError> {
    let path = manifest_of(out);
    Ok(Manifest::read(&path)?.entries(&path)?)
}

/// The delivered files in the step's output directory `out`.
pub fn files_of(out: &Path) -> PathBuf {
    out.join("package/files")
}

/// The package's own manifest in the step's output directory `out`.
pub fn manifest_of(out: &Path) -> PathBuf {
    out.join("package/manifest.json")
}

/// Each file of a source with its path in the destination and its size, sorted by path.
fn list_files(source: &Path, artifact: &step::ArtifactSpec) -> Result<Vec<(PathBuf, String, u64)>, PackageError> {
    let refused = |path: &Path, reason| PackageError::Source {
        artifact: artifact.path.to_string(),
        path: path.to_owned(),
        reason,
    };
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(source).sort_by_file_name() {
        let entry = entry.map_err(|error| PackageError::Io {
            path: error.path().unwrap_or(source).to_owned(),
            source: error.into(),
        })?;
        let kind = entry.file_type();
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() {
            // What a link points to may lie outside the step's outputs, where nothing is hashed.
            return Err(refused(entry.path(), "is neither a file nor a directory"));
        }
        let size = entry
            .metadata()
            .map_err(|error| PackageError::Io { path: entry.path().to_owned(), source: error.into() })?;
        let mut path = artifact.path.to_string();
        for part in entry.path().strip_prefix(source).unwrap_or(Path::new("")) {
            let name = part.to_str();
            path.push('/');
            path.push_str(name.ok_or_else(|| PackageError::Name {
                artifact: artifact.path.to_string(),
                path: entry.path().to_owned(),
            })?);
        }
        files.push((entry.into_path(), path, size.len()));
    }
    if files.is_empty() {
        return Err(refused(source, "contains no file"));
    }
    Ok(files)
}

/// No two files may have the same path, also on a file system that does not tell upper from lower
/// case, and no file may stand where another needs a directory.
fn refuse_collisions(deliveries: &[Delivery]) -> Result<(), PackageError> {
    let mut taken: BTreeMap<String, &Delivery> = BTreeMap::new();
    let collision = |one: &Delivery, two: &Delivery| PackageError::Collision {
        first: one.source.clone(),
        second: two.source.clone(),
        path: one.path.clone(),
        other: two.path.clone(),
    };
    for delivery in deliveries {
        if let Some(other) = taken.insert(delivery.path.as_str().to_lowercase(), delivery) {
            return Err(collision(other, delivery));
        }
    }
    for (path, delivery) in &taken {
        let above = path.match_indices('/').find_map(|(end, _)| taken.get(&path[..end]));
        if let Some(other) = above {
            return Err(collision(other, delivery));
        }
    }
    Ok(())
}

fn check_sizes(entries: &Entries, limit: u64) -> Result<(), PackageError> {
    let mut sizes: Vec<_> = entries.iter().map(|(path, entry)| (path.clone(), entry.packed.size)).collect();
    sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let over: Vec<_> = sizes.iter().filter(|(_, size)| *size > limit).cloned().collect();
    if over.is_empty() {
        return Ok(());
    }
    sizes.truncate(LISTED);
    Err(PackageError::TooLarge { limit, over, largest: sizes })
}
