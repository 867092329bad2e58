//! Provenance: what a build says of itself, so that a stranger can check it and do it again.
//!
//! A [`Statement`] is an in-toto Statement v1 whose predicate is SLSA provenance v1. It is a pure
//! function of what was pinned, planned, recorded and delivered ([`Facts`]); [`Attestation::read`] is
//! the way back from a file. A bill of materials follows from it ([`Statement::bill_of_materials`]). Files beside the pins that only the builder has are carried in it.
//!
//! **Invariant**: nothing here runs a tool or asks for the time.

mod attestation;
mod builder_id;
mod carried;
mod dependencies;
mod descriptor;
pub mod dsse;
mod error;
mod facts;
mod key_form;
mod keys;
mod sbom;
mod statement;
mod step_record;
mod subjects;

pub use attestation::{Attestation, LARGEST};
pub use builder_id::{BuilderId, NotABuilderId};
pub use carried::{CarriedFile, LARGEST_CARRIED, carry};
pub use dependencies::{pinned, wheel_url};
pub use descriptor::{Content, ResourceDescriptor};
pub use error::AttestationError;
pub use facts::{Facts, statement};
pub use keys::{KeyError, PrivateKey, PublicKey};
pub use statement::{
    BuildDefinition, Builder, ExternalParameters, InternalParameters, Metadata, Provenance, RunDetails, Statement,
};
pub use step_record::StepRecord;
pub use subjects::{NotASubject, entries, subjects};

use std::path::{Path, PathBuf};

/// The type of the statements ([in-toto Attestation Framework v1, Statement][1]).
///
/// [1]: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// The type of their predicate ([SLSA provenance v1][1]).
///
/// [1]: https://slsa.dev/spec/v1.1/provenance
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";

/// How parameters and byproducts are to be read, version included; `docs/provenance.md` describes it.
pub const BUILD_TYPE: &str = "urn:x-rebuild-model:build:v1";

/// Who built, where nobody says ([`BuilderId`]): this program on whatever host it was started on. Only a
/// signature says whose that was.
pub const BUILDER_ID: &str = "urn:x-rebuild-model:builder:local";

/// Where the attestation of the manifest at `manifest` stands: `<stem>.intoto.json` beside it.
pub fn beside(manifest: &Path) -> PathBuf {
    with_suffix(manifest, "intoto.json")
}

/// Where the bill of materials for the manifest at `manifest` stands: `<stem>.cdx.json` beside it.
pub fn bill_beside(manifest: &Path) -> PathBuf {
    with_suffix(manifest, "cdx.json")
}

/// The manifest that the attestation at `attestation` stands beside, when it has such a name.
pub fn manifest_of(attestation: &Path) -> Option<PathBuf> {
    let stem = attestation.file_name()?.to_str()?.strip_suffix(".intoto.json")?;
    Some(attestation.with_file_name(format!("{stem}.json")))
}

fn with_suffix(manifest: &Path, suffix: &str) -> PathBuf {
    let mut name = manifest.file_stem().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    manifest.with_file_name(name)
}
