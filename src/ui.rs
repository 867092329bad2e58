//! The terminal: its sole owner. Results go to standard output, everything else to standard error.

mod progress;
mod report;
mod smoke;

pub use progress::{Progress, ProgressMode};
pub use report::{
    human_bytes, render_attested, render_build, render_error, render_error_json, render_findings, render_verified,
};
pub use smoke::render_smoke;

use std::io::{self, IsTerminal, Write};

use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::error::{Class, Fault};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The form of results and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document on standard output, for an error too.
    Json,
}

/// Standard error with its progress bars.
#[derive(Debug, Clone)]
pub struct Terminal {
    bars: MultiProgress,
    color: bool,
}

impl Terminal {
    /// Takes possession of the terminal and begins to log to it.
    ///
    /// `verbosity` is the number of `-v` less that of `-q`; `REBUILD_LOG` overrides it with a filter as
    /// `tracing-subscriber` reads it. Colours are left out by `NO_COLOR` (no-color.org).
    pub fn open(log_format: LogFormat, verbosity: i8) -> Self {
        let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Self { bars: MultiProgress::new(), color };
        let level = match verbosity {
            ..=-1 => "error",
            0 => "warn",
            1 => "info",
            2 => "debug",
            3.. => "trace",
        };
        let filter =
            EnvFilter::try_from_env("REBUILD_LOG").unwrap_or_else(|_| EnvFilter::new(format!("rebuild_model={level}")));
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(terminal.clone());
        // A second subscriber can only be a test's; the first one goes on.
        let _ = match log_format {
            LogFormat::Json => builder.json().try_init(),
            LogFormat::Text => builder.with_ansi(color).without_time().with_target(false).try_init(),
        };
        terminal
    }

    /// Writes lines to standard error, above any progress bars.
    pub fn say(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// Whether standard error may have colours.
    pub fn color(&self) -> bool {
        self.color
    }

    pub(super) fn bars(&self) -> &MultiProgress {
        &self.bars
    }
}

/// A result cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the result to standard output")]
pub struct CannotPrint(#[source] io::Error);

impl Fault for CannotPrint {
    fn class(&self) -> Class {
        Class::Preflight
    }
}

/// Writes a result to standard output. A reader that went away (`| head`) is no error; a result that
/// cannot be written is, lest an empty report be taken for a good one.
pub fn print(text: &str) -> Result<(), CannotPrint> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes())).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CannotPrint(error)),
        _ => Ok(()),
    }
}

/// Writes a result as JSON to standard output.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), CannotPrint> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CannotPrint(error.into()))?;
    print(&text)
}

impl<'a> MakeWriter<'a> for Terminal {
    type Writer = Line;
    fn make_writer(&'a self) -> Line {
        Line { terminal: self.clone(), bytes: Vec::new() }
    }
}

/// A log line in the making; it is written whole when it is dropped.
#[derive(Debug)]
pub struct Line {
    terminal: Terminal,
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.terminal.say(String::from_utf8_lossy(&self.bytes).trim_end());
    }
}
