//! Files by digest: vendor directories that somebody filled, and a cache that we fill.
//!
//! A pinned input that has vanished from where it was published is still an input when anybody kept
//! a copy, so every fetch asks here first. Nothing is believed because of its name: a file is served
//! only after its bytes have been hashed, and a damaged cache entry is removed.
//!
//! The cache's layout is `sha256/<digest>/<original file name>`. A vendor directory may have that
//! layout too, or hold files anywhere below it. **Invariant**: vendor directories are never written.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::digest::{Digest, hash_file};
use crate::error::{Class, Fault};

/// Vendor directories and the cache.
#[derive(Debug)]
pub struct Store {
    vendors: Vec<PathBuf>,
    cache: PathBuf,
    /// What was hashed in vendor directories, so that no file is hashed again for every question.
    known: Mutex<BTreeMap<PathBuf, (Stamp, Digest)>>,
}

/// Length, and time of the last change, of a hashed file.
type Stamp = (u64, i64, i64);

/// A file with the wanted content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it lies. Read-only to the caller: copy it.
    pub path: PathBuf,
    /// Which directory served it.
    pub from: Shelf,
}

/// A directory of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shelf {
    /// The vendor directory at this path.
    Vendor(PathBuf),
    /// The cache.
    Cache,
}

/// Why the store cannot be used, or does not take a file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A vendor directory is not there.
    #[error("vendor directory {path} is not a directory")]
    NoVendor {
        /// Its path.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot write {path}")]
    Write {
        /// Which path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file that was to be kept is another one.
    #[error("{path} has sha256 {found}, expected {expected}")]
    Other {
        /// The file.
        path: PathBuf,
        /// The digest it should have.
        expected: Digest,
        /// Its digest.
        found: Digest,
    },
}

impl Fault for StoreError {
    fn class(&self) -> Class {
        match self {
            Self::NoVendor { .. } => Class::Usage,
            Self::Write { .. } => Class::Step,
            Self::Other { .. } => Class::PinMismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoVendor { .. } => Some("--vendor names a directory that holds pinned files".into()),
            Self::Write { .. } => Some("choose another cache directory with --cache".into()),
            Self::Other { .. } => None,
        }
    }
}

impl Store {
    /// A store over `vendors`, asked in order, and `cache`, which need not exist yet.
    pub fn open(vendors: Vec<PathBuf>, cache: PathBuf) -> Result<Self, StoreError> {
        if let Some(path) = vendors.iter().find(|path| !path.is_dir()) {
            return Err(StoreError::NoVendor { path: path.clone() });
        }
        Ok(Self { vendors, cache, known: Mutex::default() })
    }

    /// The usual cache directory: `rebuild-model` in `$XDG_CACHE_HOME`, or else in `~/.cache`.
    ///
    /// `variable` looks up an environment variable. A relative `XDG_CACHE_HOME` is ignored, as the
    /// XDG Base Directory Specification asks.
    pub fn usual_cache(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("rebuild-model"))
    }

    /// A file with this digest, hashed just now. `size` in bytes, when known, spares hashing the
    /// vendored files of other sizes. Anything damaged or unreadable on the way goes to `note`.
    pub fn find(&self, digest: &Digest, size: Option<u64>, mut note: impl FnMut(String)) -> Option<Found> {
        self.search(digest, size, &mut note, |candidate| hash_file(candidate).map(|(found, _)| found))
    }

    /// A vendored file that stands where one with this digest should, and the digest that it has.
    pub fn impostor(&self, digest: &Digest) -> Option<(PathBuf, Digest, u64)> {
        let shelved = self.vendors.iter().flat_map(|vendor| shelved(vendor, digest));
        let hashed = |path: PathBuf| hash_file(&path).ok().map(|(found, size)| (path, found, size));
        shelved.filter_map(hashed).find(|(_, found, _)| found != digest)
    }

    /// Copies a file with this digest to `to`, and says which one. The copy itself is hashed: what
    /// the caller gets is right even if the original changes meanwhile.
    pub fn copy_out(
        &self,
        digest: &Digest,
        size: Option<u64>,
        to: &Path,
        mut note: impl FnMut(String),
    ) -> Option<Found> {
        let found = self.search(digest, size, &mut note, |candidate| {
            std::fs::copy(candidate, to)?;
            std::fs::set_permissions(to, PermissionsExt::from_mode(0o644))?;
            hash_file(to).map(|(found, _)| found)
        });
        if found.is_none() {
            let _ = std::fs::remove_file(to);
        }
        found
    }

    /// Keeps a copy of the file at `path` in the cache, under `name`, and gives the copy's path.
    ///
    /// Several processes may insert the same file at once: each renames a whole copy into place.
    pub fn insert(&self, path: &Path, digest: &Digest, name: &str) -> Result<PathBuf, StoreError> {
        let name = Path::new(name).file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| !name.starts_with('.')).unwrap_or("file");
        let directory = self.cache.join("sha256").join(digest.to_string());
        let place = directory.join(name);
        if hash_file(&place).is_ok_and(|(found, _)| found == *digest) {
            return Ok(place);
        }
        let failed = |source| StoreError::Write { path: place.clone(), source };
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let copy = tempfile::Builder::new().prefix(".new-").tempfile_in(&directory).map_err(failed)?;
        std::fs::copy(path, copy.path()).map_err(failed)?;
        std::fs::set_permissions(copy.path(), PermissionsExt::from_mode(0o644)).map_err(failed)?;
        let (found, _) = hash_file(copy.path()).map_err(failed)?;
        if found != *digest {
            return Err(StoreError::Other { path: path.to_owned(), expected: *digest, found });
        }
        copy.persist(&place).map_err(|error| failed(error.error))?;
        Ok(place)
    }

    /// Calls `look` on each candidate until one has the digest. What `look` gives is the content's
    /// digest at the time of asking.
    fn search(
        &self,
        digest: &Digest,
        size: Option<u64>,
        note: &mut dyn FnMut(String),
        look: impl Fn(&Path) -> io::Result<Digest>,
    ) -> Option<Found> {
        for vendor in &self.vendors {
            for path in self.candidates(vendor, digest, size, note) {
                match look(&path) {
                    Ok(found) if found == *digest => {
                        return Some(Found { path, from: Shelf::Vendor(vendor.clone()) });
                    }
                    Ok(found) => {
                        note(format!("ignored {}: its sha256 is {found}, not {digest}", path.display()));
                    }
                    Err(error) => note(format!("ignored {}: {error}", path.display())),
                }
            }
        }
        for path in shelved(&self.cache, digest) {
            match look(&path) {
                Ok(found) if found == *digest => return Some(Found { path, from: Shelf::Cache }),
                Ok(found) => {
                    note(format!("removed a damaged cache entry, {}: its sha256 is {found}", path.display()));
                    let _ = std::fs::remove_file(&path);
                }
                Err(error) => note(format!("ignored cache entry {}: {error}", path.display())),
            }
        }
        None
    }

    /// The vendored files that have, or claim to have, the digest.
    fn candidates(
        &self,
        vendor: &Path,
        digest: &Digest,
        size: Option<u64>,
        note: &mut dyn FnMut(String),
    ) -> Vec<PathBuf> {
        let mut paths = shelved(vendor, digest);
        if !paths.is_empty() {
            return paths;
        }
        for entry in walkdir::WalkDir::new(vendor).follow_links(true).sort_by_file_name() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    note(format!("cannot look into vendor directory {}: {error}", vendor.display()));
                    continue;
                }
            };
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() || size.is_some_and(|size| size != metadata.len()) {
                continue;
            }
            let stamp = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
            match self.digest_of(entry.path(), stamp) {
                Ok(found) if found == *digest => paths.push(entry.into_path()),
                Ok(_) => {}
                Err(error) => note(format!("cannot read vendored {}: {error}", entry.path().display())),
            }
        }
        paths
    }

    fn digest_of(&self, path: &Path, stamp: Stamp) -> io::Result<Digest> {
        let known = |store: &Self| {
            let known = store.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(path).filter(|(then, _)| *then == stamp).map(|(_, digest)| *digest)
        };
        if let Some(digest) = known(self) {
            return Ok(digest);
        }
        let (digest, _) = hash_file(path)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), (stamp, digest));
        Ok(digest)
    }
}

