//! The tree that is patched: read below its root without following a link, changed in memory, and
//! written at the end, each file by a rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::PatchError;
use super::git_blob_id;
use crate::pins::RelativePath;

/// What a plain file is, as far as git knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// A directory, and the files that patches have read and changed so far.
#[derive(Debug)]
pub struct Overlay {
    root: PathBuf,
    files: BTreeMap<RelativePath, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// On disk.
    original: Option<Content>,
    /// All mode bits on disk; of a new file, what git gives it.
    mode: u32,
    /// After the patches so far.
    current: Option<Content>,
}

impl Entry {
    fn is_changed(&self) -> bool {
        self.original != self.current
    }

    /// The mode bits to write: the old ones, with what the patch says of execution.
    fn new_mode(&self, executable: bool) -> u32 {
        match &self.original {
            Some(original) if original.executable == executable => self.mode,
            // Whoever may read may execute, as a checkout does it.
            _ if executable => self.mode | (self.mode & 0o444) >> 2,
            _ => self.mode & !0o111,
        }
    }
}

impl Overlay {
    /// The directory `root` as it is.
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), files: BTreeMap::new() }
    }

    /// The file at `path` as the patches so far have left it; nothing when there is none.
    pub fn read(&mut self, patch: &str, path: &RelativePath) -> Result<Option<Content>, PatchError> {
        if let Some(entry) = self.files.get(path) {
            return Ok(entry.current.clone());
        }
        let metadata = self.look_along(patch, path)?;
        let (original, mode) = match metadata {
            None => (None, 0o644),
            Some(metadata) => {
                let mode = metadata.permissions().mode() & 0o7777;
                let place = self.place(path);
                let bytes = fs::read(&place).map_err(|source| failed("read", &place, source))?;
                (Some(Content { bytes, executable: mode & 0o100 != 0 }), mode)
            }
        };
        self.files.insert(path.clone(), Entry { current: original.clone(), original: original.clone(), mode });
        Ok(original)
    }

    /// Changes the file at `path`, which has been read before.
    pub fn put(&mut self, path: &RelativePath, content: Option<Content>) {
        if let Some(entry) = self.files.get_mut(path) {
            entry.current = content;
        }
    }

    /// Up to three files elsewhere in the tree that have the name of `path`.
    pub fn find_namesakes(&self, path: &RelativePath) -> Vec<String> {
        const SHOWN: usize = 3;
        let name = Path::new(path.as_str()).file_name();
        let walk = walkdir::WalkDir::new(&self.root).sort_by_file_name().into_iter().filter_map(Result::ok);
        let named = walk.filter(|entry| entry.file_type().is_file() && Some(entry.file_name()) == name);
        let relative =
            named.filter_map(|entry| Some(entry.path().strip_prefix(&self.root).ok()?.display().to_string()));
        relative.take(SHOWN).collect()
    }

    /// Looks at every part of `path`: directories up to the last, which is a plain file or absent.
    fn look_along(&self, patch: &str, path: &RelativePath) -> Result<Option<fs::Metadata>, PatchError> {
        let blocked = |obstacle: &str, found| PatchError::Obstacle {
            patch: patch.to_owned(),
            path: path.clone(),
            obstacle: obstacle.to_owned(),
            found,
        };
        // An earlier patch of this run may have created what is in the way.
        for (other, _) in self.files.iter().filter(|(_, entry)| entry.current.is_some()) {
            let below = |one: &str, two: &str| one.strip_prefix(two).is_some_and(|rest| rest.starts_with('/'));
            if below(path.as_str(), other.as_str()) {
                return Err(blocked(other.as_str(), "a file"));
            }
            if below(other.as_str(), path.as_str()) {
                return Err(blocked(path.as_str(), "a directory"));
            }
        }
        let ends = path.as_str().match_indices('/').map(|(at, _)| at).chain([path.as_str().len()]);
        for end in ends {
            let part = &path.as_str()[..end];
            let place = self.root.join(part);
            let metadata = match fs::symlink_metadata(&place) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failed("look at", &place, error)),
            };
            let is_last = end == path.as_str().len();
            let kind = metadata.file_type();
            if kind.is_symlink() {
                let (patch, path) = (patch.to_owned(), path.clone());
                return Err(PatchError::Symlink { patch, path, link: part.to_owned() });
            } else if kind.is_dir() && is_last {
                return Err(blocked(part, "a directory"));
            } else if kind.is_file() && !is_last {
                return Err(blocked(part, "a file"));
            } else if !kind.is_file() && !kind.is_dir() {
                return Err(blocked(part, "neither a file nor a directory"));
            } else if is_last {
                return Ok(Some(metadata));
            }
        }
        Ok(None)
    }

    fn place(&self, path: &RelativePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Writes what has changed, and reads it again. After an error the tree is as it was, as far as
    /// the disk allows.
    pub fn write(&self) -> Result<(), PatchError> {
        let mut created = Vec::new();
        let mut swapped = Vec::new();
        let result = self.write_changes(&mut created, &mut swapped);
        if result.is_err() {
            for path in swapped {
                let _ = self.restore(path);
            }
            for directory in created.iter().rev() {
                let _ = fs::remove_dir(directory);
            }
        }
        result
    }

    fn write_changes<'a>(
        &'a self,
        created: &mut Vec<PathBuf>,
        swapped: &mut Vec<&'a RelativePath>,
    ) -> Result<(), PatchError> {
        let changed: Vec<_> = self.files.iter().filter(|(_, entry)| entry.is_changed()).collect();
        // Everything that can fail for want of space is done before the first file is replaced.
        let mut staged = Vec::new();
        for (path, entry) in &changed {
            let place = self.place(path);
            let Some(content) = &entry.current else {
                staged.push((*path, place, None));
                continue;
            };
            self.create_parents(path, created)?;
            let mode = entry.new_mode(content.executable);
            let file = stage(&place, &content.bytes, mode).map_err(|source| failed("write", &place, source))?;
            staged.push((*path, place, Some(file)));
        }
        for (path, place, file) in staged {
            match file {
                Some(file) => file.persist(&place).map(drop).map_err(|error| error.error),
                None => fs::remove_file(&place),
            }
            .map_err(|source| failed("replace", &place, source))?;
            swapped.push(path);
        }
        for (path, entry) in &changed {
            self.check_written(path, entry)?;
        }
        for (path, _) in changed.iter().filter(|(_, entry)| entry.current.is_none()) {
            self.remove_empty_parents(path);
        }
        Ok(())
    }

    fn create_parents(&self, path: &RelativePath, created: &mut Vec<PathBuf>) -> Result<(), PatchError> {
        for (end, _) in path.as_str().match_indices('/') {
            let directory = self.root.join(&path.as_str()[..end]);
            match fs::create_dir(&directory) {
                Ok(()) => created.push(directory),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("create", &directory, error)),
            }
        }
        Ok(())
    }

    /// The tree is what is built from, so the tree is what is verified, not what we meant to write.
    fn check_written(&self, path: &RelativePath, entry: &Entry) -> Result<(), PatchError> {
        let place = self.place(path);
        let found = match fs::read(&place) {
            Ok(bytes) => Some(git_blob_id(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("read again", &place, error)),
        };
        if found == entry.current.as_ref().map(|content| git_blob_id(&content.bytes)) {
            return Ok(());
        }
        let changed = io::Error::other("it is not what was written: something else writes to this tree");
        Err(failed("verify", &place, changed))
    }

    /// A directory that a deletion leaves empty goes with it, since git knows no empty directory.
    fn remove_empty_parents(&self, path: &RelativePath) {
        for (end, _) in path.as_str().rmatch_indices('/') {
            if fs::remove_dir(self.root.join(&path.as_str()[..end])).is_err() {
                return;
            }
        }
    }

    fn restore(&self, path: &RelativePath) -> io::Result<()> {
        let place = self.place(path);
        match self.files.get(path) {
            Some(Entry { original: Some(content), mode, .. }) => {
                stage(&place, &content.bytes, *mode)?.persist(&place)?;
                Ok(())
            }
            _ => fs::remove_file(&place),
        }
    }
}

