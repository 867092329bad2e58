//! `build --resume` of a finished build, beside the hashing alone that it cannot do without.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rebuild_model::digest::hash_path;
use rebuild_model::journal;

use crate::child::{in_turns, time, watch};
use crate::example::Place;
use crate::table::{Row, median, print, show};

const ROUNDS: usize = 11;
const GOAL: Duration = Duration::from_millis(50);

pub fn measure() {
    if !Place::example().ensure_built() {
        return;
    }
    let records = journal::latest(journal::read(&Place::example().workspace.join("journal.jsonl")).unwrap());
    let outputs: Vec<PathBuf> = records
        .iter()
        .flat_map(|(step, record)| record.outputs.keys().map(move |output| (step, output)))
        .map(|(step, output)| Place::example().workspace.join("out").join(step.as_str()).join(output))
        .collect();
    let mut resumed = || time(&mut Place::example().build_command(&["--resume"]));
    let mut hashed = || {
        let start = Instant::now();
        let sizes: u64 = rebuild_model::parallel::map(&outputs, |path| hash_path(path).unwrap().1).iter().sum();
        assert!(sizes > 0);
        start.elapsed()
    };
    let times = in_turns(ROUNDS, &mut [&mut resumed, &mut hashed]);
    let (ours, hashing) = (median(&times[0]), median(&times[1]));
    let rest = ours.saturating_sub(hashing);
    let peak = watch(&mut Place::example().build_command(&["--resume"]), Duration::from_millis(1));
    let row = Row {
        subject: "build --resume of the finished example".into(),
        peer: format!("hash_path over its {} outputs", outputs.len()),
        n: ROUNDS,
        ours: show(ours),
        theirs: show(hashing),
        ratio: format!("{} more", show(rest)),
        goal: Some(("≤ 50 ms more".into(), rest <= GOAL)),
        peak_kib: Some(peak.peak_kib),
    };
    print("resume: nothing is left to do", &[row]);
}
