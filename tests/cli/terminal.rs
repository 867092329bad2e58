//! What stands on standard output and standard error, and the verbs that only print.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::mini::mini;

#[test]
fn errors_as_json_are_one_document_on_standard_output() {
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) echo why; exit 3;; esac"#);
    let failed = env.build(&["--jobs", "1", "--format", "json"]).code(7);
    assert_eq!(failed.stderr, "");
    let error = &failed.json()["error"];
    assert_eq!(error["class"], "step");
    assert_eq!(error["exitCode"], 7);
    assert_eq!(error["step"], "objects-vm");
    assert!(error["message"].as_str().unwrap().ends_with("emcc ended with exit code 3"));
    assert!(error["detail"].as_str().unwrap().ends_with("why"));
    assert!(error["hint"].as_str().unwrap().contains("the whole log is"));
    let keys: Vec<_> = error.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["class", "exitCode", "step", "message", "causes", "detail", "hint"]);
    let other = TestEnv::new();
    let missing = other.run(&["plan", "--format", "json"]).code(1).json();
    assert_eq!(missing["error"]["causes"][0], "No such file or directory (os error 2)");
}

#[test]
fn every_result_is_one_json_document() {
    let env = mini();
    env.build(&["--format", "json"]).code(0).json();
    env.build(&["--format", "json", "--resume"]).code(0).json();
    for arguments in [
        &["plan"] as &[&str],
        &["pins", "check"],
        &["pins", "lock"],
        &["verify", "dist/manifest.json"],
        &["plan", "--diff", "pins.toml"],
    ] {
        let ran = env.run(&[arguments, &["--format", "json"]].concat()).code(0);
        ran.json();
        assert_eq!(ran.stderr, "", "{arguments:?}");
    }
}

#[test]
fn progress_is_lines_where_there_is_no_terminal() {
    let env = mini();
    let lines = |more: &[&str]| {
        let place = env.path("work");
        let _ = std::fs::remove_dir_all(&place);
        let all = ["build", "--offline", "--vendor", "../vendor", "-w", place.to_str().unwrap()];
        let ran = env.run(&[&all, more].concat()).code(0);
        assert!(!ran.stdout.is_empty());
        assert!(!ran.stderr.contains('\x1b'), "{}", ran.stderr);
        ran.stderr
    };
    for mode in [&[] as &[&str], &["--progress", "plain"]] {
        let shown = lines(mode);
        assert_eq!(shown.lines().filter(|line| line.contains(": done in ")).count(), 24, "{shown}");
        assert_eq!(shown.lines().filter(|line| line.contains("(runs: no record")).count(), 24, "{shown}");
        assert!(shown.contains("[24/24] package: done"), "{shown}");
    }
    assert_eq!(lines(&["--quiet"]), "");
    assert_eq!(lines(&["--progress", "none"]), "");
}

