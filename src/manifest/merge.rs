//! Putting values into a JSON text while every other byte of it stays.
//!
//! A value that is already there in the same meaning keeps its bytes. New members go to the end of
//! their object, with the indentation that the text uses around them.

use std::collections::HashSet;

use serde_json::Value;

use super::json::{Kind, Member, Node};

/// `text`, which `root` was read from, with every member of `wanted` in it.
///
/// Objects are merged member by member at every level; anything else replaces what stood there.
pub(crate) fn merge(text: &str, root: &Node, wanted: &Value) -> String {
    let mut edits = Vec::new();
    let style = Style::of(text, root);
    collect_edits(text, root, wanted, &style, &mut edits);
    let mut merged = String::with_capacity(text.len());
    let mut kept = 0;
    // Edits are found from front to back and never overlap.
    for (start, end, replacement) in edits {
        merged.push_str(&text[kept..start]);
        merged.push_str(&replacement);
        kept = end;
    }
    merged.push_str(&text[kept..]);
    merged
}

type Edit = (usize, usize, String);

/// How a text is laid out.
struct Style {
    /// White space of one more level, or nothing for a text in one line.
    indent: Option<String>,
    newline: &'static str,
    colon: &'static str,
    /// Between members that stand in one line.
    comma: &'static str,
}

impl Style {
    fn of(text: &str, root: &Node) -> Self {
        let first = root.members().and_then(<[Member]>::first);
        let space = first.map_or("\n  ", |member| &text[root.span.start + 1..member.key_span.start]);
        let between = first.map_or(": ", |member| &text[member.key_span.end..member.value.span.start]);
        let spaced = between.ends_with([' ', '\t', '\n', '\r']);
        Self {
            indent: space.rfind('\n').map(|at| space[at + 1..].to_owned()),
            newline: if space.contains("\r\n") { "\r\n" } else { "\n" },
            colon: if spaced { ": " } else { ":" },
            comma: if spaced { ", " } else { "," },
        }
    }

    /// What begins a new line indented as `depth` levels.
    fn line(&self, depth: usize) -> Option<String> {
        self.indent.as_ref().map(|indent| format!("{}{}", self.newline, indent.repeat(depth)))
    }

    /// `value` as text; `line` begins a line at the level of the member that holds it, if the
    /// member stands in a line of its own.
    fn write(&self, value: &Value, line: Option<&str>, into: &mut String) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let inner = line.zip(self.indent.as_ref()).map(|(line, indent)| format!("{line}{indent}"));
                into.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        into.push_str(if inner.is_some() { "," } else { self.comma });
                    }
                    into.push_str(inner.as_deref().unwrap_or_default());
                    self.write_member(key, value, inner.as_deref(), into);
                }
                if let Some(line) = line.filter(|_| inner.is_some()) {
                    into.push_str(line);
                }
                into.push('}');
            }
            other => into.push_str(&other.to_string()),
        }
    }

    fn write_member(&self, key: &str, value: &Value, line: Option<&str>, into: &mut String) {
        into.push_str(&Value::from(key).to_string());
        into.push_str(self.colon);
        self.write(value, line, into);
    }
}

fn collect_edits(text: &str, node: &Node, wanted: &Value, style: &Style, edits: &mut Vec<Edit>) {
    let (Kind::Object(members), Value::Object(wanted)) = (&node.kind, wanted) else {
        return;
    };
    for member in members {
        let Some(value) = wanted.get(&member.key) else { continue };
        let old = &member.value;
        if matches!((&old.kind, value), (Kind::Object(_), Value::Object(_))) {
            collect_edits(text, old, value, style, edits);
        } else if serde_json::from_str::<Value>(&text[old.span.clone()]).ok().as_ref() != Some(value) {
            let mut replacement = String::new();
            style.write(value, line_before(text, member.key_span.start).as_deref(), &mut replacement);
            edits.push((old.span.start, old.span.end, replacement));
        }
    }
    let present: HashSet<&str> = members.iter().map(|member| member.key.as_str()).collect();
    let mut missing = wanted.iter().filter(|(key, _)| !present.contains(key.as_str())).peekable();
    if missing.peek().is_none() {
        return;
    }
    let mut added = String::new();
    let (at, end) = if let Some(last) = members.last() {
        // A new member stands as the last one does: in a line of its own, or not.
        let line = line_before(text, last.key_span.start);
        for (key, value) in missing {
            added.push_str(if line.is_some() { "," } else { style.comma });
            added.push_str(line.as_deref().unwrap_or_default());
            style.write_member(key, value, line.as_deref(), &mut added);
        }
        (last.value.span.end, last.value.span.end)
    } else {
        let outer = own_line(text, node).or_else(|| style.line(0));
        let members = missing.map(|(key, value)| (key.clone(), value.clone())).collect();
        style.write(&members, outer.as_deref(), &mut added);
        (node.span.start, node.span.end)
    };
    edits.push((at, end, added));
}

