//! What a person needs to see when a hunk does not fit: what it expects, what is there, and where
//! the expected lines stand instead.

use std::fmt::{self, Write};

use super::nearest::{Reading, Window, find_similar, find_whole};
use super::place::split_lines;
use super::text::{Hunk, PatchedFile};

/// In which way the lines at a hunk's place differ from the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Other text.
    Lines,
    /// The same text with other line endings.
    LineEndings {
        /// The endings that the patch has.
        patch: &'static str,
        /// The endings that the file has.
        file: &'static str,
    },
    /// The same text, and the last line of one of the two has no line feed.
    FinalLineFeed {
        /// Whether it is the file that has none.
        file_lacks: bool,
    },
    /// The same text with other white space.
    Spaces,
    /// The file ends before the hunk does.
    FileEnds {
        /// How many lines the file has.
        lines: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines => f.write_str("other lines stand there"),
            Self::LineEndings { patch, file } => {
                write!(f, "the line endings differ, {patch} in the patch and {file} in the file")
            }
            Self::FinalLineFeed { file_lacks: true } => f.write_str("the file's last line has no line feed"),
            Self::FinalLineFeed { file_lacks: false } => {
                f.write_str("the patch expects a last line without a line feed")
            }
            Self::Spaces => f.write_str("the lines differ in white space"),
            Self::FileEnds { lines: 0 } => f.write_str("the file is empty"),
            Self::FileEnds { lines } => write!(f, "the file ends at line {lines}"),
        }
    }
}

/// The most lines that one comparison takes in a report.
const ROWS: usize = 16;
/// Equal lines that are shown around a differing one.
const AROUND: usize = 2;
/// The most characters of a line that are shown.
const WIDTH: usize = 100;

/// Explains why hunk `index` of `file` does not fit `bytes`; `others` do not, either.
pub fn explain(file: &PatchedFile, index: usize, others: &[usize], bytes: &[u8]) -> (Difference, String) {
    let hunk = &file.hunks[index];
    let lines = split_lines(bytes);
    let expected: Vec<&[u8]> = hunk.old_lines().collect();
    let first = hunk.first();
    let there = lines.get(first..).unwrap_or_default();
    let there = &there[..there.len().min(expected.len())];
    let whole = find_whole(&expected, &lines, first);
    let difference = classify(&expected, there, lines.len(), whole.as_ref());

    let mut report = vec![format!(
        "hunk {} of {}, line {} of the patch, expects (-) and {} has (+) at line {}:",
        index + 1,
        file.hunks.len(),
        hunk.line,
        file.path,
        first + 1
    )];
    report.extend(compare(&expected, there, first));
    if there.len() < expected.len() && !lines.is_empty() {
        report.push(format!("         (the file ends at line {})", lines.len()));
    }
    report.extend(describe_nearest(&expected, &lines, first, whole));
    report.extend(describe_others(&file.hunks, others));
    (difference, report.join("\n"))
}

fn classify(expected: &[&[u8]], there: &[&[u8]], lines: usize, whole: Option<&(Reading, Window)>) -> Difference {
    let same = |reading: Reading| {
        there.len() == expected.len() && expected.iter().zip(there).all(|(one, other)| reading.same(one, other))
    };
    if same(Reading::Endings) {
        let other_ending = expected.iter().zip(there).find(|(one, other)| has_cr(one) != has_cr(other));
        return match other_ending {
            Some((one, other)) => Difference::LineEndings { patch: ending(one), file: ending(other) },
            None => Difference::FinalLineFeed { file_lacks: there.last().is_some_and(|line| !line.ends_with(b"\n")) },
        };
    }
    // A whole file of the other kind of endings is the likelier reason, even if the place is wrong, too.
    if let (Some((Reading::Endings, _)), Some(one)) = (whole, expected.first()) {
        let patch = ending(one);
        let file = if patch == "LF" { "CR LF" } else { "LF" };
        return Difference::LineEndings { patch, file };
    }
    if same(Reading::Spaces) {
        return Difference::Spaces;
    }
    if there.len() < expected.len() { Difference::FileEnds { lines } } else { Difference::Lines }
}

fn has_cr(line: &[u8]) -> bool {
    line.strip_suffix(b"\n").unwrap_or(line).ends_with(b"\r")
}

fn ending(line: &[u8]) -> &'static str {
    if has_cr(line) { "CR LF" } else { "LF" }
}

fn describe_nearest(
    expected: &[&[u8]],
    lines: &[&[u8]],
    first: usize,
    whole: Option<(Reading, Window)>,
) -> Vec<String> {
    let count = |lines: usize| if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    let away = |at: usize| match at.cmp(&first) {
        std::cmp::Ordering::Less => format!("{} further up", count(first - at)),
        std::cmp::Ordering::Equal => "this place".to_owned(),
        std::cmp::Ordering::Greater => format!("{} further down", count(at - first)),
    };
    if let Some((reading, window)) = whole {
        let but = match reading {
            Reading::Exact => "",
            Reading::Endings => ", but for line endings,",
            Reading::Spaces => ", but for white space,",
        };
        let others = if window.others == 0 { String::new() } else { format!(" (and {} more)", places(window.others)) };
        return vec![format!(
            "nearest match: all expected lines{but} stand at line {}, {}{others}",
            window.first + 1,
            away(window.first)
        )];
    }
    match find_similar(expected, lines, first) {
        None => vec!["nearest match: none; no place in the file resembles these lines".to_owned()],
        Some(window) if window.first == first => {
            vec![format!("nearest match: this place, {} of {} as expected", window.equal, count(expected.len()))]
        }
        Some(window) => {
            let found = &lines[window.first..];
            let found = &found[..found.len().min(expected.len())];
            let mut text = vec![format!(
                "nearest match: line {}, {}, {} of {} as expected:",
                window.first + 1,
                away(window.first),
                window.equal,
                count(expected.len())
            )];
            text.extend(compare(expected, found, window.first));
            text
        }
    }
}

