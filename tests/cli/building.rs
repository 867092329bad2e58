//! Builds from beginning to end: what they deliver, and how steps fail.

use insta::assert_snapshot;

use crate::env::{TestEnv, build_arguments};
use crate::mini::mini;

#[test]
fn a_build_delivers_what_its_manifest_says() {
    let env = mini();
    let planned = env.run(&["build", "--dry-run", "--format", "json"]).code(0).json();
    let built = env.build(&["--format", "json"]).code(0).json();
    let ran = built["ran"].as_array().unwrap();
    let ids: Vec<_> = planned["plan"]["steps"].as_array().unwrap().iter().map(|step| &step["id"]).collect();
    assert_eq!(ran.iter().collect::<Vec<_>>(), ids);
    assert_eq!(built["fresh"].as_array().unwrap().len(), 0);
    assert_eq!(built["plan"], planned["digest"]);
    let artifacts: Vec<_> = built["artifacts"].as_object().unwrap().keys().collect();
    assert_eq!(
        artifacts,
        ["decoder-webgpu.wasm.gz", "tvmjs.cjs.gz", "weights/params_shard_0.bin", "weights/tensor-cache.json"]
    );
    let verified = env.run(&["verify", "dist/manifest.json"]).code(0);
    assert_snapshot!(verified.stdout, @r#"
    4 artifacts are what dist/manifest.json and dist/manifest.intoto.json say
    plan      <sha256>
    builder   urn:x-rebuild-model:builder:local (rebuild-model 0.1.0)
    signed by nobody
    "#);
    env.write("site/dist/weights/params_shard_0.bin", "0123456788\n");
    let flipped = env.run(&["verify", "dist/manifest.json"]).code(8);
    assert_snapshot!(flipped.stderr, @r#"
    error: dist/manifest.json does not hold: artifact weights/params_shard_0.bin: packed sha256: expected <sha256>, found <sha256>
    hint: do not deliver these files; build and package again, or restore them from where they were built
    "#);
}

#[test]
fn two_builds_in_two_places_deliver_the_same() {
    let (one, other) = (mini(), mini());
    one.build(&["--jobs", "4"]).code(0);
    other.build(&["--jobs", "1", "--output", &other.text("elsewhere"), "-w", &other.text("work")]).code(0);
    assert_eq!(one.read("site/dist/manifest.json"), other.read("elsewhere/manifest.json"));
    // Nothing outside the named places changed.
    assert!(!other.path("site/dist").exists() && !other.path("site/.rebuild").exists());
}

#[test]
fn a_failed_step_is_named_with_its_output_and_keeps_its_tree_and_log() {
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) for out in "$@"; do :; done; echo half > "$out"; echo "vm_pack.cc:1: error: no such thing" >&2; exit 3;; esac"#);
    let failed = env.build(&["--jobs", "1"]).code(7);
    assert_snapshot!(failed.stderr, @r#"
    error: step objects-vm: ROOT/bin/emcc ended with exit code 3
      | + cd ROOT/site/.rebuild/tvm-webgpu/out/patched/tree/tvm && ROOT/bin/emcc -Os -std=c++17 -Wno-ignored-attributes -ffile-prefix-map=ROOT/site/.rebuild/tvm-webgpu/out/patched/tree=. -I. -Iinclude -I3rdparty/tvm-ffi/include -c web/emcc/vm_pack.cc -o ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/out/vm_pack.o
      | vm_pack.cc:1: error: no such thing
    hint: the whole log is ROOT/site/.rebuild/tvm-webgpu/logs/objects-vm.log
    "#);
    let log = env.read("site/.rebuild/tvm-webgpu/logs/objects-vm.log");
    assert!(log.contains("no such thing"), "{log}");
    assert_eq!(env.read("site/.rebuild/tvm-webgpu/tmp/objects-vm/1/out/vm_pack.o"), "half\n");
    assert_eq!(env.record("objects-vm")["outcome"], "failed");
    assert!(!env.path("site/dist").exists());
}

#[test]
fn a_step_ended_by_a_signal_says_which() {
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) kill -9 $$;; esac"#);
    let killed = env.build(&["--jobs", "1"]).code(7);
    assert_snapshot!(killed.stderr, @r#"
    error: step objects-vm: ROOT/bin/emcc was ended by signal 9 (killed)
      | + cd ROOT/site/.rebuild/tvm-webgpu/out/patched/tree/tvm && ROOT/bin/emcc -Os -std=c++17 -Wno-ignored-attributes -ffile-prefix-map=ROOT/site/.rebuild/tvm-webgpu/out/patched/tree=. -I. -Iinclude -I3rdparty/tvm-ffi/include -c web/emcc/vm_pack.cc -o ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/out/vm_pack.o
    hint: signal 9 usually means that the system ran out of memory (try fewer --jobs), or on macOS that a library's signature is invalid; the whole log is ROOT/site/.rebuild/tvm-webgpu/logs/objects-vm.log
    "#);
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) kill -SEGV $$;; esac"#);
    let crashed = env.build(&["--jobs", "1"]).code(7);
    assert_snapshot!(crashed.stderr, @r#"
    error: step objects-vm: ROOT/bin/emcc was ended by signal 11 (segmentation fault)
      | + cd ROOT/site/.rebuild/tvm-webgpu/out/patched/tree/tvm && ROOT/bin/emcc -Os -std=c++17 -Wno-ignored-attributes -ffile-prefix-map=ROOT/site/.rebuild/tvm-webgpu/out/patched/tree=. -I. -Iinclude -I3rdparty/tvm-ffi/include -c web/emcc/vm_pack.cc -o ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/out/vm_pack.o
    hint: the whole log is ROOT/site/.rebuild/tvm-webgpu/logs/objects-vm.log
    "#);
}

#[test]
fn outputs_are_exactly_the_declared_ones() {
    let env = mini();
    let first = r#"case "$*" in *vm_pack*) for out in "$@"; do :; done; echo more > "${out%/*}/extra.o";; esac"#;
    env.before("emcc", first);
    let more = env.build(&["--jobs", "1"]).code(7);
    assert_snapshot!(more.stderr, @"error: step objects-vm: wrote extra.o, which is not one of its outputs (vm_pack.o)");
    env.before_not("emcc", first);
    env.before("emcc", r#"case "$*" in *vm_pack*) echo "did nothing"; exit 0;; esac"#);
    let less = env.build(&["--jobs", "1", "--resume"]).code(7);
    assert_snapshot!(less.stderr, @r#"
    error: step objects-vm: ended well, but did not write its output vm_pack.o; it wrote nothing
    hint: its log tells what it did
    "#);
}

#[test]
fn a_step_that_writes_into_its_input_is_refused() {
    let env = mini();
    let first = r#"case "$*" in *vm_pack.cc*) echo more >> web/emcc/vm_pack.cc;; esac"#;
    env.before("emcc", first);
    let failed = env.build(&["--jobs", "1"]).code(7);
    assert_snapshot!(failed.stderr, @r#"
    error: step objects-vm: changed out/patched/tree/tvm/web/emcc/vm_pack.cc, which step patched made
    hint: a step may write only below its own output and scratch directories
    "#);
    // What it spoiled is not built upon.
    env.before_not("emcc", first);
    let resumed = env.build(&["--resume", "--format", "json"]).code(0).json();
    let ran = resumed["ran"].as_array().unwrap();
    assert!(ran.contains(&"patched".into()) && !ran.contains(&"sources".into()), "{ran:?}");
}

#[test]
fn output_that_is_not_utf_8_is_shown_and_kept() {
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) printf 'caf\351 \377\n' >&2; exit 1;; esac"#);
    let failed = env.build(&["--jobs", "1"]).code(7);
    assert!(failed.stderr.contains("  | caf\u{fffd} \u{fffd}"), "{}", failed.stderr);
    let log = std::fs::read(env.path("site/.rebuild/tvm-webgpu/logs/objects-vm.log")).unwrap();
    assert!(log.windows(6).any(|bytes| bytes == b"caf\xe9 \xff"));
    // The journal and the JSON error stay text.
    let failed = env.build(&["--jobs", "1", "--resume", "--format", "json"]).code(7);
    assert!(failed.json()["error"]["detail"].as_str().unwrap().contains("caf\u{fffd}"));
}

#[test]
fn what_children_print_goes_to_the_log_and_not_to_the_terminal() {
    let env = mini();
    env.before("emcc", "echo on-standard-output; echo on-standard-error >&2");
    let ran = env.build(&[]).code(0);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("on-standard"), "{}\n{}", ran.stdout, ran.stderr);
    let log = env.read("site/.rebuild/tvm-webgpu/logs/link.log");
    assert!(log.contains("on-standard-output\non-standard-error\n"), "{log}");
}

#[test]
fn an_artifact_over_the_limit_is_refused_and_nothing_is_delivered() {
    let env = mini();
    env.edit("site/pins.toml", "[packaging]\n", "[packaging]\nsize_limit = 10\n");
    let failed = env.build(&[]).code(8);
    assert_snapshot!(failed.stderr, @r#"
    error: step package: 4 files are larger than the limit of 10 bytes a file: decoder-webgpu.wasm.gz (653 bytes), tvmjs.cjs.gz (40 bytes), weights/tensor-cache.json (16 bytes), …
      | largest files, in bytes:
      |            653  decoder-webgpu.wasm.gz
      |             40  tvmjs.cjs.gz
      |             16  weights/tensor-cache.json
      |             11  weights/params_shard_0.bin
    hint: build smaller parts (fewer bytes a weight shard), encode with `br` or at a higher level, deliver larger files in parts (`split = true` under [packaging]), or raise `size_limit` if the host takes such files
    "#);
    assert!(!env.path("site/dist").exists());
}

#[test]
fn the_environment_of_a_command_is_scrubbed_and_private() {
    let mut env = mini();
    env.set("SECRET_TOKEN", "of the caller");
    env.set("LC_ALL", "de_DE.UTF-8");
    env.set("PYTHONPATH", "/of/the/caller");
    env.set("EM_CACHE", "/of/the/caller");
    env.set("HTTPS_PROXY", "http://proxy.example");
    env.before(
        "emcc",
        r#"case "$*" in *vm_pack*) env | grep -v -e ^_= -e ^PWD= -e ^OLDPWD= -e ^SHLVL= | LC_ALL=C sort;; esac"#,
    );
    env.build(&[]).code(0);
    let log = env.normalize(&env.read("site/.rebuild/tvm-webgpu/logs/objects-vm.log"));
    let lines: Vec<_> = log.lines().filter(|line| !line.starts_with('+')).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    EM_CACHE=ROOT/site/.rebuild/tvm-webgpu/cache/emscripten
    HOME=ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/home
    LANG=C.UTF-8
    LC_ALL=C.UTF-8
    PATH=ROOT/bin:/usr/bin:/bin
    PYTHONDONTWRITEBYTECODE=1
    PYTHONHASHSEED=0
    PYTHONNOUSERSITE=1
    SOURCE_DATE_EPOCH=315532800
    TEMP=ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/tmp
    TERM=dumb
    TMP=ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/tmp
    TMPDIR=ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/tmp
    TZ=UTC
    XDG_CACHE_HOME=ROOT/site/.rebuild/tvm-webgpu/tmp/objects-vm/1/home/.cache
    "#);
    // A step with network gets what the network needs, and its name is recorded.
    env.build(&["-w", &env.text("second")]).code(0);
    let journal = env.read("second/journal.jsonl");
    assert!(journal.lines().next().unwrap().contains(r#""passed_through":["HTTPS_PROXY"]"#), "{journal}");
}

#[test]
fn the_callers_umask_does_not_show() {
    let env = mini();
    env.build(&["-w", &env.text("usual")]).code(0);
    let arguments = build_arguments(&["-w"]).join(" ");
    let program = env!("CARGO_BIN_EXE_rebuild-model");
    let command = env.command(&[]);
    let umask = duct::cmd!("/bin/sh", "-c", format!("umask 077; exec {program} {arguments} {}", env.text("private")));
    let variables = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let directory = command.get_current_dir().unwrap().to_owned();
    umask.dir(directory).full_env(variables).stdout_null().run().unwrap();
    let outputs = |place: &str| {
        let text = env.read(&format!("{place}/journal.jsonl"));
        let entries = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        entries
            .filter(|entry| entry["step"].is_object())
            .map(|entry| (entry["step"]["step"].to_string(), entry["step"]["outputs"].to_string()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(outputs("usual"), outputs("private"));
}

#[test]
fn children_without_network_have_none() {
    if !rebuild_model::process::can_isolate() {
        return;
    }
    let env = mini();
    // Only the loopback is left in /proc/net/dev, behind two lines of heading.
    env.before("emcc", r#"case "$*" in *vm_pack*) sed 1,2d /proc/net/dev > "${0%/bin/*}/devices";; esac"#);
    env.build(&[]).code(0);
    let devices = env.read("devices");
    assert!(devices.lines().all(|line| line.trim().starts_with("lo:")), "{devices}");
    assert_eq!(env.record("objects-vm")["isolated"], true);
}

#[test]
fn a_vendored_package_of_another_digest_does_not_serve() {
    let env = mini();
    env.write("vendor/linux-x64-1.0.0.tgz", "another");
    let failed = env.build(&[]).code(4);
    assert_snapshot!(failed.stderr, @r#"
    error: step fetch-esbuild: npm package @esbuild/linux-x64 1.0.0 (linux-x64-1.0.0.tgz) is in no vendor directory and not in the cache, and this run is offline
    hint: run once without --offline, or put the file with sha256 <sha256> into a --vendor directory
    "#);
}

#[test]
fn a_downloaded_package_of_another_digest_is_a_mismatch() {
    let env = mini();
    std::fs::remove_file(env.path("vendor/linux-x64-1.0.0.tgz")).unwrap();
    env.tool(
        "npm",
        "case \"$1\" in --version) echo 10.0.0; exit;; esac
while [ $# -gt 0 ]; do case \"$1\" in --pack-destination) echo another > \"$2/linux-x64-1.0.0.tgz\";; esac; shift; done",
    );
    let failed = env.run(&["build", "--vendor", "../vendor", "--format", "json"]).code(5).json();
    assert_eq!(failed["error"]["class"], "pin-mismatch");
    assert_eq!(failed["error"]["step"], "fetch-esbuild");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("expected sha256") && message.contains("found"), "{message}");
}

fn pins_with(env: &TestEnv, from: &str, to: &str) {
    env.edit("site/pins.toml", from, to);
}

#[test]
fn a_patch_that_is_missing_or_another_is_found_out_before_any_work() {
    let env = mini();
    env.write("site/patches/two.patch", "edited\n");
    let edited = env.build(&[]).code(5);
    assert_snapshot!(edited.stderr, @r#"
    error: patch ROOT/site/patches/two.patch has sha256 <sha256>, and <sha256> is pinned
    hint: restore the file, or review the change and pin the new digest
    "#);
    std::fs::remove_file(env.path("site/patches/two.patch")).unwrap();
    let missing = env.build(&[]).code(4);
    assert_snapshot!(missing.stderr, @r#"
    error: patch ROOT/site/patches/two.patch cannot be read
      because: No such file or directory (os error 2)
    hint: paths in a pins file are relative to it
    "#);
    assert!(!env.path("site/.rebuild").exists());
}

#[test]
fn a_patch_that_does_not_fit_fails_its_step() {
    let env = mini();
    let patch = crate::mini::PATCH.replace("-two", "-deux");
    env.write("site/patches/two.patch", &patch);
    let pinned = rebuild_model::digest::Digest::of(crate::mini::PATCH.as_bytes()).to_string();
    pins_with(&env, &pinned, &rebuild_model::digest::Digest::of(patch.as_bytes()).to_string());
    let failed = env.build(&[]).code(6);
    assert_snapshot!(failed.stderr, @r#"
    error: step patched: patch two: tvm/web/src/index.ts: hunk 1 of 1 (@@ -1,3 +1,3 @@) does not fit: other lines stand there
      | hunk 1 of 1, line 3 of the patch, expects (-) and tvm/web/src/index.ts has (+) at line 1:
      |      1   one
      |        - deux
      |      2 + two
      |      3   three
      | nearest match: this place, 2 of 3 lines as expected
      | tvm/web/src/index.ts is blob <id>, for which the patch was made: the patch has been edited or damaged
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn every_file_that_is_written_says_its_schema() {
    let env = mini();
    env.build(&[]).code(0);
    let schema = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["schema"].clone();
    assert_eq!(schema(&env.read("site/.rebuild/tvm-webgpu/plan.json")), 1);
    assert_eq!(schema(&env.read("site/dist/manifest.json")), 1);
    assert_eq!(schema(&env.read("site/.rebuild/tvm-webgpu/out/package/package/manifest.json")), 1);
    assert_eq!(schema(&env.read("site/.rebuild/tvm-webgpu/out/ffi-symbols/symbols.json")), 1);
    let journal = env.read("site/.rebuild/tvm-webgpu/journal.jsonl");
    assert!(journal.starts_with(r#"{"run":{"schema":1,"#), "{journal}");
}

#[test]
fn a_build_can_end_with_a_smoke_test() {
    let env = mini();
    env.tool("browser", "echo 'no display' >&2; exit 3");
    let browser = env.text("bin/browser");
    let built = env.build(&["--smoke", "--browser", &browser, "--format", "json"]).code(11);
    let report = built.json();
    assert_eq!(report["smoke"]["outcome"], "inconclusive");
    assert_eq!(report["smoke"]["libraries"][0]["library"], "decoder-webgpu");
    assert!(report["smoke"]["libraries"][0]["checks"][0]["detail"].as_str().unwrap().contains("no display"));
    // What was built is delivered and told all the same.
    assert!(report["artifacts"].is_object() && env.path("site/dist/manifest.json").exists());
    let text = env.build(&["--resume", "--smoke", "--browser", &browser]).code(11).stdout;
    assert!(
        text.contains("manifest  ROOT/site/dist/manifest.json") && text.contains("decoder-webgpu: inconclusive"),
        "{text}"
    );
    env.build(&["--dry-run", "--smoke"]).code(1);
    env.build(&["--resume", "--browser", &browser]).code(1);
}

#[test]
fn what_was_delivered_in_parts_is_tried_too() {
    let env = mini();
    env.edit(
        "site/pins.toml",
        "[packaging]\n",
        "[packaging]\nencoding = \"identity\"\nsplit = true\nsize_limit = 950\n",
    );
    let browser = env.text("bin/browser");
    env.tool("browser", "echo no display >&2; exit 3");
    let built = env.build(&["--smoke", "--browser", &browser, "--format", "json"]).code(11).json();
    assert!(env.path("site/dist/decoder-webgpu.wasm.parts.json").is_file());
    assert_eq!(built["smoke"]["libraries"][0]["library"], "decoder-webgpu");
    let again = env.run(&["smoke", "dist/manifest.json", "--browser", &browser, "--format", "json"]).code(11).json();
    assert_eq!(again["libraries"][0]["checks"][0]["name"], "browser");
    std::fs::remove_file(env.path("site/dist/decoder-webgpu.wasm.part-001")).unwrap();
    let broken = env.run(&["smoke", "dist/manifest.json", "--browser", &browser]).code(8);
    assert!(broken.stderr.contains("decoder-webgpu.wasm is not what the manifest says"), "{}", broken.stderr);
}
