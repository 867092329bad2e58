//! Everything that a commit's tree names, read and checked before anything is written.

use std::collections::BTreeSet;

use git2::{ErrorCode, Oid, Repository};

use crate::interrupt::{Interrupt, Interrupted};
use crate::pins::Commit;

/// A commit's tree, flat.
#[derive(Debug)]
pub(super) struct Listing {
    /// The tree's id.
    pub(super) tree: Commit,
    /// All entries; a directory stands before what is in it.
    pub(super) entries: Vec<Entry>,
    /// The gitlinks, by path.
    pub(super) links: Vec<(String, Commit)>,
}

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its path from the tree's root, as bytes: git does not say that paths are UTF-8.
    pub(super) path: Vec<u8>,
    pub(super) id: Oid,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File { executable: bool },
    Symlink,
    Submodule,
}

/// Why there is no listing.
#[derive(Debug)]
pub(super) enum Unlisted {
    /// The commit is not in the repository.
    NoCommit,
    /// An object is missing or damaged: another repository may have it.
    Object { object: String, source: Option<git2::Error> },
    /// A file's object is damaged, or is not the one that its id speaks of.
    File { path: String, object: String, source: git2::Error },
    /// An entry that must not be written.
    Unsafe { path: String, reason: &'static str },
    /// The run was interrupted.
    Interrupted(Interrupted),
}

/// A git id as the pins have it. It fails for no SHA-1 id.
fn to_commit(id: Oid) -> Result<Commit, Unlisted> {
    id.to_string().parse().map_err(|_| Unlisted::Object { object: id.to_string(), source: None })
}

impl Listing {
    /// Reads the tree of `commit` and sees that every object of it is there.
    pub(super) fn read(repository: &Repository, commit: &Commit) -> Result<Self, Unlisted> {
        let unreadable = |id: Oid| move |source| Unlisted::Object { object: id.to_string(), source: Some(source) };
        let id = Oid::from_str(commit.as_str()).map_err(|_| Unlisted::NoCommit)?;
        let tree = match repository.find_commit(id) {
            Ok(commit) => commit.tree_id(),
            Err(error) if error.code() == ErrorCode::NotFound => return Err(Unlisted::NoCommit),
            Err(error) => return Err(unreadable(id)(error)),
        };
        let objects = repository.odb().map_err(unreadable(id))?;
        let mut listing = Self { tree: to_commit(tree)?, entries: Vec::new(), links: Vec::new() };
        let mut waiting = vec![(Vec::new(), tree)];
        while let Some((parent, id)) = waiting.pop() {
            let tree = repository.find_tree(id).map_err(unreadable(id))?;
            let mut names = BTreeSet::new();
            for entry in &tree {
                let name = entry.name_bytes();
                let mut path: Vec<u8> = parent.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
                let refused = |reason| Unlisted::Unsafe { path: String::from_utf8_lossy(&path).into_owned(), reason };
                find_danger(name).map_or(Ok(()), |reason| Err(refused(reason)))?;
                // One name for a symlink and a directory would lead what is in the directory astray.
                if !names.insert(name.to_vec()) {
                    return Err(refused("the name stands twice in its directory"));
                }
                let kind = match entry.filemode_raw() {
                    0o040_000 => Kind::Directory,
                    0o100_644 | 0o100_664 => Kind::File { executable: false },
                    0o100_755 => Kind::File { executable: true },
                    0o120_000 => Kind::Symlink,
                    0o160_000 => Kind::Submodule,
                    _ => return Err(refused("its mode is none of git's")),
                };
                match kind {
                    Kind::Directory => waiting.push((path.clone(), entry.id())),
                    Kind::Submodule => {
                        let text =
                            std::str::from_utf8(&path).map_err(|_| refused("a submodule's path is not UTF-8"))?;
                        listing.links.push((text.to_owned(), to_commit(entry.id())?));
                    }
                    Kind::File { .. } | Kind::Symlink if !objects.exists(entry.id()) => {
                        return Err(Unlisted::Object { object: entry.id().to_string(), source: None });
                    }
                    Kind::File { .. } | Kind::Symlink => {}
                }
                listing.entries.push(Entry { path, id: entry.id(), kind });
            }
        }
        listing.links.sort();
        Ok(listing)
    }

    /// Reads every file, which libgit2 holds against its id: while another place can still be asked.
    pub(super) fn read_files(&self, repository: &Repository, interrupt: &Interrupt) -> Result<(), Unlisted> {
        for entry in &self.entries {
            interrupt.check().map_err(Unlisted::Interrupted)?;
            if matches!(entry.kind, Kind::File { .. } | Kind::Symlink) {
                repository.find_blob(entry.id).map_err(|source| Unlisted::File {
                    path: String::from_utf8_lossy(&entry.path).into_owned(),
                    object: entry.id.to_string(),
                    source,
                })?;
            }
        }
        Ok(())
    }
}

/// Why `name` must not become a file name.
///
/// Names that some file system takes for `.git` are refused on every one, as git itself does
/// (`core.protectHFS`, `core.protectNTFS`): what is checked out may be copied to another.
fn find_danger(name: &[u8]) -> Option<&'static str> {
    if name.is_empty() || name == b"." || name == b".." {
        return Some("it leads out of its directory");
    }
    if name.contains(&b'/') || name.contains(&0) {
        return Some("a name has a separator in it");
    }
    // HFS+ ignores these code points when it compares names.
    let ignored =
        |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text: String = String::from_utf8_lossy(name).chars().filter(|&c| !ignored(c)).collect();
    // NTFS ends a name at a colon, drops trailing dots and spaces, and gives `.git` the short name `git~1`.
    for part in text.split('\\') {
        let part = part.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_ascii_lowercase();
        if part == ".git" || part == "git~1" {
            return Some("git would take it for a repository of its own");
        }
        if part.is_empty() && text.contains('\\') && part != text {
            return Some("it leads out of its directory where `\\` is a separator");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_names_are_found() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git ",
            ".git. .",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\\config",
            "..\\x",
            "\\x",
        ] {
            assert!(find_danger(name.as_bytes()).is_some(), "{name:?}");
        }
        for name in [".gitignore", ".gitmodules", ".github", "git", "git~", "a.git", "...a", "a\\b", "C:x", "\u{e9}"] {
            assert_eq!(find_danger(name.as_bytes()), None, "{name:?}");
        }
        assert!(find_danger(b"a\0b").is_some());
        assert_eq!(find_danger(b"\xff\xfe"), None);
    }
}
