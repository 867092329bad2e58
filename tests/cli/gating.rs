//! What must not leave a build does not: nothing is packaged, nothing delivered.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::mini::{library, mini};
use crate::small_library::SmallLibrary;

/// A miniature whose linker makes another library.
fn linking(change: impl FnOnce(&mut SmallLibrary)) -> TestEnv {
    let env = mini();
    let mut small = library();
    change(&mut small);
    env.write("bin/library.wasm", small.bytes());
    env
}

#[test]
fn a_wrong_library_is_stopped_before_it_is_packaged() {
    let env = linking(|small| {
        small.imports.push(("env".into(), "TVMFFIGetCustomAllocator".into()));
        small.kernels[0].1 = small.kernels[0].1.replace("storage, read>", "storage, read_write>");
    });
    env.edit("site/pins.toml", "max_batch_size = 1", "max_batch_size = 2");
    let stopped = env.build(&[]).code(8);
    assert_snapshot!(stopped.stderr, @r#"
    error: step gates: artifact decoder-webgpu.wasm must not leave the build: max_batch_size: expected 2 (the pins), found 1; and 3 more findings
      | decoder-webgpu.wasm [metadata] max_batch_size: expected 2 (the pins), found 1
      |     the override did not take: upstream's default is 128, and caches and work buffers grow with it
      | decoder-webgpu.wasm [imports] the library imports from `env`, and the browser module provides nothing there that could be found
      |     no object literal in the module is its import object: is it TVM's, with an adapter, and not minified?
      | decoder-webgpu.wasm [access] expected buffers that are only read, found all 2 storage bindings declared read_write
      |     the WGSL generator of apache-tvm 0.26.0 has this fault (apache/tvm#20079, mended by #20113): the browser refuses such kernels and the logits are all zero
      | decoder-webgpu.wasm [access] 1 shaders declare buffers in another way than the runtime binds them: copy_kernel
      |     a read_write variable bound as read-only storage, or the reverse, makes no pipeline; compiler and passes are of different versions
    hint: the override did not take: upstream's default is 128, and caches and work buffers grow with it; if it is wanted all the same, accept the rule in the pins: `accept = ["metadata"]` under [gates]
    "#);
    assert!(!env.path("site/dist").exists());
    assert!(!env.path("site/.rebuild/tvm-webgpu/out/package").exists());
    // What was found is kept with the failed step's tree.
    let kept = env.listing("site/.rebuild/tvm-webgpu/tmp/gates");
    assert!(kept.keys().any(|path| path.ends_with("gate.json")), "{kept:?}");
    let error = env.build(&["--resume", "--format", "json"]).code(8).json();
    assert_eq!(error["error"]["class"], "artifact");
    assert_eq!(error["error"]["step"], "gates");
}

#[test]
fn what_the_pins_accept_is_built_and_noted() {
    let env = linking(|small| small.kernels.clear());
    env.build(&[]).code(8);
    env.edit("site/pins.toml", "[packaging]\n", "[gates]\naccept = [\"shaders\"]\n\n[packaging]\n");
    let built = env.build(&["--resume", "--format", "json"]).code(0).json();
    let note = "decoder-webgpu.wasm [shaders] expected shaders in linear memory, found none";
    assert_eq!(built["notes"]["gates"], serde_json::json!([note]));
    let plan = env.run(&["plan"]).code(0).stdout;
    assert!(plan.contains("accept  breaks of shaders"), "{plan}");
    env.edit("site/pins.toml", "\"shaders\"", "\"shadows\"");
    let refused = env.build(&[]).code(1).stderr;
    assert!(refused.contains("shadows"), "{refused}");
}

#[test]
fn a_file_that_names_the_workspace_is_stopped() {
    let env = mini();
    let uv = env.read("bin/uv.script");
    let leaking = uv.replace("echo 0123456789 >", "dirname \"$out\" >");
    assert_ne!(uv, leaking);
    env.write("bin/uv.script", leaking);
    let stopped = env.build(&[]).code(8);
    assert!(
        stopped.stderr.contains("weights/params_shard_0.bin [leaks] names the workspace ROOT"),
        "{}",
        stopped.stderr
    );
}

#[test]
fn parameters_of_other_weights_are_stopped() {
    let env = linking(|small| {
        let param = r#"[{"name": "w", "shape": [1], "dtype": "float32"}]"#;
        small.metadata[0] = small.metadata[0].replace("\"params\": []", &format!("\"params\": {param}"));
    });
    let stopped = env.build(&[]).code(8);
    assert!(stopped.stderr.contains("parameters of the library that the weights lack: w"), "{}", stopped.stderr);
}

#[test]
fn work_memory_is_compared_with_the_library_that_is_replaced() {
    let env = mini();
    let first = env.build(&["--format", "json"]).code(0).json();
    assert_eq!(first["notes"], serde_json::json!({}));
    let mut small = library();
    small.metadata[0] = small.metadata[0].replace("\"decode\": 96", "\"decode\": 12288");
    env.write("bin/library.wasm", small.bytes());
    let second = env.build(&["--workspace", &env.text("second"), "--format", "json"]).code(0).json();
    let note = "decoder-webgpu.wasm.gz: decode plans 12288 bytes of work memory, before 96 bytes";
    assert_eq!(second["notes"]["delivery"], serde_json::json!([note]));
    env.write("site/dist/decoder-webgpu.wasm.gz", "something of the site's own");
    let third = env.build(&["--workspace", &env.text("third"), "--format", "json"]).code(0).json();
    assert_eq!(third["notes"], serde_json::json!({}));
}

#[test]
fn inspect_shows_and_judges_what_was_delivered() {
    let env = mini();
    env.build(&[]).code(0);
    let shown = env.run(&["inspect", "dist/decoder-webgpu.wasm.gz", "dist/manifest.json"]).code(0);
    assert!(shown.stdout.contains("dist/decoder-webgpu.wasm.gz: model library"), "{}", shown.stdout);
    assert!(shown.stdout.contains("dist/manifest.json: manifest"), "{}", shown.stdout);
    let library = "dist/decoder-webgpu.wasm.gz";
    let judged = env.run(&["inspect", library, "--gate", "--expect", "max_batch_size=1"]).code(0);
    assert!(judged.stdout.ends_with("the gates find nothing"), "{}", judged.stdout);
    let weights = ["inspect", library, "--weights", "dist/weights/tensor-cache.json", "--against", "dist/tvmjs.cjs.gz"];
    env.run(&weights).code(0);
    let judged = env.run(&["inspect", library, "--expect", "max_batch_size=4", "--format", "json"]).code(8).json();
    assert_eq!(judged["findings"][0]["rule"], "metadata");
    assert_eq!(judged["files"][0]["content"]["kind"], "wasm");
    env.run(&["inspect", library, "--expect", "max_batch_size"]).code(1);
    env.run(&["inspect", library, "--against", "dist/manifest.json"]).code(1);
    env.run(&["inspect", "none.wasm"]).code(1);
    env.run(&["inspect"]).code(1);
    env.write("site/cut.wasm", &crate::mini::library().bytes()[..100]);
    let error = env.run(&["inspect", "cut.wasm", "--format", "json"]).code(8).json();
    assert!(error["error"]["causes"][0].as_str().unwrap().contains("at offset 0x"), "{error}");
}

#[test]
fn a_judgement_that_was_asked_for_is_made_or_its_absence_is_no_success() {
    let env = mini();
    env.write("site/library.wasm", library().bytes());
    env.write("site/config.json", r#"{"model": "x", "context_window_size": 768}"#);
    env.write("site/open.json", r#"{"context_window_size": -1}"#);
    env.write("site/other.json", r#"{"model": "x"}"#);
    env.write("site/list.json", "[1]");
    env.write("site/weights.bin", "0123456789");
    // What is no configuration sets nothing, and nothing is what it would be compared with.
    let config = |file: &str| env.run(&["inspect", "library.wasm", "--config", file]);
    let shown = ["open.json", "other.json", "list.json", "weights.bin"].map(|file| config(file).code(1).stderr);
    assert_snapshot!(shown.join("\n"), @r#"
    error: open.json is not a model configuration (mlc-chat-config.json): it sets none of model_type, quantization, context_window_size, sliding_window_size, attention_sink_size, prefill_chunk_size, tensor_parallel_shards, pipeline_parallel_stages
    error: other.json is not a model configuration (mlc-chat-config.json): it sets none of model_type, quantization, context_window_size, sliding_window_size, attention_sink_size, prefill_chunk_size, tensor_parallel_shards, pipeline_parallel_stages
    error: list.json is not a model configuration (mlc-chat-config.json): it sets none of model_type, quantization, context_window_size, sliding_window_size, attention_sink_size, prefill_chunk_size, tensor_parallel_shards, pipeline_parallel_stages
    error: weights.bin is not a model configuration
    "#);
    config("config.json").code(8);

    let unjudged = "error: nothing was judged: none of the files is a model library\nhint: name a library (.wasm, packed or \
                    not) besides, or leave out what only a library can answer";
    for asked in [&["--expect", "max_batch_size=1"][..], &["--config", "config.json"], &["--gate"]] {
        let ran = env.run(&[&["inspect", "weights.bin", "other.json"], asked].concat()).code(11);
        assert!(
            ran.stdout.contains("weights.bin: of no kind") && !ran.stdout.contains("find nothing"),
            "{}",
            ran.stdout
        );
        assert_eq!(ran.stderr, unjudged);
        let json = env.run(&[&["inspect", "weights.bin", "--format", "json"], asked].concat()).code(11).json();
        assert_eq!(
            (&json["error"]["class"], &json["files"][0]["path"]),
            (&"inconclusive".into(), &"weights.bin".into())
        );
    }
    env.run(&["inspect", "weights.bin", "library.wasm", "--expect", "max_batch_size=1"]).code(0);
    // Names of the machine are looked for in all of any file, however large and of whatever kind.
    let home = env.text("home");
    env.write("site/leaking.bin", format!("{}{home}/x", "\u{1}".repeat(100_000)));
    env.run(&["inspect", "leaking.bin", "--leak", &home]).code(8);
    env.run(&["inspect", "weights.bin", "--leak", &home]).code(0);
}

#[test]
fn one_file_that_cannot_be_looked_into_hides_no_other() {
    let env = mini();
    let whole = library().bytes();
    env.write("site/one.wasm", &whole);
    env.write("site/two.wasm", &whole);
    env.write("site/cut.wasm", &whole[..100]);
    env.write("site/empty.gz", "");
    let ran = env.run(&["inspect", "one.wasm", "none\nerror: forged", "cut.wasm", "empty.gz", "two.wasm"]).code(1);
    assert!(
        ran.stdout.contains("one.wasm: model library") && ran.stdout.contains("two.wasm: model library"),
        "{}",
        ran.stdout
    );
    assert_snapshot!(ran.stderr, @r#"
    error: cannot read none\nerror: forged
      because: No such file or directory (os error 2)
    hint: name a file that you may read
    error: cut.wasm is not a model library
      because: not a valid WebAssembly module: unexpected end-of-file, at offset 0x61 of 100 bytes
    hint: it may have been cut short on its way: compare it with the manifest by `rebuild-model verify`
    error: empty.gz cannot be unpacked
      because: the gzip data ends too early
    hint: it may have been cut short on its way: compare it with the manifest by `rebuild-model verify`
    "#);
    let shown = env.run(&["inspect", "cut.wasm", "one.wasm", "none", "--format", "json"]).code(8).json();
    assert_eq!((shown["files"].as_array().unwrap().len(), &shown["error"]["class"]), (1, &"artifact".into()));
    let failures: Vec<_> =
        shown["failures"].as_array().unwrap().iter().map(|one| (&one["path"], &one["error"]["exitCode"])).collect();
    assert_eq!(serde_json::json!(failures), serde_json::json!([["cut.wasm", 8], ["none", 1]]));
    // What was judged counts, and says of what it speaks.
    let judged = env.run(&["inspect", "one.wasm", "none", "--gate"]).code(1).stdout;
    assert!(judged.ends_with("the gates find nothing in what could be read"), "{judged}");
    env.run(&["inspect", "none", "one.wasm", "--expect", "max_batch_size=7"]).code(8);
    // Alone it is an error as any other.
    let alone = env.run(&["inspect", "empty.gz", "--format", "json"]).code(8).json();
    assert_eq!(alone["error"]["class"], "artifact");
}
