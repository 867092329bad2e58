//! Whole builds: every step runs, and what is wrong with model, tools or result stops them before
//! anything is packaged.

use crate::mini::Mini;
use crate::onnx::{BOOL, CONSTANT, INPUT, INT64, Size, external, good, mask, tensor, value};

/// A build that ends with `code` and says every one of `said`, and delivers nothing.
#[track_caller]
fn fails(mini: &Mini, code: i32, said: &[&str]) {
    let ran = mini.build().code(code);
    for text in said {
        assert!(ran.text.contains(text), "{text}:\n{}", ran.text);
    }
    assert!(!mini.path("site/dist").exists(), "something was delivered");
}

#[test]
fn every_step_runs_and_all_that_a_page_needs_is_delivered() {
    let mini = Mini::new();
    mini.build().code(0);
    let read = |name: &str| std::fs::read(mini.path("site/dist").join(name)).unwrap();
    assert_eq!(read("model.onnx"), crate::onnx::model(&good()));
    assert_eq!(read("tokenizer/tokenizer.json"), std::fs::read(mini.path("site/model/tokenizer.json")).unwrap());
    assert_eq!(read("runtime/ort-wasm-simd-threaded.wasm"), b"ort-wasm-simd-threaded.wasm");
    assert_eq!(
        String::from_utf8(read("generate.mjs")).unwrap(),
        include_str!("../../src/recipe/onnx_int8/generate.mjs")
    );
    // The contract arrives as it stands in the pins, dollar sign and all.
    let contract: serde_json::Value = serde_json::from_slice(&read("generation.json")).unwrap();
    assert_eq!(
        (contract["prompt"].as_str(), contract["random"].as_str()),
        (Some("{text} costs $5: "), Some("mulberry32"))
    );
    let manifest = String::from_utf8(read("manifest.json")).unwrap();
    assert!(manifest.contains("\"model.onnx\"") && !manifest.contains("ort.all"), "{manifest}");
    let graph = std::fs::read_to_string(mini.path("work/out/graph/graph.json")).unwrap();
    assert!(graph.contains("\"producer\": \"onnx.quantize 0.1.0\""), "{graph}");
    let facts = std::fs::read_to_string(mini.path("work/out/facts/facts.json")).unwrap();
    assert!(facts.contains("\"vocabulary\": 8") && facts.contains("\"positions\": 16"), "{facts}");
    let looked = mini.run(&["inspect", "dist/model.onnx"]).code(0).text;
    for said in
        ["input        input_ids int64 [1, seq]", "8 bits       DequantizeLinear 1", "head (float32 4 × 8, 128 bytes)"]
    {
        assert!(looked.contains(said), "{looked}");
    }
    mini.build_in("again").code(0);
    assert_eq!(manifest.as_bytes(), read("manifest.json"));
}

