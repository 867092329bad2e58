//! `rebuild-model plan`, which is also `build --dry-run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::place::Place;
use super::{Context, PinsFile};
use crate::build::{Prepared, forecast, prepare};
use crate::digest::Digest;
use crate::error::Result;
use crate::host;
use crate::pins::Platform;
use crate::plan::{Change, Material, Plan, diff, materials, render_text};
use crate::printable::add_line;
use crate::step::Step;

/// Flags of `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pins: PinsFile,
    /// Show what changes against the plan of another pins file
    #[arg(long, value_name = "OTHER_PINS")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Plan for another platform, as in linux-x86_64
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
}

/// The plan as `--format json` shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    digest: Digest,
    pins: Digest,
    materials: Vec<Material>,
    /// Where each tool of the host stands on this `PATH`, without having been started.
    tools: BTreeMap<String, Option<PathBuf>>,
    /// Why each step would run; absent for a step whose earlier result stands.
    reasons: BTreeMap<String, String>,
    plan: &'a Plan,
}

pub(super) fn run(args: &PlanArgs, context: &Context) -> Result<ExitCode> {
    let prepared = prepare(&args.pins.pins, &args.platform.clone().unwrap_or_else(Platform::here))?;
    show(&prepared, args.diff.as_deref(), Some(&args.place), context)
}

/// Shows the plan, or its difference from that of `other`.
pub(super) fn show(
    prepared: &Prepared,
    other: Option<&Path>,
    place: Option<&Place>,
    context: &Context,
) -> Result<ExitCode> {
    let plan = &prepared.plan;
    if let Some(place) = place {
        place.check()?;
    }
    if let Some(other) = other {
        let before = prepare(other, &plan.platform)?;
        let changes = diff(&before.plan, plan);
        context.print(&changes, || render_changes(&changes))?;
        return Ok(ExitCode::SUCCESS);
    }
    let reasons = match place {
        Some(place) if place.resume() => {
            forecast(prepared, &place.root(prepared.pins.recipe.name())?, &context.interrupt)?
        }
        _ => plan.steps.iter().map(|step| (step.id.to_string(), crate::key::Reason::NeverRan.to_string())).collect(),
    };
    let tools = plan.tools.iter().filter(|(_, tool)| tool.provided.is_none());
    let tools: BTreeMap<String, Option<PathBuf>> =
        tools.map(|(name, _)| (name.to_string(), host::find(name))).collect();
    let shown =
        Shown { digest: plan.digest(), pins: prepared.digest, materials: materials(plan), tools, reasons, plan };
    context.print(&shown, || {
        let reason = |step: &Step| {
            shown.reasons.get(step.id.as_str()).cloned().unwrap_or_else(|| "stands from an earlier run".to_owned())
        };
        let mut text = render_text(plan, reason);
        text.push_str("\ntools of the host\n");
        for (name, path) in &shown.tools {
            let wanted = plan.tools.get(name.as_str()).map(|tool| tool.version.to_string()).unwrap_or_default();
            let path = path.as_ref().map_or_else(|| "not on PATH".to_owned(), |path| path.display().to_string());
            add_line!(text, "  {name:<12} {wanted:<16} {path}");
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

fn render_changes(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "the plans are equal\n".to_owned();
    }
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}
