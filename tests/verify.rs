//! Verification fails closed: what is not stated, not readable or not understood is a finding.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rebuild_model::artifact::encoding::encode;
use rebuild_model::error::{Class, Fault};
use rebuild_model::interrupt::Interrupt;
use rebuild_model::manifest::{Entries, Entry, Manifest};
use rebuild_model::pins::{Encoding, RelativePath};
use rebuild_model::verify::{Options, Problem, Report, VerifyError, verify};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with one artifact of each encoding, and its manifest as a value to be spoiled.
struct Site {
    root: TempDir,
    manifest: Value,
}

impl Site {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("source");
        fs::write(&source, "some text, and again some text\n".repeat(400)).unwrap();
        let mut entries = Entries::new();
        for (name, encoding) in [("a.gz", Encoding::Gzip), ("b.br", Encoding::Brotli), ("c", Encoding::Identity)] {
            let path: RelativePath = name.parse().unwrap();
            let encoded = encode(&source, &root.path().join(name), encoding, 5, &Interrupt::default()).unwrap();
            entries.insert(path.clone(), Entry::new(&path, "test", &encoded));
        }
        Self { manifest: serde_json::from_str(&Manifest::fresh(&entries)).unwrap(), root }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    /// What is found, on which the JavaScript twin for sites has to agree.
    fn verify(&self) -> Result<Report, VerifyError> {
        fs::write(self.path("manifest.json"), self.manifest.to_string()).unwrap();
        let verdict = verify(&self.path("manifest.json"), &Options::default(), &Interrupt::default());
        let twin = concat!(env!("CARGO_MANIFEST_DIR"), "/site/verify.mjs");
        #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
        let ran = std::process::Command::new("node").arg(twin).arg(self.path("manifest.json")).output().unwrap();
        let expected = if verdict.is_ok() { 0 } else { 8 };
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(expected), "{}: {verdict:?}\n{said}", self.manifest);
        verdict
    }

    /// The report of a verification that must fail.
    fn failed(&self) -> Report {
        match self.verify() {
            Err(VerifyError::Failed(report)) => report,
            other => panic!("{other:?}"),
        }
    }

    /// The findings as text, the temporary directory's name left out.
    fn findings(&self) -> Vec<String> {
        let report = self.failed();
        let root = self.root.path().display().to_string();
        report.findings.iter().map(|finding| finding.to_string().replace(&root, "ROOT")).collect()
    }
}

/// What is found after `spoil`.
fn found(spoil: impl FnOnce(&mut Site)) -> String {
    let mut site = Site::new();
    spoil(&mut site);
    site.findings().join("\n")
}

#[test]
fn what_holds_holds() {
    let report = Site::new().verify().unwrap();
    assert_eq!(report.artifacts, ["a.gz", "b.br", "c"]);
}

#[test]
fn a_manifest_that_proves_nothing_fails() {
    assert_eq!(found(|site| site.manifest["artifacts"] = json!({})), "the manifest lists no artifact");
    assert_eq!(found(|site| site.manifest = json!({})), "the manifest has no `schema`\nthe manifest lists no artifact");
    let mut site = Site::new();
    site.manifest["schema"] = json!(2);
    assert_eq!(site.verify().unwrap_err().class(), Class::Artifact);
    let error = verify(&site.path("nothing.json"), &Options::default(), &Interrupt::default()).unwrap_err();
    assert!(error.to_string().contains("nothing.json"), "{error}");
}