#[test]
fn weights_of_another_digest_are_refused_and_a_pointer_is_called_one() {
    let mini = Mini::new();
    mini.write("site/model/pytorch_model.bin", "PK\u{3}\u{4} other weights");
    fails(&mini, 5, &["pytorch_model.bin has sha256", "is pinned"]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    let mini = Mini::new();
    mini.change_pins("path = \"model/pytorch_model.bin\"", "url = \"https://models.invalid/pytorch_model.bin\"");
    mini.write("hub/pytorch_model.bin", pointer);
    fails(&mini, 5, &["step weights", "LFS pointer"]);
    std::fs::copy(mini.path("site/model/pytorch_model.bin"), mini.path("hub/pytorch_model.bin")).unwrap();
    mini.build_in("again").code(0);
    // Somebody who pins the pointer's own digest gets no further.
    let mini = Mini::new();
    mini.replace_pinned("pytorch_model.bin", pointer);
    fails(&mini, 7, &["step facts", "pytorch_model.bin is a Git LFS pointer and not the weights"]);
    let mini = Mini::new();
    mini.replace_pinned("pytorch_model.bin", "<!doctype html>");
    fails(&mini, 7, &["step facts", "neither an archive of torch nor safetensors"]);
}

#[test]
fn a_model_of_another_architecture_or_vocabulary_is_refused() {
    let mini = Mini::new();
    mini.replace_pinned(
        "config.json",
        "{\"model_type\": \"llama\", \"vocab_size\": 8, \"max_position_embeddings\": 16}",
    );
    fails(&mini, 7, &["step facts", "the model is of architecture llama, and the pins say gpt_neo"]);
    let mini = Mini::new();
    mini.replace_pinned(
        "config.json",
        "{\"model_type\": \"gpt_neo\", \"vocab_size\": 9, \"max_position_embeddings\": 16}",
    );
    fails(&mini, 7, &["the tokenizer has 8 tokens up to id 7, and the model 9: they do not belong together"]);
    let mini = Mini::new();
    mini.change_pins("vocabulary = 8", "vocabulary = 9");
    fails(&mini, 7, &["the model has 8 tokens, and the pins say 9"]);
    let mini = Mini::new();
    mini.replace_pinned("config.json", "{\"model_type\": ");
    fails(&mini, 7, &["config.json is not JSON"]);
}

#[test]
fn a_library_that_torch_lacks_is_named() {
    let mini = Mini::new();
    mini.write(
        "modules/torch.py",
        "raise ImportError('libcudart.so.13: cannot open shared object file: No such file or directory')\n",
    );
    fails(&mini, 7, &["step imports", "torch cannot be imported: the library libcudart.so.13 is missing"]);
    let mini = Mini::new();
    mini.write("modules/transformers.py", "import a_package_that_nobody_has\n");
    fails(&mini, 7, &["transformers cannot be imported: the Python package a_package_that_nobody_has is missing"]);
    let mini = Mini::new();
    mini.write("modules/onnx.py", "raise RuntimeError('of another ABI')\n");
    fails(&mini, 7, &["onnx cannot be imported: RuntimeError: of another ABI"]);
}

#[test]
fn an_export_that_wants_a_mask_is_never_packaged() {
    let mini = Mini::new();
    let mut parts = good();
    parts.push((INPUT, value("attention_mask", INT64, &[Size::Is(1), Size::Any("seq")])));
    mini.export(&parts);
    fails(&mini, 8, &["step graph", "attention_mask int64 [1, seq]", "create_causal_mask"]);
}

#[test]
fn a_model_over_the_limit_is_never_packaged_and_its_constants_are_listed() {
    let mini = Mini::new();
    let mut parts = good();
    parts.push((CONSTANT, tensor("onnx::Slice_210", BOOL, &[1, 1, 256, 256], &mask(256, 32))));
    mini.export(&parts);
    let list = "onnx::Slice_210 (bool 1 × 1 × 256 × 256, 65536 bytes: says only that 0 ≤ row − column < 32), 99.";
    fails(&mini, 8, &["step graph", "more than the 4096 that are allowed", "largest constants:", list]);
}

#[test]
fn what_is_cut_off_or_keeps_its_data_elsewhere_is_never_packaged() {
    let mini = Mini::new();
    let whole = crate::onnx::model(&good());
    mini.write("exported.onnx", &whole[..whole.len() / 2]);
    fails(&mini, 8, &["step graph", "is damaged", "it is cut off: at byte"]);
    let mini = Mini::new();
    let mut parts = good();
    parts.push((CONSTANT, external("head", "model.onnx.data")));
    mini.export(&parts);
    fails(&mini, 8, &["step graph", "the file model.onnx.data, which is missing"]);
}

#[test]
fn a_quantization_that_writes_nothing_is_a_failed_step() {
    let mini = Mini::new();
    let script = std::fs::read_to_string(mini.path("bin/venv.script")).unwrap();
    mini.write(
        "bin/venv.script",
        script.replace("*\"quantize_dynamic(\"*) cp \"$3\" \"$5\"; exit", "*\"quantize_dynamic(\"*) exit"),
    );
    fails(&mini, 7, &["step quantize", "did not write its output model.onnx"]);
}
