//! Finding a program and asking it, in more than one way, who it is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::known;

use crate::digest::{Digest, hash_file};
use crate::error::{Class, Fault};
use crate::interrupt::Interrupt;
use crate::journal::ToolRecord;
use crate::pins::{Name, Version};
use crate::plan::PlannedTool;
use crate::process::{Invocation, ask};
use crate::step::Template;

/// A tool as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The program that is started.
    pub path: PathBuf,
    /// Its version, as it says itself.
    pub version: String,
    /// Digest of the program file; where that is only a launcher, together with the files beside it
    /// that say what is launched.
    pub sha256: Digest,
    /// What it needs in its environment here.
    pub environment: BTreeMap<String, Template>,
}

impl Tool {
    /// Whether its version is one that `wanted` accepts.
    pub(super) fn suits(&self, wanted: &PlannedTool) -> bool {
        self.version.parse().is_ok_and(|version| wanted.version.accepts(&version))
    }

    /// What the journal keeps of it.
    pub fn record(&self) -> ToolRecord {
        ToolRecord { version: self.version.clone(), sha256: self.sha256 }
    }
}

/// Why a tool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is none.
    #[error("tool `{tool}` (version {wanted}) is not on PATH")]
    Missing {
        /// The tool.
        tool: Name,
        /// The wanted version.
        wanted: String,
        /// How to get it.
        install: Option<String>,
    },
    /// It is of another version.
    #[error("tool `{tool}` is version {found}, and {wanted} is wanted ({path})")]
    WrongVersion {
        /// The tool.
        tool: Name,
        /// Where it lies.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The wanted version.
        wanted: String,
        /// How to get another.
        install: Option<String>,
    },
    /// It does not say its version.
    #[error("tool `{tool}` ({path}) does not say its version: {question} gave {answer}")]
    NoVersion {
        /// The tool.
        tool: Name,
        /// Where it lies.
        path: PathBuf,
        /// What it was asked.
        question: String,
        /// What it said.
        answer: String,
    },
    /// It says one version here and another there.
    #[error(
        "tool `{tool}` ({path}) contradicts itself: {first_question} says {first}, {second_question} says {second}"
    )]
    Contradiction {
        /// The tool.
        tool: Name,
        /// Where it lies.
        path: PathBuf,
        /// The first question.
        first_question: String,
        /// Its answer.
        first: String,
        /// The second question.
        second_question: String,
        /// Its answer.
        second: String,
    },
    /// It cannot be read or started.
    #[error("tool `{tool}` ({path}) cannot be used")]
    Unusable {
        /// The tool.
        tool: Name,
        /// Where it lies.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Fault for ToolError {
    fn class(&self) -> Class {
        Class::Preflight
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { install, .. } | Self::WrongVersion { install, .. } => {
                Some(install.clone().unwrap_or_else(|| "install it and put it on PATH".to_owned()))
            }
            Self::NoVersion { .. } | Self::Contradiction { .. } => {
                Some("something else stands under this name on PATH; put the real program before it".into())
            }
            Self::Unusable { .. } => None,
        }
    }
}

/// The program that `name` stands for on this `PATH`, without starting anything.
pub fn find(name: &Name) -> Option<PathBuf> {
    known::probe_of(name.as_str()).programs(name.as_str()).into_iter().find_map(|program| which::which(program).ok())
}

