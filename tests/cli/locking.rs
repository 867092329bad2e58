//! `pins lock`: fills in what is not recorded, and leaves all else as it was written.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::mini::mini;

/// The miniature with nothing recorded, and its pins as they were.
fn unrecorded() -> (TestEnv, String) {
    let env = mini();
    let pins = env.read("site/pins.toml");
    let line = |line: &str| {
        let mut parts: Vec<String> = line.split('"').map(str::to_owned).collect();
        for index in 1..parts.len() {
            if parts[index - 1].ends_with("sha256 = ")
                || parts[index - 1].ends_with("before = ")
                || parts[index - 1].ends_with("after = ")
            {
                "not-recorded".clone_into(&mut parts[index]);
            }
        }
        parts.join("\"") + "\n"
    };
    env.write("site/pins.toml", pins.lines().map(line).collect::<String>());
    env.tool("npm", "case \"$1\" in --version) echo 10.0.0; exit;; esac
while [ $# -gt 0 ]; do case \"$1\" in --pack-destination) cp \"${0%/bin/*}/vendor/linux-x64-1.0.0.tgz\" \"$2\";; esac; shift; done");
    (env, pins)
}

#[test]
fn lock_fills_in_every_digest_and_nothing_else() {
    let (env, pins) = unrecorded();
    assert_ne!(env.read("site/pins.toml"), pins);
    let arguments = ["pins", "lock", "--vendor", "../vendor"];
    let before = env.read("site/pins.toml");
    let tried = env.run(&[&arguments[..], &["--dry-run"]].concat()).code(0);
    assert_eq!(env.read("site/pins.toml"), before);
    let locked = env.run(&arguments).code(0);
    assert_eq!(locked.raw, tried.raw);
    assert_snapshot!(locked.stdout, @r#"
    package.apache-tvm.files[0].sha256
      - not-recorded
      + <sha256>
    package.apache-tvm-ffi.files[0].sha256
      - not-recorded
      + <sha256>
    package.esbuild.files[0].sha256
      - not-recorded
      + <sha256>
    patch.two.sha256
      - not-recorded
      + <sha256>
    patch.two.images.tvm/web/src/index.ts.before
      - not-recorded
      + <id>
    patch.two.images.tvm/web/src/index.ts.after
      - not-recorded
      + <id>
    python.sha256
      - not-recorded
      + <sha256>
    "#);
    // With comments and layout, byte for byte.
    assert_eq!(env.read("site/pins.toml"), pins);
    assert_snapshot!(env.run(&arguments).code(0).stdout, @"every digest is recorded");
    assert_eq!(env.read("site/pins.toml"), pins);
    assert!(!env.path("site/.rebuild").exists());
    env.build(&[]).code(0);
}

#[test]
fn lock_follows_a_symbolic_link() {
    let (env, pins) = unrecorded();
    fs::rename(env.path("site/pins.toml"), env.path("shared.toml")).unwrap();
    symlink("../shared.toml", env.path("site/pins.toml")).unwrap();
    env.run(&["pins", "lock", "--vendor", "../vendor"]).code(0);
    assert!(env.path("site/pins.toml").is_symlink());
    assert_eq!(env.read("shared.toml"), pins);
}

#[test]
fn record_unknown_builds_the_same_and_says_what_it_found() {
    let (env, _) = unrecorded();
    let refused = env.run(&["build", "--progress", "none"]).code(5);
    assert_snapshot!(refused.stderr, @r#"
    error: 6 inputs have no recorded digest: wheels (requirements.txt), fetch-apache-tvm (apache_tvm-1.0-py3-none-any.whl), fetch-apache-tvm-ffi (apache_tvm_ffi-1.0-py3-none-any.whl), patched (patches/two.patch), patched (patches/two.patch: tvm/web/src/index.ts), fetch-esbuild (linux-x64-1.0.0.tgz)
    hint: `rebuild-model pins lock` records them; --record-unknown builds with whatever is found and says so
    "#);
    env.run(&["build", "--progress", "none", "--record-unknown", "--vendor", "../vendor"]).code(0);
    let found = env.record("fetch-esbuild")["report"]["sha256"].clone();
    assert_eq!(found.as_str().unwrap().len(), 64);
    let recorded = mini();
    recorded.build(&[]).code(0);
    assert_eq!(env.read("site/dist/manifest.json"), recorded.read("site/dist/manifest.json"));
}

#[test]
fn offline_names_what_no_directory_serves() {
    let env = mini();
    let failed = env.run(&["build", "--offline", "--jobs", "1", "--progress", "none"]).code(4);
    assert!(
        failed.stderr.contains("is in no vendor directory and not in the cache, and this run is offline"),
        "{}",
        failed.stderr
    );
    assert!(
        failed.stderr.contains("hint: run once without --offline, or put the file with sha256"),
        "{}",
        failed.stderr
    );
    assert_snapshot!(env.run(&["build", "--vendor", "nowhere"]).code(1).stderr, @r#"
    error: vendor directory ROOT/site/nowhere is not a directory
    hint: --vendor names a directory that holds pinned files
    "#);
}
