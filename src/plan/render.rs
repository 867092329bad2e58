//! A plan as text for reviewers: every input, every step, every word of every command.

use super::{Plan, materials};
use crate::printable::{add_line, escape_text};
use crate::step::{Action, Gate, Step, Template};

/// The plan as text. `reason` says for each step why it would run, or that it would not.
pub fn render_text(plan: &Plan, reason: impl Fn(&Step) -> String) -> String {
    let mut text = String::new();
    add_line!(text, "plan {} of recipe {} for {}", plan.digest(), plan.recipe, plan.platform);
    text.push_str("\ninputs\n");
    for material in materials(plan) {
        let size = material.size.map_or_else(String::new, |size| format!(" {size} bytes"));
        add_line!(text, "  {:<12} {:<28} {}", material.kind, material.name, material.uri);
        add_line!(text, "{:43}{}{size}", "", material.digest);
    }
    text.push_str("\nsteps\n");
    for (index, step) in plan.steps.iter().enumerate() {
        render_step(&mut text, index + 1, step, &reason(step));
    }
    text.push('\n');
    let cost = |pick: fn(&Step) -> u32| plan.steps.iter().map(|step| u64::from(pick(step))).sum::<u64>();
    add_line!(
        text,
        "estimates: {} steps, {} CPU s, {} MiB of disk, at most {} MiB of memory in one step",
        plan.steps.len(),
        cost(|step| step.cost.cpu_s),
        cost(|step| step.cost.disk_mib),
        plan.steps.iter().map(|step| step.cost.memory_mib).max().unwrap_or(0),
    );
    text
}

fn render_step(text: &mut String, number: usize, step: &Step, reason: &str) {
    let network = if step.network { ", network" } else { "" };
    add_line!(text, "{number:3}. {} [{}{network}]: {}", step.id, step.action.kind(), step.title);
    add_line!(text, "     {reason}");
    render_body(text, step);
}

/// What one step reads, makes and does, as it stands in [`render_text`].
pub fn render_step_text(step: &Step) -> String {
    let mut text = String::new();
    render_body(&mut text, step);
    text
}

fn render_body(text: &mut String, step: &Step) {
    if !step.inputs.is_empty() {
        let inputs: Vec<String> = step.inputs.iter().map(|input| format!("{}/{}", input.step, input.output)).collect();
        add_line!(text, "     reads   {}", inputs.join(" "));
    }
    add_line!(text, "     makes   {}", step.outputs.join(" "));
    for (name, value) in &step.environment {
        add_line!(text, "     env     {name}={}", quote_template(value));
    }
    render_action(text, &step.action);
    let cost = step.cost;
    add_line!(
        text,
        "     about   {} CPU s, {} MiB of memory, {} MiB on disk",
        cost.cpu_s,
        cost.memory_mib,
        cost.disk_mib
    );
}

fn render_action(text: &mut String, action: &Action) {
    match action {
        Action::Run(run) => {
            add_line!(text, "     in      {}", run.directory);
            for command in &run.commands {
                // The words of a command may have line breaks: scripts do.
                text.push_str(&escape_text(&format!("     $ {}\n", render_command(command))));
            }
        }
        Action::Collect(collect) => {
            for copy in &collect.copies {
                add_line!(text, "     copy    {} → {}", copy.from, copy.to);
            }
        }
        Action::Unpack(unpack) => {
            let only = if unpack.only.is_empty() { String::new() } else { format!(", only {}", unpack.only.join(" ")) };
            add_line!(text, "     unpack  {}, {} leading parts dropped{only}", unpack.archive, unpack.strip);
        }
        Action::Patch(patch) => {
            for file in &patch.patches {
                add_line!(text, "     patch   {} with {} ({})", patch.tree, file.file, file.sha256);
                for (path, images) in &file.images {
                    let show = |id: Option<String>| id.unwrap_or_else(|| "absent".to_owned());
                    let before = show(images.before.as_ref().map(ToString::to_string));
                    let after = show(images.after.as_ref().map(ToString::to_string));
                    add_line!(text, "             {path} {before} → {after}");
                }
            }
        }
        Action::CheckGraph(check) => {
            add_line!(
                text,
                "     wants   {} int64 [1, any] alone, {} float32 [any, any, {}], operators of version {}, at most {} bytes",
                check.input,
                check.output,
                check.vocabulary,
                check.opset,
                check.size_limit
            );
        }
        Action::CheckSymbols(check) => {
            add_line!(text, "     check   {} exports {}", check.library, check.exports.join(" "));
        }
        Action::Gate(gate) => render_gate(text, gate),
        Action::Package(package) => {
            for artifact in &package.artifacts {
                let encoding = artifact.encoding.name();
                add_line!(text, "     deliver {} as {} ({}, {encoding})", artifact.from, artifact.path, artifact.role);
            }
            let (destination, manifest) = (&package.destination, &package.manifest);
            add_line!(
                text,
                "     into    {destination}, manifest {manifest}, at most {} bytes a file{}",
                package.size_limit,
                if package.split { ", larger ones in parts" } else { "" }
            );
        }
        // What these do is wholly said by the list of inputs.
        Action::FetchGit(_) | Action::FetchFile(_) | Action::FetchPackage(_) | Action::FetchWheels(_) => {}
    }
}

fn render_gate(text: &mut String, gate: &Gate) {
    for library in &gate.libraries {
        add_line!(text, "     judge   {} as {}", library.library, library.path);
        let settings = library.settings.iter().map(|(key, value)| format!("{key}={value}"));
        let quantization = library.quantization.iter().map(|name| format!("quantization={name}"));
        let expected = settings.chain(quantization).collect::<Vec<_>>().join(" ");
        let lines = [
            ("expect", Some(expected)),
            ("keep", library.config.as_ref().map(|config| format!("the settings in {config}"))),
            ("weights", library.tensor_cache.as_ref().map(ToString::to_string)),
        ];
        for (word, line) in lines {
            if let Some(line) = line.filter(|line| !line.is_empty()) {
                add_line!(text, "             {word:<7} {line}");
            }
        }
    }
    if let Some(module) = &gate.browser_module {
        add_line!(text, "     against {module}");
    }
    for file in &gate.files {
        add_line!(text, "     search  {} for names of this machine", file.from);
    }
    if !gate.accept.is_empty() {
        let rules = gate.accept.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(" ");
        add_line!(text, "     accept  breaks of {rules}");
    }
}

/// A command's words, quoted as a POSIX shell wants them but for our own `${…}`, which stand as they are.
pub fn render_command(words: &[Template]) -> String {
    words.iter().map(quote_template).collect::<Vec<_>>().join(" ")
}

fn quote_template(word: &Template) -> String {
    let text = word.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^${}".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
