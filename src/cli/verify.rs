//! `rebuild-model verify`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::Context;
use crate::bundle::{self, Checked};
use crate::error::{Class, Fault, Result};
use crate::printable::escape_text;
use crate::provenance::PublicKey;
use crate::ui::{self, human_bytes};
use crate::verify::{Options, Policy, verify};

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// A manifest, with the attestation beside it if there is one; or an attestation; or a bundle that
    /// was unpacked
    #[arg(value_name = "MANIFEST|ATTESTATION|BUNDLE")]
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
    if let Some(directory) = bundle::directory_of(&args.file) {
        return check_bundle(args, directory, &options, context);
    }
    bundle::refuse_packed(&args.file)?;
    let report = verify(&args.file, &options, &context.interrupt)?;
    context.print(&report, || ui::render_verified(&report))?;
    Ok(ExitCode::SUCCESS)
}

fn check_bundle(args: &VerifyArgs, directory: &Path, options: &Options, context: &Context) -> Result<ExitCode> {
    let flags = [
        ("--root", args.root.is_some()),
        ("--manifest", args.manifest.is_some()),
        ("--journal", args.journal.is_some()),
        ("--allow-unattested", args.allow_unattested),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        return Err(NotOfBundle { path: args.file.clone(), flag }.into());
    }
    let checked = bundle::check(directory, options, &context.interrupt)?;
    context.print(&checked, || render_bundle(&checked))?;
    Ok(ExitCode::SUCCESS)
}

fn render_bundle(checked: &Checked) -> String {
    let bundle = checked.bundle.display();
    let size = human_bytes(checked.bytes);
    let mut text = format!("{} files, {size}, of the bundle in {bundle} are what it lists\n", checked.files);
    let _ = match checked.inputs {
        0 => writeln!(text, "inputs    none in it: they are fetched"),
        count => writeln!(text, "inputs    {count} in it"),
    };
    match &checked.attestation {
        Some(attested) => text.push_str(&ui::render_attested(attested)),
        None => {
            let _ = write!(text, "plan      {}\nattested by nobody\n", checked.plan);
        }
    }
    escape_text(&text)
}

/// A flag that speaks of artifacts, of which a bundle has none.
#[derive(Debug, thiserror::Error)]
#[error("{path} is a bundle, to which {flag} does not apply")]
struct NotOfBundle {
    path: PathBuf,
    flag: &'static str,
}

impl Fault for NotOfBundle {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("verify the attestation.json or the manifest.json in it with that flag".into())
    }
}
