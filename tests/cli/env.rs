//! One environment for every test of the program: private directories, tools of the test's own, a
//! `PATH` with nothing else on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rebuild_model::digest::Digest;
use serde_json::Value;
use tempfile::TempDir;

pub struct TestEnv {
    root: TempDir,
    variables: BTreeMap<String, String>,
}

/// What a run of the program gave, with the paths and digests of the moment taken out.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Standard output as it was.
    pub raw: String,
}

impl Ran {
    /// Asserts the exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.raw).unwrap_or_else(|error| panic!("{error}:\n{}", self.raw))
    }
}

impl TestEnv {
    pub fn new() -> Self {
        let root = tempfile::tempdir_in(quick_directory()).unwrap();
        for directory in ["home", "config", "bin", "site", "vendor", "tmp"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        let mut env = Self { root, variables: BTreeMap::new() };
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("TMPDIR", "tmp"),
            ("PATH", "bin"),
        ] {
            env.set(name, &env.path(directory).display().to_string());
        }
        env
    }

    /// An environment variable of the program.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// The same as text, for arguments and scripts.
    pub fn text(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Replaces `from` in a file, where it must stand.
    #[track_caller]
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{from} does not stand in {path}:\n{text}");
        self.write(path, text.replace(from, to));
    }

    /// Puts a program on `PATH` that does what `script` says.
    pub fn tool(&self, name: &str, script: &str) {
        self.write(&format!("bin/{name}.script"), format!("{script}\n"));
        let path = self.path(&format!("bin/{name}"));
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tool.sh"), &path).unwrap();
    }

    /// Lets a tool do `first` before what it does otherwise. Its program file stays what it is.
    pub fn before(&self, tool: &str, first: &str) {
        let path = format!("bin/{tool}.script");
        let text = self.read(&path);
        self.write(&path, text.replace("# work\n", &format!("# work\n{first}\n")));
    }

    /// Takes back what [`Self::before`] added.
    pub fn before_not(&self, tool: &str, first: &str) {
        self.edit(&format!("bin/{tool}.script"), &format!("{first}\n"), "");
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rebuild-model"));
        command.args(arguments).current_dir(self.path("site")).env_clear().envs(&self.variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(self.command(arguments).output().unwrap())
    }

    /// `build` with what the miniature needs: its vendored inputs and no network.
    pub fn build(&self, more: &[&str]) -> Ran {
        self.run(&build_arguments(more))
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Waits for a build that was told to stop; one that does not is a failure, not a reason to wait.
    #[track_caller]
    pub fn ended(&self, mut child: Child) -> Ran {
        for _ in 0..3000 {
            if child.try_wait().unwrap().is_some() {
                return self.ran(child.wait_with_output().unwrap());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        panic!("the build did not end");
    }

    pub fn ran(&self, output: Output) -> Ran {
        let raw = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Ran { code: output.status.code(), stdout: self.normalize(&raw), stderr: self.normalize(&stderr), raw }
    }

    /// The directory's name and every digest replaced.
    pub fn normalize(&self, text: &str) -> String {
        let text = text.replace(&self.root.path().display().to_string(), "ROOT");
        let mut normal = String::new();
        let mut word = String::new();
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() {
                word.push(c);
                continue;
            }
            let hexadecimal = word.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
            match word.len() {
                64 if hexadecimal => normal.push_str("<sha256>"),
                40 if hexadecimal => normal.push_str("<id>"),
                _ => normal.push_str(&word),
            }
            word.clear();
            normal.push(c);
        }
        normal.trim_end().to_owned()
    }

    /// Every path below a directory with its type, content and time.
    pub fn listing(&self, path: &str) -> BTreeMap<PathBuf, String> {
        let entries = walkdir::WalkDir::new(self.path(path)).into_iter().map(Result::unwrap);
        let describe = |entry: walkdir::DirEntry| {
            let metadata = entry.metadata().unwrap();
            let content =
                std::fs::read(entry.path()).map_or_else(|_| String::new(), |bytes| Digest::of(&bytes).short());
            let shown = format!("{:?} {content} {:?}", metadata.file_type(), metadata.modified().unwrap());
            (entry.into_path(), shown)
        };
        entries.map(describe).collect()
    }

    /// Waits until a file is there; the build that should write it has long enough.
    #[track_caller]
    pub fn wait_for(&self, path: &str) -> String {
        for _ in 0..3000 {
            match std::fs::read_to_string(self.path(path)) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("{path} was not written");
    }

    /// The last journal record of a step in the default workspace.
    #[track_caller]
    pub fn record(&self, step: &str) -> Value {
        let text = self.read("site/.rebuild/tvm-webgpu/journal.jsonl");
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let record = entries.rev().find(|entry| entry["step"]["step"] == step);
        record.unwrap_or_else(|| panic!("no record of {step}"))["step"].clone()
    }
}

/// The arguments of [`TestEnv::build`].
pub fn build_arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["build", "--offline", "--vendor", "../vendor", "--memory", "100000"];
    let quiet: &[&str] = if more.contains(&"--progress") { &[] } else { &["--progress", "none"] };
    [&fixed, quiet, more].concat()
}

/// Somewhere in memory where programs can be started and a build finds room, if there is such a place:
/// most of a small build's time is waiting for a disk.
fn quick_directory() -> PathBuf {
    const ROOM_MIB: u64 = 8192;
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let memory = mounts.lines().find(|line| line.starts_with("tmpfs /dev/shm ") && !line.contains("noexec"));
    let shared = PathBuf::from("/dev/shm");
    let room = rebuild_model::workspace::free_mib(&shared).is_ok_and(|free| free > ROOM_MIB);
    if memory.is_some() && room { shared } else { std::env::temp_dir() }
}

/// Whether a process is gone, or only waits for whoever inherited it to notice.
pub fn is_gone(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("status"));
    status.map_or(true, |text| text.lines().any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX")))
}
