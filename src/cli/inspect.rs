//! `rebuild-model inspect`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::{BadCommandLine, Context};
use crate::artifact::browser::BrowserModule;
use crate::error::{Class, Result};
use crate::gate::leaks::{self, Scanner};
use crate::gate::{self, Expectations, Expected, Finding};
use crate::host::Machine;
use crate::inspect::{Content, Inspected, Inspection, inspect, render};
use crate::ui;

/// Flags of `inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// Files to look into: .wasm, browser modules, tensor caches, manifests, .bc, .onnx; packed or not
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Judge the libraries too, by the rules that hold in every build
    #[arg(long)]
    gate: bool,
    /// Judge them against this browser module
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Judge them against this model configuration (mlc-chat-config.json)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Judge them against the parameters of these weights (tensor-cache.json)
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// A setting that their metadata must have
    #[arg(long, value_name = "KEY=VALUE")]
    expect: Vec<String>,
    /// A directory that no file may name; besides it this machine's names are looked for
    #[arg(long, value_name = "DIR")]
    leak: Vec<PathBuf>,
}

pub(super) fn run(args: &InspectArgs, context: &Context) -> Result<ExitCode> {
    let judged = args.gate
        || args.against.is_some()
        || args.config.is_some()
        || args.weights.is_some()
        || !args.expect.is_empty()
        || !args.leak.is_empty();
    let (expected, browser) = expectations(args, context)?;
    let directories: Vec<(&'static str, &Path)> =
        args.leak.iter().map(|path| ("the directory", path.as_path())).collect();
    let machine = Machine::here(&directories);
    let (mut inspections, mut findings, mut text) = (Vec::new(), Vec::new(), String::new());
    for path in &args.files {
        let Inspected { inspection, bytes } = inspect(path, &context.interrupt)?;
        if judged {
            let name = path.display().to_string();
            if let Content::Wasm(library) = &inspection.content {
                findings.extend(gate::judge_library(&name, library, &expected, browser.as_ref()));
            }
            findings.extend(leaks::judge(&name, &Scanner::search(&machine, &bytes)));
        }
        text.push_str(&render(&inspection));
        inspections.push(inspection);
    }
    text.push_str(&ui::render_findings(&findings));
    if judged && findings.is_empty() {
        text.push_str("the gates find nothing\n");
    }
    let shown = Shown { schema: 1, files: &inspections, findings: &findings };
    context.print(&shown, || text.trim_end().to_owned())?;
    let code = if gate::is_stopped(&findings) { Class::Artifact.exit_code() } else { 0 };
    Ok(ExitCode::from(code))
}

/// What was looked into, and what is wrong with it.
#[derive(Serialize)]
struct Shown<'a> {
    schema: u32,
    files: &'a [Inspection],
    findings: &'a [Finding],
}

fn expectations(args: &InspectArgs, context: &Context) -> Result<(Expectations, Option<BrowserModule>)> {
    let read = |path: &Path| inspect(path, &context.interrupt);
    let other = |path: &Path, wanted: &str| BadCommandLine(format!("{} is not {wanted}", path.display()));
    let mut expected = Expectations::default();
    if let Some(path) = &args.config {
        let config = serde_json::from_slice(&read(path)?.bytes).map_err(|_| other(path, "a model configuration"))?;
        expected.settings = gate::settings_of_config(&config);
    }
    let mut wanted = BTreeMap::new();
    for word in &args.expect {
        let (key, value) =
            word.split_once('=').ok_or_else(|| BadCommandLine(format!("--expect wants KEY=VALUE, found `{word}`")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        wanted.insert(key.to_owned(), Expected { value, by: "--expect" });
    }
    expected.settings.extend(wanted);
    if let Some(path) = &args.weights {
        let Content::TensorCache(cache) = read(path)?.inspection.content else {
            return Err(other(path, "a tensor cache").into());
        };
        expected.weights = Some(cache);
    }
    let browser = match &args.against {
        Some(path) => match read(path)?.inspection.content {
            Content::BrowserModule(module) => Some(module),
            _ => return Err(other(path, "a browser module").into()),
        },
        None => None,
    };
    Ok((expected, browser))
}
