//! What a smoke test found.

use serde::{Serialize, Serializer};

use super::weights::Extent;
use crate::error::Class;

/// The schema of reports that this version writes.
pub const SCHEMA: u32 = 1;

/// How a check, or all of them, came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It held.
    Passed,
    /// It did not.
    Failed,
    /// It cannot be told here.
    Inconclusive,
    /// Nobody asked for it.
    Skipped,
}

impl Outcome {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, which is stable.
    pub name: &'static str,
    /// How it came out.
    pub outcome: Outcome,
    /// What was found.
    pub detail: String,
}

impl Check {
    /// It held.
    pub fn passed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Passed, detail: detail.into() }
    }

    /// It did not hold.
    pub fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Failed, detail: detail.into() }
    }

    /// It cannot be told here.
    pub fn inconclusive(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Inconclusive, detail: detail.into() }
    }
}

/// The GPU adapter that the browser found.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct Adapter {
    /// Who made it.
    pub vendor: String,
    /// Its family.
    pub architecture: String,
    /// Its name.
    #[serde(default)]
    pub description: String,
    /// The optional features that it has.
    #[serde(default)]
    pub features: Vec<String>,
    /// Limits that model libraries run into.
    #[serde(default)]
    pub limits: serde_json::Map<String, serde_json::Value>,
}

/// The library, by its own words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Which functions it has: `mlc` or `decoder`.
    pub kind: String,
    /// The architecture.
    pub model_type: String,
    /// The quantization.
    pub quantization: String,
    /// Sequences at a time.
    pub max_batch_size: i64,
    /// Tokens.
    pub context_window_size: i64,
    /// Tokens of one prefill.
    pub prefill_chunk_size: i64,
}

/// The weights that were loaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weights {
    /// Whether they were made from a seed, and are not the model's.
    pub seeded: bool,
    /// How much they are.
    #[serde(flatten)]
    pub extent: Extent,
}

/// What was measured. Bytes and milliseconds; what was not reached is not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Compiling every shader.
    #[serde(serialize_with = "rounded")]
    pub compile_ms: Option<f64>,
    /// Loading the weights over http into an empty cache and onto the GPU.
    #[serde(serialize_with = "rounded")]
    pub load_ms: Option<f64>,
    /// The most bytes of transferred bodies that the page could still reach, while it loaded.
    pub held_peak: Option<u64>,
    /// The largest body that the page was given in one piece.
    pub largest_body: Option<u64>,
    /// Bytes of bodies that the page was given.
    pub delivered: Option<u64>,
    /// The most bytes written to the GPU's queue between two waits for it.
    pub queued_peak: Option<u64>,
    /// The most weight files on their way at one time.
    pub parallel_shards: Option<usize>,
    /// The most bytes of GPU buffers: created less destroyed.
    pub gpu_peak: Option<u64>,
    /// The same when weights and conversation state were ready.
    pub gpu_ready: Option<u64>,
    /// The library's linear memory at the end.
    pub wasm_memory: Option<u64>,
    /// From the first prefill's call to its logits.
    #[serde(serialize_with = "rounded")]
    pub first_token_ms: Option<f64>,
    /// Of the decode steps of the second run.
    #[serde(serialize_with = "rounded")]
    pub tokens_per_second: Option<f64>,
    /// Through the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineFigures>,
    /// By a generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<GeneratorFigures>,
}

/// What a generator tells of its own check.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GeneratorFigures {
    /// The runtime's name and version.
    pub runtime: Option<String>,
    /// Milliseconds until the model was loaded.
    #[serde(serialize_with = "rounded")]
    pub load_ms: Option<f64>,
    /// Tokens that were generated.
    pub tokens: Option<u64>,
    /// Of these.
    #[serde(serialize_with = "rounded")]
    pub tokens_per_second: Option<f64>,
    /// What was said.
    pub said: Vec<Said>,
}

/// One thing that a generator said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    /// What it was given.
    pub text: String,
    /// The seed of its draws.
    pub seed: Option<i64>,
    /// What it made of that.
    pub said: String,
}

