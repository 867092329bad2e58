//! JSON, by path: what is compared is what a document says, and how it is written only when that is equal.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::finding::Sink;
use super::{lossy, records, text};

/// Keys by which the objects of an array are told from each other, where every one has one of its own.
const IDENTITIES: [&str; 5] = ["name", "id", "path", "uri", "step"];

/// Compares two documents.
pub(super) fn compare_documents(left: &[u8], right: &[u8], sink: &mut Sink) {
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    let (Ok(before), Ok(after)) = (parse(left), parse(right)) else { return text::compare(left, right, sink) };
    let count = sink.count();
    records::compare_known(&before, &after, sink);
    if sink.count() == count {
        let place = if lossy::loses(left) || lossy::loses(right) {
            "text, in which a key stands twice or a number has more digits than were compared"
        } else {
            "white space, order of keys, or the way numbers are written"
        };
        sink.within(place, |sink| text::compare(left, right, sink));
    }
}

/// Compares two values; each difference is told at its path.
pub(super) fn compare(before: &Value, after: &Value, sink: &mut Sink) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => compare_objects(before, after, &[], sink),
        (Value::Array(before), Value::Array(after)) => compare_arrays(before, after, sink),
        (Value::String(before), Value::String(after)) if before.contains('\n') && after.contains('\n') => {
            let (lines, changed) = text::describe(before, after);
            sink.add_lines("", None, None, std::iter::once(changed).chain(lines).collect());
        }
        _ => sink.add("", Some(&before.to_string()), Some(&after.to_string())),
    }
}

/// The same for objects, without the keys in `except`.
pub(super) fn compare_objects(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    except: &[&str],
    sink: &mut Sink,
) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys.into_iter().filter(|key| !except.contains(&key.as_str())) {
        match (before.get(key), after.get(key)) {
            (Some(before), Some(after)) => sink.within(key, |sink| compare(before, after, sink)),
            (before, after) => {
                let show = |value: Option<&Value>| value.map(ToString::to_string);
                sink.add(key, show(before).as_deref(), show(after).as_deref());
            }
        }
    }
}

fn compare_arrays(before: &[Value], after: &[Value], sink: &mut Sink) {
    if let Some(key) = IDENTITIES.into_iter().find(|key| identifies(key, before) && identifies(key, after)) {
        let named = |values: &[Value]| -> Map<String, Value> {
            let pair = |value: &Value| Some((format!("{key} {}", value.get(key)?.as_str()?), value.clone()));
            values.iter().filter_map(pair).collect()
        };
        let (one, other) = (named(before), named(after));
        let count = sink.count();
        compare_objects(&one, &other, &[], sink);
        if sink.count() == count {
            let list = |values: &Map<String, Value>| values.keys().cloned().collect::<Vec<_>>().join(", ");
            sink.add("order", Some(&list(&one)), Some(&list(&other)));
        }
        return;
    }
    // Without names, a common beginning and end show what was put in or taken out.
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(|(one, other)| one == other);
    let end = end.count();
    let (before, after) = (&before[start..before.len() - end], &after[start..after.len() - end]);
    for index in 0..before.len().max(after.len()) {
        let name = format!("[{}]", start + index);
        match (before.get(index), after.get(index)) {
            (Some(before), Some(after)) => sink.within(name, |sink| compare(before, after, sink)),
            (before, after) => {
                let show = |value: Option<&Value>| value.map(ToString::to_string);
                sink.add(&name, show(before).as_deref(), show(after).as_deref());
            }
        }
    }
}

/// Whether each of `values` is an object with a text of its own under `key`.
fn identifies(key: &str, values: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    values.iter().all(|value| value.get(key).and_then(Value::as_str).is_some_and(|name| seen.insert(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::{Finding, Report};
    use super::*;
    use crate::interrupt::Interrupt;

    fn found(before: &Value, after: &Value) -> Vec<Finding> {
        let interrupt = Interrupt::default();
        let mut sink = Sink::new(20, &interrupt);
        compare(before, after, &mut sink);
        let Report { findings, .. } = sink.finish("a".as_ref(), "b".as_ref(), "json");
        findings
    }

    fn shown(before: &Value, after: &Value) -> Vec<String> {
        let line = |finding: Finding| {
            let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
            format!("{}: {} → {}", finding.place.join("/"), text(finding.before), text(finding.after))
        };
        found(before, after).into_iter().map(line).collect()
    }

    #[test]
    fn values_are_told_at_their_path() {
        let before = json!({"a": {"b": [1, 2], "c": null}, "d": 1});
        let after = json!({"a": {"b": [1, 3], "e": "x"}, "d": 1});
        assert_eq!(shown(&before, &after), ["a/b/[1]: 2 → 3", "a/c: null → -", "a/e: - → \"x\""]);
    }

    #[test]
    fn objects_of_an_array_are_known_by_name() {
        let before = json!([{"name": "a", "v": 1}, {"name": "b", "v": 2}]);
        let after = json!([{"name": "c", "v": 3}, {"name": "b", "v": 4}]);
        assert_eq!(
            shown(&before, &after),
            ["name a: {\"name\":\"a\",\"v\":1} → -", "name b/v: 2 → 4", "name c: - → {\"name\":\"c\",\"v\":3}"]
        );
        let turned = json!([{"name": "b", "v": 2}, {"name": "a", "v": 1}]);
        assert_eq!(shown(&before, &turned), ["order: name a, name b → name b, name a"]);
    }

    #[test]
    fn what_was_put_into_an_array_is_found() {
        assert_eq!(shown(&json!([1, 2, 3]), &json!([1, 9, 2, 3])), ["[1]: - → 9"]);
        assert_eq!(shown(&json!([1, 2, 3]), &json!([2, 3])), ["[0]: 1 → -"]);
    }
}
