//! Browsers that are not there, cannot do it, or break; and libraries that answer wrongly.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::lab::{Lab, ended, is_gone, wait_for};

/// Rows of three logits: 1, 2, 3.
const GOOD: &str = "AACAPwAAAEAAAEBA";
/// 0, 0, 0.
const ZERO: &str = "AAAAAAAAAAAAAAAA";

fn run(logits: &str) -> Value {
    json!({ "ready": 70, "steps": vec![json!({ "ms": 5, "width": 3, "likely": 2, "logits": logits }); 5] })
}

/// A page on which everything is as it should be.
fn page() -> Value {
    let params = json!([{ "name": "a.q_weight", "shape": [8, 4], "dtype": "uint32" }]);
    json!({
        "findAdapter": { "vendor": "v", "architecture": "a", "description": "", "features": [], "limits": {} },
        "openModule": {},
        "openLibrary": { "kind": "mlc", "metadata": {
            "model_type": "qwen2", "quantization": "q4f32_1", "context_window_size": 64, "prefill_chunk_size": 16,
            "max_batch_size": 1, "kv_state_kind": "kv_cache", "params": params } },
        "load": { "ms": 12, "bodies": { "delivered": 128, "held_peak": 64, "largest": 64, "unsynced_peak": 32 } },
        "compile": { "ms": 3 },
        "run": run(GOOD),
        "finish": { "gpu": { "live": 0, "peak": 99 }, "wasm_memory": 1000, "errors": [] },
    })
}

/// The page with one function's value replaced.
fn page_where(name: &str, value: Value) -> Value {
    let mut page = page();
    page[name] = value;
    page
}

fn lab_with(page: &Value) -> Lab {
    let lab = Lab::new();
    lab.fake(page);
    lab
}

#[track_caller]
fn expect(page: &Value, more: &[&str], code: i32, check: &str, detail: &str) {
    let ran = lab_with(page).smoke(more).code(code);
    let outcome = if code == 8 { "failed" } else { "inconclusive" };
    let (found, text) = ran.check(check);
    assert_eq!(found, outcome, "{text}");
    assert!(text.contains(detail), "{text}");
    assert_eq!(ran.report()["outcome"], outcome);
}

#[test]
fn a_sound_library_passes_with_its_figures() {
    let lab = lab_with(&page());
    let ran = lab.smoke(&["--save-logits", "logits"]).code(0);
    let report = ran.report();
    assert_eq!(report["outcome"], "passed", "{report:#}");
    assert_eq!(
        (&report["schema"], &report["browser"], &report["library"]),
        (&json!(1), &json!("Fake/1"), &json!("library.wasm"))
    );
    let figures = json!({
        "compileMs": 3.0, "loadMs": 12.0, "heldPeak": 64, "largestBody": 64, "delivered": 128, "queuedPeak": 32,
        "parallelShards": 0, "gpuPeak": 99, "gpuReady": 70, "wasmMemory": 1000, "firstTokenMs": 5.0, "tokensPerSecond": 200.0,
    });
    assert_eq!(report["figures"], figures);
    assert_eq!(
        report["weights"],
        json!({ "seeded": true, "tensors": 1, "shards": 1, "bytes": 128, "largestTensor": 128 })
    );
    assert_eq!(report["tokens"], json!([2, 2, 2, 2, 2]));
    // What one library answered can be held against another.
    assert_eq!(std::fs::read(lab.path("logits")).unwrap().len(), 5 * 3 * 4);
    let again = lab.smoke(&["--reference", "logits"]).code(0);
    assert!(again.check("reference").1.starts_with("5 rows of logits, at most 0"));
}

