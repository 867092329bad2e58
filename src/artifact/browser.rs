//! Reading what a browser module provides to a model library, from its text.
//!
//! Nothing is run. Three shapes are known, and all of them are object literals:
//!
//! - an import object, whose property `env` or `wasi_snapshot_preview1` is a literal or the name of a
//!   variable that one is assigned to: Emscripten's generated adapters (`{"env": wasmImports,
//!   "wasi_snapshot_preview1": wasmImports}`), and adapters written by hand;
//! - the literals that TVM's own environment adds to `env`, recognised by a name that each has.
//!
//! Whoever looks for a property of that name anywhere in the text would find it in comments, in
//! messages, and among what the module *calls*.

mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use tokens::{Token, Words};

/// A browser module, read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BrowserModule {
    /// Names that it provides, by the module that a library imports them from.
    pub provides: BTreeMap<String, BTreeSet<String>>,
    /// Exports of the library that it uses: TVM's, the memory and the initializer.
    pub requires: BTreeSet<String>,
    /// Limits that it asks the device for, by WebGPU's name of the limit.
    pub limits: BTreeMap<String, u64>,
}

/// The modules that model libraries import from.
const MODULES: [&str; 2] = ["env", "wasi_snapshot_preview1"];

/// Names by which TVM's own literals for `env` are recognised: its callbacks, which had another name
/// before tvm-ffi, and its default for a growing memory.
const OF_TVM: [&str; 3] = ["TVMFFIWasmSafeCall", "TVMWasmPackedCFunc", "emscripten_notify_memory_growth"];

/// How TVM names the variable that holds a limit which it asks for; the limit's own name follows.
const REQUIRED: &str = "required";

/// Reads the module in `text`.
pub fn read(text: &str) -> BrowserModule {
    let words = Words::of(text);
    let tokens = words.tokens();
    let mut module = BrowserModule::default();
    for at in 0..tokens.len() {
        match &tokens[at] {
            Token::Open('{') if at > 0 => {
                // Only where an expression can stand: elsewhere a brace begins a block.
                if !matches!(&tokens[at - 1], Token::Sign('=' | ':' | ',') | Token::Open('(' | '['))
                    && !tokens[at - 1].is_name("return")
                {
                    continue;
                }
                let Some(properties) = literal(&words, at) else { continue };
                if properties.iter().any(|(key, _)| OF_TVM.contains(key)) {
                    let names = properties.iter().map(|(key, _)| (*key).to_owned());
                    module.provides.entry("env".to_owned()).or_default().extend(names);
                }
                for (key, value) in properties.iter().filter(|(key, _)| MODULES.contains(key)) {
                    let names = names_of(&words, *value);
                    if !names.is_empty() {
                        module.provides.entry((*key).to_owned()).or_default().extend(names);
                    }
                }
            }
            token if token.is_name("exports") => module.requires.extend(export(&tokens[at + 1..])),
            Token::Name(name) if name.starts_with(REQUIRED) => {
                if let Some((limit, value)) = limit(name, &tokens[at + 1..]) {
                    module.limits.entry(limit).or_insert(value);
                }
            }
            _ => {}
        }
    }
    module
}

/// The properties of the object literal that begins at `at`, each with the place of its value;
/// nothing when it is none. A shorthand's value is its own name.
fn literal<'t>(words: &Words<'t>, at: usize) -> Option<Vec<(&'t str, usize)>> {
    let tokens = words.tokens();
    let mut properties = Vec::new();
    let mut next = at + 1;
    loop {
        let token = tokens.get(next)?;
        if matches!(token, Token::Close('}')) {
            return Some(properties);
        }
        match (token.text(), tokens.get(next + 1)?) {
            (Some(key), Token::Sign(':')) => properties.push((key, next + 2)),
            (Some(key), Token::Sign(',') | Token::Close('}') | Token::Open('(')) => properties.push((key, next)),
            // `async f()`, `get f()`: the name follows.
            (Some("async" | "get" | "set"), after) if after.text().is_some() => {
                properties.push((after.text()?, next));
            }
            // A spread, or a computed name: what it brings is not known.
            _ if matches!(token, Token::Sign('.' | '*') | Token::Open('[')) => {}
            _ => return None,
        }
        next = skip_value(words, next)?;
    }
}

/// The place after the comma that ends the property at `at`, or of the brace that ends the literal.
fn skip_value(words: &Words<'_>, mut at: usize) -> Option<usize> {
    loop {
        match words.tokens().get(at)? {
            Token::Open(_) => at = words.end_of(at)?,
            Token::Close(_) => return Some(at),
            Token::Sign(',') => return Some(at + 1),
            // In no literal: this is a block.
            Token::Sign(';') => return None,
            _ => {}
        }
        at += 1;
    }
}

/// The property names of the value at `at`: a literal, or a name that literals are assigned to.
fn names_of(words: &Words<'_>, at: usize) -> BTreeSet<String> {
    let tokens = words.tokens();
    let keys = |at| literal(words, at).unwrap_or_default().into_iter().map(|(key, _)| key.to_owned());
    match tokens.get(at) {
        Some(Token::Open('{')) => keys(at).collect(),
        Some(Token::Name(name)) => {
            let assigned = tokens.windows(3).enumerate().filter(|(_, three)| {
                three[0].is_name(name) && three[1] == Token::Sign('=') && three[2] == Token::Open('{')
            });
            assigned.flat_map(|(index, _)| keys(index + 2)).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// What is used of a library's exports, when `after` follows the word.
fn export(after: &[Token<'_>]) -> Option<String> {
    let (([Token::Sign('.'), Token::Name(name), rest @ ..], _)
    | (_, [Token::Open('['), Token::Text(name), Token::Close(']'), rest @ ..])) = (after, after)
    else {
        return None;
    };
    // `exports.x = …` is a module's own export.
    let assigned = matches!(rest, [Token::Sign('='), next, ..] if *next != Token::Sign('='));
    let wanted = name.starts_with("TVM") || matches!(*name, "memory" | "_initialize");
    (wanted && !assigned).then(|| (*name).to_owned())
}

/// The limit that an assignment to `variable` asks for: `requiredMaxBufferSize = 1 << 30`.
fn limit(variable: &str, after: &[Token<'_>]) -> Option<(String, u64)> {
    let name = variable.strip_prefix(REQUIRED)?.strip_prefix("Max")?;
    let number = |token: &Token<'_>| match token {
        Token::Number(text) => text.parse::<u64>().ok(),
        _ => None,
    };
    let value = match after {
        [Token::Sign('='), one, Token::Sign('<'), Token::Sign('<'), two, ..] => {
            number(one)?.checked_shl(u32::try_from(number(two)?).ok()?)?
        }
        [Token::Sign('='), one, Token::Sign(';' | ','), ..] => number(one)?,
        _ => return None,
    };
    Some((format!("max{name}"), value))
}

#[cfg(test)]
mod tests;
