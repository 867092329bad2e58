//! `rebuild-model inspect`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::{BadCommandLine, Context};
use crate::artifact::browser::BrowserModule;
use crate::artifact::decoding::decode;
use crate::error::{Class, Error, Fault, Result};
use crate::gate::leaks::{self, Leak, Scanner};
use crate::gate::{self, Expectations, Expected, Finding};
use crate::host::Machine;
use crate::inspect::{Content, InspectError, Inspected, Inspection, inspect, render};
use crate::interrupt::Interrupt;
use crate::ui::{self, Format};

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
    let judged = args.wants_a_library() || !args.leak.is_empty();
    let (expected, browser) = expectations(args, context)?;
    let directories: Vec<(&'static str, &Path)> =
        args.leak.iter().map(|path| ("the directory", path.as_path())).collect();
    let machine = Machine::here(&directories);
    let (mut inspections, mut findings, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for path in &args.files {
        let looked = inspect(path, &context.interrupt).and_then(|Inspected { inspection, bytes }| {
            if judged {
                let name = path.display().to_string();
                if let Content::Wasm(library) = &inspection.content {
                    findings.extend(gate::judge_library(&name, library, &expected, browser.as_ref()));
                }
                findings.extend(leaks::judge(&name, &search(&machine, &inspection, &bytes, &context.interrupt)?));
            }
            Ok(inspection)
        });
        match looked {
            Ok(inspection) => inspections.push(inspection),
            // One that cannot be looked into takes nothing away from the others.
            Err(error) if args.files.len() > 1 && error.class() != Class::Interrupted => {
                failures.push(Failure { path: path.clone(), error });
            }
            Err(error) => return Err(error),
        }
    }
    // An answer to a question that was not asked would pass for one to that which was.
    let unjudged = args.wants_a_library() && !inspections.iter().any(|found| matches!(found.content, Content::Wasm(_)));
    let unjudged = unjudged.then(|| Error::from(NoLibrary));
    let first = failures.first().map(|failure| &failure.error).or(unjudged.as_ref());
    let shown = Shown {
        schema: 1,
        files: &inspections,
        findings: &findings,
        failures: failures.iter().map(Failure::to_json).collect(),
        error: first.map(|error| ui::render_error_json(error)["error"].take()),
    };
    context.print(&shown, || render_all(&shown, judged && unjudged.is_none()))?;
    if matches!(context.format, Format::Text) {
        failures.iter().map(|failure| &failure.error).chain(&unjudged).for_each(|error| context.report(error));
    }
    let stopped = gate::is_stopped(&findings).then_some(Class::Artifact);
    let class = stopped.or(first.map(Error::class));
    Ok(class.map_or(ExitCode::SUCCESS, |class| ExitCode::from(class.exit_code())))
}

impl InspectArgs {
    /// Whether something is asked that only a library can answer.
    fn wants_a_library(&self) -> bool {
        self.gate
            || self.against.is_some()
            || self.config.is_some()
            || self.weights.is_some()
            || !self.expect.is_empty()
    }
}

/// A judgement was asked for, and there was nothing to judge.
#[derive(Debug, thiserror::Error)]
#[error("nothing was judged: none of the files is a model library")]
struct NoLibrary;

impl Fault for NoLibrary {
    fn class(&self) -> Class {
        Class::Inconclusive
    }

    fn hint(&self) -> Option<String> {
        Some("name a library (.wasm, packed or not) besides, or leave out what only a library can answer".into())
    }
}

/// A file that could not be looked into.
struct Failure {
    path: PathBuf,
    error: Error,
}

impl Failure {
    fn to_json(&self) -> Value {
        let mut value = ui::render_error_json(&self.error);
        value["path"] = self.path.display().to_string().into();
        value
    }
}

/// Where the file names the machine. A large file of a kind that is not read is read for this.
fn search(machine: &Machine, inspection: &Inspection, bytes: &[u8], interrupt: &Interrupt) -> Result<Vec<Leak>> {
    if bytes.len() as u64 == inspection.unpacked.size {
        return Ok(Scanner::search(machine, bytes));
    }
    let mut scanner = Scanner::new(machine);
    let read = decode(&inspection.path, inspection.encoding, u64::MAX, &mut scanner, interrupt);
    read.map_err(|source| InspectError::Read { path: inspection.path.clone(), source })?;
    Ok(scanner.finish())
}

/// What was looked into, what is wrong with it, and what could not be looked into.
#[derive(Serialize)]
struct Shown<'a> {
    schema: u32,
    files: &'a [Inspection],
    findings: &'a [Finding],
    failures: Vec<Value>,
    /// The first failure, or that nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

fn render_all(shown: &Shown<'_>, judged: bool) -> String {
    let mut text: String = shown.files.iter().map(render).collect();
    text.push_str(&ui::render_findings(shown.findings));
    if judged && shown.findings.is_empty() {
        text.push_str("the gates find nothing");
        text.push_str(if shown.failures.is_empty() { "" } else { " in what could be read" });
    }
    text.trim_end().to_owned()
}

fn expectations(args: &InspectArgs, context: &Context) -> Result<(Expectations, Option<BrowserModule>)> {
    let read = |path: &Path| inspect(path, &context.interrupt);
    let other = |path: &Path, wanted: &str| BadCommandLine(format!("{} is not {wanted}", path.display()));
    let mut expected = Expectations::default();
    if let Some(path) = &args.config {
        let config = serde_json::from_slice(&read(path)?.bytes).map_err(|_| other(path, "a model configuration"))?;
        expected.settings = gate::settings_of_config(&config);
        if expected.settings.is_empty() {
            let wanted = "a model configuration (mlc-chat-config.json)";
            let reason = format!("it sets none of {}", gate::KEPT.join(", "));
            return Err(BadCommandLine(format!("{} is not {wanted}: {reason}", path.display())).into());
        }
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