#[test]
fn a_text_report_says_the_same() {
    let lab = lab_with(&page_where("run", run(ZERO)));
    let ran = lab.smoke(&["--format", "text"]).code(8);
    for line in
        ["library.wasm: failed\n", "  FAILED   not-zero         call 0: all logits are zero\n", "  time to first token"]
    {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
}

#[test]
fn without_a_browser_nothing_is_concluded() {
    let lab = Lab::new();
    let ran = lab.smoke_alone(&[]).code(11);
    let (outcome, text) = ran.check("browser");
    assert_eq!(outcome, "inconclusive");
    assert!(
        text.starts_with("none of chromium, chromium-browser, google-chrome") && text.contains("--browser"),
        "{text}"
    );
    let ran = lab.smoke_alone(&["--browser", "/nowhere/browser"]).code(11);
    assert_eq!(ran.check("browser").1, "there is no program /nowhere/browser: name another with --browser");
}

#[test]
fn a_browser_that_does_not_start_is_quoted() {
    let lab = Lab::new();
    lab.script("echo 'no display, no luck' >&2; exit 3");
    let (outcome, text) = lab.smoke(&[]).code(11).check("browser");
    assert_eq!(outcome, "inconclusive");
    assert!(text.contains("the browser ended") && text.contains("no display, no luck"), "{text}");
    lab.script("printf 'not the protocol\\0' >&4; sleep 60");
    assert!(lab.smoke(&[]).code(11).check("browser").1.contains("what is no message"));
}

#[test]
fn a_browser_that_breaks_is_not_the_librarys_fault() {
    expect(&page_where("Page.enable", json!("!die")), &[], 11, "page", "the browser ended");
    expect(&page_where("load", json!("!die")), &[], 11, "load", "the browser ended");
    expect(&page_where("compile", json!("!nonsense")), &[], 11, "shaders", "what is no message");
}

#[test]
fn what_the_browser_lacks_is_said() {
    let missing = json!({ "missing": "this browser finds no WebGPU adapter" });
    expect(&page_where("findAdapter", missing), &[], 11, "adapter", "finds no WebGPU adapter");
    let missing = json!({ "missing": "requested maxBufferSize exceeds limit" });
    expect(&page_where("openModule", missing), &[], 11, "browser-module", "maxBufferSize");
    let mut page = page();
    page["openLibrary"]["metadata"]["quantization"] = json!("q4f16_1");
    expect(&page, &[], 11, "features", "q4f16_1 needs shader-f16, which this adapter does not have");
    page["findAdapter"]["features"] = json!(["shader-f16"]);
    lab_with(&page).smoke(&[]).code(0);
}

#[test]
fn what_is_not_known_is_said() {
    let mut page = page();
    page["openLibrary"]["metadata"]["kv_state_kind"] = json!("none");
    expect(&page, &[], 11, "functions", "a state of kind none");
    page["openLibrary"]["metadata"]["kv_state_kind"] = json!("kv_cache");
    page["openLibrary"]["metadata"]["params"][0]["dtype"] = json!("float8_e4m3fn");
    expect(&page, &[], 11, "weights", "no seeded values can be made for a.q_weight");
    page["openLibrary"]["metadata"]["params"] = json!([]);
    expect(&page, &[], 11, "weights", "names no weights");
}

#[test]
fn a_library_that_breaks_fails() {
    for (function, check) in [
        ("openModule", "browser-module"),
        ("openLibrary", "library"),
        ("load", "load"),
        ("compile", "shaders"),
        ("run", "run"),
    ] {
        expect(&page_where(function, json!("!throw Error: it broke")), &[], 8, check, "Error: it broke");
    }
    expect(&page_where("run", json!("!crash")), &[], 8, "run", "the page crashed");
    let mut page = page();
    page["openLibrary"]["metadata"] = json!({ "params": [{ "name": "a", "shape": ["n"], "dtype": "int8" }] });
    expect(&page, &[], 8, "library", "metadata cannot be read");
}

#[test]
fn wrong_answers_fail() {
    expect(&page_where("run", run(ZERO)), &[], 8, "not-zero", "all logits are zero");
    expect(&page_where("run", run("AADAfwAAAEAAAEBA")), &[], 8, "finite", "1 of 3 logits are not finite");
    expect(
        &page_where("run", json!([run(GOOD), run("AACAPwAAAEAAAEA/")])),
        &[],
        8,
        "repeatable",
        "differ between two runs",
    );
    expect(
        &page_where("run", json!({ "ready": 1, "steps": [{ "ms": 1, "width": 2, "logits": GOOD }] })),
        &[],
        8,
        "run",
        "no rows of 2",
    );
    expect(&page_where("run", json!(null)), &[], 8, "run", "");
}

#[test]
fn a_reference_that_is_not_met_fails() {
    let lab = lab_with(&page());
    let reference =
        |logits: &str| format!(r#"{{"calls":[{{"function":"prefill","input_ids":[1,2],"logits":[{logits}]}}]}}"#);
    lab.write("reference.json", reference("[1.0,2.0,3.01]"));
    lab.smoke(&["--reference", "reference.json"]).code(0);
    let ran = lab.smoke(&["--reference", "reference.json", "--tolerance", "0.001"]).code(8);
    assert!(ran.check("reference").1.contains("off by"));
    lab.write("reference.json", reference("[1.0,2.0]"));
    lab.smoke(&["--reference", "reference.json"]).code(8);
    lab.write("reference.json", r#"{"prompt":[1],"tokens":[2,2,2]}"#);
    assert_eq!(
        lab.smoke(&["--reference", "reference.json"]).code(0).check("reference").1,
        "3 tokens are the expected ones"
    );
    lab.write("reference.json", r#"{"prompt":[1],"tokens":[2,0]}"#);
    lab.smoke(&["--reference", "reference.json"]).code(8);
    lab.write("reference.json", "{}");
    let ran = lab.smoke(&["--reference", "reference.json"]).code(1);
    let error: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("the reference reference.json cannot be used"),
        "{error}"
    );
}

#[test]
fn weights_of_the_caller_are_served_as_they_are() {
    let lab = lab_with(&page());
    assert!(lab.smoke(&["--weights", "nowhere"]).code(1).stdout.contains("nowhere cannot be used"));
    std::fs::create_dir(lab.path("w")).unwrap();
    lab.write(
        "w/tensor-cache.json",
        r#"{"metadata":{},"records":[{"dataPath":"p.bin","format":"raw-shard","nbytes":3,"records":[]}]}"#,
    );
    lab.write("w/reference.json", r#"{"prompt":[1],"tokens":[2]}"#);
    let ran = lab.smoke(&["--weights", "w"]).code(0);
    assert_eq!(
        ran.report()["weights"],
        json!({ "seeded": false, "tensors": 0, "shards": 1, "bytes": 3, "largestTensor": 0 })
    );
    assert_eq!(ran.check("reference").1, "1 tokens are the expected ones");
}

#[test]
fn what_may_be_held_can_be_bounded() {
    let mut page = page();
    page["load"]["bodies"]["held_peak"] = json!(2 << 20);
    expect(&page, &["--max-held", "1"], 8, "held", "2097184 bytes were held, 1048576 may be");
    assert_eq!(lab_with(&page).smoke(&["--max-held", "3"]).code(0).check("held").0, "passed");
    page["load"]["bodies"]["held_peak"] = json!(null);
    expect(&page, &["--max-held", "2"], 11, "held", "does not let");
}

#[test]
fn ballast_is_loaded_besides() {
    let ran = lab_with(&page()).smoke(&["--ballast", "5", "--shard-size", "2"]).code(0);
    let weights =
        json!({ "seeded": true, "tensors": 4, "shards": 4, "bytes": (5 << 20) + 128, "largestTensor": 2 << 20 });
    assert_eq!(ran.report()["weights"], weights);
}

#[test]
fn complaints_of_gpu_and_console_fail_what_answers_well() {
    let mut page = page_where(
        "finish",
        json!({ "gpu": { "peak": 1 }, "errors": ["GPU error: bad shader", "GPU device lost: oh"] }),
    );
    expect(&page, &[], 8, "gpu", "GPU error: bad shader (and 1 more)");
    page = self::page();
    let entry = |level: &str| json!({ "method": "Log.entryAdded", "params": { "entry": { "level": level, "source": "rendering", "text": "a word" } } });
    page["events"] = json!([entry("warning"), entry("verbose")]);
    let ran = lab_with(&page).smoke(&[]).code(0);
    assert_eq!(ran.report()["warnings"], json!(["rendering: a word"]));
    page["events"] = json!([entry("error")]);
    expect(&page, &[], 8, "console", "rendering: a word");
    page["events"] =
        json!([{ "method": "Runtime.exceptionThrown", "params": { "exceptionDetails": { "text": "Uncaught x" } } }]);
    expect(&page, &[], 8, "console", "Uncaught x");
}

#[test]
fn the_engine_is_tried_where_there_is_one() {
    let lab = Lab::new();
    lab.write("engine.js", "engine");
    let mut page = page();
    page["chat"] = json!({ "load_ms": 5, "first_token_ms": 1, "stream_ms": 4000, "tokens": 8, "pieces": 3, "text": "a", "finish": "length" });
    lab.fake(&page);
    let ran = lab.smoke(&["--engine", "engine.js"]).code(0);
    assert_eq!(
        ran.report()["figures"]["engine"],
        json!({ "loadMs": 5.0, "firstTokenMs": 1.0, "tokens": 8, "tokensPerSecond": 2.0, "gpuPeak": 99 })
    );
    lab.smoke(&["--engine", "engine.js", "--no-engine"]).code(0);
    page["chat"] = json!("!throw Error: no such function");
    lab.fake(&page);
    let ran = lab.smoke(&["--engine", "engine.js"]).code(8);
    assert!(ran.check("engine").1.contains("no such function"));
    assert_eq!(ran.check("not-zero").0, "passed");
    lab.smoke(&["--engine", "engine.js", "--no-engine"]).code(0);
}

#[test]
fn a_browser_that_hangs_ends_with_the_time() {
    let lab = lab_with(&page_where("compile", json!("!hang")));
    let ran = lab.smoke(&["--timeout", "3"]).code(11);
    let (outcome, text) = ran.check("shaders");
    assert_eq!((outcome.as_str(), text.as_str()), ("inconclusive", "the time is up, waiting for Runtime.evaluate"));
    for id in lab.hanging() {
        wait_for(|| is_gone(id).then_some(()));
    }
}

#[test]
fn an_interrupt_leaves_no_process() {
    for signal in [Signal::INT, Signal::TERM] {
        let lab = lab_with(&page_where("run", json!("!hang")));
        let child = lab.start(&[]);
        let ids = lab.hanging();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = ended(child).code(10);
        let error: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(error["error"]["class"], "interrupted");
        for id in ids {
            wait_for(|| is_gone(id).then_some(()));
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_found_before_a_browser_is_started() {
    let lab = Lab::new();
    // Whoever starts this one will see it.
    lab.script(&format!("echo started >> {}; exit 3", lab.path("started").display()));
    std::fs::create_dir_all(lab.path("weights")).unwrap();
    std::fs::create_dir_all(lab.path("cut")).unwrap();
    lab.write("weights/tensor-cache.json", r#"{"records": []}"#);
    lab.write("cut/tensor-cache.json", r#"{"records": [{}"#);
    lab.write("empty", "");
    lab.write("odd", "12345");
    lab.write("reference.json", r#"{"calls": []}"#);
    lab.write("packed.gz", b"\x1f\x8b\x08");
    lab.write("engine.js", "export");
    let refused = |more: &[&str], what: &str| {
        let ran = lab.smoke(&[more, &["--format", "text"]].concat()).code(1);
        assert!(ran.stderr.contains(what) && ran.stderr.contains("hint: "), "{more:?}: {}", ran.stderr);
        assert!(!lab.path("started").exists(), "{more:?}");
    };
    refused(
        &["--weights", "nowhere"],
        "the directory of weights nowhere cannot be used: tensor-cache.json: No such file",
    );
    refused(&["--weights", "library.wasm"], "the directory of weights library.wasm cannot be used");
    refused(&["--weights", "cut"], "tensor-cache.json: ");
    refused(&["--reference", "nowhere"], "the reference nowhere cannot be used: No such file");
    refused(&["--reference", "weights"], "the reference weights cannot be used: it is not a regular file");
    refused(&["--reference", "reference.json"], "the first call must be a prefill");
    refused(&["--reference", "odd"], "5 bytes are neither JSON nor 32-bit floats");
    refused(&["--engine", "nowhere"], "the engine nowhere cannot be used");
    refused(&["--engine", "empty"], "the engine empty cannot be used: it is empty");
    // What stands beside weights counts as well.
    lab.write("weights/reference.json", "{");
    refused(&["--weights", "weights"], "reference.json cannot be used");
    std::fs::remove_file(lab.path("weights/reference.json")).unwrap();
    lab.write("weights/mlc-chat-config.json", "{}");
    lab.write("weights/tokenizer.json", "[");
    refused(&["--weights", "weights", "--engine", "engine.js"], "tokenizer.json cannot be used");
    // Files that nobody asks for need not be good.
    lab.smoke(&["--weights", "weights"]).code(11);
    std::fs::remove_file(lab.path("started")).unwrap();
    lab.smoke(&["--engine", "empty", "--no-engine"]).code(11);
    std::fs::remove_file(lab.path("started")).unwrap();

    let files = |library: &str, module: &str, what: &str| {
        std::fs::copy(lab.path(library), lab.path("library.wasm")).unwrap();
        std::fs::copy(lab.path(module), lab.path("tvmjs.cjs")).unwrap();
        refused(&[], what);
    };
    files("packed.gz", "engine.js", "the library library.wasm cannot be used: it is packed: unpack it");
    files("engine.js", "empty", "the browser module tvmjs.cjs cannot be used: it is empty");
    std::fs::remove_file(lab.path("library.wasm")).unwrap();
    refused(&[], "the library library.wasm cannot be used: No such file");
}
