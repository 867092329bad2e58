use super::*;

/// A Mach-O library for a 64-bit ARM processor, byte by byte: one needed library, these symbols.
fn mach_o(kind: u32, symbols: &[&str]) -> Vec<u8> {
    let library = b"@rpath/libtvm_runtime.dylib\0\0\0\0\0";
    let commands = 24 + library.len() + 24;
    let symbols_at = 32 + commands;
    let mut strings = vec![0];
    let mut table = Vec::new();
    for symbol in symbols {
        table.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
        // External and absolute: there are no sections.
        table.extend([0x03, 0, 0, 0]);
        table.extend(0x1000_u64.to_le_bytes());
        strings.extend(symbol.as_bytes());
        strings.push(0);
    }
    let words = |words: &[usize]| words.iter().flat_map(|word| u32::try_from(*word).unwrap().to_le_bytes()).collect();
    let header: Vec<u8> = words(&[0xfeed_facf, 0x0100_000c, 0, kind as usize, 2, commands, 0, 0]);
    let load: Vec<u8> = words(&[0xc, 24 + library.len(), 24, 0, 0, 0]);
    let lookup: Vec<u8> = words(&[2, 24, symbols_at, symbols.len(), symbols_at + table.len(), strings.len()]);
    [header, load, library.to_vec(), lookup, table, strings].concat()
}

const DYLIB: u32 = 6;

/// A universal binary of `parts`.
fn universal(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0xcafe_babe_u32, u32::try_from(parts.len()).unwrap()].iter().flat_map(|w| w.to_be_bytes()).collect();
    let mut at = 4096;
    for part in parts {
        let size = u32::try_from(part.len()).unwrap();
        bytes.extend([0x0100_000c, 0, at, size, 12].iter().flat_map(|word: &u32| word.to_be_bytes()));
        at += 4096;
    }
    bytes.resize(bytes.len().max(64), 0);
    for part in parts {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(part);
    }
    bytes
}

fn check_bytes(bytes: &[u8], exports: &[&str]) -> Result<SymbolReport, SymbolError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    check(file.path(), &exports.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

#[test]
fn mach_o_names_lose_their_underscore() {
    let bytes = mach_o(DYLIB, &["_TVMFFIObjectGetTypeIndex", "__ZN3tvm", "_TVMFFIFunctionCall"]);
    let report = check_bytes(&bytes, &["TVMFFIFunctionCall", "_ZN3tvm"]).unwrap();
    assert_eq!(report.format, "mach-o");
    assert_eq!(report.architectures, ["aarch64"]);
    assert_eq!(report.needed, ["@rpath/libtvm_runtime.dylib"]);
    assert_eq!(report.exports, ["TVMFFIFunctionCall", "_ZN3tvm"]);
    assert_eq!(report.exported, 3);
}

#[test]
fn all_missing_symbols_are_named_with_what_resembles_them() {
    let bytes = mach_o(DYLIB, &["_TVMFFIFunctionCall", "_TVMFFIGetCustomAllocator", "_tvmffierrorcreate", "_other"]);
    let wanted = ["TVMFFIFunctionCall", "TVMFFIGetCustomAllocators", "TVMFFIErrorCreate", "unheard_of_thing"];
    let error = check_bytes(&bytes, &wanted).unwrap_err();
    assert_eq!(error.class(), Class::Artifact);
    let text = error.to_string();
    assert!(
        text.ends_with(
            "does not export 3 of 4 symbols: TVMFFIGetCustomAllocators, TVMFFIErrorCreate, unheard_of_thing"
        ),
        "{text}"
    );
    assert_eq!(
        error.detail().unwrap(),
        "TVMFFIGetCustomAllocators: similar are TVMFFIGetCustomAllocator\n\
         TVMFFIErrorCreate: similar are tvmffierrorcreate\n\
         unheard_of_thing: nothing similar is exported"
    );
}

#[test]
fn every_part_of_a_universal_binary_must_export_what_is_wanted() {
    let (full, poor) = (mach_o(DYLIB, &["_a", "_b"]), mach_o(DYLIB, &["_a"]));
    let report = check_bytes(&universal(&[full.clone(), full.clone()]), &["a", "b"]).unwrap();
    assert_eq!(report.architectures.len(), 2);
    assert_eq!(report.needed.len(), 1);
    for parts in [[full.clone(), poor.clone()], [poor, full]] {
        let error = check_bytes(&universal(&parts), &["a", "b"]).unwrap_err();
        assert!(error.to_string().ends_with("does not export 1 of 2 symbols: b"), "{error}");
    }
    assert!(matches!(check_bytes(&universal(&[]), &[]).unwrap_err(), SymbolError::Damaged { .. }));
}

#[test]
fn what_is_not_a_library_is_said_to_be_what_it_is() {
    let found = |bytes: &[u8]| match check_bytes(bytes, &["a"]).unwrap_err() {
        SymbolError::NotALibrary { found, .. } => found,
        other => panic!("{other}"),
    };
    assert_eq!(found(b""), "an unknown format");
    assert_eq!(found(b"#!/bin/sh\necho this is a script, not a library\n"), "an unknown format");
    assert_eq!(found(b"!<arch>\nlib.o/          "), "archive");
    assert_eq!(found(&mach_o(1, &["_a"])), "an object file that is not linked");
    assert_eq!(found(&mach_o(2, &["_a"])), "a program");
    let directory = tempfile::tempdir().unwrap();
    let error = check(directory.path(), &[]).unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
    let error = check(&directory.path().join("libx.so"), &[]).unwrap_err();
    assert!(error.to_string().contains("libx.so"), "{error}");
}

#[test]
fn a_truncated_library_is_damaged_and_nothing_panics() {
    let bytes = mach_o(DYLIB, &["_a", "_b"]);
    for length in 0..bytes.len() {
        match check_bytes(&bytes[..length], &["b"]) {
            Err(SymbolError::NotALibrary { .. } | SymbolError::Damaged { .. }) => {}
            other => panic!("{length}: {other:?}"),
        }
    }
}

/// A real ELF library that every program on such a host has loaded.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_real_elf_library_is_read() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc.so"));
    let Some(path) = path.map(PathBuf::from) else { return };
    let report = check(&path, &["malloc".into(), "printf".into()]).unwrap();
    assert_eq!(report.format, "elf");
    assert!(report.exported > 500);
    assert!(report.needed.iter().any(|name| name.contains("ld-linux")), "{:?}", report.needed);
    let SymbolError::Missing { missing, .. } = check(&path, &["mallocc".into()]).unwrap_err() else { panic!() };
    assert_eq!(missing[0].near[0], "malloc");
    // The program itself is no library, though it has the shape of one.
    let program = std::env::current_exe().unwrap();
    let found = check(&program, &[]);
    assert!(matches!(found, Err(SymbolError::NotALibrary { .. })), "{found:?}");
}
