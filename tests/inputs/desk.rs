//! What a fetch needs around it, in directories of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rebuild_model::exec::input::{InputContext, Patience};
use rebuild_model::interrupt::Interrupt;
use rebuild_model::process::log::StepLog;
use rebuild_model::store::Store;

pub struct Desk {
    root: tempfile::TempDir,
    pub store: Store,
    pub log: StepLog,
    pub interrupt: Interrupt,
    pub offline: bool,
    pub record_unknown: bool,
    pub mirrors: Vec<String>,
}

impl Desk {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["pins", "scratch", "out", "vendor", "programs"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        let store = Store::open(vec![root.path().join("vendor")], root.path().join("cache")).unwrap();
        let log = StepLog::create(&root.path().join("log")).unwrap();
        let interrupt = Interrupt::default();
        Self { root, store, log, interrupt, offline: false, record_unknown: false, mirrors: Vec::new() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn out(&self) -> PathBuf {
        self.path("out")
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A program of the tests' own.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        self.write(&format!("programs/{name}.script"), format!("{script}\n"));
        let path = self.path(&format!("programs/{name}"));
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tool.sh"), &path).unwrap();
        path
    }

    pub fn with<R>(&self, work: impl FnOnce(&InputContext) -> R) -> R {
        let mirrors = |_: &str| self.mirrors.clone();
        let context = InputContext {
            store: &self.store,
            offline: self.offline,
            mirrors: &mirrors,
            pins_directory: &self.path("pins"),
            scratch: &self.path("scratch"),
            record_unknown: self.record_unknown,
            patience: Patience { pause: Duration::ZERO, ..Patience::default() },
            log: &self.log,
            interrupt: &self.interrupt,
        };
        work(&context)
    }

    pub fn log_text(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    /// No half-written file anywhere: not in the output, not in the scratch directory, not in the cache.
    pub fn assert_nothing_left(&self) {
        for directory in ["out", "scratch", "cache"] {
            let files = files_below(&self.path(directory));
            assert!(files.is_empty(), "{directory}: {files:?}");
        }
    }
}

pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        if entry.path().is_dir() && !entry.path().is_symlink() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}
