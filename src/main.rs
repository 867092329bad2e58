//! Parses, runs, and maps the error's class to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    rebuild_model::cli::main()
}
