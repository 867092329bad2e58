//! `rebuild-model completions` and `rebuild-model man`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;
use serde::Serialize;

use super::Context;
use crate::error::Result;
use crate::printable::escape_name;
use crate::replace::CannotWrite;

/// Flags of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// An existing directory that receives a page for the program and one for each verb
    directory: PathBuf,
}

/// A script as `--format json` shows it.
#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

/// What was written, as `--format json` shows it.
#[derive(Serialize)]
struct Manual<'a> {
    directory: &'a Path,
    /// Names of the files there.
    pages: Vec<String>,
}

pub(super) fn print_completions(args: &CompletionsArgs, context: &Context) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "rebuild-model", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let shown = Script { shell: args.shell.to_string(), script };
    context.print(&shown, || shown.script.clone())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn write_manual(args: &ManArgs, context: &Context) -> Result<ExitCode> {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, &args.directory, &mut pages).map_err(CannotWrite::at(&args.directory))?;
    pages.sort();
    let manual = Manual { directory: &args.directory, pages };
    context.print(&manual, || {
        format!("{} pages are in {}", manual.pages.len(), escape_name(&args.directory.display().to_string()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for `command`, and one for each verb below it.
fn write_pages(command: &clap::Command, directory: &Path, pages: &mut Vec<String>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, directory, pages)?;
    }
    let path = clap_mangen::Man::new(command.clone()).generate_to(directory)?;
    pages.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    Ok(())
}
