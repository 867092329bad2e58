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
fn signatures_of_others_stay_where_one_is_written_to() {
    let env = built();
    let bare = env.read(ATTESTATION);
    let sign = |key: &str, more: &[&str]| {
        env.run(&[&["sign", "dist/manifest.intoto.json", "--key", key, "--output", "signed.json"], more].concat())
    };
    let signers = || {
        let envelope: Value = serde_json::from_str(&env.read("site/signed.json")).unwrap();
        envelope["signatures"].as_array().unwrap().len()
    };
    for (key, count) in [("one.key", 1), ("two.key", 2), ("one.key", 2)] {
        sign(key, &[]).code(0);
        assert_eq!(signers(), count, "{key}");
    }
    // What has signed the one and what has signed the other.
    env.run(&["sign", "dist/manifest.intoto.json", "--key", "three.key"]).code(0);
    sign("one.key", &[]).code(0);
    assert_eq!(signers(), 3);
    let keys = ["-k", "one.pub", "-k", "two.pub", "-k", "three.pub", "--manifest", "dist/manifest.json"];
    env.run(&[&["verify", "signed.json", "--root", "dist"], &keys[..]].concat()).code(0);

    // An attestation of something else, bare or signed, is not replaced.
    env.write("site/other.json", bare.replacen('{', "{ ", 1));
    for _ in 0..2 {
        let other = env.read("site/other.json");
        let into = ["sign", "dist/manifest.intoto.json", "--key", "one.key", "--output", "other.json"];
        let refused = env.run(&into).code(1).stderr;
        assert!(refused.contains("other.json is there already, and attests something else than dist/"), "{refused}");
        assert_eq!(env.read("site/other.json"), other);
        env.run(&["sign", "other.json", "--key", "two.key"]).code(0);
    }
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
    // Whatever else was found, that comes first.
    let artifact = std::fs::read(env.path("site/dist/decoder-webgpu.wasm.gz")).unwrap();
    env.write("site/dist/decoder-webgpu.wasm.gz", "");
    let other = verify(&env, &["-k", "one.pub"]).code(8).stderr;
    let place = |text: &str| other.find(text).unwrap_or_else(|| panic!("{text} is not in {other}"));
    assert!(place("is not by it") < place("artifact decoder-webgpu.wasm.gz"), "{other}");
    env.write("site/dist/decoder-webgpu.wasm.gz", artifact);
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
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and openssh.key is a private key in OpenSSH's own format
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and public.key is an ed25519 public key
    hint: give the private key that belongs to it; what it signs, this one verifies
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and x25519.key is an X25519 private key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and nothing.key is a file without a PEM block
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: cannot read the key nowhere
      because: No such file or directory (os error 2)
    hint: name a readable key file
    error: an ed25519 public (SPKI) key in PEM is wanted, and one.key is an ed25519 private key
    hint: give the public key: `openssl pkey -in KEY -pubout -out PUBLIC` writes it
    error: an ed25519 public (SPKI) key in PEM is wanted, and weak.pub is a key of small order, which proves nothing
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    "#);
    assert!(envelope(&env)["_type"].is_string(), "nothing was signed");
}