/// Finds `name`, asks it for its version, and checks that against what is wanted.
pub fn probe(name: &Name, wanted: &PlannedTool, interrupt: &Interrupt) -> Result<Tool, ToolError> {
    let missing = || ToolError::Missing {
        tool: name.clone(),
        wanted: wanted.version.to_string(),
        install: wanted.install.clone(),
    };
    let path = find(name).ok_or_else(missing)?;
    let how = known::probe_of(name.as_str());
    let unusable = |source| ToolError::Unusable { tool: name.clone(), path: path.clone(), source };
    let say = |question: &[&str]| ask_text(&path, question, interrupt).map_err(unusable);

    let mut versions = Vec::new();
    for question in how.questions {
        let answer = say(question)?;
        let version = find_version(&answer).ok_or_else(|| ToolError::NoVersion {
            tool: name.clone(),
            path: path.clone(),
            question: question.join(" "),
            answer: format!("`{}`", answer.lines().next().unwrap_or_default()),
        })?;
        versions.push((question, version));
    }
    let (first_question, found) = &versions[0];
    if let Some((second_question, second)) = versions.iter().find(|(_, version)| version != found) {
        return Err(ToolError::Contradiction {
            tool: name.clone(),
            path,
            first_question: first_question.join(" "),
            first: found.to_string(),
            second_question: second_question.join(" "),
            second: second.to_string(),
        });
    }
    if !wanted.version.accepts(found) {
        let (found, wanted_text) = (found.to_string(), wanted.version.to_string());
        return Err(ToolError::WrongVersion {
            tool: name.clone(),
            path,
            found,
            wanted: wanted_text,
            install: wanted.install.clone(),
        });
    }
    let real = match how.real_path {
        Some(question) => PathBuf::from(say(question)?.trim()),
        None => path.clone(),
    };
    let unreadable = |source| ToolError::Unusable { tool: name.clone(), path: real.clone(), source };
    let sha256 = identify(&real, how.companions).map_err(unreadable)?;
    let environment = (how.environment)(&real, interrupt);
    Ok(Tool { path: real, version: found.to_string(), sha256, environment })
}

/// The digest of the program file, together with its companions where it has any.
fn identify(program: &Path, companions: &[&str]) -> std::io::Result<Digest> {
    let (digest, _) = hash_file(program)?;
    let others = companions_of(program, companions);
    if others.is_empty() {
        return Ok(digest);
    }
    let mut digests = vec![digest];
    for other in others {
        digests.push(hash_file(&other)?.0);
    }
    Ok(Digest::of_value(&digests))
}

/// The files among `names` that stand beside what `program` really is.
pub(super) fn companions_of(program: &Path, names: &[&str]) -> Vec<PathBuf> {
    let Ok(real) = program.canonicalize() else { return Vec::new() };
    names.iter().map(|name| real.with_file_name(name)).filter(|path| path.is_file()).collect()
}

/// The program's answer: standard output, or standard error when that is empty.
pub(super) fn ask_text(program: &Path, question: &[&str], interrupt: &Interrupt) -> std::io::Result<String> {
    // A probe sees the caller's PATH and HOME: launchers (pyenv, asdf) need them to find the program.
    let pass = ["PATH", "HOME", "TMPDIR", "SYSTEMROOT"];
    let environment: BTreeMap<String, OsString> =
        pass.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?))).collect();
    let invocation = Invocation {
        program: program.to_owned(),
        arguments: question.iter().map(OsString::from).collect(),
        directory: PathBuf::from("/"),
        environment,
        isolated: false,
    };
    let output = ask(&invocation, interrupt)?;
    if !output.status.success() {
        return Ok(String::new());
    }
    let bytes = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first word of `answer` that is a version: it begins with a digit, or `v` and a digit, and has
/// a dot in it or is all there is.
fn find_version(answer: &str) -> Option<Version> {
    let words = answer
        .split(|c: char| c.is_whitespace() || "(),".contains(c))
        .map(|word| word.strip_prefix('v').unwrap_or(word));
    let numbers = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    numbers.filter(|word| word.contains('.') || answer.trim() == *word).find_map(|word| {
        // emcc and others append a commit or a distribution: `3.1.6~dfsg`, `14.2.0-4`.
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(word.len());
        word[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_real_tools_print() {
        let cases = [
            (
                "emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) 3.1.6 ()\nCopyright (C) 2014",
                "3.1.6",
            ),
            ("emcc (Emscripten …) 6.0.5-git (abc)", "6.0.5"),
            ("Python 3.11.7", "3.11.7"),
            ("v20.20.2\n", "20.20.2"),
            ("git version 2.47.3", "2.47.3"),
            ("uv 0.9.1 (Homebrew 2026-01-02)", "0.9.1"),
            ("12\n", "12"),
            ("cmake version 3.25.1\n\nCMake suite maintained", "3.25.1"),
            ("GNU Make 4.3\nBuilt for", "4.3"),
        ];
        for (answer, version) in cases {
            assert_eq!(find_version(answer).unwrap().to_string(), version, "{answer}");
        }
        for answer in ["", "no version here", "usage: tool [-v]"] {
            assert!(find_version(answer).is_none(), "{answer}");
        }
    }
}