/// What the program shows on a terminal, which util-linux's `script` pretends to be.
fn on_a_terminal(env: &TestEnv, arguments: &str) -> Option<String> {
    let script = which::which("script").ok()?;
    let program = env!("CARGO_BIN_EXE_rebuild-model");
    let command = env.command(&[]);
    let variables = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let shell = [("SHELL".into(), "/bin/sh".into()), ("TERM".into(), "xterm".into())];
    let typed = format!("{program} {arguments}");
    let ran = duct::cmd!(script, "-qec", typed, "/dev/null")
        .dir(command.get_current_dir()?)
        .full_env(variables.chain(shell))
        .stdin_null()
        .stdout_capture()
        .unchecked()
        .run()
        .unwrap();
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
fn a_terminal_gets_bars_and_colours_unless_told_otherwise() {
    let mut env = mini();
    let Some(shown) = on_a_terminal(&env, "plan --pins none.toml") else { return };
    assert!(shown.contains("\x1b[31;1merror\x1b[0m: cannot read"), "{shown}");
    let build = |more: &str| format!("build --offline --vendor ../vendor {more}");
    let shown = on_a_terminal(&env, &build("")).unwrap();
    assert!(shown.contains("/24 steps") && shown.contains("24 of 24 steps in"), "{shown}");
    assert!(!shown.contains(": done in"), "{shown}");
    let shown = on_a_terminal(&env, &build("--resume --progress plain")).unwrap();
    assert!(shown.contains("[24/24]") && !shown.contains('\x1b'), "{shown}");
    env.set("NO_COLOR", "1");
    let shown = on_a_terminal(&env, "plan --pins none.toml").unwrap();
    assert!(shown.contains("error: cannot read") && !shown.contains('\x1b'), "{shown}");
}

#[test]
fn log_lines_can_be_json() {
    let mut env = mini();
    // A cache that cannot be used is worth a warning and nothing more.
    env.write("not-a-directory", "");
    env.set("XDG_CACHE_HOME", &env.text("not-a-directory"));
    env.tool("npm", "case \"$1\" in --version) echo 10.0.0; exit;; esac
while [ $# -gt 0 ]; do case \"$1\" in --pack-destination) cp \"${0%/bin/*}/esbuild.tgz\" \"$2/linux-x64-1.0.0.tgz\";; esac; shift; done");
    std::fs::rename(env.path("vendor/linux-x64-1.0.0.tgz"), env.path("esbuild.tgz")).unwrap();
    let arguments = ["build", "--vendor", "../vendor", "--progress", "none", "--log-format", "json"];
    let ran = env.run(&arguments).code(0);
    let lines: Vec<serde_json::Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    assert_eq!(lines[0]["level"], "WARN");
    assert!(ran.stderr.contains("is not kept in the cache"), "{}", ran.stderr);
    assert!(ran.stdout.contains("note      fetch-esbuild: "), "{}", ran.stdout);
}

#[test]
fn a_bad_command_line_is_exit_code_1() {
    let env = TestEnv::new();
    for arguments in [
        &["bild"] as &[&str],
        &[],
        &["build", "--jobs", "0"],
        &["build", "--jobs", "many"],
        &["build", "--format", "xml"],
        &["verify"],
        &["plan", "--platform", "x"],
        &["completions", "cmd"],
    ] {
        let refused = env.run(arguments).code(1);
        assert_eq!(refused.stdout, "", "{arguments:?}");
        assert!(!refused.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let env = TestEnv::new();
    let help = env.run(&["--help"]).code(0).stdout;
    for class in ["1 usage", "2 the host", "3 workspace", "10 interrupted", "11 inconclusive"] {
        assert!(help.contains(class), "{class}");
    }
    assert_snapshot!(env.run(&["--version"]).code(0).stdout, @"rebuild-model 0.1.0");
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let env = TestEnv::new();
    let verbs = ["build", "plan", "pins", "verify", "doctor", "completions", "man"];
    for shell in ["bash", "zsh", "fish"] {
        let script = env.run(&["completions", shell]).code(0).stdout;
        for verb in verbs {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    std::fs::create_dir(env.path("man")).unwrap();
    env.run(&["man", &env.text("man")]).code(0);
    for verb in verbs {
        let page = env.read(&format!("man/rebuild-model-{verb}.1"));
        assert!(page.contains(".TH"), "{verb}");
    }
    assert!(env.path("man/rebuild-model.1").is_file() && env.path("man/rebuild-model-pins-lock.1").is_file());
    let refused = env.run(&["man", "not-there"]).code(2);
    assert_snapshot!(refused.stderr, @r#"
    error: cannot write not-there
      because: No such file or directory (os error 2)
    hint: make the directory first, or name a place in an existing one
    "#);
}

#[test]
fn scripts_and_pages_are_one_document_where_one_is_asked_for() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.run(&["completions", shell, "--format", "json"]).code(0).json();
        let text = env.run(&["completions", shell]).code(0).raw;
        assert_eq!((&script["shell"], script["script"].as_str().unwrap().trim_end()), (&shell.into(), text.trim_end()));
    }
    std::fs::create_dir(env.path("man")).unwrap();
    let manual = env.run(&["man", &env.text("man"), "--format", "json"]).code(0).json();
    let pages: Vec<_> = manual["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    let mut found: Vec<_> = std::fs::read_dir(env.path("man"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(pages, found);
    assert!(pages.contains(&"rebuild-model.1") && pages.contains(&"rebuild-model-pins-check.1"));
    let text = env.run(&["man", &env.text("man")]).code(0).stdout;
    assert_eq!(text, format!("{} pages are in ROOT/man", pages.len()));
    assert_eq!(env.run(&["man", "none", "--format", "json"]).code(2).json()["error"]["class"], "preflight");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let env = mini();
    let mut child = env.start(&["plan"]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_bad_command_line_is_one_document_too() {
    let env = TestEnv::new();
    for arguments in [&["build", "--format", "json", "--jobs", "none"][..], &["--format=json", "nothing"]] {
        let error = env.run(arguments).code(1).json();
        assert_eq!(error["error"]["class"], "usage");
        assert_eq!(error["error"]["exitCode"], 1);
    }
    let text = env.run(&["build", "--jobs", "none"]).code(1);
    assert!(text.stdout.is_empty() && text.stderr.starts_with("error: invalid value 'none'"), "{}", text.stderr);
}
