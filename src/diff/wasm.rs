//! WebAssembly modules: by section, function body, and what the data segments put into memory.

mod code;
mod memory;
mod module;

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::Ranges;
use super::finding::Sink;
use super::{json, text};
use memory::Moves;
use module::Module;

/// Compares two modules.
pub(super) fn compare(left: &[u8], right: &[u8], sink: &mut Sink) {
    let (before, after) = match (Module::read(left), Module::read(right)) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => {
            let show = |module: &Result<Module, _>| match module {
                Ok(_) => "can be read".to_owned(),
                Err(error) => format!("{error}"),
            };
            sink.add("module", Some(&show(&before)), Some(&show(&after)));
            return;
        }
    };
    let count = sink.count();
    compare_sections(&before, &after, sink);
    compare_named("import", &before.imports, &after.imports, sink);
    compare_named("export", &before.exports, &after.exports, sink);
    for (kind, items) in &before.items {
        let others = after.items.get(kind).map(Vec::as_slice).unwrap_or_default();
        compare_items(kind, items, others, sink);
    }
    for (kind, items) in after.items.iter().filter(|(kind, _)| !before.items.contains_key(*kind)) {
        compare_items(kind, &[], items, sink);
    }
    // What was changed in data is the cause of many changes in code more often than the other way.
    sink.within("memory", |sink| memory::compare(&before, &after, sink));
    let moves = Moves::find(&before, &after);
    sink.within("code", |sink| code::compare(&before, &after, &moves, sink));
    compare_customs(&before, &after, sink);
    if sink.count() == count {
        let mut ranges = Ranges::default();
        let common = left.len().min(right.len());
        ranges.look(0, &left[..common], &right[..common]);
        sink.add_lines("the way it is encoded", None, None, ranges.lines(0));
    }
}

/// Sections that are in one module only, or of another size, or in another order.
fn compare_sections(before: &Module, after: &Module, sink: &mut Sink) {
    let sizes = |module: &Module| -> BTreeMap<String, (u64, usize)> {
        let mut sizes: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for (name, bytes) in &module.sections {
            let entry = sizes.entry(name.clone()).or_default();
            *entry = (entry.0 + bytes.len() as u64, entry.1 + 1);
        }
        sizes
    };
    let content = |module: &Module, wanted: &str| -> Vec<Vec<u8>> {
        let of_name = module.sections.iter().filter(|(name, _)| name == wanted);
        of_name.map(|(_, bytes)| bytes.to_vec()).collect()
    };
    let (one, other) = (sizes(before), sizes(after));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        let show = |size: Option<&(u64, usize)>| size.map(|(bytes, _)| format!("{bytes} bytes"));
        let (first, second) = (one.get(name), other.get(name));
        if first != second {
            sink.add(&format!("section {name}"), show(first).as_deref(), show(second).as_deref());
        } else if content(before, name) != content(after, name) {
            sink.add(&format!("section {name}"), None, None);
        }
    }
    let order = |module: &Module| module.sections.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (first, second) = (order(before), order(after));
    if one.keys().eq(other.keys()) && first != second {
        sink.add("order of sections", Some(&first.join(", ")), Some(&second.join(", ")));
    }
}

/// Things with names of their own.
fn compare_named(kind: &str, before: &[(String, String)], after: &[(String, String)], sink: &mut Sink) {
    let table = |items: &[(String, String)]| items.iter().cloned().collect::<BTreeMap<String, String>>();
    let (one, other) = (table(before), table(after));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let count = sink.count();
    for name in names {
        let (first, second) = (one.get(name), other.get(name));
        if first != second {
            sink.add(&format!("{kind} {name}"), first.map(String::as_str), second.map(String::as_str));
        }
    }
    if sink.count() == count && before != after {
        sink.add(&format!("order of {kind}s"), None, None);
    }
}

/// Things that are known by their place only.
fn compare_items(kind: &str, before: &[String], after: &[String], sink: &mut Sink) {
    if before == after {
        return;
    }
    let join = |items: &[String]| items.join("\n");
    let (lines, changed) = text::describe(&join(before), &join(after));
    let count = |items: &[String]| format!("{} of them", items.len());
    let lines = std::iter::once(changed).chain(lines).collect();
    sink.add_lines(kind, Some(&count(before)), Some(&count(after)), lines);
}

fn compare_customs(before: &Module, after: &Module, sink: &mut Sink) {
    for (name, bytes) in &before.customs {
        let Some((_, others)) = after.customs.iter().find(|(other, _)| other == name) else { continue };
        // The names have been used to tell functions from each other.
        if bytes == others || name == "name" {
            continue;
        }
        sink.within(format!("custom section {name}"), |sink| {
            match (module::producers(bytes), module::producers(others)) {
                (Some(before), Some(after)) if name == "producers" => json::compare(&before, &after, sink),
                _ => {
                    let mut ranges = Ranges::default();
                    let common = bytes.len().min(others.len());
                    ranges.look(0, &bytes[..common], &others[..common]);
                    let size = |bytes: &[u8]| format!("{} bytes", bytes.len());
                    sink.add_lines("", Some(&size(bytes)), Some(&size(others)), ranges.lines(0));
                }
            }
        });
    }
    if before.names != after.names {
        let (one, other) = (before.names.values().collect::<BTreeSet<_>>(), after.names.values().collect());
        let gone = one.difference(&other).map(|name| format!("-{name}"));
        let new = other.difference(&one).map(|name| format!("+{name}"));
        let lines: Vec<String> = gone.chain(new).collect();
        if !lines.is_empty() {
            sink.add_lines("names of functions", None, None, lines);
        }
    }
}
