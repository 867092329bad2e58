//! `build --dry-run` beside the dry runs of other programs that know steps and their order.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rebuild_model::build::prepare;
use rebuild_model::pins::Platform;
use rebuild_model::plan::Plan;
use rebuild_model::process::quote;
use rebuild_model::step::{Action, Step};

use crate::child::{in_turns, quiet, time, version, watch};
use crate::table::{Row, median, print, ratio, show};
use crate::{program, scratch, source_tree};

const ROUNDS: usize = 41;
const GOAL: Duration = Duration::from_millis(20);

pub fn measure() {
    let mut rows = Vec::new();
    for pins in ["pins.toml", "workspace.example/pins.toml"] {
        let path = source_tree().join(pins);
        if path.is_file() {
            rows.extend(measure_pins(pins, &path));
        }
    }
    print("plan: print what would be done (process start to end)", &rows);
}

fn measure_pins(pins: &str, path: &Path) -> Vec<Row> {
    let plan = prepare(path, &Platform::here()).unwrap().plan;
    let makefile = write("Makefile", &write_makefile(&plan));
    let justfile = write("justfile", &write_justfile(&plan));
    let mut ours = || time(&mut quiet(program(), &["build", "--dry-run", "--pins", path.to_str().unwrap()]));
    let mut make = || time(&mut quiet("make", &["-n", "-f", makefile.to_str().unwrap()]));
    let mut just =
        || time(quiet("just", &["--dry-run", "-f", justfile.to_str().unwrap()]).stderr(std::process::Stdio::null()));
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = vec![&mut ours];
    let mut peers = Vec::new();
    if let Some(version) = version("make", &["--version"]) {
        peers.push(format!("{version}: make -n"));
        turns.push(&mut make);
    }
    if let Some(version) = version("just", &["--version"]) {
        peers.push(format!("{version}: just --dry-run"));
        turns.push(&mut just);
    }
    let times = in_turns(ROUNDS, &mut turns);
    let ours = median(&times[0]);
    let peak = watch(&mut quiet(program(), &["build", "--dry-run", "--pins", path.to_str().unwrap()]), Duration::ZERO);
    let subject = format!("build --dry-run of {pins}, {} steps", plan.steps.len());
    let mut rows = vec![Row {
        subject: subject.clone(),
        n: ROUNDS,
        ours: show(ours),
        goal: Some(("≤ 20 ms".into(), ours <= GOAL)),
        peak_kib: Some(peak.peak_kib),
        ..Row::default()
    }];
    rows.extend(peers.into_iter().zip(&times[1..]).map(|(peer, theirs)| Row {
        subject: subject.clone(),
        peer,
        n: ROUNDS,
        ours: show(ours),
        theirs: show(median(theirs)),
        ratio: format!("{:.2} × the time", ratio(ours, median(theirs))),
        ..Row::default()
    }));
    rows
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = scratch().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The commands of a step as text. An action without one stands as a command with as many words.
fn commands(step: &Step) -> Vec<String> {
    match &step.action {
        Action::Run(run) => {
            // A script in a word has lines; in the peers' files a command has one.
            let one_line = |word: String| quote(&word.replace('\n', ";"));
            let words =
                |command: &Vec<_>| command.iter().map(|word| one_line(format!("{word}"))).collect::<Vec<_>>().join(" ");
            run.commands.iter().map(words).collect()
        }
        action => {
            let text = serde_json::to_string(action).unwrap();
            vec![format!("rebuild-model-step {} {}", action.kind(), quote(&text))]
        }
    }
}

fn needs(step: &Step) -> String {
    let mut names: Vec<String> = step.inputs.iter().map(|input| format!(" {}", input.step)).collect();
    names.sort();
    names.dedup();
    names.concat()
}

fn write_makefile(plan: &Plan) -> String {
    let all: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    let mut text = format!(".PHONY: all {0}\nall: {0}\n", all.join(" "));
    for step in &plan.steps {
        writeln!(text, "{}:{}", step.id, needs(step)).unwrap();
        for command in commands(step) {
            writeln!(text, "\t{}", command.replace('$', "$$")).unwrap();
        }
    }
    text
}

fn write_justfile(plan: &Plan) -> String {
    let all: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    let mut text = format!("all: {}\n", all.join(" "));
    for step in &plan.steps {
        writeln!(text, "{}:{}", step.id, needs(step)).unwrap();
        for command in commands(step) {
            writeln!(text, "    {}", command.replace("{{", "{{{{")).unwrap();
        }
    }
    text
}