fn places(count: usize) -> String {
    if count == 1 { "1 place".to_owned() } else { format!("{count} places") }
}

fn describe_others(hunks: &[Hunk], others: &[usize]) -> Option<String> {
    const SHOWN: usize = 6;
    if hunks.len() == 1 {
        return None;
    }
    if others.is_empty() {
        return Some("the other hunks of this file fit".to_owned());
    }
    let shown: Vec<_> = others.iter().take(SHOWN).map(|&other| (other + 1).to_string()).collect();
    let more = if others.len() > SHOWN { ", …" } else { "" };
    Some(format!("{} more of its {} hunks do not fit: {}{more}", others.len(), hunks.len(), shown.join(", ")))
}

/// One line of a comparison.
struct Row {
    mark: char,
    /// The line's number in the file, from 1.
    number: Option<usize>,
    text: String,
}

/// `expected` and `found`, which begins after `first` lines of its file, line by line.
fn compare(expected: &[&[u8]], found: &[&[u8]], first: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut one, mut two) = (0, 0);
    for (next_one, next_two) in align(expected, found).into_iter().chain([(expected.len(), found.len())]) {
        for line in &expected[one..next_one] {
            rows.push(Row { mark: '-', number: None, text: show_line(line, true) });
        }
        for (at, line) in found.iter().enumerate().take(next_two).skip(two) {
            rows.push(Row { mark: '+', number: Some(first + at + 1), text: show_line(line, true) });
        }
        if let Some(line) = found.get(next_two) {
            rows.push(Row { mark: ' ', number: Some(first + next_two + 1), text: show_line(line, false) });
        }
        (one, two) = (next_one + 1, next_two + 1);
    }
    shorten(&rows)
}

/// The pairs of equal lines, in order, of a longest common subsequence.
fn align(one: &[&[u8]], two: &[&[u8]]) -> Vec<(usize, usize)> {
    /// Beyond this many lines only lines at the same place are paired.
    const LONGEST: usize = 1000;
    if one.len().max(two.len()) > LONGEST {
        return (0..one.len().min(two.len())).filter(|&at| one[at] == two[at]).map(|at| (at, at)).collect();
    }
    let mut longest = vec![vec![0_u16; two.len() + 1]; one.len() + 1];
    for i in (0..one.len()).rev() {
        for j in (0..two.len()).rev() {
            longest[i][j] =
                if one[i] == two[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < one.len() && j < two.len() {
        if one[i] == two[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// At most [`ROWS`] lines: differing rows with a little around them.
fn shorten(rows: &[Row]) -> Vec<String> {
    let near = |at: usize| {
        rows[at.saturating_sub(AROUND)..(at + AROUND + 1).min(rows.len())].iter().any(|row| row.mark != ' ')
    };
    let mut shown = Vec::new();
    let mut skipped = false;
    for (at, row) in rows.iter().enumerate() {
        if shown.len() >= ROWS {
            shown.push(format!("         … {} more lines", rows.len() - at));
            break;
        }
        if near(at) {
            let number = row.number.map_or_else(String::new, |number| number.to_string());
            shown.push(format!("{number:>6} {} {}", row.mark, row.text).trim_end().to_owned());
        } else if !skipped {
            shown.push("       …".to_owned());
        }
        skipped = !near(at);
    }
    shown
}

/// A line for people. In a differing line what cannot be seen is made visible.
fn show_line(line: &[u8], differs: bool) -> String {
    let (text, has_feed) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
    let mut shown = String::new();
    let mut width = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            width += 1;
            if width > WIDTH {
                continue;
            }
            match c {
                '\t' if differs => shown.push_str("\\t"),
                '\t' => shown.push_str("    "),
                c if c.is_control() => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
        for byte in chunk.invalid() {
            width += 1;
            if width <= WIDTH {
                // A String takes every write.
                let _ = write!(shown, "\\x{byte:02x}");
            }
        }
    }
    if width > WIDTH {
        shown.push('…');
    } else if differs {
        let spaces = shown.len() - shown.trim_end_matches(' ').len();
        shown.truncate(shown.len() - spaces);
        shown.push_str(&"·".repeat(spaces));
    }
    if !has_feed {
        shown.push_str(" [no line feed]");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_made_visible() {
        assert_eq!(show_line(b"\ta \xff\x1b[0m  \r\n", true), "\\ta \\xff\\u{1b}[0m  \\r");
        assert_eq!(show_line(b"a  \n", true), "a··");
        assert_eq!(show_line(b"\ta\n", false), "    a");
        assert_eq!(show_line(b"end", true), "end [no line feed]");
        assert_eq!(show_line("ä".repeat(500).as_bytes(), false).chars().count(), WIDTH + 1 + " [no line feed]".len());
    }

    #[test]
    fn a_comparison_of_any_length_stays_short() {
        let one: Vec<String> = (0..300).map(|at| format!("one {at}\n")).collect();
        let two: Vec<String> = (0..300).map(|at| format!("two {at}\n")).collect();
        let bytes = |lines: &[String]| lines.concat().into_bytes();
        let (one, two) = (bytes(&one), bytes(&two));
        assert_eq!(compare(&split_lines(&one), &split_lines(&two), 0).len(), ROWS + 1);
    }
}
