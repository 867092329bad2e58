//! `rebuild-model smoke`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::Context;
use crate::error::Result;
use crate::smoke::{self, Library, Request, SmokeReports, Subject};
use crate::ui;

/// Flags of `smoke`.
#[derive(Debug, Args)]
pub(super) struct SmokeArgs {
    /// The manifest of a build: its libraries, with their browser module, engine and weights, and its
    /// generators, with all that is delivered
    #[arg(required_unless_present = "library")]
    manifest: Option<PathBuf>,
    /// Try this library or generator of the manifest only; can be given several times
    #[arg(short, long, value_name = "NAME")]
    model: Vec<String>,
    /// A library's WebAssembly file, instead of a manifest
    #[arg(long, value_name = "FILE", requires = "browser_module", conflicts_with_all = ["manifest", "model"])]
    library: Option<PathBuf>,
    /// The browser module that goes with --library, as `CommonJS`
    #[arg(long, value_name = "FILE", requires = "library")]
    browser_module: Option<PathBuf>,
    /// The `WebLLM` engine to try --library with, as an ES module
    #[arg(long, value_name = "FILE", requires = "library")]
    engine: Option<PathBuf>,
    /// A directory with tensor-cache.json and its shards [default: the manifest's, or seeded ones]
    #[arg(long, value_name = "DIR")]
    weights: Option<PathBuf>,
    /// What the library must answer [default: reference.json beside the weights]
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
    /// How far a logit may be from its reference [default: the reference's own, or 0.02]
    #[arg(long, value_name = "NUMBER", value_parser = parse_tolerance)]
    tolerance: Option<f64>,
    /// Write the last logits of each call to this file, as a reference for another library
    #[arg(long, value_name = "FILE")]
    save_logits: Option<PathBuf>,
    /// Decode steps where no reference says which
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    steps: u16,
    /// For seeded weights and prompts
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The largest seeded shard, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    shard_size: u32,
    /// Load this many MiB of seeded tensors besides, which the library does not use, and seeded weights
    #[arg(long, value_name = "MIB", default_value_t = 0, conflicts_with_all = ["weights", "reference"])]
    ballast: u32,
    /// Fail when more than this many MiB of transferred bytes, in the page and in the GPU's queue, are
    /// held while weights are loaded
    #[arg(long, value_name = "MIB")]
    max_held: Option<u32>,
    /// Leave the engine out
    #[arg(long)]
    no_engine: bool,
    #[command(flatten)]
    browser: BrowserArgs,
}

/// Which browser, and for how long. Shared with `build --smoke`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Browser")]
pub(super) struct BrowserArgs {
    /// The browser [default: Chromium or Chrome on PATH]
    #[arg(long, value_name = "PROGRAM")]
    browser: Option<PathBuf>,
    /// Use this host's GPU instead of the browser's software renderer, which is the same everywhere
    #[arg(long)]
    gpu: bool,
    /// Seconds that one library may take
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
}

impl BrowserArgs {
    /// A request with nothing but these.
    pub(super) fn request(&self) -> Request {
        Request {
            browser: self.browser.clone(),
            gpu: self.gpu,
            timeout: Duration::from_secs(self.timeout.into()),
            ..Request::default()
        }
    }
}

/// Anything is within a distance that is no number.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("a number from 0 is wanted".into()) }
}

pub(super) fn run(args: &SmokeArgs, context: &Context) -> Result<ExitCode> {
    let request = Request {
        weights: args.weights.clone(),
        reference: args.reference.clone(),
        save_logits: args.save_logits.clone(),
        tolerance: args.tolerance,
        steps: args.steps.into(),
        seed: args.seed,
        shard_size: u64::from(args.shard_size) << 20,
        ballast: u64::from(args.ballast) << 20,
        max_held: args.max_held.map(|mib| u64::from(mib) << 20),
        engine: !args.no_engine,
        ..args.browser.request()
    };
    let reports = match (&args.manifest, &args.library, &args.browser_module) {
        (_, Some(library), Some(browser_module)) => {
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let subject = Subject::Library(Library {
                name,
                library: library.clone(),
                browser_module: browser_module.clone(),
                engine: args.engine.clone(),
                weights: None,
            });
            smoke::smoke_all(&[subject], &request, &context.interrupt)?
        }
        (manifest, _, _) => {
            let manifest = manifest.as_deref().unwrap_or(Path::new("manifest.json"));
            of_manifest(manifest, None, &args.model, &request, context)?
        }
    };
    context.print(&reports, || ui::render_smoke(&reports))?;
    Ok(code_of(&reports))
}

/// Tries the libraries and generators of a manifest whose paths start from `root`.
pub(super) fn of_manifest(
    manifest: &Path,
    root: Option<&Path>,
    models: &[String],
    request: &Request,
    context: &Context,
) -> Result<SmokeReports> {
    let found = smoke::read_manifest(manifest, root, models, &context.interrupt)?;
    smoke::smoke_all(&found.subjects, request, &context.interrupt)
}

/// The exit code that says how it went.
pub(super) fn code_of(reports: &SmokeReports) -> ExitCode {
    reports.class().map_or(ExitCode::SUCCESS, |class| ExitCode::from(class.exit_code()))
}
