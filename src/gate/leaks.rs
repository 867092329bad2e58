//! Does a file name the machine that built it?
//!
//! Names are looked for as parts of paths. A user called `root` or a host called `build` is in many
//! texts that say nothing of this machine; `/home/<user>/` and `<user>@<host>` are not.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{Finding, Severity};
use crate::host::Machine;
use crate::pins::Rule;
use crate::printable::escape_name;

/// Where home directories lie, on the systems that compilers run on.
const HOMES: [&str; 5] = ["/home/", "/Users/", "/var/home/", "/export/home/", "\\Users\\"];

/// Text to be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needle {
    text: Vec<u8>,
    /// What it is.
    what: String,
    /// It counts only where a path or a word ends behind it.
    whole: bool,
    /// It counts only where a word begins.
    word: bool,
}

/// A place in a file where the machine is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// What is named, as in "the workspace".
    pub what: String,
    /// Where, in bytes from the start of the unpacked file.
    pub offset: u64,
    /// What stands there.
    pub context: String,
    /// How often it is found.
    pub count: u64,
}

/// Looks for a machine's names in what is written to it.
#[derive(Debug)]
pub struct Scanner {
    needles: Vec<Needle>,
    found: Vec<Option<Leak>>,
    /// The end of what came before, in which a needle may begin.
    held: Vec<u8>,
    /// Where `held` begins.
    offset: u64,
    /// How many of its first bytes are there only as context.
    seen: usize,
}

/// Bytes around a needle that are looked at and shown.
const CONTEXT: usize = 120;

impl Scanner {
    /// A scanner for what `machine` is called.
    pub fn new(machine: &Machine) -> Self {
        let needles = needles(machine);
        Self { found: vec![None; needles.len()], needles, held: Vec::new(), offset: 0, seen: 0 }
    }

    /// What is found in `bytes`.
    pub fn search(machine: &Machine, bytes: &[u8]) -> Vec<Leak> {
        let mut scanner = Self::new(machine);
        scanner.held.extend_from_slice(bytes);
        scanner.finish()
    }

    /// What was found, when all was written.
    pub fn finish(mut self) -> Vec<Leak> {
        self.scan(true);
        self.found.into_iter().flatten().collect()
    }

    /// Looks at all that is held, but for what could be the start of a needle or lacks its context.
    fn scan(&mut self, last: bool) {
        let end = if last { self.held.len() } else { self.held.len().saturating_sub(CONTEXT + self.longest()) };
        if end <= self.seen && !last {
            return;
        }
        for (needle, found) in self.needles.iter().zip(&mut self.found) {
            let mut from = self.seen;
            while let Some(at) = self.held.get(from..).and_then(|rest| crate::artifact::wasm::find(rest, &needle.text))
            {
                let at = from + at;
                if at >= end {
                    break;
                }
                from = at + needle.text.len();
                if !needle.counts(&self.held, at) {
                    continue;
                }
                let first = || Leak {
                    what: needle.what.clone(),
                    offset: self.offset + at as u64,
                    context: around(&self.held, at, needle.text.len()),
                    count: 0,
                };
                found.get_or_insert_with(first).count += 1;
            }
        }
        let keep = end.saturating_sub(CONTEXT);
        self.held.drain(..keep);
        self.offset += keep as u64;
        self.seen = end - keep;
    }

    fn longest(&self) -> usize {
        self.needles.iter().map(|needle| needle.text.len()).max().unwrap_or(0)
    }
}

impl Write for Scanner {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        self.scan(false);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Needle {
    fn counts(&self, bytes: &[u8], at: usize) -> bool {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        // After a dot it is no absolute path; but a name may end a sentence, or go on with a domain.
        let is_begun = |byte: &u8| is_word(byte) || *byte == b'.';
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let after = bytes.get(at + self.text.len());
        !(self.whole && after.is_some_and(is_word) || self.word && before.is_some_and(is_begun))
    }
}

/// The text around a needle, as far as it is text.
fn around(bytes: &[u8], at: usize, length: usize) -> String {
    let is_text = |byte: &u8| (b' '..0x7f).contains(byte);
    let start = bytes[at.saturating_sub(40)..at].iter().rev().take_while(|byte| is_text(byte)).count();
    let rest = &bytes[at + length..];
    let stop = rest[..rest.len().min(60)].iter().take_while(|byte| is_text(byte)).count();
    escape_name(&String::from_utf8_lossy(&bytes[at - start..at + length + stop]))
}

fn needles(machine: &Machine) -> Vec<Needle> {
    let mut needles: Vec<Needle> = Vec::new();
    let mut add = |text: String, what: String, whole: bool, word: bool| {
        let text = text.into_bytes();
        // The longer of two texts is found with the shorter one.
        if !needles.iter().any(|needle| needle.text == text) {
            needles.push(Needle { text, what, whole, word });
        }
    };
    for (what, path) in &machine.directories {
        // A directory right below the root may be in any text; of such only what lies in it counts.
        let path = path.trim_end_matches('/');
        match path.matches('/').count() {
            0 => {}
            1 => add(format!("{path}/"), format!("{what} {path}"), false, true),
            _ => add(path.to_owned(), format!("{what} {path}"), true, false),
        }
    }
    if let Some(home) = machine.home.as_deref().map(|home| home.trim_end_matches('/')).filter(|home| home.len() > 1) {
        add(format!("{home}/"), format!("the home directory {home}"), false, true);
    }
    let user = machine.user.as_deref().filter(|user| !user.is_empty());
    if let Some(user) = user {
        for home in HOMES {
            add(format!("{home}{user}"), format!("the user {user}"), true, false);
        }
    }
    let host = machine.host.as_deref().filter(|host| !host.is_empty() && !host.starts_with("localhost"));
    // A name that could be a word of any language is not looked for alone.
    let telling = |host: &&str| host.len() >= 6 && host.chars().any(|c| !c.is_ascii_alphabetic());
    match (user, host) {
        (_, Some(host)) if telling(&host) => add(host.to_owned(), format!("the host {host}"), true, true),
        (Some(user), Some(host)) => {
            add(format!("{user}@{host}"), format!("the user {user} of the host {host}"), true, true);
        }
        _ => {}
    }
    needles
}

/// Findings about the file `artifact`, delivered under `path`.
pub fn judge(artifact: &str, leaks: &[Leak]) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for leak in leaks {
        // One place may name several things.
        if !seen.insert(leak.offset) {
            continue;
        }
        let times = if leak.count == 1 { String::new() } else { format!(", {} times", leak.count) };
        findings.push(Finding {
            rule: Rule::Leaks,
            severity: Severity::Error,
            artifact: artifact.to_owned(),
            message: format!("names {}{times}, first at byte {}: `{}`", leak.what, leak.offset, leak.context),
            hint: Some("compile with -ffile-prefix-map=<directory>=. and relative include paths, and look at what a tool writes into its output".into()),
        });
    }
    findings
}
