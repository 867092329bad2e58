//! `replay`: each thing that can be wrong ends in its class, and is named.

use std::path::Path;

use serde_json::Value;

use crate::bundling::{bundled, take_away};
use crate::env::{Ran, TestEnv};
use crate::mini::mini;

/// A bundle of the miniature with every input, and nothing else of what it was made from.
fn alone() -> TestEnv {
    let env = bundled();
    take_away(&env, &["vendor", "cache", "site"]);
    std::fs::create_dir(env.path("site")).unwrap();
    env
}

fn replay(env: &TestEnv, more: &[&str]) -> Ran {
    let (attestation, vendor) = (env.text("out/bundle/attestation.json"), env.text("out/bundle/vendor"));
    let fixed = ["replay", &attestation, "--offline", "--vendor", &vendor, "--memory", "100000", "--progress", "none"];
    env.run(&[&fixed[..], more].concat())
}

fn replay_json(env: &TestEnv, code: i32, more: &[&str]) -> Value {
    replay(env, &[&["--format", "json"], more].concat()).code(code).json()
}

/// The only file below a directory whose name ends so.
fn find(root: &Path, end: &str) -> std::path::PathBuf {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let mut found = entries.map(walkdir::DirEntry::into_path).filter(|path| path.display().to_string().ends_with(end));
    found.next().unwrap_or_else(|| panic!("{end} is not below {}", root.display()))
}

