//! `bundle`: the sources in one place, from which the artifacts can be built again elsewhere.

use std::path::Path;

use crate::env::TestEnv;
use crate::mini::mini;

/// The miniature, built, and its bundle with every input made in `out`.
pub fn bundled() -> TestEnv {
    let env = mini();
    env.build(&[]).code(0);
    // A place in which no workspace could be.
    std::fs::create_dir_all(env.path("out/with a space")).unwrap();
    let out = env.text("out/with a space/..");
    bundle(&env, &["--vendor", "--directory", &format!("{out}/bundle"), "-o", &format!("{out}/bundle.tar.gz")]);
    env
}

pub fn bundle(env: &TestEnv, more: &[&str]) -> serde_json::Value {
    let fixed = ["bundle", "--offline", "--vendored", "../vendor", "--progress", "none", "--format", "json"];
    env.run(&[&fixed, more].concat()).code(0).json()
}

/// Moves what served the inputs out of reach.
pub fn take_away(env: &TestEnv, directories: &[&str]) {
    for gone in directories {
        std::fs::rename(env.path(gone), env.path(&format!("gone-{}", gone.replace('/', "-")))).unwrap();
    }
}

fn unpack(archive: &Path, into: &Path) {
    let file = std::fs::File::open(archive).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(into).unwrap();
}

#[test]
fn a_bundle_is_the_same_whoever_makes_it() {
    let (one, other) = (mini(), mini());
    let mut archives = Vec::new();
    for env in [&one, &other] {
        bundle(env, &["--vendor", "-o", "bundle.tar.gz"]);
        archives.push(std::fs::read(env.path("site/bundle.tar.gz")).unwrap());
    }
    assert!(archives[0] == archives[1]);
    // No header tells of a time, an owner or a machine.
    assert_eq!(archives[0][..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&archives[0][..]));
    let mut names = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (0, 0, 0));
        names.push(entry.path().unwrap().display().to_string());
    }
    let mut sorted = names.clone();
    sorted.sort_by(|a, b| Path::new(a).cmp(Path::new(b)));
    assert_eq!(names, sorted);
    for name in [
        "README.md",
        "bundle.json",
        "plan.json",
        "sources/pins.toml",
        "sources/patches/two.patch",
        "vendor/mirrors.toml",
    ] {
        assert!(names.contains(&format!("tvm-webgpu-sources/{name}")), "{name}: {names:?}");
    }
}

#[test]
fn nothing_but_a_bundle_is_replaced_and_nothing_but_a_manifest_taken_for_one() {
    let env = mini();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(8);
    builder.append_data(&mut header, "package/README.md", &b"# Others"[..]).unwrap();
    env.write("site/artifact.gz", gzip(b"an artifact"));
    env.write("site/package.tgz", gzip(&builder.into_inner().unwrap()));
    env.write("site/empty.gz", gzip(b""));
    for name in ["pins.toml", "artifact.gz", "package.tgz", "empty.gz"] {
        let before = std::fs::read(env.path("site").join(name)).unwrap();
        let ran = env.run(&["bundle", "-o", name, "--offline"]).code(1);
        assert!(ran.stderr.contains(&format!("{name} is there already, and is no earlier bundle")), "{}", ran.stderr);
        assert!(std::fs::read(env.path("site").join(name)).unwrap() == before, "{name}");
    }
    for _ in 0..2 {
        env.run(&["bundle", "-o", "bundle.tar.gz", "--offline"]).code(0);
    }
    env.write("site/garbage", "no manifest");
    env.run(&["bundle", "-o", "new.tar.gz", "--manifest", "garbage", "--offline"]).code(8);
    assert!(!env.path("site/new.tar.gz").exists());
}

#[test]
fn a_packed_bundle_is_to_be_unpacked() {
    let env = mini();
    env.build(&[]).code(0);
    bundle(&env, &["-o", "bundle.tar.gz"]);
    for verb in ["verify", "replay"] {
        let refused = env.run(&[verb, "bundle.tar.gz"]).code(1).stderr;
        assert!(refused.contains("bundle.tar.gz is an archive, and a bundle is used unpacked"), "{refused}");
        assert!(refused.contains("hint: unpack it with `tar -xzf bundle.tar.gz`"), "{refused}");
    }
}

#[test]
fn directory_and_archive_are_two_places() {
    let env = mini();
    std::fs::create_dir(env.path("site/below")).unwrap();
    for (directory, archive) in [("new", "new"), ("./new", "new"), ("below/../new", "new"), ("new/", "new")] {
        let refused = env.run(&["bundle", "--directory", directory, "-o", archive, "--offline"]).code(1).stderr;
        assert!(refused.contains("new cannot be both the directory and the archive"), "{refused}");
        assert!(!env.path("site/new").exists());
    }
}

#[test]
fn what_is_signed_replaces_nothing_but_an_attestation_and_smoke_wants_a_distance() {
    let env = mini();
    env.build(&[]).code(0);
    // RFC 8410, section 10.3.
    let key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    env.write("site/key", key);
    env.run(&["sign", "dist/manifest.intoto.json", "--key", "key", "--output", "key"]).code(8);
    let refused = env.run(&["smoke", "dist/manifest.json", "--save-logits", "key"]).code(1).stderr;
    assert!(refused.contains("key is there already"), "{refused}");
    assert_eq!(env.read("site/key"), key);
    for tolerance in ["NaN", "inf", "-1"] {
        env.run(&["smoke", "dist/manifest.json", &format!("--tolerance={tolerance}")]).code(1);
    }
}

