//! Repositories for the tests, made object by object so that they can hold what `git` would refuse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Oid, Repository, Signature, Time};
use rebuild_model::exec::git::{FetchedRepository, GitContext, GitError, GitReport, HostGit, Retries, fetch};
use rebuild_model::interrupt::Interrupt;
use rebuild_model::mirror::Mirrors;
use rebuild_model::pins::Commit;
use rebuild_model::process::log::StepLog;
use rebuild_model::step::{Checkout, SubmoduleCheckout, Take};
use tempfile::TempDir;

/// What stands in a tree.
pub enum Item {
    File(Vec<u8>),
    Program(Vec<u8>),
    Symlink(&'static str),
    Submodule(Oid),
    Tree(Oid),
    Mode(&'static str, Oid),
}

pub fn file(content: &str) -> Item {
    Item::File(content.into())
}

/// Writes a tree with the entries as they are given, valid or not, in the given order.
pub fn tree(repository: &Repository, items: &[(&str, Item)]) -> Oid {
    let blob = |content: &[u8]| repository.blob(content).unwrap();
    let mut bytes = Vec::new();
    for (name, item) in items {
        let (mode, id) = match item {
            Item::File(content) => ("100644", blob(content)),
            Item::Program(content) => ("100755", blob(content)),
            Item::Symlink(target) => ("120000", blob(target.as_bytes())),
            Item::Submodule(id) => ("160000", *id),
            Item::Tree(id) => ("40000", *id),
            Item::Mode(mode, id) => (*mode, *id),
        };
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        bytes.extend_from_slice(id.as_bytes());
    }
    repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
}

/// Commits `tree` on top of `main`.
pub fn commit(repository: &Repository, tree: Oid) -> Oid {
    let parent = repository.find_reference("refs/heads/main").ok().and_then(|main| main.peel_to_commit().ok());
    let id = write_commit(repository, tree, parent.map(|parent| parent.id()));
    repository.reference("refs/heads/main", id, true, "").unwrap();
    id
}

/// Writes a commit of `tree`, to which no branch leads.
pub fn write_commit(repository: &Repository, tree: Oid, parent: Option<Oid>) -> Oid {
    let author = Signature::new("A", "a@example.org", &Time::new(1_700_000_000, 0)).unwrap();
    let text = format!(
        "tree {tree}\n{}author {author} 1700000000 +0000\ncommitter {author} 1700000000 +0000\n\nChange\n",
        parent.map_or_else(String::new, |parent| format!("parent {parent}\n"))
    );
    repository.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap()
}

pub fn commit_items(repository: &Repository, items: &[(&str, Item)]) -> Oid {
    commit(repository, tree(repository, items))
}

pub fn pin(id: Oid) -> Commit {
    id.to_string().parse().unwrap()
}

pub fn checkout(url: &str, commit: Oid) -> Checkout {
    Checkout { url: url.into(), commit: pin(commit), tree: None, submodules: BTreeMap::new() }
}

/// Adds a pin of a submodule.
pub fn with(mut checkout: Checkout, path: &str, recorded: Oid, take: Take) -> Checkout {
    checkout.submodules.insert(
        path.parse().unwrap(),
        SubmoduleCheckout { recorded: rebuild_model::pins::Recorded::Known(pin(recorded)), take },
    );
    checkout
}

pub const RECORDED: Take = Take::Recorded { url: None };

/// A directory with repositories, and everything a fetch needs.
pub struct Field {
    pub directory: TempDir,
    pub mirrors: Mirrors,
    pub offline: bool,
    pub host_git: Option<HostGit>,
    pub retries: u32,
    pub interrupt: Interrupt,
    pub log: StepLog,
}

impl Field {
    pub fn new() -> Self {
        Self::new_in(&tempfile::env::temp_dir())
    }

    /// On the file system of `place`.
    pub fn new_in(place: &Path) -> Self {
        let directory = tempfile::tempdir_in(place).unwrap();
        for name in ["pins/repositories", "scratch", "out"] {
            std::fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let log = StepLog::create(&directory.path().join("log")).unwrap();
        Self {
            directory,
            mirrors: Mirrors::default(),
            offline: false,
            host_git: None,
            retries: 0,
            interrupt: Interrupt::default(),
            log,
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// A new bare repository at `./repositories/NAME` of the pins directory.
    pub fn repository(&self, name: &str) -> Repository {
        let repository = Repository::init_bare(self.path("pins/repositories").join(name)).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        repository
    }

    pub fn mirror(&mut self, rule: &str) {
        self.mirrors.add(rule, self.directory.path()).unwrap();
    }

    pub fn use_host_git(&mut self) {
        let environment = ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var_os(name).unwrap_or_default()));
        let program = which::which("git").expect("the tests need git");
        self.host_git = Some(HostGit { program, environment: environment.into() });
    }

    pub fn fetch_into(&self, checkout: &Checkout, into: &Path) -> Result<GitReport, GitError> {
        let context = GitContext {
            mirrors: &self.mirrors,
            offline: self.offline,
            base: &self.path("pins"),
            scratch: &self.path("scratch"),
            host_git: self.host_git.as_ref(),
            retries: Retries { count: self.retries, delay: Duration::from_millis(1) },
            log: &self.log,
            interrupt: &self.interrupt,
        };
        let result = fetch(checkout, into, &context);
        let left: Vec<_> = std::fs::read_dir(self.path("scratch")).unwrap().collect();
        assert!(left.is_empty(), "left in scratch: {left:?}");
        result
    }

    /// Fetches into `out/tree`.
    pub fn fetch(&self, checkout: &Checkout) -> Result<GitReport, GitError> {
        self.fetch_into(checkout, &self.path("out/tree"))
    }

    /// Fetches, which must fail and leave nothing.
    pub fn fail(&self, checkout: &Checkout) -> GitError {
        let error = self.fetch(checkout).unwrap_err();
        assert_eq!(std::fs::read_dir(self.path("out")).unwrap().count(), 0, "something was left behind");
        error
    }

    /// What stands at `path` of the fetched tree.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path("out/tree").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The names in the directory at `path` of the fetched tree.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("out/tree").join(path)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub fn paths(report: &GitReport) -> Vec<&str> {
    report.repositories.iter().map(|repository| repository.path.as_str()).collect()
}

pub fn root(report: &GitReport) -> &FetchedRepository {
    &report.repositories[0]
}

/// Three levels: `top` has `libs/mid` has `deep` (and `top` has `extra`). Each repository has an
/// older commit, and urls are relative.
pub struct Nest {
    pub top: Oid,
    pub mid: Oid,
    pub deep: Oid,
    pub extra: Oid,
}

impl Nest {
    pub fn plant(field: &Field) -> Self {
        let deep_repository = field.repository("deep.git");
        commit_items(&deep_repository, &[("deep.txt", file("old\n"))]);
        let deep = commit_items(&deep_repository, &[("deep.txt", file("deep\n"))]);
        let extra = commit_items(&field.repository("extra.git"), &[("extra.txt", file("extra\n"))]);
        let mid_repository = field.repository("mid.git");
        let modules = "[submodule \"deep\"]\n\tpath = deep\n\turl = ../deep.git\n";
        let mid = commit_items(
            &mid_repository,
            &[(".gitmodules", file(modules)), ("deep", Item::Submodule(deep)), ("mid.txt", file("mid\n"))],
        );
        let top_repository = field.repository("top.git");
        commit_items(&top_repository, &[("top.txt", file("old\n"))]);
        let modules = "[submodule \"m\"]\n\tpath = libs/mid\n\turl = ../mid.git\n\
                       [submodule \"extra\"]\n\tpath = extra\n\turl = ../extra.git\n";
        let libs = tree(&top_repository, &[("mid", Item::Submodule(mid))]);
        let top = commit_items(
            &top_repository,
            &[
                (".gitmodules", file(modules)),
                ("extra", Item::Submodule(extra)),
                ("libs", Item::Tree(libs)),
                ("top.txt", file("top\n")),
            ],
        );
        // The pinned commit is no branch's tip.
        commit_items(&top_repository, &[("top.txt", file("newer\n"))]);
        Self { top, mid, deep, extra }
    }

    /// The checkout with every submodule pinned.
    pub fn checkout(&self, url: &str) -> Checkout {
        let checkout = with(checkout(url, self.top), "libs/mid", self.mid, RECORDED);
        with(with(checkout, "libs/mid/deep", self.deep, RECORDED), "extra", self.extra, RECORDED)
    }
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).min_depth(1) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
