//! `rebuild-model replay`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Context;
use super::settings::SettingsArgs;
use crate::bounded::read_head;
use crate::bundle;
use crate::error::{Class, Fault, Result};
use crate::printable::escape_text;
use crate::replace::{CannotWrite, check, replace};
use crate::replay::{PAGE, Part, Report, Request, RunReport, Variation, open, render_page, replay, show_finding};
use crate::ui::Progress;

/// Flags of `replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The attestation, signed or not; or an unpacked bundle, which has one, and perhaps the inputs
    #[arg(value_name = "ATTESTATION|BUNDLE")]
    attestation: PathBuf,
    /// Replay this step alone, from recorded inputs
    #[arg(long, value_name = "STEP", conflicts_with = "from")]
    step: Option<String>,
    /// Replay this step and all that follow from it, from recorded inputs
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// The workspace of the recorded build: serves the inputs of --step and --from, and what differs
    /// is compared with it in detail
    #[arg(long, value_name = "DIR")]
    recorded: Option<PathBuf>,
    /// The published artifacts, compared too [default: the attestation's directory, where they lie there]
    #[arg(long, value_name = "DIR")]
    artifacts: Option<PathBuf>,
    /// Take the files beside the pins from this directory, not from the attestation
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,
    /// How often: looks for steps that do not do the same thing twice
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// Vary these in one more run
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', num_args = 0.., default_missing_value = "all")]
    vary: Vec<Vary>,
    /// An unused directory for the workspaces, removed when all is identical [default: a temporary one]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Write the report as one HTML page, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The most steps at a time [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Memory in MiB that steps may be expected to need together [default: what is free]
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vary {
    All,
    Directory,
    Jobs,
    Locale,
    Umask,
    Time,
    Home,
}

impl Vary {
    fn variations(self) -> Vec<Variation> {
        match self {
            Self::All => Variation::ALL.to_vec(),
            Self::Directory => vec![Variation::Directory],
            Self::Jobs => vec![Variation::Jobs],
            Self::Locale => vec![Variation::Locale],
            Self::Umask => vec![Variation::Umask],
            Self::Time => vec![Variation::Time],
            Self::Home => vec![Variation::Home],
        }
    }
}

pub(super) fn run(args: &ReplayArgs, context: &Context) -> Result<ExitCode> {
    bundle::refuse_packed(&args.attestation)?;
    let (attestation, vendor) = match bundle::directory_of(&args.attestation) {
        Some(bundle) => (bundle.join("attestation.json"), Some(bundle.join("vendor")).filter(|path| path.is_dir())),
        None => (args.attestation.clone(), None),
    };
    let settings = args.settings.settings_with(vendor)?;
    if let Some(page) = &args.html {
        check(page)?;
        check_page(page)?;
    }
    let source = open(&attestation, args.beside.as_deref())?;
    let directory = match &args.workspace {
        Some(directory) => directory.clone(),
        None => temporary()?,
    };
    let part = args.step.clone().map(Part::Step).or_else(|| args.from.clone().map(Part::From));
    let request = Request {
        directory,
        part,
        recorded: args.recorded.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        published_wanted: args.artifacts.is_some(),
        published: args.artifacts.clone().or_else(|| published_beside(&source)),
        times: args.times,
        vary: args.vary.iter().flat_map(|vary| vary.variations()).collect(),
        jobs: args.jobs.map(usize::from),
        memory_mib: args.memory,
    };
    let progress = Progress::new(&context.terminal, context.progress, source.plan());
    let replayed = replay(&source, &request, &settings, &progress, &context.interrupt);
    progress.finish();
    if args.workspace.is_none() {
        // Ours: what is to be looked at is kept, and nothing else.
        let _ = match &replayed {
            Ok(report) if report.kept.is_some() => std::fs::remove_dir(&request.directory),
            _ => std::fs::remove_dir_all(&request.directory),
        };
    }
    let report = replayed?;
    if let Some(path) = &args.html {
        replace(path, render_page(&report).as_bytes())?;
    }
    context.print(&report, || render(&report))?;
    Ok(report.outcome.class().map_or(ExitCode::SUCCESS, |class| ExitCode::from(class.exit_code())))
}

