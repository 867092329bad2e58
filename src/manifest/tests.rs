use std::os::unix::fs::symlink;

use super::*;
use crate::artifact::encoding::Encoded;
use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::pins::Encoding;

fn id(text: &str) -> FileId {
    FileId { sha256: Digest::of(text.as_bytes()), size: text.len() as u64 }
}

fn entries(content: &str) -> Entries {
    let path: RelativePath = "model/lib.wasm.gz".parse().unwrap();
    let encoded = Encoded {
        encoding: Encoding::Gzip,
        encoder: "test 1".into(),
        packed: id(&format!("packed {content}")),
        unpacked: id(content),
    };
    let entry = Entry::new(&path, "model-library", &encoded);
    [(path, entry)].into()
}

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(Path::new("m.json"), text.into())
}

#[test]
fn a_fresh_manifest_reads_as_what_was_written() {
    let text = Manifest::fresh(&entries("one"));
    insta::assert_snapshot!(text, @r#"
    {
      "schema": 1,
      "artifacts": {
        "model/lib.wasm.gz": {
          "role": "model-library",
          "encoding": "gzip",
          "encoder": "test 1",
          "packed": {
            "sha256": "932cf31bb10b5942c30c697f682920bd473e8d9f29ab33c3032ca12b634c07d6",
            "size": 10
          },
          "unpacked": {
            "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
            "size": 3
          },
          "integrity": {
            "packed": "sha256-kyzzG7ELWULDDGl/aCkgvUc+jZ8pqzPDAyyhK2NMB9Y=",
            "unpacked": "sha256-dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z/0Me0="
          },
          "hashedName": "lib.932cf31bb10b5942.wasm.gz"
        }
      }
    }
    "#);
    assert_eq!(parse(&text).unwrap().entries(Path::new("m.json")).unwrap(), entries("one"));
    assert_eq!(parse(&text).unwrap().with(&entries("one")), text);
}

#[test]
fn a_rewrite_changes_this_builds_entries_and_nothing_else() {
    let old = r#"{
    "$comment": "caf\u00e9, kept as it is written",
    "models" : [ {"id":"a","loss":1e-05}, 100000000000000000000001 ],
    "artifacts": {
        "old/other.bin": {"sha256": "", "weight": 1.50},
        "model/lib.wasm.gz": {
            "note": {"by": "site", "ratio": 0.10},
            "unpacked": {
                "size": 1,
                "mime": "application/wasm",
                "sha256": "stale"
            },
            "role": "model-library",
            "cache": false
        }
    },
    "schema": 1,
    "z": -0.0
}


"#;
    let new = parse(old).unwrap().with(&entries("one"));
    assert!(new.ends_with("}\n\n\n"), "the end of the file is kept");
    insta::assert_snapshot!(new, @r#"
    {
        "$comment": "caf\u00e9, kept as it is written",
        "models" : [ {"id":"a","loss":1e-05}, 100000000000000000000001 ],
        "artifacts": {
            "old/other.bin": {"sha256": "", "weight": 1.50},
            "model/lib.wasm.gz": {
                "note": {"by": "site", "ratio": 0.10},
                "unpacked": {
                    "size": 3,
                    "mime": "application/wasm",
                    "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
                },
                "role": "model-library",
                "cache": false,
                "encoding": "gzip",
                "encoder": "test 1",
                "packed": {
                    "sha256": "932cf31bb10b5942c30c697f682920bd473e8d9f29ab33c3032ca12b634c07d6",
                    "size": 10
                },
                "integrity": {
                    "packed": "sha256-kyzzG7ELWULDDGl/aCkgvUc+jZ8pqzPDAyyhK2NMB9Y=",
                    "unpacked": "sha256-dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z/0Me0="
                },
                "hashedName": "lib.932cf31bb10b5942.wasm.gz"
            }
        },
        "schema": 1,
        "z": -0.0
    }
    "#);
}

#[test]
fn a_manifest_of_the_sites_own_gets_what_it_lacks() {
    insta::assert_snapshot!(parse("{\"models\":{\"a\":1E5}}").unwrap().with(&entries("one")), @r#"{"models":{"a":1E5},"schema":1,"artifacts":{"model/lib.wasm.gz":{"role":"model-library","encoding":"gzip","encoder":"test 1","packed":{"sha256":"932cf31bb10b5942c30c697f682920bd473e8d9f29ab33c3032ca12b634c07d6","size":10},"unpacked":{"sha256":"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed","size":3},"integrity":{"packed":"sha256-kyzzG7ELWULDDGl/aCkgvUc+jZ8pqzPDAyyhK2NMB9Y=","unpacked":"sha256-dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z/0Me0="},"hashedName":"lib.932cf31bb10b5942.wasm.gz"}}}"#);
}

#[test]
fn what_is_not_a_manifest_is_refused_with_its_place() {
    let texts: [&[u8]; 12] = [
        b"",
        b"[]",
        b"{\n \"schema\": 1,\n \"schema\": 1\n}",
        b"{\"artifacts\": {\"a\": {\"packed\": {\"size\": 1, \"size\": 2}}}}",
        b"{\"schema\": 1,}",
        b"{\"schema\": 2}",
        b"{\"schema\": 99999999999999999999}",
        b"{\"schema\": \"1\"}",
        b"{\"schema\": 0}",
        b"{\"schema\": [1,\n\"\xc2\x9b 2J\"]}",
        b"{\"schema\": 1,\n\"artifacts\": []}",
        b"{\n\"a\": \"\xff\"}",
    ];
    let shown = texts.map(|text| {
        let error = Manifest::parse(Path::new("m.json"), text.to_vec()).unwrap_err();
        assert_eq!(error.class(), Class::Artifact);
        assert!(error.hint().is_some());
        error.to_string()
    });
    insta::assert_snapshot!(shown.join("\n"), @r#"
    the manifest m.json is not valid at line 1, column 1: EOF while parsing a value
    the manifest m.json is not valid at line 1, column 1: an object is wanted
    the manifest m.json is not valid at line 3, column 2: the key `schema` stands twice in the same object
    the manifest m.json is not valid at line 1, column 44: the key `size` stands twice in the same object
    the manifest m.json is not valid at line 1, column 14: key must be a string
    the manifest m.json has schema 2, expected at most 1
    the manifest m.json has schema 99999999999999999999, expected at most 1
    the manifest m.json is not valid at line 1, column 12: `schema` must be a whole number from 1, found "1"
    the manifest m.json is not valid at line 1, column 12: `schema` must be a whole number from 1, found 0
    the manifest m.json is not valid at line 1, column 12: `schema` must be a whole number from 1, found [1,\n"\u{9b} 2J"]
    the manifest m.json is not valid at line 2, column 14: `artifacts` must be an object
    the manifest m.json is not valid at line 2, column 7: a byte is not UTF-8
    "#);
}

#[test]
fn a_manifest_nested_without_end_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("manifest.json");
    fs::write(&path, format!("{{\"schema\":1,\n\"x\":{}{}}}", "[".repeat(60_000), "]".repeat(60_000))).unwrap();
    for error in [Manifest::read(&path).unwrap_err(), Update::prepare(&path, &entries("one")).unwrap_err()] {
        assert_eq!(error.class(), Class::Artifact);
        assert!(error.to_string().contains("line 2, column 131"), "{error}");
    }
    // Whatever may be nested in a manifest can be read as an entry, too.
    let deepest = format!("{{\"artifacts\":{{\"a\":{}{}}}}}", "[".repeat(125), "]".repeat(125));
    let manifest = parse(&deepest).unwrap();
    let (_, text) = manifest.artifacts().next().unwrap();
    serde_json::from_str::<serde_json::Value>(text).unwrap();
    manifest.with(&entries("one"));
}

#[test]
fn the_number_of_keys_costs_no_more_than_itself() {
    // Not timed: the square of this number is what a test run does not come to the end of.
    const KEYS: usize = 200_000;
    let (path, entry) = entries("one").pop_first().unwrap();
    let many: Entries =
        (0..KEYS / 40).map(|index| (format!("{path}.{index}").parse().unwrap(), entry.clone())).collect();
    let theirs: Vec<_> = (0..KEYS).map(|index| format!("\"{index}\":{{}}")).collect();
    let stale: Vec<_> = many.keys().map(|path| format!("\"{path}\":{{\"role\":\"stale\"}}")).collect();
    for known in [theirs, stale] {
        let text = format!("{{\"artifacts\":{{{}}}}}", known.join(","));
        let merged = parse(&text).unwrap().with(&many);
        assert_eq!(parse(&merged).unwrap().with(&many), merged);
        assert!(known[0].contains("role") || merged.contains(&known[KEYS / 2]));
        assert_eq!(changes(Some(&parse(&merged).unwrap()), &many).len(), many.len());
    }
}

#[test]
fn an_update_replaces_the_file_and_tells_what_changed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("new/manifest.json");
    let kinds = |content: &str| {
        let update = Update::prepare(&path, &entries(content)).unwrap();
        update.commit().unwrap().into_iter().map(|change| (change.kind, change.before.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(kinds("one"), [(ChangeKind::Added, false)]);
    let first = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(kinds("one"), [(ChangeKind::Same, true)]);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first, "an unchanged text is not written");
    assert_eq!(kinds("two"), [(ChangeKind::Changed, true)]);
    let mut repacked = entries("two");
    for entry in repacked.values_mut() {
        entry.packed = id("otherwise packed");
    }
    assert_eq!(changes(Some(&Manifest::read(&path).unwrap()), &repacked)[0].kind, ChangeKind::Repacked);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn an_update_that_is_dropped_leaves_everything_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("manifest.json");
    fs::write(&path, "{}").unwrap();
    drop(Update::prepare(&path, &entries("one")).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn a_symbolic_link_stays_one() {
    let root = tempfile::tempdir().unwrap();
    let (real, link) = (root.path().join("real.json"), root.path().join("link.json"));
    fs::write(&real, "{\"kept\": 1e-05}").unwrap();
    symlink("real.json", &link).unwrap();
    Update::prepare(&link, &entries("one")).unwrap().commit().unwrap();
    assert!(link.is_symlink());
    let text = fs::read_to_string(&real).unwrap();
    assert!(text.starts_with("{\"kept\": 1e-05, \"schema\": 1"), "{text}");

    let dangling = root.path().join("dangling.json");
    symlink("nowhere.json", &dangling).unwrap();
    let error = Update::prepare(&dangling, &entries("one")).unwrap_err();
    assert!(error.to_string().contains("nowhere.json"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let root = tempfile::tempdir().unwrap();
    let (pipe, link) = (root.path().join("pipe"), root.path().join("link"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    symlink("pipe", &link).unwrap();
    for path in [root.path(), Path::new("/dev/zero"), &pipe, &link] {
        for error in [Manifest::read(path).unwrap_err(), Update::prepare(path, &entries("one")).unwrap_err()] {
            assert!(matches!(error, ManifestError::NotAFile { .. }), "{error}");
            assert_eq!(error.class(), Class::Artifact);
            assert!(error.hint().is_some());
        }
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
}

#[test]
fn a_file_too_large_for_a_manifest_is_not_read_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("manifest.json");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    for error in [Manifest::read(&path).unwrap_err(), Update::prepare(&path, &entries("one")).unwrap_err()] {
        assert!(matches!(error, ManifestError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains("larger than 67108864 bytes"), "{error}");
    }
}
