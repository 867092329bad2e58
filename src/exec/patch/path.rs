//! Paths as patches write them: prefixed, quoted where needed, and not to be trusted.

use super::flaw::{Flaw, PathFlaw};
use crate::pins::RelativePath;

/// The path on one `---` or `+++` line.
#[derive(Debug, PartialEq, Eq)]
pub enum Side {
    /// `/dev/null`: there is no file on this side.
    Nothing,
    /// A file.
    File(RelativePath),
}

/// Reads what follows `--- ` (`prefix` is `a/`) or `+++ ` (`b/`).
pub fn read_side(text: &[u8], prefix: &[u8]) -> Result<Side, Flaw> {
    let name = if text.starts_with(b"\"") {
        unquote(text).map(|(name, _)| name)?
    } else {
        // A tab ends the name: git writes one after a name with spaces, diff one before the time.
        text.split(|&byte| byte == b'\t').next().unwrap_or_default().to_vec()
    };
    if name == b"/dev/null" {
        return Ok(Side::Nothing);
    }
    let path = name.strip_prefix(prefix).ok_or_else(|| Flaw::Prefix(lossy(text)))?;
    check_path(path).map(Side::File)
}

/// Reads what follows `diff --git `: nothing when the two names are not those of one file.
pub fn read_pair(text: &[u8]) -> Result<Option<RelativePath>, Flaw> {
    if text.starts_with(b"\"") {
        let (one, rest) = unquote(text)?;
        let Some(rest) = rest.strip_prefix(b" ").filter(|rest| rest.starts_with(b"\"")) else { return Ok(None) };
        let (other, _) = unquote(rest)?;
        return same_file(&one, &other);
    }
    // Names with spaces are not quoted. `a/NAME b/NAME` can be split in its middle only.
    if text.len() % 2 == 1 && text[text.len() / 2] == b' ' {
        return same_file(&text[..text.len() / 2], &text[text.len() / 2 + 1..]);
    }
    Ok(None)
}

fn same_file(one: &[u8], other: &[u8]) -> Result<Option<RelativePath>, Flaw> {
    match one.strip_prefix(b"a/").zip(other.strip_prefix(b"b/")) {
        Some((one, other)) if one == other => check_path(one).map(Some),
        _ => Ok(None),
    }
}

/// Undoes git's quoting of unusual names (`core.quotePath`): the name, and what follows it.
fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), Flaw> {
    let refused = || Flaw::Quotes(lossy(text));
    let mut name = Vec::new();
    let mut rest = text.strip_prefix(b"\"").ok_or_else(refused)?;
    loop {
        let (&byte, after) = rest.split_first().ok_or_else(refused)?;
        rest = after;
        match byte {
            b'"' => return Ok((name, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first().ok_or_else(refused)?;
                rest = after;
                name.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let octal = |digit: u8| matches!(digit, b'0'..=b'7').then(|| digit - b'0');
                        let digits = rest.get(..2).ok_or_else(refused)?;
                        let (middle, low) = octal(digits[0]).zip(octal(digits[1])).ok_or_else(refused)?;
                        rest = &rest[2..];
                        (escape - b'0') << 6 | middle << 3 | low
                    }
                    _ => return Err(refused()),
                });
            }
            _ => name.push(byte),
        }
    }
}

fn check_path(bytes: &[u8]) -> Result<RelativePath, Flaw> {
    let refused = |reason| Flaw::Path { path: lossy(bytes), reason };
    let path = std::str::from_utf8(bytes).map_err(|_| refused(PathFlaw::Encoding))?;
    if path.starts_with('/') {
        return Err(refused(PathFlaw::Absolute));
    }
    if path.contains('\\') {
        return Err(refused(PathFlaw::Backslash));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(refused(PathFlaw::Leaves));
    }
    if path.split('/').any(is_git_directory) {
        return Err(refused(PathFlaw::Git));
    }
    if path.contains(char::is_control) {
        return Err(refused(PathFlaw::Form));
    }
    path.parse().map_err(|_| refused(PathFlaw::Form))
}

/// Whether a file system that ignores case, trailing dots, streams or some code points would take
/// `part` for `.git` (what git itself refuses under core.protectNTFS and core.protectHFS).
fn is_git_directory(part: &str) -> bool {
    let visible: String = part.chars().filter(|&c| !is_ignored_by_hfs(c)).collect();
    let name = visible.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// `text` for a message: one line, not too long.
pub fn lossy(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.trim_end().chars().take(LONGEST).flat_map(show_char).collect();
    if text.trim_end().chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn show_char(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_are_read_as_git_writes_them() {
        let side = read_side(br#""a/sp\303\244ce x""#, b"a/").unwrap();
        assert_eq!(side, Side::File("späce x".parse().unwrap()));
        let pair = read_pair(br#""a/sp\303\244ce x" "b/sp\303\244ce x""#).unwrap();
        assert_eq!(pair.unwrap().as_str(), "späce x");
        assert_eq!(read_pair(b"a/one two b/one two").unwrap().unwrap().as_str(), "one two");
        assert_eq!(read_side(b"b/one two\t", b"b/").unwrap(), Side::File("one two".parse().unwrap()));
        assert_eq!(read_side(b"/dev/null", b"b/").unwrap(), Side::Nothing);
    }

    #[test]
    fn broken_quotes_are_refused() {
        for text in [r#""a/x"#, r#""a/\q""#, r#""a/\30""#, r#""a/\399""#, r#""a/\"#] {
            assert!(matches!(read_side(text.as_bytes(), b"a/"), Err(Flaw::Quotes(_))), "{text}");
        }
    }

    #[test]
    fn paths_that_leave_the_tree_or_name_a_repository_are_refused() {
        let refused: [(&[u8], PathFlaw); 17] = [
            (b"a//etc/passwd", PathFlaw::Absolute),
            (b"a/../x", PathFlaw::Leaves),
            (b"a/x/../../y", PathFlaw::Leaves),
            (b"a/..", PathFlaw::Leaves),
            (b"a/.git/config", PathFlaw::Git),
            (b"a/sub/.GIT/hooks/x", PathFlaw::Git),
            (b"a/.gIt", PathFlaw::Git),
            (b"a/.git./x", PathFlaw::Git),
            (b"a/.git ", PathFlaw::Git),
            (b"a/GIT~1/config", PathFlaw::Git),
            (b"a/.git::$INDEX_ALLOCATION/x", PathFlaw::Git),
            ("a/.g\u{200c}it/x".as_bytes(), PathFlaw::Git),
            (b"a/x\\..\\y", PathFlaw::Backslash),
            (b"a/x\xff", PathFlaw::Encoding),
            (b"a/x//y", PathFlaw::Form),
            (b"a/./x", PathFlaw::Form),
            (b"\"a/x\\ny\"", PathFlaw::Form),
        ];
        for (text, expected) in refused {
            match read_side(text, b"a/") {
                Err(Flaw::Path { reason, .. }) => assert_eq!(reason, expected, "{}", lossy(text)),
                other => panic!("{}: {other:?}", lossy(text)),
            }
        }
        for fine in [&b"a/.gitignore"[..], b"a/.github/x", b"a/x.git/y", b"a/a b"] {
            assert!(read_side(fine, b"a/").is_ok(), "{}", lossy(fine));
        }
    }

    #[test]
    fn other_prefixes_are_refused() {
        for text in [&b"x"[..], b"i/x", b"/etc/passwd", b"b/x"] {
            assert!(matches!(read_side(text, b"a/"), Err(Flaw::Prefix(_))), "{}", lossy(text));
        }
    }
}
