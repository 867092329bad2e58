//! Parsing of a pins file, and the checks that go beyond types: references, duplicates, completeness.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::text::Name;
use super::{Encoding, Pins, SCHEMA};
use crate::error::{Class, Fault};

/// Why a pins file is refused.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// The file cannot be read.
    #[error("cannot read the pins file {path}")]
    Unreadable {
        /// The path as given.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, a value of another type or form.
    #[error("{path} is not valid\n{error}")]
    Syntax {
        /// The path as given.
        path: String,
        /// The parser's report, with line and caret.
        error: toml::de::Error,
    },
    /// The file parses, but says something that cannot be.
    #[error("{path} is not valid\n{place}{reason}")]
    Invalid {
        /// The path as given.
        path: String,
        /// Line, column and caret; empty where the whole file is meant.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The file is of a schema that this version does not know.
    #[error("{path} has schema {found}, and this version reads schema {SCHEMA}")]
    Schema {
        /// The path as given.
        path: String,
        /// The schema it says.
        found: i64,
    },
}

impl Fault for PinsError {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some("name another file with --pins".into()),
            Self::Schema { found, .. } if *found > i64::from(SCHEMA) => Some("use a newer rebuild-model".into()),
            Self::Schema { .. } => Some(format!("write `schema = {SCHEMA}` at the top")),
            Self::Syntax { .. } | Self::Invalid { .. } => None,
        }
    }
}

/// Parses and checks the `text` of the pins file called `path` (used in messages only).
pub fn parse<R: DeserializeOwned>(text: &str, path: &str) -> Result<Pins<R>, PinsError> {
    check_schema(text, path)?;
    check_recipe(text, path)?;
    let pins: Pins<R> = toml::from_str(text).map_err(|error| PinsError::Syntax { path: path.into(), error })?;
    match find_fault(&pins) {
        None => Ok(pins),
        Some((span, reason)) => Err(refuse(text, path, span, reason)),
    }
}

/// The error that what stands at `span` of `text`, a pins file called `path`, cannot be, for `reason`.
/// Without a span, or with an empty one, the whole file is meant.
pub fn refuse(text: &str, path: &str, span: Option<Range<usize>>, reason: String) -> PinsError {
    let span = span.filter(|span| !span.is_empty() && text.get(span.clone()).is_some());
    let place = span.map_or_else(String::new, |span| show_place(text, span));
    PinsError::Invalid { path: path.into(), place, reason }
}

/// A file of another schema may differ in every key, so the schema is looked at before all others.
fn check_schema(text: &str, path: &str) -> Result<(), PinsError> {
    let Ok(table) = text.parse::<toml::Table>() else { return Ok(()) };
    match table.get("schema").and_then(toml::Value::as_integer) {
        Some(found) if found != i64::from(SCHEMA) => Err(PinsError::Schema { path: path.into(), found }),
        _ => Ok(()),
    }
}

/// A second recipe, or none where one should be. The parser would say how many elements it wanted.
fn check_recipe(text: &str, path: &str) -> Result<(), PinsError> {
    let Ok(document) = DeTable::parse(text) else { return Ok(()) };
    let Some(recipe) = document.get_ref().get("recipe") else { return Ok(()) };
    let Some(recipes) = recipe.get_ref().as_table() else { return Ok(()) };
    let mut named: Vec<_> = recipes.iter().map(|(name, _)| (name.span(), name.get_ref().as_ref())).collect();
    named.sort_by_key(|(span, _)| span.start);
    match named.as_slice() {
        [_] => Ok(()),
        [] => {
            let reason = "no recipe is named: a table [recipe.NAME] with its parameters is wanted";
            Err(refuse(text, path, Some(recipe.span()), reason.into()))
        }
        [(_, first), (second, _), ..] => {
            let reason = format!(
                "a pins file has one recipe, and [recipe.{first}] came before this one: give it a file of its own"
            );
            Err(refuse(text, path, Some(second.clone()), reason))
        }
    }
}

type Found = Option<(Option<Range<usize>>, String)>;

fn find_fault<R>(pins: &Pins<R>) -> Found {
    find_duplicate_name(pins)
        .or_else(|| find_bad_submodule(pins))
        .or_else(|| find_bad_package(pins))
        .or_else(|| find_bad_file(pins))
        .or_else(|| find_bad_patch(pins))
        .or_else(|| find_bad_packaging(pins))
}

/// Sources share one name space: their names become step ids.
fn find_duplicate_name<R>(pins: &Pins<R>) -> Found {
    let kinds: [(&str, Vec<&Name>); 3] = [
        ("git", pins.git.keys().collect()),
        ("package", pins.package.keys().collect()),
        ("file", pins.file.keys().collect()),
    ];
    for (index, (kind, names)) in kinds.iter().enumerate() {
        for (other, others) in &kinds[index + 1..] {
            if let Some(name) = names.iter().find(|name| others.contains(name)) {
                return Some((None, format!("duplicate id: `{name}` is both [{kind}.{name}] and [{other}.{name}]")));
            }
        }
    }
    None
}

