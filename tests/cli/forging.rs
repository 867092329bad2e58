//! Names and values that would write a line of their own into what the program says.

use std::io::Write;

use crate::env::TestEnv;
use crate::mini::mini;

/// What a forged line begins with.
const FORGED: &str = "FORGED";

#[track_caller]
fn expect_no_forged_line(text: &str) {
    assert!(text.contains(FORGED), "the name is not told at all:\n{text}");
    let forged = text.split(['\n', '\r', '\u{2028}']).find(|line| line.starts_with(FORGED));
    assert!(forged.is_none(), "{text}");
}

fn zip(name: &str, content: &str) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(content.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner()
}

#[test]
fn nothing_compared_writes_a_line_of_the_comparison() {
    let env = TestEnv::new();
    let name = "zz\nFORGED and f2 are equal";
    let pairs = [
        (format!("1/{name}"), "one".into(), format!("2/{name}"), "two".into()),
        (format!("1/{name}"), "one".into(), "2/x".into(), "two".into()),
        ("1/a.zip".into(), zip(name, "one"), "2/a.zip".into(), zip(name, "two")),
        ("1/a.zip".into(), zip(name, "one"), "2/a.zip".into(), zip("x", "two")),
        ("1/a.json".into(), br#"{"zz\nFORGED": 1}"#.to_vec(), "2/a.json".into(), br#"{"zz\nFORGED": 2}"#.to_vec()),
        ("1/a.json".into(), br#"{"a": "a\nb\u2028FORGED"}"#.to_vec(), "2/a.json".into(), br#"{"a": "a\nc"}"#.to_vec()),
        ("1/a.toml".into(), b"\"zz\\nFORGED\" = 1".to_vec(), "2/a.toml".into(), b"\"zz\\nFORGED\" = 2".to_vec()),
        ("1/a.txt".into(), b"a\n\rFORGED".to_vec(), "2/a.txt".into(), b"b".to_vec()),
    ];
    for (left, before, right, after) in pairs {
        for directory in ["site/1", "site/2"] {
            let _ = std::fs::remove_dir_all(env.path(directory));
        }
        env.write(&format!("site/{left}"), before);
        env.write(&format!("site/{right}"), after);
        expect_no_forged_line(&env.run(&["diff", "1", "2"]).code(9).stdout);
        let named = [left.as_str(), right.as_str()];
        let ran = env.run(&["diff", named[0], named[1]]).code(9);
        if ran.stdout.contains(FORGED) {
            expect_no_forged_line(&ran.stdout);
        }
    }
    env.write(&format!("site/{name}"), "");
    expect_no_forged_line(&env.run(&["diff", name, name]).code(0).stdout);
}

#[test]
fn nothing_recorded_writes_a_line_of_an_explanation() {
    let env = mini();
    env.build(&[]).code(0);
    let journal = "site/.rebuild/tvm-webgpu/journal.jsonl";
    let forge = |line: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        if entry["step"]["step"] == "decoder" {
            let record = &mut entry["step"];
            record["notes"] = serde_json::json!(["note\nFORGED note"]);
            record["error"] = "error\nFORGED error".into();
        }
        entry.to_string() + "\n"
    };
    env.write(journal, env.read(journal).lines().map(forge).collect::<String>());
    let shown = env.run(&["explain", "decoder"]).code(0).stdout;
    expect_no_forged_line(&shown);
    assert!(shown.contains(r"note: note\nFORGED note"), "{shown}");
}

#[test]
fn nothing_in_an_error_stands_where_a_line_of_ours_begins() {
    let env = mini();
    let pins = env.read("site/pins.toml");
    for text in [
        "\"a\\nFORGED\" = 1\n".to_owned() + &pins,
        pins.replace("[git.decoder]", "[git.\"a\\nFORGED\"]"),
        pins.replace("[git.decoder.submodules]", "[git.decoder.submodules]\n\"a\\nFORGED\" = { commit = \"x\" }"),
    ] {
        env.write("site/pins.toml", text);
        expect_no_forged_line(&env.run(&["pins", "check"]).code(1).stderr);
    }
    expect_no_forged_line(&env.run(&["pins", "check", "none\nFORGED.toml"]).code(1).stderr);
    expect_no_forged_line(&env.run(&["diff", "none\nFORGED", "pins.toml"]).code(1).stderr);
    // What a parser says in several lines keeps them.
    env.write("site/pins.toml", "recipe = [\n");
    let shown = env.run(&["pins", "check"]).code(1).stderr;
    assert!(
        shown.starts_with("error: pins.toml is not valid\n  | ") && shown.contains("\n  | 1 | recipe = ["),
        "{shown}"
    );
}
