//! Measurements of speed and memory: `cargo bench --bench measure -- [SUBJECT…]`.
//!
//! Each subject is measured beside a peer in the same run, turn by turn, and the ratio of the medians
//! is what counts: both suffer from whatever else the machine does. Nothing here fails on a time.

mod attested;
mod bundle;
mod checkout;
mod child;
mod diff;
mod example;
#[path = "../../tests/support/http_git.rs"]
#[allow(dead_code, missing_docs, reason = "the tests use the rest")]
mod http_git;
mod loading;
mod plan;
#[path = "../../tests/support/repositories.rs"]
#[allow(dead_code, missing_docs, reason = "the tests use the rest")]
mod repositories;
mod resume;
mod table;
mod verify;

use std::path::{Path, PathBuf};

/// What can be measured, cheapest first.
const SUBJECTS: [(&str, fn()); 9] = [
    ("plan", plan::measure),
    ("verify", verify::measure),
    ("checkout", checkout::measure),
    ("example", example::measure),
    ("resume", resume::measure),
    ("attested", attested::measure),
    ("bundle", bundle::measure),
    ("diff", diff::measure),
    ("loading", loading::measure),
];

fn main() {
    let (flags, wanted): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    // `cargo test --benches` runs this too, and wants no measurement.
    if !flags.iter().any(|flag| flag == "--bench") {
        return;
    }
    let known = |word: &String| SUBJECTS.iter().any(|(name, _)| name == word);
    if let Some(word) = wanted.iter().find(|word| !known(word)) {
        let names: Vec<&str> = SUBJECTS.iter().map(|(name, _)| *name).collect();
        eprintln!("no subject is called {word}; there are {}", names.join(", "));
        std::process::exit(2);
    }
    std::fs::create_dir_all(scratch()).unwrap();
    // On the disk that a build would use, not in a memory file system.
    tempfile::env::override_temp_dir(&scratch()).unwrap();
    table::describe_machine();
    for (name, measure) in SUBJECTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure();
        }
    }
}

/// Where measurements work, and keep what a later one can use.
fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench")
}

/// The top of the source tree.
fn source_tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program that is measured.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rebuild-model"))
}
