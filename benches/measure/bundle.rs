//! `bundle --vendor` of the example beside `tar` and `gzip` over the same files.
//!
//! Ours obtains every input from the store, checks it, lays it out, hashes everything for `bundle.json`
//! and packs it; the peer packs what ours laid out.

use std::process::Command;
use std::time::Duration;

use crate::child::{in_turns, quiet, time, version, watch};
use crate::example::{Place, cache};
use crate::table::{Row, median, mib, print, ratio, show};
use crate::{program, scratch};

const ROUNDS: usize = 5;
const GOAL: f64 = 0.8;
/// Of both; what ours takes by default.
const LEVEL: &str = "6";

pub fn measure() {
    if !Place::example().ensure_built() {
        return;
    }
    let directory = scratch().join("bundled");
    let _ = std::fs::remove_dir_all(&directory);
    time(bundle().arg("--directory").arg(&directory));
    let archives = ["ours.tar.gz", "peers.tar.gz"].map(|name| scratch().join(name));
    let mut ours = || time(bundle().arg("--output").arg(&archives[0]));
    let script = format!("set -o pipefail; tar -C \"$1\" -c . | gzip -{LEVEL} >\"$2\"");
    let mut theirs = || time(quiet("bash", &["-c", &script, "bash"]).arg(&directory).arg(&archives[1]));
    let times = in_turns(ROUNDS, &mut [&mut ours, &mut theirs]);
    let (ours, theirs) = (median(&times[0]), median(&times[1]));
    let sizes = archives.each_ref().map(|path| path.metadata().unwrap().len() / 1024);
    let speed = ratio(theirs, ours);
    let peak = watch(bundle().arg("--output").arg(&archives[0]), Duration::from_millis(1)).peak_kib;
    let tools: Vec<_> = ["tar", "gzip"].iter().filter_map(|tool| version(tool, &["--version"])).collect();
    let rows = [
        Row {
            subject: "bundle --vendor of the example".into(),
            peer: format!("{}, level {LEVEL}", tools.join(" | ")),
            n: ROUNDS,
            ours: show(ours),
            theirs: show(theirs),
            ratio: format!("{speed:.2} × as fast"),
            goal: Some((format!("≥ {GOAL} ×"), speed >= GOAL)),
            peak_kib: Some(peak),
        },
        Row {
            subject: "size of the archive".into(),
            n: 1,
            ours: mib(sizes[0]),
            theirs: mib(sizes[1]),
            ..Row::default()
        },
    ];
    print("bundle: sources, records and every input of the example", &rows);
}

fn bundle() -> Command {
    let place = Place::example();
    let mut command = quiet(program(), &["bundle", "--vendor", "--offline", "-q", "--progress", "none", "--pins"]);
    command.arg(place.pins).arg("--cache").arg(cache()).arg("--manifest").arg(place.output.join("manifest.json"));
    command
}