#[test]
fn every_part_of_an_entry_must_be_there_and_well_formed() {
    let spoilt = [
        ("/packed/sha256", Value::Null),
        ("/packed/sha256", json!("")),
        ("/unpacked/sha256", json!("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")),
        ("/unpacked/sha256", json!("sha256:e3b0c442")),
        ("/packed/size", json!("100")),
        ("/packed/size", json!(-1)),
        ("/unpacked/size", json!(1.5)),
        ("/encoding", json!("zstd")),
        ("/encoding", json!(["gzip"])),
        ("/integrity/packed", json!("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")),
        ("/packed", json!("e3b0")),
        ("", json!("a.gz")),
    ];
    let mut shown = Vec::new();
    for (pointer, value) in spoilt {
        let text = found(|site| *site.manifest["artifacts"]["a.gz"].pointer_mut(pointer).unwrap() = value);
        assert!(text.starts_with("artifact a.gz: "), "{text}");
        shown.push(text);
    }
    for field in ["packed", "unpacked", "encoding"] {
        shown.push(found(|site| {
            site.manifest["artifacts"]["a.gz"].as_object_mut().unwrap().remove(field).unwrap();
        }));
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    artifact a.gz: `packed.sha256` must be 64 lower-case hexadecimal digits, found null
    artifact a.gz: `packed.sha256` must be 64 lower-case hexadecimal digits, found ""
    artifact a.gz: `unpacked.sha256` must be 64 lower-case hexadecimal digits, found "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
    artifact a.gz: `unpacked.sha256` must be 64 lower-case hexadecimal digits, found "sha256:e3b0c442"
    artifact a.gz: `packed.size` must be a whole number of bytes, found "100"
    artifact a.gz: `packed.size` must be a whole number of bytes, found -1
    artifact a.gz: `unpacked.size` must be a whole number of bytes, found 1.5
    artifact a.gz: `encoding` must be gzip, br or identity, found "zstd"
    artifact a.gz: `encoding` must be gzip, br or identity, found ["gzip"]
    artifact a.gz: `integrity.packed` does not fit the recorded digest: expected sha256-ZF/uJwr+q4zs+CiSW2qvVIACK82kmSZyHdH1fO3Dnys=, found "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    artifact a.gz: `packed` must be an object, found "e3b0"
    artifact a.gz: `entry` must be an object, found "a.gz"
    artifact a.gz: `packed` is missing from its entry
    artifact a.gz: `unpacked` is missing from its entry
    artifact a.gz: `encoding` is missing from its entry
    "#);
}

#[test]
fn what_a_page_relies_on_is_right_or_absent() {
    let entry = |site: &Site| site.manifest["artifacts"]["a.gz"].clone();
    let right = entry(&Site::new());
    let (packed, unpacked) = (&right["integrity"]["packed"], &right["integrity"]["unpacked"]);
    let spoilt = [
        ("integrity", json!(5)),
        ("integrity", Value::Null),
        ("integrity", json!([])),
        ("integrity", json!({})),
        ("integrity", json!({ "packed ": packed, "unpacked": unpacked })),
        ("integrity", json!({ "packed": packed, "unpacked": unpacked, "sha384": "sha384-AAAA" })),
        ("integrity", json!({ "packed": unpacked, "unpacked": packed })),
        ("integrity", json!({ "packed": packed, "unpacked": [unpacked] })),
        ("hashedName", json!("../../evil.gz")),
        ("hashedName", json!("a.0123456789abcdef.gz")),
        ("hashedName", json!("")),
        ("hashedName", json!({ "name": "a.gz" })),
        ("hashedName", Value::Null),
    ];
    let mut shown = Vec::new();
    for (key, value) in spoilt {
        shown.push(found(|site| site.manifest["artifacts"]["a.gz"][key] = value));
    }
    let shown = shown.join("\n").replace(packed.as_str().unwrap(), "PACKED");
    let shown = shown.replace(unpacked.as_str().unwrap(), "UNPACKED").replace("artifact a.gz: ", "");
    insta::assert_snapshot!(shown, @r#"
    `integrity` must be an object, found 5
    `integrity` must be an object, found null
    `integrity` must be an object, found []
    `integrity.packed` is missing from its entry
    `integrity.unpacked` is missing from its entry
    `integrity.packed` is missing from its entry
    `integrity.packed ` is not known
    `integrity.sha384` is not known
    `integrity.packed` does not fit the recorded digest: expected PACKED, found "UNPACKED"
    `integrity.unpacked` does not fit the recorded digest: expected UNPACKED, found "PACKED"
    `integrity.unpacked` does not fit the recorded digest: expected UNPACKED, found ["UNPACKED"]
    `hashedName` does not fit the recorded digest: expected a.645fee270afeab8c.gz, found "../../evil.gz"
    `hashedName` does not fit the recorded digest: expected a.645fee270afeab8c.gz, found "a.0123456789abcdef.gz"
    `hashedName` does not fit the recorded digest: expected a.645fee270afeab8c.gz, found ""
    `hashedName` does not fit the recorded digest: expected a.645fee270afeab8c.gz, found {"name":"a.gz"}
    `hashedName` does not fit the recorded digest: expected a.645fee270afeab8c.gz, found null
    "#);
    for key in ["integrity", "hashedName"] {
        let mut site = Site::new();
        site.manifest["artifacts"]["a.gz"].as_object_mut().unwrap().remove(key).unwrap();
        site.verify().unwrap();
    }
    // Other keys are the site's own.
    let mut site = Site::new();
    site.manifest["artifacts"]["a.gz"]["note"] = json!({ "by": "site", "hashedName": 1 });
    site.manifest["artifacts"]["a.gz"]["packed"]["mime"] = json!("application/gzip");
    site.verify().unwrap();
}

#[test]
fn paths_that_lead_out_are_refused() {
    for path in ["../outside", "/etc/hostname", "a/../../outside", "", "./a.gz", "a\\b"] {
        let text = found(|site| {
            let entry = site.manifest["artifacts"]["a.gz"].take();
            site.manifest["artifacts"] = json!({ path: entry });
        });
        assert_eq!(text, format!("artifact {path}: its path leads out of ROOT"));
    }
}

#[test]
fn a_link_that_leads_out_or_nowhere_is_called_a_link() {
    // What is outside is the very file: that it is the right one does not help.
    let elsewhere = tempfile::tempdir().unwrap();
    let text = found(|site| {
        fs::rename(site.path("c"), elsewhere.path().join("c")).unwrap();
        symlink(elsewhere.path().join("c"), site.path("c")).unwrap();
    });
    let outside = elsewhere.path().display();
    assert_eq!(text, format!("artifact c: the symbolic link c leads out of ROOT, to {outside}/c"));
    let text = found(|site| {
        fs::remove_file(site.path("c")).unwrap();
        symlink("nothing\n", site.path("c")).unwrap();
    });
    assert_eq!(text, r"artifact c: the symbolic link c leads to nothing: nothing\n does not exist");
    // A directory on the way can be one.
    let below = |site: &mut Site, target: &str| {
        let entry = site.manifest["artifacts"]["c"].take();
        site.manifest["artifacts"] = json!({ "d/e/c": entry });
        fs::create_dir(site.path("d")).unwrap();
        symlink(target, site.path("d/e")).unwrap();
    };
    let text = found(|site| below(site, &outside.to_string()));
    assert_eq!(text, format!("artifact d/e/c: the symbolic link d/e leads out of ROOT, to {outside}"));
    let text = found(|site| below(site, "../nothing"));
    assert_eq!(text, "artifact d/e/c: the symbolic link d/e leads to nothing: ../nothing does not exist");
    let site = &mut Site::new();
    below(site, "..");
    assert_eq!(site.verify().unwrap().artifacts, ["d/e/c"]);

    let site = &mut Site::new();
    fs::rename(site.path("c"), elsewhere.path().join("other")).unwrap();
    symlink(elsewhere.path().join("other"), site.path("c")).unwrap();
    let hint = rebuild_model::error::Fault::hint(&VerifyError::Failed(site.failed())).unwrap();
    assert!(hint.contains("--root") && hint.contains("links"), "{hint}");
}

#[test]
fn a_name_cannot_forge_a_line_of_the_report() {
    let site = &mut Site::new();
    let entry = site.manifest["artifacts"]["c"].take();
    let name = "c\nartifact d: it holds\u{1b}[2K\u{202e}";
    site.manifest["artifacts"] = json!({ name: entry, "e\n\u{7f}": {} });
    site.manifest["artifacts"][name]["integrity"]["\nf\r"] = json!(1);
    let report = site.failed();
    assert_eq!(report.findings[0].artifact.as_deref(), Some(name), "data is as it was found");
    let error = VerifyError::Failed(report);
    let shown = error.to_string() + &error.detail().unwrap();
    assert!(shown.contains(r"artifact c\nartifact d: it holds\u{1b}[2K\u{202e}: its path leads out of"), "{shown}");
    assert!(shown.contains(r"`integrity.\nf\r` is not known"), "{shown}");
    assert!(shown.contains(r"artifact e\n\u{7f}: `encoding` is missing"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n') && !shown.contains("\nartifact d"), "{shown}");
}

#[test]
fn a_link_that_stays_inside_is_followed() {
    let site = Site::new();
    fs::rename(site.path("c"), site.path("real")).unwrap();
    symlink("real", site.path("c")).unwrap();
    site.verify().unwrap();
}

#[test]
fn what_is_wrong_with_the_files_is_collected() {
    let text = found(|site| {
        fs::remove_file(site.path("a.gz")).unwrap();
        fs::remove_file(site.path("b.br")).unwrap();
        fs::create_dir(site.path("b.br")).unwrap();
        let bytes = fs::read(site.path("c")).unwrap();
        fs::write(site.path("c"), [bytes, b"x".to_vec()].concat()).unwrap();
    });
    assert_eq!(
        text,
        "artifact a.gz: there is no such file in ROOT\n\
         artifact b.br: it is not a regular file\n\
         artifact c: packed size: expected 12400 bytes, found 12401"
    );
}

#[test]
fn a_file_below_a_file_is_missing() {
    let text = found(|site| {
        let mut entry = site.manifest["artifacts"]["c"].take();
        entry.as_object_mut().unwrap().remove("hashedName");
        site.manifest["artifacts"] = json!({ "c/below": entry });
    });
    assert_eq!(text, "artifact c/below: there is no such file in ROOT");
}

#[test]
fn packed_again_is_told_from_changed() {
    // The same content at another level: only the packed identity is another.
    let site = Site::new();
    fs::write(site.path("source"), "some text, and again some text\n".repeat(400)).unwrap();
    encode(&site.path("source"), &site.path("a.gz"), Encoding::Gzip, 1, &Interrupt::default()).unwrap();
    let repacked = site.findings().join("\n");
    assert!(repacked.contains("packed sha256") && !repacked.contains("unpacked"), "{repacked}");
    let hint = VerifyError::Failed(site.failed()).hint().unwrap();
    assert!(hint.starts_with("the content is what is recorded"), "{hint}");
    // Another content of the same size.
    let changed = found(|site| {
        fs::write(site.path("source"), "same text, and again same text\n".repeat(400)).unwrap();
        encode(&site.path("source"), &site.path("a.gz"), Encoding::Gzip, 5, &Interrupt::default()).unwrap();
    });
    assert!(changed.contains("a.gz: unpacked sha256") && !changed.contains("unpacked size"), "{changed}");
}

#[test]
fn truncated_and_prolonged_files_are_told_apart() {
    for name in ["a.gz", "b.br"] {
        let truncated = found(|site| {
            let bytes = fs::read(site.path(name)).unwrap();
            fs::write(site.path(name), &bytes[..bytes.len() - 1]).unwrap();
        });
        assert!(truncated.contains("data ends too early"), "{truncated}");
        let prolonged = found(|site| {
            let bytes = fs::read(site.path(name)).unwrap();
            fs::write(site.path(name), [bytes, b"x".to_vec()].concat()).unwrap();
        });
        assert!(prolonged.contains("bytes follow the end"), "{prolonged}");
    }
}

#[test]
fn a_bomb_is_stopped() {
    for (name, encoding) in [("a.gz", Encoding::Gzip), ("b.br", Encoding::Brotli)] {
        let text = found(|site| {
            fs::write(site.path("source"), vec![0; 50 << 20]).unwrap();
            encode(&site.path("source"), &site.path(name), encoding, 1, &Interrupt::default()).unwrap();
        });
        assert!(text.contains("more than the expected 12400 bytes come out"), "{text}");
    }
}

#[test]
fn identity_must_be_identical() {
    let text = found(|site| site.manifest["artifacts"]["c"]["unpacked"]["size"] = json!(1));
    assert_eq!(text, "artifact c: its encoding is identity, but `packed` and `unpacked` differ");
}

#[test]
fn a_report_is_data() {
    let site = Site::new();
    fs::write(site.path("c"), "short").unwrap();
    let report = serde_json::to_value(site.failed()).unwrap();
    assert_eq!(
        report["findings"],
        json!([{
            "artifact": "c", "problem": "packed-size", "expected": 12400, "found": 5,
            "message": "packed size: expected 12400 bytes, found 5",
        }])
    );
    assert!(matches!(site.failed().findings[0].problem, Problem::PackedSize { expected: 12400, found: 5 }));
}

#[test]
fn the_root_may_be_elsewhere() {
    let site = Site::new();
    site.verify().unwrap();
    fs::create_dir(site.path("config")).unwrap();
    fs::rename(site.path("manifest.json"), site.path("config/manifest.json")).unwrap();
    let check = |root: Option<PathBuf>| {
        let options = Options { root, ..Options::default() };
        verify(&site.path("config/manifest.json"), &options, &Interrupt::default())
    };
    let error = check(None).unwrap_err();
    assert!(error.hint().unwrap().contains("--root"));
    assert_eq!(error.detail().unwrap().lines().count(), 3);
    check(Some(site.path(""))).unwrap();
    for (root, kind) in [("nowhere", ErrorKind::NotFound), ("a.gz", ErrorKind::NotADirectory)] {
        let error = check(Some(site.path(root))).unwrap_err();
        assert!(matches!(&error, VerifyError::Root { source, .. } if source.kind() == kind), "{error:?}");
        assert!(error.hint().unwrap().contains("--root"));
    }
}
