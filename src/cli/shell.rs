//! `rebuild-model completions` and `rebuild-model man`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::error::Result;
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

pub(super) fn print_completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "rebuild-model", &mut script);
    crate::ui::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn write_manual(args: &ManArgs) -> Result<ExitCode> {
    clap_mangen::generate_to(super::command(), &args.directory).map_err(CannotWrite::at(&args.directory))?;
    Ok(ExitCode::SUCCESS)
}
