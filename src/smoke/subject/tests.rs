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
