//! A place with a library, a browser module and a browser to try them with.
#![expect(clippy::disallowed_methods, reason = "the program under test is started here")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rebuild_model::artifact::encoding::encode;
use rebuild_model::interrupt::Interrupt;
use rebuild_model::manifest::{Entries, Entry, Manifest};
use rebuild_model::pins::{Encoding, RelativePath};
use serde_json::Value;
use tempfile::TempDir;

/// The manifest's name in a lab.
pub const MANIFEST: &str = "manifest.json";

/// A directory and what runs in it.
pub struct Lab(TempDir);

/// What the program gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The report of the only library.
    #[track_caller]
    pub fn report(&self) -> Value {
        let reports: Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(reports["libraries"].as_array().unwrap().len(), 1);
        assert_eq!(reports["outcome"], reports["libraries"][0]["outcome"]);
        reports["libraries"][0].clone()
    }

    /// How the check called `name` came out, and what it says.
    #[track_caller]
    pub fn check(&self, name: &str) -> (String, String) {
        let report = self.report();
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name);
        let check = found.unwrap_or_else(|| panic!("no check {name}:\n{report:#}"));
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        (text("outcome"), text("detail"))
    }
}

impl Lab {
    /// With the files, of which the library is none that a browser could use.
    pub fn new() -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        lab.write("library.wasm", "library");
        lab.write("tvmjs.cjs", "module");
        std::fs::create_dir(lab.path("bin")).unwrap();
        std::fs::create_dir(lab.path("tmp")).unwrap();
        lab
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(path), content).unwrap();
    }

    /// A shell script as the browser.
    pub fn script(&self, script: &str) {
        self.write("bin/chromium", format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(self.path("bin/chromium"), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A browser that knows `page` by heart.
    pub fn fake(&self, page: &Value) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/smoke/browser.py");
        std::fs::copy(source, self.path("browser.py")).unwrap();
        self.write("page.json", page.to_string());
        self.script(&format!("exec /usr/bin/env python3 {}", self.path("browser.py").display()));
    }

    /// The browser of this host, which these tests need.
    pub fn real(&self) {
        let found = ["chromium", "google-chrome", "chromium-browser"].iter().find_map(|name| which::which(name).ok());
        symlink(found.expect("a Chromium on PATH; .ci/set-up installs one"), self.path("bin/chromium")).unwrap();
    }

    /// A manifest of these artifacts, by path, role and content; as an argument it takes the place of the library.
    pub fn deliver(&self, artifacts: &[(&str, &str, &str)]) {
        let mut entries = Entries::new();
        for (path, role, content) in artifacts {
            self.write("plain", content);
            std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
            let encoding = if Path::new(path).extension().is_some_and(|extension| extension == "gz") {
                Encoding::Gzip
            } else {
                Encoding::Identity
            };
            let encoded = encode(&self.path("plain"), &self.path(path), encoding, 6, &Interrupt::default()).unwrap();
            let path: RelativePath = path.parse().unwrap();
            entries.insert(path.clone(), Entry::new(&path, *role, &encoded));
        }
        self.write(MANIFEST, Manifest::fresh(&entries));
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rebuild-model"));
        command.arg("smoke");
        if !more.contains(&MANIFEST) {
            command.args(["--library", "library.wasm", "--browser-module", "tvmjs.cjs"]);
        }
        if !more.contains(&"--format") {
            command.args(["--format", "json"]);
        }
        command.args(more).current_dir(self.0.path()).env_clear();
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.env("PATH", path).env("TMPDIR", self.path("tmp")).env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn smoke(&self, more: &[&str]) -> Ran {
        let ran = Ran::new(self.command(more).output().unwrap());
        let left: Vec<_> = std::fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        ran
    }

    /// The same where there is no other browser than the test's.
    pub fn smoke_alone(&self, more: &[&str]) -> Ran {
        Ran::new(self.command(more).env("PATH", self.path("bin")).output().unwrap())
    }

    pub fn start(&self, more: &[&str]) -> Child {
        self.command(more).spawn().unwrap()
    }

    /// The ids in the file that a hanging browser leaves.
    #[track_caller]
    pub fn hanging(&self) -> Vec<u32> {
        let read = || std::fs::read_to_string(self.path("hanging")).ok().filter(|text| text.ends_with('\n'));
        let text = wait_for(read);
        text.split_whitespace().map(|id| id.parse().unwrap()).collect()
    }
}

/// Waits for a child that was told to stop.
#[track_caller]
pub fn ended(mut child: Child) -> Ran {
    wait_for(|| child.try_wait().unwrap());
    Ran::new(child.wait_with_output().unwrap())
}

/// What `look` finds at last.
#[track_caller]
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come");
}

/// Whether the process has ended; one that nobody has waited for yet has, too.
pub fn is_gone(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat"))
        .map_or(true, |stat| stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X']))
}

/// The processes whose command line has `word` in it.
pub fn processes_with(word: &str) -> Vec<u32> {
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let has = |id: &u32| {
        let command = std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(word) && !is_gone(*id)
    };
    ids.filter(has).collect()
}
