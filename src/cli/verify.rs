//! `rebuild-model verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Context;
use crate::error::Result;
use crate::verify::{Options, verify};

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The manifest
    manifest: PathBuf,
    /// The directory that its paths start from [default: the manifest's own]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub(super) fn run(args: &VerifyArgs, context: &Context) -> Result<ExitCode> {
    let report = verify(&args.manifest, &Options { root: args.root.clone() }, &context.interrupt)?;
    context.print(&report, || {
        format!("{} artifacts are what {} says", report.artifacts.len(), report.manifest.display())
    })?;
    Ok(ExitCode::SUCCESS)
}
