//! Finding a program and asking it, in more than one way, who it is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::digest::{Digest, hash_file};
use crate::error::{Class, Fault};
use crate::exec::command::{Invocation, ask};
use crate::interrupt::Interrupt;
use crate::journal::ToolRecord;
use crate::pins::{Name, Version};
use crate::plan::PlannedTool;
use crate::step::Template;

/// A tool as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// The program that is started.
    pub path: PathBuf,
    /// Its version, as it says itself.
    pub version: String,
    /// Digest of the program file.
    pub sha256: Digest,
    /// What it needs in its environment here.
    pub environment: BTreeMap<String, Template>,
}

impl Tool {
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

/// How a tool is found and questioned.
#[derive(Debug)]
pub struct Probe {
    /// Names that it goes by, most exact first.
    programs: &'static [&'static str],
    /// Two ways of asking for the version; a wrapper that lies usually knows only one of them.
    questions: &'static [&'static [&'static str]],
    /// A question whose answer is the path of the real program behind a launcher.
    real_path: Option<&'static [&'static str]>,
    /// Gives what the tool, which lies at this path, needs in its environment.
    environment: fn(&Path, &Interrupt) -> BTreeMap<String, Template>,
}

const PYTHON_VERSION: &str = "import platform; print(platform.python_version())";
const PYTHON_PATH: &str = "import sys; print(sys.executable)";

/// What is known of particular tools; any other is asked `--version`.
const PROBES: [(&str, Probe); 5] = [
    // What stands on PATH may be a launcher (pyenv, asdf) that looks elsewhere in another environment.
    (
        "python",
        Probe {
            programs: &["python3", "python"],
            questions: &[&["--version"], &["-c", PYTHON_VERSION]],
            real_path: Some(&["-c", PYTHON_PATH]),
            environment: nothing,
        },
    ),
    (
        "emcc",
        Probe {
            programs: &["emcc"],
            questions: &[&["--version"], &["-dumpversion"]],
            real_path: None,
            environment: emscripten_cache,
        },
    ),
    (
        "node",
        Probe {
            programs: &["node", "nodejs"],
            questions: &[&["--version"], &["-p", "process.versions.node"]],
            real_path: None,
            environment: nothing,
        },
    ),
    (
        "cc",
        Probe {
            programs: &["cc", "gcc", "clang"],
            questions: &[&["--version"]],
            real_path: None,
            environment: nothing,
        },
    ),
    (
        "cxx",
        Probe {
            programs: &["c++", "g++", "clang++"],
            questions: &[&["--version"]],
            real_path: None,
            environment: nothing,
        },
    ),
];

/// The program that `name` stands for on this `PATH`, without starting anything.
pub fn find(name: &Name) -> Option<PathBuf> {
    let known = PROBES.iter().find(|(tool, _)| *tool == name.as_str());
    match known {
        Some((_, probe)) => probe.programs.iter().find_map(|program| which::which(program).ok()),
        None => which::which(name.as_str()).ok(),
    }
}

/// Finds `name`, asks it for its version, and checks that against what is wanted.
pub fn probe(name: &Name, wanted: &PlannedTool, interrupt: &Interrupt) -> Result<Tool, ToolError> {
    let missing = || ToolError::Missing {
        tool: name.clone(),
        wanted: wanted.version.to_string(),
        install: wanted.install.clone(),
    };
    let path = find(name).ok_or_else(missing)?;
    let known = PROBES.iter().find(|(tool, _)| *tool == name.as_str()).map(|(_, probe)| probe);
    let unusable = |source| ToolError::Unusable { tool: name.clone(), path: path.clone(), source };
    let say = |question: &[&str]| ask_text(&path, question, interrupt).map_err(unusable);

    let questions = known.map_or(&[&["--version"] as &[&str]] as &[&[&str]], |probe| probe.questions);
    let mut versions = Vec::new();
    for question in questions {
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
    let real = match known.and_then(|probe| probe.real_path) {
        Some(question) => PathBuf::from(say(question)?.trim()),
        None => path.clone(),
    };
    let version = found.to_string();
    let (sha256, _) =
        hash_file(&real).map_err(|source| ToolError::Unusable { tool: name.clone(), path: real.clone(), source })?;
    let environment = known.map_or_else(BTreeMap::new, |probe| (probe.environment)(&real, interrupt));
    Ok(Tool { path: real, version, sha256, environment })
}

fn nothing(_: &Path, _: &Interrupt) -> BTreeMap<String, Template> {
    BTreeMap::new()
}

/// A frozen cache, such as Debian's, holds every system library already and is never written; an
/// empty one in its place would fail. Any other cache may be read-only or raced for by other builds,
/// so the build gets its own.
fn emscripten_cache(emcc: &Path, interrupt: &Interrupt) -> BTreeMap<String, Template> {
    let frozen = ask_text(&emcc.with_file_name("em-config"), &["FROZEN_CACHE"], interrupt);
    if frozen.is_ok_and(|answer| answer.trim() == "True") {
        return BTreeMap::new();
    }
    let private = "${cache}/emscripten".parse();
    private.into_iter().map(|place| ("EM_CACHE".to_owned(), place)).collect()
}

/// The program's answer: standard output, or standard error when that is empty.
fn ask_text(program: &Path, question: &[&str], interrupt: &Interrupt) -> std::io::Result<String> {
    // A probe sees the caller's PATH and HOME: launchers (pyenv, asdf) need them to find the program.
    let pass = ["PATH", "HOME", "TMPDIR", "SYSTEMROOT"];
    let environment: BTreeMap<String, OsString> =
        pass.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?))).collect();
    let invocation = Invocation {
        program: program.to_owned(),
        arguments: question.iter().map(OsString::from).collect(),
        directory: std::env::temp_dir(),
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
