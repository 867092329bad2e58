//! Results and errors as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::artifact::encoding::FileId;
use crate::build::BuildReport;
use crate::error::Error;
use crate::gate::{Finding, Severity};
use crate::pins::Encoding;
use crate::printable::{add_line, cut, escape_line, escape_name};
use crate::verify::{Attested, Report};

/// The most characters of a line of an error.
const LONGEST_LINE: usize = 400;

/// The error as a person reads it: what, why, context, hint. What files and tools contributed can
/// neither command the terminal nor fill it with one line, nor begin a line: every one but our own
/// stands behind a bar, those of a message of several lines too (a parser's report with its caret).
pub fn render_error(error: &Error, color: bool) -> String {
    let (red, bold, end) = if color { ("\x1b[31;1m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut text = format!("{red}error{end}: {}", shown(&error.to_string()));
    for cause in error.causes() {
        let _ = write!(text, "\n  because: {}", shown(&cause));
    }
    if let Some(detail) = error.detail() {
        let _ = write!(text, "\n  | {}", shown(&detail));
    }
    if let Some(hint) = error.hint() {
        let _ = write!(text, "\n{bold}hint{end}: {}", shown(&hint));
    }
    text
}

fn shown(text: &str) -> String {
    let lines = text.trim_end_matches('\n').split('\n');
    let lines = lines.map(|line| escape_line(&cut(line.strip_suffix('\r').unwrap_or(line), LONGEST_LINE)));
    lines.collect::<Vec<_>>().join("\n  | ")
}

/// The error as a JSON object. `class` and `exitCode` are stable.
pub fn render_error_json(error: &Error) -> Value {
    json!({
        "error": {
            "class": error.class().name(),
            "exitCode": error.class().exit_code(),
            "step": error.step(),
            "message": error.to_string(),
            "causes": error.causes(),
            "detail": error.detail(),
            "hint": error.hint(),
        }
    })
}

/// What a build did, as a person reads it.
pub fn render_build(report: &BuildReport) -> String {
    let mut text = String::new();
    add_line!(text, "{} steps ran, {} stood from an earlier run", report.ran.len(), report.fresh.len());
    add_line!(text, "plan      {}", report.plan);
    add_line!(text, "workspace {}", report.workspace.display());
    add_line!(text, "manifest  {}", report.manifest.display());
    add_line!(text, "attested  {}", report.attestation.display());
    for (step, notes) in &report.notes {
        for note in notes {
            add_line!(text, "note      {step}: {note}");
        }
    }
    for (path, artifact) in &report.artifacts {
        add_line!(text, "{path}");
        let line = |name: &str, id: &FileId| format!("  {name:<8} {} {}\n", id.sha256, human_bytes(id.size));
        if artifact.encoding == Encoding::Identity {
            text.push_str(&line("sha256", &artifact.packed));
        } else {
            text.push_str(&line("packed", &artifact.packed));
            text.push_str(&line("unpacked", &artifact.unpacked));
        }
        let Some(change) = report.changes.iter().find(|change| change.path == *path) else { continue };
        if let Some(before) = change.before.filter(|before| *before != change.after) {
            text.push_str(&line("was", &before.packed));
            if before.unpacked == change.after.unpacked {
                text.push_str("  with the same content\n");
            } else {
                text.push_str(&line("of", &before.unpacked));
            }
        }
        for reason in report.reasons.get(path).into_iter().flatten() {
            add_line!(text, "  because  {reason}");
        }
    }
    text
}

/// What the gates found, as a person reads it.
pub fn render_findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Accepted => "accepted",
            Severity::Note => "note",
        };
        let (artifact, message) = (escape_name(&finding.artifact), escape_name(&finding.message));
        let _ = writeln!(text, "{severity}: {artifact} [{}] {message}", finding.rule);
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "  {}", escape_name(hint));
        }
    }
    text
}

/// What was verified, as a person reads it.
pub fn render_verified(report: &Report) -> String {
    let count = report.artifacts.len();
    // Each name by itself: one with a line break in it would write a line of its own, as `signed by`.
    let manifest = report.manifest.as_ref().map(|path| escape_name(&path.display().to_string()));
    let Some(attested) = &report.attestation else {
        return format!("{count} artifacts are what {} says", manifest.unwrap_or_default());
    };
    let by =
        [manifest, Some(escape_name(&attested.path.display().to_string()))].into_iter().flatten().collect::<Vec<_>>();
    let say = if by.len() == 1 { "says" } else { "say" };
    let mut text = format!("{count} artifacts are what {} {say}\n", by.join(" and "));
    text.push_str(&render_attested(attested));
    for artifact in &attested.unattested {
        let _ = writeln!(text, "not attested: {}", escape_name(artifact));
    }
    text
}

/// What an attestation says, a line each.
pub fn render_attested(attested: &Attested) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "plan      {}\nbuilder   {}", attested.plan, escape_name(&cut(&attested.builder, 2200)));
    for key in &attested.signed_by {
        let _ = writeln!(text, "signed by {key}");
    }
    for key in &attested.unchecked {
        let _ = writeln!(text, "signed by {} (not checked: no key was given for it)", escape_name(&cut(key, 100)));
    }
    if attested.signed_by.is_empty() && attested.unchecked.is_empty() {
        text.push_str("signed by nobody\n");
    }
    text
}

/// A number of bytes for people: exact below 10 KiB, then in binary units with two decimals.
pub fn human_bytes(bytes: u64) -> String {
    if bytes < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    indicatif::BinaryBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Class, Fault};

    /// An error with the same text in every part.
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Hostile {
        text: String,
        source: std::io::Error,
    }

    impl Fault for Hostile {
        fn class(&self) -> Class {
            Class::Step
        }
        fn hint(&self) -> Option<String> {
            Some(self.text.clone())
        }
        fn detail(&self) -> Option<String> {
            Some(self.text.clone())
        }
    }

    fn hostile(text: &str) -> Error {
        Hostile { text: text.into(), source: std::io::Error::other(text.to_owned()) }.into()
    }

    #[test]
    fn nothing_in_an_error_reaches_the_terminal_as_a_command() {
        let error = hostile("one\u{1b}]0;title\u{7}\u{9b}2J\r\n\ttwo\u{8}\rthree");
        let (one, two) = (r"one\u{1b}]0;title\u{7}\u{9b}2J", "\ttwo\\u{8}\\rthree");
        assert_eq!(
            render_error(&error, false),
            [
                &format!("error: {one}"),
                "  | TWO",
                &format!("  because: {one}"),
                "  | TWO",
                &format!("  | {one}"),
                "  | TWO",
                &format!("hint: {one}"),
                "  | TWO"
            ]
            .join("\n")
            .replace("TWO", two)
        );
        assert_eq!(render_error(&error, true).matches('\u{1b}').count(), 4, "only our own colours");
        assert_eq!(render_error_json(&error)["error"]["detail"], *error.detail().unwrap());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let error = hostile(&format!("{}\nshort", "é".repeat(1_000_000)));
        let text = render_error(&error, false);
        assert_eq!(text.matches("… (999600 more characters)\n").count(), 4, "{text}");
        assert!(text.ends_with("\n  | short") && text.chars().count() < 2000, "{text}");
    }
}
