//! Keeping what was fetched: the objects of the pinned commits, in bare repositories from which they can
//! be fetched again, by this program or by any git.
//!
//! A repository holds a pack for each commit, without history, and a branch that is called as the
//! commit. What is written depends on the objects alone: no time, no configuration of the host.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use git2::{Oid, Repository, RepositoryOpenFlags};

use super::listing::{Listing, Unlisted};
use super::{GitError, library};
use crate::digest::Digest;
use crate::interrupt::Interrupt;
use crate::pins::Commit;

/// What a kept repository is configured with. As the large hosts do: any commit can be fetched by its id.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[uploadpack]\n\tallowAnySHA1InWant = true\n";

/// Keeps commits below a directory.
pub(super) struct Keeper<'a> {
    root: &'a Path,
    /// Sibling submodules may be of one repository.
    lock: Mutex<()>,
}

/// The directory, below the one for all, of the repository that is published at `url`.
pub fn place_of(url: &str) -> String {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let plain: String =
        last.trim_end_matches(".git").chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    format!("{}-{}.git", plain.trim_start_matches('.'), Digest::of(url.as_bytes()).short())
}

impl<'a> Keeper<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, lock: Mutex::default() }
    }

    /// Keeps `commit`, all of whose tree is in `repository`.
    pub(super) fn keep(&self, repository: &Repository, url: &str, commit: &Commit) -> Result<(), GitError> {
        let _turn = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.root.join(place_of(url));
        let branch = place.join("refs/heads").join(commit.as_str());
        if branch.exists() {
            return Ok(());
        }
        let packs = make_layout(&place).map_err(|source| GitError::Io { path: place.clone(), source })?;
        pack(repository, commit, &packs).map_err(|source| GitError::Scratch { path: place.clone(), source })?;
        let write = || {
            // Whose parents are not there: git-shallow's format, a commit in a line.
            let mut known = fs::read_to_string(place.join("shallow")).unwrap_or_default();
            known.push_str(commit.as_str());
            let mut lines: Vec<&str> = known.lines().collect();
            lines.sort_unstable();
            fs::write(place.join("shallow"), lines.join("\n") + "\n")?;
            // Last, since it says that all of it is there.
            fs::File::create(&branch)?.write_all(format!("{commit}\n").as_bytes())
        };
        write().map_err(|source| GitError::Io { path: place.clone(), source })
    }
}

/// Whether the repository at `place`, which was kept by an earlier run, still holds all of `commit`; gives the
/// commit's tree, or what is wrong. Every object is held against its id.
pub fn check_kept(place: &Path, commit: &Commit, interrupt: &Interrupt) -> Result<Result<Commit, String>, GitError> {
    library::isolate()?;
    interrupt.check()?;
    if fs::read(place.join("config")).is_ok_and(|config| config != CONFIG.as_bytes()) {
        return Ok(Err("its configuration was edited".into()));
    }
    let open = || Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, [] as [&str; 0]);
    let repository = match open() {
        Ok(repository) => repository,
        Err(error) => return Ok(Err(error.message().to_owned())),
    };
    let read = || {
        let listing = Listing::read(&repository, commit)?;
        listing.read_files(&repository, interrupt)?;
        Ok(listing.tree)
    };
    Ok(match read() {
        Ok(tree) => Ok(tree),
        Err(Unlisted::Interrupted(interrupted)) => return Err(interrupted.into()),
        Err(Unlisted::NoCommit) => Err(format!("commit {commit} is not in it")),
        Err(Unlisted::Object { object, source }) => Err(match source {
            Some(source) => format!("object {object} of commit {commit} is damaged: {}", source.message()),
            None => format!("object {object} of commit {commit} is missing"),
        }),
        Err(Unlisted::File { path, object, source }) => {
            Err(format!("object {object}, {path} in commit {commit}, is damaged: {}", source.message()))
        }
        Err(Unlisted::Unsafe { path, reason }) => Err(format!("{path} in commit {commit}: {reason}")),
    })
}

/// Makes what a bare repository consists of, and gives the directory of its packs.
fn make_layout(place: &Path) -> std::io::Result<PathBuf> {
    let packs = place.join("objects/pack");
    for directory in [&packs, &place.join("objects/info"), &place.join("refs/heads"), &place.join("refs/tags")] {
        fs::create_dir_all(directory)?;
    }
    fs::write(place.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(place.join("config"), CONFIG)?;
    Ok(packs)
}

fn pack(repository: &Repository, commit: &Commit, packs: &Path) -> Result<(), git2::Error> {
    let mut builder = repository.packbuilder()?;
    // More threads find other deltas.
    builder.set_threads(1);
    builder.insert_commit(Oid::from_str(commit.as_str())?)?;
    builder.write(packs, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_have_names_that_can_be_read_and_that_differ() {
        let (one, other) = (place_of("https://a.example/tvm.git"), place_of("https://b.example/tvm"));
        assert!(one.starts_with("tvm-") && other.starts_with("tvm-") && one != other);
        for url in ["git@a.example:x/..", "./", "..", "https://a.example/a b\n.git"] {
            let name = place_of(url);
            assert!(!name.starts_with('.') && !name.contains(['/', ' ', '\n']), "{name}");
        }
    }
}