/// A file beside `place`, ready to be renamed to it.
fn stage(place: &Path, bytes: &[u8], mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let directory = place.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".patched-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    Ok(file)
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> PatchError {
    PatchError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_half_way_leaves_the_tree_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::write(at("a"), "one\n").unwrap();
        fs::write(at("gone"), "one\n").unwrap();
        fs::write(at("z"), "one\n").unwrap();
        fs::set_permissions(at("a"), PermissionsExt::from_mode(0o751)).unwrap();
        let mut overlay = Overlay::of(root.path());
        let new = Content { bytes: b"two\n".to_vec(), executable: true };
        for (path, content) in [("a", Some(&new)), ("d/e/new", Some(&new)), ("gone", None), ("z", Some(&new))] {
            let path = path.parse().unwrap();
            overlay.read("p", &path).unwrap();
            overlay.put(&path, content.cloned());
        }
        // What is written last cannot be replaced any more.
        fs::remove_file(at("z")).unwrap();
        fs::create_dir(at("z")).unwrap();
        let error = overlay.write().unwrap_err();
        assert!(matches!(&error, PatchError::Io { action: "replace", path, .. } if path.ends_with("z")), "{error}");
        assert_eq!(fs::read(at("a")).unwrap(), b"one\n");
        assert_eq!(fs::metadata(at("a")).unwrap().permissions().mode() & 0o7777, 0o751);
        assert_eq!(fs::read(at("gone")).unwrap(), b"one\n");
        let mut names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "gone", "z"]);
    }
}
