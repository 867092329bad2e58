//! `rebuild-model diff`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::diff::{Options, Report, Verdict, diff};
use crate::error::{Class, Result};
use crate::interrupt::Interrupt;
use crate::printable::{add_line, escape_name};
use crate::process::{Invocation, ask};

/// Flags of `diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The first: an artifact, archive, manifest, attestation, plan, pins file, workspace or directory
    left: PathBuf,
    /// The second, of the same kind
    right: PathBuf,
    /// The most differences that are shown
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Show what diffoscope says, too, where it is on PATH
    #[arg(long)]
    diffoscope: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    diffoscope: Option<Vec<String>>,
}

pub(super) fn run(args: &DiffArgs, context: &Context) -> Result<ExitCode> {
    let report = diff(&args.left, &args.right, &Options { limit: args.limit }, &context.interrupt)?;
    let wanted = args.diffoscope && report.verdict != Verdict::Equal;
    let diffoscope = wanted.then(|| ask_diffoscope(&args.left, &args.right, args.limit, &context.interrupt));
    let shown = Shown { report: &report, diffoscope };
    context.print(&shown, || {
        let mut text = render(&report);
        for line in shown.diffoscope.iter().flatten() {
            add_line!(text, "diffoscope: {line}");
        }
        text
    })?;
    Ok(match report.verdict {
        Verdict::Equal => ExitCode::SUCCESS,
        Verdict::SameUnpacked | Verdict::Differs => ExitCode::from(Class::Differs.exit_code()),
    })
}

/// What a comparison found, each place once above what was found there.
fn render(report: &Report) -> String {
    let shown = |path: &Path| escape_name(&path.display().to_string());
    let (left, right) = (shown(&report.left), shown(&report.right));
    let mut text = match report.verdict {
        Verdict::Equal => return format!("{left} and {right} are equal\n"),
        Verdict::SameUnpacked => {
            format!("{left} and {right}: the same content in another encoding ({})\n", report.kind)
        }
        Verdict::Differs => format!("{left} and {right} differ ({})\n", report.kind),
    };
    let mut open: &[String] = &[];
    for finding in &report.findings {
        let common = open.iter().zip(&finding.place).take_while(|(one, other)| one == other).count();
        for (depth, name) in finding.place.iter().enumerate().skip(common) {
            add_line!(text, "{:width$}{name}", "", width = 2 * (depth + 1));
        }
        open = &finding.place;
        let indent = 2 * (finding.place.len() + 1);
        for (sign, value) in [('-', &finding.before), ('+', &finding.after)] {
            let Some(value) = value else { continue };
            add_line!(text, "{:indent$}{sign} {value}", "");
        }
        for line in &finding.lines {
            add_line!(text, "{:indent$}  {line}", "");
        }
    }
    if report.left_out > 0 {
        add_line!(text, "  … {} more differences; --limit shows more", report.left_out);
    }
    text
}

/// The beginning of what diffoscope prints, or why it prints nothing.
fn ask_diffoscope(left: &Path, right: &Path, limit: usize, interrupt: &Interrupt) -> Vec<String> {
    let Ok(program) = which::which("diffoscope") else {
        return vec!["it is not on PATH".to_owned()];
    };
    let pass = ["PATH", "HOME", "TMPDIR"];
    let environment: BTreeMap<String, OsString> =
        pass.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?))).collect();
    let most = (limit * 10).to_string();
    let arguments =
        ["--text", "-", "--text-color", "never", "--max-text-report-size", "1000000", "--max-diff-block-lines"];
    let arguments = arguments.map(OsString::from).into_iter().chain([most.into(), left.into(), right.into()]);
    let invocation = Invocation {
        program,
        arguments: arguments.collect(),
        directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        environment,
        isolated: false,
    };
    match ask(&invocation, interrupt) {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            text.lines().take(limit * 10).map(str::to_owned).collect()
        }
        Err(error) => vec![format!("it cannot be started: {error}")],
    }
}
