//! Going on with what an earlier run left.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::env::{TestEnv, build_arguments, is_gone};
use crate::mini::mini;

/// Waits in the step that compiles `vm_pack`, with a child of its own in the background, until it is
/// ended, or `go` is there, or the test is over.
const WAIT: &str = r#"case "$*" in *vm_pack*)
  root=${0%/bin/*}
  sleep 300 & echo $! > "$root/grandchild"
  echo $$ > "$root/child"
  until [ -e "$root/go" ] || [ ! -d "$root" ]; do sleep 0.02; done
  kill $!;;
esac"#;

const JOURNAL: &str = "site/.rebuild/tvm-webgpu/journal.jsonl";

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A build that is in the middle.
fn begun(env: &TestEnv) -> Child {
    env.before("emcc", WAIT);
    let child = env.start(&build_arguments(&["--jobs", "1"]));
    env.wait_for("child");
    child
}

/// The manifest of a build that nothing disturbed.
fn undisturbed() -> String {
    let env = mini();
    env.build(&[]).code(0);
    env.read("site/dist/manifest.json")
}

/// Whether it is so, or a little later.
fn waited(condition: impl Fn() -> bool) -> bool {
    condition() || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        false
    }
}

#[track_caller]
fn assert_ended(env: &TestEnv) {
    for name in ["child", "grandchild"] {
        let pid = env.wait_for(name);
        assert!((0..500).any(|_| waited(|| is_gone(&pid))), "the {name} lives on");
    }
}

#[test]
fn an_interrupt_ends_every_child_and_the_build_can_go_on() {
    for wanted in [Signal::INT, Signal::TERM] {
        let env = mini();
        let child = begun(&env);
        signal(&child, wanted);
        let ran = env.ended(child).code(10);
        // Whichever running step notices first is the one that is named.
        let (error, hint) = ran.stderr.trim_end().split_once('\n').unwrap();
        assert!(error.starts_with("error: step ") && error.ends_with(": interrupted"), "{error}");
        assert_eq!(hint, "hint: run the same command with --resume to go on from here");
        assert_ended(&env);
        assert_eq!(env.record("objects-vm")["outcome"], "interrupted");
        assert!(!env.path("site/dist").exists());
        env.before_not("emcc", WAIT);
        let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
        let ran = resumed["ran"].as_array().unwrap();
        assert!(ran.contains(&"objects-vm".into()) && !ran.contains(&"objects-runtime".into()), "{ran:?}");
        assert_eq!(env.read("site/dist/manifest.json"), undisturbed());
    }
}

#[test]
fn a_child_that_ignores_the_first_signal_is_killed() {
    let env = mini();
    let stubborn = format!("trap '' TERM INT\n{WAIT}");
    env.before("emcc", &stubborn);
    let child = env.start(&build_arguments(&["--jobs", "1", "--format", "json"]));
    env.wait_for("child");
    signal(&child, Signal::INT);
    let ran = env.ended(child).code(10);
    assert_eq!(ran.json()["error"]["class"], "interrupted");
    assert_ended(&env);
}

#[test]
fn a_build_that_was_killed_can_go_on() {
    let env = mini();
    let mut child = begun(&env);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    // The kernel ends the command, which would go on writing where the next build begins; what that
    // had started itself is left, and is ended here.
    let ended = env.wait_for("child");
    assert!(cfg!(not(target_os = "linux")) || (0..500).any(|_| waited(|| is_gone(&ended))), "{ended} lives on");
    let orphan = env.wait_for("grandchild").trim().parse().unwrap();
    let _ = kill_process(Pid::from_raw(orphan).unwrap(), Signal::KILL);
    env.before_not("emcc", WAIT);
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    assert!(!resumed["fresh"].as_array().unwrap().is_empty());
    assert_eq!(env.read("site/dist/manifest.json"), undisturbed());
}

#[test]
fn a_finished_build_has_nothing_left_to_do() {
    let env = mini();
    env.build(&[]).code(0);
    let manifest = env.read("site/dist/manifest.json");
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    assert_eq!(resumed["ran"], serde_json::json!([]));
    assert!(resumed["changes"].as_array().unwrap().iter().all(|change| change["kind"] == "same"));
    assert_eq!(env.read("site/dist/manifest.json"), manifest);
}

#[test]
fn an_unfinished_journal_line_is_dropped_and_its_step_runs_again() {
    let env = mini();
    env.build(&[]).code(0);
    let journal = env.read(JOURNAL);
    let whole = journal.trim_end().rfind('\n').unwrap() + 1;
    env.write(JOURNAL, &journal[..whole + 40]);
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    assert_eq!(resumed["ran"], serde_json::json!(["package"]));
    // The journal is whole again: the rest of the line did not spoil the next one.
    for line in env.read(JOURNAL).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn an_edited_journal_is_an_error() {
    let env = mini();
    env.build(&[]).code(0);
    let journal = env.read(JOURNAL);
    env.write(JOURNAL, journal.replacen("\"outcome\":\"done\"", "\"outcome\":\"fine\"", 1));
    let refused = env.build(&["--resume"]).code(3);
    assert!(refused.stderr.contains("journal.jsonl, line 2: not a journal record"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: the journal was edited or damaged"), "{}", refused.stderr);
    env.write(JOURNAL, journal.replacen("\"schema\":1", "\"schema\":2", 1));
    let refused = env.build(&["--resume"]).code(3);
    assert!(refused.stderr.contains("has schema 2, and this version reads schema 1"), "{}", refused.stderr);
    env.write(JOURNAL, [journal.as_bytes(), b"\xff\n"].concat());
    env.build(&["--resume"]).code(3);
}

#[test]
fn an_output_that_was_changed_is_made_again() {
    let env = mini();
    env.build(&[]).code(0);
    let expected = env.read("site/dist/manifest.json");
    let object = "site/.rebuild/tvm-webgpu/out/objects-vm/vm_pack.o";
    env.write(object, "edited");
    let shown = env.build(&["--resume", "--progress", "plain"]).code(0).stderr;
    assert!(shown.contains("(runs: output vm_pack.o was changed)"), "{shown}");
    assert_eq!(shown.matches(": done in ").count(), 1, "{shown}");
    std::fs::remove_file(env.path(object)).unwrap();
    let shown = env.build(&["--resume", "--progress", "plain"]).code(0).stderr;
    assert!(shown.contains("(runs: output vm_pack.o is gone)"), "{shown}");
    assert_eq!(env.read("site/dist/manifest.json"), expected);
}

#[test]
fn a_tool_that_changed_runs_its_steps_again() {
    let env = mini();
    env.build(&[]).code(0);
    // Another file under the same name that says the same version. A child copies it, so that no other
    // test's child can hold it open for writing.
    std::fs::remove_file(env.path("bin/c++")).unwrap();
    let script = env.write("c++.new", "#!/bin/sh\n# another\n. \"$0.script\"\n");
    let copied = duct::cmd!("cp", script, env.path("bin/c++")).run().unwrap();
    assert!(copied.status.success());
    duct::cmd!("chmod", "755", env.path("bin/c++")).run().unwrap();
    let resumed = env.build(&["--resume", "--progress", "plain"]).code(0).stderr;
    assert!(
        resumed.contains(
            "ffi-native: build the tvm-ffi library, load it and ask its version (runs: changed since: tool cxx)"
        ),
        "{resumed}"
    );
    // It made the same, so nothing else had to run.
    assert_eq!(resumed.matches(": done in ").count(), 1, "{resumed}");
}

#[test]
fn other_pins_run_only_what_they_change() {
    let env = mini();
    env.build(&[]).code(0);
    env.edit("site/pins.toml", "ffi_version = \"1.0.0\"", "ffi_version = \"1.0.1\"");
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    assert_eq!(resumed["ran"], serde_json::json!(["ffi-native"]));
    env.edit("site/pins.toml", "[packaging]\n", "[packaging]\nlevel = 1\n");
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    assert_eq!(resumed["ran"], serde_json::json!(["package"]));
}

#[test]
fn the_manifest_at_the_destination_keeps_what_is_not_ours() {
    let env = mini();
    env.write("site/dist/manifest.json", "{\n  \"note\": \"mine\"\n}\n");
    env.build(&[]).code(0);
    assert!(env.read("site/dist/manifest.json").contains("\"note\": \"mine\""));
    let env = mini();
    env.write("site/dist/manifest.json", "not json");
    env.build(&[]).code(8);
    assert_eq!(env.read("site/dist/manifest.json"), "not json");
    assert_eq!(std::fs::read_dir(env.path("site/dist")).unwrap().count(), 1);
}
