//! `verify` of a bundle: nothing in it can be exchanged without being named.

use std::path::Path;

use crate::bundling::{bundle, bundled};
use crate::env::TestEnv;

/// `verify` of the bundle in `out`.
fn check(env: &TestEnv, more: &[&str]) -> crate::env::Ran {
    env.run(&[&["verify", &env.text("out/bundle/bundle.json")], more].concat())
}

#[test]
fn a_bundle_says_whether_it_is_whole() {
    let env = bundled();
    let text = check(&env, &[]).code(0).stdout;
    assert!(text.contains("files") && text.contains("are what it lists"), "{text}");
    assert!(
        text.contains("builder   urn:x-rebuild-model:builder:local") && text.contains("signed by nobody"),
        "{text}"
    );
    let found = env.run(&["verify", &env.text("out/bundle"), "--format", "json"]).code(0).json();
    assert_eq!(found["findings"].as_array().unwrap().len(), 0);
    // A flag that would have to find artifacts is no flag of a bundle's.
    check(&env, &["--root", "."]).code(1);
    env.write("site/policy.toml", "schema = 1\nbuilders = [{ id = \"urn:x-rebuild-model:builder:local\" }]\n");
    check(&env, &["--policy", "policy.toml"]).code(0);
    env.write("site/policy.toml", "schema = 1\nbuilders = [{ id = \"https://ci.example.org/\" }]\n");
    let ran = check(&env, &["--policy", "policy.toml"]).code(8);
    assert!(ran.stderr.contains("policy `builders`"), "{}", ran.stderr);

    let list = env.read("out/bundle/bundle.json");
    let whole: serde_json::Value = serde_json::from_str(&list).unwrap();
    let names: Vec<&str> = whole["files"].as_object().unwrap().keys().map(String::as_str).collect();
    // Every file of it, one after another: changed, and gone.
    for name in names {
        let path = env.path("out/bundle").join(name);
        let bytes = std::fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        changed.push(b'\n');
        std::fs::remove_file(&path).unwrap();
        let ran = check(&env, &["--format", "json"]).code(8);
        assert!(ran.raw.contains(&format!("{name} is not there")), "{}", ran.raw);
        std::fs::write(&path, changed).unwrap();
        let ran = check(&env, &["--format", "json"]).code(8);
        assert!(ran.raw.contains(&format!("{name}: expected {} bytes", bytes.len())), "{}", ran.raw);
        std::fs::write(&path, bytes).unwrap();
    }
    env.write("out/bundle/sources/more.py", "");
    std::os::unix::fs::symlink("/etc/passwd", env.path("out/bundle/link")).unwrap();
    let ran = check(&env, &[]).code(8);
    assert!(ran.stderr.contains("sources/more.py is not listed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("link is neither a regular file nor a directory"), "{}", ran.stderr);
}

#[test]
fn a_bundle_whose_list_was_edited_too_contradicts_itself() {
    let env = bundled();
    let original = env.read("out/bundle/bundle.json");
    let place = |name: &str| format!("out/bundle/{name}");
    let relist = |name: &str, text: &str| {
        let before = env.read(&place(name));
        env.write(&place(name), text);
        let mut list: serde_json::Value = serde_json::from_str(&original).unwrap();
        let digest = rebuild_model::digest::Digest::of(text.as_bytes());
        list["files"][name] = serde_json::json!({ "sha256": digest, "size": text.len() });
        if name == "sources/pins.toml" {
            list["pins"] = serde_json::json!(digest);
        }
        env.write("out/bundle/bundle.json", list.to_string());
        let ran = check(&env, &[]).code(8);
        env.write(&place(name), &before);
        ran.stderr
    };
    let pins = env.read(&place("sources/pins.toml"));
    let found = relist("sources/pins.toml", &format!("{pins}\n# a comment\n"));
    assert!(found.contains("pins of the attestation: expected"), "{found}");
    let found = relist("sources/pins.toml", "schema = 2\n");
    assert!(found.contains("sources/pins.toml: "), "{found}");
    let patch = env.read(&place("sources/patches/two.patch"));
    let found = relist("sources/patches/two.patch", &format!("{patch}\n"));
    assert!(found.contains("two.patch") && found.contains("is pinned"), "{found}");
    let plan = env.read(&place("plan.json"));
    let found = relist("plan.json", &plan.replacen("wasm", "masm", 1));
    assert!(found.contains("plan.json: expected what rebuild-model"), "{found}");
    let attestation = env.read(&place("attestation.json"));
    let manifest = env.read(&place("manifest.json"));
    let found = relist("manifest.json", &manifest.replacen("\"size\": ", "\"size\": 1", 1));
    assert!(found.contains("the attestation says"), "{found}");
    let found = relist("attestation.json", &attestation.replacen("\"jobs\": ", "\"recipe\": \"x\", \"jobs\": ", 1));
    assert!(found.contains("recipe"), "{found}");
    // Lists that are none, or name a place elsewhere.
    for (list, says) in [
        ("{}", "is not the list of a bundle: missing field"),
        ("[", "is not the list of a bundle"),
        (&original.replacen("\"schema\": 1", "\"schema\": 2", 1), "its schema is 2, and this program knows 1"),
        (&original.replacen("sources/pins.toml", "../../site/pins.toml", 1), "is not there"),
    ] {
        env.write("out/bundle/bundle.json", list);
        let ran = check(&env, &[]).code(8);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
}

/// Makes the list say what is there, as whoever edits a bundle on purpose would.
fn relist(root: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let path = root.join("bundle.json");
    let mut list: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut files = serde_json::Map::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap) {
        if entry.file_type().is_file() && entry.path() != path {
            let name = entry.path().strip_prefix(root).unwrap().display().to_string();
            let (sha256, size) = rebuild_model::digest::hash_file(entry.path()).unwrap();
            files.insert(name, serde_json::json!({ "sha256": sha256, "size": size }));
        }
    }
    list["files"] = files.into();
    edit(&mut list);
    std::fs::write(path, list.to_string()).unwrap();
}

/// A way to edit a bundle, and what is said of it.
struct Edit {
    name: &'static str,
    files: fn(&Path),
    list: fn(&mut serde_json::Value),
    says: &'static str,
}

/// The path below `root` that ends so.
fn find(root: &Path, end: &str) -> std::path::PathBuf {
    let mut paths = walkdir::WalkDir::new(root).into_iter().map(|entry| entry.unwrap().into_path());
    paths.find(|path| path.display().to_string().ends_with(end)).unwrap()
}

const WHEEL: &str = "one-1.0-py3-none-any.whl";

fn edits() -> Vec<Edit> {
    let files = |name, says, files| Edit { name, files, list: |_| {}, says };
    let list = |name, says, list| Edit { name, files: |_| {}, list, says };
    vec![
        files("a wheel", "its place is that of sha256", |root| std::fs::write(find(root, WHEEL), "evil").unwrap()),
        files("a wheel that is gone", "one-1.0-py3-none-any.whl is not there", |root| {
            std::fs::remove_file(find(root, WHEEL)).unwrap();
        }),
        files("a pack", ".git: ", |root| std::fs::remove_file(find(root, ".pack")).unwrap()),
        files("a configuration", "its configuration was edited", |root| {
            std::fs::write(find(root, ".git/config"), "[core]\nbare = true\n").unwrap();
        }),
        files("mirrors", "vendor/mirrors.toml: it does not say", |root| {
            std::fs::write(root.join("vendor/mirrors.toml"), "[mirrors]\n").unwrap();
        }),
        files("everything", "is not there", |root| std::fs::remove_dir_all(root.join("vendor")).unwrap()),
        files("something more", "vendor/more: it is none of the listed inputs", |root| {
            std::fs::write(root.join("vendor/more"), "").unwrap();
        }),
        files("instructions", "README.md: expected what", |root| {
            std::fs::write(root.join("README.md"), "run this").unwrap();
        }),
        Edit {
            name: "an input that is not listed",
            files: |root| std::fs::remove_file(find(root, WHEEL)).unwrap(),
            list: |list| list["vendored"].as_array_mut().unwrap().retain(|input| input["name"] != WHEEL),
            says: "one-1.0-py3-none-any.whl: this wheel is not in it",
        },
        list("a commit that is not listed", "decoder: this git is not in it", |list| {
            list["vendored"].as_array_mut().unwrap().retain(|input| input["kind"] != "commit");
        }),
        list("a place", "place of a repository: expected git/", |list| {
            let inputs = list["vendored"].as_array_mut().unwrap().iter_mut();
            inputs.filter(|input| input["kind"] == "commit").for_each(|input| input["repository"] = "../../x".into());
        }),
        list("encoders", "recipe and packaging in the list", |list| list["packaging"][0]["encoder"] = "none".into()),
    ]
}

#[test]
fn inputs_in_a_bundle_are_those_that_pins_and_attestation_name() {
    let env = bundled();
    let whole = env.path("out/bundle");
    relist(&whole, |_| {});
    check(&env, &[]).code(0);
    for Edit { name, files, list, says } in edits() {
        let copy = env.path(&format!("out/{}", name.replace(' ', "-")));
        for entry in walkdir::WalkDir::new(&whole).into_iter().map(Result::unwrap) {
            let to = copy.join(entry.path().strip_prefix(&whole).unwrap());
            if entry.file_type().is_dir() {
                std::fs::create_dir_all(to).unwrap();
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
        files(&copy);
        relist(&copy, list);
        let ran = env.run(&["verify", copy.to_str().unwrap()]).code(8);
        assert!(ran.stderr.contains(says), "{name}: {}", ran.stderr);
    }
    // A bundle without inputs says so.
    bundle(&env, &["--directory", &env.text("out/small")]);
    let text = env.run(&["verify", &env.text("out/small")]).code(0).stdout;
    assert!(text.contains("inputs    none in it"), "{text}");
}
