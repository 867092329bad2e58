//! Text, line by line.

use similar::{Algorithm, ChangeTag, TextDiff};

use super::finding::{MOST_LINES, Sink};

/// The most differing lines on one side that are set against each other; of more only the first is
/// told, since finding the shortest difference may take time in the square of that.
const MOST_COMPARED: usize = 4000;

/// Compares two texts.
pub(super) fn compare(left: &[u8], right: &[u8], sink: &mut Sink) {
    let (left, right) = (String::from_utf8_lossy(left), String::from_utf8_lossy(right));
    let (lines, changed) = describe(&left, &right);
    sink.add_lines(
        "lines",
        Some(&format!("{} lines", left.lines().count())),
        Some(&format!("{} lines", right.lines().count())),
        std::iter::once(changed).chain(lines).collect(),
    );
}

/// The differing lines as a unified difference, as many as are shown, and how many there are.
pub(super) fn describe(left: &str, right: &str) -> (Vec<String>, String) {
    let before: Vec<&str> = left.split_inclusive('\n').collect();
    let after: Vec<&str> = right.split_inclusive('\n').collect();
    let start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(|(one, other)| one == other);
    // One equal line on either side shows where it is.
    let (start, end) = (start.saturating_sub(1), end.count().saturating_sub(1));
    let (before, after) = (&before[start..before.len() - end], &after[start..after.len() - end]);
    if before.len().max(after.len()) > MOST_COMPARED {
        let line = |lines: &[&str]| lines.first().map_or("", |line| line.trim_end_matches('\n')).to_owned();
        let lines =
            vec![format!("@@ line {} @@", start + 1), format!("-{}", line(before)), format!("+{}", line(after))];
        return (lines, format!("{} lines became {} lines from line {} on", before.len(), after.len(), start + 1));
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_slices(before, after);
    let (mut removed, mut added) = (0, 0);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(1) {
        if let Some(first) = group.first() {
            let (one, other) = (first.old_range().start, first.new_range().start);
            lines.push(format!("@@ line {} → line {} @@", start + one + 1, start + other + 1));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            removed += usize::from(sign == '-');
            added += usize::from(sign == '+');
            // One more than is shown, so that it is seen that there are more.
            if lines.len() <= MOST_LINES {
                let value: &str = change.value();
                let shown = value.strip_suffix('\n').unwrap_or(value);
                let no_end = if value.ends_with('\n') { "" } else { " (no line break)" };
                lines.push(format!("{sign}{shown}{no_end}"));
            }
        }
    }
    (lines, format!("{removed} lines removed, {added} lines added"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_the_beginning_of_the_file() {
        let (lines, changed) = describe("a\nb\nc\nd\n", "a\nb\nC\nd\n");
        assert_eq!(lines, ["@@ line 2 → line 2 @@", " b", "-c", "+C", " d"]);
        assert_eq!(changed, "1 lines removed, 1 lines added");
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_a_difference() {
        let (lines, _) = describe("a\nb\n", "a\nb");
        assert_eq!(lines, ["@@ line 1 → line 1 @@", " a", "-b", "+b (no line break)"]);
    }

    #[test]
    fn texts_without_anything_in_common_are_bounded() {
        let text =
            |prefix: &str, lines| (0..lines).flat_map(|i| [prefix.to_owned(), format!("{i}\n")]).collect::<String>();
        let (lines, changed) = describe(&text("a", 20_000), &text("b", 20_000));
        assert_eq!((lines.len(), changed.as_str()), (3, "20000 lines became 20000 lines from line 1 on"));
        assert!(describe(&text("a", 3000), &text("b", 3000)).0.len() <= MOST_LINES + 2);
    }
}
