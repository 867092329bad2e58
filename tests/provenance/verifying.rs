//! What `verify` says when artifacts, manifest, attestation or pins are not what they were.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::building::ATTESTATION;
use crate::env::{Ran, TestEnv};
use crate::mini::mini;

/// A built miniature, whose attestation is to be spoiled.
fn built() -> TestEnv {
    let env = mini();
    env.build(&[]).code(0);
    env
}

/// Edits the statement as JSON.
fn spoil(env: &TestEnv, spoil: impl FnOnce(&mut Value)) {
    let mut statement: Value = serde_json::from_str(&env.read(ATTESTATION)).unwrap();
    spoil(&mut statement);
    env.write(ATTESTATION, serde_json::to_string_pretty(&statement).unwrap());
}

/// The first of `list` called `name`.
fn called<'a>(list: &'a mut Value, name: &str) -> &'a mut Value {
    list.as_array_mut().unwrap().iter_mut().find(|item| item["name"] == name).unwrap()
}

fn dependency<'a>(statement: &'a mut Value, name: &str) -> &'a mut Value {
    called(&mut statement["predicate"]["buildDefinition"]["resolvedDependencies"], name)
}

/// The record of a step is edited by somebody who knows that it has a digest, and what the key is made of.
fn edit_step(statement: &mut Value, step: &str, edit: impl FnOnce(&mut Value)) {
    use rebuild_model::digest::Digest;
    let byproduct = called(&mut statement["predicate"]["runDetails"]["byproducts"], &format!("step:{step}"));
    edit(&mut byproduct["annotations"]);
    byproduct["annotations"]["key"] = json!(Digest::of_value(&byproduct["annotations"]["parts"]));
    byproduct["digest"]["sha256"] = json!(Digest::of_value(&byproduct["annotations"]));
}

fn verify(env: &TestEnv) -> Ran {
    let by_manifest = env.run(&["verify", "dist/manifest.json"]);
    let by_attestation = env.run(&["verify", "dist/manifest.intoto.json"]);
    assert_eq!(by_manifest.code, by_attestation.code);
    assert_eq!(by_manifest.stderr, by_attestation.stderr);
    by_manifest
}

