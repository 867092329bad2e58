//! A delivered model that brings its own check, told by a browser that knows the answer by heart, and run
//! by a real one.

use serde_json::{Value, json};

use crate::lab::{Lab, MANIFEST, Ran};

/// What is delivered beside the module under test.
const BESIDE: [(&str, &str, &str); 3] = [
    ("d/a b/words.json.gz", "generation", r#"["one", "two"]"#),
    ("d/model.onnx", "model", "12345"),
    // The header of a WebAssembly module, which is an empty one.
    ("d/empty.wasm", "runtime", "\0asm\u{1}\0\0\0"),
];

/// A module that fetches everything beside it, then ends as `end` says, with `words` at hand.
fn module(end: &str) -> String {
    format!(
        r#"const at = (path) => new URL(path, import.meta.url);
export async function check() {{
  const words = await (await fetch(at("a b/words.json"))).json();
  const model = await fetch(at("model.onnx"));
  if (model.headers.get("content-type") !== "application/octet-stream") throw new Error("the model's type");
  const bytes = (await model.arrayBuffer()).byteLength;
  await WebAssembly.instantiateStreaming(fetch(at("empty.wasm")));
  {end}
}}"#
    )
}

const SOUND: &str = r#"const runs = [{ text: "a", seed: 3, said: words.join(" ") }];
  return { runtime: "none 1", load_ms: 1.25, tokens: bytes, tokens_per_second: 10, runs, traps: [], problems: [] };"#;

fn lab_of(module: &str) -> Lab {
    let lab = Lab::new();
    lab.deliver(&[&[("d/generate.mjs.gz", "generator", module)], &BESIDE[..]].concat());
    lab
}

/// A trial of the module by a real browser.
fn run(module: &str) -> Ran {
    let lab = lab_of(module);
    lab.real();
    lab.smoke(&[MANIFEST])
}

/// A trial by a browser to whom `check` gives this.
fn tell(check: &Value, more: &[&str]) -> Ran {
    let lab = lab_of("");
    lab.fake(&json!({ "check": check }));
    lab.smoke(&[&[MANIFEST], more].concat())
}

#[test]
fn a_sound_generator_passes_and_what_it_said_is_reported() {
    let ran = run(&module(SOUND)).code(0);
    let report = ran.report();
    assert_eq!((&report["library"], &report["adapter"]), (&json!("d/generate.mjs"), &Value::Null));
    let said = json!([{ "text": "a", "seed": 3, "said": "one two" }]);
    let figures = json!({ "runtime": "none 1", "loadMs": 1.3, "tokens": 5, "tokensPerSecond": 10.0, "said": said });
    assert_eq!(report["figures"]["generator"], figures, "{report:#}");
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["browser", "generator", "console", "requests"]);
}

#[test]
fn a_generator_that_finds_a_problem_fails_with_it() {
    let (outcome, text) =
        run(&module("return { problems: [`${bytes} bytes are too few`] };")).code(8).check("generator");
    assert_eq!((outcome.as_str(), text.as_str()), ("failed", "5 bytes are too few"));
}

#[test]
fn what_throws_is_missing_or_is_no_report_fails() {
    let fails = |module: &str, expected: &str| {
        let (outcome, text) = run(module).code(8).check("generator");
        assert!(outcome == "failed" && text.contains(expected), "{text}");
    };
    fails(&module("throw new Error('no luck');"), "no luck");
    fails(&module("return { problems: [], runs: 1n };"), "BigInt");
    fails("export const check = 1;", "it exports no function check");
    fails("import './none.mjs'; export function check() {}", "dynamically imported module");
}

#[test]
fn what_is_asked_for_and_not_delivered_fails_what_passes_otherwise() {
    let ran = run(&module(&format!("await fetch(at('none.bin'));\n{SOUND}"))).code(8);
    assert_eq!(ran.check("generator").0, "passed");
    assert_eq!(ran.check("requests"), ("failed".into(), "/delivered/d/none.bin".into()));
}

#[test]
fn an_error_on_the_console_or_that_nobody_caught_fails_what_passes_otherwise() {
    for (first, expected) in [
        ("console.error('it smells');", "console: it smells"),
        (
            "setTimeout(() => { throw new Error('later'); }); await new Promise((done) => setTimeout(done, 50));",
            "later",
        ),
    ] {
        let ran = run(&module(&format!("{first}\n{SOUND}"))).code(8);
        assert_eq!(ran.check("generator").0, "passed");
        let (outcome, text) = ran.check("console");
        assert!(outcome == "failed" && text.contains(expected), "{text}");
    }
}

#[test]
fn every_problem_is_a_check() {
    let ran = tell(&json!({ "problems": ["one", "two"], "runs": [{ "said": "a\u{1b}b" }] }), &["--format", "text"]);
    let ran = ran.code(8);
    for line in ["d/generate.mjs: failed\n", "  FAILED   generator        one\n", "  FAILED   generator        two\n"] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
}

#[test]
fn a_browser_that_is_not_there_or_breaks_is_not_the_generators_fault() {
    let ran = lab_of("").smoke_alone(&[MANIFEST]).code(11);
    assert!(ran.check("browser").1.starts_with("none of chromium"));
    assert_eq!(tell(&json!("!die"), &[]).code(11).check("generator").0, "inconclusive");
    assert_eq!(tell(&json!("!crash"), &[]).code(8).check("generator").0, "failed");
}

#[test]
fn a_bound_that_a_generator_cannot_be_held_to_is_not_passed_over() {
    let ran = tell(&json!({ "problems": [] }), &["--max-held", "1"]).code(11);
    let (outcome, text) = ran.check("request");
    assert!(outcome == "inconclusive" && text.contains("what may be held"), "{text}");
}

#[test]
fn a_file_that_is_not_what_the_manifest_says_is_not_tried() {
    let lab = lab_of(&module(SOUND));
    lab.write("d/model.onnx", "54321");
    let ran = lab.smoke(&[MANIFEST]).code(8);
    assert!(ran.stdout.contains("model.onnx is not what the manifest says"), "{}", ran.stdout);
}
