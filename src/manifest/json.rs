//! JSON with places: which bytes of the text each value and key came from.
//!
//! `serde_json` decides what is JSON and says where it is not. This pass runs on text it accepted,
//! and adds what it does not tell: spans, so that a rewrite can leave all other bytes alone, and
//! keys that stand twice in an object, of which readers disagree on the one that counts.

use std::collections::HashSet;
use std::ops::Range;

use super::Place;
use crate::printable::escape_name;

/// How deep values may lie in one another. As many as `serde_json` reads into its own values, which
/// is what entries are read with later; without a limit, a hostile text would exhaust the stack.
const DEEPEST: usize = 127;

/// A value and the bytes it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Object(Vec<Member>),
    /// Anything else, which is never changed in part: what an array holds is checked, and not kept.
    Other,
}

/// A member of an object; `key_span` includes the quotation marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Node,
}

/// What is wrong with a text, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub place: Place,
    pub reason: String,
}

impl Node {
    /// The members, when it is an object.
    pub fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            Kind::Other => None,
        }
    }

    /// The member named `key`, when it is an object that has one.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }
}

/// Reads `text`, the whole of which must be one JSON value without a repeated key at any level.
pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| Fault {
        place: place_of(text, error.line(), error.column()),
        reason: without_place(&error.to_string()),
    })?;
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    scanner.skip_space();
    scanner.value()
}

/// `serde_json` counts columns in bytes, and from 0 where the text ends.
fn place_of(text: &str, line: usize, column: usize) -> Place {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    Place::of(text, text.floor_char_boundary(start + column.saturating_sub(1)))
}

/// `serde_json` appends the place to its text; ours stands elsewhere.
fn without_place(message: &str) -> String {
    message.split_once(" at line ").map_or(message, |(reason, _)| reason).to_owned()
}

/// Walks over text that is known to be JSON.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many values the one at `at` lies in.
    depth: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Node, Fault> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.inside(Self::members)?),
            Some(b'[') => {
                self.inside(Self::skip_items)?;
                Kind::Other
            }
            Some(b'"') => {
                self.string();
                Kind::Other
            }
            _ => {
                while !matches!(self.peek(), None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at += 1;
                }
                Kind::Other
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn inside<T>(&mut self, read: fn(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == DEEPEST {
            let reason = format!("objects and arrays lie more than {DEEPEST} deep in one another");
            return Err(Fault { place: Place::of(self.text, self.at), reason });
        }
        self.depth += 1;
        let found = read(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn members(&mut self) -> Result<Vec<Member>, Fault> {
        let mut members: Vec<Member> = Vec::new();
        let mut keys = HashSet::new();
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            }
            let key_span = self.string();
            let fault = |reason| Fault { place: Place::of(self.text, key_span.start), reason };
            let key: String = serde_json::from_str(&self.text[key_span.clone()])
                .map_err(|error| fault(without_place(&error.to_string())))?;
            if !keys.insert(key.clone()) {
                return Err(fault(format!("the key `{}` stands twice in the same object", escape_name(&key))));
            }
            self.skip_space();
            self.at += 1;
            self.skip_space();
            let value = self.value()?;
            members.push(Member { key, key_span, value });
        }
        self.at += 1;
        // Most objects are small, and a text may have millions of them.
        members.shrink_to_fit();
        Ok(members)
    }

    fn skip_items(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(b']') => break,
                Some(b',') => self.at += 1,
                Some(_) => drop(self.value()?),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Range<usize> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        start..self.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rebuild(text: &str, node: &Node) -> serde_json::Value {
        match &node.kind {
            Kind::Other => serde_json::from_str(&text[node.span.clone()]).unwrap(),
            Kind::Object(members) => {
                members.iter().map(|member| (member.key.clone(), rebuild(text, &member.value))).collect()
            }
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn spans_cover_what_serde_json_reads(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let text = format!(" \r\n{text}\t\n");
            // Not `value` itself: serde_json's reading of a float may differ in the last place.
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(rebuild(&text, &parse(&text).unwrap()), read);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}:,\" \\\\a1e.-]{0,40}") {
            let known = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert!(known || parse(&text).is_err());
        }
    }

    #[test]
    fn depth_has_a_limit_with_a_place() {
        let nested = |open: &str, close: &str, depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
            let levels = open.matches(['[', '{']).count();
            parse(&nested(open, close, DEEPEST / levels)).unwrap();
            let fault = parse(&nested(open, close, 60_000)).unwrap_err();
            assert!(fault.reason.contains("more than 127 deep"), "{}", fault.reason);
        }
        let fault = parse(&nested("[\n", "]", 60_000)).unwrap_err();
        assert_eq!(fault.place, Place { line: 128, column: 1 });
        // What is not nested may be as long as it likes.
        parse(&format!("[{}[]]", "[],".repeat(60_000))).unwrap();
    }

    #[test]
    fn faults_have_a_place() {
        let fault = |text: &str| {
            let fault = parse(text).unwrap_err();
            format!("{}:{} {}", fault.place.line, fault.place.column, fault.reason)
        };
        let cases = [
            "",
            "{\n  \"a\": 1,\n}",
            "{\"é\": 1 x}",
            "{\n \"é\": 1, \"a\": {\"b\": 1,\n\"\\u0062\": 2}}",
            "[01]",
            r#"[[{"a\nb\u001b": 1, "a\nb\u001b": 1}]]"#,
        ];
        insta::assert_snapshot!(cases.map(fault).join("\n"), @r"
        1:1 EOF while parsing a value
        3:1 key must be a string
        1:9 expected `,` or `}`
        3:1 the key `b` stands twice in the same object
        1:3 invalid number
        1:21 the key `a\nb\u{1b}` stands twice in the same object
        ");
    }
}
