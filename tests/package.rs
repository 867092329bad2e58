//! From built files to a published, verified site directory, through the library.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rebuild_model::artifact::encoding::{Encoded, FileId};
use rebuild_model::digest::hash_file;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::package::{PackageError, PublishError, Published, files_of, manifest_of, package, publish};
use rebuild_model::interrupt::Interrupt;
use rebuild_model::manifest::parts::{Part, Parts};
use rebuild_model::manifest::{ChangeKind, Entries, Entry, Manifest, ManifestError, Update};
use rebuild_model::pins::{Encoding, RelativePath};
use rebuild_model::step::{ArtifactSpec, Package, Template};
use rebuild_model::verify::{self, Options, Problem, VerifyError};
use tempfile::TempDir;

/// A workspace with three built things, and a site.
struct Env {
    root: TempDir,
    spec: Package,
}

impl Env {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("built/weights/deep")).unwrap();
        let wasm: Vec<u8> = (0..60_000_u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect();
        fs::write(root.path().join("built/lib.wasm"), wasm).unwrap();
        fs::write(root.path().join("built/module.js"), "export const x = 1;\n".repeat(500)).unwrap();
        fs::write(root.path().join("built/weights/shard_1.bin"), [1; 3000]).unwrap();
        fs::write(root.path().join("built/weights/shard_0.bin"), [0; 2000]).unwrap();
        fs::write(root.path().join("built/weights/deep/shard.bin"), [9; 10]).unwrap();
        let artifact = |path: &str, role: &str, encoding| ArtifactSpec {
            from: Template::literal("unused"),
            path: path.parse().unwrap(),
            role: role.into(),
            encoding,
        };
        let spec = Package {
            artifacts: vec![
                artifact("lib.wasm", "model-library", Encoding::Gzip),
                artifact("js/module.js", "browser-module", Encoding::Brotli),
                artifact("weights", "weights", Encoding::Identity),
            ],
            level: 9,
            size_limit: 26_214_400,
            split: false,
            destination: "site".parse().unwrap(),
            manifest: "site/manifest.json".parse().unwrap(),
        };
        Self { root, spec }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    fn sources(&self) -> Vec<(usize, PathBuf)> {
        vec![(0, self.path("built/lib.wasm")), (1, self.path("built/module.js")), (2, self.path("built/weights"))]
    }

    fn package_into(&self, out: &str) -> Result<Entries, PackageError> {
        fs::create_dir_all(self.path(out)).unwrap();
        package(&self.spec, &self.sources(), &self.path(out), &Interrupt::default())
    }

    fn publish(&self, entries: &Entries) -> Result<Published, PublishError> {
        let files = files_of(&self.path("out"));
        publish(&files, entries, &self.path("site"), &self.path("site/manifest.json"), &Interrupt::default())
    }

    fn verify(&self) -> Result<verify::Report, VerifyError> {
        verify::verify(&self.path("site/manifest.json"), &Options::default(), &Interrupt::default())
    }

    /// Packages and publishes.
    fn deliver(&self) -> Published {
        let entries = self.package_into("out").unwrap();
        self.publish(&entries).unwrap()
    }
}

/// Every path below `root` with its content, links as they are.
fn snapshot(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = walkdir::WalkDir::new(root)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .map(|path| {
            let content = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            (path, content)
        })
        .collect();
    found.sort();
    found
}

/// A change to a list of parts.
type Spoil = fn(&mut Parts);

