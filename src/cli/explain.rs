//! `rebuild-model explain` and `rebuild-model log`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::place::Place;
use super::{Context, PinsFile};
use crate::build::prepare;
use crate::error::Result;
use crate::explain::{Explanation, MadeOutput, StepRun, explain_planned, explain_recorded, read_log};
use crate::journal::{Outcome, Output};
use crate::past::Recorded;
use crate::pins::Platform;
use crate::plan::render_step_text;
use crate::printable::{add_line, cut, escape_text};
use crate::ui::human_bytes;
use crate::workspace::check_old;

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The step's id, as `plan` shows it
    step: String,
    #[command(flatten)]
    pins: PinsFile,
    /// The workspace to look into [default: where `build` would work; from the plan alone when
    /// nothing was built there]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// Flags of `log`.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// The step's id, as `plan` shows it
    step: String,
    #[command(flatten)]
    pins: PinsFile,
    /// The workspace to look into [default: where `build` would work]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<usize>,
    /// Print where the log lies instead
    #[arg(long)]
    path: bool,
}

pub(super) fn run(args: &ExplainArgs, context: &Context) -> Result<ExitCode> {
    let (explanation, note) = match find_workspace(args.workspace.as_deref(), &args.pins)? {
        Some(root) => {
            let recorded = Recorded::read(&root)?;
            (explain_recorded(&recorded, &root, &args.step)?, differs(&args.pins.pins, &recorded))
        }
        None => (explain_planned(&prepare(&args.pins.pins, &Platform::here())?.plan, &args.step)?, None),
    };
    context.print(&explanation, || render(&explanation, note.as_deref()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show_log(args: &LogArgs, context: &Context) -> Result<ExitCode> {
    let root = match &args.workspace {
        Some(root) => root.clone(),
        None => default_workspace(&args.pins)?,
    };
    let log = read_log(&Recorded::read(&root)?, &root, &args.step, args.tail)?;
    context.print(&log, || {
        if args.path {
            return log.path.display().to_string();
        }
        let mut text = String::new();
        if log.left_out > 0 && args.tail.is_none() {
            add_line!(text, "… {} before this are left out", human_bytes(log.left_out));
        }
        text + &escape_text(&log.text)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The workspace that was named, or the usual one when somebody built there.
fn find_workspace(given: Option<&Path>, pins: &PinsFile) -> Result<Option<PathBuf>> {
    if let Some(root) = given {
        return Ok(Some(root.to_owned()));
    }
    let root = default_workspace(pins)?;
    Ok(check_old(&root).is_ok().then_some(root))
}

fn default_workspace(pins: &PinsFile) -> Result<PathBuf> {
    let prepared = prepare(&pins.pins, &Platform::here())?;
    Place::default().root(prepared.pins.recipe.name())
}

/// What is to be said when the pins file now makes another plan than the workspace's.
fn differs(pins: &Path, recorded: &Recorded) -> Option<String> {
    let now = prepare(pins, &recorded.plan.platform).ok()?.plan.digest();
    let text = "the pins file makes another plan than the one that this workspace was built by; \
                `build --dry-run --resume` says what would run now";
    (now != recorded.plan.digest()).then(|| text.to_owned())
}

fn render(explanation: &Explanation, note: Option<&str>) -> String {
    let step = &explanation.step;
    let network = if step.network { ", network" } else { "" };
    let mut text = String::new();
    add_line!(text, "{} [{}{network}]: {}", step.id, step.action.kind(), step.title);
    add_line!(text, "of plan {}", explanation.plan);
    text.push_str(&render_step_text(step));
    for material in &explanation.materials {
        add_line!(text, "     takes   {} {} from {}", material.kind, material.name, material.uri);
        add_line!(text, "             {}", material.digest);
    }
    let readers: Vec<&str> = explanation.read_by.iter().map(crate::step::StepId::as_str).collect();
    let readers = if readers.is_empty() { "no other step".to_owned() } else { readers.join(" ") };
    add_line!(text, "     read by {readers}");
    if explanation.runs.is_empty() {
        text.push_str("\nit has not run here\n");
    } else {
        render_record(&mut text, explanation);
    }
    if let Some(note) = note {
        text.push('\n');
        add_line!(text, "note: {note}");
    }
    text
}

fn render_record(text: &mut String, explanation: &Explanation) {
    text.push_str("\ninputs\n");
    if explanation.inputs.is_empty() {
        text.push_str("  nothing of earlier steps\n");
    }
    for (name, input) in &explanation.inputs {
        add_line!(text, "  {name:<36} {}", show_output(input.as_ref()));
    }
    text.push_str("outputs\n");
    for output in &explanation.outputs {
        add_line!(text, "  {:<36} {}", output.output, show_made(output));
        add_line!(text, "    {}", output.path.display());
    }
    if !explanation.tools.is_empty() {
        text.push_str("tools\n");
    }
    for (name, tool) in &explanation.tools {
        add_line!(text, "  {:<12} {} (sha256 {})", name.as_str(), tool.version, tool.sha256);
    }
    text.push_str("runs\n");
    for run in &explanation.runs {
        render_run(text, run);
    }
    if let Some(log) = &explanation.log {
        text.push_str("log\n");
        add_line!(text, "  {}", log.display());
    }
}

fn render_run(text: &mut String, run: &StepRun) {
    let outcome = match run.outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Interrupted => "interrupted",
    };
    let isolated = if run.isolated { ", without a network" } else { "" };
    add_line!(text, "  {} {outcome} after {} ms{isolated}", run.started, run.duration_ms);
    add_line!(text, "    key {}", run.key);
    add_line!(text, "    {}", run.reason);
    for cause in &run.changed {
        add_line!(text, "      {cause}");
    }
    for note in &run.notes {
        add_line!(text, "    note: {note}");
    }
    if let Some(error) = &run.error {
        add_line!(text, "    error: {}", cut(error, 400));
    }
    if run.report.as_object().is_some_and(|report| !report.is_empty()) {
        add_line!(text, "    reported {}", cut(&run.report.to_string(), 2000));
    }
}

fn show_output(output: Option<&Output>) -> String {
    match output {
        None => "not made yet".to_owned(),
        Some(Output { sha256, size: 0 }) => sha256.to_string(),
        Some(Output { sha256, size }) => format!("{sha256} {}", human_bytes(*size)),
    }
}

fn show_made(output: &MadeOutput) -> String {
    match (&output.recorded, &output.found) {
        (Some(recorded), Some(found)) if recorded == found => show_output(Some(found)),
        (Some(recorded), Some(found)) => format!("{} now, and {} when it was made", found.sha256, recorded.sha256),
        (Some(recorded), None) => format!("gone; it was {}", recorded.sha256),
        (None, _) => "not made".to_owned(),
    }
}
