//! Files of which nothing is known but their bytes.

use std::fmt::Write;
use std::io::{BufReader, Read};

use super::finding::Sink;
use super::{Body, DiffError};
use crate::interrupt::Interrupt;

const BLOCK: usize = 256 * 1024;

/// Differing bytes with no more than this many equal ones between them are one range.
const GAP: u64 = 16;

/// How many ranges are described, and how many bytes of each are shown.
const SHOWN_RANGES: usize = 8;
const SHOWN_BYTES: usize = 16;

/// A stretch of differing bytes with the beginning of what both have there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

/// Collects the ranges in which two sequences differ, which come in pieces of the same length.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) found: Vec<Range>,
    /// How many there are, described or not.
    pub(super) count: u64,
    /// How many bytes differ.
    pub(super) bytes: u64,
    last: Option<u64>,
}

impl Ranges {
    pub(super) fn look(&mut self, offset: u64, before: &[u8], after: &[u8]) {
        if before == after {
            return;
        }
        for (index, (one, other)) in before.iter().zip(after).enumerate() {
            if one == other {
                continue;
            }
            let at = offset + index as u64;
            self.bytes += 1;
            let joined = self.last.is_some_and(|last| at - last <= GAP);
            self.last = Some(at);
            if joined {
                // The one that is being extended is described only when it is among the first.
                if self.count <= SHOWN_RANGES as u64
                    && let Some(range) = self.found.last_mut()
                {
                    range.end = at + 1;
                }
                continue;
            }
            self.count += 1;
            if self.found.len() < SHOWN_RANGES {
                let part = |bytes: &[u8]| bytes[index..bytes.len().min(index + SHOWN_BYTES)].to_vec();
                self.found.push(Range { start: at, end: at + 1, before: part(before), after: part(after) });
            }
        }
    }

    /// The ranges, line by line; `base` is added to the offsets.
    pub(super) fn lines(&self, base: u64) -> Vec<String> {
        let mut lines = Vec::new();
        for range in &self.found {
            let (start, length) = (base + range.start, range.end - range.start);
            lines.push(format!("at {start:#x}, {length} bytes: {} → {}", hex(&range.before), hex(&range.after)));
        }
        if self.count > self.found.len() as u64 {
            lines.push(format!("… {} more ranges", self.count - self.found.len() as u64));
        }
        lines
    }
}

/// Bytes in hexadecimal, and as text where they are.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    let printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    if bytes.len() > 3 && bytes.iter().filter(|byte| printable(byte)).count() * 4 > bytes.len() * 3 {
        let shown = bytes.iter().map(|byte| if printable(byte) { char::from(*byte) } else { '.' });
        let _ = write!(text, " `{}`", shown.collect::<String>());
    }
    text
}

/// Whether both have the same bytes.
pub(super) fn are_equal(left: &Body, right: &Body, interrupt: &Interrupt) -> Result<bool, DiffError> {
    if left.size != right.size {
        return Ok(false);
    }
    let mut equal = true;
    walk(left, right, interrupt, |_, before, after| {
        equal = before == after;
        equal
    })?;
    Ok(equal)
}

/// Describes where the bytes differ.
pub(super) fn compare(left: &Body, right: &Body, sink: &mut Sink) -> Result<(), DiffError> {
    let mut ranges = Ranges::default();
    walk(left, right, sink.interrupt(), |offset, before, after| {
        let common = before.len().min(after.len());
        ranges.look(offset, &before[..common], &after[..common]);
        true
    })?;
    let common = left.size.min(right.size);
    let first = ranges.found.first().map_or(common, |range| range.start);
    let mut lines = vec![format!("the first difference is at offset {first} ({first:#x})")];
    if ranges.bytes > 0 {
        lines.push(format!("{} of {common} bytes differ, in {} ranges", ranges.bytes, ranges.count));
        lines.extend(ranges.lines(0));
    }
    let size = |body: &Body| format!("{} bytes", body.size);
    sink.add_lines("bytes", Some(&size(left)), Some(&size(right)), lines);
    Ok(())
}

/// Gives `look` blocks of both at the same offset, as long as it wants more; where one has ended its
/// block is shorter.
fn walk(
    left: &Body,
    right: &Body,
    interrupt: &Interrupt,
    mut look: impl FnMut(u64, &[u8], &[u8]) -> bool,
) -> Result<(), DiffError> {
    let mut readers = [BufReader::new(left.open()?), BufReader::new(right.open()?)];
    let mut blocks = [vec![0; BLOCK], vec![0; BLOCK]];
    let mut offset = 0;
    loop {
        interrupt.check()?;
        let mut lengths = [0, 0];
        for (index, body) in [left, right].into_iter().enumerate() {
            lengths[index] = fill(&mut readers[index], &mut blocks[index])
                .map_err(|source| DiffError::Unreadable { path: body.path.clone(), source })?;
        }
        if lengths == [0, 0] || !look(offset, &blocks[0][..lengths[0]], &blocks[1][..lengths[1]]) {
            return Ok(());
        }
        offset += BLOCK as u64;
    }
}

fn fill(reader: &mut impl Read, block: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < block.len() {
        match reader.read(&mut block[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_differences_are_one_range() {
        let before = vec![0; 200];
        let mut after = before.clone();
        for at in [3, 10, 100, 199] {
            after[at] = 1;
        }
        let mut ranges = Ranges::default();
        ranges.look(0, &before[..50], &after[..50]);
        ranges.look(50, &before[50..], &after[50..]);
        let found: Vec<_> = ranges.found.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, [(3, 11), (100, 101), (199, 200)]);
        assert_eq!((ranges.count, ranges.bytes), (3, 4));
    }

    #[test]
    fn bytes_that_are_text_are_shown_as_text() {
        assert_eq!(hex(b"abcd"), "61626364 `abcd`");
        assert_eq!(hex(&[0, 1, 2, b'a']), "00010261");
    }
}
