//! `rebuild-model sign`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Context;
use crate::error::Result;
use crate::provenance::{Attestation, PrivateKey};

/// Flags of `sign`.
#[derive(Debug, Args)]
pub(super) struct SignArgs {
    /// The attestation that a build wrote beside its manifest, signed already or not
    attestation: PathBuf,
    /// An ed25519 key in PKCS#8 PEM without passphrase, as `openssl genpkey -algorithm ed25519` makes one
    #[arg(short, long, value_name = "FILE")]
    key: PathBuf,
    /// Write the signed attestation there and leave the other as it is; one that is there gets the signature, too
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &SignArgs, context: &Context) -> Result<ExitCode> {
    let (key, exposed) = PrivateKey::read(&args.key)?;
    if exposed {
        tracing::warn!("others than its owner may read the key {}: chmod 600 it", args.key.display());
    }
    let mut attestation = Attestation::read(&args.attestation)?;
    let into = args.output.as_ref().unwrap_or(&args.attestation);
    crate::replace::check(into)?;
    // What stands there is replaced: it may only be the same attestation, and others' signatures stay.
    if into.symlink_metadata().is_ok() {
        attestation.join(&Attestation::read(into)?)?;
    }
    let added = attestation.sign(&key, into)?;
    let id = key.public().id();
    context.print(&json!({ "attestation": into.display().to_string(), "key": id, "added": added }), || {
        if added { format!("{} is signed by {id}", into.display()) } else { format!("{id} has signed already") }
    })?;
    Ok(ExitCode::SUCCESS)
}
