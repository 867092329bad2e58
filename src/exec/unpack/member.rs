//! The tree that an archive becomes: names judged, files written, links made last.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{UnpackError, Unpacked};

const BLOCK: usize = 64 * 1024;
/// How many names an error shows.
const SHOWN: usize = 8;

pub(super) struct Tree<'a> {
    pub(super) archive: &'a Path,
    root: &'a Path,
    strip: usize,
    wanted: Wanted,
    limit: u64,
    /// What stands at each path, by parts joined with `/`.
    made: BTreeMap<String, Made>,
    links: Vec<(String, String, String)>,
    /// Some names that exist, for the error when none was asked for.
    names: Vec<String>,
    done: Unpacked,
}

/// Which members are taken: those below one of `only`, or all, but not those below one of `except`.
pub(super) struct Wanted {
    only: Vec<Below>,
    except: Vec<Below>,
}

/// A path that stands for itself and all that is below it, and whether anything was.
struct Below {
    path: String,
    met: bool,
}

impl Below {
    fn covers(&mut self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        let covers = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) || self.path.is_empty();
        self.met |= covers;
        covers
    }
}

impl Wanted {
    pub(super) fn new(only: &[String], except: &[String]) -> Self {
        let list = |paths: &[String]| {
            paths.iter().map(|path| Below { path: path.trim_matches('/').to_owned(), met: false }).collect()
        };
        Self { only: list(only), except: list(except) }
    }

    fn wants(&mut self, path: &str) -> bool {
        // Every one is asked: one member may be below two of them, and both have been met then.
        let covered =
            |list: &mut Vec<Below>| list.iter_mut().filter_map(|below| below.covers(path).then_some(())).count() > 0;
        let inside = self.only.is_empty() || covered(&mut self.only);
        inside && !covered(&mut self.except)
    }

    /// One that nothing in the archive was below.
    fn unmet(&self) -> Option<String> {
        self.only.iter().chain(&self.except).find(|below| !below.met).map(|below| below.path.clone())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Directory,
    File,
    Link,
}

/// A member's place in the tree, judged and wanted.
pub(super) struct Place {
    /// The member's name in the archive.
    member: String,
    /// The path in the tree.
    path: String,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        archive: &'a Path,
        root: &'a Path,
        strip: u32,
        wanted: Wanted,
        limit: u64,
    ) -> Result<Self, UnpackError> {
        std::fs::create_dir_all(root).map_err(|source| UnpackError::write(root, source))?;
        let mut entries = std::fs::read_dir(root).map_err(|source| UnpackError::read(root, source))?;
        if entries.next().is_some() {
            return Err(UnpackError::NotEmpty { path: root.to_owned() });
        }
        Ok(Self {
            archive,
            root,
            strip: strip as usize,
            wanted,
            limit,
            made: BTreeMap::new(),
            links: Vec::new(),
            names: Vec::new(),
            done: Unpacked { files: 0, bytes: 0 },
        })
    }

