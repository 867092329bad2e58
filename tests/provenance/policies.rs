//! Policies: what whoever deploys demands.

use insta::assert_snapshot;

use crate::env::{Ran, TestEnv};
use crate::mini::mini;

fn built() -> TestEnv {
    let env = mini();
    env.build(&[]).code(0);
    env
}

fn check(env: &TestEnv, policy: &str) -> Ran {
    env.write("policy/site.toml", format!("schema = 1\n{policy}"));
    env.run(&["verify", "dist/manifest.json", "--policy", "../policy/site.toml"])
}

/// The commits of the miniature's git sources, as a policy names them.
fn commits(env: &TestEnv) -> String {
    let attestation = rebuild_model::provenance::Attestation::read(&env.path(crate::building::ATTESTATION)).unwrap();
    let sources = attestation.dependencies().filter(|dependency| dependency.digest.contains_key("gitCommit"));
    let line = |dependency: &rebuild_model::provenance::ResourceDescriptor| {
        format!("\"{}\" = [\"{}\"]\n", dependency.name(), dependency.digest["gitCommit"])
    };
    format!("[commits]\n{}", sources.map(line).collect::<String>())
}

#[test]
fn a_policy_that_is_met_is_met() {
    let env = built();
    let isolation = rebuild_model::process::can_isolate();
    let policy = format!(
        "sources = [\"pkg:pypi/\", \"pkg:npm/%40esbuild/\"]\nisolation = {isolation}\nrecorded = true\n\
         builders = [{{ id = \"urn:x-rebuild-model:builder:local\", version = \">=0.1, <1\" }}]\n{}",
        commits(&env)
    );
    check(&env, &policy).code(0);
}

#[test]
fn what_does_not_meet_a_policy_is_named() {
    let env = built();
    let policies = [
        "sources = [\"pkg:pypi/\"]\n".to_owned(),
        format!("sources = [\"pkg:pypi/apache-tvm\", \"pkg:npm/%40esbuild/\"]\n{}", commits(&env)),
        format!("[commits]\ndecoder = [\"{}\"]\nother = [\"{}\"]\n", "0".repeat(40), "1".repeat(40)),
        "builders = [{ id = \"https://ci.example.org/\" }]\n".to_owned(),
        "builders = [{ id = \"urn:x-rebuild-model:builder:local\", version = \">=2\" }]\n".to_owned(),
    ];
    let shown: Vec<_> = policies.iter().map(|policy| check(&env, policy).code(8).stderr).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    error: dist/manifest.json does not hold: policy `sources`: decoder: it comes from a repository that only its builder has; and 3 more
      | policy `sources`: decoder: it comes from a repository that only its builder has
      | policy `sources`: decoder/3rdparty/adapter: it comes from a repository that only its builder has
      | policy `sources`: decoder/3rdparty/overlay: it comes from a repository that only its builder has
      | policy `sources`: linux-x64-1.0.0.tgz: it comes from pkg:npm/%40esbuild/linux-x64@1.0.0, which is below none of the allowed addresses
    hint: do not deliver these files, or let whoever answers for the policy decide
    error: dist/manifest.json does not hold: policy `sources`: one-1.0-py3-none-any.whl: it comes from pkg:pypi/one@1.0, which is below none of the allowed addresses; and 1 more
      | policy `sources`: one-1.0-py3-none-any.whl: it comes from pkg:pypi/one@1.0, which is below none of the allowed addresses
      | policy `sources`: apache_tvm_ffi-1.0-py3-none-any.whl: it comes from pkg:pypi/apache-tvm-ffi@1.0, which is below none of the allowed addresses
    hint: do not deliver these files, or let whoever answers for the policy decide
    error: dist/manifest.json does not hold: policy `commits`: decoder: it is at commit <id>, and <id> is demanded; and 1 more
      | policy `commits`: decoder: it is at commit <id>, and <id> is demanded
      | policy `commits`: other: no git source of this name went in
    hint: do not deliver these files, or let whoever answers for the policy decide
    error: dist/manifest.json does not hold: policy `builders`: urn:x-rebuild-model:builder:local 0.1.0: expected https://ci.example.org/
    hint: do not deliver these files, or let whoever answers for the policy decide
    error: dist/manifest.json does not hold: policy `builders`: urn:x-rebuild-model:builder:local 0.1.0: expected urn:x-rebuild-model:builder:local >=2
    hint: do not deliver these files, or let whoever answers for the policy decide
    "#);
}

