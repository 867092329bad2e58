//! Inputs in a whole build: sources that are not what is pinned, mirrors, tools of our own.

use rebuild_model::digest::Digest;
use rustix::process::{Pid, Signal, kill_process};

use crate::env::{TestEnv, build_arguments};
use crate::http_git::{Behaviour, HttpGit};
use crate::mini::{UV, mini, tgz};

/// The first value of `key` in the table `[git.NAME]`.
fn pinned(env: &TestEnv, table: &str, key: &str) -> String {
    let pins = env.read("site/pins.toml");
    let table = pins.split(&format!("[{table}]\n")).nth(1).unwrap();
    table.split(&format!("{key} = \"")).nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// Makes one thing wrong.
type Spoil<'a> = &'a dyn Fn(&TestEnv);

#[test]
fn a_git_source_that_is_not_as_pinned_has_its_exit_code() {
    let other = "0123456789abcdef0123456789abcdef01234567";
    let commit = |env: &TestEnv| pinned(env, "git.decoder", "commit");
    let spoil: [(Spoil, i32, &str); 4] = [
        (&|env| env.edit("site/pins.toml", "./repositories/decoder.git", "./repositories/none.git"), 4, "none.git"),
        (&|env| env.edit("site/pins.toml", &commit(env), other), 4, other),
        (
            &|env| {
                let line = format!("commit = \"{}\"", commit(env));
                env.edit("site/pins.toml", &line, &format!("{line}\ntree = \"{other}\""));
            },
            5,
            other,
        ),
        (
            &|env| {
                let adapter = pinned(env, "git.decoder.submodules", "\"3rdparty/adapter\" = { commit");
                env.edit("site/pins.toml", &adapter, other);
            },
            5,
            "3rdparty/adapter",
        ),
    ];
    for (index, (spoil, code, named)) in spoil.into_iter().enumerate() {
        let env = mini();
        spoil(&env);
        let failed = env.build(&["--format", "json"]).code(code).json();
        assert_eq!(failed["error"]["step"], "decoder", "{index}");
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{index}: {message}");
        assert!(!env.path("site/.rebuild/tvm-webgpu/out/decoder").exists());
    }
}

#[test]
fn a_mirror_serves_what_its_place_does_not() {
    let env = mini();
    std::fs::rename(env.path("site/repositories"), env.path("mirror")).unwrap();
    for name in ["decoder", "overlay", "adapter"] {
        let (from, to) = (format!("./repositories/{name}.git"), format!("https://git.example/{name}.git"));
        if name != "adapter" {
            env.edit("site/pins.toml", &from, &to);
        }
    }
    env.build(&[]).code(4);
    let rule = format!("https://git.example/={}/", env.text("mirror"));
    env.build(&["--mirror", &rule, "-w", &env.text("by-flag")]).code(0);
    env.write(
        "config/rebuild-model/config.toml",
        format!("[mirrors]\n\"https://git.example/\" = \"{}/\"\n", env.text("mirror")),
    );
    env.build(&["-w", &env.text("by-file")]).code(0);
    env.write("config/rebuild-model/config.toml", "[mirrors\n");
    env.build(&["-w", &env.text("never")]).code(1);
    env.run(&["build", "--mirror", "no rule"]).code(1);
}

#[test]
fn a_mirrors_password_is_written_nowhere() {
    let secrets = ["S3CRETPW", "T0KEN"];
    for has_git in [false, true] {
        let env = mini();
        if has_git {
            std::os::unix::fs::symlink(which::which("git").unwrap(), env.path("bin/git")).unwrap();
        }
        std::fs::create_dir(env.path("nothing")).unwrap();
        let serve = |root| HttpGit::serve(Behaviour { root, any_commit: true, ..Behaviour::default() });
        let (empty, full) = (serve(env.path("nothing")), serve(env.path("site/repositories")));
        // Rules, the workspace, the exit code.
        let rule = |server: &HttpGit, query: &str| {
            let place = server.url("").replace("http://", "http://user:S3CRETPW@");
            format!("\"./repositories/{query}\" = \"{place}{query}\"\n")
        };
        let query = format!("\"./repositories/decoder.git\" = \"{}?private_token=T0KEN\"\n", full.url("decoder.git"));
        let cases = [
            (rule(&empty, ""), "falls-back", 0),
            (query, "falls-back-too", 0),
            (rule(&full, ""), "served", 0),
            (rule(&empty, ""), "fails", 4),
            ("\"./repositories/\" = \"http://user:S3CRETPW@127.0.0.1:1/ \"\n".to_owned(), "invalid", 1),
        ];
        for (rules, name, code) in cases {
            if name == "fails" {
                std::fs::rename(env.path("site/repositories"), env.path("hidden")).unwrap();
            }
            env.write("config/rebuild-model/config.toml", format!("[mirrors]\n{rules}"));
            let workspace = env.text(name);
            let ran = env.run(&[
                "build",
                "--vendor",
                "../vendor",
                "--memory",
                "100000",
                "--progress",
                "none",
                "-vv",
                "-w",
                &workspace,
            ]);
            let ran = ran.code(code);
            let json = env.run(&["explain", "decoder", "-w", &workspace, "--format", "json"]);
            let mut texts = vec![ran.stdout, ran.stderr, json.stdout, json.stderr];
            for directory in [name, "site/dist"] {
                let entries = walkdir::WalkDir::new(env.path(directory)).into_iter().filter_map(Result::ok);
                let files = entries.filter(|entry| entry.file_type().is_file());
                texts.extend(files.map(|file| {
                    format!(
                        "{}: {}",
                        file.path().display(),
                        String::from_utf8_lossy(&std::fs::read(file.path()).unwrap())
                    )
                }));
            }
            for (text, secret) in texts.iter().flat_map(|text| secrets.map(|secret| (text, secret))) {
                assert!(!text.contains(secret), "{name}: {text}");
            }
            let journal = format!("{name}/journal.jsonl");
            match code {
                1 => {}
                _ => assert!(env.read(&journal).contains("http://127.0.0.1:"), "{name}: the mirror was not asked"),
            }
        }
    }
}

#[test]
fn a_mirror_that_no_package_comes_from_is_said_to_be_one() {
    let env = mini();
    let said = env.build(&["--mirror", "https://registry.npm.example/=/srv/npm", "-w", &env.text("one")]).code(0);
    assert!(
        said.stderr.contains("mirror of https://registry.npm.example/") && said.stderr.contains("npm_config_registry")
    );
    let silent = env.build(&["--mirror", "https://git.example/npm/=/srv/npm", "-w", &env.text("other")]).code(0);
    assert_eq!(silent.stderr, "");
}

#[test]
fn a_tool_can_be_an_input_too() {
    let env = mini();
    std::fs::remove_file(env.path("bin/uv")).unwrap();
    let archive = tgz("uv-1/uv", &format!("#!/bin/sh\n{UV}\n"));
    env.write("vendor/uv.tgz", &archive);
    let pin = format!(
        "[tool.uv]\narchive.{}-{} = {{ url = \"https://tools.example/uv.tgz\", sha256 = \"{}\", program = \"uv-1/uv\" }}\n",
        std::env::consts::OS,
        std::env::consts::ARCH,
        Digest::of(&archive)
    );
    env.edit("site/pins.toml", "[tool.uv]\n", &pin);
    let built = env.build(&["--format", "json"]).code(0).json();
    assert!(built["ran"].as_array().unwrap().contains(&"tool-uv".into()));
    // The tool is an input of the step that runs it, by content.
    let inputs = env.record("python")["parts"]["inputs"].clone();
    assert!(inputs["tool-uv/tree"].is_string(), "{inputs}");
    let recorded = mini();
    recorded.build(&[]).code(0);
    assert_eq!(env.read("site/dist/manifest.json"), recorded.read("site/dist/manifest.json"));
}

#[test]
fn an_interrupt_ends_a_package_client_too() {
    let env = mini();
    env.before("python3", r#"case "$*" in *pip*) echo $$ > "${0%/bin/*}/child"; exec sleep 300;; esac"#);
    let child = env.start(&build_arguments(&[]));
    let client = env.wait_for("child");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    env.ended(child).code(10);
    assert!(crate::env::is_gone(&client), "{client} lives on");
    assert_eq!(env.record("wheels")["outcome"], "interrupted");
}

#[test]
fn a_resumed_build_needs_room_for_what_failed() {
    let env = mini();
    std::fs::rename(env.path("vendor/linux-x64-1.0.0.tgz"), env.path("away")).unwrap();
    env.build(&[]).code(4);
    let package = "file = \"linux-x64-1.0.0.tgz\",";
    env.edit("site/pins.toml", package, &format!("{package} size = 1000000000000000,"));
    let refused = env.build(&["--resume", "--format", "json"]).code(2).json();
    assert_eq!(refused["error"]["step"], serde_json::Value::Null, "{refused}");
}

#[test]
fn a_failed_verification_is_one_json_document() {
    let env = mini();
    env.build(&[]).code(0);
    env.write("site/dist/weights/tensor-cache.json", "{ }");
    let failed = env.run(&["verify", "dist/manifest.json", "--format", "json"]).code(8).json();
    assert!(failed.to_string().contains("weights/tensor-cache.json"), "{failed}");
}