#[test]
fn what_was_bundled_is_replayed_identically() {
    let env = alone();
    let page = env.text("report.html");
    let ran = replay(&env, &["--html", &page]).code(0);
    assert!(ran.stdout.starts_with("identical: all "), "{}", ran.stdout);
    let page = env.read("report.html");
    assert!(page.contains("identical") && page.starts_with("<!DOCTYPE html>"), "{page}");
    // What was found identical is not kept.
    let left: Vec<_> = std::fs::read_dir(env.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_report_replaces_nothing_but_a_report() {
    let env = alone();
    env.write("key", "-----BEGIN PRIVATE KEY-----\n");
    env.write("page.html", "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Replay: of a game</title>");
    std::os::unix::fs::symlink("key", env.path("link")).unwrap();
    for name in ["key", "link", "page.html"] {
        let before = env.read(name);
        let refused = replay(&env, &["--html", &env.text(name)]).code(1).stderr;
        assert!(refused.contains("is there already, and is no report of a replay"), "{refused}");
        assert!(refused.contains("hint: name a file that is not there yet, or an earlier report"), "{refused}");
        assert_eq!(env.read(name), before);
    }
    assert!(env.path("link").is_symlink());
    env.write("report.html", "");
    let report = env.text("report.html");
    replay(&env, &["--html", &report]).code(0);
    assert!(env.read("report.html").ends_with("</html>\n"));
    replay(&env, &["--html", &report]).code(0);
    replay(&env, &["--html", "/dev/null"]).code(0);
}

#[test]
fn twice_and_varied_it_is_identical_and_says_what_has_no_effect() {
    let env = alone();
    let report = replay_json(&env, 0, &["--times", "2", "--vary", "all"]);
    assert_eq!(report["outcome"], "identical");
    assert_eq!(report["runs"].as_array().unwrap().len(), 3);
    let varied = report["varied"].as_array().unwrap();
    let of = |name: &str| varied.iter().find(|varied| varied["variation"] == name).unwrap();
    assert!(of("directory")["varied"] == true && of("jobs")["varied"] == true, "{report}");
    for ineffective in ["locale", "umask", "home"] {
        let varied = of(ineffective);
        assert!(varied["varied"] == false && varied["how"].to_string().contains("without effect"), "{varied}");
    }
    assert!(of("time")["how"].to_string().contains("faketime is not on PATH"), "{report}");
}

#[test]
fn a_patch_changed_by_a_byte_is_named() {
    let env = alone();
    let patch = env.path("out/bundle/sources/patches/two.patch");
    std::fs::write(&patch, std::fs::read_to_string(&patch).unwrap().replace("TWO", "TWo")).unwrap();
    // The attestation carries the pinned one.
    replay_json(&env, 0, &[]);
    let report = replay_json(&env, 4, &["--beside", &env.text("out/bundle/sources")]);
    assert_eq!(report["outcome"], "input-vanished");
    assert!(report["summary"].to_string().contains("two.patch has sha256"), "{report}");
}

#[test]
fn a_swapped_wheel_and_an_altered_commit_are_named() {
    let env = alone();
    let wheel = find(&env.path("out/bundle/vendor"), "one-1.0-py3-none-any.whl");
    let kept = std::fs::read(&wheel).unwrap();
    std::fs::write(&wheel, "another wheel").unwrap();
    let report = replay_json(&env, 4, &[]);
    assert_eq!(report["outcome"], "input-vanished");
    assert_eq!(report["runs"][0]["failure"]["step"], "wheels", "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.contains("differs from its pin") && summary.ends_with("one-1.0-py3-none-any.whl"), "{summary}");
    assert!(report["runs"][0]["failure"]["hint"].to_string().contains("--vendor"), "{report}");
    std::fs::write(&wheel, kept).unwrap();

    // An object of the pinned commit's tree, altered in its pack.
    let packs = find(&env.path("out/bundle/vendor/git"), ".pack");
    let repository = packs.ancestors().nth(3).unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let mut bytes = std::fs::read(&packs).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::remove_file(&packs).unwrap();
    std::fs::write(&packs, bytes).unwrap();
    let report = replay_json(&env, 4, &[]);
    assert_eq!(report["outcome"], "input-vanished");
    assert!(report["summary"].to_string().contains(&repository), "{repository}: {report}");
}

#[test]
fn another_emcc_is_tool_drift_when_it_makes_another_thing_or_will_not_do() {
    let env = alone();
    env.edit("bin/emcc.script", "3.1.6", "3.1.7");
    // Another version that makes the same: identical, and said.
    let report = replay_json(&env, 0, &[]);
    assert_eq!(report["drift"][0]["name"], "emcc");
    assert!(report["notes"].to_string().contains("other tools"), "{report}");
    env.before("emcc", r#"case "$*" in *vm_pack.cc*) for out in "$@"; do :; done; echo other > "$out"; exit;; esac"#);
    let report = replay_json(&env, 2, &[]);
    assert_eq!(report["outcome"], "tool-drift");
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.starts_with("step objects-vm is the first that made something else (vm_pack.o)"), "{summary}");
    assert!(summary.contains("tool emcc: 3.1.6 (") && summary.contains("→ 3.1.7 ("), "{summary}");
    env.edit("bin/emcc.script", "3.1.7", "3.0.0");
    let report = replay_json(&env, 2, &[]);
    assert!(report["outcome"] == "tool-drift" && report["summary"].to_string().contains("version 3.0.0"), "{report}");
    assert!(report["summary"].to_string().contains("the recorded build had emcc 3.1.6 (sha256 "), "{report}");
    assert_eq!(report["drift"][0]["name"], "emcc", "{report}");
}

#[test]
fn a_tool_is_blamed_for_what_it_did_alone() {
    let env = alone();
    let workspace = env.text("gone-site/.rebuild/tvm-webgpu");
    env.edit("bin/emcc.script", "3.1.6", "3.1.7");
    // Nothing of this part runs it.
    let report = replay_json(&env, 0, &["--step", "package", "--recorded", &workspace]);
    assert!(report["drift"][0]["name"] == "emcc" && report["notes"].as_array().unwrap().is_empty(), "{report}");
    // It made nothing.
    env.before("emcc", r#"case "$*" in *vm_pack.cc*) exit 3;; esac"#);
    let report = replay_json(&env, 2, &["--step", "objects-vm", "--recorded", &workspace]);
    assert!(report["outcome"] == "tool-drift" && report["notes"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn what_depends_on_what_is_varied_is_named() {
    let env = alone();
    let workspace = env.text("gone-site/.rebuild/tvm-webgpu");
    env.before("emcc", r#"case "$*" in *vm_pack.cc*) for out in "$@"; do :; done; pwd > "$out"; exit;; esac"#);
    let report = replay_json(&env, 9, &["--step", "objects-vm", "--recorded", &workspace, "--vary", "directory,umask"]);
    let summary = report["summary"].as_str().unwrap();
    let wanted = "step objects-vm made something else from equal inputs on this host when this was varied: directory";
    assert_eq!(summary, wanted);
}

#[test]
fn a_directory_with_something_in_it_is_neither_used_nor_removed() {
    let env = alone();
    env.write("mine/kept", "mine");
    let refused = replay(&env, &["--workspace", &env.text("mine")]).code(3).stderr;
    assert!(refused.contains("is not an empty directory"), "{refused}");
    assert_eq!(env.read("mine/kept"), "mine");
    assert!(!env.path("mine/run-1").exists());
    replay(&env, &["--workspace", "relative"]).code(1);
    assert!(!env.path("site/relative").exists());
}

#[test]
fn a_recorded_workspace_is_looked_at_before_the_work() {
    let env = alone();
    std::fs::rename(env.path("gone-site/.rebuild/tvm-webgpu"), env.path("site/recorded")).unwrap();
    replay_json(&env, 0, &["--step", "link", "--recorded", "recorded"]);
    let failed = replay(&env, &["--recorded", "nothing"]).code(3).stderr;
    assert!(failed.contains("nothing"), "{failed}");
    assert!(!env.path("cache").exists(), "inputs were obtained before it");
}

#[test]
fn a_step_that_makes_another_thing_from_the_same_is_not_reproducible() {
    let env = alone();
    env.before("emcc", r#"case "$*" in *vm_pack.cc*) for out in "$@"; do :; done; echo other > "$out"; exit;; esac"#);
    let recorded = env.text("gone-site/.rebuild/tvm-webgpu");
    let report = replay_json(&env, 9, &["--recorded", &recorded]);
    assert_eq!(report["outcome"], "not-reproducible");
    let first = &report["runs"][0]["differing"][0];
    assert_eq!(first["step"], "objects-vm");
    assert!(first["inputsEqual"] == true && first["causes"].as_array().unwrap().is_empty(), "{first}");
    assert!(first["detail"].to_string().contains("+other"), "{first}");
    // What follows from it differs because of it.
    let link = report["runs"][0]["differing"].as_array().unwrap().iter().find(|step| step["step"] == "link").unwrap();
    assert!(link["inputsEqual"] == false && link["causes"][0]["name"] == "objects-vm/vm_pack.o", "{link}");
    let text = replay(&env, &[]).code(9).stdout;
    assert!(
        text.contains("not reproducible: step objects-vm is the first") && text.contains("from equal inputs"),
        "{text}"
    );
}

#[test]
fn chance_is_found_by_doing_it_again() {
    let env = alone();
    env.write("counter", "");
    let first = format!(
        "case \"$*\" in *vm_pack.cc*) echo x >> {0}; for out in \"$@\"; do :; done; wc -l < {0} > \"$out\"; exit;; esac",
        env.text("counter")
    );
    env.before("emcc", &first);
    let report = replay_json(&env, 9, &["--times", "2"]);
    assert_eq!(report["outcome"], "not-reproducible");
    assert!(report["summary"].to_string().contains("step objects-vm does not do the same thing twice"), "{report}");
}

#[test]
fn an_edited_attestation_is_found_out() {
    let env = alone();
    let path = "out/bundle/attestation.json";
    let whole = env.read(path);
    let statement: Value = serde_json::from_str(&whole).unwrap();
    // The digest of a subject.
    let subjects = statement["subject"].as_array().unwrap();
    let packed = subjects.iter().find(|subject| subject["annotations"]["form"] == "packed").unwrap();
    let digest = packed["digest"]["sha256"].as_str().unwrap();
    env.write(path, whole.replacen(digest, &"0".repeat(64), 1));
    let report = replay_json(&env, 11, &[]);
    assert_eq!(report["outcome"], "inconclusive");
    let name = packed["name"].as_str().unwrap();
    assert!(report["summary"].to_string().contains(&format!("subject {name}")), "{report}");
    // A digest in the record of a step.
    let byproducts = statement["predicate"]["runDetails"]["byproducts"].as_array().unwrap();
    let link = byproducts.iter().find(|byproduct| byproduct["name"] == "step:link").unwrap();
    let digest = link["annotations"]["key"].as_str().unwrap();
    env.write(path, whole.replace(digest, &"0".repeat(64)));
    let failed = replay(&env, &["--format", "json"]).code(8).json();
    assert!(failed["error"]["message"].to_string().contains("step:link"), "{failed}");
    // What it carries.
    let carried = statement["predicate"]["buildDefinition"]["resolvedDependencies"].as_array().unwrap();
    let dependency = carried.iter().find(|one| one["annotations"]["kind"] == "patch").unwrap();
    let content = dependency["content"].as_str().unwrap();
    env.write(path, whole.replace(content, "QUJD"));
    let failed = replay(&env, &["--format", "json"]).code(8).json();
    assert!(failed["error"]["message"].to_string().contains("two.patch"), "{failed}");
}

#[test]
fn an_edited_journal_of_the_recorded_workspace_is_found_out() {
    let env = alone();
    let workspace = env.text("gone-site/.rebuild/tvm-webgpu");
    replay_json(&env, 0, &["--recorded", &workspace]);
    let path = "gone-site/.rebuild/tvm-webgpu/journal.jsonl";
    let journal = env.read(path);
    let line = journal.lines().find(|line| line.contains("\"step\":\"link\"")).unwrap();
    let record: Value = serde_json::from_str(line).unwrap();
    let outputs = record["step"]["outputs"].as_object().unwrap();
    let digest = outputs.values().next().unwrap()["sha256"].as_str().unwrap();
    env.write(path, journal.replace(line, &line.replace(digest, &"1".repeat(64))));
    let report = replay_json(&env, 11, &["--recorded", &workspace]);
    assert!(report["summary"].to_string().contains("says otherwise of step link"), "{report}");
}

#[test]
fn an_artifact_that_was_recompressed_has_the_same_content() {
    let env = alone();
    let published = env.text("gone-site/dist");
    replay_json(&env, 0, &["--artifacts", &published]);
    // What was asked for and could not be compared is not identical.
    let report = replay_json(&env, 11, &["--artifacts", "/nowhere"]);
    assert!(report["summary"].as_str().unwrap().contains("is not below /nowhere"), "{report}");
    let path = env.path("gone-site/dist/tvmjs.cjs.gz");
    let mut content = Vec::new();
    let packed = std::fs::read(&path).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut content).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &content).unwrap();
    std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    let report = replay_json(&env, 9, &["--artifacts", &published]);
    assert_eq!(report["outcome"], "same-unpacked");
    assert!(report["summary"].to_string().contains("tvmjs.cjs.gz has the same content"), "{report}");
    std::fs::write(&path, &packed[..packed.len() - 1]).unwrap();
    let report = replay_json(&env, 9, &["--artifacts", &published]);
    assert!(
        report["outcome"] == "not-reproducible" && report["summary"].to_string().contains("tvmjs.cjs.gz"),
        "{report}"
    );
}

#[test]
fn a_part_is_replayed_from_what_was_recorded() {
    let env = alone();
    let workspace = env.text("gone-site/.rebuild/tvm-webgpu");
    let report = replay_json(&env, 0, &["--step", "objects-vm", "--recorded", &workspace]);
    assert_eq!(report["runs"][0]["steps"], 1);
    let report = replay_json(&env, 0, &["--from", "link", "--recorded", &workspace]);
    assert!(report["runs"][0]["steps"].as_u64().unwrap() > 1, "{report}");
    // Only what the part does counts.
    env.before("emcc", r#"case "$*" in *vm_pack.cc*) for out in "$@"; do :; done; echo other > "$out"; exit;; esac"#);
    replay_json(&env, 0, &["--from", "link", "--recorded", &workspace]);
    replay_json(&env, 9, &["--step", "objects-vm", "--recorded", &workspace]);
    // Nothing to begin with, or something else: said.
    let refused = replay(&env, &["--step", "link"]).code(11).stderr;
    assert!(refused.contains("step link reads what") && refused.contains("--recorded"), "{refused}");
    env.write("gone-site/.rebuild/tvm-webgpu/out/objects-vm/vm_pack.o", "spoilt");
    let refused = replay(&env, &["--from", "link", "--recorded", &workspace]).code(11).stderr;
    assert!(refused.contains("is not what step objects-vm made in the recorded build"), "{refused}");
    replay(&env, &["--step", "nothing"]).code(1);
}

#[test]
fn what_is_no_attestation_or_of_another_plan_is_refused() {
    let env = mini();
    env.build(&[]).code(0);
    env.run(&["replay", "dist/manifest.json"]).code(8);
    env.run(&["replay", "none.json"]).code(8);
    let attestation = env.read("site/dist/manifest.intoto.json");
    let plan = env.run(&["plan", "--format", "json"]).code(0).json()["digest"].as_str().unwrap().to_owned();
    env.write(
        "site/other.json",
        attestation.replace(&format!("\"plan\": \"{plan}\""), &format!("\"plan\": \"{}\"", "2".repeat(64))),
    );
    let report = env.run(&["replay", "other.json", "--format", "json"]).code(11).json();
    assert!(report["summary"].to_string().contains("the pins give plan"), "{report}");
    let left: Vec<_> = std::fs::read_dir(env.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
