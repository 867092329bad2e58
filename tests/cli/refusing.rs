//! Pins files that are refused, each with its place.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::mini::mini;

/// The error of `pins check` after one change to the miniature's pins.
#[track_caller]
fn refused(from: &str, to: &str) -> String {
    let env = mini();
    env.edit("site/pins.toml", from, to);
    env.run(&["pins", "check"]).code(1).stderr
}

#[test]
fn an_unknown_key_is_shown_where_it_stands() {
    assert_snapshot!(refused("max_batch_size = 1", "max_batch_size = 1\nmax_batch = 2"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 7, column 1
      |   |
      | 7 | max_batch = 2
      |   | ^^^^^^^^^
      | unknown field `max_batch`, expected one of `model`, `max_batch_size`, `ffi_version`, `ffi_exports`
    "#);
    assert_snapshot!(refused("install = \"install Em", "instal = \"install Em"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 55, column 1
      |    |
      | 55 | instal = "install Emscripten 3.1.6 or newer"
      |    | ^^^^^^
      | unknown field `instal`, expected one of `version`, `install`, `archive`
    "#);
    assert_snapshot!(refused("[recipe.tvm-webgpu]", "[recipe.tvm]"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 4, column 9
      |   |
      | 4 | [recipe.tvm]
      |   |         ^^^
      | unknown variant `tvm`, expected one of `tvm-webgpu`, `mlc-webgpu`, `onnx-int8`
    "#);
}

#[test]
fn a_value_of_another_type_is_shown_where_it_stands() {
    assert_snapshot!(refused("max_batch_size = 1", "max_batch_size = \"1\""), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 6, column 18
      |   |
      | 6 | max_batch_size = "1"
      |   |                  ^^^
      | invalid type: string "1", expected a nonzero u16
    "#);
    assert_snapshot!(refused("max_batch_size = 1", "max_batch_size = -1"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 6, column 18
      |   |
      | 6 | max_batch_size = -1
      |   |                  ^^
      | invalid value: integer `-1`, expected a nonzero u16
    "#);
    assert_snapshot!(refused("version = \">=9\"", "version = \"latest\""), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 58, column 11
      |    |
      | 58 | version = "latest"
      |    |           ^^^^^^^^
      | `latest` is not a version: numbers between dots are wanted, with `=`, `>=`, `>`, `<=` or `<` before them in a range
    "#);
    assert_snapshot!(refused("registry = \"npm\"", "registry = \"cargo\""), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 35, column 12
      |    |
      | 35 | registry = "cargo"
      |    |            ^^^^^^^
      | unknown variant `cargo`, expected `pypi` or `npm`
    "#);
}

#[test]
fn a_commit_is_given_in_full_and_in_lower_case() {
    let env = mini();
    let pins = env.read("site/pins.toml");
    let line = pins.lines().find(|line| line.starts_with("commit = ")).unwrap();
    env.edit("site/pins.toml", line, "commit = \"0123456\"");
    assert_snapshot!(env.run(&["pins", "check"]).code(1).stderr, @r#"
    error: pins.toml is not valid
      | TOML parse error at line 12, column 10
      |    |
      | 12 | commit = "0123456"
      |    |          ^^^^^^^^^
      | `0123456` is not a full git object id: 40 lower-case hexadecimal digits
    "#);
    env.write("site/pins.toml", pins.replace(line, "commit = \"0123456789ABCDEF0123456789abcdef01234567\""));
    assert_snapshot!(env.run(&["pins", "check"]).code(1).stderr, @r#"
    error: pins.toml is not valid
      | TOML parse error at line 12, column 10
      |    |
      | 12 | commit = "0123456789ABCDEF0123456789abcdef01234567"
      |    |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | `0123456789ABCDEF0123456789abcdef01234567` is not a full git object id: 40 lower-case hexadecimal digits
    "#);
    env.write("site/pins.toml", pins.replace(line, "commit = \"main\""));
    assert_snapshot!(env.run(&["pins", "check"]).code(1).stderr, @r#"
    error: pins.toml is not valid
      | TOML parse error at line 12, column 10
      |    |
      | 12 | commit = "main"
      |    |          ^^^^^^
      | `main` is not a full git object id: 40 lower-case hexadecimal digits
    "#);
}

#[test]
fn a_digest_is_a_digest() {
    let error = refused("sha256 = \"", "sha256 = \"0x");
    assert!(error.contains("is not a sha256 digest"), "{error}");
}

#[test]
fn a_pins_file_has_one_recipe() {
    let second = "[recipe.mlc-webgpu]\nmodel = \"x\"\n\n[tool.uv]";
    assert_snapshot!(refused("[tool.uv]", second), @r#"
    error: pins.toml is not valid
      | at line 60, column 9
      |    |
      | 60 | [recipe.mlc-webgpu]
      |    |         ^^^^^^^^^^
      | a pins file has one recipe, and [recipe.tvm-webgpu] came before this one: give it a file of its own
    "#);
    let env = TestEnv::new();
    env.write("site/pins.toml", "schema = 1\n\n[recipe]\n");
    assert_snapshot!(env.run(&["pins", "check"]).code(1).stderr, @r#"
    error: pins.toml is not valid
      | at line 3, column 1
      |   |
      | 3 | [recipe]
      |   | ^^^^^^^^
      | no recipe is named: a table [recipe.NAME] with its parameters is wanted
    "#);
    env.write("site/pins.toml", "schema = 1\nrecipe = \"tvm-webgpu\"\n");
    env.run(&["pins", "check"]).code(1);
}

#[test]
fn a_pins_file_can_be_named_or_is_told_how() {
    let env = mini();
    std::fs::rename(env.path("site/pins.toml"), env.path("site/other.toml")).unwrap();
    env.run(&["pins", "check", "other.toml"]).code(0);
    env.run(&["pins", "check", "--pins", "other.toml"]).code(0);
    env.run(&["pins", "lock", "other.toml", "--dry-run", "--offline", "--vendor", "../vendor"]).code(0);
    env.run(&["pins", "check", "other.toml", "--pins", "other.toml"]).code(1);
    assert_snapshot!(env.run(&["pins", "check", "none.toml"]).code(1).stderr, @r#"
    error: cannot read the pins file none.toml
      because: No such file or directory (os error 2)
    hint: name another file with --pins
    "#);
    for verb in ["plan", "build", "doctor"] {
        let shown = env.run(&[verb, "other.toml"]).code(1).stderr;
        assert!(shown.contains("tip: the pins file is named by a flag: --pins FILE"), "{shown}");
        assert!(!env.run(&[verb, "other"]).code(1).stderr.contains("--pins"));
    }
}

#[test]
fn ids_are_unique() {
    assert_snapshot!(refused("[tool.cxx]", "[git.overlay]"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 57, column 6
      |    |
      | 57 | [git.overlay]
      |    |      ^^^^^^^
      | duplicate key
    "#);
    assert_snapshot!(refused("[tool.cxx]\nversion = \">=9\"", "[file.overlay]\npath = \"a\"\nsha256 = \"not-recorded\""), @r#"
    error: pins.toml is not valid
      | duplicate id: `overlay` is both [git.overlay] and [file.overlay]
    "#);
    // A pin may not have the name of one of the recipe's own steps either.
    let env = mini();
    env.edit("site/pins.toml", "git.decoder", "git.link");
    env.edit("site/pins.toml", "model = \"decoder\"", "model = \"link\"");
    assert_snapshot!(env.run(&["pins", "check"]).code(1).stderr, @"error: duplicate id: two steps are called link");
}

#[test]
fn a_cycle_of_overrides_is_named() {
    let cycle = "[git.overlay]\nsubmodules = { \"a/b\" = { commit = \"0123456789abcdef0123456789abcdef01234567\", source = \"decoder\" } }";
    assert_snapshot!(refused("[git.overlay]", cycle), @r#"
    error: pins.toml is not valid
      | at line 19, column 88
      |    |
      | 19 | submodules = { "a/b" = { commit = "<id>", source = "decoder" } }
      |    |                                                                                        ^^^^^^^^^
      | cycle of submodule overrides: decoder → overlay → decoder
    "#);
    assert_snapshot!(refused("source = \"overlay\"", "source = \"decoder\""), @r#"
    error: pins.toml is not valid
      | at line 16, column 86
      |    |
      | 16 | "3rdparty/overlay" = { commit = "<id>", source = "decoder" } # a newer one
      |    |                                                                                      ^^^^^^^^^
      | [git.decoder.submodules] "3rdparty/overlay": a source cannot stand inside itself
    "#);
    assert_snapshot!(refused("source = \"overlay\"", "source = \"nothing\""), @r#"
    error: pins.toml is not valid
      | at line 16, column 86
      |    |
      | 16 | "3rdparty/overlay" = { commit = "<id>", source = "nothing" } # a newer one
      |    |                                                                                      ^^^^^^^^^
      | [git.decoder.submodules] "3rdparty/overlay": there is no [git.nothing]
    "#);
}

#[test]
fn what_the_recipe_needs_is_pinned_and_what_is_pinned_is_used() {
    assert_snapshot!(refused("model = \"decoder\"", "model = \"encoder\""), @"error: recipe tvm-webgpu needs [git.encoder] in the pins file");
    assert_snapshot!(refused("[tool.uv]", "[tool.pip]"), @"error: step python runs the tool `uv`, which is not pinned");
    assert_snapshot!(refused("[tool.npm]", "[tool.other]"), @"error: step fetch-esbuild runs the tool `npm`, which is not pinned");
    let more = "[git.more]\nurl = \"https://example.org/more.git\"\ncommit = \"0123456789abcdef0123456789abcdef01234567\"\n\n[tool.uv]";
    assert_snapshot!(refused("[tool.uv]", more), @"error: recipe tvm-webgpu does not use [git.more]");
    assert_snapshot!(refused("[tool.uv]", "[tool.make]\nversion = \"4\"\n\n[tool.uv]"), @"error: recipe tvm-webgpu does not use [tool.make]");
    assert_snapshot!(refused("platform = \"any\", file = \"linux", "platform = \"macos-riscv\", file = \"linux"), @"error: [package.esbuild] has no file for linux-x86_64; it lists macos-riscv");
}

#[test]
fn paths_stay_below_the_pins_file() {
    for (from, to) in [
        ("patches/two.patch", "../two.patch"),
        ("destination = \"dist\"", "destination = \"/srv\""),
        ("\"tvm/web/src/index.ts\" = {", "\"../index.ts\" = {"),
    ] {
        let error = refused(from, to);
        assert!(error.contains("is not a relative path that stays below its directory"), "{error}");
    }
}

#[test]
fn an_address_that_nobody_fetches_or_that_holds_a_secret_is_refused() {
    let url = |to: &str| refused("url = \"./repositories/decoder.git\"", &format!("url = \"{to}\""));
    let shown = [url("javascript:alert(1)"), url("--upload-pack=touch"), url("https://me:secret@example.org/x.git")];
    assert_snapshot!(shown.join("\n"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 11, column 7
      |    |
      | 11 | url = "javascript:alert(1)"
      |    |       ^^^^^^^^^^^^^^^^^^^^^
      | this is not the address of a git repository: nobody fetches from `javascript:`; a host is written ssh://javascript/PATH, a path with a colon ./javascript:…
    error: pins.toml is not valid
      | TOML parse error at line 11, column 7
      |    |
      | 11 | url = "--upload-pack=touch"
      |    |       ^^^^^^^^^^^^^^^^^^^^^
      | this is not the address of a git repository: it begins with `-`, and would be taken for an option
    error: pins.toml is not valid
      | TOML parse error at line 11, column 7
      |    |
      | 11 | url = "https://example.org/x.git"
      |    |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | this is not the address of a git repository: it has a user or a password in it, which the pins would publish and an attestation carry: leave it out, and let a mirror rule of your own have it (--mirror, or [mirrors] in config.toml)
    "#);
    let submodule = refused("source = \"overlay\"", "url = \"ext::sh -c true\"");
    assert_snapshot!(submodule, @r#"
    error: pins.toml is not valid
      | TOML parse error at line 16, column 83
      |    |
      | 16 | "3rdparty/overlay" = { commit = "<id>", url = "ext::sh -c true" } # a newer one
      |    |                                                                                   ^^^^^^^^^^^^^^^^^
      | this is not the address of a git repository: `ext::` names no place but a program
    "#);
    let file = "[file.more]\nurl = \"ftp://example.org/x\"\nsha256 = \"not-recorded\"\n\n[tool.uv]";
    assert_snapshot!(refused("[tool.uv]", file), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 61, column 7
      |    |
      | 61 | url = "ftp://example.org/x"
      |    |       ^^^^^^^^^^^^^^^^^^^^^
      | this is not the url of a file: it has to begin with one of https://, http://, file://
    "#);
    let archive = "[tool.uv]\narchive.linux-x86_64 = { url = \"https://example.org/uv?token=x\", sha256 = \"not-recorded\", program = \"uv\" }\n";
    assert_snapshot!(refused("[tool.uv]\n", archive), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 61, column 32
      |    |
      | 61 | archive.linux-x86_64 = { url = "https://example.org/uv?token=…", sha256 = "not-recorded", program = "uv" }
      |    |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | this is not the url of a file: its parameter `token` is a credential, which the pins would publish and an attestation carry: leave it out, and let a mirror rule of your own have it (--mirror, or [mirrors] in config.toml)
    "#);
}

#[test]
fn a_package_is_named_by_what_its_client_takes_for_a_name() {
    let shown = [
        ("name = \"@esbuild/linux-x64\"", "name = \"--registry=http://example.org\""),
        ("name = \"@esbuild/linux-x64\"", "name = \"git+https://example.org/x\""),
        ("version = \"1.0.0\"", "version = \"latest\""),
    ];
    assert_snapshot!(shown.map(|(from, to)| refused(from, to)).join("\n"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 36, column 8
      |    |
      | 36 | name = "--registry=http://example.org"
      |    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | `--registry=http://example.org` is not a package's name: letters, digits, `-`, `_` and `.`, beginning with a letter or digit, perhaps after `@scope/`
    error: pins.toml is not valid
      | TOML parse error at line 36, column 8
      |    |
      | 36 | name = "git+https://example.org/x"
      |    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | `git+https://example.org/x` is not a package's name: letters, digits, `-`, `_` and `.`, beginning with a letter or digit, perhaps after `@scope/`
    error: pins.toml is not valid
      | TOML parse error at line 37, column 11
      |    |
      | 37 | version = "latest"
      |    |           ^^^^^^^^
      | `latest` is not an exact version of a package: it begins with a digit, and has letters, digits, `.`, `-`, `_`, `+` and `!`
    "#);
}

#[test]
fn a_range_that_no_version_meets_is_refused() {
    assert_snapshot!(refused("version = \">=9\"", "version = \">=7, <3\""), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 58, column 11
      |    |
      | 58 | version = ">=7, <3"
      |    |           ^^^^^^^^^
      | no version meets `>=7, <3`: all bounds have to hold together
    "#);
}

#[test]
fn a_rule_is_accepted_once() {
    assert_snapshot!(refused("[packaging]\n", "[gates]\naccept = [\"limits\", \"f16\", \"limits\"]\n\n[packaging]\n"), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 67, column 10
      |    |
      | 67 | accept = ["limits", "f16", "limits"]
      |    |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | `limits` stands here twice
    "#);
}

#[test]
fn the_manifest_and_what_goes_beside_it_take_no_artifacts_place() {
    let manifest = |to: &str| {
        let env = mini();
        env.edit("site/pins.toml", "dist/manifest.json", to);
        // Every verb that reads pins, not only the check.
        env.build(&[]).code(1);
        env.run(&["plan"]).code(1);
        assert!(!env.path("site/.rebuild").exists());
        env.run(&["pins", "check"]).code(1).stderr
    };
    let artifacts: Vec<String> = {
        let env = mini();
        let plan = env.run(&["plan", "--format", "json"]).code(0).json();
        let steps = plan["plan"]["steps"].as_array().unwrap().clone();
        let package = steps.iter().find_map(|step| step["action"].get("package")).unwrap().clone();
        let name = |artifact: &serde_json::Value| {
            let suffix = if artifact["encoding"] == "gzip" { ".gz" } else { "" };
            format!("dist/{}{suffix}", artifact["path"].as_str().unwrap())
        };
        package["artifacts"].as_array().unwrap().iter().map(name).collect()
    };
    assert!(artifacts.len() > 1);
    let shown: Vec<_> = artifacts.iter().map(|artifact| manifest(artifact)).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    error: pins.toml is not valid
      | at line 68, column 12
      |    |
      | 68 | manifest = "dist/decoder-webgpu.wasm.gz"
      |    |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | [packaging]: the manifest would be dist/decoder-webgpu.wasm.gz, where the artifact dist/decoder-webgpu.wasm.gz is delivered: give `manifest` another name
    error: pins.toml is not valid
      | at line 68, column 12
      |    |
      | 68 | manifest = "dist/tvmjs.cjs.gz"
      |    |            ^^^^^^^^^^^^^^^^^^^
      | [packaging]: the manifest would be dist/tvmjs.cjs.gz, where the artifact dist/tvmjs.cjs.gz is delivered: give `manifest` another name
    error: pins.toml is not valid
      | at line 68, column 12
      |    |
      | 68 | manifest = "dist/weights"
      |    |            ^^^^^^^^^^^^^^
      | [packaging]: the manifest would be dist/weights, where the artifact dist/weights is delivered: give `manifest` another name
    "#);
    // With --output the two meet elsewhere.
    let env = mini();
    env.edit("site/pins.toml", "dist/manifest.json", &artifacts[0].replace("dist/", "lists/"));
    env.run(&["pins", "check"]).code(0);
    let says = "error: the manifest would be elsewhere/decoder-webgpu.wasm.gz, where the artifact \
                elsewhere/decoder-webgpu.wasm.gz is delivered: give `manifest` another name";
    assert_eq!(env.build(&["--output", "elsewhere"]).code(1).stderr.trim_end(), says);
    assert!(!env.path("site/.rebuild").exists());
}

#[test]
fn levels_and_targets_and_images_make_sense() {
    assert_snapshot!(refused("[packaging]\n", "[packaging]\nlevel = 11\n"), @r#"
    error: pins.toml is not valid
      | [packaging]: level 11 is not one of gzip's, 0 to 9
    "#);
    assert_snapshot!(refused("target = \"apache-tvm\"", "target = \"apache\""), @r#"
    error: pins.toml is not valid
      | at line 43, column 10
      |    |
      | 43 | target = "apache"
      |    |          ^^^^^^^^
      | [patch.two]: there is no [git.apache], no [package.apache] and no wheel `apache` in [python.wheels]
    "#);
    assert_snapshot!(refused("file = \"linux-x64-1.0.0.tgz\"", "path = \"linux-x64-1.0.0.tgz\""), @r#"
    error: pins.toml is not valid
      | TOML parse error at line 38, column 30
      |    |
      | 38 | files = [{ platform = "any", path = "linux-x64-1.0.0.tgz", sha256 = "<sha256>" }]
      |    |                              ^^^^
      | unknown field `path`, expected one of `platform`, `package`, `file`, `sha256`, `size`
    "#);
}

#[test]
fn another_schema_is_said_before_anything_else() {
    assert_snapshot!(refused("schema = 1", "schema = 2\nnew_key = 3"), @r#"
    error: pins.toml has schema 2, and this version reads schema 1
    hint: use a newer rebuild-model
    "#);
    assert_snapshot!(refused("schema = 1", "schema = 0"), @r#"
    error: pins.toml has schema 0, and this version reads schema 1
    hint: write `schema = 1` at the top
    "#);
    let error = refused("schema = 1", "");
    assert!(error.contains("missing field `schema`"), "{error}");
}

#[test]
fn a_file_that_is_not_there_or_not_toml_is_refused() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["plan"]).code(1).stderr, @r#"
    error: cannot read the pins file pins.toml
      because: No such file or directory (os error 2)
    hint: name another file with --pins
    "#);
    env.write("site/pins.toml", "schema = 1\n[recipe\n");
    assert_snapshot!(env.run(&["plan"]).code(1).stderr, @r#"
    error: pins.toml is not valid
      | TOML parse error at line 2, column 8
      |   |
      | 2 | [recipe
      |   |        ^
      | unclosed table, expected `]`
    "#);
    env.write("site/pins.toml", b"schema = 1 # \xff\n");
    assert_snapshot!(env.run(&["plan"]).code(1).stderr, @r#"
    error: cannot read the pins file pins.toml
      because: it is not UTF-8
    hint: name another file with --pins
    "#);
}

#[test]
fn what_is_not_recorded_stops_a_build() {
    let env = mini();
    let pins = env.read("site/pins.toml");
    let line = pins.lines().find(|line| line.ends_with("# of the text")).unwrap();
    env.edit("site/pins.toml", line, "sha256 = \"not-recorded\"");
    assert_snapshot!(env.build(&[]).code(5).stderr, @r#"
    error: 1 input has no recorded digest: patched (patches/two.patch)
    hint: `rebuild-model pins lock` records them; --record-unknown builds with whatever is found and says so
    "#);
    assert!(!env.path("site/.rebuild").exists());
    let checked = env.run(&["pins", "check"]).code(0);
    assert_snapshot!(checked.stdout, @r#"
    pins.toml is valid: recipe tvm-webgpu, 24 steps, plan <sha256>
    not recorded: patched (patches/two.patch)
    "#);
    env.build(&["--record-unknown"]).code(0);
    // A second time it runs again: nothing says that it is the same.
    let resumed = env.build(&["--record-unknown", "--resume", "--format", "json"]).code(0).json();
    assert_eq!(resumed["ran"], serde_json::json!(["patched"]));
}
