//! This program's own documents: manifests, plans, attestations, pins, workspaces.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::finding::Sink;
use super::{DiffError, json, text};
use crate::manifest::Identities;
use crate::past::{Recorded, StepDifference, find_differences, finished};
use crate::plan::{self, Plan};
use crate::provenance;
use crate::workspace;

/// Whether a build has worked in the directory at `root`.
pub(super) fn is_workspace(root: &Path) -> bool {
    workspace::check_old(root).is_ok() && workspace::journal_in(root).is_file()
}

/// Compares two JSON documents, known ones by what they mean.
pub(super) fn compare_known(before: &Value, after: &Value, sink: &mut Sink) {
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object()) {
        if let (Some(one), Some(other)) = (payload(before), payload(after)) {
            sink.within("payload", |sink| json::compare(&one, &other, sink));
            if one == other && before.get("payload") != after.get("payload") {
                sink.add("payload: its values are the same, and its bytes are not", None, None);
            }
            return json::compare_objects(before, after, &["payload"], sink);
        }
        if is_statement(before) && is_statement(after) {
            let (mut one, mut other) = (Value::Object(before.clone()), Value::Object(after.clone()));
            read_contents(&mut one);
            read_contents(&mut other);
            return json::compare(&one, &other, sink);
        }
        if let (Some(one), Some(other)) = (artifacts(before), artifacts(after)) {
            compare_artifacts(one, other, sink);
            return json::compare_objects(before, after, &["artifacts"], sink);
        }
        if is_plan(before) && is_plan(after) {
            let read = |value: &Map<String, Value>| serde_json::from_value::<Plan>(Value::Object(value.clone()));
            if let (Ok(one), Ok(other)) = (read(before), read(after)) {
                compare_plans(&one, &other, sink);
            }
        }
    }
    json::compare(before, after, sink);
}

/// What a signed envelope (DSSE) holds.
fn payload(document: &Map<String, Value>) -> Option<Value> {
    document.get("payloadType")?;
    let bytes = STANDARD.decode(document.get("payload")?.as_str()?).ok()?;
    let mut statement = serde_json::from_slice(&bytes).ok()?;
    read_contents(&mut statement);
    Some(statement)
}

fn is_statement(document: &Map<String, Value>) -> bool {
    document.get("_type").and_then(Value::as_str) == Some(provenance::STATEMENT_TYPE)
}

/// Puts the text of every file that a statement carries in the place of its base64.
fn read_contents(statement: &mut Value) {
    let dependencies = statement.pointer_mut("/predicate/buildDefinition/resolvedDependencies");
    for dependency in dependencies.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(content) = dependency.get_mut("content") else { continue };
        let bytes = content.as_str().and_then(|text| STANDARD.decode(text).ok());
        if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            *content = Value::String(text);
        }
    }
}

/// The artifacts of a manifest.
fn artifacts(document: &Map<String, Value>) -> Option<&Map<String, Value>> {
    document.get("artifacts")?.as_object()
}

fn is_plan(document: &Map<String, Value>) -> bool {
    ["schema", "recipe", "platform", "steps"].iter().all(|key| document.contains_key(*key))
}

/// The entries of two manifests: first in a line what an artifact became, then its other keys.
fn compare_artifacts(before: &Map<String, Value>, after: &Map<String, Value>, sink: &mut Sink) {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let read =
            |entry: Option<&Value>| entry.and_then(|entry| serde_json::from_value::<Identities>(entry.clone()).ok());
        let (one, other) = (before.get(name), after.get(name));
        if one == other {
            continue;
        }
        sink.within(format!("artifact {name}"), |sink| {
            let (Some(first), Some(second)) = (read(one), read(other)) else {
                let show = |value: Option<&Value>| value.map(ToString::to_string);
                return match (one, other) {
                    (Some(one), Some(other)) => json::compare(one, other, sink),
                    _ => sink.add("", show(one).as_deref(), show(other).as_deref()),
                };
            };
            let packed = (first.packed.sha256.to_string(), second.packed.sha256.to_string());
            let unpacked = (first.unpacked.sha256.to_string(), second.unpacked.sha256.to_string());
            if first.unpacked != second.unpacked {
                sink.add("unpacked", Some(&unpacked.0), Some(&unpacked.1));
                sink.add("packed", Some(&packed.0), Some(&packed.1));
            } else if first.packed != second.packed {
                sink.add_repacked("packed, with the same content", Some(&packed.0), Some(&packed.1));
            }
            if let (Some(Value::Object(one)), Some(Value::Object(other))) = (one, other) {
                // These follow from the digests.
                let known: &[&str] =
                    if first == second { &[] } else { &["packed", "unpacked", "integrity", "hashedName"] };
                json::compare_objects(one, other, known, sink);
            }
        });
    }
}

