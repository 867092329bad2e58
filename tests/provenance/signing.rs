//! Signatures: by the right key, by enough keys, over these bytes.
//!
//! The keys are OpenSSL's: what it makes is read here. That it accepts our signatures, and we those of
//! others, is shown by `tests/outside/check.sh`, which has programs that these tests must do without.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::building::ATTESTATION;
use crate::env::{Ran, TestEnv};
use crate::mini::mini;

/// `openssl genpkey -algorithm ed25519`, and `openssl pkey -pubout` of it: name, private, public.
const KEYS: [(&str, &str, &str); 3] = [
    (
        "one",
        "MC4CAQAwBQYDK2VwBCIEIIhxfNIdBvPQkVHhbwJt3pJHZfRnKGcVrFtfLLVmNnVb",
        "MCowBQYDK2VwAyEAXTt0NTbkK6Wiagm/fXIz3wJ12U/EG9V2O0n+oL6B6Zg=",
    ),
    (
        "two",
        "MC4CAQAwBQYDK2VwBCIEIBVpFzybcZRI5/gYV9lwENFDXbY6c+rF6s4BHERrgdCn",
        "MCowBQYDK2VwAyEAEG5SWdzRbn7DsRT8dtLVHRogPnyZDGKFnh7krbIY4g0=",
    ),
    (
        "three",
        "MC4CAQAwBQYDK2VwBCIEIOCzAWIqRhfPLDah4XSDGzMDFg4PQ64DRH0gkm+qQMRi",
        "MCowBQYDK2VwAyEAC1g0AN6zLH8RgFdiqa/NXbDPg+N6U/WhdMP4Mj0cXYo=",
    ),
];

