//! The embedded example beside a serial script of the same commands.
//!
//! Both begin with every download on disk: the script with its steps `wheels` and `esbuild` done, and
//! ours with the same files in its store, from which it copies and hashes them. From there on the
//! script runs its commands one after another; ours runs them, and besides hashes every output,
//! checks symbols, compresses the artifacts and delivers them with a manifest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rebuild_model::digest::hash_file;
use rebuild_model::store::Store;

use crate::child::{Taken, quiet, time, version, watch};
use crate::table::{Row, mib, print, ratio, show};
use crate::{program, scratch, source_tree};

/// Steps of the script that are not timed.
const DOWNLOADS: [&str; 2] = ["wheels", "esbuild"];
const STEPS: [&str; 14] = [
    "decoder",
    "tvm",
    "tvm-ffi",
    "tvm-patched",
    "objects-ffi",
    "objects-vm",
    "objects-runtime",
    "ffi-native",
    "python",
    "compile",
    "weights",
    "link",
    "browser",
    "artifacts",
];
const GOAL: f64 = 0.75;
/// KiB.
const MEMORY_GOAL: u64 = 64 * 1024;

pub fn measure() {
    let Some(downloads) = download() else { return };
    let serial = time_script(&downloads);
    let ours = Place::example().build(&downloads);
    let bash = version("bash", &["--version"]).unwrap_or_default();
    let compared = ratio(ours.wall, serial);
    let rows = [
        Row {
            subject: "build of the example".into(),
            peer: format!("{bash}: serial.sh"),
            n: 1,
            ours: show(ours.wall),
            theirs: show(serial),
            ratio: format!("{compared:.2} × the time"),
            goal: Some((format!("≤ {GOAL} ×"), compared <= GOAL)),
            ..Row::default()
        },
        Row {
            subject: "the orchestrator during that build".into(),
            n: 1,
            ours: format!("{} of CPU", show(ours.own_cpu)),
            goal: Some(("≤ 64 MiB".into(), ours.peak_kib <= MEMORY_GOAL)),
            ratio: mib(ours.peak_kib),
            peak_kib: Some(ours.peak_kib),
            ..Row::default()
        },
    ];
    print("example: from downloads to artifacts, warm package caches", &rows);
}

/// Where something like the example is built.
pub struct Place {
    pub pins: PathBuf,
    pub workspace: PathBuf,
    /// Where its artifacts are delivered.
    pub output: PathBuf,
}

impl Place {
    /// The example itself.
    pub fn example() -> Self {
        Self {
            pins: source_tree().join("workspace.example/pins.toml"),
            workspace: scratch().join("example"),
            output: scratch().join("delivered"),
        }
    }

    /// The command that builds here; `more` are further flags.
    pub fn build_command(&self, more: &[&str]) -> Command {
        let mut command = quiet(program(), &["build", "--offline", "--progress", "plain", "--pins"]);
        command.arg(&self.pins).arg("--workspace").arg(&self.workspace).arg("--cache").arg(cache());
        command.arg("--output").arg(&self.output).args(more).stderr(Stdio::null());
        command
    }

    /// Builds here anew, from what [`download`] left in the cache.
    fn build(&self, downloads: &Path) -> Taken {
        fill_cache(downloads);
        let _ = fs::remove_dir_all(&self.workspace);
        watch(&mut self.build_command(&[]), Duration::from_millis(10))
    }

    /// Makes sure that a build of these pins is here; tells whether there can be one.
    pub fn ensure_built(&self) -> bool {
        let Some(downloads) = download() else { return false };
        // What an earlier version of this program left cannot always be gone on with.
        let resumed = || self.build_command(&["--resume"]).stderr(Stdio::null()).status().unwrap().success();
        if !self.workspace.exists() || !resumed() {
            self.build(&downloads);
        }
        true
    }
}

/// The store from which everything here is built.
pub fn cache() -> PathBuf {
    scratch().join("cache")
}

fn script(work: &Path, steps: &[&str]) -> Command {
    let path = source_tree().join("workspace.example/serial.sh");
    let mut command = quiet("bash", &[path.to_str().unwrap(), work.to_str().unwrap()]);
    // It tells each step's time on its standard error.
    command.args(steps).stderr(Stdio::null());
    command
}

/// The script's downloads, of an earlier run or from the registries; none where a tool is missing.
fn download() -> Option<PathBuf> {
    let missing: Vec<&str> = ["python3.11", "uv", "npm", "g++", "em++"]
        .into_iter()
        .filter(|tool| version(tool, &["--version"]).is_none())
        .collect();
    if !missing.is_empty() {
        println!("\nexample: not measured, for want of {}", missing.join(", "));
        return None;
    }
    time(&mut quiet("bash", &[source_tree().join("workspace.example/set-up.sh").to_str().unwrap()]));
    let downloads = scratch().join("downloads");
    if !fs::exists(downloads.join("whole")).unwrap() {
        let _ = fs::remove_dir_all(&downloads);
        time(&mut script(&downloads, &DOWNLOADS));
        fs::write(downloads.join("whole"), "").unwrap();
    }
    Some(downloads.join("out"))
}

fn time_script(downloads: &Path) -> Duration {
    let work = scratch().join("serial");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(work.join("out")).unwrap();
    for step in DOWNLOADS {
        std::os::unix::fs::symlink(downloads.join(step), work.join("out").join(step)).unwrap();
    }
    time(&mut script(&work, &STEPS))
}

fn fill_cache(downloads: &Path) {
    let store = Store::open(Vec::new(), cache()).unwrap();
    for entry in DOWNLOADS.iter().flat_map(|step| fs::read_dir(downloads.join(step)).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            let (digest, _) = hash_file(&path).unwrap();
            store.insert(&path, &digest, path.file_name().unwrap().to_str().unwrap()).unwrap();
        }
    }
}
