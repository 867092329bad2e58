//! Manifests of libraries, of generators, and of neither.

use super::*;
use crate::artifact::encoding::encode;
use crate::pins::Encoding;

/// A manifest of these artifacts, by path, role and content, gzipped where the path says so.
fn manifest(artifacts: &[(&str, &str, &str)]) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let mut entries = Entries::new();
    for (path, role, content) in artifacts {
        let (plain, target) = (root.path().join("plain"), root.path().join(path));
        std::fs::write(&plain, content).unwrap();
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        let encoding = if Path::new(path).extension().is_some_and(|extension| extension == "gz") {
            Encoding::Gzip
        } else {
            Encoding::Identity
        };
        let encoded = encode(&plain, &target, encoding, 6, &Interrupt::default()).unwrap();
        let path: RelativePath = path.parse().unwrap();
        entries.insert(path.clone(), Entry::new(&path, *role, &encoded));
    }
    let file = root.path().join("manifest.json");
    std::fs::write(&file, Manifest::fresh(&entries)).unwrap();
    (root, file)
}

fn read(path: &Path, wanted: &[&str]) -> Result<Subjects> {
    let wanted: Vec<String> = wanted.iter().map(|&name| name.into()).collect();
    read_manifest(path, None, &wanted, &Interrupt::default())
}

const PAIR: [(&str, &str, &str); 4] = [
    ("a.wasm.gz", LIBRARY, "library"),
    ("tvmjs.cjs.gz", MODULE, "module"),
    ("w/tensor-cache.json.gz", WEIGHTS, "{}"),
    ("w/params_shard_0.bin", WEIGHTS, "bytes"),
];

#[test]
fn a_library_is_unpacked_with_what_goes_with_it() {
    let (_root, path) = manifest(&PAIR);
    let found = read(&path, &[]).unwrap();
    let [Subject::Library(subject)] = &found.subjects[..] else { panic!("{found:?}") };
    assert_eq!((subject.name.as_str(), &subject.engine), ("a", &None));
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!((text(&subject.library).as_str(), text(&subject.browser_module).as_str()), ("library", "module"));
    let weights = subject.weights.as_ref().unwrap();
    assert_eq!(
        (text(&weights.join(weights::INDEX)), text(&weights.join("params_shard_0.bin"))),
        ("{}".into(), "bytes".into())
    );
    let directory = weights.clone();
    drop(found);
    assert!(!directory.exists());
}

