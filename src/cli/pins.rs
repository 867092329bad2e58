//! `rebuild-model pins check` and `rebuild-model pins lock`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::settings::SettingsArgs;
use super::{Context, PinsFile};
use crate::build::prepare;
use crate::digest::Digest;
use crate::error::Result;
use crate::lock::{Filled, lock};
use crate::pins::Platform;
use crate::printable::add_line;

/// What can be done with a pins file.
#[derive(Debug, Subcommand)]
pub(super) enum PinsVerb {
    /// Validate the file, the files beside it, and report what is not recorded
    Check(CheckArgs),
    /// Obtain every input without a recorded digest, write its digest into the file, and print the
    /// difference
    Lock(LockArgs),
}

/// Flags of `pins check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The pins file, as with --pins
    #[arg(conflicts_with = "pins")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pins: PinsFile,
}

/// Flags of `pins lock`.
#[derive(Debug, Args)]
pub(super) struct LockArgs {
    /// The pins file, as with --pins
    #[arg(conflicts_with = "pins")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pins: PinsFile,
    /// Print the difference, and leave the file as it is
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    recipe: String,
    pins: Digest,
    plan: Digest,
    steps: usize,
    /// Steps that take in something without a recorded digest, with what it is.
    not_recorded: Vec<String>,
}

pub(super) fn run(verb: &PinsVerb, context: &Context) -> Result<ExitCode> {
    match verb {
        PinsVerb::Check(args) => check(args, context),
        PinsVerb::Lock(args) => fill(args, context),
    }
}

fn check(args: &CheckArgs, context: &Context) -> Result<ExitCode> {
    let file = args.pins.or(args.file.as_ref());
    let prepared = prepare(&file, &Platform::here())?;
    crate::exec::local::check_all(&prepared.plan, &prepared.directory)?;
    let checked = Checked {
        recipe: prepared.pins.recipe.name().to_owned(),
        pins: prepared.digest,
        plan: prepared.plan.digest(),
        steps: prepared.plan.steps.len(),
        not_recorded: prepared.plan.unrecorded_inputs(),
    };
    context.print(&checked, || {
        let mut text = String::new();
        add_line!(
            text,
            "{} is valid: recipe {}, {} steps, plan {}",
            file.display(),
            checked.recipe,
            checked.steps,
            checked.plan
        );
        for input in &checked.not_recorded {
            add_line!(text, "not recorded: {input}");
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

fn fill(args: &LockArgs, context: &Context) -> Result<ExitCode> {
    let file = args.pins.or(args.file.as_ref());
    let prepared = prepare(&file, &Platform::here())?;
    let settings = args.settings.settings()?;
    let filled = lock(&prepared, &settings, args.dry_run, &context.interrupt)?;
    context.print(&filled, || render(&filled))?;
    Ok(ExitCode::SUCCESS)
}

fn render(filled: &[Filled]) -> String {
    if filled.is_empty() {
        return "every digest is recorded\n".to_owned();
    }
    let mut text = String::new();
    for entry in filled {
        add_line!(text, "{}", entry.key);
        add_line!(text, "  - {}", entry.before);
        add_line!(text, "  + {}", entry.after);
    }
    text
}
