//! The statement and its predicate, field by field as in-toto's Statement v1 and SLSA's provenance v1
//! have them. Fields that this version does not know are ignored, as both specifications demand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::descriptor::ResourceDescriptor;
use super::facts::BILL;
use super::sbom;
use crate::digest::Digest;
use crate::pins::{Name, Platform};

/// An in-toto Statement v1 about one build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// Always [`super::STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub kind: String,
    /// Every artifact, as delivered and as built.
    pub subject: Vec<ResourceDescriptor>,
    /// Always [`super::PREDICATE_TYPE`].
    pub predicate_type: String,
    /// How they were built.
    pub predicate: Provenance,
}

/// SLSA provenance v1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// What was to be built, and from what.
    pub build_definition: BuildDefinition,
    /// This run of it.
    pub run_details: RunDetails,
}

/// The inputs of a build: what would have to be equal for it to be the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildDefinition {
    /// Always [`super::BUILD_TYPE`].
    pub build_type: String,
    /// What the person asked for.
    pub external_parameters: ExternalParameters,
    /// What the builder chose.
    pub internal_parameters: InternalParameters,
    /// Everything that went in, by digest.
    pub resolved_dependencies: Vec<ResourceDescriptor>,
}

/// What the person who built asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalParameters {
    /// Name and digest of the pins file; its text is among the resolved dependencies.
    pub pins: ResourceDescriptor,
    /// Whether inputs without a recorded digest were accepted.
    pub record_unknown: bool,
}

/// What the builder chose or found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalParameters {
    /// The recipe.
    pub recipe: Name,
    /// The platform that was planned for.
    pub platform: Platform,
    /// The plan's digest. The plan itself follows from pins and platform.
    pub plan: Digest,
    /// The most steps at a time.
    pub jobs: usize,
    /// Whether the host could run steps without a network.
    pub isolation: bool,
    /// Names of environment variables that steps with network were given.
    pub passed_through: Vec<String>,
}

/// One run of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDetails {
    /// Who built.
    pub builder: Builder,
    /// Which run.
    pub metadata: Metadata,
    /// Plan, bill of materials, journal, logs, and a record of every step.
    pub byproducts: Vec<ResourceDescriptor>,
}

/// Who built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builder {
    /// Their id, a URI: [`super::BuilderId`].
    pub id: String,
    /// Versions by component: `rebuild-model`.
    #[serde(default)]
    pub version: BTreeMap<String, String>,
}

/// Which run. Nothing else in a statement, but the digests of journal and logs, differs between two
/// runs on one host that gave the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// An id of the run: the digest of plan, time and journal.
    pub invocation_id: String,
    /// When its first step began, RFC 3339.
    pub started_on: String,
    /// When its last step had ended, RFC 3339.
    pub finished_on: String,
}

impl Statement {
    /// The statement as it stands in a file: JSON with line breaks, fields in this order.
    pub fn to_bytes(&self) -> Vec<u8> {
        // The types above are JSON; were one not, an empty attestation would be refused by its reader.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The bill of materials that follows from it: `CycloneDX` 1.6 as JSON.
    pub fn bill_of_materials(&self) -> Vec<u8> {
        let predicate = &self.predicate;
        sbom::bill(&self.subject, &predicate.build_definition, &predicate.run_details.builder)
    }

    /// The digest of the bill of materials that it states.
    pub fn bill_digest(&self) -> Option<Digest> {
        let byproducts = &self.predicate.run_details.byproducts;
        byproducts.iter().find(|byproduct| byproduct.kind() == BILL)?.sha256_of()
    }

    /// Without what speaks of one run only: times, the invocation's id, and the digests of journal and
    /// logs, in which times stand. Two runs on one host that did the same have this in common.
    #[must_use]
    pub fn without_run(&self) -> Self {
        let mut common = self.clone();
        let details = &mut common.predicate.run_details;
        details.metadata = Metadata::default();
        for byproduct in &mut details.byproducts {
            if ["journal", "log"].contains(&byproduct.kind()) {
                byproduct.digest.clear();
            }
        }
        common
    }
}
