//! Tools that are missing, too old, or not what they say.

use insta::assert_snapshot;

use crate::mini::mini;

#[test]
fn a_missing_tool_is_named_with_the_way_to_get_it() {
    let env = mini();
    std::fs::remove_file(env.path("bin/emcc")).unwrap();
    assert_snapshot!(env.build(&[]).code(2).stderr, @r#"
    error: tool `emcc` (version >=3.1.6) is not on PATH
    hint: install Emscripten 3.1.6 or newer
    "#);
    assert!(!env.path("site/.rebuild").exists());
}

#[test]
fn a_tool_that_is_too_old_is_named_with_its_version() {
    let env = mini();
    env.edit("bin/emcc.script", "3.1.6", "3.1.5");
    assert_snapshot!(env.build(&[]).code(2).stderr, @r#"
    error: tool `emcc` is version 3.1.5, and >=3.1.6 is wanted (ROOT/bin/emcc)
    hint: install Emscripten 3.1.6 or newer
    "#);
    let env = mini();
    env.edit("bin/python3.script", "3.11.7", "3.12.0");
    assert_snapshot!(env.build(&[]).code(2).stderr, @r#"
    error: tool `python` is version 3.12.0, and 3.11 is wanted (ROOT/bin/python3)
    hint: install Python 3.11 with pip and venv
    "#);
}

#[test]
fn a_tool_that_contradicts_itself_is_refused() {
    let env = mini();
    env.edit("bin/emcc.script", "echo 3.1.6", "echo 2.0.9");
    assert_snapshot!(env.build(&[]).code(2).stderr, @r#"
    error: tool `emcc` (ROOT/bin/emcc) contradicts itself: --version says 3.1.6, -dumpversion says 2.0.9
    hint: something else stands under this name on PATH; put the real program before it
    "#);
}

#[test]
fn a_tool_that_does_not_say_its_version_is_refused() {
    let env = mini();
    env.tool("npm", "echo 'nothing here'");
    assert_snapshot!(env.build(&[]).code(2).stderr, @r#"
    error: tool `npm` (ROOT/bin/npm) does not say its version: --version gave `nothing here`
    hint: something else stands under this name on PATH; put the real program before it
    "#);
    env.tool("npm", "exit 1");
    env.build(&[]).code(2);
}

#[test]
fn a_program_that_cannot_be_started_is_refused() {
    let env = mini();
    std::fs::remove_file(env.path("bin/npm")).unwrap();
    env.write("bin/npm", "#!/no/such/interpreter\n");
    std::fs::set_permissions(env.path("bin/npm"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = env.build(&[]).code(2);
    assert!(refused.stderr.contains("tool `npm` (ROOT/bin/npm) cannot be used"), "{}", refused.stderr);
}

#[test]
fn doctor_lists_everything_that_is_wrong_at_once() {
    let mut env = mini();
    let well = env.run(&["doctor", "--format", "json"]);
    // Memory is the machine's; the rest is this test's.
    let well = well.json();
    assert_eq!(well["tools"].as_array().unwrap().len(), 5);
    assert_eq!(well["tools"][1]["found"]["version"], "3.1.6");
    std::fs::remove_file(env.path("bin/emcc")).unwrap();
    env.edit("bin/uv.script", "0.9.1", "0.1.0");
    env.set("REBUILD_WORKSPACE", &env.text("with space"));
    let before = env.listing("");
    let found = env.run(&["doctor"]).code(2);
    let problems: Vec<_> =
        found.stdout.lines().filter(|line| line.contains("problem") || line.contains("hint")).collect();
    assert_snapshot!(problems.join("\n"), @r#"
    problem   tool `emcc` (version >=3.1.6) is not on PATH
      hint    install Emscripten 3.1.6 or newer
    problem   tool `uv` is version 0.1.0, and >=0.4 is wanted (ROOT/bin/uv)
      hint    install it and put it on PATH
    problem   workspace "ROOT/with space" has white space in its path, which the tools of a build do not survive
      hint    name another path with --workspace, for example below /tmp
    "#);
    let json = env.run(&["doctor", "--format", "json"]).code(2).json();
    assert_eq!(json["problems"].as_array().unwrap().len(), 3);
    assert_eq!(env.listing(""), before);
}