fn pem(label: &str, body: &str) -> String {
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

fn built() -> TestEnv {
    let env = mini();
    env.build(&[]).code(0);
    for (name, private, public) in KEYS {
        let path = env.write(&format!("site/{name}.key"), pem("PRIVATE KEY", private));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
        env.write(&format!("site/{name}.pub"), pem("PUBLIC KEY", public));
    }
    env
}

fn sign(env: &TestEnv, key: &str) -> Ran {
    env.run(&["sign", "dist/manifest.intoto.json", "--key", &format!("{key}.key")])
}

fn verify(env: &TestEnv, more: &[&str]) -> Ran {
    env.run(&[&["verify", "dist/manifest.json"], more].concat())
}

fn envelope(env: &TestEnv) -> Value {
    serde_json::from_str(&env.read(ATTESTATION)).unwrap()
}

fn spoil(env: &TestEnv, spoil: impl FnOnce(&mut Value)) {
    let mut value = envelope(env);
    spoil(&mut value);
    env.write(ATTESTATION, value.to_string());
}

#[test]
fn a_signature_is_added_and_holds() {
    let env = built();
    let bare = env.read(ATTESTATION);
    assert_snapshot!(sign(&env, "one").code(0).stdout, @"dist/manifest.intoto.json is signed by <sha256>");
    let signed = envelope(&env);
    assert_eq!(signed["payloadType"], "application/vnd.in-toto+json");
    let payload: rebuild_model::provenance::Content = serde_json::from_value(signed["payload"].clone()).unwrap();
    assert_eq!(payload.0, bare.as_bytes(), "what is signed is the file as it was");
    assert_snapshot!(verify(&env, &["-k", "one.pub"]).code(0).stdout, @r#"
    4 artifacts are what dist/manifest.json and dist/manifest.intoto.json say
    plan      <sha256>
    builder   urn:x-rebuild-model:builder:local (rebuild-model 0.1.0)
    signed by <sha256>
    "#);
    // Whoever gives no key is told that nothing was checked.
    assert_snapshot!(verify(&env, &[]).code(0).stdout, @r#"
    4 artifacts are what dist/manifest.json and dist/manifest.intoto.json say
    plan      <sha256>
    builder   urn:x-rebuild-model:builder:local (rebuild-model 0.1.0)
    signed by <sha256> (not checked: no key was given for it)
    "#);
    // Signing again with the same key changes nothing.
    let before = env.read(ATTESTATION);
    assert_snapshot!(sign(&env, "one").code(0).stdout, @"<sha256> has signed already");
    assert_eq!(env.read(ATTESTATION), before);
    // Nor does a build that had nothing to do.
    env.build(&["--resume"]).code(0);
    assert_eq!(env.read(ATTESTATION), before);
}

#[test]
fn several_sign_and_a_threshold_counts_them() {
    let env = built();
    sign(&env, "one").code(0);
    sign(&env, "two").code(0);
    verify(&env, &["-k", "one.pub", "-k", "two.pub"]).code(0);
    verify(&env, &["-k", "two.pub"]).code(0);
    let three = ["-k", "one.pub", "-k", "two.pub", "-k", "three.pub"];
    verify(&env, &[&three[..], &["--threshold", "2"]].concat()).code(0);
    let unmet = verify(&env, &three).code(8);
    assert_snapshot!(unmet.stderr, @r#"
    error: dist/manifest.json does not hold: the attestation's signatures: 3 of the given keys must have signed, found 2; not by <sha256>
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    "#);
    // One key given twice is one key.
    assert_snapshot!(verify(&env, &["-k", "one.pub", "-k", "one.pub", "--threshold", "2"]).code(1).stderr, @r#"
    error: a threshold of 2 cannot be met by 1 keys
    hint: give more keys with --key, each another one, or a lower --threshold
    "#);
    verify(&env, &["-k", "one.pub", "--threshold", "0"]).code(1);
}

#[test]
fn a_wrong_a_missing_a_stripped_and_a_double_signature_are_errors() {
    let env = built();
    let mut shown = vec![verify(&env, &["-k", "one.pub"]).code(8).stderr];
    sign(&env, "two").code(0);
    shown.push(verify(&env, &["-k", "one.pub"]).code(8).stderr);
    // By another key, under the name of the right one.
    let id = |name: &str| {
        use rebuild_model::provenance::PublicKey;
        PublicKey::read(&env.path(&format!("site/{name}.pub"))).unwrap().id()
    };
    spoil(&env, |envelope| envelope["signatures"][0]["keyid"] = json!(id("one")));
    shown.push(verify(&env, &["-k", "one.pub"]).code(8).stderr);
    // The name is a hint only: the key itself is what counts.
    verify(&env, &["-k", "two.pub"]).code(0);
    spoil(&env, |envelope| {
        let twice = envelope["signatures"][0].clone();
        envelope["signatures"].as_array_mut().unwrap().push(twice);
    });
    shown.push(verify(&env, &["-k", "two.pub"]).code(8).stderr);
    spoil(&env, |envelope| envelope["signatures"] = json!([]));
    shown.push(verify(&env, &["-k", "two.pub"]).code(8).stderr);
    shown.push(verify(&env, &[]).code(8).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: dist/manifest.json does not hold: the attestation is not signed: it is a bare statement
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    error: dist/manifest.json does not hold: the attestation's signatures: 1 of the given keys must have signed, found 0; not by <sha256>; by others: <sha256>
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    error: dist/manifest.json does not hold: the attestation's signatures: the signature that names key <sha256> is not by it; and 1 more
      | the attestation's signatures: the signature that names key <sha256> is not by it
      | the attestation's signatures: 1 of the given keys must have signed, found 0; not by <sha256>
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    error: dist/manifest.json does not hold: the attestation's signatures: key <sha256> has signed more than once
    hint: get the attestation as it was signed, or have it signed by whoever must: `rebuild-model sign`
    error: the attestation dist/manifest.intoto.json is not valid: the envelope has no signature: it was stripped, or never signed
    hint: get the attestation again from whoever delivered the artifacts
    error: the attestation dist/manifest.intoto.json is not valid: the envelope has no signature: it was stripped, or never signed
    hint: get the attestation again from whoever delivered the artifacts
    "#);
}

#[test]
fn a_signature_is_over_these_bytes_and_this_type() {
    use rebuild_model::provenance::Content;
    let env = built();
    let edited = env.read(ATTESTATION).replace("\"recordUnknown\": false", "\"recordUnknown\": true");
    sign(&env, "one").code(0);
    let signed = env.read(ATTESTATION);
    spoil(&env, |envelope| envelope["payload"] = json!(Content(edited.into_bytes())));
    let other = verify(&env, &["-k", "one.pub"]).code(8);
    assert!(other.stderr.contains("is not by it"), "{}", other.stderr);
    env.write(ATTESTATION, &signed);
    spoil(&env, |envelope| envelope["payloadType"] = json!("application/vnd.in-toto"));
    assert_snapshot!(verify(&env, &["-k", "one.pub"]).code(8).stderr, @r#"
    error: the attestation dist/manifest.intoto.json has `payloadType` "application/vnd.in-toto", and this version reads application/vnd.in-toto+json
    hint: use the version of rebuild-model that wrote it, or a later one
    "#);
    env.write(ATTESTATION, &signed);
    for sig in ["", "AAAA", "not base64"] {
        spoil(&env, |envelope| envelope["signatures"][0]["sig"] = json!(sig));
        verify(&env, &["-k", "one.pub"]).code(8);
    }
    // The other alphabet of base64 says the same.
    env.write(ATTESTATION, &signed);
    spoil(&env, |envelope| {
        let sig = envelope["signatures"][0]["sig"].as_str().unwrap().replace('+', "-").replace('/', "_");
        envelope["signatures"][0]["sig"] = json!(sig.trim_end_matches('='));
    });
    verify(&env, &["-k", "one.pub"]).code(0);
}

#[test]
fn a_key_that_others_may_read_is_warned_of() {
    let env = built();
    let path = env.path("site/one.key");
    for (mode, warned) in [(0o640, true), (0o604, true), (0o400, false)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let ran = sign(&env, "one").code(0);
        assert_eq!(ran.stderr.contains("chmod 600"), warned, "{mode:o}: {}", ran.stderr);
    }
}

#[test]
fn what_is_no_such_key_is_refused() {
    let env = built();
    let mut shown = Vec::new();
    let texts = [
        ("passphrase", pem("ENCRYPTED PRIVATE KEY", "AAAA")),
        ("openssh", pem("OPENSSH PRIVATE KEY", "AAAA")),
        ("public", pem("PUBLIC KEY", KEYS[0].2)),
        // X25519 (RFC 8410): of the same form, and for another purpose.
        ("x25519", pem("PRIVATE KEY", &KEYS[0].1.replace("K2Vw", "K2Vu"))),
        ("nothing", String::new()),
    ];
    for (name, text) in texts {
        env.write(&format!("site/{name}.key"), text);
        shown.push(sign(&env, name).code(1).stderr);
    }
    shown.push(env.run(&["sign", "dist/manifest.intoto.json", "--key", "nowhere"]).code(1).stderr);
    shown.push(verify(&env, &["-k", "one.key"]).code(1).stderr);
    // The neutral element: a signature of zeros would fit everything.
    let weak = "MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    env.write("site/weak.pub", pem("PUBLIC KEY", weak));
    shown.push(verify(&env, &["-k", "weak.pub"]).code(1).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: the key passphrase.key is protected by a passphrase
    hint: `openssl pkey -in KEY -out PLAIN` writes one without; keep it where nobody else can read it
    error: openssh.key is not a private key: found a block called `OPENSSH PRIVATE KEY`
    hint: an ed25519 key in PKCS#8 PEM is wanted: `openssl genpkey -algorithm ed25519 -out KEY`
    error: public.key is not a private key: found a block called `PUBLIC KEY`
    hint: an ed25519 key in PKCS#8 PEM is wanted: `openssl genpkey -algorithm ed25519 -out KEY`
    error: x25519.key is not a private key: found public key error: unknown/unsupported algorithm OID: 1.3.101.110
    hint: an ed25519 key in PKCS#8 PEM is wanted: `openssl genpkey -algorithm ed25519 -out KEY`
    error: nothing.key is not a private key: found no PEM block
    hint: an ed25519 key in PKCS#8 PEM is wanted: `openssl genpkey -algorithm ed25519 -out KEY`
    error: cannot read the key nowhere
      because: No such file or directory (os error 2)
    hint: name a readable key file
    error: one.key is not a public key: found a block called `PRIVATE KEY`
    hint: an ed25519 key in SPKI PEM is wanted: `openssl pkey -in KEY -pubout -out PUBLIC`
    error: weak.pub is not a public key: found a key of small order, which proves nothing
    hint: an ed25519 key in SPKI PEM is wanted: `openssl pkey -in KEY -pubout -out PUBLIC`
    "#);
    assert!(envelope(&env)["_type"].is_string(), "nothing was signed");
}
