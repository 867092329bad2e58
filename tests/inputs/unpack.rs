//! Archives: what is taken out of them, and what is refused.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::unpack::{UnpackError, Unpacked, unpack};
use tar::EntryType;
use zip::write::SimpleFileOptions;

use crate::desk::{Desk, files_below};

/// A member: its name, and what it is.
#[derive(Clone, Copy)]
enum Member {
    File(&'static str, &'static str),
    Program(&'static str, &'static str),
    Directory(&'static str),
    Link(&'static str, &'static str),
}

use Member::{Directory, Link, Program};

fn zip(desk: &Desk, members: &[Member]) -> PathBuf {
    let path = desk.path("archive");
    let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
    let plain = SimpleFileOptions::default().unix_permissions(0o644);
    for member in members {
        match *member {
            Member::File(name, content) | Program(name, content) => {
                let program = matches!(member, Program(..));
                let mode = if program { 0o755 } else { 0o644 };
                writer.start_file(name, plain.unix_permissions(mode)).unwrap();
                writer.write_all(content.as_bytes()).unwrap();
            }
            Directory(name) => writer.add_directory(name, plain).unwrap(),
            Link(name, target) => writer.add_symlink(name, target, plain).unwrap(),
        }
    }
    writer.finish().unwrap();
    path
}

fn tar_bytes(members: &[Member]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for member in members {
        let (name, kind, mode, content, target) = match *member {
            Member::File(name, content) => (name, EntryType::Regular, 0o644, content, ""),
            Program(name, content) => (name, EntryType::Regular, 0o755, content, ""),
            Directory(name) => (name, EntryType::Directory, 0o755, "", ""),
            Link(name, target) => (name, EntryType::Symlink, 0o777, "", target),
        };
        builder.append(&header(name, kind, mode, content.len(), target), content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A header with any name: the crate's own setters refuse what a hostile archive has.
fn header(name: &str, kind: EntryType, mode: u32, size: usize, target: &str) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    let fields = header.as_ustar_mut().unwrap();
    fields.name[..name.len()].copy_from_slice(name.as_bytes());
    fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_cksum();
    header
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open(desk: &Desk, archive: &Path, strip: u32, only: &[&str]) -> Result<Unpacked, UnpackError> {
    let _ = std::fs::remove_dir_all(desk.path("out"));
    let only: Vec<String> = only.iter().map(ToString::to_string).collect();
    unpack(archive, &desk.path("out/tree"), strip, &only, &[])
}

/// The same members as each kind of archive.
fn archives(members: &[Member]) -> Vec<(&'static str, Desk, PathBuf)> {
    let make = |kind| {
        let desk = Desk::new();
        let archive = match kind {
            "zip" => zip(&desk, members),
            "tar" => desk.write("archive", tar_bytes(members)),
            "tar.gz" => desk.write("archive", gzip(&tar_bytes(members))),
            _ => desk.write("archive", xz(&tar_bytes(members))),
        };
        (kind, desk, archive)
    };
    ["zip", "tar", "tar.gz", "tar.xz"].map(make).into()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

const MEMBERS: [Member; 6] = [
    Directory("pkg-1.0/"),
    Member::File("pkg-1.0/include/a.h", "header"),
    Program("pkg-1.0/bin/tool", "#!/bin/sh"),
    Link("pkg-1.0/lib/deep/liba.so", "../../include/./a.h"),
    Directory("pkg-1.0/empty/"),
    Member::File("pkg-1.0/include2", "other"),
];

#[test]
fn every_kind_gives_the_same_tree() {
    for (kind, desk, archive) in archives(&MEMBERS) {
        let unpacked = open(&desk, &archive, 1, &[]).unwrap();
        assert_eq!(unpacked, Unpacked { files: 4, bytes: 20 }, "{kind}");
        let at = |path: &str| desk.path("out/tree").join(path);
        assert_eq!(std::fs::read(at("lib/deep/liba.so")).unwrap(), b"header");
        let mode = |path: &str| std::fs::metadata(at(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("bin/tool"), mode("include/a.h")), (0o755, 0o644), "{kind}");
        assert!(at("empty").is_dir());
    }
}

#[test]
fn only_what_is_asked_for_is_taken_and_must_be_there() {
    for (kind, desk, archive) in archives(&MEMBERS) {
        open(&desk, &archive, 1, &["include", "bin/tool"]).unwrap();
        let found = files_below(&desk.path("out/tree")).len();
        assert_eq!(found, 2, "{kind}");
        let error = open(&desk, &archive, 1, &["include/", "share"]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("has no `share`") && text.contains("bin/tool"), "{kind}: {text}");
        let error = open(&desk, &archive, 9, &[]).unwrap_err();
        assert!(matches!(error, UnpackError::Nothing { .. }), "{kind}: {error}");
        assert_eq!(error.class(), Class::Step);
    }
}

#[test]
fn nothing_is_written_outside() {
    let names = ["../evil", "a/../../evil", "/evil", "a/..", ".."];
    for name in names {
        for (kind, desk, archive) in archives(&[Member::File("good", ""), Member::File(name, "evil")]) {
            let error = open(&desk, &archive, 0, &[]).unwrap_err();
            assert!(matches!(&error, UnpackError::Name { member, .. } if member == name), "{kind}: {error}");
            // Stripping leading parts makes no such name good.
            assert!(matches!(open(&desk, &archive, 1, &[]), Err(UnpackError::Name { .. })), "{kind} {name}");
            assert!(files_below(&desk.path("")).iter().all(|path| !path.ends_with("evil")));
        }
    }
    let desk = Desk::new();
    let archive = zip(&desk, &[Member::File("a\\..\\..\\evil", "")]);
    assert!(matches!(open(&desk, &archive, 0, &[]), Err(UnpackError::Name { .. })));
}

#[test]
fn links_stay_inside_and_nothing_is_written_through_them() {
    for target in ["../outside", "/etc", "x/../../..", "d/../..", ""] {
        for (kind, desk, archive) in archives(&[Directory("d/"), Link("link", target)]) {
            // A tar cannot tell an empty target; both are refused.
            let error = open(&desk, &archive, 0, &[]).unwrap_err();
            assert!(matches!(error, UnpackError::Link { .. }), "{kind} {target}: {error}");
        }
    }
    // The link alone is good; a member below it would land in its target.
    for (kind, desk, archive) in archives(&[Directory("d/"), Link("link", "d"), Member::File("link/x", "")]) {
        let error = open(&desk, &archive, 0, &[]).unwrap_err();
        assert!(matches!(error, UnpackError::Twice { .. }), "{kind}: {error}");
        assert!(files_below(&desk.path("out")).is_empty());
    }
    // `up -> .` makes `up/..` leave the tree although it does not look so.
    for (kind, desk, archive) in archives(&[Link("up", "."), Link("link", "up/..")]) {
        let error = open(&desk, &archive, 0, &[]).unwrap_err();
        assert!(matches!(error, UnpackError::Link { .. }), "{kind}: {error}");
    }
}

#[test]
fn a_path_that_is_there_twice_is_refused() {
    let cases: [&[Member]; 4] = [
        &[Member::File("a", "1"), Member::File("./a", "2")],
        &[Member::File("x/a", "1"), Member::File("x//a", "2")],
        &[Member::File("a", "1"), Member::File("a/b", "2")],
        &[Member::File("a/b", "1"), Member::File("a", "2")],
    ];
    for members in cases {
        for (kind, desk, archive) in archives(members) {
            let error = open(&desk, &archive, 0, &[]).unwrap_err();
            assert!(matches!(error, UnpackError::Twice { .. }), "{kind}: {error}");
        }
    }
    // Two equal names, which the crate would not write: one of another length is renamed in place.
    let desk = Desk::new();
    let archive = zip(&desk, &[Member::File("aaaa", "1"), Member::File("bbbb", "2")]);
    let bytes = std::fs::read(&archive).unwrap();
    let text: Vec<u8> = bytes.iter().map(|byte| if *byte == b'b' { b'a' } else { *byte }).collect();
    std::fs::write(&archive, text).unwrap();
    let error = open(&desk, &archive, 0, &[]).unwrap_err();
    assert!(matches!(error, UnpackError::Twice { .. }), "{error}");
}

#[test]
fn devices_and_strange_members_of_a_tar_are_refused() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::new(b'V')] {
        let desk = Desk::new();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header("dev", kind, 0o644, 0, ""), &b""[..]).unwrap();
        let archive = desk.write("archive", builder.into_inner().unwrap());
        let error = open(&desk, &archive, 0, &[]).unwrap_err();
        assert!(matches!(&error, UnpackError::Special { member, .. } if member == "dev"), "{error}");
    }
}

#[test]
fn hard_links_become_copies_of_earlier_members_only() {
    let make = |desk: &Desk, target: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header("p/a", EntryType::Regular, 0o755, 3, ""), &b"one"[..]).unwrap();
        builder.append(&header("p/b", EntryType::Link, 0o644, 0, target), &b""[..]).unwrap();
        desk.write("archive", builder.into_inner().unwrap())
    };
    let desk = Desk::new();
    let archive = make(&desk, "p/a");
    assert_eq!(open(&desk, &archive, 1, &[]).unwrap().bytes, 6);
    std::fs::write(desk.path("out/tree/a"), "two").unwrap();
    assert_eq!(std::fs::read(desk.path("out/tree/b")).unwrap(), b"one");
    let archive = make(&desk, "p/none");
    assert!(matches!(open(&desk, &archive, 1, &[]), Err(UnpackError::Link { .. })));
    let archive = make(&desk, "/etc/passwd");
    assert!(matches!(open(&desk, &archive, 1, &[]), Err(UnpackError::Name { .. })));
}

