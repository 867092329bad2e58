//! Text from files and tools, made safe to show: what could command a terminal, forge a line of a
//! report or change the order in which a line is read is shown as an escape, and what opens a place
//! to whoever reads it (a password in a url) is left out.

use std::borrow::Cow;

/// The text with every such character escaped, line breaks and tabs too: for a name in a sentence.
pub(crate) fn escape_name(text: &str) -> String {
    escape(text, is_hidden)
}

/// The same, but line breaks and tabs stay: for text of several lines.
pub(crate) fn escape_text(text: &str) -> String {
    escape(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// The same, but tabs stay: for a line that others wrote, and that has to stay one line.
pub(crate) fn escape_line(text: &str) -> String {
    escape(text, |c| is_hidden(c) && c != '\t')
}

/// Adds one line to a text of several. Whatever its values have in them, it stays one line: a line
/// break in the name of a file writes no line of its own.
macro_rules! add_line {
    ($text:expr, $($line:tt)+) => {{
        $text.push_str(&$crate::printable::escape_line(&format!($($line)+)));
        $text.push('\n');
    }};
}
pub(crate) use add_line;

/// The text without what its urls have of passwords: users and passwords before the host, and the
/// values of parameters that are named like a credential. A mirror rule of a person's own may have
/// them, and what is said of it is kept in logs and records, and published.
///
/// A user alone before the host of an ssh url (`ssh://git@host`) is no secret and stays.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let is_ssh = before.ends_with("ssh");
        let end = after.find(|c: char| c.is_whitespace() || "\"<>`".contains(c)).unwrap_or(after.len());
        // Another url may follow without a space: it is masked by itself.
        let end = after[..end].find("://").map_or(end, |next| scheme_start(&after[..next]));
        let (url, next) = after.split_at(end);
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        let host = match authority.rfind('@') {
            Some(at) if !is_ssh || authority[..at].contains(':') => at + 1,
            _ => 0,
        };
        mask_parameters(&url[host..], &mut masked);
        rest = next;
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// Where the scheme at the end of `text` begins; what stands there cannot be empty.
fn scheme_start(text: &str) -> usize {
    let scheme = text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
    scheme.len()
}

fn mask_parameters(url: &str, masked: &mut String) {
    let Some((path, query)) = url.split_once('?') else { return masked.push_str(url) };
    masked.push_str(path);
    let mut mark = '?';
    for pair in query.split_inclusive(['&', '#']) {
        masked.push(mark);
        let (pair, end) = match pair.strip_suffix(['&', '#']) {
            Some(bare) => (bare, pair.chars().next_back()),
            None => (pair, None),
        };
        match pair.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                // What ends the sentence is not the value's.
                let behind = &value[value.trim_end_matches([':', ',', ';', '.', '\'', ')']).len()..];
                masked.push_str(name);
                masked.push_str("=…");
                masked.push_str(behind);
            }
            _ => masked.push_str(pair),
        }
        mark = end.unwrap_or_default();
    }
    if query.ends_with(['&', '#']) {
        masked.push(mark);
    }
    if query.is_empty() {
        masked.push('?');
    }
}

/// Whether a parameter is named like one that holds a credential, as `access_token`, `X-Amz-Signature`.
fn is_secret(name: &str) -> bool {
    const SECRET: [&str; 12] = [
        "apikey",
        "auth",
        "credential",
        "jwt",
        "key",
        "passwd",
        "password",
        "pwd",
        "secret",
        "sig",
        "signature",
        "token",
    ];
    let name = name.to_ascii_lowercase().replace("%2d", "-").replace("%5f", "_");
    name.split(['-', '_', '.']).any(|part| SECRET.contains(&part))
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
    fn passwords_in_urls_are_left_out() {
        for (text, shown) in [
            ("https://me:secret@host/a@b", "https://host/a@b"),
            ("https://secret@host/a", "https://host/a"),
            ("https://me:se'cr(et@x@host: no; trying http://a:secret@b/", "https://host: no; trying http://b/"),
            ("(https://me:secret@h,http://me:secret@i)", "(https://h,http://i)"),
            ("ssh://git@host/a ssh://git:secret@host/a", "ssh://git@host/a ssh://host/a"),
            ("https://h/a?x=1&token=secret: gone", "https://h/a?x=1&token=…: gone"),
            ("https://h/a?X-Amz-Signature=secret&b=2#c", "https://h/a?X-Amz-Signature=…&b=2#c"),
            ("'https://h/?access%5Ftoken=secret'", "'https://h/?access%5Ftoken=…'"),
            ("https://h/a?keyword=x&&#", "https://h/a?keyword=x&&#"),
            ("https://h/?", "https://h/?"),
            ("a@b:c /a@b ://@", "a@b:c /a@b ://"),
            ("https://host/a@b", "https://host/a@b"),
            ("x = \"http://me:secret@h/\"\n  ^ a@b", "x = \"http://h/\"\n  ^ a@b"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn what_is_cut_is_counted_in_characters() {
        assert_eq!(cut("ééé", 3), "ééé");
        assert_eq!(cut("éééé日", 3), "ééé… (2 more characters)");
        assert_eq!(cut("", 0), "");
    }
}