    /// Judges a member's name. None when the member is not wanted.
    pub(super) fn place(&mut self, name: &[u8]) -> Result<Option<Place>, UnpackError> {
        let member = String::from_utf8_lossy(name).into_owned();
        let refused = |reason| {
            let archive = self.archive.to_owned();
            Err(UnpackError::Name { archive, member: member.clone(), reason })
        };
        let Ok(text) = std::str::from_utf8(name) else { return refused("has a name that is not UTF-8") };
        if text.contains('\0') {
            return refused("has a name with a NUL in it");
        }
        if text.starts_with('/') {
            return refused("has an absolute path");
        }
        if text.split('/').any(|part| part == "..") {
            return refused("has `..` in its path");
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let Some(parts) = parts.get(self.strip..).filter(|parts| !parts.is_empty()) else { return Ok(None) };
        let path = parts.join("/");
        if !self.wanted.wants(&path) {
            if self.names.len() < SHOWN {
                self.names.push(path);
            }
            return Ok(None);
        }
        Ok(Some(Place { member, path }))
    }

    pub(super) fn directory(&mut self, place: &Place) -> Result<(), UnpackError> {
        self.parents(place)?;
        self.make_directory(place, &place.path)
    }

    /// Writes a file of exactly `size` bytes.
    pub(super) fn file(
        &mut self,
        place: &Place,
        executable: bool,
        size: u64,
        mut content: impl Read,
    ) -> Result<(), UnpackError> {
        // Judged by the declared size first, so that no disk is filled with what is refused anyway.
        if self.done.bytes.saturating_add(size) > self.limit {
            return Err(UnpackError::TooLarge { archive: self.archive.to_owned(), limit: self.limit });
        }
        self.leaf(place, Made::File)?;
        let path = self.root.join(&place.path);
        let mode = if executable { 0o755 } else { 0o644 };
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&path).map_err(|source| {
            match source.kind() {
                // On a file system that does not tell upper from lower case.
                io::ErrorKind::AlreadyExists => self.twice(place),
                _ => UnpackError::write(&path, source),
            }
        })?;
        let mut block = vec![0; BLOCK];
        let mut written = 0;
        loop {
            let count = match content.read(&mut block) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.damaged(source)),
            };
            written += count as u64;
            if written > size {
                break;
            }
            file.write_all(&block[..count]).map_err(|source| UnpackError::write(&path, source))?;
        }
        if written != size {
            let (archive, member) = (self.archive.to_owned(), place.member.clone());
            return Err(UnpackError::Size { archive, member, expected: size, found: written });
        }
        // The mode above went through the umask.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        file.set_permissions(permissions).map_err(|source| UnpackError::write(&path, source))?;
        self.done.files += 1;
        self.done.bytes += size;
        Ok(())
    }

    /// Remembers a symbolic link. Its target must be written without detours: `..` only at its
    /// beginning and not beyond the root. Then no chain of links can leave the tree.
    pub(super) fn link(&mut self, place: &Place, target: &[u8]) -> Result<(), UnpackError> {
        let shown = String::from_utf8_lossy(target).into_owned();
        let depth = place.path.split('/').count() - 1;
        let parts: Vec<&str> = shown.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let up = parts.iter().take_while(|part| **part == "..").count();
        let stays = std::str::from_utf8(target).is_ok()
            && !target.is_empty()
            && !target.contains(&0)
            && !shown.starts_with('/')
            && up <= depth
            && !parts[up..].contains(&"..");
        if !stays {
            let (archive, member) = (self.archive.to_owned(), place.member.clone());
            return Err(UnpackError::Link { archive, member, target: shown });
        }
        self.leaf(place, Made::Link)?;
        self.links.push((place.path.clone(), shown, place.member.clone()));
        self.done.files += 1;
        Ok(())
    }

    /// Copies an earlier file of the archive, for a hard link to it.
    pub(super) fn hard_link(&mut self, place: &Place, original: &[u8]) -> Result<(), UnpackError> {
        let target = String::from_utf8_lossy(original).into_owned();
        let original = self.place(original)?.filter(|original| self.made.get(&original.path) == Some(&Made::File));
        let Some(original) = original else {
            let (archive, member) = (self.archive.to_owned(), place.member.clone());
            return Err(UnpackError::Link { archive, member, target });
        };
        let path = self.root.join(&original.path);
        let file = File::open(&path).map_err(|source| UnpackError::read(&path, source))?;
        let metadata = file.metadata().map_err(|source| UnpackError::read(&path, source))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        self.file(place, mode & 0o100 != 0, metadata.len(), file)
    }

    /// Makes the links, and sees that all that was asked for is there.
    pub(super) fn finish(self) -> Result<Unpacked, UnpackError> {
        let asked = self.wanted.unmet();
        let empty = self.made.is_empty().then(|| format!("member below {} leading parts", self.strip));
        if let Some(wanted) = asked.or(empty) {
            let kept = self.made.keys().take(SHOWN.saturating_sub(self.names.len())).cloned();
            let names = self.names.into_iter().chain(kept).collect();
            return Err(UnpackError::Nothing { archive: self.archive.to_owned(), wanted, names });
        }
        for (path, target, _) in &self.links {
            let path = self.root.join(path);
            std::os::unix::fs::symlink(target, &path).map_err(|source| UnpackError::write(&path, source))?;
        }
        Ok(self.done)
    }

    pub(super) fn damaged(&self, source: io::Error) -> UnpackError {
        UnpackError::Damaged { archive: self.archive.to_owned(), source }
    }

    pub(super) fn special(&self, place: &Place, kind: impl Into<String>) -> UnpackError {
        let (archive, member) = (self.archive.to_owned(), place.member.clone());
        UnpackError::Special { archive, member, kind: kind.into() }
    }

    fn twice(&self, place: &Place) -> UnpackError {
        UnpackError::Twice { archive: self.archive.to_owned(), member: place.member.clone() }
    }

    fn leaf(&mut self, place: &Place, made: Made) -> Result<(), UnpackError> {
        self.parents(place)?;
        match self.made.insert(place.path.clone(), made) {
            Some(_) => Err(self.twice(place)),
            None => Ok(()),
        }
    }

    fn parents(&mut self, place: &Place) -> Result<(), UnpackError> {
        let ends: Vec<usize> = place.path.match_indices('/').map(|(at, _)| at).collect();
        ends.into_iter().try_for_each(|end| self.make_directory(place, &place.path[..end]))
    }

    fn make_directory(&mut self, place: &Place, path: &str) -> Result<(), UnpackError> {
        match self.made.insert(path.to_owned(), Made::Directory) {
            Some(Made::Directory) => Ok(()),
            // A file or a link stands where a directory should be.
            Some(_) => Err(self.twice(place)),
            None => {
                let path: PathBuf = self.root.join(path);
                match std::fs::create_dir(&path) {
                    Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Err(self.twice(place)),
                    made => made.map_err(|source| UnpackError::write(&path, source)),
                }
            }
        }
    }
}
