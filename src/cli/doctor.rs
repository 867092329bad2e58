//! `rebuild-model doctor`.

use std::process::ExitCode;

use clap::Args;

use super::place::Place;
use super::{Context, PinsFile};
use crate::build::prepare;
use crate::doctor::{Diagnosis, Unfit, examine};
use crate::error::Result;
use crate::pins::Platform;
use crate::printable::add_line;

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pins: PinsFile,
    #[command(flatten)]
    place: Place,
}

pub(super) fn run(args: &DoctorArgs, context: &Context) -> Result<ExitCode> {
    let prepared = prepare(&args.pins.pins, &Platform::here())?;
    let root = args.place.root(prepared.pins.recipe.name())?;
    let diagnosis = examine(&prepared.plan, &root, &context.interrupt)?;
    context.print(&diagnosis, || render(&diagnosis))?;
    match diagnosis.problems.len() {
        0 => Ok(ExitCode::SUCCESS),
        // The findings are the result; with JSON a second document would spoil the first.
        count if context.format == crate::ui::Format::Json => Ok(ExitCode::from(unfit(count).exit_code())),
        count => Err(Unfit(count).into()),
    }
}

fn unfit(count: usize) -> crate::error::Class {
    crate::error::Fault::class(&Unfit(count))
}

fn render(diagnosis: &Diagnosis) -> String {
    let mut text = String::from("tools\n");
    for tool in &diagnosis.tools {
        let found = tool.found.as_ref().map_or_else(
            || "not usable".to_owned(),
            |found| format!("{} at {} (sha256 {})", found.version, found.path.display(), found.sha256.short()),
        );
        add_line!(text, "  {:<10} wanted {:<16} found {found}", tool.name.as_str(), tool.wanted);
    }
    let disk = diagnosis.disk_free_mib.map_or_else(|| "unknown".to_owned(), |mib| format!("{mib} MiB"));
    let isolation = if diagnosis.isolation {
        "steps without network run without one"
    } else {
        "not available here: steps keep the network"
    };
    add_line!(
        text,
        "disk      {disk} free, {} MiB needed at {}",
        diagnosis.disk_needed_mib,
        diagnosis.workspace.display()
    );
    add_line!(
        text,
        "memory    {} MiB free, {} MiB needed by the largest step",
        diagnosis.memory_free_mib,
        diagnosis.memory_needed_mib
    );
    add_line!(text, "cores     {}", diagnosis.cores);
    add_line!(text, "isolation {isolation}");
    for problem in &diagnosis.problems {
        add_line!(text, "problem   {}", problem.message);
        if let Some(hint) = &problem.hint {
            add_line!(text, "  hint    {hint}");
        }
    }
    text
}
