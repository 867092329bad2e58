//! Copying files and trees of earlier steps together.
//!
//! Two copies may meet in a directory and never in a file: which of two files wins is nothing that an
//! order of lines should decide.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Class, Fault};
use crate::pins::RelativePath;

/// Why things could not be copied together.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Two copies want the same place.
    #[error("{second} cannot be copied to {place}: {first} is there already")]
    Collision {
        /// The place, in the output directory.
        place: String,
        /// What was copied there first.
        first: PathBuf,
        /// What should be copied there too.
        second: PathBuf,
    },
    /// There is nothing to copy.
    #[error("{path} is not there to be copied")]
    Missing {
        /// What should be copied.
        path: PathBuf,
    },
    /// Neither file, directory nor link.
    #[error("{path} is neither a file nor a directory nor a link")]
    Special {
        /// Its path.
        path: PathBuf,
    },
    /// A path that is not UTF-8.
    #[error("{path} is not UTF-8")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot copy {from} to {to}")]
    Copy {
        /// What is copied.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Fault for CollectError {
    fn class(&self) -> Class {
        Class::Step
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Copy { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some("the disk is full".into()),
            _ => None,
        }
    }
}

/// Copies each source to its place in `out`: directories with all that is in them, links as links,
/// of the modes the executable bit. A source that is itself a link is followed.
pub fn collect(copies: &[(PathBuf, RelativePath)], out: &Path) -> Result<(), CollectError> {
    let mut collection = Collection { out, made: BTreeMap::new() };
    copies.iter().try_for_each(|(from, to)| collection.add(from, to.as_str()))
}

struct Collection<'a> {
    out: &'a Path,
    /// What stands at each place: the source of a file or link, and none for a directory.
    made: BTreeMap<String, Option<PathBuf>>,
}

impl Collection<'_> {
    fn add(&mut self, from: &Path, to: &str) -> Result<(), CollectError> {
        if !from.exists() {
            return Err(CollectError::Missing { path: from.to_owned() });
        }
        for (end, _) in to.match_indices('/') {
            self.directory(from, &to[..end])?;
        }
        for entry in walkdir::WalkDir::new(from).follow_root_links(true).sort_by_file_name() {
            let entry = entry.map_err(|error| CollectError::Copy {
                from: error.path().unwrap_or(from).to_owned(),
                to: self.out.join(to),
                source: error.into(),
            })?;
            let path = entry.path();
            let below = path.strip_prefix(from).unwrap_or(path);
            let below = below.to_str().ok_or_else(|| CollectError::NotText { path: path.to_owned() })?;
            let place = if below.is_empty() { to.to_owned() } else { format!("{to}/{below}") };
            // The root's type is that of what a link at the root points to.
            let kind = if below.is_empty() {
                std::fs::metadata(path).map(|metadata| metadata.file_type())
            } else {
                Ok(entry.file_type())
            };
            let kind = kind.map_err(|source| self.failed(path, &place, source))?;
            if kind.is_dir() {
                self.directory(path, &place)?;
            } else if kind.is_symlink() {
                self.claim(path, &place)?;
                let link = |target| std::os::unix::fs::symlink(target, self.out.join(&place));
                std::fs::read_link(path).and_then(link).map_err(|source| self.failed(path, &place, source))?;
            } else if kind.is_file() {
                self.claim(path, &place)?;
                copy_file(path, &self.out.join(&place)).map_err(|source| self.failed(path, &place, source))?;
            } else {
                return Err(CollectError::Special { path: path.to_owned() });
            }
        }
        Ok(())
    }

    fn directory(&mut self, from: &Path, place: &str) -> Result<(), CollectError> {
        match self.made.get(place) {
            Some(None) => return Ok(()),
            Some(Some(first)) => return Err(collision(place, first, from)),
            None => {}
        }
        std::fs::create_dir_all(self.out.join(place)).map_err(|source| self.failed(from, place, source))?;
        self.made.insert(place.to_owned(), None);
        Ok(())
    }

    /// Takes the place for a file or a link.
    fn claim(&mut self, from: &Path, place: &str) -> Result<(), CollectError> {
        match self.made.insert(place.to_owned(), Some(from.to_owned())) {
            None => Ok(()),
            Some(Some(first)) => Err(collision(place, &first, from)),
            Some(None) => Err(collision(place, &self.out.join(place), from)),
        }
    }

    fn failed(&self, from: &Path, place: &str, source: io::Error) -> CollectError {
        CollectError::Copy { from: from.to_owned(), to: self.out.join(place), source }
    }
}

