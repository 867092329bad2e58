//! The command line: one file for each verb, and the only place that knows flags.

mod build;
mod bundle;
mod diff;
mod doctor;
mod explain;
mod inspect;
mod pins;
mod place;
mod plan;
mod replay;
mod settings;
mod shell;
mod sign;
mod smoke;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};

use crate::error::{Class, Error, Fault, Result};
use crate::exec::environment;
use crate::interrupt::Interrupt;
use crate::ui::{self, Format, LogFormat, ProgressMode, Terminal};

/// Exit codes, for the end of `--help`.
const EXIT_CODES: &str = "Exit codes: 0 done and equal · 1 usage or pins invalid · 2 the host cannot do it · \
3 workspace exists, is locked or is not ignored · 4 an input vanished or cannot be fetched · \
5 an input differs from its pin · 6 a patch does not apply · 7 a step failed · 8 an artifact check failed · \
9 a rebuilt output differs · 10 interrupted · 11 inconclusive";

/// Rebuild browser and edge model libraries from pinned inputs, and prove it.
#[derive(Debug, Parser)]
#[command(name = "rebuild-model", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Args)]
struct Global {
    /// Form of results and errors
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
    /// Form of log lines
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: LogFormat,
    /// How progress is shown
    #[arg(long, global = true, value_enum, default_value_t)]
    progress: ProgressMode,
    /// Say more; twice for much more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Say less
    #[arg(short, long, global = true, action = ArgAction::Count)]
    quiet: u8,
}

/// Every verb.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Build what a pins file describes
    Build(build::BuildArgs),
    /// Show what a build would do: every input, every step, every command
    Plan(plan::PlanArgs),
    /// Check a pins file, or record digests that it lacks
    #[command(subcommand)]
    Pins(pins::PinsVerb),
    /// Check artifacts against the digests in their manifest
    Verify(verify::VerifyArgs),
    /// Try model libraries in a headless browser: they load, answer, and answer the same twice
    Smoke(smoke::SmokeArgs),
    /// Look into artifacts: what they are and what is in them
    Inspect(inspect::InspectArgs),
    /// Sign an attestation
    Sign(sign::SignArgs),
    /// Report every tool that a pins file needs, and what else this host has
    Doctor(doctor::DoctorArgs),
    /// Say what a step is, why it ran, and what it read and made
    Explain(explain::ExplainArgs),
    /// Print a step's log
    Log(explain::LogArgs),
    /// Show how two artifacts, manifests, attestations, pins, plans or workspaces differ
    Diff(diff::DiffArgs),
    /// Put pins, patches, records and, where asked, every input into one archive or directory
    Bundle(bundle::BundleArgs),
    /// Build again what an attestation records, and compare step by step
    Replay(replay::ReplayArgs),
    /// Print a completion script for a shell
    Completions(shell::CompletionsArgs),
    /// Write manual pages
    Man(shell::ManArgs),
}

/// Which pins file.
#[derive(Debug, Args)]
struct PinsFile {
    /// The pins file
    #[arg(short, long, value_name = "FILE", default_value = "pins.toml")]
    pins: PathBuf,
}

impl PinsFile {
    /// The same file, or the one that was named without the flag.
    fn or(&self, named: Option<&PathBuf>) -> PathBuf {
        named.unwrap_or(&self.pins).clone()
    }
}

/// What verbs get besides their own flags.
struct Context {
    terminal: Terminal,
    format: Format,
    progress: ProgressMode,
    interrupt: Interrupt,
}

impl Context {
    /// Prints a result in the form that was asked for.
    fn print(&self, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<()> {
        match self.format {
            Format::Json => ui::print_json(value)?,
            Format::Text => ui::print(&text())?,
        }
        Ok(())
    }

    /// Says what went wrong in the form that was asked for. If that cannot be written either, the exit
    /// code still tells.
    fn report(&self, error: &Error) {
        match self.format {
            Format::Json => {
                if let Err(unprinted) = ui::print_json(&ui::render_error_json(error)) {
                    tracing::error!("{unprinted}");
                }
            }
            Format::Text => self.terminal.say(&ui::render_error(error, self.terminal.color())),
        }
    }
}

/// Parses the command line, does what it says, and gives the exit code.
pub fn main() -> ExitCode {
    environment::remember_caller();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_command_line(error),
    };
    let clamp = |count: u8| i8::try_from(count.min(4)).unwrap_or(4);
    let terminal = Terminal::open(cli.global.log_format, clamp(cli.global.verbose) - clamp(cli.global.quiet));
    let context = Context {
        terminal,
        format: cli.global.format,
        progress: if cli.global.quiet > 0 { ProgressMode::None } else { cli.global.progress },
        interrupt: Interrupt::default(),
    };
    // Without a handler ^C still ends this process; only children would be left to themselves.
    if let Err(error) = context.interrupt.listen() {
        tracing::warn!("cannot catch interrupts: {error}");
    }
    match run(&cli.verb, &context) {
        Ok(code) => code,
        Err(error) => {
            context.report(&error);
            ExitCode::from(error.class().exit_code())
        }
    }
}

fn run(verb: &Verb, context: &Context) -> Result<ExitCode> {
    match verb {
        Verb::Build(args) => build::run(args, context),
        Verb::Plan(args) => plan::run(args, context),
        Verb::Pins(verb) => pins::run(verb, context),
        Verb::Verify(args) => verify::run(args, context),
        Verb::Smoke(args) => smoke::run(args, context),
        Verb::Sign(args) => sign::run(args, context),
        Verb::Inspect(args) => inspect::run(args, context),
        Verb::Doctor(args) => doctor::run(args, context),
        Verb::Explain(args) => explain::run(args, context),
        Verb::Log(args) => explain::show_log(args, context),
        Verb::Diff(args) => diff::run(args, context),
        Verb::Bundle(args) => bundle::run(args, context),
        Verb::Replay(args) => replay::run(args, context),
        Verb::Completions(args) => shell::print_completions(args, context),
        Verb::Man(args) => shell::write_manual(args, context),
    }
}

/// The command line is not valid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BadCommandLine(String);

impl Fault for BadCommandLine {
    fn class(&self) -> Class {
        Class::Usage
    }
}

/// clap's own exit code for a bad command line is 2, which means something else here.
fn refuse_command_line(error: clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let error = &hinted(error);
    // Nothing was parsed, so the wish for JSON is looked for in the words themselves.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let wants_json = |pair: &[String]| pair[0] == "--format" && pair[1] == "json";
    if words.iter().any(|word| word == "--format=json") || words.windows(2).any(wants_json) {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").trim_end().to_owned();
        let _ = ui::print_json(&ui::render_error_json(&BadCommandLine(message).into()));
    } else {
        let _ = error.print();
    }
    ExitCode::from(Class::Usage.exit_code())
}

/// A pins file where no file is expected is what people try first.
fn hinted(mut error: clap::Error) -> clap::Error {
    let is_pins = |value: &ContextValue| match value {
        ContextValue::String(word) => Path::new(word).extension().is_some_and(|extension| extension == "toml"),
        _ => false,
    };
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::InvalidArg).is_some_and(is_pins) {
        let tip = "the pins file is named by a flag: --pins FILE".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The whole command line, for completions and manual pages.
fn command() -> clap::Command {
    Cli::command()
}
