//! What a manifest's entry claims, read with suspicion: every part that is missing or malformed is
//! a problem of its own, and what is left can still be checked.

use serde_json::Value;

use super::problem::Problem;
use crate::artifact::encoding::FileId;
use crate::digest::Digest;
use crate::manifest::{hashed_name, integrity_of};
use crate::pins::Encoding;

/// The claims of one entry that could be read.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub encoding: Option<Encoding>,
    pub packed: Option<FileId>,
    pub unpacked: Option<FileId>,
}

impl Claim {
    /// Reads the JSON text of the entry for `path`.
    pub fn read(path: &str, text: &str) -> (Self, Vec<Problem>) {
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
        if let Some(integrity) = entry.get("integrity") {
            check_integrity(integrity, [("packed", packed), ("unpacked", unpacked)], &mut problems);
        }
        // A path that is none has a problem of its own.
        if let (Some(found), Some((encoding, packed)), Ok(path)) =
            (entry.get("hashedName"), encoding.zip(packed), path.parse())
        {
            let expected = hashed_name(&path, encoding, &packed.sha256);
            if found.as_str() != Some(&expected) {
                problems.push(Problem::HashedName { expected, found: shorten(found) });
            }
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

/// Integrity texts may be left out, but only together. What stands there must be true, and no page
/// may rely on a text that is not checked here.
fn check_integrity(integrity: &Value, sides: [(&str, Option<FileId>); 2], problems: &mut Vec<Problem>) {
    let Some(members) = integrity.as_object() else {
        problems.push(malformed("integrity", "an object", integrity));
        return;
    };
    for (side, id) in sides {
        let field = format!("integrity.{side}");
        let Some(found) = members.get(side) else {
            problems.push(Problem::FieldMissing { field });
            continue;
        };
        // Without a digest there is nothing to compare with, and a problem already.
        let Some(expected) = id.map(|id| integrity_of(&id.sha256)) else { continue };
        if found.as_str() != Some(&expected) {
            problems.push(Problem::Integrity { field, expected, found: shorten(found) });
        }
    }
    let unknown = members.keys().filter(|key| sides.iter().all(|(side, _)| side != key));
    problems.extend(unknown.map(|key| Problem::FieldUnknown { field: format!("integrity.{key}") }));
}

fn malformed(field: &str, expected: &'static str, found: &Value) -> Problem {
    Problem::FieldMalformed { field: field.into(), expected, found: shorten(found) }
}

/// `value` as JSON, cut to what fits in a message.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(79).chain(['…']).collect() }
}
