//! Smoke tests as text.

use std::fmt::Write;

use super::human_bytes;
use crate::printable::{cut, escape_name, escape_text};
use crate::smoke::{Figures, Outcome, SmokeReport, SmokeReports};

/// The most characters of a line.
const LONGEST: usize = 500;

/// What smoke tests found, as a person reads it.
pub fn render_smoke(reports: &SmokeReports) -> String {
    let mut text = String::new();
    for report in &reports.libraries {
        render_one(&mut text, report);
    }
    // Names, tools and pages have their words in it.
    escape_text(&text)
}

fn render_one(text: &mut String, report: &SmokeReport) {
    let _ = writeln!(text, "{}: {}", report.library, report.outcome.name());
    for check in &report.checks {
        let mark = match check.outcome {
            Outcome::Passed => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Inconclusive => "unknown",
            Outcome::Skipped => "-",
        };
        let _ = writeln!(text, "  {mark:<8} {:<16} {}", check.name, cut(&escape_name(&check.detail), LONGEST));
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "  warning  {}", cut(&escape_name(warning), LONGEST));
    }
    if let Some(weights) = &report.weights {
        let origin = if weights.seeded { "seeded weights" } else { "weights" };
        let (bytes, shards) = (human_bytes(weights.extent.bytes), weights.extent.shards);
        let _ = writeln!(text, "  {origin}: {bytes} in {shards} files");
    }
    for said in report.figures.generator.iter().flat_map(|generator| &generator.said) {
        let seed = said.seed.map(|seed| format!(" ({seed})")).unwrap_or_default();
        let line = format!("{}{seed}: {}", said.text, said.said);
        let _ = writeln!(text, "  said     {}", cut(&escape_name(&line), LONGEST));
    }
    for (name, value) in figures(&report.figures) {
        let _ = writeln!(text, "  {name:<42} {value}");
    }
}

fn figures(figures: &Figures) -> Vec<(&'static str, String)> {
    let ms = |value: Option<f64>| value.map(|value| format!("{value:.0} ms"));
    let rate = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
    let bytes = |value: Option<u64>| value.map(human_bytes);
    let mut lines = vec![
        ("shaders compiled in", ms(figures.compile_ms)),
        ("weights loaded in", ms(figures.load_ms)),
        ("most held of transferred bodies", bytes(figures.held_peak)),
        ("largest body in one piece", bytes(figures.largest_body)),
        ("most written to the GPU between two waits", bytes(figures.queued_peak)),
        ("most weight files on their way at a time", figures.parallel_shards.map(|count| count.to_string())),
        ("GPU buffers, peak", bytes(figures.gpu_peak)),
        ("GPU buffers, ready", bytes(figures.gpu_ready)),
        ("library's memory", bytes(figures.wasm_memory)),
        ("time to first token", ms(figures.first_token_ms)),
        ("tokens a second", rate(figures.tokens_per_second)),
    ];
    if let Some(engine) = &figures.engine {
        lines.extend([
            ("engine: loaded in", ms(engine.load_ms)),
            ("engine: time to first token", ms(engine.first_token_ms)),
            ("engine: tokens a second", rate(engine.tokens_per_second)),
            ("engine: GPU buffers, peak", bytes(engine.gpu_peak)),
        ]);
    }
    if let Some(generator) = &figures.generator {
        lines.extend([
            ("generator: runtime", generator.runtime.clone()),
            ("generator: loaded in", ms(generator.load_ms)),
            ("generator: tokens", generator.tokens.map(|count| count.to_string())),
            ("generator: tokens a second", rate(generator.tokens_per_second)),
        ]);
    }
    lines.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
