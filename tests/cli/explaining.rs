//! `explain` and `log`: what a step is, why it ran, what it read and made.

use crate::mini::mini;

#[test]
fn a_step_is_explained_from_the_plan_before_anything_ran() {
    let env = mini();
    let planned = env.run(&["explain", "objects-vm"]).code(0).stdout;
    assert!(planned.contains("objects-vm [run]") && planned.contains("${tool:emcc}"), "{planned}");
    assert!(planned.contains("it has not run here"), "{planned}");
    let fetched = env.run(&["explain", "decoder", "--format", "json"]).code(0).json();
    assert_eq!(fetched["materials"][0]["kind"], "git");
    assert_eq!(fetched["runs"].as_array().unwrap().len(), 0);
    let unknown = env.run(&["explain", "nothing"]).code(1).stderr;
    assert!(unknown.contains("no step `nothing`") && unknown.contains("objects-vm"), "{unknown}");
    env.run(&["log", "objects-vm"]).code(3);
}

#[test]
fn a_step_that_ran_says_from_what_why_and_what_it_made() {
    let env = mini();
    env.build(&[]).code(0);
    let before = env.record("objects-vm");
    let first = env.run(&["explain", "objects-vm", "--format", "json"]).code(0).json();
    assert_eq!(first["outputs"][0]["recorded"], before["outputs"]["vm_pack.o"]);
    assert_eq!(first["outputs"][0]["found"], before["outputs"]["vm_pack.o"]);
    assert_eq!(first["runs"][0]["reason"], "runs: no record of an earlier run");
    assert_eq!(first["tools"]["emcc"]["version"], "3.1.6");
    assert!(first["readBy"].as_array().unwrap().iter().any(|step| step == "link"), "{first}");

    // Another version of a tool, and an output that somebody changed.
    env.edit("bin/emcc.script", "3.1.6", "3.1.7");
    // Nothing about the program file changed, so it is only asked again where nothing is remembered.
    std::fs::remove_file(env.path("site/.rebuild/tvm-webgpu/tools.json")).unwrap();
    env.write("site/.rebuild/tvm-webgpu/out/objects-wasm/wasm_runtime.o", "spoilt");
    env.build(&["--resume"]).code(0);
    let again = env.run(&["explain", "objects-vm"]).code(0).stdout;
    assert!(again.contains("runs: what it is made from changed"), "{again}");
    assert!(again.contains("tool emcc: 3.1.6 (sha256 <sha256>) → 3.1.7 (sha256 <sha256>)"), "{again}");
    env.write("site/.rebuild/tvm-webgpu/out/objects-vm/vm_pack.o", "spoilt");
    let spoilt = env.run(&["explain", "objects-vm"]).code(0).stdout;
    assert!(spoilt.contains("<sha256> now, and <sha256> when it was made"), "{spoilt}");
}

#[test]
fn another_plan_than_the_workspaces_is_said() {
    let env = mini();
    env.build(&[]).code(0);
    let same = env.run(&["explain", "package"]).code(0).stdout;
    assert!(!same.contains("makes another plan"), "{same}");
    env.edit("site/pins.toml", "max_batch_size = 1", "max_batch_size = 2");
    let other = env.run(&["explain", "package"]).code(0).stdout;
    assert!(other.contains("makes another plan"), "{other}");
    // A workspace is enough: no pins file is needed.
    std::fs::remove_file(env.path("site/pins.toml")).unwrap();
    env.run(&["explain", "package", "--workspace", &env.text("site/.rebuild/tvm-webgpu")]).code(0);
}

#[test]
fn a_failed_steps_log_is_shown_and_cannot_command_the_terminal() {
    let env = mini();
    let first = r#"case "$*" in *vm_pack*) printf 'one\ntwo \033[2J\n'; exit 3;; esac"#;
    env.before("emcc", first);
    env.build(&["--jobs", "1"]).code(7);
    let log = env.run(&["log", "objects-vm"]).code(0).stdout;
    assert!(log.contains("\none\ntwo \\u{1b}[2J"), "{log}");
    let tail = env.run(&["log", "objects-vm", "--tail", "2", "--format", "json"]).code(0).json();
    assert!(tail["text"].as_str().unwrap().starts_with("two "), "{tail}");
    let path = env.run(&["log", "objects-vm", "--path"]).code(0).stdout;
    assert_eq!(path, "ROOT/site/.rebuild/tvm-webgpu/logs/objects-vm.log");
    let failed = env.run(&["explain", "objects-vm"]).code(0).stdout;
    assert!(failed.contains("failed after") && failed.contains("ended with exit code 3"), "{failed}");
}
