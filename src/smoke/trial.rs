//! One trial, stage by stage. A stage that does not hold leaves its check in the report and ends the trial.

mod generator;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::answers::{self, Answer, most_likely};
use super::browser::{self, Browser, LaunchError, Page, PageError};
use super::metadata::Metadata;
use super::protocol::ProtocolError;
use super::report::{Check, Model, SmokeReport, Weights, bytes_of};
use super::script::{self, Script, TOLERANCE};
use super::server::{Content, Server};
use super::weights::{self, WeightsError};
use super::{Library, Request, SmokeError, Subject, engine};
use crate::interrupt::Interrupt;
use crate::replace::replace;

/// Where the model's files stand: the engine appends the last two parts to a model's url by itself.
const MODEL: &str = "/model/resolve/main/";
/// The reference's name beside the weights.
/// What weights are called in errors.
const WEIGHTS: &str = "the directory of weights";
/// The most warnings in a report.
const MOST_WARNINGS: usize = 20;

/// The trial ended before its end.
pub(super) enum Stop {
    /// The report says why.
    Here,
    /// There is no report.
    Error(SmokeError),
}

impl From<SmokeError> for Stop {
    fn from(error: SmokeError) -> Self {
        Self::Error(error)
    }
}

type Staged<T> = Result<T, Stop>;

/// Makes the trial and writes what it finds into `report`.
pub(super) fn run(subject: &Subject, request: &Request, report: &mut SmokeReport, interrupt: &Interrupt) -> Staged<()> {
    let host = |what| move |source| SmokeError::Host { what, source };
    let server = Server::start().map_err(host("serve on 127.0.0.1"))?;
    let scratch = tempfile::Builder::new().prefix("smoke-").tempdir().map_err(host("make a temporary directory"))?;
    let deadline = Instant::now() + request.timeout;
    let mut browser = launch(request, report, deadline, interrupt)?;
    let mut trial = Trial { request, report, server, scratch, interrupt };
    let tried = match subject {
        Subject::Library(library) => trial.try_library(library, &mut browser),
        Subject::Generator(generator) => trial.try_generator(generator, &mut browser),
    };
    trial.check_requests();
    tried
}

fn publish(server: &Server, library: &Library) {
    server.publish("/", include_str!("page/page.html"));
    server.publish("/engine.html", include_str!("page/engine.html"));
    server.publish("/smoke/instruments.js", include_str!("page/instruments.js"));
    server.publish("/smoke/library.js", include_str!("page/library.js"));
    server.publish("/smoke/engine.js", include_str!("page/engine.js"));
    server.publish("/library.wasm", Content::File(library.library.clone()));
    server.publish("/tvmjs.cjs", Content::File(library.browser_module.clone()));
    if let Some(engine) = &library.engine {
        server.publish("/web-llm.js", Content::File(engine.clone()));
    }
}

fn launch(request: &Request, report: &mut SmokeReport, deadline: Instant, interrupt: &Interrupt) -> Staged<Browser> {
    let started = browser::find(request.browser.as_deref()).map_err(LaunchError::Unusable).and_then(|program| {
        let mut browser = Browser::launch(&program, request.gpu, deadline, interrupt)?;
        let version = browser.version()?;
        Ok((browser, version))
    });
    match started {
        Ok((browser, version)) => {
            report.checks.push(Check::passed("browser", version.clone()));
            report.browser = Some(version);
            Ok(browser)
        }
        Err(LaunchError::Silent { source: ProtocolError::Interrupted(interrupted), .. }) => {
            Err(SmokeError::from(interrupted).into())
        }
        Err(error) => {
            report.checks.push(Check::inconclusive("browser", error.to_string()));
            Err(Stop::Here)
        }
    }
}

/// What the first page learned, for the engine.
struct Known {
    metadata: Metadata,
    vocabulary: usize,
    weights: PathBuf,
}

struct Trial<'a> {
    request: &'a Request,
    report: &'a mut SmokeReport,
    server: Server,
    scratch: TempDir,
    interrupt: &'a Interrupt,
}

