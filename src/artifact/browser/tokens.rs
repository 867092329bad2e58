//! The words of a JavaScript text, as far as they are needed to find object literals in it: no
//! comments, and nothing of what strings, templates and regular expressions contain.

/// A word. Brackets of all kinds are told from other signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    /// A string's content, escapes as written.
    Text(&'a str),
    Number(&'a str),
    Open(char),
    Close(char),
    Sign(char),
    /// A template or a regular expression.
    Opaque,
}

impl<'a> Token<'a> {
    /// The text of what can be a property's name.
    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Token::Name(text) | Token::Text(text) | Token::Number(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self, Token::Name(own) if *own == name)
    }

    /// Whether a `/` after it divides.
    fn ends_value(&self) -> bool {
        match self {
            Token::Name(name) => ![
                "return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new", "await",
                "yield",
            ]
            .contains(name),
            Token::Text(_) | Token::Number(_) | Token::Opaque | Token::Close(_) => true,
            Token::Open(_) | Token::Sign(_) => false,
        }
    }
}

/// The words of a text, in order.
pub(super) struct Words<'a> {
    tokens: Vec<Token<'a>>,
    /// For each word that opens a bracket, the place of the one that closes it.
    ends: Vec<Option<usize>>,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let tokens = tokens(text);
        let mut ends = vec![None; tokens.len()];
        let mut open = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Open(_) => open.push(at),
                Token::Close(_) => {
                    if let Some(start) = open.pop() {
                        ends[start] = Some(at);
                    }
                }
                _ => {}
            }
        }
        Self { tokens, ends }
    }

    pub(super) fn tokens(&self) -> &[Token<'a>] {
        &self.tokens
    }

    /// The place of the bracket that closes the one at `at`.
    pub(super) fn end_of(&self, at: usize) -> Option<usize> {
        self.ends.get(at).copied().flatten()
    }
}

/// The words of `text`. What is not JavaScript gives some words or others, never an error: what is
/// then not found is what the reader reports.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // For each open parenthesis, whether it began the condition of a statement. What follows such a
    // condition begins an expression, so a `/` there divides nothing.
    let mut conditions: Vec<bool> = Vec::new();
    let mut after_condition = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let before = tokens.len();
        let length = match c {
            _ if c.is_whitespace() => c.len_utf8(),
            '/' if rest.starts_with("//") => rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            '\'' | '"' => {
                let end = quoted(rest, c);
                tokens.push(Token::Text(rest[1..end].strip_suffix(c).unwrap_or(&rest[1..end])));
                end
            }
            '`' => {
                tokens.push(Token::Opaque);
                template(rest)
            }
            '/' if after_condition || !tokens.last().is_some_and(Token::ends_value) => {
                tokens.push(Token::Opaque);
                expression(rest)
            }
            _ if is_part(c) => {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                tokens.push(if c.is_ascii_digit() { Token::Number(word) } else { Token::Name(word) });
                end
            }
            '{' | '(' | '[' => {
                if c == '(' {
                    let words = ["if", "while", "for", "with"];
                    conditions.push(tokens.last().is_some_and(|last| words.iter().any(|word| last.is_name(word))));
                }
                tokens.push(Token::Open(c));
                1
            }
            '}' | ')' | ']' => {
                tokens.push(Token::Close(c));
                1
            }
            _ => {
                tokens.push(Token::Sign(c));
                c.len_utf8()
            }
        };
        if tokens.len() > before {
            after_condition = c == ')' && conditions.pop().unwrap_or(false);
        }
        rest = &rest[length..];
    }
    tokens
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '#')
}

/// The length of the string that `rest` begins with; it ends at the line's end at the latest.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of the template that `rest` begins with. What is inserted into it may have braces,
/// strings and templates of its own, so open ones are kept on a stack: a backquote for a template, a
/// brace for a part of the program.
fn template(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut open = vec![b'`'];
    let mut at = 1;
    while at < bytes.len() {
        let step = match (open.last(), bytes[at]) {
            (None, _) => return at,
            (Some(b'`'), b'\\') => 2,
            (Some(b'`'), b'`') | (Some(b'{'), b'}') => {
                open.pop();
                1
            }
            (Some(b'`'), b'$') if bytes.get(at + 1) == Some(&b'{') => {
                open.push(b'{');
                2
            }
            (Some(b'{'), quote @ (b'`' | b'{')) => {
                open.push(quote);
                1
            }
            (Some(b'{'), quote @ (b'"' | b'\'')) => quoted(&rest[at..], char::from(quote)),
            _ => 1,
        };
        at += step;
    }
    // An escape may have led behind the end, or into a character.
    let mut end = at.min(rest.len());
    while !rest.is_char_boundary(end) {
        end += 1;
    }
    end
}

/// The length of the regular expression that `rest` begins with, flags aside; 1 when the line ends
/// before it does, since then it is a division after all.
fn expression(rest: &str) -> usize {
    let (mut escaped, mut class) = (false, false);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return 1,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '/' if !class => return at + 1,
            _ => {}
        }
    }
    1
}
