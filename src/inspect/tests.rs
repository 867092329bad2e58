use std::fs;

use proptest::prelude::*;

use super::*;
use crate::artifact::encoding::encode;
use crate::error::Class;
use crate::small_library::SmallLibrary;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn pack(&self, name: &str, encoding: Encoding) -> PathBuf {
        let (from, to) = (self.0.path().join(name), self.0.path().join(format!("{name}{}", encoding.suffix())));
        encode(&from, &to, encoding, 6, &Interrupt::default()).unwrap();
        to
    }
}

fn look(path: &Path) -> Result<Inspection> {
    inspect(path, &Interrupt::default()).map(|inspected| inspected.inspection)
}

/// The text and the JSON document, with names in place of what differs between runs.
fn shown(inspection: &Inspection) -> (String, String) {
    let directory = format!("{}/", inspection.path.parent().unwrap().display());
    let packed = inspection.packed;
    let hide = |text: String| {
        let text = text.replace(&directory, "");
        if inspection.encoding == Encoding::Identity {
            return text;
        }
        // Packed bytes depend on the version of the encoder.
        text.replace(&packed.sha256.to_string(), "PACKED")
            .replace(&format!("({} bytes, ", packed.size), "(SIZE bytes, ")
    };
    let mut value = serde_json::to_value(inspection).unwrap();
    if inspection.encoding != Encoding::Identity {
        value["packed"]["size"] = 0.into();
    }
    (hide(render(inspection)), hide(format!("{value:#}")))
}

#[test]
fn a_packed_library_is_shown_whole() {
    let desk = Desk::new();
    desk.write("lib.wasm", SmallLibrary::default().bytes());
    let inspection = look(&desk.pack("lib.wasm", Encoding::Gzip)).unwrap();
    let (text, json) = shown(&inspection);
    insta::assert_snapshot!("library_text", text);
    insta::assert_snapshot!("library_json", json);
    let brotli = look(&desk.pack("lib.wasm", Encoding::Brotli)).unwrap();
    assert_eq!(brotli.content, inspection.content);
    assert_eq!(brotli.unpacked, inspection.unpacked);
}

#[test]
fn every_other_kind_is_shown() {
    let desk = Desk::new();
    let cache = r#"{"metadata": {}, "records": [{"dataPath": "a.bin", "format": "raw-shard", "nbytes": 32, "records": [
        {"name": "one", "shape": [2, 4], "dtype": "float32", "format": "raw", "nbytes": 32, "byteOffset": 0}]}]}"#;
    let browser =
        "imports = { env: { f: f, g: g }, wasi_snapshot_preview1: { fd_write: h } }; lib.exports.TVMFFIFunctionCall();
        const requiredMaxBufferSize = 1 << 30;";
    let id = r#"{"sha256": "0000000000000000000000000000000000000000000000000000000000000000", "size": 7}"#;
    let manifest = format!(
        r#"{{"schema": 1, "artifacts": {{"a.wasm.gz": {{"role": "model-library", "encoding": "gzip", "encoder": "x",
        "packed": {id}, "unpacked": {id}, "integrity": {{"packed": "sha256-x", "unpacked": "sha256-x"}}, "hashedName": "a"}}}}}}"#
    );
    let mut text = String::new();
    for (name, bytes) in [
        ("tensor-cache.json", cache.as_bytes()),
        ("ndarray-cache.json", cache.as_bytes()),
        ("tvmjs.cjs", browser.as_bytes()),
        ("manifest.json", manifest.as_bytes()),
        ("runtime.bc", b"BC\xc0\xde\x35\x14"),
        ("wrapped.bc", b"\xde\xc0\x17\x0b\0\0\0\0\x14\0\0\0\x04\0\0\0\x07\0\0\x01BC\xc0\xde"),
        ("model.onnx", b"\x08\x08\x12\x07pytorch\x3a\0"),
        ("config.json", b" {\"b\": 1, \"a\": [2]}"),
        ("params_shard_0.bin", b"\x01\x02"),
        ("empty", b""),
    ] {
        text.push_str(&shown(&look(&desk.write(name, bytes)).unwrap()).0);
    }
    insta::assert_snapshot!("other_kinds", text);
}

