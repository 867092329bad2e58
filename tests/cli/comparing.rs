//! `diff` on what builds leave: manifests, pins, plans, workspaces.

use crate::mini::mini;

#[test]
fn two_equal_builds_are_equal_in_every_form() {
    let (one, other) = (mini(), mini());
    one.build(&[]).code(0);
    other.build(&[]).code(0);
    for path in ["site/dist/manifest.json", "site/pins.toml", "site/.rebuild/tvm-webgpu/plan.json", "site/dist"] {
        let ran = one.run(&["diff", &one.text(path), &other.text(path)]);
        if path == "site/dist" {
            continue;
        }
        assert!(ran.code(0).stdout.ends_with("are equal"), "{path}");
    }
    let workspaces = [one.text("site/.rebuild/tvm-webgpu"), other.text("site/.rebuild/tvm-webgpu")];
    one.run(&["diff", &workspaces[0], &workspaces[1]]).code(0);
}

#[test]
fn a_changed_tool_is_the_cause_that_workspaces_tell() {
    let (one, other) = (mini(), mini());
    one.build(&[]).code(0);
    other.edit("bin/emcc.script", "3.1.6", "3.1.7");
    other.before("emcc", r#"case "$*" in *vm_pack.cc*) for out in "$@"; do :; done; echo other > "$out"; exit;; esac"#);
    other.build(&[]).code(0);
    let (left, right) = (one.text("site/.rebuild/tvm-webgpu"), other.text("site/.rebuild/tvm-webgpu"));
    let ran = one.run(&["diff", &left, &right, "--format", "json"]).code(9).json();
    let findings = ran["findings"].as_array().unwrap();
    let first = findings.iter().find(|finding| finding["lines"].to_string().contains("the first step")).unwrap();
    assert_eq!(first["place"][0], "step objects-vm");
    assert!(first["lines"].to_string().contains("tool emcc: 3.1.6"), "{first}");
    let manifest = one.run(&["diff", &one.text("site/dist/manifest.json"), &other.text("site/dist/manifest.json")]);
    let manifest = manifest.code(9).stdout;
    assert!(manifest.contains("artifact decoder-webgpu.wasm.gz"), "{manifest}");
}

#[test]
fn pins_and_plans_are_compared_by_what_they_mean() {
    let (one, other) = (mini(), mini());
    other.edit("site/pins.toml", "max_batch_size = 1", "max_batch_size = 2");
    let pins = one.run(&["diff", "pins.toml", &other.text("site/pins.toml")]).code(9).stdout;
    assert!(pins.contains("max_batch_size") && pins.contains("- 1") && pins.contains("+ 2"), "{pins}");
    other.edit("site/pins.toml", "max_batch_size = 2", "max_batch_size = 1 # of one user");
    let comment = one.run(&["diff", "pins.toml", &other.text("site/pins.toml")]).code(9).stdout;
    assert!(comment.contains("comments or the way it is written"), "{comment}");
    one.run(&["diff", "pins.toml", "nothing.toml"]).code(1);
    one.run(&["diff", "pins.toml", "."]).code(1);
}

#[test]
fn attestations_are_compared_by_what_they_carry() {
    let (one, other) = (mini(), mini());
    one.build(&[]).code(0);
    other.edit("site/pins.toml", "# The miniature.", "# Another one.");
    other.build(&[]).code(0);
    let places = [one.text("site/dist/manifest.intoto.json"), other.text("site/dist/manifest.intoto.json")];
    let text = one.run(&["diff", &places[0], &places[1]]).code(9).stdout;
    assert!(
        text.contains("name pins.toml") && text.contains("-# The miniature.") && text.contains("+# Another one."),
        "{text}"
    );
    assert!(text.contains("invocationId"), "{text}");
}

#[test]
fn diffoscope_is_asked_only_when_wanted_and_there() {
    let env = mini();
    env.write("site/a.txt", "one\n");
    env.write("site/b.txt", "two\n");
    let plain = env.run(&["diff", "a.txt", "b.txt"]).code(9).stdout;
    assert!(!plain.contains("diffoscope"), "{plain}");
    let without = env.run(&["diff", "a.txt", "b.txt", "--diffoscope"]).code(9).stdout;
    assert!(without.contains("diffoscope: it is not on PATH"), "{without}");
    env.tool("diffoscope", r#"for word in "$@"; do :; done; echo "--- $word"; exit 1"#);
    let with = env.run(&["diff", "a.txt", "b.txt", "--diffoscope"]).code(9).stdout;
    assert!(with.contains("diffoscope: --- b.txt"), "{with}");
}

#[test]
fn a_build_tells_what_became_another_and_why() {
    let env = mini();
    let first = env.build(&[]).code(0).stdout;
    assert!(!first.contains("because"), "{first}");
    // Another patch, in another workspace: the attestation tells what was.
    let patch = crate::mini::PATCH.replace("+TWO", "+Two");
    let (before, after) =
        (rebuild_model::digest::Digest::of(crate::mini::PATCH.as_bytes()), env.write("site/patches/two.patch", &patch));
    assert!(after.is_file());
    let digest = rebuild_model::digest::Digest::of(patch.as_bytes()).to_string();
    env.edit("site/pins.toml", &before.to_string(), &digest);
    let images = env.read("site/pins.toml");
    let images = images.split("[patch.two.images]\n").nth(1).unwrap().lines().next().unwrap().to_owned();
    env.edit("site/pins.toml", &format!("[patch.two.images]\n{images}\n"), "");
    let again = env.build(&["-w", &env.text("again")]).code(0).stdout;
    let module = again.split("tvmjs.cjs.gz\n").nth(1).unwrap().split("\nweights").next().unwrap();
    assert!(module.contains("  was      <sha256>") && module.contains("  of       <sha256>"), "{again}");
    assert!(module.contains("because  step patched: - patch two: ./patches/two.patch sha256:<sha256>"), "{again}");
    assert!(!again.split("weights/").nth(1).unwrap().contains("because"), "{again}");
}
