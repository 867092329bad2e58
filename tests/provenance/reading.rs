//! Attestations from anybody: whatever stands in the file, there is an answer, and it is no panic.

use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use rebuild_model::interrupt::Interrupt;
use rebuild_model::provenance::Attestation;
use rebuild_model::verify::{Options, verify};
use serde_json::{Value, json};

use crate::building::ATTESTATION;
use crate::env::TestEnv;
use crate::mini::mini;

/// A built miniature, and its attestation.
fn built() -> &'static (TestEnv, Vec<u8>) {
    static BUILT: OnceLock<(TestEnv, Vec<u8>)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let env = mini();
        env.build(&[]).code(0);
        let text = env.read(ATTESTATION).into_bytes();
        (env, text)
    })
}

fn parse(bytes: &[u8]) -> Result<Attestation, String> {
    Attestation::parse(Path::new("a.intoto.json"), bytes).map_err(|error| error.to_string())
}

/// Verifies the miniature with another attestation; whether it held.
fn holds(statement: &[u8]) -> bool {
    let (env, _) = built();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.intoto.json");
    std::fs::write(&path, statement).unwrap();
    let (root, manifest) = (env.path("site/dist"), env.path("site/dist/manifest.json"));
    let options = Options { root: Some(root), manifest: Some(manifest), ..Options::default() };
    verify(&path, &options, &Interrupt::default()).is_ok()
}

/// The pointer of every value in `value`.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn damaged_bytes_never_panic(at in any::<prop::sample::Index>(), length in 0_usize..40, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let (_, text) = built();
        let start = at.index(text.len());
        let mut damaged = text.clone();
        damaged.splice(start..(start + length).min(text.len()), bytes);
        let _ = parse(&damaged);
        prop_assert!(parse(&text[..start]).is_err());
    }

    #[test]
    fn other_values_never_panic(at in any::<prop::sample::Index>(), which in 0_usize..8) {
        let (_, text) = built();
        let mut statement: Value = serde_json::from_slice(text).unwrap();
        let mut found = Vec::new();
        pointers(&statement, "", &mut found);
        let pointer = &found[at.index(found.len())];
        let others = [json!(null), json!(-1), json!(1e300), json!(""), json!("\u{202e}\n"), json!([]), json!({}), json!([[{}]])];
        *statement.pointer_mut(pointer).unwrap() = others[which].clone();
        let held = holds(statement.to_string().as_bytes());
        // What was made, and from what: none of it can be another without being noticed.
        let bound = ["/subject", "/predicate/buildDefinition/resolvedDependencies"];
        // These are for people, or follow from what is bound; content may be left out when it is large.
        let loose = ["note", "step", "path", "patch", "mediaType", "size", "content"];
        let last = pointer.rsplit('/').next().unwrap();
        if bound.iter().any(|bound| pointer.starts_with(bound)) && !loose.contains(&last) {
            prop_assert!(!held, "{pointer}: {}", others[which]);
        }
    }
}

#[test]
fn no_key_stands_twice_whichever_counts() {
    let (_, text) = built();
    let text = std::str::from_utf8(text).unwrap();
    // Wherever one is, one more before it, of which this reader would never hear.
    for (key, before) in
        [("sha256", "\"sha256\": \"00\", "), ("outputs", "\"outputs\": {}, "), ("_type", "\"_type\": 1, ")]
    {
        let place = text.rfind(&format!("\"{key}\"")).unwrap();
        let twice = format!("{}{before}{}", &text[..place], &text[place..]);
        let error = parse(twice.as_bytes()).unwrap_err();
        assert!(error.contains(&format!("`{key}` stands there twice")), "{error}");
    }
}

#[test]
fn what_is_no_attestation_says_so() {
    let (_, text) = built();
    let mut shown = Vec::new();
    let statement: Value = serde_json::from_slice(text).unwrap();
    let mut note = |edit: &dyn Fn(&mut Value)| {
        let mut other = statement.clone();
        edit(&mut other);
        shown.push(parse(other.to_string().as_bytes()).unwrap_err());
    };
    note(&|statement| *statement = json!([]));
    note(&|statement| *statement = json!({}));
    note(&|statement| statement["_type"] = json!("https://in-toto.io/Statement/v0.1"));
    note(&|statement| statement["predicateType"] = json!("https://slsa.dev/provenance/v0.2"));
    note(&|statement| statement["predicate"]["buildDefinition"]["buildType"] = json!("urn:x-rebuild-model:build:v2"));
    note(&|statement| statement["predicate"]["buildDefinition"]["buildType"] = json!({ "a": "\u{1b}[2J" }));
    note(&|statement| drop(statement["predicate"]["runDetails"]["metadata"].take()));
    note(&|statement| drop(statement["predicate"].as_object_mut().unwrap().remove("runDetails")));
    note(&|statement| {
        statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["content"] = json!("not base64!");
    });
    note(&|statement| {
        let byproducts = statement["predicate"]["runDetails"]["byproducts"].as_array_mut().unwrap();
        let step = byproducts.iter().find(|byproduct| byproduct["name"] == "step:link").unwrap().clone();
        byproducts.push(step);
    });
    shown.push(parse(b"").unwrap_err());
    shown.push(parse("[".repeat(100_000).as_bytes()).unwrap_err());
    shown.push(parse(&vec![b' '; (32 << 20) + 1]).unwrap_err());
    // Where it stands in a text with the example's pins in it says nothing to a reader of this test.
    let shown: Vec<String> = shown.iter().map(|text| without_column(text)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    the attestation a.intoto.json is not valid: invalid length 0, expected struct Types with 4 elements at line 1
    the attestation a.intoto.json is not valid: `_type` is missing
    the attestation a.intoto.json has `_type` "https://in-toto.io/Statement/v0.1", and this version reads https://in-toto.io/Statement/v1
    the attestation a.intoto.json has `predicateType` "https://slsa.dev/provenance/v0.2", and this version reads https://slsa.dev/provenance/v1
    the attestation a.intoto.json has `buildType` "urn:x-rebuild-model:build:v2", and this version reads urn:x-rebuild-model:build:v1
    the attestation a.intoto.json has `buildType` {"a":"\u001b[2J"}, and this version reads urn:x-rebuild-model:build:v1
    the attestation a.intoto.json is not valid: invalid type: null, expected struct Metadata at line 1
    the attestation a.intoto.json is not valid: missing field `runDetails` at line 1
    the attestation a.intoto.json is not valid: base64 is wanted at line 1
    the attestation a.intoto.json contradicts itself: step:link: it stands there twice
    the attestation a.intoto.json is not valid: EOF while parsing a value at line 1
    the attestation a.intoto.json is not valid: recursion limit exceeded at line 1
    the attestation a.intoto.json is larger than 33554432 bytes
    "#);
}

#[test]
fn unknown_fields_are_ignored() {
    let (_, text) = built();
    let mut statement: Value = serde_json::from_slice(text).unwrap();
    statement["more"] = json!({ "a": [1] });
    statement["predicate"]["buildDefinition"]["more"] = json!(1);
    statement["predicate"]["runDetails"]["builder"]["builderDependencies"] = json!([]);
    assert!(holds(statement.to_string().as_bytes()));
}

fn without_column(text: &str) -> String {
    text.split_once(" column ").map_or_else(|| text.to_owned(), |(before, _)| before.to_owned())
}
