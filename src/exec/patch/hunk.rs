//! Hunks: every count is kept, every line number follows from the ones above.

use super::flaw::Flaw;
use super::path::lossy;
use super::text::{Hunk, HunkLine, LineKind, Reader, Refusal};

/// The numbers in `@@ -old_start,old_count +new_start,new_count @@`.
struct Range {
    old_start: usize,
    old_count: usize,
    new_start: usize,
    new_count: usize,
}

/// Reads the hunks of one file, as many as there are.
pub fn read_hunks(reader: &mut Reader<'_>) -> Result<Vec<Hunk>, Refusal> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Lines of the old and the new file before the end of the hunk above.
    let (mut old_end, mut new_end) = (0, 0);
    while let Some(rest) = reader.header(b"@@ -")? {
        let line = reader.number();
        let (range, header) = read_range(rest)
            .map_or_else(|| reader.refuse(Flaw::HunkHeader(lossy(reader.peek().unwrap_or_default()))), Ok)?;
        reader.advance();
        let lines = read_lines(reader, &range)?;
        let hunk = Hunk { header, line, old_start: range.old_start, lines };
        // A range without lines names the line before it.
        let new_first = if range.new_count == 0 { range.new_start } else { range.new_start - 1 };
        if hunk.first() < old_end {
            return Err((line, Flaw::Order(range.old_start)));
        }
        let expected = hunk.first() - old_end + new_end;
        if new_first != expected {
            let expected = if range.new_count == 0 { expected } else { expected + 1 };
            return Err((line, Flaw::NewLine { expected, found: range.new_start }));
        }
        check_anchor(&hunk).map_err(|flaw| (line, flaw))?;
        if hunks.last().is_some_and(|above| ends_file(&above.lines)) {
            return Err((line, Flaw::Newline));
        }
        old_end = hunk.first() + range.old_count;
        new_end = new_first + range.new_count;
        hunks.push(hunk);
    }
    Ok(hunks)
}

/// What is left of a range header after `@@ -`, and the header for messages.
fn read_range(rest: &[u8]) -> Option<(Range, String)> {
    let end = rest.windows(3).position(|window| window == b" @@")?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let (old, new) = text.split_once(" +")?;
    let number = |digits: &str| {
        // Nine digits hold every line number that libgit2 can hold, too.
        let is_number = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse::<usize>().ok() } else { None }
    };
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    };
    let ((old_start, old_count), (new_start, new_count)) = (range(old)?, range(new)?);
    // Line 0 is the place before the first line, where only an empty range can stand.
    if old_start == 0 && old_count > 0 || new_start == 0 && new_count > 0 {
        return None;
    }
    Some((Range { old_start, old_count, new_start, new_count }, format!("@@ -{text} @@")))
}

fn read_lines(reader: &mut Reader<'_>, range: &Range) -> Result<Vec<HunkLine>, Refusal> {
    let mut lines: Vec<HunkLine> = Vec::new();
    let (mut old, mut new) = (range.old_count, range.new_count);
    while old > 0 || new > 0 {
        let Some(line) = reader.peek() else { return reader.refuse(Flaw::Cut { old, new }) };
        if !line.ends_with(b"\n") {
            return reader.refuse(Flaw::NoLineFeed);
        }
        // Git takes a file with such a byte for a binary one, and libgit2 ends a line there.
        if line.contains(&0) {
            return reader.refuse(Flaw::Nul);
        }
        let (kind, bytes) = match line[0] {
            b' ' => (LineKind::Context, &line[1..]),
            b'-' => (LineKind::Removed, &line[1..]),
            b'+' => (LineKind::Added, &line[1..]),
            // An empty context line whose space an editor has trimmed; GNU diff writes it so, too.
            b'\n' => (LineKind::Context, line),
            b'\\' => {
                take_line_feed(reader, &mut lines)?;
                continue;
            }
            _ => return reader.refuse(Flaw::HunkLine(lossy(line))),
        };
        if kind != LineKind::Added {
            old = old.checked_sub(1).map_or_else(|| reader.refuse(Flaw::Overfull("old")), Ok)?;
        }
        if kind != LineKind::Removed {
            new = new.checked_sub(1).map_or_else(|| reader.refuse(Flaw::Overfull("new")), Ok)?;
        }
        lines.push(HunkLine { kind, bytes: bytes.to_vec() });
        reader.advance();
    }
    if reader.peek().is_some_and(|line| line.starts_with(b"\\")) {
        take_line_feed(reader, &mut lines)?;
    }
    check_line_feeds(&lines).map_err(|flaw| (reader.number(), flaw))?;
    Ok(lines)
}

/// `\ No newline at end of file`, in any language, belongs to the line above it.
fn take_line_feed(reader: &mut Reader<'_>, lines: &mut [HunkLine]) -> Result<(), Refusal> {
    let is_mark = reader.header(b"\\ ")?.is_some();
    match lines.last_mut() {
        Some(above) if is_mark && above.bytes.ends_with(b"\n") => {
            above.bytes.pop();
            reader.advance();
            Ok(())
        }
        _ => reader.refuse(Flaw::Newline),
    }
}

/// A line without a line feed must be the last on its side.
fn check_line_feeds(lines: &[HunkLine]) -> Result<(), Flaw> {
    for other_side in [LineKind::Added, LineKind::Removed] {
        let mut side = lines.iter().filter(|line| line.kind != other_side).rev();
        side.next();
        if side.any(|line| !line.bytes.ends_with(b"\n")) {
            return Err(Flaw::Newline);
        }
    }
    Ok(())
}

fn ends_file(lines: &[HunkLine]) -> bool {
    lines.iter().any(|line| !line.bytes.ends_with(b"\n"))
}

/// Without a context line before its first change, a hunk must begin the file: anywhere else its
/// place would rest on a line number alone. The same holds for its end, which only the file can show
/// ([`super::place`]). This is what `git apply` asks for without `--unidiff-zero`.
fn check_anchor(hunk: &Hunk) -> Result<(), Flaw> {
    if hunk.lines.iter().all(|line| line.kind == LineKind::Context) {
        return Err(Flaw::NoChange);
    }
    let begins_in_context = hunk.lines.first().is_some_and(|line| line.kind == LineKind::Context);
    if begins_in_context || hunk.first() == 0 { Ok(()) } else { Err(Flaw::Unanchored) }
}
