//! The recipe `mlc-webgpu` on miniature upstreams: local git repositories with real submodules and the
//! same interfaces, real patches, a real C compiler, Python and Node.js; emcc, uv and esbuild are
//! scripts that put texts together, so that a result says what it was made from.

mod mini;
mod replaying;
#[path = "../support/repositories.rs"]
#[allow(dead_code, reason = "it serves several test binaries")]
mod repositories;
#[path = "../support/small_library.rs"]
mod small_library;

use mini::Mini;

#[test]
fn every_step_runs_and_the_library_is_made_of_the_four_bitcode_files() {
    let mini = Mini::new();
    let ran = mini.build().code(0);
    let library = mini.unpacked("model.wasm");
    for part in ["wasm_runtime v1", "tvmjs_support v1", "webgpu_runtime v1", "mlc_wasm_runtime v1"] {
        assert_eq!(library.matches(&format!("\n{part}\n")).count(), 1, "{part}:\n{library}");
    }
    assert!(library.contains("q4f16_1 webgpu max_batch_size=1"), "{library}");
    // Built with the flags that upstream's Makefiles have, and with no path of this machine.
    assert!(library.contains("-emit-llvm"), "{library}");
    let module = mini.unpacked("tvmjs.cjs");
    assert!(module.contains("// patched") && module.contains("adapter from wasm_runtime v1"), "{module}");
    let engine = mini.unpacked("web-llm.js");
    let (before, after) = (mini::ENGINE.split_once("OLD").unwrap(), "}\nfunction later() {}\n");
    assert!(engine.starts_with(before.0.rsplit_once("\t(function").unwrap().0) && engine.ends_with(after), "{engine}");
    assert!(engine.contains("// patched") && !engine.contains("OLD"), "{engine}");
    let manifest = std::fs::read_to_string(mini.path("site/config/assets.json")).unwrap();
    for name in ["model.wasm.gz", "tvmjs.cjs.gz", "web-llm.js.gz"] {
        assert!(manifest.contains(name), "{manifest}");
    }
    assert!(ran.text.contains("steps ran, 0 stood"), "{}", ran.text);
}

#[test]
fn an_emscripten_from_an_archive_builds_the_same() {
    let mini = Mini::new();
    mini.build().code(0);
    let manifest = std::fs::read(mini.path("site/config/assets.json")).unwrap();
    mini.archive_emcc();
    mini.build_in("archived").code(0);
    assert_eq!(manifest, std::fs::read(mini.path("site/config/assets.json")).unwrap());
    // What it keeps for itself it keeps outside of what was unpacked.
    assert!(mini.path("archived/cache/emscripten/libc.a").exists());
    assert!(!mini.path("archived/out/tool-emcc/tree/install/emscripten/__pycache__").exists());
    let ran = mini.resume_in("archived").code(0);
    assert!(ran.text.contains("0 steps ran"), "{}", ran.text);
}

#[test]
fn two_workspaces_give_the_same_digests() {
    let mini = Mini::new();
    mini.build().code(0);
    let first = std::fs::read(mini.path("site/config/assets.json")).unwrap();
    mini.build_in("another/place").code(0);
    assert_eq!(first, std::fs::read(mini.path("site/config/assets.json")).unwrap());
}

#[test]
fn stale_bitcode_of_other_checkouts_is_never_linked() {
    let mut mini = Mini::new();
    for place in ["site/web/dist/wasm", "site", "other/web/dist/wasm"] {
        mini.write(&format!("{place}/mlc_wasm_runtime.bc"), "stale");
    }
    for name in ["MLC_LLM_SOURCE_DIR", "TVM_HOME", "TVM_SOURCE_DIR"] {
        let other = mini.path("other").display().to_string();
        mini.set(name, &other);
    }
    mini.build().code(0);
    assert!(!mini.unpacked("model.wasm").contains("stale"));
}

#[test]
fn a_compiler_that_writes_nothing_or_dies_is_a_failed_step() {
    for (word, said) in [("nothing", "did not write its output model.wasm"), ("killed", "signal 9")] {
        let mini = Mini::new();
        mini.configure(&format!("{{\"context_window_size\": 256, \"fail\": \"{word}\"}}"));
        let ran = mini.build().code(7);
        assert!(ran.text.contains("link-model") && ran.text.contains(said), "{}", ran.text);
        assert!(!mini.path("site/config/assets.json").exists());
    }
}

#[test]
fn passes_for_another_compiler_are_named_as_such() {
    let mini = Mini::new();
    mini.configure("{\"context_window_size\": 256, \"fail\": \"renamed\"}");
    let ran = mini.build().code(7);
    let said = "mlc_llm and the compiler do not match (AttributeError: module 'tvm' has no attribute 'PrimFunc')";
    assert!(ran.text.contains(said), "{}", ran.text);
}

#[test]
fn a_python_of_another_minor_version_is_found_out_before_anything_is_made() {
    let mini = Mini::new();
    mini.change_pins("version = \">=3\"\nrequirements", "version = \"3.2\"\nrequirements");
    let ran = mini.build().code(2);
    assert!(ran.text.contains("python") && ran.text.contains("3.2"), "{}", ran.text);
    assert!(!mini.path("work").exists());
}

#[test]
fn a_workspace_with_a_space_in_its_path_is_refused() {
    let mini = Mini::new();
    let ran = mini.build_in("my work").code(2);
    assert!(ran.text.contains("my work") && ran.text.contains("hint:"), "{}", ran.text);
    assert!(!mini.path("my work").exists());
}

