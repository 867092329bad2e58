//! One library that passes, and for each gate one that is stopped.

use super::leaks::{Scanner, judge as judge_leaks};
use super::*;
use crate::artifact::{browser, library, weights};
use crate::host::Machine;
use crate::small_library::{KERNEL, METADATA, SmallLibrary};

const BROWSER: &str = "const env = { TVMFFIWasmSafeCall: f, emscripten_notify_memory_growth: g };
    const wasi = { fd_write: h }; this.imports = { wasi_snapshot_preview1: wasi };
    lib.exports.TVMFFIFunctionCall(); lib.exports._initialize(); const requiredMaxStorageBuffersPerShaderStage = 10;";

const WEIGHTS: &str = r#"{"records": [{"dataPath": "a.bin", "nbytes": 128, "records": [
    {"name": "two.weight", "shape": [8, 3], "dtype": "uint32", "nbytes": 96, "byteOffset": 32},
    {"name": "one.weight", "shape": [2, 4], "dtype": "float32", "nbytes": 32, "byteOffset": 0}]}]}"#;

fn expectations() -> Expectations {
    let config = serde_json::json!({
        "model_type": "qwen2", "context_window_size": 256, "prefill_chunk_size": 64, "sliding_window_size": -1,
        "tensor_parallel_shards": 1, "temperature": 0.5, "max_batch_size": 128,
    });
    let mut settings = settings_of_config(&config);
    assert_eq!(settings.len(), 4);
    settings.insert("max_batch_size".into(), Expected { value: 1.into(), by: "the pins" });
    settings.insert("quantization".into(), Expected { value: "q4f32_1".into(), by: "the pins" });
    Expectations { settings, weights: Some(weights::read(WEIGHTS.as_bytes()).unwrap()) }
}

fn judge(change: impl FnOnce(&mut SmallLibrary)) -> Vec<Finding> {
    let mut small = SmallLibrary::default();
    change(&mut small);
    let library = library::read(&small.bytes()).unwrap();
    judge_library("lib.wasm", &library, &expectations(), Some(&browser::read(BROWSER)))
}

#[track_caller]
fn assert_stopped(findings: &[Finding], rule: Rule, message: &str) {
    assert!(is_stopped(findings), "{findings:#?}");
    let matching = findings.iter().filter(|finding| finding.rule == rule && finding.message.contains(message));
    assert_eq!(matching.count(), 1, "{rule}: {message}\n{findings:#?}");
}

#[test]
fn a_good_library_passes() {
    assert_eq!(judge(|_| {}), []);
    assert_eq!(judge(|small| small.segment = 9), []);
}

#[test]
fn a_batch_size_that_did_not_take_is_stopped() {
    let findings =
        judge(|small| small.metadata = vec![METADATA.replace("\"max_batch_size\": 1", "\"max_batch_size\": 128")]);
    assert_stopped(&findings, Rule::Metadata, "max_batch_size: expected 1 (the pins), found 128");
    assert_eq!(findings.len(), 1);
}

#[test]
fn settings_that_changed_unasked_are_stopped() {
    for (before, after, message) in [
        (
            "\"context_window_size\": 256",
            "\"context_window_size\": 512",
            "expected 256 (the model's configuration), found 512",
        ),
        ("\"prefill_chunk_size\": 64", "\"other\": 64", "expected 64 (the model's configuration), found nothing"),
        ("\"qwen2\"", "\"qwen3\"", "model_type: expected \"qwen2\" (the model's configuration), found \"qwen3\""),
        ("_shards\": 1", "_shards\": 2", "tensor_parallel_shards"),
    ] {
        let findings = judge(|small| small.metadata = vec![METADATA.replace(before, after)]);
        assert_stopped(&findings, Rule::Metadata, message);
    }
}

#[test]
fn no_description_and_two_are_stopped() {
    assert_stopped(&judge(|small| small.metadata.clear()), Rule::Metadata, "found none");
    assert_stopped(&judge(|small| small.metadata.push(METADATA.into())), Rule::Metadata, "found 2");
}

#[test]
fn parameters_of_other_weights_are_stopped() {
    let change = |before: &str, after: &str| judge(|small| small.metadata = vec![METADATA.replace(before, after)]);
    let findings = change("one.weight", "three.weight");
    assert_stopped(&findings, Rule::Parameters, "that the weights lack: three.weight");
    assert_stopped(&findings, Rule::Parameters, "that the library does not know: one.weight");
    assert_stopped(
        &change("[2, 4]", "[4, 2]"),
        Rule::Parameters,
        "one.weight (float32 [4,2], in the weights float32 [2,4])",
    );
    assert_stopped(
        &change("[2, 4], \"dtype\": \"float32\"", "[2, 4], \"dtype\": \"float16\""),
        Rule::Parameters,
        "float16",
    );
}

