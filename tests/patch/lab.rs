//! A tree to patch, and diffs made by libgit2.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rebuild_model::error::Fault;
use rebuild_model::exec::patch::{AppliedFile, PatchError, apply, parse};
use rebuild_model::pins::{Commit, Images, Recorded, RelativePath};
use rebuild_model::process::log::StepLog;

pub struct Lab {
    directory: tempfile::TempDir,
    log: StepLog,
}

pub type Pinned = BTreeMap<RelativePath, Images>;

impl Lab {
    pub fn with(files: &[(&str, &[u8])]) -> Self {
        Self::below("tree", files)
    }

    /// The tree lies at `place` in the lab's directory.
    pub fn below(place: &str, files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The name the tree is always found by.
        let tree = directory.path().join("here");
        fs::create_dir_all(directory.path().join(place)).unwrap();
        std::os::unix::fs::symlink(place, &tree).unwrap();
        let log = StepLog::create(&directory.path().join("log")).unwrap();
        let lab = Self { directory, log };
        for (path, bytes) in files {
            lab.write(path, bytes);
        }
        lab
    }

    pub fn outside(&self) -> &Path {
        self.directory.path()
    }

    pub fn tree(&self) -> PathBuf {
        fs::canonicalize(self.directory.path().join("here")).unwrap()
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let place = self.tree().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.tree().join(path)).unwrap()
    }

    pub fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.tree().join(path)).unwrap().permissions().mode() & 0o7777
    }

    pub fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.tree().join(path), PermissionsExt::from_mode(mode)).unwrap();
    }

    pub fn notes(&self) -> Vec<String> {
        self.log.notes()
    }

    /// Every path in the tree with its content, its mode and, for a link, its target.
    pub fn snapshot(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let walk = walkdir::WalkDir::new(self.tree()).sort_by_file_name().into_iter().map(Result::unwrap);
        walk.map(|entry| {
            let bytes = if entry.file_type().is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            (entry.path().to_owned(), entry.metadata().unwrap().permissions().mode(), bytes)
        })
        .collect()
    }

    pub fn apply(&self, patch: impl AsRef<[u8]>) -> Result<Vec<AppliedFile>, PatchError> {
        self.apply_all(&[patch.as_ref()])
    }

    pub fn apply_all(&self, patches: &[&[u8]]) -> Result<Vec<AppliedFile>, PatchError> {
        let none = Pinned::new();
        let read = |(at, bytes): (usize, &&[u8])| parse(&format!("p{}", at + 1), bytes);
        let patches: Vec<_> = patches.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let patches: Vec<_> = patches.into_iter().map(|patch| (patch, &none)).collect();
        apply(&self.tree(), &patches, &self.log)
    }

    pub fn apply_pinned(&self, patch: impl AsRef<[u8]>, pinned: &Pinned) -> Result<Vec<AppliedFile>, PatchError> {
        apply(&self.tree(), &[(parse("p1", patch.as_ref())?, pinned)], &self.log)
    }

    /// Applies what must fail, and must leave the tree as it was.
    pub fn refuse(&self, patch: impl AsRef<[u8]>) -> PatchError {
        self.refuse_with(|lab| lab.apply(patch))
    }

    pub fn refuse_with(&self, run: impl FnOnce(&Self) -> Result<Vec<AppliedFile>, PatchError>) -> PatchError {
        let before = self.snapshot();
        let error = run(self).expect_err("the patch must be refused");
        assert_eq!(self.snapshot(), before, "a refused patch has changed the tree");
        error
    }
}

/// The error as a person sees it.
pub fn show(error: &PatchError) -> String {
    let mut text = error.to_string();
    if let Some(detail) = error.detail() {
        assert!(detail.lines().count() <= 40, "the report is too long:\n{detail}");
        text = format!("{text}\n{detail}");
    }
    match error.hint() {
        Some(hint) => format!("{text}\nhint: {hint}"),
        None => text,
    }
}

/// A diff of one file as git writes it, with full ids in its index line.
pub fn diff(path: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    diff_with(path, old, new, |options| {
        options.id_abbrev(40);
    })
}

pub fn diff_with(path: &str, old: &[u8], new: &[u8], set: impl FnOnce(&mut git2::DiffOptions)) -> Vec<u8> {
    let mut options = git2::DiffOptions::new();
    options.force_text(true);
    set(&mut options);
    let path = Path::new(path);
    let mut made = git2::Patch::from_buffers(old, Some(path), new, Some(path), Some(&mut options)).unwrap();
    made.to_buf().unwrap().to_vec()
}

pub fn path(text: &str) -> RelativePath {
    text.parse().unwrap()
}

pub fn pin(text: &str) -> Recorded<Commit> {
    Recorded::Known(text.parse().unwrap())
}

/// `name 1` to `name count`, a line each.
pub fn numbered(name: &str, count: usize) -> String {
    (1..=count).map(|at| [name, " ", &at.to_string(), "\n"].concat()).collect()
}