#[test]
fn of_several_libraries_any_can_be_named() {
    let all = [&PAIR[..], &[("b.wasm", LIBRARY, "other"), ("e.js", ENGINE, "engine")]].concat();
    let (_root, path) = manifest(&all);
    let names = |wanted: &[&str]| {
        read(&path, wanted).unwrap().subjects.iter().map(|subject| subject.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["a", "b"]);
    assert_eq!(names(&["b"]), ["b"]);
    assert_eq!(names(&["a.wasm.gz"]), ["a"]);
    let Subject::Library(subject) = read(&path, &["b"]).unwrap().subjects.remove(0) else { panic!("no library") };
    assert!(subject.engine.is_some() && subject.weights.is_none());
    let error = read(&path, &["c"]).unwrap_err();
    assert_eq!((error.class(), error.to_string()), (Class::Usage, "no library is called c; there are a, b".into()));
}

#[test]
fn a_generator_is_unpacked_with_everything_and_needs_no_browser_module() {
    let (_root, path) = manifest(&[
        ("m/generate.mjs.gz", GENERATOR, "export"),
        ("m/runtime/a.wasm", "runtime", "asm"),
        ("other.json.gz", "whatever", "{}"),
    ]);
    let found = read(&path, &[]).unwrap();
    let [Subject::Generator(generator)] = &found.subjects[..] else { panic!("{found:?}") };
    assert_eq!((generator.name.as_str(), generator.module.as_str()), ("m/generate.mjs", "m/generate.mjs"));
    let read_back = |(path, file): (&String, &PathBuf)| (path.clone(), std::fs::read_to_string(file).unwrap());
    let expected = [("m/generate.mjs", "export"), ("m/runtime/a.wasm", "asm"), ("other.json", "{}")];
    let expected = expected.map(|(path, content)| (path.to_owned(), content.to_owned()));
    assert_eq!(generator.files.iter().map(read_back).collect::<Vec<_>>(), expected);
}

#[test]
fn a_manifest_may_have_libraries_and_generators() {
    let (_root, path) = manifest(&[&[("0.mjs", GENERATOR, "export")], &PAIR[..]].concat());
    let names = |wanted: &[&str]| {
        read(&path, wanted).unwrap().subjects.iter().map(|subject| subject.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["a", "0.mjs"]);
    assert_eq!(names(&["0.mjs"]), ["0.mjs"]);
    assert_eq!(names(&["a"]), ["a"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (_root, path) = manifest(&PAIR[..1]);
    assert!(read(&path, &[]).unwrap_err().to_string().ends_with("no artifact with the role browser-module"));
    let (_root, path) = manifest(&PAIR[1..]);
    assert!(
        read(&path, &[]).unwrap_err().to_string().ends_with("no artifact with the role model-library or generator")
    );
    let (_root, path) = manifest(&[&PAIR[..], &[("t.cjs", MODULE, "other")]].concat());
    assert!(read(&path, &[]).unwrap_err().to_string().contains("several artifacts with the role browser-module"));

    let (root, path) = manifest(&PAIR);
    std::fs::write(root.path().join("w/params_shard_0.bin"), "other").unwrap();
    let error = read(&path, &[]).unwrap_err();
    assert_eq!(error.class(), Class::Artifact);
    assert!(error.to_string().contains("is not what the manifest says"), "{error}");
    std::fs::remove_file(root.path().join("a.wasm.gz")).unwrap();
    assert_eq!(read(&path, &[]).unwrap_err().class(), Class::Artifact);
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = read_manifest(&path, None, &[], &interrupt).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
}

/// Cuts the file at `path` of the manifest `file` below `root` in two, as a build with `split` delivers it.
fn split(root: &Path, file: &Path, path: &str) {
    use crate::artifact::encoding::{Encoded, FileId};
    use crate::digest::Digest;
    use crate::manifest::parts::{self, LIST_ROLE, PART_ROLE, Part, Parts};
    let id = |bytes: &[u8]| FileId { sha256: Digest::of(bytes), size: bytes.len() as u64 };
    let mut entries = Manifest::read(file).unwrap().entries(file).unwrap();
    let whole = entries.remove(path).unwrap();
    let bytes = std::fs::read(root.join(path)).unwrap();
    std::fs::remove_file(root.join(path)).unwrap();
    let mut add = |name: &str, role: &str, bytes: &[u8]| {
        std::fs::write(root.join(name), bytes).unwrap();
        let name: RelativePath = name.parse().unwrap();
        let encoded =
            Encoded { encoding: Encoding::Identity, encoder: "none".into(), packed: id(bytes), unpacked: id(bytes) };
        entries.insert(name.clone(), Entry::new(&name, role, &encoded));
        Part { path: name, id: id(bytes) }
    };
    let (one, two) = bytes.split_at(bytes.len() / 2);
    let pieces = [(0, one), (1, two)].map(|(index, piece)| add(&format!("{path}.part-00{index}"), PART_ROLE, piece));
    let list = Parts {
        schema: parts::SCHEMA,
        path: path.parse().unwrap(),
        role: whole.role,
        encoding: whole.encoding,
        encoder: whole.encoder,
        packed: whole.packed,
        unpacked: whole.unpacked,
        parts: pieces.to_vec(),
    };
    add(&parts::name_of(path), LIST_ROLE, &serde_json::to_vec(&list).unwrap());
    std::fs::write(file, Manifest::fresh(&entries)).unwrap();
}

#[test]
fn files_in_parts_are_joined() {
    let (root, path) = manifest(&PAIR);
    for (file, _, _) in PAIR {
        split(root.path(), &path, file);
    }
    let found = read(&path, &["a"]).unwrap();
    let [Subject::Library(subject)] = &found.subjects[..] else { panic!("{found:?}") };
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!((text(&subject.library).as_str(), text(&subject.browser_module).as_str()), ("library", "module"));
    assert_eq!(text(&subject.weights.as_ref().unwrap().join("params_shard_0.bin")), "bytes");

    let (root, path) = manifest(&[("m/generate.mjs.gz", GENERATOR, "export"), ("m/model.onnx", "model", "12345")]);
    split(root.path(), &path, "m/model.onnx");
    split(root.path(), &path, "m/generate.mjs.gz");
    let found = read(&path, &[]).unwrap();
    let [Subject::Generator(generator)] = &found.subjects[..] else { panic!("{found:?}") };
    assert_eq!(
        (generator.module.as_str(), text(&generator.files["m/model.onnx"]).as_str()),
        ("m/generate.mjs", "12345")
    );
}

#[test]
fn parts_that_cannot_be_joined_are_named() {
    let broken = |spoil: &dyn Fn(&Path)| {
        let (root, path) = manifest(&PAIR);
        split(root.path(), &path, "a.wasm.gz");
        spoil(root.path());
        let error = read(&path, &[]).unwrap_err();
        assert_eq!(error.class(), Class::Artifact, "{error}");
        error.to_string()
    };
    let list = "a.wasm.gz.parts.json";
    let missing = broken(&|root| std::fs::remove_file(root.join("a.wasm.gz.part-001")).unwrap());
    assert!(missing.contains("a.wasm.gz") && missing.contains("No such file"), "{missing}");
    let other = broken(&|root| std::fs::write(root.join("a.wasm.gz.part-001"), "other").unwrap());
    assert!(other.contains("is not what the manifest says"), "{other}");
    let edit = |root: &Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(root.join(list)).unwrap();
        std::fs::write(root.join(list), text.replace(from, to)).unwrap();
    };
    let others = broken(&|root| edit(root, "part-001", "part-002"));
    assert!(others.contains(list) && others.contains("something else of its part a.wasm.gz.part-002"), "{others}");
    assert!(broken(&|root| edit(root, "\"schema\":1", "\"schema\":2")).contains("schema 2"));
    assert!(broken(&|root| edit(root, "{", "[")).contains(list));
}