/// What stands where the report should be written is another file.
#[derive(Debug, thiserror::Error)]
#[error("{path} is there already, and is no report of a replay")]
struct NoReport {
    path: PathBuf,
}

impl Fault for NoReport {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("name a file that is not there yet, or an earlier report".into())
    }
}

/// Refuses to replace anything but an earlier report. Nothing is lost with an empty file.
fn check_page(path: &Path) -> Result<()> {
    let head = read_head(path, PAGE.len() as u64).map_err(CannotWrite::at(path))?.unwrap_or_default();
    let is_ours = head.is_empty() || head == PAGE.as_bytes();
    if is_ours { Ok(()) } else { Err(NoReport { path: path.to_owned() }.into()) }
}

/// A path in the directory for temporary files that nothing stands at.
fn temporary() -> Result<PathBuf> {
    let made = tempfile::Builder::new().prefix("rebuild-replay-").tempdir();
    // By its kind alone: the whole names the directory that could not be made.
    let made = made.map_err(|error| CannotWrite { path: std::env::temp_dir(), source: error.kind().into() })?;
    Ok(made.keep())
}

/// The attestation's directory, when its artifacts lie there.
fn published_beside(source: &crate::replay::Source) -> Option<PathBuf> {
    let directory = source.attestation().path().parent().unwrap_or(Path::new("."));
    let artifact = |name: &str| directory.join(name).is_file();
    let subjects = &source.attestation().statement().subject;
    subjects.iter().any(|subject| artifact(subject.annotation("artifact"))).then(|| directory.to_owned())
}

fn render(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.outcome.name(), report.summary);
    let _ = writeln!(text, "attestation {}\nplan        {}", report.attestation.display(), report.plan);
    for tool in &report.drift {
        let _ = writeln!(text, "tool        {}\n  then {}\n  here {}", tool.name, tool.recorded, tool.here);
    }
    for varied in &report.varied {
        let what = varied.variation.name();
        let _ = writeln!(text, "vary        {what:<10} {}", varied.how);
    }
    for (index, run) in report.runs.iter().enumerate() {
        render_run(&mut text, index + 1, run);
    }
    for note in &report.notes {
        let _ = writeln!(text, "note        {note}");
    }
    if let Some(kept) = &report.kept {
        let _ = writeln!(text, "kept        {}", kept.display());
    }
    escape_text(&text)
}

fn render_run(text: &mut String, number: usize, run: &RunReport) {
    let _ = writeln!(text, "run {number:<8}{} ({}, {} steps)", run.outcome.name(), run.label, run.steps);
    for finding in &run.differing {
        let difference = &finding.difference;
        let _ = writeln!(text, "  step {}", difference.step);
        for change in &difference.outputs {
            let show = |output: &Option<crate::journal::Output>| {
                output.map_or_else(|| "nothing".to_owned(), |output| output.sha256.to_string())
            };
            let (then, here) = (show(&change.before), show(&change.after));
            let _ = writeln!(text, "    output {}\n      then {then}\n      here {here}", change.output);
        }
        if difference.causes.is_empty() {
            text.push_str("    made from the same inputs by the same tools\n");
        }
        for cause in &difference.causes {
            let _ = writeln!(text, "    other  {cause}");
        }
        for line in finding
            .detail
            .iter()
            .flat_map(|finding| show_finding(finding).lines().map(str::to_owned).collect::<Vec<_>>())
        {
            let _ = writeln!(text, "      | {line}");
        }
    }
    if let Some(failure) = &run.failure {
        let _ = writeln!(text, "  ended early: {}", failure.message);
        for cause in failure.causes.iter().map(String::as_str).chain(failure.detail.as_deref()) {
            for line in cause.lines() {
                let _ = writeln!(text, "    | {line}");
            }
        }
        if let Some(hint) = &failure.hint {
            let _ = writeln!(text, "  hint: {hint}");
        }
    }
}
