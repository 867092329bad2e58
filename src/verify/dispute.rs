//! What can be wrong with an attestation, or with what it says.

use serde::Serialize;

use crate::digest::Digest;
use crate::printable::{cut, escape_name};
use crate::provenance::dsse::SignatureProblem;

/// What is wrong. What is `stated` stands in the attestation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Dispute {
    /// There is none, and something that was asked for needs one.
    #[error("there is no attestation: {} does not exist", shown(path))]
    NoAttestation {
        /// Where it is expected.
        path: String,
    },
    /// It is not signed, and must be.
    #[error("the attestation is not signed: it is a bare statement")]
    NotSigned,
    /// A signature is not what it must be.
    #[error("the attestation's signatures: {}", shown(&.0.to_string()))]
    Signature(SignatureProblem),
    /// A subject cannot be understood.
    #[error("the attestation's subject {}: {reason}", shown(name))]
    Subject {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The manifest lists an artifact of which the attestation does not speak.
    #[error("the manifest lists it, and the attestation does not speak of it")]
    Unattested,
    /// The attestation speaks of an artifact that the manifest does not list.
    #[error("the attestation speaks of it, and the manifest does not list it")]
    Unlisted,
    /// Manifest and attestation contradict each other.
    #[error("`{field}`: the attestation says {}, the manifest {}", shown(stated), shown(found))]
    EntryDiffers {
        /// The key, with the keys above it.
        field: &'static str,
        /// As attested.
        stated: String,
        /// As in the manifest.
        found: String,
    },
    /// Something that is needed to check it is not in it.
    #[error("the attestation does not carry {}", shown(what))]
    NotCarried {
        /// What.
        what: String,
    },
    /// What it says of itself in two places differs, or does not follow from the pins that it carries.
    #[error("the attestation's {what}: expected {}, found {}", shown(expected), shown(stated))]
    Differs {
        /// Which part.
        what: &'static str,
        /// What follows from the rest.
        expected: String,
        /// What stands there.
        stated: String,
    },
    /// The pins that it carries make no plan.
    #[error("the pins that the attestation carries make no plan: {}", shown(reason))]
    PinsInvalid {
        /// Why.
        reason: String,
    },
    /// The plan is not the one that follows from the pins.
    #[error("the attestation's plan: {derived} follows from its pins, found {stated}{}",
        by.as_ref().map_or_else(String::new, |by| format!(" (built by {}, which may have planned otherwise)", shown(by))))]
    PlanDiffers {
        /// What follows.
        derived: Digest,
        /// What stands there.
        stated: Digest,
        /// The program that built, when it is another version than this one.
        by: Option<String>,
    },
    /// The record of a step does not follow from the plan and from the steps before it.
    #[error(
        "the attestation's step {}: {}: expected {}, found {}",
        shown(step),
        shown(what),
        shown(expected),
        shown(stated)
    )]
    Step {
        /// The step.
        step: String,
        /// Which part of it.
        what: String,
        /// What follows.
        expected: String,
        /// What stands there.
        stated: String,
    },
    /// Something that went in is not what was pinned.
    #[error(
        "the attestation's dependency {}: {}: expected {}, found {}",
        shown(name),
        shown(what),
        shown(expected),
        shown(stated)
    )]
    Dependency {
        /// Its name.
        name: String,
        /// Which part of it.
        what: String,
        /// What follows from the pins.
        expected: String,
        /// What stands there.
        stated: String,
    },
    /// The journal is not the attested one.
    #[error("the journal: {}", shown(reason))]
    Journal {
        /// The step whose record differs, when it is one.
        step: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// The bill of materials is not the one that follows from the attestation.
    #[error("{} is not the bill of materials of this attestation", shown(path))]
    Materials {
        /// The file.
        path: String,
    },
    /// The policy is not met.
    #[error("policy `{rule}`: {}: {}", shown(culprit), shown(reason))]
    Policy {
        /// The policy's key.
        rule: &'static str,
        /// What does not meet it.
        culprit: String,
        /// In which way.
        reason: String,
    },
}

/// Text of whoever wrote the attestation, in a sentence of ours.
fn shown(text: &str) -> String {
    escape_name(&cut(text, 300))
}
