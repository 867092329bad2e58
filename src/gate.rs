//! Gates: is an artifact what was asked for, and can it work?
//!
//! Upstream's tools end well with libraries that cannot: a missing symbol, shaders that the browser
//! refuses without a word, a batch size that did not take. Each gate is a pure function from facts
//! and expectations to findings; what stops a build is an error among them.
//!
//! **Invariant**: nothing here reads a file or runs a tool.

pub mod leaks;
mod metadata;
mod pairing;
mod shaders;

pub use metadata::{KEPT, compare_memory, settings_of_config};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::artifact::browser::BrowserModule;
use crate::artifact::library::Library;
use crate::artifact::weights::TensorCache;
use crate::pins::Rule;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Stops a build.
    Error,
    /// Would stop a build, but the rule may be broken.
    Accepted,
    /// Good to know.
    Note,
}

/// Something that a gate found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How grave it is.
    pub severity: Severity,
    /// The artifact, by the path that it is delivered to.
    pub artifact: String,
    /// What is expected and what was found, as one sentence.
    pub message: String,
    /// Why that may be so, or the way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a library must say of itself.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    /// Settings in its metadata, by name, with who wants them.
    pub settings: BTreeMap<String, Expected>,
    /// The weights that it is for.
    pub weights: Option<TensorCache>,
}

/// A setting's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The value.
    pub value: Value,
    /// Who wants it, as in "the pins".
    pub by: &'static str,
}

/// Holds the library `artifact` against what is expected of it and against the browser module that
/// it is to run with.
pub fn judge_library(
    artifact: &str,
    library: &Library,
    expected: &Expectations,
    browser: Option<&BrowserModule>,
) -> Vec<Finding> {
    let mut findings = Findings { artifact, list: Vec::new() };
    metadata::judge(library, expected, &mut findings);
    pairing::judge(library, browser, &mut findings);
    shaders::judge(library, browser, &mut findings);
    findings.list
}

/// Turns the errors among `findings` that are about one of `accepted` to what they are then.
pub fn accept(findings: &mut [Finding], accepted: &BTreeSet<Rule>) {
    for finding in findings {
        if finding.severity == Severity::Error && accepted.contains(&finding.rule) {
            finding.severity = Severity::Accepted;
        }
    }
}

/// Whether some finding stops a build.
pub fn is_stopped(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Findings in the making, about one artifact.
struct Findings<'a> {
    artifact: &'a str,
    list: Vec<Finding>,
}

impl Findings<'_> {
    fn error(&mut self, rule: Rule, message: String, hint: Option<&str>) {
        self.add(rule, Severity::Error, message, hint);
    }

    fn note(&mut self, rule: Rule, message: String, hint: Option<&str>) {
        self.add(rule, Severity::Note, message, hint);
    }

    fn add(&mut self, rule: Rule, severity: Severity, message: String, hint: Option<&str>) {
        let (artifact, hint) = (self.artifact.to_owned(), hint.map(str::to_owned));
        self.list.push(Finding { rule, severity, artifact, message, hint });
    }
}

/// Names in a sentence: the first few, and how many more there are.
fn list(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 6;
    let shown = names.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

#[cfg(test)]
mod tests;
