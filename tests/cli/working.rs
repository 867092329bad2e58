//! Workspaces: where they may be, and what stands in the way.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;

use crate::env::build_arguments;
use crate::mini::mini;

#[test]
fn an_existing_workspace_is_refused_and_left_alone() {
    let env = mini();
    env.write("site/.rebuild/tvm-webgpu/mine", "precious\n");
    let before = env.listing("site/.rebuild");
    assert_snapshot!(env.build(&[]).code(3).stderr, @r#"
    error: workspace ROOT/site/.rebuild/tvm-webgpu exists already
    hint: name an unused path with --workspace; nothing there was touched
    "#);
    assert_snapshot!(env.build(&["--resume"]).code(3).stderr, @r#"
    error: ROOT/site/.rebuild/tvm-webgpu is not a workspace of an earlier build
    hint: build there first, or name the workspace of a build with --workspace; a new build goes without --resume
    "#);
    assert_eq!(env.listing("site/.rebuild"), before);
    env.build(&["-w", &env.text("work")]).code(0);
    let before = env.listing("work");
    assert_snapshot!(env.build(&["-w", &env.text("work")]).code(3).stderr, @r#"
    error: workspace ROOT/work exists already
    hint: go on with it by --resume, name another with --workspace, or remove it yourself
    "#);
    assert_eq!(env.listing("work"), before);
    // A link that leads nowhere is something too.
    std::os::unix::fs::symlink("nowhere", env.path("link")).unwrap();
    env.build(&["-w", &env.text("link")]).code(3);
    env.build(&["-w", &env.text("not-there"), "--resume"]).code(3);
    assert!(!env.path("not-there").exists());
}

#[test]
fn the_workspace_is_ignored_by_the_repository_around_it() {
    let env = mini();
    git2::Repository::init(env.path("site")).unwrap();
    assert_snapshot!(env.build(&[]).code(3).stderr, @r#"
    error: workspace ROOT/site/.rebuild/tvm-webgpu is not ignored by the git repository ROOT/site/
    hint: add the line `/.rebuild/` to ROOT/site/.gitignore
    "#);
    assert!(!env.path("site/.rebuild").exists());
    env.write("site/.gitignore", "/.rebuild/\n");
    env.build(&[]).code(0);
}

#[test]
fn a_locked_workspace_is_refused() {
    let env = mini();
    env.build(&[]).code(0);
    let lock = std::fs::read_dir(env.path("site/.rebuild/tvm-webgpu")).unwrap();
    let lock = lock.map(|entry| entry.unwrap().path()).find(|path| path.to_str().unwrap().contains("lock")).unwrap();
    let file = std::fs::File::open(lock).unwrap();
    file.lock().unwrap();
    assert_snapshot!(env.build(&["--resume"]).code(3).stderr, @r#"
    error: workspace ROOT/site/.rebuild/tvm-webgpu is locked: another build works in it
    hint: wait for the other build, or name another path with --workspace
    "#);
    drop(file);
    env.build(&["--resume"]).code(0);
}

#[test]
fn paths_that_tools_do_not_survive_are_refused() {
    let env = mini();
    assert_snapshot!(env.build(&["-w", &env.text("with space")]).code(2).stderr, @r#"
    error: workspace "ROOT/with space" has white space in its path, which the tools of a build do not survive
    hint: name another path with --workspace, for example below /tmp
    "#);
    assert_snapshot!(env.build(&["-w", "relative"]).code(1).stderr, @r#"
    error: workspace relative is not an absolute path
    hint: name an absolute, unused path
    "#);
    assert_snapshot!(env.build(&["-w", &env.text("a:b")]).code(2).stderr, @r#"
    error: workspace "ROOT/a:b" has a quote or another special character in its path, which the tools of a build do not survive
    hint: name another path with --workspace, for example below /tmp
    "#);
    let mut command = env.command(&build_arguments(&["-w"]));
    command.arg(env.path("").join(OsStr::from_bytes(b"caf\xe9")));
    assert_snapshot!(env.ran(command.output().unwrap()).code(2).stderr, @r#"
    error: workspace "ROOT/caf\xE9" has bytes that are not UTF-8 in its path, which the tools of a build do not survive
    hint: name another path with --workspace, for example below /tmp
    "#);
    for left in ["with space", "a:b", "site/relative", "site/.rebuild"] {
        assert!(!env.path(left).exists(), "{left}");
    }
}

#[test]
fn the_pins_file_itself_may_lie_anywhere() {
    let env = mini();
    std::fs::rename(env.path("site"), env.path("my site")).unwrap();
    env.write("site/keep", "");
    env.build(&["--pins", &env.text("my site/pins.toml")]).code(0);
    // Results go beside the pins, the workspace stays where the build was called.
    assert!(env.path("my site/dist/manifest.json").is_file() && env.path("site/.rebuild/tvm-webgpu").is_dir());
}

#[test]
fn the_environment_names_a_workspace_too() {
    let mut env = mini();
    env.set("AI_BUILD_DIR", &env.text("old"));
    env.build(&[]).code(0);
    assert!(env.path("old/journal.jsonl").is_file());
    env.set("REBUILD_WORKSPACE", &env.text("new"));
    env.build(&[]).code(0);
    assert!(env.path("new/journal.jsonl").is_file());
    env.build(&["-w", &env.text("given")]).code(0);
    assert!(env.path("given/journal.jsonl").is_file() && !env.path("site/.rebuild").exists());
    env.set("REBUILD_WORKSPACE", "relative");
    env.build(&[]).code(1);
}

#[test]
fn a_disk_that_cannot_hold_the_build_is_found_out_before_it_begins() {
    let env = mini();
    let package = "file = \"linux-x64-1.0.0.tgz\",";
    env.edit("site/pins.toml", package, &format!("{package} size = 1000000000000000,"));
    let refused = env.build(&[]).code(2);
    assert!(refused.stderr.contains("MiB are needed at ROOT/site/.rebuild/tvm-webgpu and"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: free some space"), "{}", refused.stderr);
    let found = env.run(&["doctor"]).code(2);
    assert!(found.stdout.contains("hint    free some space"), "{}", found.stdout);
}

#[test]
fn a_disk_that_fills_up_is_named_as_such() {
    let env = mini();
    // /dev/full refuses every write as a full disk does, and so does what writes to it.
    env.before("emcc", r#"case "$*" in *vm_pack*) cat /proc/version > /dev/full; exit 1;; esac"#);
    let failed = env.build(&["--jobs", "1"]).code(7);
    assert!(failed.stderr.contains("hint: the disk is full; the whole log is"), "{}", failed.stderr);
}