#[test]
fn an_import_that_no_page_provides_is_named_and_explained() {
    let findings = judge(|small| small.imports.push(("env".into(), "TVMFFIGetCustomAllocator".into())));
    assert_stopped(&findings, Rule::Imports, "env.TVMFFIGetCustomAllocator, which the browser module does not provide");
    assert!(findings[0].hint.as_ref().unwrap().contains("custom_allocator.cc"));
    let findings = judge(|small| small.imports.push(("wasi_snapshot_preview1".into(), "fd_sync".into())));
    assert_stopped(&findings, Rule::Imports, "fd_sync");
    let findings = judge(|small| small.imports.push(("elsewhere".into(), "f".into())));
    assert_stopped(&findings, Rule::Imports, "imports from `elsewhere`");
}

#[test]
fn an_export_that_the_page_calls_must_be_there() {
    assert_stopped(&judge(|small| small.exports.clear()), Rule::Exports, "TVMFFIFunctionCall, _initialize");
}

#[test]
fn a_memory_that_no_page_can_use_is_stopped() {
    let change = |change: fn(&mut SmallLibrary)| judge(change);
    assert_stopped(&change(|small| small.memory.shared = true), Rule::Memory, "that threads share");
    assert_stopped(&change(|small| small.memory.memory64 = true), Rule::Memory, "found 64");
    assert_stopped(&change(|small| small.imports_memory = true), Rule::Memory, "the library imports it");
    assert_stopped(&change(|small| small.memory.maximum = Some(4)), Rule::Memory, "begins and ends with 4 pages");
    assert_stopped(&change(|small| small.memory.minimum = 0), Rule::Memory, "but the data ends at");
}

#[test]
fn a_library_without_shaders_is_stopped() {
    assert_stopped(&judge(|small| small.kernels.clear()), Rule::Shaders, "found none");
}

fn with_kernel(source: &str) -> Vec<Finding> {
    judge(|small| small.kernels[0].1 = source.to_owned())
}

#[test]
fn a_shader_that_is_not_valid_is_stopped() {
    let findings = with_kernel(&KERNEL.replace("array<f32, 64>", "array<f33, 64>"));
    assert_stopped(&findings, Rule::Shaders, "shader copy_kernel (address 0x");
    let read_only = KERNEL.replace("read_write> to_ptr", "read> to_ptr");
    assert_stopped(&with_kernel(&read_only), Rule::Shaders, "not valid");
}

#[test]
fn the_fault_of_0_26_is_recognised() {
    let all_written = KERNEL.replace("storage, read>", "storage, read_write>");
    let findings = with_kernel(&all_written);
    assert_stopped(&findings, Rule::Access, "found all 2 storage bindings declared read_write");
    assert_stopped(
        &findings,
        Rule::Access,
        "1 shaders declare buffers in another way than the runtime binds them: copy_kernel",
    );
    assert!(findings[0].hint.as_ref().unwrap().contains("0.26.0"));
}

#[test]
fn half_floats_are_where_the_quantization_wants_them() {
    let half = format!("// of a generator\nenable f16;\n{KERNEL}");
    assert_stopped(&with_kernel(&half), Rule::F16, "q4f32_1 computes without 16-bit floats, but 1 shaders enable them");
    let metadata = METADATA.replace("q4f32_1", "q4f16_1");
    let findings = judge(|small| small.metadata = vec![metadata.clone()]);
    assert_stopped(&findings, Rule::F16, "q4f16_1 computes with 16-bit floats, but no shader enables them");
    let findings = judge(|small| {
        small.metadata = vec![metadata];
        small.kernels[0].1 = half;
    });
    assert!(findings.iter().all(|finding| finding.rule == Rule::Metadata), "{findings:#?}");
}

#[test]
fn what_no_device_gives_is_stopped_and_what_the_module_asks_for_is_noted() {
    let findings = with_kernel(&KERNEL.replace("@workgroup_size(64, 1, 1)", "@workgroup_size(64, 8, 1)"));
    assert_stopped(&findings, Rule::Limits, "copy_kernel needs maxComputeInvocationsPerWorkgroup 512, above");
    let findings = with_kernel(&KERNEL.replace("f32, 64>", "f32, 4097>"));
    assert_stopped(&findings, Rule::Limits, "maxComputeWorkgroupStorageSize 16388");
    let buffer = |at: u32| format!("@group(0) @binding({at}) var<storage, read> more{at} : array<f32>;\n");
    let buffers = (3..11).map(buffer).collect::<Vec<_>>().concat();
    let findings = judge(|small| {
        small.kernels[0].1 = format!("{buffers}{KERNEL}");
        small.kernels[0].2 = "paramWriteAccess:[0,1,0,0,0,0,0,0,0,0]".into();
    });
    assert!(!is_stopped(&findings), "{findings:#?}");
    assert!(findings[0].message.contains("maxStorageBuffersPerShaderStage 10"), "{findings:#?}");
}