fn find_bad_submodule<R>(pins: &Pins<R>) -> Found {
    for (name, git) in &pins.git {
        for (path, submodule) in &git.submodules {
            let Some(source) = &submodule.source else { continue };
            let fault =
                |reason: String| Some((Some(source.span()), format!("[git.{name}.submodules] \"{path}\": {reason}")));
            if submodule.skip || submodule.url.is_some() {
                return fault("`source` goes with neither `skip` nor `url`".into());
            }
            match pins.git.get(source.get_ref()) {
                None => return fault(format!("there is no [git.{}]", source.get_ref())),
                Some(_) if source.get_ref() == name => return fault("a source cannot stand inside itself".into()),
                Some(_) => {}
            }
        }
    }
    // An override inside an override could lead back to where it began.
    for name in pins.git.keys() {
        let mut trail = vec![name];
        if let Some(span) = find_override_cycle(pins, &mut trail) {
            let names: Vec<_> = trail.iter().map(|name| name.as_str()).collect();
            return Some((Some(span), format!("cycle of submodule overrides: {}", names.join(" → "))));
        }
    }
    None
}

fn find_override_cycle<'a, R>(pins: &'a Pins<R>, trail: &mut Vec<&'a Name>) -> Option<Range<usize>> {
    let git = pins.git.get(*trail.last()?)?;
    for source in git.submodules.values().filter_map(|submodule| submodule.source.as_ref()) {
        let seen = trail.contains(&source.get_ref());
        trail.push(source.get_ref());
        if seen {
            return Some(source.span());
        }
        if let Some(span) = find_override_cycle(pins, trail) {
            return Some(span);
        }
        trail.pop();
    }
    None
}

fn find_bad_package<R>(pins: &Pins<R>) -> Found {
    for (name, package) in &pins.package {
        if package.files.is_empty() {
            return Some((None, format!("[package.{name}] lists no file")));
        }
        for (index, file) in package.files.iter().enumerate() {
            let twin = package.files[..index]
                .iter()
                .find(|other| other.platform.serves(&file.platform) || file.platform.serves(&other.platform));
            if let Some(twin) = twin {
                return Some((
                    None,
                    format!("[package.{name}]: both {} and {} serve {}", twin.file, file.file, file.platform),
                ));
            }
        }
    }
    None
}

fn find_bad_file<R>(pins: &Pins<R>) -> Found {
    let (name, file) = pins.file.iter().find(|(_, file)| file.url.is_some() == file.path.is_some())?;
    let found = if file.url.is_some() { "both" } else { "neither" };
    Some((None, format!("[file.{name}] needs one of `url` and `path`, and has {found}")))
}

fn find_bad_patch<R>(pins: &Pins<R>) -> Found {
    for (name, patch) in &pins.patch {
        let target = patch.target.get_ref();
        let wheel = pins.python.as_ref().is_some_and(|python| python.wheels.contains_key(target));
        if !wheel && !pins.git.contains_key(target) && !pins.package.contains_key(target) {
            return Some((
                Some(patch.target.span()),
                format!(
                    "[patch.{name}]: there is no [git.{target}], no [package.{target}] and no wheel `{target}` in [python.wheels]"
                ),
            ));
        }
        if let Some((path, _)) = patch.images.iter().find(|(_, images)| {
            images.before.is_some()
                && images.before == images.after
                && images.before.as_ref().is_some_and(|id| id.known().is_some())
        }) {
            return Some((None, format!("[patch.{name}]: {path} has the same id before and after")));
        }
    }
    None
}

fn find_bad_packaging<R>(pins: &Pins<R>) -> Found {
    let packaging = &pins.packaging;
    let levels = packaging.encoding.levels();
    if packaging.encoding != Encoding::Identity && !levels.contains(&packaging.level) {
        let (low, high) = levels.into_inner();
        return Some((
            None,
            format!(
                "[packaging]: level {} is not one of {}'s, {low} to {high}",
                packaging.level,
                packaging.encoding.name()
            ),
        ));
    }
    None
}

/// The line of `text` in which `span` begins, with a caret under it, in the parser's own form.
fn show_place(text: &str, span: Range<usize>) -> String {
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let line_number = text[..span.start].matches('\n').count() + 1;
    let line = text[start..].lines().next().unwrap_or_default();
    let column = text[start..span.start].chars().count();
    let width = text[span].chars().count().max(1);
    let margin = " ".repeat(line_number.to_string().len());
    format!(
        "at line {line_number}, column {}\n{margin} |\n{line_number} | {line}\n{margin} | {}{}\n",
        column + 1,
        " ".repeat(column),
        "^".repeat(width)
    )
}
