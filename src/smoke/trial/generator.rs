//! The trial of a generator: a module that runs a model and holds it against what is known of it, in a page
//! that has everything that was delivered under one prefix. No GPU is needed for it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Staged, Trial};
use crate::printable::cut;
use crate::smoke::browser::{Browser, Page, PageError};
use crate::smoke::report::{Check, GeneratorFigures, Said, bytes_of};
use crate::smoke::server::Content;
use crate::smoke::{Generator, Request};

/// Where everything that was delivered stands.
const DELIVERED: &str = "/delivered/";
/// The check that each problem is.
const NAME: &str = "generator";
/// The most problems that a report shows.
const MOST_PROBLEMS: usize = 20;
/// The most of what was said that a report shows.
const MOST_SAID: usize = 100;
/// The most characters of a text of the generator's.
const LONGEST: usize = 2000;

impl Trial<'_> {
    /// Has the generator check itself.
    pub(super) fn try_generator(&mut self, generator: &Generator, browser: &mut Browser) -> Staged<()> {
        self.server.publish("/generator.html", include_str!("../page/generator.html"));
        self.server.publish("/smoke/generator.js", include_str!("../page/generator.js"));
        for (path, file) in &generator.files {
            self.server.publish(format!("{DELIVERED}{path}"), Content::File(file.clone()));
        }
        let opened = browser.open(&self.server.url("/generator.html"));
        let mut page = self.stage("page", opened.map_err(PageError::from))?;
        let checked = self.check_itself(&mut page, generator);
        self.collect(&mut page, "console");
        checked?;
        self.report.checks.extend(unmet(self.request));
        Ok(())
    }

    fn check_itself(&mut self, page: &mut Page, generator: &Generator) -> Staged<()> {
        let module = format!("{DELIVERED}{}", generator.module);
        let value = self.call(page, NAME, "check", &json!({ "module": module }))?;
        let (checks, figures) = judge(&value);
        self.report.checks.extend(checks);
        self.report.figures.generator = figures;
        Ok(())
    }
}

/// What a generator cannot be held to: it brings its own weights, and its own reference.
fn unmet(request: &Request) -> Option<Check> {
    let asked = [
        ("weights", request.weights.is_some() || request.ballast > 0),
        ("a reference", request.reference.is_some() || request.tolerance.is_some()),
        ("logits", request.save_logits.is_some()),
        ("what may be held", request.max_held.is_some()),
    ];
    let asked: Vec<&str> = asked.iter().filter(|(_, asked)| *asked).map(|(what, _)| *what).collect();
    let text = || format!("of {} nothing can be told with a generator", asked.join(" and "));
    (!asked.is_empty()).then(|| Check::inconclusive("request", text()))
}

/// What `check` gives. Nothing but `problems` is needed.
#[derive(Debug, Deserialize)]
struct Reply {
    problems: Vec<String>,
    runtime: Option<String>,
    load_ms: Option<f64>,
    tokens: Option<f64>,
    tokens_per_second: Option<f64>,
    #[serde(default)]
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Run {
    #[serde(default)]
    text: String,
    seed: Option<i64>,
    said: String,
}

/// Judges the reply: it passes when it has a list of problems with nothing in it.
fn judge(value: &Value) -> (Vec<Check>, Option<GeneratorFigures>) {
    let reply = match Reply::deserialize(value) {
        Ok(reply) => reply,
        Err(error) => return (vec![Check::failed(NAME, format!("check gives no such report: {error}"))], None),
    };
    let mut checks: Vec<Check> =
        reply.problems.iter().take(MOST_PROBLEMS).map(|problem| Check::failed(NAME, cut(problem, LONGEST))).collect();
    if reply.problems.len() > MOST_PROBLEMS {
        checks.push(Check::failed(NAME, format!("and {} problems more", reply.problems.len() - MOST_PROBLEMS)));
    }
    if checks.is_empty() {
        checks.push(Check::passed(NAME, format!("it found no problem (runs: {})", reply.runs.len())));
    }
    let said = |run: &Run| Said { text: cut(&run.text, LONGEST), seed: run.seed, said: cut(&run.said, LONGEST) };
    let figures = GeneratorFigures {
        runtime: reply.runtime.map(|name| cut(&name, LONGEST)),
        load_ms: reply.load_ms,
        tokens: reply.tokens.map(bytes_of),
        tokens_per_second: reply.tokens_per_second,
        said: reply.runs.iter().take(MOST_SAID).map(said).collect(),
    };
    (checks, Some(figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smoke::Outcome;

    #[test]
    fn no_problem_passes_and_each_problem_fails() {
        let (checks, figures) = judge(&json!({ "problems": [], "runs": [{ "text": "a", "seed": 7, "said": "b" }] }));
        assert_eq!(checks, [Check::passed(NAME, "it found no problem (runs: 1)")]);
        assert_eq!(figures.unwrap().said, [Said { text: "a".into(), seed: Some(7), said: "b".into() }]);
        let (checks, _) = judge(&json!({ "problems": ["one", "two"], "unknown": 1 }));
        assert_eq!(checks, [Check::failed(NAME, "one"), Check::failed(NAME, "two")]);
        let (checks, _) = judge(&json!({ "problems": vec!["x"; 25] }));
        assert_eq!((checks.len(), checks[20].detail.as_str()), (21, "and 5 problems more"));
    }

    #[test]
    fn what_is_no_report_fails() {
        for value in [json!(null), json!([]), json!({}), json!({ "problems": "none" }), json!({ "problems": [1] })] {
            let (checks, figures) = judge(&value);
            assert!(checks[0].outcome == Outcome::Failed && figures.is_none(), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_passed_over() {
        assert_eq!(unmet(&Request::default()), None);
        let request = Request { max_held: Some(1), ballast: 1, ..Request::default() };
        let check = unmet(&request).unwrap();
        assert_eq!(check.outcome, Outcome::Inconclusive);
        assert_eq!(check.detail, "of weights and what may be held nothing can be told with a generator");
    }
}
