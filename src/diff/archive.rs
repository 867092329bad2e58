//! Archives, by member: zip (and so wheels), and tar.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::finding::Sink;
use super::{Body, DiffError, bytes, compare_files};
use crate::digest::{Digest, hash_reader};

/// The most members that are looked at, and the most bytes that are unpacked of one.
const MOST_MEMBERS: usize = 1_000_000;
const LARGEST_MEMBER: u64 = 1 << 30;

/// A member besides its content: what is told of it when it differs.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    /// Where it stands in the archive.
    index: usize,
    /// Its content's digest and size; none for a member that is larger than is unpacked.
    content: Option<(Digest, u64)>,
    /// Everything else that the archive says of it, by name.
    properties: Vec<(&'static str, String)>,
}

type Members = BTreeMap<String, Member>;

/// Compares two zip archives.
pub(super) fn compare_zips(left: &Body, right: &Body, depth: usize, sink: &mut Sink) -> Result<(), DiffError> {
    let opened = |body: &Body| Ok::<_, DiffError>(zip::ZipArchive::new(BufReader::new(body.open()?)));
    let (mut one, mut other) = match (opened(left)?, opened(right)?) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => return unreadable(one.err(), other.err(), left, right, sink),
    };
    let (before, after) = match (list_zip(&mut one, sink)?, list_zip(&mut other, sink)?) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => return unreadable(before.err(), after.err(), left, right, sink),
    };
    let mut extract = |side: Side, index: usize, name: &str| {
        let archive = if side == Side::Left { &mut one } else { &mut other };
        Body::copy(name, |file| {
            let mut member = archive.by_index(index).map_err(io::Error::other)?.take(LARGEST_MEMBER);
            io::copy(&mut member, file).map(drop)
        })
    };
    let count = sink.count();
    compare_members(&before, &after, depth, sink, &mut extract)?;
    let whole = names_each_once(left, before.len())? && names_each_once(right, after.len())?;
    say_if_nothing(count, whole && is_whole(&before) && is_whole(&after), left, right, sink, "zip")
}

/// Compares two tar archives.
pub(super) fn compare_tars(left: &Body, right: &Body, depth: usize, sink: &mut Sink) -> Result<(), DiffError> {
    let (before, after) = match (list_tar(left.open()?, sink), list_tar(right.open()?, sink)) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => {
            sink.check()?;
            return unreadable(before.err(), after.err(), left, right, sink);
        }
    };
    let mut extract = |side: Side, index: usize, name: &str| {
        let body = if side == Side::Left { left } else { right };
        let mut archive = tar::Archive::new(BufReader::new(body.open()?));
        Body::copy(name, |file| {
            let mut entries = archive.entries()?;
            let entry = entries.nth(index).unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))?;
            io::copy(&mut entry.take(LARGEST_MEMBER), file).map(drop)
        })
    };
    let count = sink.count();
    compare_members(&before, &after, depth, sink, &mut extract)?;
    say_if_nothing(count, is_whole(&before) && is_whole(&after), left, right, sink, "tar")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn compare_members(
    before: &Members,
    after: &Members,
    depth: usize,
    sink: &mut Sink,
    extract: &mut dyn FnMut(Side, usize, &str) -> Result<Body, DiffError>,
) -> Result<(), DiffError> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        sink.check()?;
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) => {
                sink.within(format!("member {name}"), |sink| {
                    let others: BTreeMap<_, _> = other.properties.iter().map(|(key, value)| (*key, value)).collect();
                    for (key, value) in &one.properties {
                        let other = others.get(key).map(|value| value.as_str());
                        if other != Some(value.as_str()) {
                            sink.add(key, Some(value), other);
                        }
                    }
                    if one.content == other.content && one.content.is_some() {
                        return Ok(());
                    }
                    if sink.is_full() {
                        sink.leave_out(1);
                        return Ok(());
                    }
                    let (one, other) =
                        (extract(Side::Left, one.index, name)?, extract(Side::Right, other.index, name)?);
                    compare_files(&one, &other, depth + 1, sink).map(drop)
                })?;
            }
            (one, other) => {
                let show = |member: Option<&Member>| {
                    let (digest, size) = member?.content?;
                    Some(format!("{size} bytes, sha256 {digest}"))
                };
                let one = one.map(|member| show(Some(member)).unwrap_or_else(|| "present".into()));
                let other = other.map(|member| show(Some(member)).unwrap_or_else(|| "present".into()));
                sink.add(&format!("member {name}"), one.as_deref(), other.as_deref());
            }
        }
    }
    let order = |members: &Members| {
        let mut names: Vec<_> = members.iter().collect();
        names.sort_by_key(|(_, member)| member.index);
        names.into_iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let (first, second) = (order(before), order(after));
    if before.len() == after.len()
        && before.keys().eq(after.keys())
        && let Some(at) = first.iter().zip(&second).position(|(one, other)| one != other)
    {
        let name = format!("order of members, from the {}. on", at + 1);
        sink.add(&name, Some(&first[at]), Some(&second[at]));
    }
    Ok(())
}

