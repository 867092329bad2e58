//! What a manifest's entry claims, read with suspicion: every part that is missing or malformed is
//! a problem of its own, and what is left can still be checked.

use serde_json::Value;

use super::problem::Problem;
use crate::artifact::encoding::FileId;
use crate::digest::Digest;
use crate::manifest::integrity_of;
use crate::pins::Encoding;

/// The claims of one entry that could be read.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub encoding: Option<Encoding>,
    pub packed: Option<FileId>,
    pub unpacked: Option<FileId>,
}

impl Claim {
    /// Reads an entry's JSON text.
    pub fn read(text: &str) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let entry: Value = serde_json::from_str(text).unwrap_or_default();
        if !entry.is_object() {
            problems.push(malformed("entry", "an object", &entry));
            return (Self::default(), problems);
        }
        let encoding = read_field(&entry, "encoding", "gzip, br or identity", &mut problems, |value| {
            serde_json::from_value(value.clone()).ok()
        });
        let packed = read_id(&entry, "packed", &mut problems);
        let unpacked = read_id(&entry, "unpacked", &mut problems);
        if encoding == Some(Encoding::Identity) && packed.zip(unpacked).is_some_and(|(one, two)| one != two) {
            problems.push(Problem::NotIdentical);
        }
        for (side, id) in [("packed", packed), ("unpacked", unpacked)] {
            check_integrity(&entry, side, id, &mut problems);
        }
        (Self { encoding, packed, unpacked }, problems)
    }

    /// Bytes to be hashed: what the work on this artifact costs.
    pub fn cost(&self) -> u64 {
        let decoded = self.unpacked.filter(|_| self.encoding != Some(Encoding::Identity));
        self.packed.map_or(0, |id| id.size).saturating_add(decoded.map_or(0, |id| id.size))
    }
}

fn read_id(entry: &Value, side: &str, problems: &mut Vec<Problem>) -> Option<FileId> {
    let Some(node) = entry.get(side) else {
        problems.push(Problem::FieldMissing { field: side.into() });
        return None;
    };
    if !node.is_object() {
        problems.push(malformed(side, "an object", node));
        return None;
    }
    let digest = read_field(entry, &format!("{side}.sha256"), "64 lower-case hexadecimal digits", problems, |value| {
        value.as_str()?.parse::<Digest>().ok()
    });
    let length =
        read_field(entry, &format!("{side}.size"), "a whole number of bytes", problems, serde_json::Value::as_u64);
    Some(FileId { sha256: digest?, size: length? })
}

/// The value at `field`, whose keys stand between dots, as `read` takes it.
fn read_field<T>(
    entry: &Value,
    field: &str,
    expected: &'static str,
    problems: &mut Vec<Problem>,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let node = field.split('.').try_fold(entry, |node, key| node.get(key));
    let Some(node) = node else {
        problems.push(Problem::FieldMissing { field: field.into() });
        return None;
    };
    let value = read(node);
    if value.is_none() {
        problems.push(malformed(field, expected, node));
    }
    value
}

/// Integrity texts may be left out; what stands there must be true.
fn check_integrity(entry: &Value, side: &str, id: Option<FileId>, problems: &mut Vec<Problem>) {
    let (Some(found), Some(id)) = (entry.get("integrity").and_then(|node| node.get(side)), id) else { return };
    let expected = integrity_of(&id.sha256);
    if found.as_str() != Some(&expected) {
        problems.push(Problem::Integrity { field: format!("integrity.{side}"), expected, found: shorten(found) });
    }
}

fn malformed(field: &str, expected: &'static str, found: &Value) -> Problem {
    Problem::FieldMalformed { field: field.into(), expected, found: shorten(found) }
}

/// `value` as JSON, cut to what fits in a message.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(79).chain(['…']).collect() }
}
