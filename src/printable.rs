//! Text from files and tools, made safe to show: what could command a terminal, forge a line of a
//! report or change the order in which a line is read is shown as an escape.

/// The text with every such character escaped, line breaks and tabs too: for a name in a sentence.
pub(crate) fn escape_name(text: &str) -> String {
    escape(text, is_hidden)
}

/// The same, but line breaks and tabs stay: for text of several lines.
pub(crate) fn escape_text(text: &str) -> String {
    escape(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// The line without what is over `most` characters, and how much that is.
pub(crate) fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}… ({} more characters)", &line[..end], line[end..].chars().count()),
    }
}

fn escape(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

/// Control characters, and those of Unicode that break lines (UAX #14) or turn the direction of
/// what follows (UAX #9).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_hidden_is_escaped() {
        let text = "a\u{1b}[2J\r\n\tb\u{7f}\u{9b}c\u{202e}\u{2028}d \"'\\ é 日本 🙂";
        let escaped = r#"a\u{1b}[2J\r\n\tb\u{7f}\u{9b}c\u{202e}\u{2028}d "'\ é 日本 🙂"#;
        assert_eq!(escape_name(text), escaped);
        assert_eq!(escape_text(text), escaped.replace("\\n\\t", "\n\t"));
    }

    #[test]
    fn what_is_cut_is_counted_in_characters() {
        assert_eq!(cut("ééé", 3), "ééé");
        assert_eq!(cut("éééé日", 3), "ééé… (2 more characters)");
        assert_eq!(cut("", 0), "");
    }
}