/// No difference was found, and the archives are not the same: where all of every member was looked
/// at, something between them differs.
fn say_if_nothing(
    count: u64,
    whole: bool,
    left: &Body,
    right: &Body,
    sink: &mut Sink,
    kind: &str,
) -> Result<(), DiffError> {
    if sink.count() > count {
        return Ok(());
    }
    let text = |body: &Body| format!("{} bytes", body.size);
    if whole {
        let name = format!("{kind} structure: every member is the same, and the archives are not");
        sink.add_repacked(&name, Some(&text(left)), Some(&text(right)));
        return Ok(());
    }
    let name = format!("{kind}: what was compared is the same; a name stands twice, or there is more than is unpacked");
    sink.add(&name, Some(&text(left)), Some(&text(right)));
    bytes::compare(left, right, sink)
}

/// Whether every member, and all of it, was looked at.
fn is_whole(members: &Members) -> bool {
    members.len() < MOST_MEMBERS && members.values().all(|member| member.content.is_some())
}

/// Whether a zip archive's directory has as many entries as there are names: of those with one name
/// only the last can be opened. Their number stands in the record at the archive's end (APPNOTE.TXT,
/// section 4.3.16).
fn names_each_once(body: &Body, names: usize) -> Result<bool, DiffError> {
    const RECORD: usize = 22;
    let unreadable = |source| DiffError::Unreadable { path: body.path.clone(), source };
    let mut file = body.open()?;
    // A comment of up to 65535 bytes may follow.
    file.seek(SeekFrom::Start(body.size.saturating_sub(RECORD as u64 + 0xffff))).map_err(unreadable)?;
    let mut end = Vec::new();
    file.take(RECORD as u64 + 0xffff).read_to_end(&mut end).map_err(unreadable)?;
    let record = end.windows(RECORD).rev().find(|bytes| bytes.starts_with(b"PK\x05\x06"));
    let entries = record.map(|bytes| usize::from(u16::from_le_bytes([bytes[10], bytes[11]])));
    // The largest number says that the true one stands elsewhere.
    Ok(entries.is_some_and(|entries| entries == names || (entries == 0xffff && names > entries)))
}

/// One of the archives cannot be listed.
fn unreadable<E: std::fmt::Display>(
    one: Option<E>,
    other: Option<E>,
    left: &Body,
    right: &Body,
    sink: &mut Sink,
) -> Result<(), DiffError> {
    let show = |error: Option<E>| error.map_or_else(|| "can be read".to_owned(), |error| error.to_string());
    sink.add("archive", Some(&show(one)), Some(&show(other)));
    bytes::compare(left, right, sink)
}

fn list_zip(
    archive: &mut zip::ZipArchive<BufReader<File>>,
    sink: &Sink,
) -> Result<Result<Members, zip::result::ZipError>, DiffError> {
    let mut members = Members::new();
    for index in 0..archive.len().min(MOST_MEMBERS) {
        sink.check()?;
        let file = match archive.by_index(index) {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let name = String::from_utf8_lossy(file.name_raw()).into_owned();
        let properties = vec![
            ("method", file.compression().to_string()),
            ("mode", file.unix_mode().map_or_else(|| "absent".to_owned(), |mode| format!("{mode:o}"))),
            ("time", file.last_modified().map_or_else(|| "absent".to_owned(), |time| time.to_string())),
            ("comment", file.comment().to_owned()),
        ];
        let content = match read_content(file) {
            Ok(content) => content,
            Err(error) => return Ok(Err(error.into())),
        };
        members.insert(distinct(&members, name), Member { index, content, properties });
    }
    Ok(Ok(members))
}

fn list_tar(file: File, sink: &Sink) -> io::Result<Members> {
    let mut archive = tar::Archive::new(BufReader::new(file));
    let mut members = Members::new();
    for (index, entry) in archive.entries()?.take(MOST_MEMBERS).enumerate() {
        sink.check().map_err(io::Error::other)?;
        let mut entry = entry?;
        let header = entry.header();
        let number = |value: io::Result<u64>| value.map_or_else(|_| "malformed".to_owned(), |value| value.to_string());
        let text = |bytes: Option<&[u8]>| {
            bytes.map_or_else(|| "absent".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let mut properties = vec![
            ("type", format!("{:?}", header.entry_type())),
            ("mode", header.mode().map_or_else(|_| "malformed".to_owned(), |mode| format!("{mode:o}"))),
            ("time", number(header.mtime())),
            ("owner", format!("{}:{}", number(header.uid()), number(header.gid()))),
            ("owner's name", format!("{}:{}", text(header.username_bytes()), text(header.groupname_bytes()))),
        ];
        properties.push(("link", text(entry.link_name_bytes().as_deref())));
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let content = read_content(&mut entry)?;
        members.insert(distinct(&members, name), Member { index, content, properties });
    }
    Ok(members)
}

/// Digest and size of a member, unless it is too large.
fn read_content(reader: impl Read) -> io::Result<Option<(Digest, u64)>> {
    let (digest, size) = hash_reader(reader.take(LARGEST_MEMBER + 1))?;
    Ok((size <= LARGEST_MEMBER).then_some((digest, size)))
}

/// `name`, or, where an archive has it twice, with a number behind it.
fn distinct(members: &Members, name: String) -> String {
    if !members.contains_key(&name) {
        return name;
    }
    let mut number = 2;
    while members.contains_key(&format!("{name} ({number})")) {
        number += 1;
    }
    format!("{name} ({number})")
}