fn collision(place: &str, first: &Path, second: &Path) -> CollectError {
    CollectError::Collision { place: place.to_owned(), first: first.to_owned(), second: second.to_owned() }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to)?;
    let executable = std::fs::metadata(from)?.permissions().mode() & 0o100 != 0;
    std::fs::set_permissions(to, PermissionsExt::from_mode(if executable { 0o755 } else { 0o644 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(root: &Path, list: &[(&str, &str)]) -> Vec<(PathBuf, RelativePath)> {
        list.iter().map(|(from, to)| (root.join(from), to.parse().unwrap())).collect()
    }

    fn sources() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/d/empty")).unwrap();
        std::fs::create_dir_all(root.path().join("b/d")).unwrap();
        std::fs::write(root.path().join("a/d/one"), "one").unwrap();
        std::fs::write(root.path().join("b/d/two"), "two").unwrap();
        std::fs::set_permissions(root.path().join("b/d/two"), PermissionsExt::from_mode(0o500)).unwrap();
        std::os::unix::fs::symlink("one", root.path().join("a/d/link")).unwrap();
        std::os::unix::fs::symlink("a/d/one", root.path().join("root-link")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("dangling")).unwrap();
        root
    }

    #[test]
    fn trees_meet_in_directories_and_keep_links_and_executable_bits() {
        let root = sources();
        let out = tempfile::tempdir().unwrap();
        let list = copies(root.path(), &[("a", "x"), ("b", "x"), ("root-link", "x/deep/er"), ("a/d/one", "file")]);
        collect(&list, out.path()).unwrap();
        let at = |path: &str| out.path().join("x").join(path);
        assert_eq!(std::fs::read_link(at("d/link")).unwrap(), Path::new("one"));
        assert_eq!(std::fs::metadata(at("d/two")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(std::fs::metadata(at("d/one")).unwrap().permissions().mode() & 0o777, 0o644);
        assert!(at("d/empty").is_dir());
        assert!(at("deep/er").symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read(out.path().join("file")).unwrap(), b"one");
    }

    #[test]
    fn two_sources_never_meet_in_a_file() {
        let root = sources();
        let cases: [&[(&str, &str)]; 5] = [
            &[("a/d/one", "x"), ("b/d/two", "x")],
            &[("a", "x"), ("b/d/two", "x/d/one")],
            &[("a/d/one", "x"), ("b", "x")],
            &[("a", "x"), ("b/d/two", "x/d")],
            // Through a link: the place would be in another directory.
            &[("a", "x"), ("b/d/two", "x/d/link/two")],
        ];
        for list in cases {
            let out = tempfile::tempdir().unwrap();
            let error = collect(&copies(root.path(), list), out.path()).unwrap_err();
            assert!(matches!(error, CollectError::Collision { .. }), "{list:?}: {error}");
        }
        let out = tempfile::tempdir().unwrap();
        let error = collect(&copies(root.path(), cases[0]), out.path()).unwrap_err().to_string();
        assert!(error.contains("a/d/one") && error.contains("b/d/two"), "{error}");
    }

    #[test]
    fn what_is_not_there_or_no_file_is_named() {
        let root = sources();
        let out = tempfile::tempdir().unwrap();
        for missing in ["none", "dangling"] {
            let error = collect(&copies(root.path(), &[(missing, "x")]), out.path()).unwrap_err();
            assert!(matches!(error, CollectError::Missing { .. }), "{error}");
        }
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("a/socket")).unwrap();
        let error = collect(&copies(root.path(), &[("a", "x")]), out.path()).unwrap_err();
        assert!(matches!(&error, CollectError::Special { path } if path.ends_with("a/socket")), "{error}");
    }
}