/// What a change of plan means, before its details.
fn compare_plans(before: &Plan, after: &Plan, sink: &mut Sink) {
    let changes = plan::diff(before, after);
    if changes.is_empty() {
        return;
    }
    let lines = changes.iter().flat_map(|change| change.to_string().lines().map(str::to_owned).collect::<Vec<_>>());
    let (one, other) = (before.digest().to_string(), after.digest().to_string());
    sink.add_lines("plan", Some(&one), Some(&other), lines.collect());
}

/// Compares two TOML documents by key; what is no TOML, as any other text.
pub(super) fn compare_tomls(left: &[u8], right: &[u8], sink: &mut Sink) {
    let parse = |bytes: &[u8]| toml::from_str::<toml::Table>(&String::from_utf8_lossy(bytes)).ok();
    let (Some(before), Some(after)) = (parse(left), parse(right)) else {
        return sink.within("text that is not valid TOML", |sink| text::compare(left, right, sink));
    };
    // JSON has no infinity and none of what is no number: such values are all one there.
    let same = before == after;
    let count = sink.count();
    if let (Ok(before), Ok(after)) = (serde_json::to_value(before), serde_json::to_value(after)) {
        json::compare(&before, &after, sink);
    }
    if sink.count() == count {
        let place = if same { "comments or the way it is written" } else { "values" };
        sink.within(place, |sink| text::compare(left, right, sink));
    }
}

/// Compares what two workspaces recorded, step by step.
pub(super) fn compare_workspaces(left: &Path, right: &Path, sink: &mut Sink) -> Result<(), DiffError> {
    let (one, other) = (Recorded::read(left)?, Recorded::read(right)?);
    if one.plan != other.plan {
        compare_plans(&one.plan, &other.plan, sink);
    }
    let (before, after) = (finished(&one.latest()), finished(&other.latest()));
    let order = other.plan.steps.iter().chain(&one.plan.steps).map(|step| &step.id);
    let differences = find_differences(order, &before, &after);
    let mut first = true;
    for difference in &differences {
        sink.within(format!("step {}", difference.step), |sink| describe(difference, &mut first, sink));
    }
    Ok(())
}

fn describe(difference: &StepDifference, first: &mut bool, sink: &mut Sink) {
    let present = |present: bool| if present { "finished" } else { "absent" };
    if difference.present != (true, true) {
        return sink.add("", Some(present(difference.present.0)), Some(present(difference.present.1)));
    }
    let mut lines: Vec<String> = difference.causes.iter().map(ToString::to_string).collect();
    if !difference.outputs.is_empty() && *first {
        *first = false;
        lines.push("the first step in plan order whose outputs differ".to_owned());
    }
    if lines.is_empty() || difference.causes.is_empty() {
        lines.push("made from the same: the step does not do the same thing twice".to_owned());
    }
    if difference.outputs.is_empty() {
        return sink.add_lines("made from, with the same outputs", None, None, lines);
    }
    for output in &difference.outputs {
        let show = |output: &Option<crate::journal::Output>| output.map(|output| output.sha256.to_string());
        let (before, after) = (show(&output.before), show(&output.after));
        sink.add_lines(
            &format!("output {}", output.output),
            before.as_deref(),
            after.as_deref(),
            std::mem::take(&mut lines),
        );
    }
}
