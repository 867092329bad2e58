//! Writing a tree to disk: blobs as they are, the executable bit, symlinks, nothing else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use git2::Repository;

use super::GitError;
use super::listing::{Kind, Listing};
use crate::interrupt::Interrupt;

/// How many colliding pairs an error names.
const SHOWN_PAIRS: usize = 5;

/// An error when the file system of `scratch` would write two paths of `listing` to one file.
/// `shown` names the repository.
pub(super) fn check_collisions(listing: &Listing, shown: &str, scratch: &Path) -> Result<(), GitError> {
    if !ignores_case(scratch).map_err(|source| GitError::Io { path: scratch.to_owned(), source })? {
        return Ok(());
    }
    let pairs = find_collisions(listing);
    if pairs.is_empty() { Ok(()) } else { Err(GitError::Collision { path: shown.to_owned(), pairs }) }
}

fn ignores_case(directory: &Path) -> io::Result<bool> {
    let probe = tempfile::Builder::new().prefix("Probe-").tempfile_in(directory)?;
    let name = probe.path().file_name().unwrap_or_default().to_string_lossy().replacen("Probe-", "pROBE-", 1);
    Ok(directory.join(name).exists())
}

fn find_collisions(listing: &Listing) -> Vec<String> {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut pairs = Vec::new();
    for entry in &listing.entries {
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        if let Some(twin) = seen.insert(path.to_lowercase(), path.clone()) {
            pairs.push(format!("{twin} and {path}"));
        }
    }
    pairs.truncate(SHOWN_PAIRS);
    pairs
}

/// Makes the tree's directories below `into`, which is made unless it exists; those of submodules too.
pub(super) fn make_directories(listing: &Listing, into: &Path) -> Result<(), GitError> {
    // A submodule's directory was made with its parent's tree.
    fs::create_dir_all(into).map_err(|source| GitError::Io { path: into.to_owned(), source })?;
    for entry in &listing.entries {
        if matches!(entry.kind, Kind::Directory | Kind::Submodule) {
            let path = into.join(OsStr::from_bytes(&entry.path));
            fs::create_dir(&path).map_err(|source| GitError::Io { path, source })?;
        }
    }
    Ok(())
}

/// Writes the tree's files and symlinks into its directories. Every one of them must be new.
pub(super) fn write_files(
    repository: &Repository,
    listing: &Listing,
    into: &Path,
    interrupt: &Interrupt,
) -> Result<(), GitError> {
    for entry in &listing.entries {
        interrupt.check()?;
        let path = into.join(OsStr::from_bytes(&entry.path));
        let failed = |source| GitError::Io { path: path.clone(), source };
        let blob = || {
            repository.find_blob(entry.id).map_err(|source| GitError::Object {
                path: String::from_utf8_lossy(&entry.path).into_owned(),
                object: entry.id.to_string(),
                source,
            })
        };
        match entry.kind {
            Kind::Directory | Kind::Submodule => {}
            Kind::File { executable } => {
                let mode = if executable { 0o755 } else { 0o644 };
                let blob = blob()?;
                let file = File::options().write(true).create_new(true).mode(mode).open(&path);
                file.and_then(|mut file| file.write_all(blob.content())).map_err(failed)?;
            }
            Kind::Symlink => symlink(OsStr::from_bytes(blob()?.content()), &path).map_err(failed)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::git::listing::Entry;

    #[test]
    fn paths_that_differ_in_case_only_are_named() {
        let entry =
            |path: &str| Entry { path: path.into(), id: git2::Oid::ZERO_SHA1, kind: Kind::File { executable: false } };
        let listing = Listing {
            tree: "0".repeat(40).parse().unwrap(),
            entries: ["README", "src", "src/a.h", "src/A.h", "\u{e9}", "\u{c9}", "other"].map(entry).into(),
            links: Vec::new(),
        };
        assert_eq!(find_collisions(&listing), ["src/a.h and src/A.h", "\u{e9} and \u{c9}"]);
    }

    #[test]
    fn the_probe_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let upper = directory.path().join("X");
        File::create(&upper).unwrap();
        assert_eq!(ignores_case(directory.path()).unwrap(), directory.path().join("x").exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
