//! What a statement says of each step: enough to replay it and to find the first that differs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::descriptor::ResourceDescriptor;
use crate::digest::Digest;
use crate::journal::{Output, Record, ToolRecord};
use crate::key::KeyParts;
use crate::pins::Name;
use crate::step::Step;

/// Begins the names of the byproducts that are records of steps.
pub(super) const PREFIX: &str = "step:";

/// One step as it ran, without times and places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// The kind of its action.
    pub kind: String,
    /// Its key.
    pub key: Digest,
    /// What the key was made of.
    pub parts: KeyParts,
    /// Digest and size in bytes of each output.
    pub outputs: BTreeMap<String, Output>,
    /// The host's tools that it ran.
    pub tools: BTreeMap<Name, ToolRecord>,
    /// Whether it was allowed to use the network.
    pub network: bool,
    /// Whether its commands ran without a network.
    pub isolated: bool,
}

impl StepRecord {
    /// What `record` says of `step`.
    pub fn new(step: &Step, record: &Record) -> Self {
        Self {
            kind: step.action.kind().to_owned(),
            key: record.key,
            parts: record.parts.clone(),
            outputs: record.outputs.clone(),
            tools: record.tools.clone(),
            network: step.network,
            isolated: record.isolated,
        }
    }

    /// As a byproduct called `step:<id>`: the record as annotations, with the digest of their
    /// canonical JSON.
    pub(super) fn descriptor(&self, id: &str) -> ResourceDescriptor {
        let annotations = match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let digest = Digest::of_value(&annotations);
        ResourceDescriptor { annotations, ..ResourceDescriptor::named(format!("{PREFIX}{id}")) }.sha256(digest)
    }

    /// The way back, or what is wrong.
    pub(super) fn read(descriptor: &ResourceDescriptor) -> Result<Self, String> {
        let members = descriptor.annotations.clone().into_iter().collect();
        let record: Self = serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
        let found = Digest::of_value(&descriptor.annotations);
        if descriptor.sha256_of() != Some(found) {
            return Err(format!("its digest is not that of its record, {found}"));
        }
        let key = record.parts.key();
        if key != record.key {
            return Err(format!("its key {} does not follow from its parts, which give {key}", record.key));
        }
        Ok(record)
    }
}
