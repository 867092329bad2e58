use proptest::prelude::*;

use super::*;
use crate::artifact::library;
use crate::small_library::{KERNEL, METADATA, SmallLibrary};

fn library(change: impl FnOnce(&mut SmallLibrary)) -> Vec<u8> {
    let mut small = SmallLibrary::default();
    change(&mut small);
    small.bytes()
}

#[test]
fn a_module_is_read_whole() {
    let module = read(&SmallLibrary::default().bytes()).unwrap();
    let imports: Vec<String> =
        module.imports.iter().map(|import| format!("{}.{}", import.module, import.name)).collect();
    assert_eq!(imports, ["env.TVMFFIWasmSafeCall", "wasi_snapshot_preview1.fd_write"]);
    assert_eq!(module.imports[0].signature.as_deref(), Some("(i32, i64) -> i32"));
    let exports: Vec<_> = module.exports.iter().map(|export| (export.name.as_str(), export.kind)).collect();
    assert_eq!(exports, [("memory", "memory"), ("TVMFFIFunctionCall", "function"), ("_initialize", "function")]);
    assert_eq!(
        module.memories,
        [Memory { minimum: 4, maximum: Some(100), shared: false, wide: false, imported: false }]
    );
    assert_eq!(module.features.iter().collect::<Vec<_>>(), ["bigint", "sign_extension"]);
    let names: Vec<&str> = module.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["type", "import", "function", "memory", "export", "code", "data", "producers"]);
}

#[test]
fn memory_is_one_however_it_is_cut_into_segments() {
    let whole = library::read(&SmallLibrary::default().bytes()).unwrap();
    for segment in [1, 7, 8, 64, 1000] {
        let mut cut = library::read(&library(|small| small.segment = segment)).unwrap();
        cut.sections.clone_from(&whole.sections);
        assert_eq!(cut, whole, "{segment}");
    }
}

#[test]
fn the_metadata_ends_where_its_object_does() {
    let module = read(&SmallLibrary::default().bytes()).unwrap();
    let found = metadata::find(&module.image).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].size, found[0].place.as_str()), (METADATA.len(), "address 0x40a"));
    assert_eq!(found[0].metadata.settings["max_batch_size"], 1);
    assert_eq!(found[0].metadata.memory_usage["prefill"], 1024);
    assert_eq!(found[0].metadata.params[1].name, "two.weight");
}

#[test]
fn metadata_that_is_cut_short_is_an_error_with_a_place() {
    for length in [13, 14, 60, METADATA.len() - 1] {
        let bytes = library(|small| small.metadata = vec![format!("{}\0", &METADATA[..length])]);
        let error = library::read(&bytes).unwrap_err().to_string();
        assert!(error.starts_with("the model metadata at address 0x40a cannot be read: "), "{error}");
    }
}

#[test]
fn a_shader_has_its_name_its_text_and_what_is_written() {
    let module = read(&SmallLibrary::default().bytes()).unwrap();
    let shaders = shaders::find_shaders(&module.image);
    assert_eq!(shaders.len(), 1);
    assert_eq!(shaders[0].name.as_deref(), Some("copy_kernel"));
    assert_eq!(shaders[0].text, KERNEL);
    assert_eq!(shaders[0].writes, Some(vec![false, true]));
}

#[test]
fn shaders_without_lengths_are_found_too() {
    let bytes = library(|small| {
        small.kernels.clear();
        small.text = format!("\u{1}{KERNEL}\u{2}\u{1}{}", KERNEL.replace("copy", "other"));
    });
    let library = library::read(&bytes).unwrap();
    let names: Vec<&str> = library.shaders.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["copy_kernel", "other_kernel"]);
    assert!(library.shaders.iter().all(|kernel| kernel.wgsl.is_some()));
}

#[test]
fn what_ends_too_early_says_where() {
    let bytes = SmallLibrary::default().bytes();
    for length in [8, 15, bytes.len() / 2, bytes.len() - 1] {
        let error = read(&bytes[..length]);
        // The first eight bytes are a module by themselves.
        if length == 8 {
            assert!(error.is_ok());
            continue;
        }
        let error = error.unwrap_err().to_string();
        assert!(error.contains("at offset 0x") && error.contains(&format!("of {length} bytes")), "{error}");
    }
    let error = read(b"\x7fELF").unwrap_err().to_string();
    assert!(error.contains("offset 0x0"), "{error}");
    assert_eq!(read(b"\0asm\x0d\0\x01\0").unwrap_err(), WasmError::Component);
}

#[test]
fn later_segments_stand_and_gaps_are_zeros() {
    let segment = |address, bytes| memory::Segment { address, bytes };
    let image = Image::of(&[
        segment(Some(10), b"abcdef".as_slice()),
        segment(None, b"passive"),
        segment(Some(12), b"XY"),
        segment(Some(20), b"z"),
        segment(Some(100_000), b"far"),
        segment(Some(u64::MAX), b"beyond all"),
        segment(Some(5), b""),
    ]);
    let runs: Vec<(Option<u64>, &[u8])> = image.runs().iter().map(|run| (run.address, run.bytes.as_slice())).collect();
    let expected: [(Option<u64>, &[u8]); 3] =
        [(Some(10), b"abXYef\0\0\0\0z"), (Some(100_000), b"far"), (None, b"passive")];
    assert_eq!(runs, expected);
    assert_eq!(image.find(b"XYef").map(|(run, at)| run.place(at)).collect::<Vec<_>>(), ["address 0xc"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_modules_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>(), cuts in any::<bool>(),
    ) {
        let mut bytes = SmallLibrary { segment: 100, ..SmallLibrary::default() }.bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = library::read(&bytes);
    }

    #[test]
    fn mutated_metadata_never_panics(at in 0..METADATA.len(), text in "\\PC{0,12}") {
        let mut metadata = METADATA.to_owned();
        metadata.replace_range(at..=at, &text);
        let _ = library::read(&library(|small| small.metadata = vec![metadata]));
    }

    #[test]
    fn mutated_shaders_never_panic(at in 0..KERNEL.len(), length in 0_usize..20, text in "\\PC{0,12}|[@<>(){}\\[\\];:,.0-9a-z ]{0,20}") {
        let mut source = KERNEL.to_owned();
        source.replace_range(at..(at + length).min(KERNEL.len()), &text);
        let _ = crate::artifact::wgsl::read(&source);
    }
}
