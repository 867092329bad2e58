//! Plans: what they show, what they touch (nothing), and when two are the same.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::mini::mini;

#[test]
fn a_dry_run_touches_nothing_and_needs_nothing() {
    let mut env = mini();
    env.set("PATH", "");
    let before = env.listing("");
    for arguments in [
        &["build", "--dry-run"] as &[&str],
        &["build", "-n", "--format", "json"],
        &["plan"],
        &["plan", "--diff", "pins.toml"],
        &["pins", "check"],
    ] {
        env.run(arguments).code(0);
        assert_eq!(env.listing(""), before, "{arguments:?}");
    }
}

#[test]
fn a_plan_shows_every_input_and_every_command() {
    let env = mini();
    let shown = env.run(&["build", "--dry-run"]).code(0).stdout;
    let pins = env.read("site/pins.toml");
    let raw = env.run(&["plan"]).code(0).raw;
    let quoted = pins.split('"').filter(|word| [40, 64].contains(&word.len()));
    for digest in quoted.filter(|word| word.chars().all(|c| c.is_ascii_hexdigit())) {
        assert!(raw.contains(digest), "{digest}");
    }
    let compile = shown.split("\n\n").find(|part| part.contains("steps")).unwrap();
    let start = compile.find("compile [run]").unwrap();
    let next = start + compile[start..].find(". weights [run]").unwrap();
    let end = compile[..next].rfind('\n').unwrap();
    assert_snapshot!(&compile[start..end], @r#"
    compile [run]: compile the model for WebGPU
         runs: no record of an earlier run
         reads   decoder/tree ffi/python ffi/symbols.json python/venv
         makes   devc.o lib0.o metadata.json
         env     PYTHONPATH=${step:ffi/python}
         in      ${step:decoder/tree}
         $ ${step:python/venv}/bin/python -m decoder.compile --config config.json --max-batch-size 1 --out ${out}
         about   4 CPU s, 512 MiB of memory, 1 MiB on disk
    "#);
    assert!(shown.contains("estimates: 24 steps"), "{shown}");
    assert!(shown.contains("runs: no record of an earlier run"));
}

fn digest(env: &TestEnv) -> String {
    let shown = env.run(&["plan", "--format", "json"]).code(0).json();
    shown["digest"].as_str().unwrap().to_owned()
}

#[test]
fn two_machines_agree_on_the_plan() {
    let (one, mut other) = (mini(), mini());
    other.set("PATH", "/nowhere");
    other.set("HOME", "/nowhere");
    other.set("LANG", "tr_TR.UTF-8");
    other.set("TZ", "Asia/Kathmandu");
    assert_eq!(digest(&one), digest(&other));
    let text = |env: &TestEnv| env.run(&["plan", "--format", "json"]).code(0).json()["plan"].to_string();
    let plan = text(&one);
    assert_eq!(plan, text(&other));
    assert!(!plan.contains(&one.text("")), "an absolute path is in the plan");
}

#[test]
fn comments_and_order_do_not_change_the_plan_and_pins_do() {
    let env = mini();
    let before = digest(&env);
    let pins = env.read("site/pins.toml");
    let (rest, last) = pins.split_at(pins.find("[tool.cxx]").unwrap());
    let (head, tail) = rest.split_at(rest.find("[recipe").unwrap());
    env.write("site/pins.toml", format!("# A comment.\n{head}{last}\n{tail}"));
    assert_eq!(digest(&env), before);
    env.edit("site/pins.toml", "max_batch_size = 1", "max_batch_size = 2");
    assert_ne!(digest(&env), before);
}

#[test]
fn another_platform_makes_another_plan() {
    let env = mini();
    let of = |platform| env.run(&["plan", "--platform", platform, "--format", "json"]).code(0).json()["digest"].clone();
    assert_ne!(of("linux-x86_64"), of("macos-aarch64"));
    let refused = env.run(&["plan", "--platform", "amiga"]).code(1);
    assert!(refused.stderr.contains("is not a platform"), "{}", refused.stderr);
}

#[test]
fn a_difference_of_pins_is_shown_as_a_difference_of_steps() {
    let env = mini();
    env.write("site/old.toml", env.read("site/pins.toml"));
    assert_eq!(env.run(&["plan", "--diff", "old.toml"]).code(0).stdout, "the plans are equal");
    env.edit("site/pins.toml", "max_batch_size = 1", "max_batch_size = 2");
    env.edit(
        "site/pins.toml",
        "name = \"@esbuild/linux-x64\"\nversion = \"1.0.0\"",
        "name = \"@esbuild/linux-x64\"\nversion = \"1.0.1\"",
    );
    assert_snapshot!(env.run(&["plan", "--diff", "old.toml"]).code(0).stdout, @r#"
    input npm fetch-esbuild
      - pkg:npm/%40esbuild/linux-x64@1.0.0 (linux-x64-1.0.0.tgz) sha256:<sha256>
      + pkg:npm/%40esbuild/linux-x64@1.0.1 (linux-x64-1.0.0.tgz) sha256:<sha256>
    step compile: other action
    step link: runs again because of compile
    step fetch-esbuild: other action
    step esbuild: runs again because of fetch-esbuild
    step browser: runs again because of esbuild
    step gates: other action
    step package: runs again because of browser, gates, link
    "#);
    let json = env.run(&["build", "-n", "--diff", "old.toml", "--format", "json"]).code(0).json();
    assert_eq!(json[0]["change"], "material");
    // Only a plan can be compared.
    env.run(&["build", "--diff", "old.toml"]).code(1);
    env.run(&["plan", "--diff", "none.toml"]).code(1);
}

#[test]
fn a_dry_run_of_a_resume_says_which_steps_stand() {
    let env = mini();
    env.build(&[]).code(0);
    let before = env.listing("");
    let shown = env.run(&["build", "--dry-run", "--resume", "--format", "json"]).code(0).json();
    assert_eq!(shown["reasons"], serde_json::json!({}));
    assert_eq!(env.listing(""), before);
    env.write("site/.rebuild/tvm-webgpu/out/objects-vm/vm_pack.o", "edited");
    let shown = env.run(&["build", "--dry-run", "--resume", "--format", "json"]).code(0).json();
    assert_eq!(shown["reasons"]["objects-vm"], "runs: output vm_pack.o was changed");
    assert_eq!(shown["reasons"]["link"], "runs unless objects-vm gives the same again");
    assert_eq!(shown["reasons"].as_object().unwrap().len(), 4);
}

#[test]
fn a_workspace_that_a_build_would_refuse_is_refused() {
    let mut env = mini();
    for (path, code) in [("relative", 1), ("/a b", 2), ("/a/../b", 2), ("/a$b", 2)] {
        let built = env.build(&["-w", path]).code(code).stderr;
        assert_eq!(env.run(&["plan", "-w", path]).code(code).stderr, built);
        assert_eq!(env.build(&["--dry-run", "-w", path]).code(code).stderr, built);
        env.run(&["plan", "-w", path, "--diff", "pins.toml"]).code(code);
    }
    env.set("REBUILD_WORKSPACE", "relative");
    env.run(&["plan"]).code(1);
    // A plan can be looked at while a build works there.
    let there = env.text("site");
    env.set("REBUILD_WORKSPACE", &there);
    env.run(&["plan"]).code(0);
}