impl Trial<'_> {
    fn pass(&mut self, name: &'static str, detail: impl Into<String>) {
        self.report.checks.push(Check::passed(name, detail));
    }

    fn end<T>(&mut self, check: Check) -> Staged<T> {
        self.report.checks.push(check);
        Err(Stop::Here)
    }

    /// The value, or the end of the trial with the check that `name` is.
    fn stage<T>(&mut self, name: &'static str, result: Result<T, PageError>) -> Staged<T> {
        match result {
            Ok(value) => Ok(value),
            Err(PageError::Protocol(ProtocolError::Interrupted(interrupted))) => {
                Err(SmokeError::from(interrupted).into())
            }
            Err(error @ (PageError::Threw(_) | PageError::Protocol(ProtocolError::Crashed))) => {
                self.end(Check::failed(name, error.to_string()))
            }
            // The browser's fault, or the machine's: the library may be sound.
            Err(error) => self.end(Check::inconclusive(name, error.to_string())),
        }
    }

    fn call(&mut self, page: &mut Page, stage: &'static str, name: &str, argument: &Value) -> Staged<Value> {
        tracing::info!("{}: {name}", self.report.library);
        let result = page.call(name, argument);
        self.stage(stage, result)
    }

    fn try_library(&mut self, library: &Library, browser: &mut Browser) -> Staged<()> {
        publish(&self.server, library);
        let opened = browser.open(&self.server.url("/"));
        let mut page = self.stage("page", opened.map_err(PageError::from))?;
        let tried = self.try_calls(library, &mut page);
        self.finish(&mut page, "");
        let known = tried?;
        let closed = page.close();
        self.stage("page", closed.map_err(PageError::from))?;
        self.try_engine(library, browser, &known)
    }

    fn try_calls(&mut self, library: &Library, page: &mut Page) -> Staged<Known> {
        self.find_adapter(page)?;
        let (metadata, kind) = self.open_library(page)?;
        let weights = self.prepare_weights(library, &metadata)?;
        self.load(page)?;
        let compiled = self.call(page, "shaders", "compile", &json!({}))?;
        self.report.figures.compile_ms = compiled["ms"].as_f64();
        self.pass("shaders", "every shader compiles");
        let script = self.choose_script(&metadata, &kind, &weights)?;
        let calls = json!({ "calls": script.calls });
        let (ready, first) = self.answers(page, &calls)?;
        let (_, second) = self.answers(page, &calls)?;
        self.report.figures.gpu_ready = Some(ready);
        self.report.figures.first_token_ms = first.first().map(|answer| answer.ms);
        self.report.figures.tokens_per_second = speed(&second);
        self.report.tokens = first.iter().filter_map(|answer| answer.rows().last()).map(most_likely).collect();
        self.pass("run", format!("{} calls were answered, twice", first.len()));
        let tolerance = self.request.tolerance.or(script.tolerance).unwrap_or(TOLERANCE);
        self.report.checks.extend(answers::judge(&script, tolerance, &first, &second));
        self.save(&first)?;
        let vocabulary = first.first().map_or(0, |answer| answer.width);
        Ok(Known { metadata, vocabulary, weights })
    }

    fn find_adapter(&mut self, page: &mut Page) -> Staged<()> {
        let found = self.call(page, "adapter", "findAdapter", &json!({}))?;
        if let Some(reason) = found["missing"].as_str() {
            return self.end(Check::inconclusive("adapter", reason));
        }
        let Ok(adapter) = super::Adapter::deserialize(&found) else {
            return self.end(Check::inconclusive("adapter", "the browser describes its adapter in another form"));
        };
        let name = [adapter.vendor.as_str(), &adapter.architecture, &adapter.description].join(" ");
        self.pass("adapter", name.trim());
        self.report.adapter = Some(adapter);
        let found = self.call(page, "browser-module", "openModule", &json!({}))?;
        if let Some(reason) = found["missing"].as_str() {
            return self.end(Check::inconclusive("browser-module", reason));
        }
        self.pass("browser-module", "it loads, and finds a device");
        Ok(())
    }

    fn open_library(&mut self, page: &mut Page) -> Staged<(Metadata, String)> {
        let found = self.call(page, "library", "openLibrary", &json!({}))?;
        let metadata = match Metadata::deserialize(&found["metadata"]) {
            Ok(metadata) => metadata,
            Err(error) => return self.end(Check::failed("library", format!("its metadata cannot be read: {error}"))),
        };
        let kind = found["kind"].as_str().unwrap_or("unknown").to_owned();
        self.pass("library", format!("it is instantiated, and calls itself {}", metadata.model_type));
        self.report.model = Some(Model {
            kind: kind.clone(),
            model_type: metadata.model_type.clone(),
            quantization: metadata.quantization.clone(),
            max_batch_size: metadata.max_batch_size,
            context_window_size: metadata.context_window_size,
            prefill_chunk_size: metadata.prefill_chunk_size,
        });
        let known_state = ["kv_cache", "hybrid"].contains(&metadata.kv_state_kind.as_str());
        if kind == "unknown" || !known_state {
            let text =
                format!("functions of kind {kind} with a state of kind {} are not known here", metadata.kv_state_kind);
            return self.end(Check::inconclusive("functions", text));
        }
        let has_f16 =
            self.report.adapter.iter().any(|adapter| adapter.features.iter().any(|name| name == "shader-f16"));
        if metadata.needs_f16() && !has_f16 {
            let text = format!("{} needs shader-f16, which this adapter does not have", metadata.quantization);
            return self.end(Check::inconclusive("features", text));
        }
        self.pass("features", "the adapter has what the library needs");
        Ok((metadata, kind))
    }

    fn prepare_weights(&mut self, library: &Library, metadata: &Metadata) -> Staged<PathBuf> {
        let given = self.request.weights.clone().or_else(|| library.weights.clone());
        let given = given.filter(|_| self.request.ballast == 0);
        let directory = given.clone().unwrap_or_else(|| self.scratch.path().to_owned());
        let Request { seed, shard_size, ballast, .. } = *self.request;
        let extent = if given.is_some() {
            weights::read_extent(&directory)
        } else {
            let params = [&metadata.params[..], &weights::ballast(ballast, shard_size)].concat();
            weights::seed(&params, &directory, seed, shard_size, self.interrupt)
        };
        let extent = match extent {
            Ok(extent) => extent,
            Err(WeightsError::Interrupted(interrupted)) => return Err(SmokeError::from(interrupted).into()),
            Err(error @ (WeightsError::Type { .. } | WeightsError::None | WeightsError::TooLarge)) => {
                return self.end(Check::inconclusive("weights", error.to_string()));
            }
            Err(error) => {
                return Err(SmokeError::Input { path: directory, what: WEIGHTS, reason: error.to_string() }.into());
            }
        };
        let published = self.server.publish_directory(MODEL, &directory);
        published.map_err(|error| SmokeError::Input {
            path: directory.clone(),
            what: WEIGHTS,
            reason: error.to_string(),
        })?;
        self.report.weights = Some(Weights { seeded: given.is_none(), extent });
        Ok(directory)
    }

    /// Loads twice: once to see what is held, which takes time, and once for the time that it takes.
    fn load(&mut self, page: &mut Page) -> Staged<()> {
        self.server.watch_weights();
        let watched = self.call(page, "load", "load", &json!({ "url": MODEL, "watch": true }));
        let parallel = self.server.weights_peak();
        let watched = watched?;
        let timed = self.call(page, "load", "load", &json!({ "url": MODEL, "watch": false }))?;
        let number = |name: &str| watched["bodies"][name].as_f64().map(bytes_of);
        let figures = &mut self.report.figures;
        figures.held_peak = number("held_peak");
        figures.largest_body = number("largest");
        figures.delivered = number("delivered");
        figures.queued_peak = number("unsynced_peak");
        figures.parallel_shards = Some(parallel);
        figures.load_ms = timed["ms"].as_f64();
        // Of the load alone; what comes later may need more.
        figures.gpu_peak = timed["gpu"]["peak"].as_f64().map(bytes_of);
        let held = figures.held_peak.and_then(|held| held.checked_add(figures.queued_peak?));
        self.pass("load", "the runtime's own loader took every shard");
        if let Some(most) = self.request.max_held {
            self.report.checks.push(check_held(held, most));
        }
        Ok(())
    }

    fn choose_script(&mut self, metadata: &Metadata, kind: &str, weights: &Path) -> Staged<Script> {
        let usual = script::seeded(metadata, kind == "decoder", self.request.steps, self.request.seed);
        let beside = Some(weights.join(script::REFERENCE)).filter(|path| path.is_file());
        let Some(path) = self.request.reference.clone().or(beside) else { return Ok(usual) };
        script::read(&path, &usual).map_err(|reason| SmokeError::Input { path, what: "the reference", reason }.into())
    }

    fn answers(&mut self, page: &mut Page, calls: &Value) -> Staged<(u64, Vec<Answer>)> {
        let value = self.call(page, "run", "run", calls)?;
        match answers::read_run(&value) {
            Ok(run) => Ok(run),
            Err(reason) => self.end(Check::failed("run", reason)),
        }
    }

    fn save(&mut self, answers: &[Answer]) -> Staged<()> {
        let Some(path) = &self.request.save_logits else { return Ok(()) };
        let rows = answers.iter().filter_map(|answer| answer.rows().last());
        let bytes: Vec<u8> = rows.flatten().flat_map(|value| value.to_le_bytes()).collect();
        replace(path, &bytes).map_err(|error| SmokeError::from(error).into())
    }

    fn try_engine(&mut self, library: &Library, browser: &mut Browser, known: &Known) -> Staged<()> {
        if !self.request.engine || library.engine.is_none() {
            return Ok(());
        }
        if !engine::is_complete(&known.weights) {
            let config = engine::chat_config(&known.metadata, known.vocabulary).to_string();
            self.server.publish(format!("{MODEL}{}", engine::CONFIG), config.as_str());
            let tokenizer = engine::tokenizer(known.vocabulary).to_string();
            self.server.publish(format!("{MODEL}{}", engine::TOKENIZER), tokenizer.as_str());
        }
        let opened = browser.open(&self.server.url("/engine.html"));
        let mut page = self.stage("engine", opened.map_err(PageError::from))?;
        let argument = json!({
            "model": "/model/", "library": "/library.wasm", "prompt": engine::PROMPT, "tokens": engine::TOKENS,
            "context": known.metadata.context_window_size,
        });
        let reply = self.call(&mut page, "engine", "chat", &argument);
        let judged = reply.map(|reply| {
            let (check, figures) = engine::judge(&reply);
            self.report.checks.push(check);
            self.report.figures.engine = Some(figures);
        });
        self.finish(&mut page, "engine-");
        judged
    }

    /// Asks the page what it measured and collects what was complained of, in whichever state it is.
    fn finish(&mut self, page: &mut Page, engine: &str) {
        if let Ok(end) = page.call("finish", &json!({})) {
            let peak = end["gpu"]["peak"].as_f64().map(bytes_of);
            match &mut self.report.figures.engine {
                Some(figures) if !engine.is_empty() => figures.gpu_peak = peak,
                _ if engine.is_empty() => {
                    self.report.figures.gpu_peak = peak;
                    self.report.figures.wasm_memory = end["wasm_memory"].as_f64().map(bytes_of);
                }
                _ => {}
            }
            let errors = end["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
            let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
            let name = if engine.is_empty() { "gpu" } else { "engine-gpu" };
            self.report.checks.push(complaints(name, &errors, "no GPU error, and no lost device"));
        }
        self.collect(page, if engine.is_empty() { "console" } else { "engine-console" });
    }

    /// Collects what the browser itself has to say of the page, as the check `name`.
    fn collect(&mut self, page: &mut Page, name: &'static str) {
        // What was not found is told by its path, under another name.
        let said = page.complaints().iter().filter(|complaint| !complaint.text.starts_with("network: "));
        let (serious, mild): (Vec<_>, Vec<_>) = said.partition(|complaint| complaint.serious);
        let serious: Vec<&str> = serious.into_iter().map(|complaint| complaint.text.as_str()).collect();
        self.report.checks.push(complaints(name, &serious, "no error on the console"));
        let left = MOST_WARNINGS.saturating_sub(self.report.warnings.len());
        self.report.warnings.extend(mild.into_iter().take(left).map(|complaint| complaint.text.clone()));
    }

    fn check_requests(&mut self) {
        let missing = self.server.missing();
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        self.report.checks.push(complaints("requests", &missing, "everything that was asked for was there"));
    }
}

/// A check that fails where there is anything to complain of.
fn complaints(name: &'static str, found: &[&str], none: &str) -> Check {
    match found {
        [] => Check::passed(name, none),
        [one] => Check::failed(name, *one),
        [first, rest @ ..] => Check::failed(name, format!("{first} (and {} more)", rest.len())),
    }
}

fn check_held(held: Option<u64>, most: u64) -> Check {
    match held {
        None => Check::inconclusive("held", "this browser does not let what is held be seen"),
        Some(held) if held > most => Check::failed("held", format!("{held} bytes were held, {most} may be")),
        Some(held) => Check::passed("held", format!("{held} bytes were held, {most} may be")),
    }
}

/// Tokens a second of all answers but the first.
fn speed(answers: &[Answer]) -> Option<f64> {
    let decodes = answers.get(1..).filter(|decodes| !decodes.is_empty())?;
    let ms: f64 = decodes.iter().map(|answer| answer.ms).sum();
    let count = u32::try_from(decodes.len()).ok()?;
    (ms > 0.0).then(|| f64::from(count) * 1000.0 / ms)
}