#[test]
fn damage_is_noticed() {
    let whole = gzip(&tar_bytes(&[Member::File("a", "content"), Member::File("b", "more")]));
    let mut flipped = whole.clone();
    let crc = flipped.len() - 6;
    flipped[crc] ^= 1;
    let tar = tar_bytes(&[Member::File("a", "content")]);
    let xz = xz(&tar);
    let mut other = xz.clone();
    other[xz.len() / 2] ^= 1;
    let trailing = [&xz[..], b"rest"].concat();
    for bytes in [
        &whole[..whole.len() / 2],
        &whole[..whole.len() - 4],
        &flipped,
        &tar[..516],
        &xz[..xz.len() / 2],
        &xz[..xz.len() - 4],
        &other,
        &trailing,
    ] {
        let desk = Desk::new();
        let archive = desk.write("archive", bytes);
        let error = open(&desk, &archive, 0, &[]).unwrap_err();
        assert!(matches!(error, UnpackError::Damaged { .. } | UnpackError::Size { .. }), "{error}");
    }
    let desk = Desk::new();
    let archive = zip(&desk, &[Member::File("a", "content content content")]);
    let bytes = std::fs::read(&archive).unwrap();
    std::fs::write(&archive, &bytes[..bytes.len() - 10]).unwrap();
    assert!(matches!(open(&desk, &archive, 0, &[]), Err(UnpackError::Damaged { .. })));
    // The size in the directory is not that of the content.
    let mut lying = bytes.clone();
    let directory = lying.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    lying[directory + 24] = 7;
    std::fs::write(&archive, &lying).unwrap();
    let error = open(&desk, &archive, 0, &[]).unwrap_err();
    assert!(matches!(error, UnpackError::Size { expected: 7, .. } | UnpackError::Damaged { .. }), "{error}");
}

