//! The attestation that a build writes.

use std::collections::BTreeMap;

use rebuild_model::build::prepare_text;
use rebuild_model::digest::Digest;
use rebuild_model::pins::Platform;
use rebuild_model::provenance::Attestation;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::mini::{PATCH, mini};

pub const ATTESTATION: &str = "site/dist/manifest.intoto.json";

fn attestation(env: &TestEnv) -> Value {
    serde_json::from_str(&env.read(ATTESTATION)).unwrap()
}

/// Takes out what two equal builds do not have in common, and asserts that it was there.
fn without_run(mut statement: Value) -> Value {
    let details = &mut statement["predicate"]["runDetails"];
    let metadata: BTreeMap<String, String> = serde_json::from_value(details["metadata"].take()).unwrap();
    assert_eq!(metadata.keys().collect::<Vec<_>>(), ["finishedOn", "invocationId", "startedOn"]);
    assert!(metadata["startedOn"] <= metadata["finishedOn"] && metadata["startedOn"].ends_with('Z'));
    for byproduct in details["byproducts"].as_array_mut().unwrap() {
        if byproduct["annotations"]["kind"] == "journal" || byproduct["annotations"]["kind"] == "log" {
            assert!(byproduct["digest"].take()["sha256"].is_string());
        }
    }
    statement
}

#[test]
fn two_builds_state_the_same_but_for_times() {
    let (one, other) = (mini(), mini());
    one.build(&["--jobs", "2"]).code(0);
    other.build(&["--jobs", "2", "-w", &other.text("work")]).code(0);
    assert_eq!(one.read("site/dist/manifest.cdx.json"), other.read("site/dist/manifest.cdx.json"));
    let (one, other) = (without_run(attestation(&one)), without_run(attestation(&other)));
    assert_eq!(one, other);
}

#[test]
fn subjects_are_packed_and_unpacked() {
    let env = mini();
    let built = env.build(&["--format", "json"]).code(0).json();
    assert_eq!(built["attestation"], json!(env.text(ATTESTATION)));
    let statement = attestation(&env);
    let subjects: BTreeMap<&str, &Value> = statement["subject"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subject| (subject["name"].as_str().unwrap(), &subject["digest"]["sha256"]))
        .collect();
    let artifacts = &built["artifacts"];
    let expected = [
        ("decoder-webgpu.wasm", &artifacts["decoder-webgpu.wasm.gz"]["unpacked"]["sha256"]),
        ("decoder-webgpu.wasm.gz", &artifacts["decoder-webgpu.wasm.gz"]["packed"]["sha256"]),
        ("tvmjs.cjs", &artifacts["tvmjs.cjs.gz"]["unpacked"]["sha256"]),
        ("tvmjs.cjs.gz", &artifacts["tvmjs.cjs.gz"]["packed"]["sha256"]),
        ("weights/params_shard_0.bin", &artifacts["weights/params_shard_0.bin"]["packed"]["sha256"]),
        ("weights/tensor-cache.json", &artifacts["weights/tensor-cache.json"]["packed"]["sha256"]),
    ];
    assert_eq!(subjects, expected.into());
}

