//! `rebuild-model verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Context;
use crate::error::Result;
use crate::provenance::PublicKey;
use crate::ui;
use crate::verify::{Options, Policy, verify};

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// A manifest, with the attestation beside it if there is one; or an attestation
    #[arg(value_name = "MANIFEST|ATTESTATION")]
    file: PathBuf,
    /// The directory that the artifacts' paths start from [default: the manifest's own]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// With an attestation: its manifest [default: the one beside it]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// A public ed25519 key (SPKI PEM) that must have signed the attestation; can be given several times
    #[arg(short, long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// How many of the keys must have signed [default: all]
    #[arg(long, value_name = "N", requires = "key", value_parser = clap::value_parser!(u16).range(1..))]
    threshold: Option<u16>,
    /// What else the attestation must satisfy: sources, builders, isolation, signatures
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The build's journal, which must be the attested one
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Accept artifacts in the manifest of which the attestation does not speak; there has to be one
    #[arg(long)]
    allow_unattested: bool,
}

pub(super) fn run(args: &VerifyArgs, context: &Context) -> Result<ExitCode> {
    let mut keys: Vec<PublicKey> = Vec::new();
    for path in &args.key {
        let key = PublicKey::read(path)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let options = Options {
        root: args.root.clone(),
        manifest: args.manifest.clone(),
        keys,
        threshold: args.threshold.map(usize::from),
        policy: args.policy.as_deref().map(Policy::read).transpose()?,
        journal: args.journal.clone(),
        allow_unattested: args.allow_unattested,
    };
    let report = verify(&args.file, &options, &context.interrupt)?;
    context.print(&report, || ui::render_verified(&report))?;
    Ok(ExitCode::SUCCESS)
}
