//! `rebuild-model build`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::place::Place;
use super::settings::SettingsArgs;
use super::{Context, PinsFile, plan, smoke};
use crate::build::{BuildReport, Request, build, prepare};
use crate::error::Result;
use crate::manifest::Entry;
use crate::manifest::joined::read_list;
use crate::manifest::parts::LIST_ROLE;
use crate::pins::{Platform, RelativePath};
use crate::provenance::BuilderId;
use crate::smoke::{SmokeReports, role};
use crate::ui::{self, Progress};

/// Flags of `build`.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    #[command(flatten)]
    pins: PinsFile,
    /// Show the plan instead: touches neither network nor disk
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// With --dry-run: show what changes against the plan of another pins file
    #[arg(long, value_name = "OTHER_PINS", requires = "dry_run")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// The most steps at a time [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Memory in MiB that steps may be expected to need together [default: what is free]
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Build although some digests are not recorded, and say what was found
    #[arg(long)]
    record_unknown: bool,
    /// Deliver to this directory instead of the one in the pins file
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Who builds, as the attestation states it and policies demand it: a URI [default: `builder_id`
    /// in the user's config.toml, or urn:x-rebuild-model:builder:local]
    #[arg(long, value_name = "URI")]
    builder_id: Option<BuilderId>,
    /// Then try each library and generator in a headless browser, as `smoke` does
    #[arg(long, conflicts_with = "dry_run")]
    smoke: bool,
    /// With --smoke: the browser [default: Chromium or Chrome on PATH]
    #[arg(long, value_name = "PROGRAM", requires = "smoke")]
    browser: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// What was built, and how that did in the browser.
#[derive(Serialize)]
struct Tried<'a> {
    #[serde(flatten)]
    build: &'a BuildReport,
    smoke: &'a SmokeReports,
}

pub(super) fn run(args: &BuildArgs, context: &Context) -> Result<ExitCode> {
    let prepared = prepare(&args.pins.pins, &Platform::here())?;
    if args.dry_run {
        return plan::show(&prepared, args.diff.as_deref(), Some(&args.place), context);
    }
    let settings = args.settings.settings()?;
    let request = Request {
        workspace: args.place.root(prepared.pins.recipe.name())?,
        resume: args.place.resume(),
        record_unknown: args.record_unknown,
        jobs: args.jobs.map(usize::from),
        memory_mib: args.memory,
        output: args.output.clone(),
        builder: args.builder_id.clone().or_else(|| settings.builder.clone()).unwrap_or_default(),
    };
    let progress = Progress::new(&context.terminal, context.progress, &prepared.plan);
    let built = build(&prepared, &request, &settings, &progress, &context.interrupt);
    progress.finish();
    let report = built?;
    if args.smoke {
        return try_out(args, &report, context);
    }
    context.print(&report, || ui::render_build(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// The name of what can be tried, also where it was delivered in parts.
fn tried_name(destination: &Path, path: &RelativePath, entry: &Entry) -> Option<String> {
    if role::is_tried(&entry.role) {
        return Some(path.to_string());
    }
    let list = (entry.role == LIST_ROLE).then(|| read_list(destination, path.as_str()).ok()).flatten()?;
    role::is_tried(&list.role).then(|| list.path.to_string())
}

/// Tries what was built, and says both.
fn try_out(args: &BuildArgs, built: &BuildReport, context: &Context) -> Result<ExitCode> {
    let names: Vec<String> =
        built.artifacts.iter().filter_map(|(path, entry)| tried_name(&built.destination, path, entry)).collect();
    let request = crate::smoke::Request { browser: args.browser.clone(), ..Default::default() };
    let reports = smoke::of_manifest(&built.manifest, Some(&built.destination), &names, &request, context)?;
    let tried = Tried { build: built, smoke: &reports };
    context.print(&tried, || ui::render_build(built) + &ui::render_smoke(&reports))?;
    Ok(smoke::code_of(&reports))
}