impl std::fmt::Display for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vendor(path) => write!(f, "vendor directory {}", path.display()),
            Self::Cache => f.write_str("cache"),
        }
    }
}

/// The files in `root`'s directory for `digest`; names that begin with a dot are copies in the making.
fn shelved(root: &Path, digest: &Digest) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("sha256").join(digest.to_string())) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(_: String) {}

    #[test]
    fn the_cache_gives_back_what_it_was_given() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
        let file = root.path().join("a.bin");
        std::fs::write(&file, "content").unwrap();
        let digest = Digest::of(b"content");
        assert_eq!(store.find(&digest, None, quiet), None);
        let place = store.insert(&file, &digest, "a.bin").unwrap();
        assert!(place.ends_with(format!("sha256/{digest}/a.bin")));
        assert_eq!(store.find(&digest, Some(7), quiet), Some(Found { path: place, from: Shelf::Cache }));
        assert!(matches!(store.insert(&file, &Digest::of(b"x"), "a"), Err(StoreError::Other { .. })));
        assert_eq!(store.find(&Digest::of(b"x"), None, quiet), None);
    }

    #[test]
    fn a_damaged_cache_entry_is_noted_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
        let file = root.path().join("a.bin");
        std::fs::write(&file, "content").unwrap();
        let digest = Digest::of(b"content");
        let place = store.insert(&file, &digest, "a.bin").unwrap();
        std::fs::write(&place, "c0ntent").unwrap();
        let mut notes = Vec::new();
        assert_eq!(store.copy_out(&digest, None, &root.path().join("copy"), |note| notes.push(note)), None);
        assert!(notes[0].contains("damaged"), "{notes:?}");
        assert!(!place.exists() && !root.path().join("copy").exists());
        assert_eq!(store.insert(&file, &digest, "a.bin").unwrap(), place);
    }

    #[test]
    fn vendored_files_serve_by_content_wherever_they_lie_and_are_never_touched() {
        let root = tempfile::tempdir().unwrap();
        let vendor = root.path().join("vendor");
        let digest = Digest::of(b"content");
        std::fs::create_dir_all(vendor.join("deep/er")).unwrap();
        std::fs::write(vendor.join("deep/er/any name.whl"), "content").unwrap();
        std::fs::write(vendor.join("same-size"), "7 bytes").unwrap();
        let store = Store::open(vec![vendor.clone()], root.path().join("cache")).unwrap();
        let copy = root.path().join("copy");
        let found = store.copy_out(&digest, Some(7), &copy, quiet).unwrap();
        assert_eq!(found.path, vendor.join("deep/er/any name.whl"));
        assert_eq!(std::fs::read(&copy).unwrap(), b"content");
        assert_eq!(store.find(&digest, None, quiet), Some(found));
        assert_eq!(store.find(&digest, Some(8), quiet), None);

        let shelf = vendor.join("sha256").join(Digest::of(b"other").to_string());
        std::fs::create_dir_all(&shelf).unwrap();
        std::fs::write(shelf.join("other"), "0ther").unwrap();
        let mut notes = Vec::new();
        assert_eq!(store.find(&Digest::of(b"other"), None, |note| notes.push(note)), None);
        assert_eq!(notes.len(), 1);
        let impostor = (shelf.join("other"), Digest::of(b"0ther"), 5);
        assert_eq!(store.impostor(&Digest::of(b"other")), Some(impostor));
        assert_eq!(store.impostor(&digest), None);
        assert!(shelf.join("other").exists());
        assert!(!root.path().join("cache").exists());
    }

    #[test]
    fn a_vendored_file_that_changed_since_it_was_hashed_is_not_served() {
        let root = tempfile::tempdir().unwrap();
        let vendor = root.path().join("vendor");
        std::fs::create_dir(&vendor).unwrap();
        std::fs::write(vendor.join("a"), "content").unwrap();
        let store = Store::open(vec![vendor.clone()], root.path().join("cache")).unwrap();
        let digest = Digest::of(b"content");
        let time = std::fs::metadata(vendor.join("a")).unwrap().modified().unwrap();
        assert!(store.find(&digest, None, quiet).is_some());
        std::fs::write(vendor.join("a"), "c0ntent").unwrap();
        std::fs::File::options().write(true).open(vendor.join("a")).unwrap().set_modified(time).unwrap();
        assert_eq!(store.find(&digest, None, quiet), None);
    }

    #[test]
    fn concurrent_inserts_leave_one_whole_file() {
        let root = tempfile::tempdir().unwrap();
        let content = vec![7; 300_000];
        let digest = Digest::of(&content);
        let file = root.path().join("a.bin");
        std::fs::write(&file, &content).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
                    store.insert(&file, &digest, "a.bin").unwrap();
                    // Whatever another one is doing, a reader sees a whole file or none.
                    assert!(store.find(&digest, None, |note| panic!("{note}")).is_some());
                });
            }
        });
        let shelf = root.path().join("cache/sha256").join(digest.to_string());
        assert_eq!(std::fs::read_dir(shelf).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_vendor_directory_is_an_error_and_names_are_kept_inside() {
        let root = tempfile::tempdir().unwrap();
        let missing = Store::open(vec![root.path().join("no")], root.path().join("cache"));
        assert!(matches!(missing, Err(StoreError::NoVendor { .. })));
        let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
        let file = root.path().join("a.bin");
        std::fs::write(&file, "content").unwrap();
        let place = store.insert(&file, &Digest::of(b"content"), "../../../.ssh").unwrap();
        assert!(place.ends_with("file") && place.starts_with(root.path().join("cache/sha256")));
    }

    #[test]
    fn the_usual_cache_is_in_an_absolute_place() {
        let with = |xdg: &'static str, home: &'static str| {
            Store::usual_cache(|name| Some(if name == "HOME" { home } else { xdg }.into()))
        };
        assert_eq!(with("/x", "/h"), Some("/x/rebuild-model".into()));
        assert_eq!(with("x", "/h"), Some("/h/.cache/rebuild-model".into()));
        assert_eq!(with("", ""), None);
    }
}
