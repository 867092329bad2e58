//! What data segments put into memory: metadata by key, texts, and bytes.
//!
//! Optimizers split and join segments, so what is compared is the memory that they make together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::module::{Module, Segment};
use crate::diff::bytes::{Ranges, hex};
use crate::diff::finding::Sink;
use crate::diff::{json, text};

/// The most memory that is put together.
const LARGEST: u64 = 64 << 20;

/// The shortest run of text that is looked at.
const SHORTEST: usize = 8;

/// How the metadata of a model library begins.
const METADATA: &[u8] = b"{\"model_type\"";

/// Compares what two modules' segments hold.
pub(super) fn compare(before: &Module, after: &Module, sink: &mut Sink) {
    let (one, other) = (image(&before.segments), image(&after.segments));
    let (Some(one), Some(other)) = (one, other) else {
        return compare_segments(&before.segments, &after.segments, sink);
    };
    compare_passive(before, after, sink);
    if one.start == other.start && one.bytes == other.bytes {
        return;
    }
    let count = sink.count();
    let (metadata, others) = (metadata(&one.bytes), metadata(&other.bytes));
    sink.within("metadata", |sink| match (&metadata, &others) {
        (Some(before), Some(after)) => json::compare(before, after, sink),
        (None, None) => {}
        (before, after) => {
            let show = |value: &Option<Value>| value.as_ref().map(ToString::to_string);
            sink.add("", show(before).as_deref(), show(after).as_deref());
        }
    });
    compare_texts(&one, &other, sink);
    let mut ranges = Ranges::default();
    if one.start == other.start {
        let common = one.bytes.len().min(other.bytes.len());
        ranges.look(0, &one.bytes[..common], &other.bytes[..common]);
    }
    let show = |image: &Image| format!("{} bytes from {:#x} on", image.bytes.len(), image.start);
    // Where texts tell what changed, bytes only repeat it.
    let lines = if sink.count() == count { ranges.lines(one.start) } else { Vec::new() };
    let known = sink.count() > count;
    if !known || one.start != other.start || one.bytes.len() != other.bytes.len() {
        sink.add_lines("content", Some(&show(&one)), Some(&show(&other)), lines);
    } else {
        let lines = vec![format!("{} of {} bytes differ, in {} ranges", ranges.bytes, one.bytes.len(), ranges.count)];
        sink.add_lines("content", None, None, lines);
    }
}

/// How far data lies from where it lay.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Where data begins.
    start: u64,
    distances: BTreeSet<i64>,
}

impl Moves {
    /// The distances of texts that both memories have once, and of the end of data, behind which lies
    /// what is zero at first.
    pub(super) fn find(before: &Module, after: &Module) -> Self {
        let (Some(one), Some(other)) = (image(&before.segments), image(&after.segments)) else {
            return Self::default();
        };
        let unique = |image: &Image| -> BTreeMap<Vec<u8>, Option<u64>> {
            let mut places: BTreeMap<Vec<u8>, Option<u64>> = BTreeMap::new();
            for (at, text) in texts(&image.bytes) {
                let place = Some(image.start + at as u64);
                places.entry(text.to_vec()).and_modify(|place| *place = None).or_insert(place);
            }
            places
        };
        let (first, second) = (unique(&one), unique(&other));
        let distance = |from: u64, to: u64| to.cast_signed().wrapping_sub(from.cast_signed());
        let mut distances: BTreeSet<i64> =
            first.iter().filter_map(|(text, from)| Some(distance((*from)?, (*second.get(text)?)?))).collect();
        let end = |image: &Image| image.start + image.bytes.len() as u64;
        distances.insert(distance(end(&one), end(&other)));
        distances.remove(&0);
        Self { start: one.start.min(other.start), distances }
    }

    /// Whether `from` and `to` can be the addresses of the same data.
    pub(super) fn explain(&self, from: u64, to: u64) -> bool {
        let distance = to.cast_signed().wrapping_sub(from.cast_signed());
        from.min(to) >= self.start && self.distances.contains(&distance)
    }
}

/// Memory as it is before the program begins.
struct Image {
    start: u64,
    bytes: Vec<u8>,
}

/// The active segments' memory, unless an address is not known or it is too large.
fn image(segments: &[Segment]) -> Option<Image> {
    let active: Vec<(u64, &[u8])> =
        segments.iter().filter_map(|segment| Some((segment.address?, segment.bytes))).collect();
    let start = active.iter().map(|(address, _)| *address).min().unwrap_or(0);
    let end = active.iter().map(|(address, bytes)| address.saturating_add(bytes.len() as u64)).max().unwrap_or(0);
    let length = end.checked_sub(start).filter(|length| *length <= LARGEST)?;
    let mut memory = vec![0; usize::try_from(length).ok()?];
    for (address, bytes) in active {
        let at = usize::try_from(address - start).ok()?;
        memory.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    }
    Some(Image { start, bytes: memory })
}