#[test]
fn a_builder_says_who_they_are_and_a_policy_demands_it() {
    let env = mini();
    let demand = |id: &str| format!("builders = [{{ id = \"{id}\" }}]\n");
    let (local, mine, other) =
        ("urn:x-rebuild-model:builder:local", "https://ci.example.org/release", "urn:example:workstation");
    let built_by = || {
        let path = env.path(crate::building::ATTESTATION);
        let attestation = rebuild_model::provenance::Attestation::read(&path).unwrap();
        attestation.statement().predicate.run_details.builder.id.clone()
    };
    env.build(&[]).code(0);
    assert_eq!(built_by(), local);
    check(&env, &demand(local)).code(0);

    // Nothing runs again, and still the attestation has to say something else.
    env.write("config/rebuild-model/config.toml", format!("builder_id = \"{other}\"\n"));
    env.build(&["--resume"]).code(0);
    assert_eq!(built_by(), other);
    check(&env, &demand(other)).code(0);

    // The flag is nearer than the file.
    env.build(&["--resume", "--builder-id", mine]).code(0);
    assert_eq!(built_by(), mine);
    check(&env, &demand(mine)).code(0);
    assert_snapshot!(check(&env, &demand(other)).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: policy `builders`: https://ci.example.org/release 0.1.0: expected urn:example:workstation
    hint: do not deliver these files, or let whoever answers for the policy decide
    "#);

    let refused = ["release", "https://user:secret@ci.example.org/"]
        .map(|id| env.build(&["--resume", "--builder-id", id]).code(1).stderr);
    env.write("config/rebuild-model/config.toml", "builder_id = \"https:\"\n");
    let refused = [refused.join("\n"), env.build(&["--resume"]).code(1).stderr].join("\n");
    assert_snapshot!(refused, @r#"
    error: invalid value 'release' for '--builder-id <URI>': a builder's id is a URI, as in https://example.org/builders/release or urn:example:builder: this one has no scheme

    For more information, try '--help'.
    error: invalid value 'https://user:secret@ci.example.org/' for '--builder-id <URI>': a builder's id is a URI, as in https://example.org/builders/release or urn:example:builder: this one has a user or a password in it, which would stand in every attestation

    For more information, try '--help'.
    error: ROOT/config/rebuild-model/config.toml is not valid
      | TOML parse error at line 1, column 14
      |   |
      | 1 | builder_id = "https:"
      |   |              ^^^^^^^^
      | a builder's id is a URI, as in https://example.org/builders/release or urn:example:builder: this one has no host
    hint: it may hold builder_id = "URI", and mirrors as "URL" = "PATH_OR_URL" below [mirrors]
    "#);
    assert_eq!(built_by(), mine);
}

#[test]
fn steps_that_were_not_isolated_and_inputs_that_nobody_recorded_are_named() {
    let env = mini();
    let digest = rebuild_model::digest::Digest::of(env.read("site/requirements.txt").as_bytes()).to_string();
    env.edit("site/pins.toml", &digest, "not-recorded");
    env.build(&["--record-unknown"]).code(0);
    assert_snapshot!(check(&env, "recorded = true\n").code(8).stderr, @r#"
    error: dist/manifest.json does not hold: policy `recorded`: wheels (requirements.txt): the pins have no digest of it
    hint: do not deliver these files, or let whoever answers for the policy decide
    "#);

    let env = built();
    let path = crate::building::ATTESTATION;
    let mut statement: serde_json::Value = serde_json::from_str(&env.read(path)).unwrap();
    statement["predicate"]["buildDefinition"]["internalParameters"]["isolation"] = false.into();
    for byproduct in statement["predicate"]["runDetails"]["byproducts"].as_array_mut().unwrap() {
        if byproduct["name"] == "step:link" || byproduct["name"] == "step:python-env" {
            byproduct["annotations"]["isolated"] = false.into();
            let digest = rebuild_model::digest::Digest::of_value(&byproduct["annotations"]);
            byproduct["digest"]["sha256"] = digest.to_string().into();
        }
    }
    env.write(path, statement.to_string());
    assert!(check(&env, "isolation = true\n").code(8).stderr.contains("policy `isolation`: the host"));
}

#[test]
fn a_policy_demands_signatures() {
    let env = built();
    let key = env.write("policy/one.key", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n");
    let (private, _) = rebuild_model::provenance::PrivateKey::read(&key).unwrap();
    // RFC 8032, section 7.1, test 1.
    let public = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    env.write("policy/one.pub", format!("-----BEGIN PUBLIC KEY-----\n{public}\n-----END PUBLIC KEY-----\n"));
    let policy = "[signatures]\nkeys = [\"one.pub\"]\n";
    assert_snapshot!(check(&env, policy).code(8).stderr, @r#"
    error: dist/manifest.json does not hold: the attestation is not signed: it is a bare statement
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    "#);
    env.run(&["sign", "dist/manifest.intoto.json", "-k", "../policy/one.key"]).code(0);
    let ran = check(&env, policy).code(0);
    assert!(ran.stdout.contains("signed by <sha256>") && !ran.stdout.contains("not checked"), "{}", ran.stdout);
    assert!(ran.raw.contains(&private.public().id()));
}

#[test]
fn what_is_no_policy_is_refused() {
    let env = built();
    let texts = [
        "",
        "sources = [\"https://github.com\"]\n",
        "source = [\"https://github.com/\"]\n",
        "[signatures]\nkeys = []\n",
        "[signatures]\nkeys = [\"nowhere.pub\"]\n",
        "[commits]\ntvm = [\"main\"]\n",
    ];
    let mut shown: Vec<_> = texts.iter().map(|text| check(&env, text).code(1).stderr).collect();
    env.write("policy/newer.toml", "schema = 2\n");
    shown.push(env.run(&["verify", "dist/manifest.json", "--policy", "../policy/newer.toml"]).code(1).stderr);
    shown.push(env.run(&["verify", "dist/manifest.json", "--policy", "../policy"]).code(1).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: the policy ../policy/site.toml is not valid: it demands nothing
    error: the policy ../policy/site.toml is not valid: `https://github.com` in `sources` is not the beginning of an address: a scheme, and a host up to a `/`, are wanted
    error: the policy ../policy/site.toml is not valid
      | TOML parse error at line 2, column 1
      |   |
      | 2 | source = ["https://github.com/"]
      |   | ^^^^^^
      | unknown field `source`, expected one of `schema`, `sources`, `commits`, `builders`, `isolation`, `recorded`, `signatures`
    error: the policy ../policy/site.toml is not valid: `signatures.threshold` is 0, and there are 0 keys
    error: cannot read the key ../policy/nowhere.pub
      because: No such file or directory (os error 2)
    hint: name a readable key file
    error: the policy ../policy/site.toml is not valid
      | TOML parse error at line 3, column 7
      |   |
      | 3 | tvm = ["main"]
      |   |       ^^^^^^^^
      | `main` is not a full git object id: 40 lower-case hexadecimal digits
    error: the policy ../policy/newer.toml is not valid: it has schema 2, and this version reads schema 1
    error: cannot read the policy ../policy
      because: it is not a regular file of at most 1 MiB
    hint: name another file with --policy
    "#);
}
