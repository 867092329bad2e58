//! Hosts, files and people that do what nobody expects.
#![expect(clippy::disallowed_methods, reason = "these tests play the shell")]

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

use crate::env::{TestEnv, build_arguments, is_gone};
use crate::mini::mini;

fn pipe(env: &TestEnv, path: &str) {
    assert!(Command::new("mkfifo").arg(env.path(path)).status().unwrap().success());
}

#[test]
fn a_pipe_beside_the_pins_is_refused_and_not_waited_for() {
    let env = mini();
    std::fs::remove_file(env.path("site/requirements.txt")).unwrap();
    pipe(&env, "site/requirements.txt");
    for arguments in [vec!["pins", "check"], build_arguments(&[])] {
        let refused = env.run(&arguments).code(4);
        assert!(refused.stderr.contains("it is not a regular file"), "{}", refused.stderr);
    }
}

#[test]
fn what_is_no_file_or_no_end_is_not_read() {
    let env = mini();
    pipe(&env, "site/pipe");
    std::fs::File::create(env.path("site/large")).unwrap().set_len((16 << 20) + 1).unwrap();
    let shown = ["/dev/zero", "pipe", "large"].map(|pins| env.run(&["pins", "check", "--pins", pins]).code(1).stderr);
    assert_snapshot!(shown.join("\n"), @r"
    error: cannot read the pins file /dev/zero
      because: it is not a regular file
    hint: name another file with --pins
    error: cannot read the pins file pipe
      because: it is not a regular file
    hint: name another file with --pins
    error: cannot read the pins file large
      because: it is larger than 16777216 bytes
    hint: name another file with --pins
    ");
}

#[test]
fn a_pipe_for_an_attestation_is_not_waited_for() {
    let env = mini();
    pipe(&env, "site/pipe");
    let refused = env.run(&["bundle", "--offline", "--attestation", "pipe"]).code(2).stderr;
    assert!(refused.contains("cannot use pipe\n  because: it is not a regular file"), "{refused}");
}

#[test]
fn a_second_signal_ends_what_the_first_does_not_reach() {
    let env = mini();
    // Nobody reads what is printed, and there is no room for it.
    let (_unread, mut full) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&full).unwrap();
    fcntl_setfl(&full, flags | OFlags::NONBLOCK).unwrap();
    while std::io::Write::write(&mut full, &[0]).is_ok() {}
    fcntl_setfl(&full, flags).unwrap();
    let mut child = env.command(&["plan"]).stdout(full).spawn().unwrap();
    let pid = Pid::from_child(&child);
    // Until the handler is there a signal ends the process as well, but not with our code.
    let caught = || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    while !caught().lines().any(|line| {
        line.starts_with("SigCgt:")
            && !line.ends_with("0000000000000000")
            && line.trim_end().ends_with(|c: char| c != '0')
    }) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for _ in 0..2 {
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(child.wait().unwrap().code(), Some(10));
}

#[test]
fn a_hang_up_that_was_ignored_stays_ignored() {
    let env = mini();
    env.before("emcc", r#"case "$*" in *vm_pack*) echo $$ > "${0%/bin/*}/child"; until [ -e "${0%/bin/*}/go" ]; do sleep 0.02; done;; esac"#);
    let program = env.command(&build_arguments(&[]));
    let mut command = Command::new("/usr/bin/nohup");
    command.arg(program.get_program()).args(program.get_args()).current_dir(program.get_current_dir().unwrap());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    env.wait_for("child");
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    env.write("go", "\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_tool_that_leaves_a_daemon_behind_holds_nobody_up() {
    let env = mini();
    env.edit(
        "bin/emcc.script",
        "--version) ",
        "--version) /usr/bin/setsid /bin/sleep 300 & echo $! > \"${0%/bin/*}/daemon\"; /bin/sleep 0.3; ",
    );
    env.build(&[]).code(0);
    let daemon = env.wait_for("daemon");
    // Had it been waited for, it would be gone.
    assert!(!is_gone(&daemon));
    kill_process(Pid::from_raw(daemon.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let env = mini();
    for arguments in [&["plan"][..], &["--format", "json", "plan"], &["completions", "bash"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = env.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_destination_that_cannot_be_used_is_found_out_before_the_work() {
    let env = mini();
    env.write("file", "mine\n");
    let refused = env.build(&["--output", &env.text("file")]).code(2);
    assert!(refused.stderr.contains("is not a directory"), "{}", refused.stderr);
    env.write("site/dist/manifest.json", "{");
    env.build(&[]).code(8);
    assert!(!env.path("site/.rebuild").exists());
    assert_eq!(env.read("file"), "mine\n");
}

#[test]
fn the_advice_for_a_workspace_never_ignores_more_than_it() {
    let env = mini();
    git2::Repository::init(env.path("site")).unwrap();
    let refused = env.build(&["-w", &env.text("site/src/deep/ws")]).code(3);
    assert!(refused.stderr.contains("add the line `/src/deep/ws/` to"), "{}", refused.stderr);
}

#[test]
fn a_lock_that_is_a_link_is_not_written_through() {
    let env = mini();
    env.build(&[]).code(0);
    let lock = env.path("site/.rebuild/tvm-webgpu/lock");
    std::fs::remove_file(&lock).unwrap();
    symlink(env.path("site/pins.toml"), &lock).unwrap();
    let before = env.read("site/pins.toml");
    env.build(&["--resume"]).code(3);
    assert_eq!(env.read("site/pins.toml"), before);
}

#[test]
fn directories_of_a_workspace_that_are_gone_are_made_again() {
    let env = mini();
    env.build(&[]).code(0);
    for directory in ["out", "tmp", "logs", "cache"] {
        std::fs::remove_dir_all(env.path("site/.rebuild/tvm-webgpu").join(directory)).unwrap();
    }
    env.build(&["--resume"]).code(0);
}

#[test]
fn empty_variables_and_odd_directories_do_no_harm() {
    let mut env = mini();
    for name in ["REBUILD_WORKSPACE", "AI_BUILD_DIR", "REBUILD_CACHE"] {
        env.set(name, "");
    }
    env.set("TMPDIR", "/nonexistent");
    env.run(&["plan"]).code(0);
    env.build(&["-w", &env.text("x/../ws")]).code(2);
    assert!(!env.path("x").exists());
    env.run(&["plan", "--resume", "-w", &env.text("nowhere")]).code(3);
}
