//! `diff` of two model libraries beside diffoscope on the same pair.
//!
//! The libraries are the example's for a batch of 1 and of 2, as built, and the same linked once more
//! with their symbols' names and debug information, which makes them larger.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::{in_turns, quiet, time, time_to, version, watch_to};
use crate::example::Place;
use crate::table::{Row, median, mib, print, ratio, show};
use crate::{program, scratch, source_tree};

const ROUNDS: usize = 5;
const TIME_GOAL: Duration = Duration::from_secs(1);
/// KiB.
const MEMORY_GOAL: u64 = 200 * 1024;
const PEER_GOAL: f64 = 5.0;
/// What `diff` and its peer end with when there is a difference.
const DIFFERS: i32 = 9;
const PEER_DIFFERS: i32 = 1;

pub fn measure() {
    let places = [Place::example(), prepare_variant()];
    if !places.iter().all(Place::ensure_built) {
        return;
    }
    let diffoscope = install_diffoscope();
    let built = places.each_ref().map(|place| place.workspace.join("out/link/decoder-webgpu.wasm"));
    let mut rows = compare("as built", &built, diffoscope.as_deref());
    if version("em++", &["--version"]).is_some() {
        let named = [1, 2].map(|number| scratch().join(format!("named-{number}.wasm")));
        for (place, to) in places.iter().zip(&named) {
            link(&place.workspace.join("out"), to);
        }
        rows.extend(compare("with names", &named, diffoscope.as_deref()));
    }
    print("diff: model libraries for a batch of 1 and of 2", &rows);
}

/// The example for a batch of 2, beside the repositories that its pins name.
fn prepare_variant() -> Place {
    let original = source_tree().join("workspace.example");
    let directory = scratch().join("variant");
    let pins = fs::read_to_string(original.join("pins.toml")).unwrap();
    let changed = pins.replacen("max_batch_size = 1", "max_batch_size = 2", 1);
    assert_ne!(pins, changed);
    fs::create_dir_all(directory.join("patches")).unwrap();
    fs::write(directory.join("pins.toml"), changed).unwrap();
    fs::copy(original.join("requirements.txt"), directory.join("requirements.txt")).unwrap();
    for patch in fs::read_dir(original.join("patches")).unwrap() {
        let patch = patch.unwrap();
        fs::copy(patch.path(), directory.join("patches").join(patch.file_name())).unwrap();
    }
    let repositories = directory.join(".repositories");
    if !repositories.exists() {
        std::os::unix::fs::symlink(original.join(".repositories"), repositories).unwrap();
    }
    let (workspace, output) = (directory.join("workspace"), directory.join("delivered"));
    Place { pins: directory.join("pins.toml"), workspace, output }
}

/// Links the objects of a finished build as it did, but with names and debug information.
fn link(out: &Path, to: &Path) {
    let objects = [
        "objects-runtime/wasm_runtime.o",
        "objects-runtime/webgpu_runtime.o",
        "objects-runtime/tvmjs_support.o",
        "objects-ffi/ffi_pack.o",
        "objects-vm/vm_pack.o",
        "compile/lib0.o",
        "compile/devc.o",
    ];
    let mut command = quiet("em++", &["-O1", "--no-entry", "-sSTANDALONE_WASM=1", "-sWASM_BIGINT=1"]);
    command.args(["-sALLOW_MEMORY_GROWTH=1", "--js-library"]);
    command.arg(out.join("decoder/tree/3rdparty/overlay/link/imports.js"));
    command.args(objects.map(|object| out.join(object))).arg("-o").arg(to);
    time(&mut command);
}

fn compare(what: &str, pair: &[PathBuf; 2], peer: Option<&Path>) -> Vec<Row> {
    let mut ours = || time_to(quiet(program(), &["diff"]).args(pair), DIFFERS);
    let mut theirs = || time_to(&mut diffoscope(peer.unwrap_or(Path::new("")), pair), PEER_DIFFERS);
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = vec![&mut ours];
    if peer.is_some() {
        turns.push(&mut theirs);
    }
    let times = in_turns(ROUNDS, &mut turns);
    let ours = median(&times[0]);
    let peak = watch_to(quiet(program(), &["diff"]).args(pair), Duration::from_millis(1), DIFFERS).peak_kib;
    let sizes = pair.each_ref().map(|path| mib(path.metadata().unwrap().len() / 1024));
    let row = Row { subject: format!("diff, {what}: {}", sizes.join(" and ")), n: ROUNDS, ..Row::default() };
    let mut rows = vec![
        Row { ours: show(ours), goal: Some(("≤ 1 s".into(), ours <= TIME_GOAL)), ..row.clone() },
        Row {
            ours: mib(peak),
            goal: Some(("≤ 200 MiB".into(), peak <= MEMORY_GOAL)),
            peak_kib: Some(peak),
            ..row.clone()
        },
    ];
    if let (Some(peer), Some(theirs)) = (peer, times.get(1).map(|times| median(times))) {
        let theirs_peak = watch_to(&mut diffoscope(peer, pair), Duration::from_millis(10), PEER_DIFFERS).peak_kib;
        let faster = ratio(theirs, ours);
        rows.push(Row {
            peer: format!("{}, {} of memory", version(peer, &["--version"]).unwrap_or_default(), mib(theirs_peak)),
            ours: show(ours),
            theirs: show(theirs),
            ratio: format!("{faster:.1} × as fast"),
            goal: Some((format!("≥ {PEER_GOAL} ×"), faster >= PEER_GOAL)),
            ..row
        });
    }
    rows
}

/// Both sides print their report; ours ends where its own bounds are.
fn diffoscope(program: &Path, pair: &[PathBuf; 2]) -> Command {
    let mut command = quiet(program, &["--no-progress"]);
    // It warns of what other comparisons would need.
    command.args(pair).stderr(Stdio::null());
    command
}

/// Installs the peer by its pinned requirements; none where that cannot be done.
fn install_diffoscope() -> Option<PathBuf> {
    let environment = scratch().join("diffoscope");
    let program = environment.join("bin/diffoscope");
    let requirements = source_tree().join("benches/measure/requirements.txt");
    if !program.exists() {
        version("uv", &["--version"])?;
        time(quiet("uv", &["venv", "--quiet", "--clear"]).arg(&environment));
        let install = ["pip", "install", "--quiet", "--require-hashes", "--no-deps", "--python"];
        time(quiet("uv", &install).arg(environment.join("bin/python")).arg("-r").arg(requirements));
    }
    let missing = ["wasm2wat"].into_iter().find(|tool| version(tool, &["--version"]).is_none());
    if version(&program, &["--version"]).is_none() || missing.is_some() {
        println!("\ndiff: diffoscope is not measured: it needs libmagic, libarchive and wasm2wat (Debian's wabt)");
        return None;
    }
    Some(program)
}