/// Segments that are put somewhere at run time, in order.
fn compare_passive(before: &Module, after: &Module, sink: &mut Sink) {
    let passive = |module: &Module<'_>| -> Vec<String> {
        let segments = module.segments.iter().filter(|segment| segment.address.is_none());
        segments.map(|segment| hex(segment.bytes)).collect()
    };
    let (one, other) = (passive(before), passive(after));
    for index in 0..one.len().max(other.len()) {
        let (before, after) = (one.get(index), other.get(index));
        if before != after {
            sink.add(&format!("passive segment {index}"), before.map(String::as_str), after.map(String::as_str));
        }
    }
}

/// Segments by number, where they cannot be put together.
fn compare_segments(before: &[Segment], after: &[Segment], sink: &mut Sink) {
    for index in 0..before.len().max(after.len()) {
        let (one, other) = (before.get(index), after.get(index));
        let same = one.map(|one| (one.address, one.bytes)) == other.map(|other| (other.address, other.bytes));
        if same {
            continue;
        }
        let mut ranges = Ranges::default();
        if let (Some(one), Some(other)) = (one, other) {
            let common = one.bytes.len().min(other.bytes.len());
            ranges.look(0, &one.bytes[..common], &other.bytes[..common]);
        }
        let name = one.or(other).and_then(|segment| segment.name.clone()).unwrap_or_default();
        let show = |segment: Option<&Segment>| {
            segment.map(|segment| match segment.address {
                Some(address) => format!("{} bytes at {address:#x}", segment.bytes.len()),
                None => format!("{} bytes", segment.bytes.len()),
            })
        };
        let name = format!("segment {index} {name}");
        sink.add_lines(name.trim_end(), show(one).as_deref(), show(other).as_deref(), ranges.lines(0));
    }
}

fn metadata(memory: &[u8]) -> Option<Value> {
    let at = memory.windows(METADATA.len()).position(|window| window == METADATA)?;
    serde_json::Deserializer::from_slice(&memory[at..]).into_iter::<Value>().next()?.ok()
}

/// Texts that only one of two memories has, wherever they lie in it.
fn compare_texts(before: &Image, after: &Image, sink: &mut Sink) {
    let (one, other) = (texts(&before.bytes), texts(&after.bytes));
    let (gone, new) = (only_in(&one, &other), only_in(&other, &one));
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if gone.len() == new.len() {
        for ((address, before_text), (_, after_text)) in gone.iter().zip(&new) {
            let name = format!("text at {:#x}", before.start + *address as u64);
            let (before_text, after_text) = (show(before_text), show(after_text));
            if before_text.contains('\n') && after_text.contains('\n') {
                let (lines, changed) = text::describe(&before_text, &after_text);
                sink.add_lines(&name, None, None, std::iter::once(changed).chain(lines).collect());
            } else {
                let (before_text, after_text) = excerpts(&before_text, &after_text);
                sink.add(&name, Some(&before_text), Some(&after_text));
            }
        }
        return;
    }
    for (address, bytes) in &gone {
        sink.add(&format!("text at {:#x}", before.start + *address as u64), Some(&show(bytes)), None);
    }
    for (address, bytes) in &new {
        sink.add(&format!("text at {:#x}", after.start + *address as u64), None, Some(&show(bytes)));
    }
}

/// Runs of printable bytes with their places; metadata is compared by key.
fn texts(memory: &[u8]) -> Vec<(usize, &[u8])> {
    let printable = |byte: u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in memory.iter().copied().chain([0]).enumerate() {
        match (printable(byte), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let text = &memory[from..at];
                let is_metadata = text.windows(METADATA.len()).any(|window| window == METADATA);
                if text.len() >= SHORTEST && !is_metadata {
                    found.push((from, text));
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn only_in<'a>(texts: &[(usize, &'a [u8])], others: &[(usize, &[u8])]) -> Vec<(usize, &'a [u8])> {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for (_, text) in others {
        *counts.entry(text).or_default() += 1;
    }
    let mut left = Vec::new();
    for (at, text) in texts {
        match counts.get_mut(text) {
            Some(count) if *count > 0 => *count -= 1,
            _ => left.push((*at, *text)),
        }
    }
    left
}

/// Two texts from shortly before they part.
fn excerpts(before: &str, after: &str) -> (String, String) {
    const LEAD: usize = 40;
    let common = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let cut = |text: &str| {
        let mut from = common.saturating_sub(LEAD);
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        if from == 0 { text.to_owned() } else { format!("…{}", &text[from..]) }
    };
    (cut(before), cut(after))
}