#[test]
fn what_is_no_archive_is_described() {
    let cases: [(&[u8], &str); 5] = [
        (b"<html>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"BZh9", "a bzip2 file"),
        (b"", "an empty file"),
        (b"zzzz", "begins with [7a, 7a, 7a, 7a]"),
    ];
    for (bytes, expected) in cases {
        let desk = Desk::new();
        let archive = desk.write("archive.zip", bytes);
        let error = open(&desk, &archive, 0, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let desk = Desk::new();
    let archive = zip(&desk, &[Member::File("a", "new")]);
    desk.write("full/a", "old");
    let error = unpack(&archive, &desk.path("full"), 0, &[], &[]).unwrap_err();
    assert!(matches!(error, UnpackError::NotEmpty { .. }), "{error}");
    assert_eq!(std::fs::read(desk.path("full/a")).unwrap(), b"old");
}

#[test]
fn what_is_excepted_stays_out_and_must_be_there() {
    let members = [Member::File("p/a", "a"), Member::File("p/lib/b", "b"), Member::File("p/library", "c")];
    for (kind, desk, archive) in archives(&members) {
        let open = |except: &str| {
            let _ = std::fs::remove_dir_all(desk.path("out"));
            unpack(&archive, &desk.path("out/tree"), 0, &["p".to_owned()], &[except.to_owned()])
        };
        open("p/lib/").unwrap();
        assert!(!desk.path("out/tree/p/lib").exists(), "{kind}");
        assert!(desk.path("out/tree/p/library").exists() && desk.path("out/tree/p/a").exists(), "{kind}");
        // One that excepts nothing is a slip of whoever wrote it.
        let error = open("p/libs").unwrap_err();
        assert!(matches!(&error, UnpackError::Nothing { wanted, .. } if wanted == "p/libs"), "{kind}: {error}");
    }
}
