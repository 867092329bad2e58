//! `rebuild-model bundle`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::settings::InputArgs;
use super::{Context, PinsFile};
use crate::build::prepare;
use crate::bundle::{Bundled, Request, Vendored, bundle};
use crate::error::Result;
use crate::pins::Platform;
use crate::printable::escape_text;
use crate::ui::{Progress, human_bytes};

/// Flags of `bundle`.
#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(flatten)]
    pins: PinsFile,
    /// The archive to make [default: <recipe>-sources.tar.gz, unless a directory is asked for]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make this directory, too, or instead where no archive is named
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Put every input into it, so that it can be built from without a network
    #[arg(long)]
    vendor: bool,
    /// The manifest to put into it [default: the one that the pins name, where it is there]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// The attestation to put into it [default: the one beside the manifest, where it is there]
    #[arg(long, value_name = "FILE")]
    attestation: Option<PathBuf>,
    /// Compression level of the archive
    #[arg(long, value_name = "0-9", default_value_t = 6, value_parser = clap::value_parser!(u8).range(0..=9))]
    level: u8,
    /// A directory that serves inputs, as `--vendor` of `build`; can be given several times
    #[arg(long, value_name = "DIR", help_heading = "Inputs")]
    vendored: Vec<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
}

pub(super) fn run(args: &BundleArgs, context: &Context) -> Result<ExitCode> {
    let prepared = prepare(&args.pins.pins, &Platform::here())?;
    let usual = || PathBuf::from(format!("{}-sources.tar.gz", prepared.plan.recipe));
    let archive = args.output.clone().or_else(|| args.directory.is_none().then(usual));
    let request = Request {
        directory: args.directory.clone(),
        archive,
        vendor: args.vendor,
        manifest: args.manifest.clone(),
        attestation: args.attestation.clone(),
        level: args.level,
    };
    let settings = args.inputs.settings(&args.vendored)?;
    let progress = Progress::new(&context.terminal, context.progress, &prepared.plan);
    let bundled = bundle(&prepared, &request, &settings, &progress, &context.interrupt);
    progress.finish();
    let bundled = bundled?;
    context.print(&bundled, || render(&bundled))?;
    Ok(ExitCode::SUCCESS)
}

fn render(bundled: &Bundled) -> String {
    let mut text = format!("{} files, {}, of plan {}\n", bundled.files, human_bytes(bundled.bytes), bundled.plan);
    if let Some(directory) = &bundled.directory {
        let _ = writeln!(text, "directory   {}", directory.display());
    }
    if let (Some(archive), Some(id)) = (&bundled.archive, &bundled.archive_id) {
        let _ = writeln!(
            text,
            "archive     {} {}\n            sha256 {}",
            archive.display(),
            human_bytes(id.size),
            id.sha256
        );
    }
    let there = |there: bool| if there { "in it" } else { "not in it: there was none" };
    let _ = writeln!(text, "manifest    {}\nattestation {}", there(bundled.manifest), there(bundled.attestation));
    for input in &bundled.vendored {
        let _ = match input {
            Vendored::Commit { url, commit, .. } => writeln!(text, "git         {url} {commit}"),
            Vendored::File { name, sha256, .. } => writeln!(text, "file        {name} {sha256}"),
        };
    }
    escape_text(&text)
}