#[test]
fn what_is_malformed_is_of_the_class_artifact_and_says_where() {
    let desk = Desk::new();
    let whole = SmallLibrary::default().bytes();
    desk.write("whole.wasm", &whole);
    let packed = fs::read(desk.pack("whole.wasm", Encoding::Gzip)).unwrap();
    for (name, bytes, said) in [
        ("cut.wasm", &whole[..whole.len() - 40], "offset 0x"),
        ("cut.wasm.gz", &packed[..packed.len() / 2], "ends too early"),
        ("empty.wasm.gz", b"", "ends too early"),
        ("empty.tgz", b"", "ends too early"),
        ("text.gz", b"not packed", ""),
        ("plain.wasm.gz", &whole, ""),
        ("library.wasm.br.gz", b"\x0b\x02\x80hello\x03", ""),
        ("without-its-name", &packed[..packed.len() / 2], "ends too early"),
        ("text.wasm.br", b"not packed", ""),
        ("empty.br", b"", "ends too early"),
        ("text.wasm", b"not a module", "offset 0x0"),
        ("text.bc", b"not bitcode", "expected LLVM bitcode"),
        ("cut.bc", b"\xde\xc0\x17\x0b\0\0\0\0\x14\0", "ends before its fifth word"),
        (
            "short.bc",
            b"\xde\xc0\x17\x0b\0\0\0\0\x14\0\0\0\x04\0\0\0\0\0\0\0",
            "announces 4 bytes of bitcode at offset 0x14",
        ),
        ("text.onnx", b"not a model", "no protocol buffer: at byte 0"),
        ("tensor-cache.json", b"{\"records\": [{}]}", "missing field `dataPath` at line 1 column"),
        ("cut.json", b"{\"a\": ", "line 1 column 6"),
        ("manifest.json", b"{\"schema\": 1, \"artifacts\": {\"a\": 1}}", "not a manifest of this program"),
    ] {
        let error = look(&desk.write(name, bytes)).unwrap_err();
        assert_eq!(error.class(), Class::Artifact, "{name}: {error}");
        let text = format!("{error} {}", error.causes().join(" "));
        assert!(text.contains(said) && text.contains(name), "{name}: {text}");
    }
    let nothing = look(&desk.0.path().join("absent")).unwrap_err();
    assert_eq!(nothing.class(), Class::Usage);
    assert_eq!(look(desk.0.path()).unwrap_err().class(), Class::Usage);
}

#[test]
fn a_name_cannot_forge_a_line_of_an_inspection() {
    let desk = Desk::new();
    let forged = "x\nforged: line\u{1b}[2K";
    let name = serde_json::to_string(forged).unwrap();
    let cache = format!(
        r#"{{"records": [{{"dataPath": {name}, "nbytes": 32, "records": [
            {{"name": {name}, "shape": [2, 4], "dtype": "f", "nbytes": 32, "byteOffset": 0}}]}}]}}"#
    );
    let id = r#"{"sha256": "0000000000000000000000000000000000000000000000000000000000000000", "size": 7}"#;
    let manifest = format!(
        r#"{{"schema": 1, "artifacts": {{"a\tb": {{"role": {name}, "encoding": "gzip", "encoder": "x", "packed": {id},
            "unpacked": {id}, "integrity": {{"packed": "sha256-x", "unpacked": "sha256-x"}}, "hashedName": "a"}}}}}}"#
    );
    let mut library = SmallLibrary::default();
    library.imports.push((forged.into(), forged.into()));
    library.metadata[0] = library.metadata[0].replacen('{', &format!("{{{name}: {name}, "), 1);
    let packed = |name: &str, bytes: &[u8]| {
        desk.write(name, bytes);
        desk.pack(name, Encoding::Gzip)
    };
    for path in [
        desk.write("forged\nforged: line\u{1b}.bin", b"\x01"),
        packed("forged\nforged: line.json", cache.as_bytes()),
        desk.write("forged\nforged: line.wasm", library.bytes()),
        desk.write("manifest.json", &manifest),
        desk.write("keys.json", format!("{{{name}: 1}}")),
        desk.write("module.js", format!("imports = {{ env: {{ {name}: f }} }};")),
    ] {
        let text = render(&look(&path).unwrap());
        assert!(!text.contains("\nforged") && !text.contains(['\u{1b}', '\t']), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_tensor_caches_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let desk = Desk::new();
        let mut text = br#"{"records": [{"dataPath": "a.bin", "nbytes": 32, "records": [{"name": "one", "shape": [2, 4], "dtype": "f", "nbytes": 32, "byteOffset": 0}]}]}"#.to_vec();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        let path = desk.write("tensor-cache.json", &text);
        if let Ok(inspection) = look(&path) {
            let _ = render(&inspection);
        }
    }
}