#[test]
fn an_esbuild_that_is_gone_is_unavailable() {
    let mini = Mini::new();
    std::fs::remove_file(mini.path("vendor/esbuild-1.0.0.tgz")).unwrap();
    let ran = mini.build().code(4);
    assert!(ran.text.contains("fetch-esbuild") && ran.text.contains("esbuild"), "{}", ran.text);
}

#[test]
fn a_submodule_that_is_not_at_its_pinned_commit_is_named() {
    let mini = Mini::new();
    mini.change_pins(&mini.ffi.to_string(), &"1".repeat(40));
    let ran = mini.build().code(5);
    assert!(ran.text.contains("3rdparty/tvm/3rdparty/tvm-ffi"), "{}", ran.text);
}

#[test]
fn a_manifest_that_lists_other_artifacts_is_refused_before_the_build_and_left_as_it_is() {
    let mini = Mini::new();
    let lacking = "{\"schema\": 1, \"artifacts\": {\"model.wasm.gz\": {}, \"web-llm.js.gz\": {}}}";
    mini.write("site/config/assets.json", lacking);
    let ran = mini.build().code(8);
    assert!(ran.text.contains("lacks tvmjs.cjs.gz") && ran.text.contains("\"tvmjs.cjs.gz\": {}"), "{}", ran.text);
    assert!(!mini.path("work").exists());
    assert_eq!(std::fs::read_to_string(mini.path("site/config/assets.json")).unwrap(), lacking);
    mini.write("site/config/assets.json", lacking.replace("{\"model", "{\"tvmjs.cjs.gz\": {}, \"model"));
    mini.build().code(0);
}

#[test]
fn a_setting_that_changed_stops_before_the_compilation() {
    let mini = Mini::new();
    mini.configure("{\"context_window_size\": 512}");
    let ran = mini.build().code(7);
    assert!(ran.text.contains("config-model"), "{}", ran.text);
    let log = std::fs::read_to_string(mini.path("work/logs/config-model.log")).unwrap();
    assert!(log.contains("context_window_size 512, and the pins say 256"), "{log}");
}

#[test]
fn another_emcc_is_found_out_before_anything_is_made() {
    let mini = Mini::new();
    mini.replace_tool("emcc", "6.0.13", "6.0.12");
    let ran = mini.build().code(2);
    assert!(ran.text.contains("emcc") && ran.text.contains("6.0.12") && ran.text.contains("6.0.13"), "{}", ran.text);
    assert!(!mini.path("work").exists());
}

#[test]
fn a_tvm_ffi_library_of_another_version_or_without_a_symbol_is_refused() {
    let mini = Mini::new();
    mini.change_pins("\"TVMFFIFunctionCall\"", "\"TVMFFINoSuchSymbol\"");
    let ran = mini.build().code(8);
    assert!(ran.text.contains("TVMFFINoSuchSymbol"), "{}", ran.text);

    let mini = Mini::new();
    mini.replace_tool("uv", "$SETUPTOOLS_SCM_PRETEND_VERSION_FOR_APACHE_TVM_FFI", "0.1.15.post2");
    let ran = mini.build().code(7);
    assert!(ran.text.contains("tvm-ffi-native"), "{}", ran.text);
}

#[test]
fn a_wheel_that_is_gone_is_unavailable_and_a_wheelhouse_serves_it() {
    let mini = Mini::new();
    let house = mini.path("vendor/compiler-1.0-py3-none-any.whl");
    let kept = mini.path("kept.whl");
    std::fs::rename(&house, &kept).unwrap();
    let ran = mini.build().code(4);
    assert!(ran.text.contains("compiler"), "{}", ran.text);
    std::fs::rename(&kept, &house).unwrap();
    mini.build_in("again").code(0);
}

#[test]
fn an_engine_of_another_shape_is_refused() {
    let mini = Mini::new();
    mini.publish_engine(&mini::ENGINE.replace("exports.createPolyfillWASI = ", "exports.somethingElse = "));
    let ran = mini.build().code(7);
    let log = std::fs::read_to_string(mini.path("work/logs/engine.log")).unwrap();
    assert!(ran.text.contains("engine") && log.contains("is a bundle of another shape"), "{log}");
}

#[test]
fn what_nobody_recorded_is_named_and_locking_fills_it_in() {
    let mini = Mini::new();
    let pins = std::fs::read_to_string(mini.path("site/pins.toml")).unwrap();
    let wheel = mini.digest("vendor/compiler-1.0-py3-none-any.whl");
    let unknown = pins
        .replace(&("0".repeat(38) + "ff"), "not-recorded")
        .replace(&mini.ffi.to_string(), "not-recorded")
        .replace(&wheel.to_string(), "not-recorded");
    mini.write("site/pins.toml", &unknown);
    let ran = mini.build().code(5);
    for input in
        ["the commit of 3rdparty/tvm)", "the commit of 3rdparty/tvm/3rdparty/tvm-ffi)", "wheels (compiler 1.0)"]
    {
        assert!(ran.text.contains(input), "{}", ran.text);
    }
    // An index serves the wheel, since no directory can serve what has no digest.
    mini.write("index/compiler-1.0-py3-none-any.whl", "a wheel of the compiler");
    mini.lock().code(0);
    assert_eq!(std::fs::read_to_string(mini.path("site/pins.toml")).unwrap(), pins);
}
