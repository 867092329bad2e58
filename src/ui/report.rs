//! Results and errors as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::artifact::encoding::FileId;
use crate::build::BuildReport;
use crate::error::Error;
use crate::pins::Encoding;

/// The error as a person reads it: what, why, context, hint.
pub fn render_error(error: &Error, color: bool) -> String {
    let (red, bold, end) = if color { ("\x1b[31;1m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut text = format!("{red}error{end}: {error}");
    for cause in error.causes() {
        let _ = write!(text, "\n  because: {cause}");
    }
    if let Some(detail) = error.detail() {
        for line in detail.lines() {
            let _ = write!(text, "\n  | {line}");
        }
    }
    if let Some(hint) = error.hint() {
        let _ = write!(text, "\n{bold}hint{end}: {hint}");
    }
    text
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
    let mut text = format!(
        "{} steps ran, {} stood from an earlier run\nplan      {}\nworkspace {}\nmanifest  {}\n",
        report.ran.len(),
        report.fresh.len(),
        report.plan,
        report.workspace.display(),
        report.manifest.display(),
    );
    for (step, notes) in &report.notes {
        for note in notes {
            let _ = writeln!(text, "note      {step}: {note}");
        }
    }
    for (path, artifact) in &report.artifacts {
        let _ = writeln!(text, "{path}");
        let line = |name: &str, id: &FileId| format!("  {name:<8} {} {}\n", id.sha256, human_bytes(id.size));
        if artifact.encoding == Encoding::Identity {
            text.push_str(&line("sha256", &artifact.packed));
        } else {
            text.push_str(&line("packed", &artifact.packed));
            text.push_str(&line("unpacked", &artifact.unpacked));
        }
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