/// Keys of other kinds and forms, as OpenSSL 3 and `ssh-keygen` write them, cut where nobody reads on.
#[test]
fn a_file_of_several_keys_is_called_that() {
    let env = built();
    env.write("site/both.key", [env.read("site/one.key"), env.read("site/two.key")].concat());
    env.write("site/both.pub", [env.read("site/one.pub"), env.read("site/two.pub")].concat());
    env.write("site/pair.key", [env.read("site/one.pub"), env.read("site/one.key")].concat());
    let mut shown = [sign(&env, "both"), sign(&env, "pair")].map(|ran| ran.code(1).stderr).to_vec();
    shown.push(verify(&env, &["-k", "both.pub"]).code(1).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and both.key is a file of 2 PEM blocks, the first of which is an ed25519 private key
    hint: write the one that is meant into a file of its own
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and pair.key is a file of 2 PEM blocks, the first of which is an ed25519 public key
    hint: give the private key that belongs to it; what it signs, this one verifies
    error: an ed25519 public (SPKI) key in PEM is wanted, and both.pub is a file of 2 PEM blocks, the first of which is an ed25519 public key
    hint: write the one that is meant into a file of its own
    "#);
}

#[test]
fn a_key_of_another_kind_or_form_is_called_what_it_is() {
    use base64::Engine as _;
    let env = built();
    let bytes = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let rsa_private = "MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQC7";
    let rsa_public = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu7vw";
    let ec_public = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7vwxm9Qx4Kx1";
    let files: [(&str, Vec<u8>); 12] = [
        ("rsa", pem("PRIVATE KEY", rsa_private).into()),
        ("rsa-old", pem("RSA PRIVATE KEY", "MIIEowIBAAKCAQEAu7vw").into()),
        ("rsa-public", pem("PUBLIC KEY", rsa_public).into()),
        ("ec", pem("EC PRIVATE KEY", "MHcCAQEEIA==").into()),
        ("ec-public", pem("PUBLIC KEY", ec_public).into()),
        ("openssh-public", b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF07 me@host\n".to_vec()),
        ("certificate", pem("CERTIFICATE", "MIIBszCCAVmgAwIBAgIU").into()),
        ("der", bytes(KEYS[0].1)),
        ("der-public", bytes(KEYS[0].2)),
        ("rsa-der", bytes(rsa_private)),
        ("rsa-der-public", bytes(rsa_public)),
        ("rsa-der-old", bytes("MIIEowIBAAKCAQEAu7vw")),
    ];
    let (mut private, mut public) = (Vec::new(), Vec::new());
    for (name, content) in files {
        env.write(&format!("site/{name}.key"), content);
        private.push(sign(&env, name).code(1).stderr);
        public.push(verify(&env, &["-k", &format!("{name}.key")]).code(1).stderr);
    }
    assert_snapshot!(private.join("\n"), @r#"
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa.key is an RSA private key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa-old.key is an RSA private key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa-public.key is an RSA public key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and ec.key is an elliptic-curve (ECDSA) private key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and ec-public.key is an elliptic-curve (ECDSA) public key
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and openssh-public.key is a public key in OpenSSH's own format
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and certificate.key is a certificate
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and der.key is an ed25519 private key in DER
    hint: `openssl pkey -inform DER -in KEY -out PEM` writes it in PEM
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and der-public.key is an ed25519 public key in DER
    hint: give the private key that belongs to it; what it signs, this one verifies
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa-der.key is an RSA private key in DER
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa-der-public.key is an RSA public key in DER
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    error: an ed25519 private (PKCS#8) key in PEM is wanted, and rsa-der-old.key is an RSA private key in DER
    hint: `openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out PUBLIC` the public key for those who verify
    "#);
    assert_snapshot!(public.join("\n"), @r#"
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa.key is an RSA private key
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa-old.key is an RSA private key
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa-public.key is an RSA public key
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and ec.key is an elliptic-curve (ECDSA) private key
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and ec-public.key is an elliptic-curve (ECDSA) public key
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and openssh-public.key is a public key in OpenSSH's own format
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and certificate.key is a certificate
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and der.key is an ed25519 private key in DER
    hint: give the public key: `openssl pkey -inform DER -in KEY -pubout -out PUBLIC` writes it
    error: an ed25519 public (SPKI) key in PEM is wanted, and der-public.key is an ed25519 public key in DER
    hint: `openssl pkey -pubin -inform DER -in PUBLIC -out PEM` writes it in PEM
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa-der.key is an RSA private key in DER
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa-der-public.key is an RSA public key in DER
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    error: an ed25519 public (SPKI) key in PEM is wanted, and rsa-der-old.key is an RSA private key in DER
    hint: get the public key of whoever signed: they write it with `openssl pkey -in KEY -pubout -out PUBLIC`
    "#);
    assert!(envelope(&env)["_type"].is_string(), "nothing was signed");
}

#[test]
fn flags_about_an_attestation_are_not_ignored_where_there_is_none() {
    let env = built();
    let mut shown = vec![verify(&env, &["--manifest", "other.json"]).code(1).stderr];
    verify(&env, &["--allow-unattested"]).code(0);
    env.run(&["verify", "dist/manifest.intoto.json", "--manifest", "dist/manifest.json"]).code(0);
    env.run(&["verify", "dist/manifest.intoto.json", "--manifest", "other.json"]).code(8);
    std::fs::remove_file(env.path(ATTESTATION)).unwrap();
    verify(&env, &[]).code(0);
    shown.push(verify(&env, &["--allow-unattested"]).code(8).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: dist/manifest.json is a manifest, and so is other.json, given with --manifest
    hint: --manifest names the manifest of an attestation: verify the attestation, or one of the two alone
    error: dist/manifest.json does not hold: there is no attestation: dist/manifest.intoto.json does not exist
    hint: get the attestation that the build wrote beside its manifest, or name it: `verify ATTESTATION --manifest MANIFEST`
    "#);
}

#[test]
fn what_an_attestation_says_forges_no_line_of_the_report() {
    let env = built();
    let (forged, hidden) = ("urn:x\nsigned by the right key", "by\u{1b}[2K\nsigned by the right key");
    spoil(&env, |statement| statement["predicate"]["runDetails"]["builder"]["id"] = json!(forged));
    sign(&env, "one").code(0);
    spoil(&env, |envelope| envelope["signatures"][0]["keyid"] = json!(hidden));
    let shown = verify(&env, &[]).code(0).stdout;
    assert!(shown.contains(r"urn:x\nsigned by") && shown.contains(r"by\u{1b}[2K\nsigned by"), "{shown}");
    assert!(!shown.contains("\nsigned by the right key") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn an_output_that_cannot_be_written_is_named_and_of_one_class() {
    let env = built();
    env.write("site/file", "");
    let sign = |output: &str| {
        env.run(&["sign", "dist/manifest.intoto.json", "--key", "one.key", "--output", output]).code(2).stderr
    };
    let mut shown = ["none/signed.json", "file/signed.json", "dist"].map(sign).to_vec();
    shown.push(env.run(&["man", "none"]).code(2).stderr);
    shown.push(env.run(&["man", "file"]).code(2).stderr);
    shown.push(env.run(&["replay", "dist/manifest.intoto.json", "--html", "none/page.html"]).code(2).stderr);
    let smoke = ["smoke", "dist/manifest.json", "--save-logits", "none/logits.bin"];
    shown.push(env.run(&smoke).code(2).stderr);
    shown.push(env.build(&["-w", &env.text("new"), "--output", "file/below"]).code(2).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: cannot write none/signed.json
      because: No such file or directory (os error 2)
    hint: make the directory first, or name a place in an existing one
    error: cannot write file/signed.json
      because: Not a directory (os error 20)
    hint: what stands there, or above it, is not a directory: name another place
    error: cannot write dist
      because: is a directory
    hint: a directory stands there: name a file
    error: cannot write none
      because: No such file or directory (os error 2)
    hint: make the directory first, or name a place in an existing one
    error: cannot write file
      because: Not a directory (os error 20)
    hint: what stands there, or above it, is not a directory: name another place
    error: cannot write none/page.html
      because: No such file or directory (os error 2)
    hint: make the directory first, or name a place in an existing one
    error: cannot write none/logits.bin
      because: No such file or directory (os error 2)
    hint: make the directory first, or name a place in an existing one
    error: cannot write file/below
      because: not a directory
    hint: what stands there, or above it, is not a directory: name another place
    "#);
    assert!(!env.path("new").exists());
    // A device is not replaced.
    env.run(&["sign", "dist/manifest.intoto.json", "--key", "one.key", "--output", "/dev/null"]).code(8);
    assert!(!std::path::Path::new("/dev/null").is_file());
}