#[test]
fn an_accepted_rule_stops_nothing_and_is_still_reported() {
    let mut findings = judge(|small| small.kernels.clear());
    accept(&mut findings, &[Rule::Limits].into());
    assert!(is_stopped(&findings));
    accept(&mut findings, &[Rule::Shaders].into());
    assert!(!is_stopped(&findings) && findings[0].severity == Severity::Accepted);
}

fn machine() -> Machine {
    Machine {
        directories: vec![
            ("the workspace", "/srv/builds/site/.rebuild/one".into()),
            ("the pins' directory", "/srv".into()),
        ],
        home: Some(format!("/{}", "root")),
        user: Some("root".into()),
        host: Some("builder-7".into()),
    }
}

/// `HOME` in the text stands for the name of the superuser's home directory.
fn leaks(text: &str) -> Vec<String> {
    let text = text.replace("HOME", "root");
    judge_leaks("a", &Scanner::search(&machine(), text.as_bytes())).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn names_of_the_machine_are_found() {
    for (text, what) in [
        (
            "x\0/srv/builds/site/.rebuild/one/out/lib.cc\0",
            "names the workspace /srv/builds/site/.rebuild/one, first at byte 2",
        ),
        ("/srv/builds/site/.rebuild/one", "names the workspace"),
        ("see file:///HOME/.cache/x", "names the home directory /"),
        ("=/srv/include", "names the pins' directory /srv"),
        ("-I/srv/builds/site/.rebuild/one/include", "names the workspace"),
        ("/srv/builds/site/.rebuild/one2", "names the pins' directory"),
        ("/home/HOME/x /home/HOME/y", "names the user root, 2 times"),
        ("C:\\Users\\HOME\\x", "names the user root"),
        ("built by root@builder-7.", "names the host builder-7"),
        ("on builder-7: yes", "names the host builder-7"),
    ] {
        let found = leaks(text);
        assert!(found.len() == 1 && found[0].starts_with(what), "{text}: {found:?}");
    }
}

#[test]
fn a_host_whose_name_is_a_word_is_found_with_its_user() {
    let machine = Machine { host: Some("build".into()), user: Some("ann".into()), ..Machine::default() };
    let found = Scanner::search(&machine, b"build by ann@build: ann@builds");
    assert_eq!(found.iter().map(|leak| (leak.offset, leak.count)).collect::<Vec<_>>(), [(9, 1)]);
}

#[test]
fn common_words_are_no_leak() {
    for text in [
        "the root of a tree, /HOME: HOME/ roots /rooted/x",
        "lib/HOME/x ./HOME/x /srv0/x",
        "/home/rooted/x /home/",
        "rebuilder-7 builder-77 builder",
    ] {
        assert_eq!(leaks(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_name_is_found_however_the_file_is_cut() {
    use std::io::Write;
    let mut bytes = vec![b'.'; 3000];
    let path = b" /srv/builds/site/.rebuild/one ";
    bytes[1500..1500 + path.len()].copy_from_slice(path);
    for size in [1, 7, 100, 256, 1000] {
        let mut scanner = Scanner::new(&machine());
        for part in bytes.chunks(size) {
            scanner.write_all(part).unwrap();
        }
        let found = scanner.finish();
        assert_eq!(
            found.iter().map(|leak| (leak.offset, leak.count)).collect::<Vec<_>>(),
            [(1501, 1), (1501, 1)],
            "{size}"
        );
    }
}

#[test]
fn memory_is_compared_by_function() {
    let metadata = |text: &str| serde_json::from_str(text).unwrap();
    let before = metadata(METADATA);
    let after = metadata(&METADATA.replace("\"decode\": 96", "\"decode\": 12288, \"sample\": 4"));
    assert_eq!(
        compare_memory(&before, &after),
        [
            "decode plans 12288 bytes of work memory, before 96 bytes",
            "sample plans 4 bytes of work memory, before nothing"
        ]
    );
    assert!(compare_memory(&before, &before).is_empty());
}
