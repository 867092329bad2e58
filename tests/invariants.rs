//! What the sources must not contain, by room. The compiler cannot hold these, so a test reads the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most lines that a source file may have.
const LONGEST: usize = 400;

/// Every source file by its path below `src`, without its unit tests.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"));
    let mut found = BTreeMap::new();
    for file in files {
        let name = file.path().strip_prefix(root).unwrap().display().to_string();
        if name.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        let program = text.split("#[cfg(test)]").next().unwrap().to_owned();
        found.insert(name, program);
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

/// The lines that are program, not comment, and have one of `words`, in the files that `here` chooses.
fn lines_with(words: &[&str], here: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| here(name)) {
        for (index, line) in text.lines().enumerate() {
            let program = line.split("//").next().unwrap();
            if words.iter().any(|word| program.contains(word)) {
                found.push(format!("{name}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    found
}

fn is_in(name: &str, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| name == format!("{room}.rs") || name.starts_with(&format!("{room}/")))
}

#[track_caller]
fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

const PURE: [&str; 4] = ["pins", "plan", "step", "recipe"];

#[test]
fn pins_plans_steps_and_recipes_do_nothing_but_compute() {
    let mut found = lines_with(
        &[
            "std::fs",
            "std::process",
            "std::net",
            "std::env",
            "SystemTime",
            "Instant",
            " File::",
            "rustix",
            "git2",
            "ureq",
            "duct",
            "tempfile",
            "walkdir",
            "which::",
            "jiff",
            "std::thread",
            "clock::",
        ],
        |name| is_in(name, &PURE),
    );
    // What the compiler was told is not the environment of a run.
    found.retain(|line| !line.contains("std::env::consts"));
    assert_none(&found);
}

#[test]
fn what_is_early_does_not_know_what_is_late() {
    let allowed: [(&str, &[&str]); 10] = [
        ("printable", &["printable"]),
        ("error", &["printable"]),
        ("digest", &["parallel"]),
        ("clock", &[]),
        ("pins", &["digest", "error", "pins"]),
        ("step", &["digest", "pins", "step"]),
        ("plan", &["digest", "error", "pins", "plan", "printable", "step"]),
        ("recipe", &["pins", "plan", "recipe", "step"]),
        ("key", &["digest", "journal", "key", "pins", "step"]),
        ("journal", &["digest", "error", "journal", "key", "pins", "step"]),
    ];
    for (room, known) in allowed {
        let mut used = BTreeSet::new();
        for (_, text) in sources().iter().filter(|(name, _)| is_in(name, &[room])) {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for after in line.split("crate::").skip(1) {
                    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                    used.insert(after[..end].to_owned());
                }
            }
        }
        used.retain(|module| !module.is_empty() && !known.contains(&module.as_str()));
        assert!(used.is_empty(), "{room} knows {used:?}");
    }
}

#[test]
fn one_file_starts_processes() {
    let spawning = ["Command::new", "duct::", "std::process::Command", "fork(", "exec("];
    assert_none(&lines_with(&spawning, |name| name != "process.rs"));
}

#[test]
fn only_what_fetches_uses_the_network() {
    let network = ["ureq", "TcpStream", "std::net", "UdpSocket", "git2::Remote", "remote_anonymous", "Client::new"];
    // The smoke test's server listens on 127.0.0.1, for a browser that we start.
    assert_none(&lines_with(&network, |name| !is_in(name, &["exec/git", "exec/file", "smoke/server"])));
}

#[test]
fn one_file_knows_the_time_of_day() {
    assert_none(&lines_with(&["SystemTime::now", "Timestamp::now", "jiff::"], |name| name != "clock.rs"));
    // Nor does a duration get into what is compared between machines.
    assert_none(&lines_with(&["Instant"], |name| is_in(name, &["manifest", "key", "artifact", "exec/package"])));
}

#[test]
fn nothing_that_is_written_depends_on_a_hash_maps_order() {
    for (name, text) in sources() {
        let hashes = ["HashMap", "HashSet"].iter().any(|word| text.contains(word));
        assert!(!(hashes && text.contains("Serialize")), "{name} serializes and has a hash map");
    }
}

#[test]
fn the_current_directory_is_never_changed_and_seldom_asked() {
    assert_none(&lines_with(&["set_current_dir", "set_var(", "remove_var("], |_| true));
    assert_none(&lines_with(&["current_dir("], |name| !is_in(name, &["cli"])));
}

#[test]
fn one_room_owns_the_terminal() {
    let words = ["println!", "print!(", "eprint", "dbg!", "io::stdout", "io::stderr"];
    assert_none(&lines_with(&words, |name| !is_in(name, &["ui"])));
}

#[test]
fn nothing_panics_by_carelessness() {
    let found = lines_with(&[".unwrap()", ".expect(", "todo!", "unimplemented!", "panic!("], |_| true);
    // What these say cannot happen: their documentation tells why. The encoders' are evaluated by the compiler.
    let known = ["our types are JSON", "any bytes have a blob id", "an object id is 40 digits", "Cargo.lock"];
    let found: Vec<_> = found.into_iter().filter(|line| !known.iter().any(|text| line.contains(text))).collect();
    assert_none(&found);
}

#[test]
fn unsafe_code_stands_in_two_files() {
    // Between fork and exec, and for libgit2's global options.
    let known = ["process.rs", "exec/git/library.rs"];
    let unsafe_words = ["unsafe {", "unsafe fn", "expect(unsafe_code", "allow(unsafe_code"];
    assert_none(&lines_with(&unsafe_words, |name| !known.contains(&name)));
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    for (name, text) in sources() {
        let lines = std::fs::read_to_string(root.join(&name)).unwrap().lines().count();
        assert!(lines < LONGEST, "{name} has {lines} lines");
        assert!(text.starts_with("//!"), "{name} does not say what it is");
    }
}

#[test]
fn errors_are_lower_case_and_have_no_period() {
    for (name, text) in sources() {
        for after in text.split("#[error(\"").skip(1) {
            let message = after.split("\")]").next().unwrap();
            let first = message.chars().next().unwrap();
            assert!(!first.is_uppercase(), "{name}: {message}");
            assert!(!message.ends_with('.'), "{name}: {message}");
        }
        assert!(!text.contains("Other(String)"), "{name} has an error that says nothing");
    }
}

#[test]
fn no_file_names_a_machine() {
    // Put together here, or this file would be the first to be found.
    let names = [["/ro", "ot/"].concat(), ["/wo", "rk/"].concat() + "ma", ["files.python", "hosted"].concat()];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for directory in ["src", "tests", "workspace.example", "patches"] {
        for entry in walkdir::WalkDir::new(root.join(directory)).into_iter().filter_map(Result::ok) {
            let path = entry.path().display().to_string();
            if !entry.file_type().is_file() || path.contains("/dist/") || path.contains("/.re") {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
            for name in &names {
                assert!(!text.contains(name.as_str()), "{path} names {name}");
            }
        }
    }
}
