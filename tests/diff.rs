//! Comparing: what differs is told where it differs, and what does not is not.

use std::io::Write;
use std::path::{Path, PathBuf};

use rebuild_model::diff::{Options, Report, Verdict, diff};
use rebuild_model::interrupt::Interrupt;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn compare(&self, name: &str, before: impl AsRef<[u8]>, after: impl AsRef<[u8]>) -> Report {
        let (left, right) = (self.write(&format!("1/{name}"), before), self.write(&format!("2/{name}"), after));
        compare(&left, &right)
    }
}

fn compare(left: &Path, right: &Path) -> Report {
    diff(left, right, &Options::default(), &Interrupt::default()).unwrap()
}

/// Each finding in a line.
fn lines(report: &Report) -> Vec<String> {
    let line = |finding: &rebuild_model::diff::Finding| {
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        let more = if finding.lines.is_empty() { String::new() } else { format!(" | {}", finding.lines.join(" | ")) };
        format!("{}: {} → {}{more}", finding.place.join("/"), value(&finding.before), value(&finding.after))
    };
    report.findings.iter().map(line).collect()
}

#[track_caller]
fn expect(report: &Report, parts: &[&str]) {
    let text = lines(report).join("\n");
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

fn gzip(bytes: &[u8], level: u32, name: Option<&str>, time: u32) -> Vec<u8> {
    let mut builder = flate2::GzBuilder::new().mtime(time);
    if let Some(name) = name {
        builder = builder.filename(name);
    }
    let mut encoder = builder.write(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(members: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content, mode) in members {
        writer.start_file(*name, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tar(members: &[(&str, &str, u64)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content, time) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(*time);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

// A module of functions without parameters, one memory with one segment, and names.
fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        bytes.push(if value == 0 { byte } else { byte | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

fn vector(items: &[Vec<u8>]) -> Vec<u8> {
    [leb(items.len()), items.concat()].concat()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [leb(bytes.len()), bytes.to_vec()].concat()
}

fn section(id: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![id], sized(bytes)].concat()
}

/// The signed LEB128 constant `i32.const value; drop`.
fn constant(value: i32) -> Vec<u8> {
    let mut bytes = vec![0x41];
    let mut value = value;
    loop {
        let byte = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        let end = (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0);
        bytes.push(if end { byte } else { byte | 0x80 });
        if end {
            break;
        }
    }
    bytes.push(0x1a);
    bytes
}

fn call(index: u8) -> Vec<u8> {
    vec![0x10, index]
}

fn module(functions: &[(&str, Vec<u8>)], data: &[u8], with_names: bool) -> Vec<u8> {
    let count = functions.len();
    let bodies: Vec<Vec<u8>> =
        functions.iter().map(|(_, code)| sized(&[vec![0], code.clone(), vec![0x0b]].concat())).collect();
    let name = |(index, (name, _)): (usize, &(&str, Vec<u8>))| [leb(index), sized(name.as_bytes())].concat();
    let names = vector(&functions.iter().enumerate().map(name).collect::<Vec<_>>());
    let mut bytes = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &vector(&[vec![0x60, 0, 0]])),
        section(3, &vector(&vec![vec![0]; count])),
        section(5, &vector(&[vec![0, 1]])),
        section(7, &vector(&[[sized(b"run"), vec![0, 0]].concat()])),
        section(10, &vector(&bodies)),
        section(11, &vector(&[[vec![0, 0x41, 0x80, 8, 0x0b], sized(data)].concat()])),
    ]
    .concat();
    if with_names {
        bytes.extend(section(0, &[sized(b"name"), vec![1], sized(&names)].concat()));
    }
    bytes
}

fn data(model: &str, batch: u32, text: &str) -> Vec<u8> {
    format!("first text here\0{{\"model_type\": \"{model}\", \"max_batch_size\": {batch}}}\0{text}\0the last text\0")
        .into_bytes()
}

#[test]
fn equal_files_are_equal_whatever_they_are() {
    let desk = Desk::new();
    for bytes in [&b""[..], b"text", b"\0\x01", b"{\"a\": 1}", &gzip(b"x", 9, None, 0), b"\0asmbroken"] {
        let report = desk.compare("file", bytes, bytes);
        assert_eq!((report.verdict, report.findings.len()), (Verdict::Equal, 0));
    }
}

#[test]
fn a_function_is_named_with_the_instruction_at_which_it_parts() {
    let desk = Desk::new();
    let make = |value| {
        module(
            &[("run", call(1)), ("softmax", [constant(7), constant(value), constant(8)].concat())],
            b"data of it",
            true,
        )
    };
    let report = desk.compare("lib.wasm", make(5), make(6));
    assert_eq!(report.verdict, Verdict::Differs);
    expect(
        &report,
        &[
            "code/function 1 softmax: ",
            "from instruction 3 of 7: 1 instructions became 1 | -i32.const 5 | +i32.const 6",
        ],
    );
    assert!(!lines(&report).join("\n").contains("function 0"));
    // Without names, an export has one.
    let make = |value| module(&[("", constant(value))], b"data of it", false);
    expect(&desk.compare("lib.wasm", make(5), make(6)), &["code/function 0 run"]);
}

#[test]
fn a_function_that_was_put_in_does_not_make_the_others_differ() {
    let desk = Desk::new();
    let before =
        module(&[("run", call(1)), ("", constant(1)), ("", constant(2)), ("", constant(3))], b"data of it", false);
    let after = module(
        &[("run", call(2)), ("", constant(9)), ("", constant(1)), ("", constant(2)), ("", constant(3))],
        b"data of it",
        false,
    );
    let report = desk.compare("lib.wasm", before, after);
    expect(&report, &["code/function 1:  → 5 bytes", "code/renumbered:  →  | 1 functions differ only in the numbers"]);
    assert_eq!(report.findings.iter().filter(|finding| finding.place[0] == "code").count(), 2, "{:?}", lines(&report));
}

#[test]
fn metadata_is_compared_by_key_and_texts_as_texts() {
    let desk = Desk::new();
    let shader = "fn main() {\n  read\n}\n";
    let before = module(&[("run", constant(1))], &data("qwen2", 1, shader), true);
    let after = module(&[("run", constant(1))], &data("qwen2", 128, &shader.replace("read", "read_write")), true);
    let report = desk.compare("lib.wasm", before, after);
    expect(
        &report,
        &[
            "memory/metadata/max_batch_size: 1 → 128",
            "1 lines removed, 1 lines added | @@ line 1 → line 1 @@ |  fn main() { | -  read | +  read_write",
            "section data: ",
        ],
    );
}

#[test]
fn data_that_lies_elsewhere_is_told_apart_from_another_constant() {
    let desk = Desk::new();
    // The address of `the last text`, which moves by the length of what is put in before it.
    let address = |data: &[u8]| {
        let at = data.windows(8).position(|window| window == b"the last").unwrap();
        1024 + i32::try_from(at).unwrap()
    };
    let (one, other) = (data("m", 1, "a short text"), data("m", 1, "a text that is longer"));
    let make = |data: &[u8], constant_value| {
        module(&[("run", constant(address(data))), ("other", constant(constant_value))], data, true)
    };
    let report = desk.compare("lib.wasm", make(&one, 5000), make(&other, 5001));
    expect(&report, &["code/moved:  →  | 1 functions differ only in the addresses", "code/function 1 other"]);
    assert!(!lines(&report).join("\n").contains("function 0"), "{:?}", lines(&report));
}

#[test]
fn a_module_that_cannot_be_read_is_an_answer() {
    let desk = Desk::new();
    let whole = module(&[("run", constant(1))], b"data of it", true);
    for length in 8..whole.len() {
        let report = desk.compare("lib.wasm", &whole, &whole[..length]);
        assert_eq!(report.verdict, Verdict::Differs, "{length}");
        let mut spoilt = whole.clone();
        spoilt[length] ^= 0x55;
        let report = desk.compare("lib.wasm", &whole, spoilt);
        assert!(!report.findings.is_empty(), "{length}");
    }
}

#[test]
fn another_level_is_the_same_content() {
    let desk = Desk::new();
    let text = "a line of text\n".repeat(500);
    let report = desk.compare("a.js.gz", gzip(text.as_bytes(), 9, None, 0), gzip(text.as_bytes(), 1, Some("a.js"), 7));
    assert_eq!(report.verdict, Verdict::SameUnpacked);
    expect(
        &report,
        &[
            "gzip header: time: 0 → 7",
            "gzip header: file name: absent → `a.js`",
            "the same content, encoded by another encoder",
        ],
    );
    let report = desk.compare("a.js.gz", gzip(b"one\ntwo\n", 9, None, 0), gzip(b"one\nTWO\n", 9, None, 0));
    assert_eq!(report.verdict, Verdict::Differs);
    expect(&report, &["content/lines: 2 lines → 2 lines | 1 lines removed, 1 lines added"]);
    let cut = gzip(text.as_bytes(), 9, None, 0);
    let report = desk.compare("a.js.gz", &cut, &cut[..cut.len() - 9]);
    assert_eq!(report.verdict, Verdict::Differs);
    expect(&report, &["gzip: can be unpacked → the gzip data ends too early"]);
}

#[test]
fn an_encoded_file_and_what_it_was_made_of_have_the_same_content() {
    let desk = Desk::new();
    let plain = "a line of text\n".repeat(500);
    let other = plain.replacen("line", "lime", 1);
    let mut brotli = Vec::new();
    brotli::BrotliCompress(&mut plain.as_bytes(), &mut brotli, &brotli::enc::BrotliEncoderParams::default()).unwrap();
    let forms = |text: &str| {
        [
            ("identity", desk.write("a.js", text)),
            ("gzip", desk.write("a.js.gz", gzip(text.as_bytes(), 9, None, 0))),
            // Of the first text in any case.
            ("br", desk.write("a.js.br", &brotli)),
        ]
    };
    for (one, left) in forms(&plain) {
        for (two, right) in forms(&plain).iter().filter(|(two, _)| *two != one) {
            let report = compare(&left, right);
            assert_eq!(report.verdict, Verdict::SameUnpacked, "{one}, {two}: {report:?}");
            expect(&report, &[&format!("encoding: {one} → {two}")]);
        }
    }
    let [_, _, (_, left)] = forms(&plain);
    for (form, right) in &forms(&other)[..2] {
        let report = compare(&left, right);
        assert_eq!(report.verdict, Verdict::Differs);
        let encoding = format!("encoding: br → {form}");
        expect(&report, &[&encoding, "content/lines: 500 lines → 500 lines | 1 lines removed, 1 lines added"]);
    }
    // Whoever calls garbage by such a name gets an answer.
    let garbage = desk.write("garbage.br", b"\xff\xff garbage");
    let report = compare(&garbage, &desk.write("a.js", &plain));
    assert_eq!(report.verdict, Verdict::Differs);
    expect(&report, &["br: ", "first difference is at offset 0"]);
}

#[test]
fn names_that_are_no_text_are_compared_like_any() {
    use std::os::unix::ffi::OsStrExt;
    let desk = Desk::new();
    for (number, content) in ["x", "y"].iter().enumerate() {
        let directory = desk.0.path().join(number.to_string());
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join(std::ffi::OsStr::from_bytes(b"a\xff")), content).unwrap();
        std::fs::write(directory.join(std::ffi::OsStr::from_bytes(&[b'a', 0xf0 + u8::try_from(number).unwrap()])), "")
            .unwrap();
    }
    let report = compare(&desk.0.path().join("0"), &desk.0.path().join("1"));
    expect(&report, &[r"a\xf0: a file → ", r"a\xf1:  → a file", r"a\xff/lines: 1 lines"]);
}

#[test]
fn archives_are_compared_by_member() {
    let desk = Desk::new();
    let before = zip(&[("a.py", "one\n", 0o644), ("b.py", "same\n", 0o644), ("c.py", "", 0o644)]);
    let after = zip(&[("a.py", "two\n", 0o644), ("b.py", "same\n", 0o755), ("d.py", "", 0o644)]);
    let report = desk.compare("a.whl", &before, after);
    expect(
        &report,
        &[
            "member a.py/lines: 1 lines → 1 lines | 1 lines removed, 1 lines added | @@ line 1 → line 1 @@ | -one | +two",
            "member b.py/mode: 100644 → 100755",
            "member c.py: 0 bytes, sha256",
            "member d.py:  → 0 bytes",
        ],
    );
    let turned = zip(&[("b.py", "same\n", 0o644), ("a.py", "one\n", 0o644), ("c.py", "", 0o644)]);
    expect(&desk.compare("a.whl", &before, turned), &["order of members, from the 1. on: a.py → b.py"]);
    let inside = |text: &str, time| gzip(&tar(&[("p/a.txt", text, time), ("p/b.txt", "b", 0)]), 6, None, 0);
    let report = desk.compare("a.tgz", inside("x\n", 1), inside("y\n", 2));
    expect(&report, &["content/member p/a.txt/time: 1 → 2", "content/member p/a.txt/lines"]);
    assert!(!lines(&report).join("\n").contains("b.txt"));
    // A damaged archive is an answer.
    expect(&desk.compare("a.whl", &before, &before[..before.len() - 30]), &["archive: can be read → "]);
}

#[test]
fn json_that_says_the_same_in_another_way_is_said_to() {
    let desk = Desk::new();
    let report = desk.compare("a.json", "{\"a\": 1, \"b\": [1]}", "{\"b\":[2],\"a\":1}");
    assert_eq!(lines(&report), ["b/[0]: 1 → 2"]);
    let report = desk.compare("a.json", "{\"a\": 1, \"b\": [1]}", "{\"b\":[1],\"a\":1}");
    assert!(lines(&report)[0].starts_with("white space, order of keys"), "{:?}", lines(&report));
    assert_eq!(report.verdict, Verdict::Differs);
}

#[test]
fn what_is_lost_in_reading_is_not_called_the_same() {
    let desk = Desk::new();
    for (name, before, after, said) in [
        ("a.json", r#"{"a": 1, "a": 3}"#, r#"{"a": 2, "a": 3}"#, "a key stands twice"),
        ("a.json", "[100000000000000000000001]", "[100000000000000000000002]", "more digits than were compared"),
        ("a.json", "[0.10000000000000000001]", "[0.10000000000000000002]", "more digits than were compared"),
        ("a.toml", "a=[1", "a=[2", "not valid TOML"),
        ("a.toml", "a=1", "a=[2", "not valid TOML"),
        ("a.toml", "a=inf", "a=nan", "values/lines"),
    ] {
        let report = desk.compare(name, before, after);
        expect(&report, &[said]);
        for same in ["white space", "comments", "every member is the same"] {
            assert!(!lines(&report).join("\n").contains(same), "{before}: {:?}", lines(&report));
        }
        assert_eq!(report.verdict, Verdict::Differs);
    }
    expect(&desk.compare("a.toml", "a=1", "a=1 # one"), &["comments or the way it is written"]);
    // A writer refuses a name that it has written, so the second one is renamed afterwards.
    let renamed = |first: &str| {
        let mut bytes = zip(&[("dup", first, 0o644), ("DUP", "same", 0o644)]);
        for at in 0..bytes.len() - 3 {
            if bytes[at..].starts_with(b"DUP") {
                bytes[at..at + 3].copy_from_slice(b"dup");
            }
        }
        bytes
    };
    let report = desk.compare("a.zip", renamed("1"), renamed("2"));
    expect(&report, &["a name stands twice"]);
    assert_eq!(report.verdict, Verdict::Differs);
    // Something that belongs to no member is all that differs.
    let plain = zip(&[("a", "1", 0o644)]);
    let report = desk.compare("a.zip", &plain, [b"PK\x03\x04 before".as_slice(), &plain].concat());
    assert!(report.verdict != Verdict::Equal);
}

#[test]
fn a_manifest_tells_what_was_only_packed_in_another_way() {
    let desk = Desk::new();
    let entry = |packed: char, unpacked: char| {
        let id = |digit: char| format!("{{\"sha256\": \"{}\", \"size\": 1}}", digit.to_string().repeat(64));
        format!("{{\"role\": \"r\", \"packed\": {}, \"unpacked\": {}}}", id(packed), id(unpacked))
    };
    let manifest = |a: &str, b: &str| format!("{{\"schema\": 1, \"artifacts\": {{\"a.gz\": {a}, \"b.gz\": {b}}}}}");
    let before = manifest(&entry('1', '2'), &entry('3', '4'));
    let report = desk.compare("m.json", &before, manifest(&entry('9', '2'), &entry('3', '4')));
    assert_eq!(report.verdict, Verdict::SameUnpacked, "{:?}", lines(&report));
    let report = desk.compare("m.json", &before, manifest(&entry('9', '2'), &entry('8', '7')));
    assert_eq!(report.verdict, Verdict::Differs);
    expect(
        &report,
        &["artifact a.gz/packed, with the same content", "artifact b.gz/unpacked: 4444", "artifact b.gz/packed"],
    );
}

#[test]
fn binary_files_are_compared_by_range_and_directories_by_path() {
    let desk = Desk::new();
    let before = vec![0_u8; 1 << 20];
    let mut after = before.clone();
    after[5] = 1;
    after[1_000_000] = 2;
    let report = desk.compare("d/weights.bin", &before, &after);
    expect(
        &report,
        &["the first difference is at offset 5 (0x5)", "2 of 1048576 bytes differ, in 2 ranges", "at 0xf4240, 1 bytes"],
    );
    desk.write("1/d/only.txt", "x");
    std::os::unix::fs::symlink("a", desk.0.path().join("1/d/link")).unwrap();
    std::os::unix::fs::symlink("b", desk.0.path().join("2/d/link")).unwrap();
    let report = compare(&desk.0.path().join("1"), &desk.0.path().join("2"));
    expect(
        &report,
        &["d/link: a link to a → a link to b", "d/only.txt: a file → ", "d/weights.bin/bytes: 1048576 bytes"],
    );
    let unlike = diff(&desk.0.path().join("1"), &desk.write("f", "x"), &Options::default(), &Interrupt::default());
    assert!(unlike.unwrap_err().to_string().contains("one is a directory"));
}

#[test]
fn output_is_bounded_and_says_so() {
    let desk = Desk::new();
    let object = |offset: usize| {
        let members: Vec<_> = (0..1000).map(|index| format!("\"k{index}\": {}", index + offset)).collect();
        format!("{{{}}}", members.join(","))
    };
    let (left, right) = (desk.write("a.json", object(0)), desk.write("b.json", object(1)));
    let report = diff(&left, &right, &Options { limit: 10 }, &Interrupt::default()).unwrap();
    assert_eq!((report.findings.len(), report.left_out), (10, 990));
    // One long value is cut.
    let report = desk.compare("c.json", format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20)), "{\"a\": \"y\"}");
    assert!(lines(&report)[0].len() < 1000);
}

#[test]
fn an_interrupt_ends_it() {
    let desk = Desk::new();
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = diff(&desk.write("a", "x"), &desk.write("b", "y"), &Options::default(), &interrupt).unwrap_err();
    assert!(matches!(error, rebuild_model::diff::DiffError::Interrupted(_)), "{error}");
}