#[test]
fn a_file_over_the_limit_is_delivered_in_parts_that_join_to_it() {
    let mut env = Env::new();
    let whole = env.package_into("whole").unwrap()["lib.wasm.gz"].clone();
    env.spec.split = true;
    env.spec.size_limit = whole.packed.size / 3;
    env.deliver();
    env.verify().unwrap();
    let list = env.path("site/lib.wasm.gz.parts.json");
    let parts = Parts::read(&fs::read(&list).unwrap()).unwrap();
    assert_eq!((parts.packed, parts.unpacked, parts.role.as_str()), (whole.packed, whole.unpacked, "model-library"));
    assert!(parts.parts.len() >= 3 && parts.parts.iter().all(|part| part.id.size <= env.spec.size_limit));
    let read = |part: &Part| fs::read(env.path("site").join(part.path.as_str())).unwrap();
    let joined: Vec<u8> = parts.parts.iter().flat_map(read).collect();
    assert_eq!(joined, fs::read(env.path("whole/package/files/lib.wasm.gz")).unwrap());
    assert!(!env.path("site/lib.wasm.gz").exists());

    // Every file is what the manifest says; what the list says of them together is not true.
    let cases: [(Spoil, &str); 5] = [
        (|list| list.path = "manifest.json".parse().unwrap(), "it is the list of manifest.json"),
        (|list| list.parts.swap(0, 1), "joined: expected sha256"),
        (|list| drop(list.parts.pop()), "joined: expected sha256"),
        (|list| list.unpacked.size -= 1, "joined: more than the expected"),
        (|list| list.parts[0].path = "elsewhere".parse().unwrap(), "its part elsewhere is not in the manifest"),
    ];
    for (spoil, expected) in cases {
        let mut spoilt = parts.clone();
        spoil(&mut spoilt);
        fs::write(&list, serde_json::to_vec(&spoilt).unwrap()).unwrap();
        let id = FileId::from(hash_file(&list).unwrap());
        let encoded = Encoded { encoding: Encoding::Identity, encoder: "none".into(), packed: id, unpacked: id };
        let path = "lib.wasm.gz.parts.json".parse::<RelativePath>().unwrap();
        let entries = Entries::from([(path.clone(), Entry::new(&path, "parts", &encoded))]);
        Update::prepare(&env.path("site/manifest.json"), &entries).unwrap().commit().unwrap();
        let error = env.verify().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    // Parts that nobody can join.
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(env.path("site/manifest.json")).unwrap()).unwrap();
    manifest["artifacts"].as_object_mut().unwrap().remove("lib.wasm.gz.parts.json").unwrap();
    fs::write(env.path("site/manifest.json"), manifest.to_string()).unwrap();
    let error = env.verify().unwrap_err().to_string();
    assert!(error.contains("part-000: its parts do not hold: it is a part, and no list names it"), "{error}");
}

#[test]
fn what_is_packaged_is_published_and_verifies() {
    let env = Env::new();
    fs::create_dir(env.path("site")).unwrap();
    fs::write(env.path("site/index.html"), "theirs").unwrap();
    let published = env.deliver();
    let paths: Vec<_> = published.written.iter().map(ToString::to_string).collect();
    assert_eq!(
        paths,
        ["js/module.js.br", "lib.wasm.gz", "weights/deep/shard.bin", "weights/shard_0.bin", "weights/shard_1.bin"]
    );
    assert!(published.changes.iter().all(|change| change.kind == ChangeKind::Added));
    assert_eq!(env.verify().unwrap().artifacts, paths);
    assert_eq!(fs::read_to_string(env.path("site/index.html")).unwrap(), "theirs");
    assert_eq!(fs::metadata(env.path("site/lib.wasm.gz")).unwrap().permissions().mode() & 0o444, 0o444);

    // The package verifies where it lies, too.
    let options = Options { root: Some(files_of(&env.path("out"))), ..Options::default() };
    verify::verify(&manifest_of(&env.path("out")), &options, &Interrupt::default()).unwrap();
    let recorded = rebuild_model::exec::package::recorded(&env.path("out")).unwrap();
    assert_eq!(recorded, env.package_into("again").unwrap());

    // The same once more touches nothing.
    let before = snapshot(&env.path("site"));
    let again = env.publish(&recorded).unwrap();
    assert!(again.written.is_empty());
    assert!(again.changes.iter().all(|change| change.kind == ChangeKind::Same));
    assert_eq!(snapshot(&env.path("site")), before);
}

#[test]
fn two_packages_of_the_same_files_are_equal_byte_for_byte() {
    let env = Env::new();
    env.package_into("one").unwrap();
    env.package_into("two").unwrap();
    let strip = |root: PathBuf| -> Vec<_> {
        let files = snapshot(&root).into_iter();
        files.map(|(path, content)| (path.strip_prefix(&root).unwrap().to_owned(), content)).collect()
    };
    assert_eq!(strip(env.path("one")), strip(env.path("two")));
}

#[test]
fn a_new_build_replaces_its_files_and_keeps_foreign_entries() {
    let env = Env::new();
    env.deliver();
    let manifest = env.path("site/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let foreign = "\"artifacts\": {\n    \"theirs.bin\": {\"ratio\": 1e-05},";
    fs::write(&manifest, text.replacen("\"artifacts\": {", foreign, 1)).unwrap();
    fs::write(env.path("built/module.js"), "export const x = 2;\n").unwrap();
    fs::remove_dir_all(env.path("out")).unwrap();
    let published = env.deliver();
    assert_eq!(published.written.iter().map(ToString::to_string).collect::<Vec<_>>(), ["js/module.js.br"]);
    let changed: Vec<_> = published.changes.iter().filter(|change| change.kind == ChangeKind::Changed).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].after.unpacked.size, 20);
    assert!(changed[0].before.unwrap().unpacked.size > 20);
    assert!(fs::read_to_string(&manifest).unwrap().contains(foreign));
    // The foreign entry says too little to be believed.
    let VerifyError::Failed(report) = env.verify().unwrap_err() else { panic!() };
    assert!(report.findings.iter().all(|finding| finding.artifact.as_deref() == Some("theirs.bin")));
}