/// The messages of what is found after `edit`.
fn found(edit: impl FnOnce(&mut Value)) -> String {
    let env = built();
    spoil(&env, edit);
    let report = verify(&env).code(8);
    let lines = report.stderr.lines().filter(|line| !line.starts_with("hint: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_built_holds_from_either_side_and_alone() {
    let env = built();
    let ran = verify(&env).code(0);
    assert_snapshot!(ran.stdout, @r#"
    4 artifacts are what dist/manifest.json and dist/manifest.intoto.json say
    plan      <sha256>
    builder   urn:x-rebuild-model:builder:local (rebuild-model 0.1.0)
    signed by nobody
    "#);
    std::fs::remove_file(env.path("site/dist/manifest.json")).unwrap();
    std::fs::rename(env.path("site/dist"), env.path("received")).unwrap();
    let alone = env.run(&["verify", "../received/manifest.intoto.json"]).code(0);
    assert!(
        alone.stdout.starts_with("4 artifacts are what ../received/manifest.intoto.json says\n"),
        "{}",
        alone.stdout
    );
    env.write("received/weights/params_shard_0.bin", "0123456788\n");
    let flipped = env.run(&["verify", "../received/manifest.intoto.json"]).code(8);
    assert!(flipped.stderr.contains("artifact weights/params_shard_0.bin: packed sha256"), "{}", flipped.stderr);
}

#[test]
fn a_manifest_without_an_attestation_is_verified_as_ever() {
    let env = built();
    std::fs::remove_file(env.path(ATTESTATION)).unwrap();
    let ran = env.run(&["verify", "dist/manifest.json"]).code(0);
    assert_snapshot!(ran.stdout, @"4 artifacts are what dist/manifest.json says");
    env.write("site/policy.toml", "schema = 1\nisolation = true\n");
    let needed = env.run(&["verify", "dist/manifest.json", "--policy", "policy.toml"]).code(8);
    assert_snapshot!(needed.stderr, @r#"
    error: dist/manifest.json does not hold: there is no attestation: dist/manifest.intoto.json does not exist
    hint: get the attestation that the build wrote beside its manifest, or name it: `verify ATTESTATION --manifest MANIFEST`
    "#);
}

#[test]
fn an_edited_subject_is_named() {
    let digest = "0".repeat(64);
    let mut shown = Vec::new();
    for name in ["decoder-webgpu.wasm.gz", "decoder-webgpu.wasm", "weights/tensor-cache.json"] {
        shown.push(found(|statement| called(&mut statement["subject"], name)["digest"]["sha256"] = json!(digest)));
    }
    shown.push(found(|statement| drop(statement["subject"].as_array_mut().unwrap().remove(0))));
    shown.push(found(|statement| drop(statement["subject"].as_array_mut().unwrap().pop())));
    shown.push(found(|statement| {
        called(&mut statement["subject"], "tvmjs.cjs.gz")["annotations"]["role"] = json!("other");
    }));
    assert_snapshot!(shown.join("\n"), @r#"
    error: dist/manifest.json does not hold: artifact decoder-webgpu.wasm.gz: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>; and 1 more
      | artifact decoder-webgpu.wasm.gz: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
    error: dist/manifest.json does not hold: artifact decoder-webgpu.wasm.gz: `unpacked.sha256`: the attestation says <sha256>, the manifest <sha256>; and 2 more
      | artifact decoder-webgpu.wasm.gz: `unpacked.sha256`: the attestation says <sha256>, the manifest <sha256>
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
      | the attestation's step link: output decoder-webgpu.wasm, from the unpacked subjects: expected <sha256>, found <sha256>
    error: dist/manifest.json does not hold: artifact weights/tensor-cache.json: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>; and 3 more
      | artifact weights/tensor-cache.json: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>
      | artifact weights/tensor-cache.json: `unpacked.sha256`: the attestation says <sha256>, the manifest <sha256>
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
      | the attestation's step weights: output weights, from the unpacked subjects: expected <sha256>, found <sha256>
    error: dist/manifest.json does not hold: the attestation's subject decoder-webgpu.wasm: it contradicts its artifact, or another subject of the same name
    error: dist/manifest.json does not hold: artifact weights/tensor-cache.json: the manifest lists it, and the attestation does not speak of it; and 2 more
      | artifact weights/tensor-cache.json: the manifest lists it, and the attestation does not speak of it
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
      | the attestation's step weights: output weights, from the unpacked subjects: expected <sha256>, found <sha256>
    error: dist/manifest.json does not hold: artifact tvmjs.cjs.gz: `role`: the attestation says other, the manifest browser-module; and 1 more
      | artifact tvmjs.cjs.gz: `role`: the attestation says other, the manifest browser-module
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
    "#);
}

#[test]
fn an_artifact_that_was_exchanged_together_with_its_manifest_is_named() {
    let env = built();
    let other = b"another\n";
    let digest = rebuild_model::digest::Digest::of(other);
    env.write("site/dist/weights/params_shard_0.bin", other);
    let mut manifest: Value = serde_json::from_str(&env.read("site/dist/manifest.json")).unwrap();
    let path = "weights/params_shard_0.bin".parse().unwrap();
    let encoded = rebuild_model::artifact::encoding::Encoded {
        encoding: rebuild_model::pins::Encoding::Identity,
        encoder: "none".into(),
        packed: (digest, 8).into(),
        unpacked: (digest, 8).into(),
    };
    manifest["artifacts"]["weights/params_shard_0.bin"] =
        json!(rebuild_model::manifest::Entry::new(&path, "weights", &encoded));
    env.write("site/dist/manifest.json", manifest.to_string());
    assert_snapshot!(verify(&env).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: artifact weights/params_shard_0.bin: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>; and 3 more
      | artifact weights/params_shard_0.bin: `packed.sha256`: the attestation says <sha256>, the manifest <sha256>
      | artifact weights/params_shard_0.bin: `packed.size`: the attestation says 11, the manifest 8
      | artifact weights/params_shard_0.bin: `unpacked.sha256`: the attestation says <sha256>, the manifest <sha256>
      | artifact weights/params_shard_0.bin: `unpacked.size`: the attestation says 11, the manifest 8
    hint: do not deliver these files; build and package again, or restore them from where they were built
    "#);
    // And with the attestation's subject, too: then it is not what the last step made.
    spoil(&env, |statement| {
        let subject = called(&mut statement["subject"], "weights/params_shard_0.bin");
        subject["digest"]["sha256"] = json!(digest);
        subject["annotations"]["size"] = json!(8);
    });
    assert_snapshot!(verify(&env).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>; and 1 more
      | the attestation's step package: output package, from the subjects: expected <sha256>, found <sha256>
      | the attestation's step weights: output weights, from the unpacked subjects: expected <sha256>, found <sha256>
    hint: do not deliver these files; build and package again, or restore them from where they were built
    "#);
}

#[test]
fn an_artifact_that_nobody_attests_is_found() {
    let env = built();
    let text = env.read("site/dist/manifest.json");
    env.write("site/dist/extra", "");
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    let empty = json!({ "sha256": rebuild_model::digest::Digest::of(b""), "size": 0 });
    manifest["artifacts"]["extra"] = json!({ "encoding": "identity", "packed": empty, "unpacked": empty });
    env.write("site/dist/manifest.json", manifest.to_string());
    assert_snapshot!(verify(&env).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: artifact extra: the manifest lists it, and the attestation does not speak of it
    hint: attest everything in one build, or accept artifacts of other builds with --allow-unattested
    "#);
    let allowed = env.run(&["verify", "dist/manifest.json", "--allow-unattested"]).code(0);
    assert!(allowed.stdout.ends_with("not attested: extra"), "{}", allowed.stdout);
}

#[test]
fn pins_plan_and_what_went_in_agree() {
    let zeros = "0".repeat(64);
    let mut shown = Vec::new();
    let mut note = |name: &str, edit: &dyn Fn(&mut Value)| shown.push(format!("# {name}\n{}", found(edit)));
    note("the pins' text", &|statement| dependency(statement, "pins.toml")["content"] = json!("AAAA"));
    note("the pins' text is left out", &|statement| {
        dependency(statement, "pins.toml").as_object_mut().unwrap().remove("content");
    });
    note("the digest of the pins", &|statement| {
        statement["predicate"]["buildDefinition"]["externalParameters"]["pins"]["digest"]["sha256"] = json!(zeros);
    });
    note("a patch by one byte", &|statement| {
        use rebuild_model::digest::Digest;
        let patch = crate::mini::PATCH.replace("+TWO", "+TVO");
        let entry = dependency(statement, "patches/two.patch");
        entry["content"] = json!(rebuild_model::provenance::Content(patch.clone().into_bytes()));
        entry["digest"]["sha256"] = json!(Digest::of(patch.as_bytes()));
    });
    note("the plan's digest", &|statement| {
        statement["predicate"]["buildDefinition"]["internalParameters"]["plan"] = json!(zeros);
    });
    note("the platform", &|statement| {
        statement["predicate"]["buildDefinition"]["internalParameters"]["platform"] = json!("macos-aarch64");
        statement["predicate"]["buildDefinition"]["internalParameters"]["recipe"] = json!("other");
    });
    note("a commit", &|statement| dependency(statement, "decoder")["digest"]["gitCommit"] = json!("0".repeat(40)));
    note("a wheel", &|statement| {
        dependency(statement, "apache_tvm-1.0-py3-none-any.whl")["digest"]["sha256"] = json!(zeros);
    });
    note("a wheel of the requirements", &|statement| {
        dependency(statement, "one-1.0-py3-none-any.whl")["digest"]["sha256"] = json!(zeros);
    });
    note("where a package is from", &|statement| {
        dependency(statement, "linux-x64-1.0.0.tgz")["uri"] = json!("pkg:npm/esbuild@1.0.0");
    });
    note("a tool", &|statement| dependency(statement, "emcc")["annotations"]["version"] = json!("2.0.0"));
    note("something that nothing pins", &|statement| {
        let list = &mut statement["predicate"]["buildDefinition"]["resolvedDependencies"];
        let mut more = list[1].clone();
        more["name"] = json!("more.txt");
        list.as_array_mut().unwrap().push(more);
    });
    note("something that is pinned", &|statement| {
        let list = &mut statement["predicate"]["buildDefinition"]["resolvedDependencies"];
        list.as_array_mut().unwrap().retain(|dependency| dependency["name"] != "decoder/3rdparty/overlay");
    });
    assert_snapshot!(shown.join("\n"), @r#"
    # the pins' text
    error: the attestation dist/manifest.intoto.json contradicts itself: pins.toml: its content has sha256 <sha256>, and <sha256> is stated
    # the pins' text is left out
    error: dist/manifest.json does not hold: the attestation does not carry the pins file
    # the digest of the pins
    error: dist/manifest.json does not hold: the attestation's digest of the pins: expected <sha256>, found <sha256>
    # a patch by one byte
    error: dist/manifest.json does not hold: the attestation's dependency patches/two.patch: sha256: expected <sha256>, found <sha256>
    # the plan's digest
    error: dist/manifest.json does not hold: the attestation's plan: <sha256> follows from its pins, found <sha256>
    # the platform
    error: dist/manifest.json does not hold: the attestation's plan: <sha256> follows from its pins, found <sha256>
    # a commit
    error: dist/manifest.json does not hold: the attestation's dependency decoder: gitCommit: expected <id>, found <id>
    # a wheel
    error: dist/manifest.json does not hold: the attestation's dependency apache_tvm-1.0-py3-none-any.whl: sha256: expected <sha256>, found <sha256>
    # a wheel of the requirements
    error: dist/manifest.json does not hold: the attestation's dependency one-1.0-py3-none-any.whl: sha256: expected one that the requirements allow, found <sha256>; and 1 more
      | the attestation's dependency one-1.0-py3-none-any.whl: sha256: expected one that the requirements allow, found <sha256>
      | the attestation's step wheels: output wheels, from the wheels that went in: expected <sha256>, found <sha256>
    # where a package is from
    error: dist/manifest.json does not hold: the attestation's dependency linux-x64-1.0.0.tgz: uri: expected pkg:npm/%40esbuild/linux-x64@1.0.0, found pkg:npm/esbuild@1.0.0
    # a tool
    error: dist/manifest.json does not hold: the attestation's dependency emcc: version: expected >=3.1.6, found 2.0.0; and 5 more
      | the attestation's dependency emcc: version: expected >=3.1.6, found 2.0.0
      | the attestation's step emscripten: tool emcc: expected 2.0.0, sha256 <sha256>, found 3.1.6, sha256 <sha256>
      | the attestation's step link: tool emcc: expected 2.0.0, sha256 <sha256>, found 3.1.6, sha256 <sha256>
      | the attestation's step objects-ffi: tool emcc: expected 2.0.0, sha256 <sha256>, found 3.1.6, sha256 <sha256>
      | the attestation's step objects-runtime: tool emcc: expected 2.0.0, sha256 <sha256>, found 3.1.6, sha256 <sha256>
      | the attestation's step objects-vm: tool emcc: expected 2.0.0, sha256 <sha256>, found 3.1.6, sha256 <sha256>
    # something that nothing pins
    error: dist/manifest.json does not hold: the attestation's dependency more.txt: requirements: expected none, since nothing pins it, found one
    # something that is pinned
    error: dist/manifest.json does not hold: the attestation's dependency decoder/3rdparty/overlay: submodule: expected one, since it is pinned, found none
    "#);
}

#[test]
fn a_step_follows_from_the_plan_and_from_the_steps_before_it() {
    let zeros = "0".repeat(64);
    let mut shown = Vec::new();
    let mut note = |name: &str, edit: &dyn Fn(&mut Value)| shown.push(format!("# {name}\n{}", found(edit)));
    note("a careless edit", &|statement| {
        let list = &mut statement["predicate"]["runDetails"]["byproducts"];
        called(list, "step:compile")["annotations"]["outputs"]["lib0.o"]["sha256"] = json!(zeros);
    });
    note("a careless edit of a part", &|statement| {
        let list = &mut statement["predicate"]["runDetails"]["byproducts"];
        let step = called(list, "step:compile");
        step["annotations"]["parts"]["action"] = json!(zeros);
        step["digest"]["sha256"] = json!(rebuild_model::digest::Digest::of_value(&step["annotations"]));
    });
    note("an output", &|statement| {
        edit_step(statement, "compile", |step| step["outputs"]["lib0.o"]["sha256"] = json!(zeros));
    });
    note("a command", &|statement| {
        edit_step(statement, "compile", |step| step["parts"]["action"] = json!(zeros));
    });
    note("a tool", &|statement| {
        edit_step(statement, "objects-vm", |step| step["tools"]["emcc"]["version"] = json!("3.1.7"));
    });
    note("a step that is not there", &|statement| {
        let list = &mut statement["predicate"]["runDetails"]["byproducts"];
        list.as_array_mut().unwrap().retain(|byproduct| byproduct["name"] != "step:weights");
    });
    assert_snapshot!(shown.join("\n"), @r#"
    # a careless edit
    error: the attestation dist/manifest.intoto.json contradicts itself: step:compile: its digest is not that of its record, <sha256>
    # a careless edit of a part
    error: the attestation dist/manifest.intoto.json contradicts itself: step:compile: its key <sha256> does not follow from its parts, which give <sha256>
    # an output
    error: dist/manifest.json does not hold: the attestation's step link: input compile/lib0.o: expected <sha256>, found <sha256>
    # a command
    error: dist/manifest.json does not hold: the attestation's step compile: action: expected <sha256>, found <sha256>
    # a tool
    error: dist/manifest.json does not hold: the attestation's step objects-vm: tool emcc: expected <sha256>, found <sha256>; and 1 more
      | the attestation's step objects-vm: tool emcc: expected <sha256>, found <sha256>
      | the attestation's step objects-vm: tool emcc: expected 3.1.6, sha256 <sha256>, found 3.1.7, sha256 <sha256>
    # a step that is not there
    error: dist/manifest.json does not hold: the attestation's step weights: record: expected one, found none; and 2 more
      | the attestation's step weights: record: expected one, found none
      | the attestation's step gates: input weights/weights: expected nothing, found <sha256>
      | the attestation's step package: input weights/weights: expected nothing, found <sha256>
    "#);
}

#[test]
fn what_was_fetched_and_what_was_delivered_cannot_be_recorded_otherwise() {
    // The output, and every step that read it, are edited so that no record contradicts another.
    let known = [
        ("fetch-esbuild", "linux-x64-1.0.0.tgz", "from the pins"),
        ("wheels", "requirements.txt", "from the requirements"),
        ("wheels", "wheels", "from the wheels that went in"),
        ("link", "decoder-webgpu.wasm", "from the unpacked subjects"),
        ("browser", "tvmjs.cjs", "from the unpacked subjects"),
        ("weights", "weights", "from the unpacked subjects"),
    ];
    let zeros = json!("0".repeat(64));
    for (step, output, from) in known {
        let text = found(|statement| {
            let steps = statement["predicate"]["runDetails"]["byproducts"].as_array().unwrap();
            let names: Vec<String> = steps.iter().map(|step| step["name"].as_str().unwrap().to_owned()).collect();
            for name in names.iter().filter_map(|name| name.strip_prefix("step:")) {
                edit_step(statement, name, |record| {
                    let input = &mut record["parts"]["inputs"];
                    if let Some(input) = input.as_object_mut().unwrap().get_mut(&format!("{step}/{output}")) {
                        *input = zeros.clone();
                    }
                    if name == step {
                        record["outputs"][output]["sha256"] = zeros.clone();
                    }
                });
            }
        });
        let says = format!("the attestation's step {step}: output {output}, {from}: expected <sha256>, found <sha256>");
        assert!(text.ends_with(&says) && !text.contains("more"), "{says}: {text}");
    }
}

#[test]
fn a_plan_of_another_version_is_inconclusive() {
    let env = built();
    spoil(&env, |statement| {
        statement["predicate"]["buildDefinition"]["internalParameters"]["plan"] = json!("0".repeat(64));
        statement["predicate"]["runDetails"]["builder"]["version"]["rebuild-model"] = json!("0.0.9");
    });
    assert_snapshot!(verify(&env).code(11).stderr, @r#"
    error: dist/manifest.json does not hold: the attestation's plan: <sha256> follows from its pins, found <sha256> (built by rebuild-model 0.0.9, which may have planned otherwise)
    hint: verify with the version that built
    "#);
}

#[test]
fn an_edited_journal_is_found_by_its_step() {
    let env = built();
    let journal = env.text("site/.rebuild/tvm-webgpu/journal.jsonl");
    let check = |code| env.run(&["verify", "dist/manifest.json", "--journal", &journal]).code(code);
    check(0);
    // A later build that had nothing to do has appended its beginning.
    env.build(&["--resume"]).code(0);
    check(0);
    let whole = env.read("site/.rebuild/tvm-webgpu/journal.jsonl");
    let output = env.record("compile")["outputs"]["lib0.o"]["sha256"].as_str().unwrap().to_owned();
    let mut shown = Vec::new();
    for (from, to) in [
        (output.as_str(), "0".repeat(64)),
        ("\"outcome\":\"done\"", "\"outcome\":\"done\",\"more\":1".to_owned()),
        ("{\"step\":{\"step\":\"weights\"", "{\"step\":{\"step\":\"others\"".to_owned()),
        ("{\"step\":", "{\"stop\":".to_owned()),
    ] {
        assert!(whole.contains(from));
        env.write("site/.rebuild/tvm-webgpu/journal.jsonl", whole.replace(from, &to));
        shown.push(check(8).stderr);
    }
    // What is appended cannot say otherwise either.
    env.write("site/.rebuild/tvm-webgpu/journal.jsonl", &whole);
    let link = whole.lines().find(|line| line.contains("{\"step\":{\"step\":\"link\"")).unwrap();
    let made = env.record("link")["outputs"]["decoder-webgpu.wasm"]["sha256"].as_str().unwrap().to_owned();
    let other = link.replace(&made, &"0".repeat(64));
    assert_ne!(link, other);
    for more in [other.as_str(), "{\"event\":\"x\"}", "something"] {
        env.write("site/.rebuild/tvm-webgpu/journal.jsonl", format!("{whole}{more}\n"));
        let found = check(8).stderr;
        assert!(found.contains("does not hold: the journal: "), "{found}");
    }
    std::fs::File::create(&journal).unwrap().set_len(1 << 40).unwrap();
    assert!(check(8).stderr.contains("it is larger than 268435456 bytes"));
    env.write("site/.rebuild/tvm-webgpu/journal.jsonl", "");
    assert!(check(8).stderr.contains("the journal: it has no record of step"));
    let missing = env.run(&["verify", "dist/manifest.json", "--journal", "nowhere"]).code(8);
    shown.push(missing.stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: dist/manifest.json does not hold: the journal: its record of step compile: output lib0.o: <sha256> of 7 bytes is attested, found <sha256> of 7 bytes; and 1 more
      | the journal: its record of step compile: output lib0.o: <sha256> of 7 bytes is attested, found <sha256> of 7 bytes
      | the journal: its record of step link: parts: <sha256> is attested, found <sha256>
    hint: the journal was edited, or is of another build; the attestation and the artifacts hold without it
    error: dist/manifest.json does not hold: the journal: sha256 <sha256> is attested, found <sha256>; its records of the steps agree
    hint: the journal was edited, or is of another build; the attestation and the artifacts hold without it
    error: dist/manifest.json does not hold: the journal: it has no record of step weights, which is attested
    hint: the journal was edited, or is of another build; the attestation and the artifacts hold without it
    error: dist/manifest.json does not hold: the journal: ROOT/site/.rebuild/tvm-webgpu/journal.jsonl, line 2: not a journal record
    hint: the journal was edited, or is of another build; the attestation and the artifacts hold without it
    error: dist/manifest.json does not hold: the journal: nowhere cannot be read: No such file or directory (os error 2)
    hint: the journal was edited, or is of another build; the attestation and the artifacts hold without it
    "#);
}

#[test]
fn the_bill_of_materials_is_the_attested_one() {
    let env = built();
    env.edit("site/dist/manifest.cdx.json", "apache-tvm", "apache-tvn");
    assert_snapshot!(verify(&env).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: dist/manifest.cdx.json is not the bill of materials of this attestation
    hint: do not deliver these files; build and package again, or restore them from where they were built
    "#);
    // It need not be there; a build that finds nothing to do writes it again.
    std::fs::remove_file(env.path("site/dist/manifest.cdx.json")).unwrap();
    verify(&env).code(0);
    env.build(&["--resume"]).code(0);
    assert!(env.path("site/dist/manifest.cdx.json").is_file());
    verify(&env).code(0);
}