#[test]
fn what_was_bundled_is_built_elsewhere_without_anything_else() {
    let env = bundled();
    unpack(&env.path("out/bundle.tar.gz"), &env.path("elsewhere"));
    let root = env.text("elsewhere/tvm-webgpu-sources");
    env.run(&["diff", &root, &env.text("out/bundle")]).code(0);
    // Whatever served the inputs before is gone.
    take_away(&env, &["vendor", "cache", "site/repositories"]);
    let (pins, vendor) = (format!("{root}/sources/pins.toml"), format!("{root}/vendor"));
    let (work, dist) = (env.text("work"), env.text("elsewhere/dist"));
    let arguments = ["build", "--pins", &pins, "--offline", "--vendor", &vendor, "--memory", "100000"];
    env.run(&[&arguments[..], &["--output", &dist, "-w", &work]].concat()).code(0);
    env.run(&["verify", &format!("{dist}/manifest.json")]).code(0);
    env.run(&["diff", &format!("{root}/manifest.json"), &format!("{dist}/manifest.json")]).code(0);
    // The host's git can fetch from it, too.
    let mirrors = env.read("elsewhere/tvm-webgpu-sources/vendor/mirrors.toml");
    assert!(mirrors.contains("./repositories/decoder.git") && mirrors.contains("git/decoder-"), "{mirrors}");
}

#[test]
fn without_inputs_it_is_small_and_a_changed_file_or_another_attestation_is_refused() {
    let env = mini();
    env.build(&[]).code(0);
    let made = bundle(&env, &[]);
    assert_eq!(made["vendored"].as_array().unwrap().len(), 0);
    assert!(made["manifest"] == true && made["attestation"] == true, "{made}");
    assert!(env.path("site/tvm-webgpu-sources.tar.gz").is_file());
    // The attestation is of other pins.
    env.edit("site/pins.toml", "# The miniature.", "# Another.");
    let refused = env.run(&["bundle"]).code(5).stderr;
    assert!(refused.contains("is of a build with pins of sha256 <sha256>"), "{refused}");
    env.edit("site/pins.toml", "# Another.", "# The miniature.");
    // It is of another plan, made by another version.
    let attestation = env.read("site/dist/manifest.intoto.json");
    let plan = env.run(&["plan", "--format", "json"]).code(0).json()["digest"].as_str().unwrap().to_owned();
    env.write(
        "other.json",
        attestation.replace(&format!("\"plan\": \"{plan}\""), &format!("\"plan\": \"{}\"", "2".repeat(64))),
    );
    let refused = env.run(&["bundle", "--attestation", "../other.json"]).code(5).stderr;
    assert!(refused.contains("is of a build with plan <sha256>"), "{refused}");
    env.write("site/patches/two.patch", "changed");
    let refused = env.run(&["bundle"]).code(5).stderr;
    assert!(refused.contains("two.patch has sha256 <sha256>"), "{refused}");
    env.run(&["bundle", "--directory", "."]).code(1);
    // Nothing is left of what was not finished.
    let left: Vec<_> = std::fs::read_dir(env.path("site")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".bundle")), "{left:?}");
}

#[test]
fn an_input_that_vanished_before_it_was_bundled_is_named() {
    let env = mini();
    std::fs::remove_file(env.path("vendor/one-1.0-py3-none-any.whl")).unwrap();
    let failed = env.run(&["bundle", "--vendor", "--offline", "--vendored", "../vendor", "--format", "json"]);
    let failed = failed.code(4).json();
    assert_eq!(failed["error"]["step"], "wheels", "{failed}");
    assert!(!env.path("site/tvm-webgpu-sources.tar.gz").exists());
}

#[test]
fn the_commands_in_a_bundles_readme_do_what_they_say() {
    let env = bundled();
    bundle(&env, &["--directory", &env.text("out/small")]);
    let small = env.read("out/small/README.md");
    assert!(!small.contains("offline") && !small.contains("vendor"), "{small}");
    env.run(&["verify", &env.text("out/small")]).code(0);

    take_away(&env, &["vendor", "cache", "site/repositories"]);
    let root = env.path("elsewhere");
    std::fs::rename(env.path("out/bundle"), &root).unwrap();
    let readme = env.read("elsewhere/README.md");
    let commands: Vec<_> = readme.lines().filter_map(|line| line.strip_prefix("rebuild-model ")).collect();
    assert_eq!(commands.len(), 5, "{readme}");
    for command in commands {
        let mut words: Vec<&str> = command.split("  #").next().unwrap().split_whitespace().collect();
        if ["build", "replay"].contains(&words[0]) {
            // What is free at the moment must not matter.
            words.extend(["--memory", "100000"]);
        }
        env.ran(env.command(&words).current_dir(&root).output().unwrap()).code(0);
    }
}