/// What was measured through the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineFigures {
    /// Until the engine said that the model was loaded, shaders included.
    #[serde(serialize_with = "rounded")]
    pub load_ms: Option<f64>,
    /// From the request to the first text.
    #[serde(serialize_with = "rounded")]
    pub first_token_ms: Option<f64>,
    /// Tokens of the reply.
    pub tokens: Option<u64>,
    /// Of the whole reply, prefill included.
    #[serde(serialize_with = "rounded")]
    pub tokens_per_second: Option<f64>,
    /// The most bytes of GPU buffers.
    pub gpu_peak: Option<u64>,
}

/// A whole smoke test.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SmokeReport {
    /// The form of this report.
    pub schema: u32,
    /// Of all checks.
    pub outcome: Outcome,
    /// The library's name, or the generator's.
    pub library: String,
    /// The browser's name and version.
    pub browser: Option<String>,
    /// Its adapter.
    pub adapter: Option<Adapter>,
    /// The library.
    pub model: Option<Model>,
    /// Its weights.
    pub weights: Option<Weights>,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
    /// The figures.
    pub figures: Figures,
    /// The most likely token after each call of the first run.
    pub tokens: Vec<usize>,
    /// Warnings of the browser and the page.
    pub warnings: Vec<String>,
}

impl SmokeReport {
    /// A report without anything in it, which is inconclusive.
    pub(super) fn begin(library: &str) -> Self {
        Self {
            schema: SCHEMA,
            outcome: Outcome::Inconclusive,
            library: library.to_owned(),
            browser: None,
            adapter: None,
            model: None,
            weights: None,
            checks: Vec::new(),
            figures: Figures::default(),
            tokens: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Sets the outcome by the checks. One failure decides; nothing passes that did not reach the end.
    pub(super) fn conclude(&mut self, reached_the_end: bool) {
        let any = |outcome| self.checks.iter().any(|check| check.outcome == outcome);
        self.outcome = if any(Outcome::Failed) {
            Outcome::Failed
        } else if any(Outcome::Inconclusive) || !reached_the_end {
            Outcome::Inconclusive
        } else {
            Outcome::Passed
        };
    }

    /// The error class; nothing for a library that passed.
    pub fn class(&self) -> Option<Class> {
        match self.outcome {
            Outcome::Passed => None,
            Outcome::Failed => Some(Class::Artifact),
            Outcome::Inconclusive | Outcome::Skipped => Some(Class::Inconclusive),
        }
    }
}

/// A number of bytes as scripts give it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as wanted")]
pub(super) fn bytes_of(number: f64) -> u64 {
    number as u64
}

/// Tenths are all that is worth showing.
#[expect(clippy::ref_option, reason = "serde gives it so")]
fn rounded<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|value| (value * 10.0).round() / 10.0).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_by_default() {
        let concluded = |checks: &[Check], end| {
            let mut report = SmokeReport::begin("library");
            report.checks = checks.to_vec();
            report.conclude(end);
            (report.outcome, report.class().map(Class::exit_code))
        };
        let (good, bad, open) = (Check::passed("a", ""), Check::failed("b", ""), Check::inconclusive("c", ""));
        assert_eq!(concluded(&[], false), (Outcome::Inconclusive, Some(11)));
        assert_eq!(concluded(std::slice::from_ref(&good), false), (Outcome::Inconclusive, Some(11)));
        assert_eq!(concluded(std::slice::from_ref(&good), true), (Outcome::Passed, None));
        assert_eq!(concluded(&[good.clone(), open.clone()], true), (Outcome::Inconclusive, Some(11)));
        assert_eq!(concluded(&[open, bad, good], true), (Outcome::Failed, Some(8)));
    }

    #[test]
    fn the_form_of_a_report_is_stable() {
        let mut report = SmokeReport::begin("library.wasm");
        report.figures.load_ms = Some(12.345);
        report.weights =
            Some(Weights { seeded: true, extent: Extent { tensors: 1, shards: 2, bytes: 3, largest_tensor: 4 } });
        report.checks.push(Check::failed("not-zero", "all logits are zero"));
        report.conclude(true);
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
    }
}
