//! Does the library describe the model that was asked for?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Expectations, Expected, Findings, list};
use crate::artifact::library::Library;
use crate::artifact::wasm::metadata::{Metadata, Param};
use crate::artifact::weights::{Record, TensorCache};
use crate::pins::Rule;

/// Settings that a library takes over from the model's configuration and that a build must not
/// change unasked: the first two because weights and templates depend on them, the others because
/// memory and behaviour do.
pub const KEPT: [&str; 8] = [
    "model_type",
    "quantization",
    "context_window_size",
    "sliding_window_size",
    "attention_sink_size",
    "prefill_chunk_size",
    "tensor_parallel_shards",
    "pipeline_parallel_stages",
];

/// What `mlc-chat-config.json` in `config` says of the settings that a library keeps. Those that it
/// leaves open (negative) are left out: MLC-LLM chooses them.
pub fn settings_of_config(config: &Value) -> BTreeMap<String, Expected> {
    let chosen = |value: &Value| value.is_string() || value.as_i64().is_some_and(|number| number >= 0);
    KEPT.iter()
        .filter_map(|&key| Some((key.to_owned(), config.get(key)?)))
        .filter(|(_, value)| chosen(value))
        .map(|(key, value)| (key, Expected { value: value.clone(), by: "the model's configuration" }))
        .collect()
}

pub(super) fn judge(library: &Library, expected: &Expectations, findings: &mut Findings<'_>) {
    let metadata = match library.metadata.as_slice() {
        [only] => only,
        [] => {
            let message = "expected a description of the model in linear memory, found none".to_owned();
            return findings.error(Rule::Metadata, message, Some("the library was not linked with a compiled model"));
        }
        several => {
            let message = format!("expected one description of the model in linear memory, found {}", several.len());
            return findings.error(Rule::Metadata, message, Some("objects of two models were linked together"));
        }
    };
    for (key, expected) in &expected.settings {
        let found = setting(metadata, key);
        if found.as_ref() != Some(&expected.value) {
            let found = found.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
            let message = format!("{key}: expected {} ({}), found {found}", expected.value, expected.by);
            findings.error(Rule::Metadata, message, hint(key));
        }
    }
    if let Some(weights) = &expected.weights {
        judge_params(&metadata.params, weights, findings);
    }
}

fn hint(key: &str) -> Option<&'static str> {
    match key {
        "max_batch_size" => {
            Some("the override did not take: upstream's default is 128, and caches and work buffers grow with it")
        }
        "quantization" => Some("library and weights would not fit each other"),
        _ => None,
    }
}

fn setting(metadata: &Metadata, key: &str) -> Option<Value> {
    match key {
        "model_type" => Some(metadata.model_type.clone().into()),
        "quantization" => metadata.quantization.clone().map(Value::from),
        other => metadata.settings.get(other).cloned(),
    }
}

fn judge_params(params: &[Param], weights: &TensorCache, findings: &mut Findings<'_>) {
    let wanted: BTreeMap<&str, &Param> = params.iter().map(|param| (param.name.as_str(), param)).collect();
    let given: BTreeMap<&str, &Record> = weights.params().map(|record| (record.name.as_str(), record)).collect();
    let missing: Vec<&str> = wanted.keys().filter(|name| !given.contains_key(*name)).copied().collect();
    let unknown: Vec<&str> = given.keys().filter(|name| !wanted.contains_key(*name)).copied().collect();
    let other: Vec<String> = wanted.iter().filter_map(|(name, param)| differs(param, given.get(name)?)).collect();
    let mut report = |what: &str, names: &[String]| {
        if !names.is_empty() {
            let hint = "library and weights are of different models or quantizations";
            findings.error(Rule::Parameters, format!("{what}: {}", list(names)), Some(hint));
        }
    };
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    report("parameters of the library that the weights lack", &owned(missing));
    report("parameters in the weights that the library does not know", &owned(unknown));
    report("parameters with another shape or type", &other);
    let repeated = params.len() - wanted.len();
    if repeated > 0 {
        findings.error(Rule::Parameters, format!("{repeated} parameters of the library have a name twice"), None);
    }
}

/// How a parameter in the weights differs from what the library takes.
fn differs(param: &Param, record: &Record) -> Option<String> {
    // A dimension that is no number is open until a model is loaded.
    let fits = param.shape.len() == record.shape.len()
        && param
            .shape
            .iter()
            .zip(&record.shape)
            .all(|(wanted, given)| wanted.as_u64().is_none_or(|wanted| wanted == *given));
    if fits && param.dtype == record.dtype {
        return None;
    }
    let wanted = Value::from(param.shape.clone());
    let given = Value::from(record.shape.clone());
    Some(format!("{} ({} {wanted}, in the weights {} {given})", param.name, param.dtype, record.dtype))
}

/// How the memory that functions plan for differs from `before` to `after`: a line for each.
pub fn compare_memory(before: &Metadata, after: &Metadata) -> Vec<String> {
    let names: BTreeSet<&String> = before.memory_usage.keys().chain(after.memory_usage.keys()).collect();
    let show = |bytes: Option<&u64>| bytes.map_or_else(|| "nothing".to_owned(), |bytes| format!("{bytes} bytes"));
    let change = |name: &&String| {
        let (old, new) = (before.memory_usage.get(*name), after.memory_usage.get(*name));
        (old != new).then(|| format!("{name} plans {} of work memory, before {}", show(new), show(old)))
    };
    names.iter().filter_map(change).collect()
}
