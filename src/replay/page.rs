//! A replay's report as one self-contained HTML page: no script, no file beside it, nothing fetched.

use std::fmt::Write;

use super::{Outcome, Report, RunReport};
use crate::diff::Finding;
use crate::printable::{escape_line, escape_text};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.4em}h2{font-size:1.15em;margin-top:2em}code,pre{font:14px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}\
pre{background:#f4f4f4;padding:.7em;overflow-x:auto;white-space:pre-wrap}table{border-collapse:collapse;width:100%}\
td,th{text-align:left;vertical-align:top;border-top:1px solid #ccc;padding:.3em .6em .3em 0}\
.good{color:#0a6b2d}.bad{color:#a3161c}.unsure{color:#7a5200}";

/// How every page begins: what tells an earlier report from any other file.
pub(crate) const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>Replay: ";

/// The page.
pub fn render_page(report: &Report) -> String {
    let tone = match report.outcome {
        Outcome::Identical => "good",
        Outcome::Inconclusive | Outcome::SameUnpacked => "unsure",
        _ => "bad",
    };
    let mut page = format!(
        "{PAGE}{0}</title><style>{STYLE}</style></head><body>\n<h1>Replay: <span class=\"{tone}\">{0}</span></h1>\n\
         <p>{1}</p>\n<table><tr><th>Attestation</th><td><code>{2}</code></td></tr>\
         <tr><th>Plan</th><td><code>{3}</code></td></tr></table>\n",
        report.outcome.name(),
        text(&report.summary),
        text(&report.attestation.display().to_string()),
        report.plan,
    );
    for note in &report.notes {
        let _ = writeln!(page, "<p>Note: {}</p>", text(note));
    }
    if !report.drift.is_empty() {
        page.push_str("<h2>Tools that are not those of the recorded build</h2>\n<table><tr><th>Tool</th><th>Then</th><th>Here</th></tr>\n");
        for tool in &report.drift {
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                text(tool.name.as_str()),
                text(&tool.recorded),
                text(&tool.here)
            );
        }
        page.push_str("</table>\n");
    }
    if !report.varied.is_empty() {
        page.push_str("<h2>Variations</h2>\n<table><tr><th>What</th><th>Varied</th><th>How</th></tr>\n");
        for varied in &report.varied {
            let (name, yes) =
                (format!("{:?}", varied.variation).to_lowercase(), if varied.varied { "yes" } else { "no" });
            let _ = writeln!(page, "<tr><td>{name}</td><td>{yes}</td><td>{}</td></tr>", text(&varied.how));
        }
        page.push_str("</table>\n");
    }
    for (index, run) in report.runs.iter().enumerate() {
        render_run(&mut page, index + 1, run);
    }
    page.push_str("</body></html>\n");
    page
}

fn render_run(page: &mut String, number: usize, run: &RunReport) {
    let _ = writeln!(
        page,
        "<h2>Run {number} ({}): {}</h2>\n<p>{} steps, in <code>{}</code></p>",
        text(&run.label),
        run.outcome.name(),
        run.steps,
        text(&run.workspace.display().to_string())
    );
    if let Some(failure) = &run.failure {
        let _ = writeln!(page, "<p class=\"bad\">{}</p>", text(&failure.message));
        let lines: Vec<&str> = failure.causes.iter().map(String::as_str).chain(failure.detail.as_deref()).collect();
        if !lines.is_empty() {
            let _ = writeln!(page, "<pre>{}</pre>", text(&lines.join("\n")));
        }
        if let Some(hint) = &failure.hint {
            let _ = writeln!(page, "<p>Hint: {}</p>", text(hint));
        }
    }
    if run.differing.is_empty() {
        return;
    }
    page.push_str("<table><tr><th>Step</th><th>Output</th><th>Then</th><th>Here</th><th>Inputs</th></tr>\n");
    for finding in &run.differing {
        let difference = &finding.difference;
        let inputs = if difference.causes.is_empty() {
            "equal".to_owned()
        } else {
            difference.causes.iter().map(|cause| text(&cause.to_string())).collect::<Vec<_>>().join("<br>")
        };
        for change in &difference.outputs {
            let show = |output: &Option<crate::journal::Output>| {
                output.map_or_else(|| "nothing".to_owned(), |output| output.sha256.to_string())
            };
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td>{inputs}</td></tr>",
                text(difference.step.as_str()),
                text(&change.output),
                show(&change.before),
                show(&change.after)
            );
        }
    }
    page.push_str("</table>\n");
    for finding in run.differing.iter().flat_map(|finding| &finding.detail) {
        let _ = writeln!(page, "<pre>{}</pre>", text(&show_finding(finding)));
    }
}

/// A finding as lines, of which none is a name's or a value's own.
pub fn show_finding(finding: &Finding) -> String {
    let mut lines = vec![finding.place.join(" / ")];
    lines.extend(finding.before.as_ref().map(|value| format!("- {value}")));
    lines.extend(finding.after.as_ref().map(|value| format!("+ {value}")));
    lines.extend(finding.lines.iter().cloned());
    lines.iter().map(|line| escape_line(line)).collect::<Vec<_>>().join("\n")
}

/// Text that cannot become markup, nor hide anything.
fn text(text: &str) -> String {
    let text = escape_text(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn nothing_in_a_report_becomes_markup() {
        let hostile = "<script>alert(1)</script>\u{202e}\"&";
        let report = Report {
            attestation: hostile.into(),
            plan: Digest::of(b""),
            outcome: Outcome::Inconclusive,
            summary: hostile.to_owned(),
            runs: Vec::new(),
            drift: Vec::new(),
            varied: Vec::new(),
            notes: vec![hostile.to_owned()],
            kept: None,
        };
        let page = render_page(&report);
        assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
        assert!(page.contains("&lt;script&gt;") && page.contains("inconclusive"), "{page}");
        for outside in ["http:", "https:", "src=", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