#[test]
fn files_over_the_limit_are_listed_with_the_way_out() {
    let mut env = Env::new();
    env.spec.size_limit = 2500;
    let error = env.package_into("out").unwrap_err();
    assert_eq!(error.class(), Class::Artifact);
    let PackageError::TooLarge { over, largest, .. } = &error else { panic!("{error}") };
    let over: Vec<_> = over.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(over, ["lib.wasm.gz", "weights/shard_1.bin"]);
    assert_eq!(largest.len(), 5);
    assert!(error.to_string().contains("2 files are larger than the limit of 2500 bytes"), "{error}");
    assert!(error.detail().unwrap().contains("weights/shard_0.bin"));
    assert!(error.hint().unwrap().contains("size_limit"));
    assert!(!manifest_of(&env.path("out")).exists());
}

#[test]
fn two_files_for_one_place_are_refused() {
    for other in ["lib.wasm.gz", "LIB.wasm.gz", "lib.wasm.gz/below"] {
        let mut env = Env::new();
        env.spec.artifacts[2].path = other.parse().unwrap();
        let mut sources = env.sources();
        sources[2].1 = env.path("built/weights/shard_0.bin");
        fs::create_dir(env.path("out")).unwrap();
        let error = package(&env.spec, &sources, &env.path("out"), &Interrupt::default()).unwrap_err();
        assert!(matches!(error, PackageError::Collision { .. }), "{error}");
        assert!(error.to_string().contains("lib.wasm") && error.to_string().contains("shard_0.bin"), "{error}");
    }
}

#[test]
fn sources_that_are_not_files_are_refused() {
    let env = Env::new();
    symlink("/etc/hostname", env.path("built/weights/link")).unwrap();
    let error = env.package_into("out").unwrap_err();
    assert!(error.to_string().contains("built/weights/link is neither a file nor a directory"), "{error}");
    fs::remove_dir_all(env.path("built/weights")).unwrap();
    assert!(matches!(env.package_into("out").unwrap_err(), PackageError::Io { .. }));
    fs::create_dir(env.path("built/weights")).unwrap();
    assert!(env.package_into("out").unwrap_err().to_string().contains("contains no file"));
    fs::write(env.path("built/weights/back\\slash"), "x").unwrap();
    assert!(matches!(env.package_into("out").unwrap_err(), PackageError::Name { .. }));
}

/// Publishing a changed build fails with what `check` wants, and the site stays as it is.
fn fails_without_a_trace(env: &Env, check: impl Fn(&PublishError) -> bool) {
    fs::write(env.path("built/lib.wasm"), "another").unwrap();
    fs::write(env.path("built/weights/shard_0.bin"), "another").unwrap();
    let entries = env.package_into("new").unwrap();
    let before = snapshot(&env.path("site"));
    let files = files_of(&env.path("new"));
    let result = publish(&files, &entries, &env.path("site"), &env.path("site/manifest.json"), &Interrupt::default());
    let error = result.unwrap_err();
    assert!(check(&error), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(snapshot(&env.path("site")), before);
}

#[test]
fn a_directory_in_an_artifacts_place_stops_everything() {
    let env = Env::new();
    env.deliver();
    fs::remove_file(env.path("site/weights/shard_0.bin")).unwrap();
    fs::create_dir(env.path("site/weights/shard_0.bin")).unwrap();
    fails_without_a_trace(&env, |error| matches!(error, PublishError::Occupied { .. }));
}

#[test]
fn a_file_where_a_directory_is_needed_stops_everything() {
    let env = Env::new();
    env.deliver();
    fs::remove_dir_all(env.path("site/weights")).unwrap();
    fs::write(env.path("site/weights"), "a file").unwrap();
    fails_without_a_trace(&env, |error| matches!(error, PublishError::Io { .. }));
}

#[test]
fn a_destination_that_is_a_file_stops_everything() {
    let env = Env::new();
    fs::write(env.path("site"), "a file").unwrap();
    fails_without_a_trace(&env, |error| error.to_string().contains("site/manifest.json"));
}

#[test]
fn a_read_only_directory_stops_everything() {
    let env = Env::new();
    env.deliver();
    let directory = env.path("site/weights");
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o555)).unwrap();
    // Root may write everywhere; then there is nothing to be seen here.
    if tempfile::tempfile_in(&directory).is_err() {
        fails_without_a_trace(&env, |error| matches!(error, PublishError::Io { .. }));
    }
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_directory_that_leads_elsewhere_stops_everything() {
    let env = Env::new();
    env.deliver();
    fs::rename(env.path("site/weights"), env.path("elsewhere")).unwrap();
    symlink("../elsewhere", env.path("site/weights")).unwrap();
    let elsewhere = snapshot(&env.path("elsewhere"));
    fails_without_a_trace(&env, |error| matches!(error, PublishError::Outside { .. }));
    assert_eq!(snapshot(&env.path("elsewhere")), elsewhere);
}