#[test]
fn everything_that_went_in_is_named_with_its_digest() {
    let env = mini();
    env.build(&[]).code(0);
    let attestation = Attestation::read(&env.path(ATTESTATION)).unwrap();
    let shown: Vec<_> = attestation
        .dependencies()
        .map(|dependency| {
            let digests: Vec<_> = dependency.digest.keys().map(String::as_str).collect();
            let uri = dependency.uri.as_deref().unwrap_or("-");
            let carried = if dependency.content.is_some() { "carried" } else { "" };
            format!("{} {} {uri} {} {carried}", dependency.kind(), dependency.name(), digests.join("+"))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n").replace(" \n", "\n").trim_end(), @r#"
    pins pins.toml - sha256 carried
    requirements requirements.txt - sha256 carried
    wheel one-1.0-py3-none-any.whl pkg:pypi/one@1.0 sha256
    pypi apache_tvm-1.0-py3-none-any.whl pkg:pypi/apache-tvm@1.0 sha256
    pypi apache_tvm_ffi-1.0-py3-none-any.whl pkg:pypi/apache-tvm-ffi@1.0 sha256
    git decoder - gitCommit+gitTree
    submodule decoder/3rdparty/adapter - gitCommit+gitTree
    submodule decoder/3rdparty/overlay - gitCommit+gitTree
    patch patches/two.patch - sha256 carried
    npm linux-x64-1.0.0.tgz pkg:npm/%40esbuild/linux-x64@1.0.0 sha256
    tool cxx - sha256
    tool emcc - sha256
    tool npm - sha256
    tool python - sha256
    tool uv - sha256
    "#);
    for dependency in attestation.dependencies() {
        assert!(dependency.digest.values().all(|digest| [40, 64].contains(&digest.len())), "{dependency:?}");
    }
}

#[test]
fn a_reader_without_the_site_gets_pins_files_plan_and_steps_back() {
    let env = mini();
    let built = env.build(&["--format", "json"]).code(0).json();
    let attestation = Attestation::read(&env.path(ATTESTATION)).unwrap();
    let (name, text) = attestation.pins().unwrap();
    assert_eq!((name, text), ("pins.toml", env.read("site/pins.toml").as_str()));
    let files = attestation.files().unwrap();
    let names: Vec<_> = files.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["patches/two.patch", "requirements.txt"]);
    assert_eq!(files["patches/two.patch"], PATCH.as_bytes());

    let definition = &attestation.statement().predicate.build_definition;
    assert_eq!(definition.internal_parameters.platform, Platform::here());
    let again = prepare_text(
        text.to_owned(),
        "pins.toml".as_ref(),
        "/elsewhere".into(),
        &definition.internal_parameters.platform,
    )
    .unwrap();
    assert_eq!(again.plan.digest(), definition.internal_parameters.plan);
    assert_eq!(built["plan"], json!(again.plan.digest()));
    assert_eq!(definition.external_parameters.pins.sha256_of(), Some(Digest::of(text.as_bytes())));

    let ids: Vec<_> = again.plan.steps.iter().map(|step| &step.id).collect();
    let mut recorded: Vec<_> = attestation.steps().keys().collect();
    recorded.sort_by_key(|id| ids.iter().position(|other| other == id));
    assert_eq!(recorded, ids);
    for (id, step) in attestation.steps() {
        let record = env.record(id.as_str());
        assert_eq!(json!(step.key), record["key"]);
        assert_eq!(json!(step.parts), record["parts"]);
        assert_eq!(json!(step.outputs), record["outputs"]);
        assert_eq!(json!(step.tools), record["tools"]);
    }
}

#[test]
fn a_build_that_has_nothing_to_do_leaves_the_attestation_alone() {
    let env = mini();
    env.build(&[]).code(0);
    let before = env.read(ATTESTATION);
    env.build(&["--resume", "--jobs", "7"]).code(0);
    assert_eq!(env.read(ATTESTATION), before);
    env.edit("site/pins.toml", "[packaging]\n", "[packaging]\nsize_limit = 1000000\n");
    env.build(&["--resume"]).code(0);
    assert_ne!(env.read(ATTESTATION), before);
}

#[test]
fn nothing_of_the_machine_is_stated() {
    let mut env = mini();
    env.set("HTTPS_PROXY", "http://user:password@proxy.example");
    env.build(&[]).code(0);
    let text = env.read(ATTESTATION);
    assert!(!text.contains(&env.text("")) && !text.contains("password"), "{text}");
    let statement = attestation(&env);
    let internal = &statement["predicate"]["buildDefinition"]["internalParameters"];
    assert_eq!(internal["passedThrough"], json!(["HTTPS_PROXY"]));
}