/// The line break and indentation before `at`, when nothing but white space stands before it there.
fn line_before(text: &str, at: usize) -> Option<String> {
    let before = text[..at].trim_end_matches([' ', '\t']);
    let start = before.strip_suffix('\n')?;
    let newline = if start.ends_with('\r') { "\r\n" } else { "\n" };
    Some(format!("{newline}{}", &text[before.len()..at]))
}

/// The line break and indentation of the line in which `node` begins.
fn own_line(text: &str, node: &Node) -> Option<String> {
    let start = text[..node.span.start].rfind('\n')? + 1;
    let line = &text[start..node.span.start];
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    line_before(text, start + indent.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::json::parse;

    fn merged(text: &str, wanted: &Value) -> String {
        let merged = merge(text, &parse(text).unwrap(), wanted);
        let again = merge(&merged, &parse(&merged).unwrap(), wanted);
        assert_eq!(merged, again, "merging twice changes nothing more");
        merged
    }

    #[test]
    fn what_is_there_in_the_same_meaning_keeps_its_bytes() {
        let text = "{ \"a\" :1 ,\n\t\"b\": [1e-05, 1.0, 100000000000000000000001],\"c\":\"\\u0041\" }\n\n";
        assert_eq!(merged(text, &json!({"c": "A", "a": 1})), text);
    }

    #[test]
    fn layouts_are_kept() {
        let wanted = json!({"a": {"n": 2, "new": {"x": 1}}, "z": "new"});
        let texts = [
            "{}",
            "{\n}\n",
            "{\"a\":{\"n\":1,\"k\":1e-05}}",
            "{\"a\": {\"n\": 1}, \"b\": []}\n",
            "{\n  \"a\": {\"n\": 1},\n  \"b\": 1e-05\n}\n",
            "{\n\t\"a\": {\n\t\t\"n\": 1\n\t},\n\t\"b\": 1\n}",
            "{\r\n    \"a\": {},\r\n    \"b\": 1\r\n}\r\n",
            "{\n  \"a\": 3,\n  \"b\": 1\n}\n",
        ];
        let shown: Vec<_> = texts.iter().map(|text| format!("{:?}", merged(text, &wanted))).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        "{\n  \"a\": {\n    \"n\": 2,\n    \"new\": {\n      \"x\": 1\n    }\n  },\n  \"z\": \"new\"\n}"
        "{\n  \"a\": {\n    \"n\": 2,\n    \"new\": {\n      \"x\": 1\n    }\n  },\n  \"z\": \"new\"\n}\n"
        "{\"a\":{\"n\":2,\"k\":1e-05,\"new\":{\"x\":1}},\"z\":\"new\"}"
        "{\"a\": {\"n\": 2, \"new\": {\"x\": 1}}, \"b\": [], \"z\": \"new\"}\n"
        "{\n  \"a\": {\"n\": 2, \"new\": {\"x\": 1}},\n  \"b\": 1e-05,\n  \"z\": \"new\"\n}\n"
        "{\n\t\"a\": {\n\t\t\"n\": 2,\n\t\t\"new\": {\n\t\t\t\"x\": 1\n\t\t}\n\t},\n\t\"b\": 1,\n\t\"z\": \"new\"\n}"
        "{\r\n    \"a\": {\r\n        \"n\": 2,\r\n        \"new\": {\r\n            \"x\": 1\r\n        }\r\n    },\r\n    \"b\": 1,\r\n    \"z\": \"new\"\r\n}\r\n"
        "{\n  \"a\": {\n    \"n\": 2,\n    \"new\": {\n      \"x\": 1\n    }\n  },\n  \"b\": 1,\n  \"z\": \"new\"\n}\n"
        "#);
    }
}