#[test]
fn a_manifest_that_cannot_be_used_stops_everything() {
    for text in ["{\"schema\": 2}", "not json", "{\"artifacts\": {}, \"artifacts\": {}}"] {
        let env = Env::new();
        env.deliver();
        fs::write(env.path("site/manifest.json"), text).unwrap();
        fails_without_a_trace(&env, |error| {
            matches!(error, PublishError::Manifest(ManifestError::Invalid { .. } | ManifestError::Newer { .. }))
        });
    }
}

#[test]
fn a_directory_in_the_manifests_place_stops_everything() {
    let env = Env::new();
    env.deliver();
    fs::remove_file(env.path("site/manifest.json")).unwrap();
    fs::create_dir(env.path("site/manifest.json")).unwrap();
    fails_without_a_trace(&env, |error| {
        matches!(error, PublishError::Manifest(ManifestError::NotAFile { .. })) && error.class() == Class::Artifact
    });
}

#[test]
fn a_file_that_changed_after_packaging_stops_everything() {
    let env = Env::new();
    let entries = env.package_into("out").unwrap();
    let file = files_of(&env.path("out")).join("weights/shard_1.bin");
    fs::write(file, [2; 3000]).unwrap();
    let error = env.publish(&entries).unwrap_err();
    assert!(matches!(&error, PublishError::Changed { artifact, .. } if artifact.as_str() == "weights/shard_1.bin"));
    assert!(!env.path("site").exists(), "directories made for nothing are gone again");
}

#[test]
fn an_artifact_may_not_be_the_manifest() {
    let mut env = Env::new();
    env.spec.artifacts[2].path = "manifest.json".parse().unwrap();
    let mut sources = env.sources();
    sources[2].1 = env.path("built/weights/shard_0.bin");
    fs::create_dir(env.path("out")).unwrap();
    let entries = package(&env.spec, &sources, &env.path("out"), &Interrupt::default()).unwrap();
    assert!(matches!(env.publish(&entries).unwrap_err(), PublishError::IsManifest { .. }));
    assert!(!env.path("site").exists());
}

#[test]
fn a_link_in_an_artifacts_place_is_replaced_and_its_target_is_not() {
    let env = Env::new();
    fs::create_dir(env.path("site")).unwrap();
    fs::write(env.path("theirs"), "theirs").unwrap();
    symlink("../theirs", env.path("site/lib.wasm.gz")).unwrap();
    env.deliver();
    assert_eq!(fs::read_to_string(env.path("theirs")).unwrap(), "theirs");
    assert!(!env.path("site/lib.wasm.gz").is_symlink());
    env.verify().unwrap();
}

#[test]
fn an_interrupt_leaves_the_site_alone() {
    let env = Env::new();
    let entries = env.package_into("out").unwrap();
    let interrupt = Interrupt::default();
    interrupt.raise();
    let files = files_of(&env.path("out"));
    let error = publish(&files, &entries, &env.path("site"), &env.path("m/manifest.json"), &interrupt).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
    assert!(!env.path("site").exists() && !env.path("m").exists());
    fs::create_dir(env.path("stopped")).unwrap();
    let error = package(&env.spec, &env.sources(), &env.path("stopped"), &interrupt).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
    let error = verify::verify(&manifest_of(&env.path("out")), &Options::default(), &interrupt).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
}

#[test]
fn one_flipped_byte_names_the_artifact() {
    for (file, decodes) in [("weights/shard_1.bin", true), ("lib.wasm.gz", false), ("js/module.js.br", false)] {
        let env = Env::new();
        env.deliver();
        let path = env.path("site").join(file);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let error = env.verify().unwrap_err();
        assert_eq!(error.class(), Class::Artifact);
        assert!(error.to_string().contains(file), "{error}");
        let VerifyError::Failed(report) = error else { panic!() };
        assert!(matches!(report.findings[0].problem, Problem::PackedDigest { .. }));
        assert_eq!(report.findings.len() == 1, decodes, "{:?}", report.findings);
        assert!(report.findings.iter().all(|finding| finding.artifact.as_deref() == Some(file)));
    }
}

#[test]
fn a_manifest_is_read_before_anything_is_published() {
    let env = Env::new();
    let entries = env.package_into("out").unwrap();
    fs::create_dir(env.path("site")).unwrap();
    symlink("nowhere", env.path("site/manifest.json")).unwrap();
    let error = env.publish(&entries).unwrap_err();
    assert!(matches!(error, PublishError::Manifest(ManifestError::Dangling { .. })), "{error}");
    assert_eq!(fs::read_dir(env.path("site")).unwrap().count(), 1);
    assert!(Manifest::read(&env.path("site/manifest.json")).is_err());
}
