//! The gates as a step: reads what will be delivered, has it judged, and stops the build when
//! something must not leave it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::Place;
use crate::artifact::browser::{self, BrowserModule};
use crate::artifact::decoding::decode;
use crate::artifact::library::{self, LibraryError, Summary};
use crate::artifact::weights;
use crate::error::{Class, Fault, Result};
use crate::gate::leaks::{self, Scanner};
use crate::gate::{self, Expectations, Expected, Finding, Severity};
use crate::host::Machine;
use crate::interrupt::Interrupt;
use crate::pins::Encoding;
use crate::step::{Gate, GatedLibrary};

/// The schema of `gate.json`.
pub const SCHEMA: u32 = 1;

/// The largest file that is read into memory, in bytes.
const LARGEST: u64 = 1 << 30;

/// How many of the largest files the report lists.
const LISTED: usize = 10;

/// What the gates found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateReport {
    /// Always 1 ([`SCHEMA`]).
    pub schema: u32,
    /// Each library in short, by the path that it is delivered to.
    pub libraries: BTreeMap<String, Summary>,
    /// What the browser module provides to them and wants of them.
    pub browser_module: Option<BrowserModule>,
    /// The largest files before they are encoded, largest first.
    pub largest: Vec<FileSize>,
    /// Everything that was found.
    pub findings: Vec<Finding>,
}

/// A file and its size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileSize {
    /// The path that it is delivered to, without the encoding's suffix.
    pub path: String,
    /// In bytes, before it is encoded.
    pub size: u64,
}

/// Why artifacts do not pass.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Something must not leave the build.
    #[error("{}", describe(.0))]
    Stopped(Vec<Finding>),
    /// A library cannot be read.
    #[error("artifact {artifact} cannot be read")]
    Library {
        /// The path that it would be delivered to.
        artifact: String,
        /// Why.
        source: LibraryError,
    },
    /// A file that says what is expected cannot be read.
    #[error("{path} cannot be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file is larger than anything of its kind.
    #[error("{path} has {size} bytes, more than the {LARGEST} that are read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Reading or writing failed.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn describe(findings: &[Finding]) -> String {
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let Some(first) = errors.next() else { return "nothing stops the build".to_owned() };
    let more = match errors.count() {
        0 => String::new(),
        1 => "; and 1 more finding".to_owned(),
        more => format!("; and {more} more findings"),
    };
    format!("artifact {} must not leave the build: {}{more}", first.artifact, first.message)
}

impl Fault for GateError {
    fn class(&self) -> Class {
        match self {
            Self::Io { .. } => Class::Step,
            _ => Class::Artifact,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Stopped(findings) => {
                let stopped = findings.iter().find(|finding| finding.severity == Severity::Error)?;
                let why = stopped.hint.as_ref().map(|hint| format!("{hint}; ")).unwrap_or_default();
                Some(format!(
                    "{why}if it is wanted all the same, accept the rule in the pins: `accept = [\"{}\"]` under [gates]",
                    stopped.rule
                ))
            }
            Self::Library { .. } => Some("look at the log of the step that links it".into()),
            Self::Malformed { .. } | Self::TooLarge { .. } => Some("look at the step that makes this file".into()),
            Self::Io { .. } => None,
        }
    }

    fn detail(&self) -> Option<String> {
        let Self::Stopped(findings) = self else { return None };
        let mut text = String::new();
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
            let _ = writeln!(text, "{} [{}] {}", finding.artifact, finding.rule, finding.message);
            if let Some(hint) = &finding.hint {
                let _ = writeln!(text, "    {hint}");
            }
        }
        Some(text)
    }
}

/// Judges what `gate` names, writes `gate.json` into the step's output directory, and fails when a
/// finding stops the build. `machine` is what no file may name.
pub fn judge(gate: &Gate, place: &Place<'_>, machine: &Machine, interrupt: &Interrupt) -> Result<GateReport> {
    let browser_module = match &gate.browser_module {
        Some(module) => Some(browser::read(&String::from_utf8_lossy(&read(&place.resolve_path(module)?)?))),
        None => None,
    };
    let mut report = GateReport {
        schema: SCHEMA,
        libraries: BTreeMap::new(),
        browser_module,
        largest: Vec::new(),
        findings: Vec::new(),
    };
    for gated in &gate.libraries {
        interrupt.check()?;
        let artifact = gated.path.to_string();
        let bytes = read(&place.resolve_path(&gated.library)?)?;
        let library =
            library::read(&bytes).map_err(|source| GateError::Library { artifact: artifact.clone(), source })?;
        let expected = expectations(gated, place)?;
        report.findings.extend(gate::judge_library(&artifact, &library, &expected, report.browser_module.as_ref()));
        report.libraries.insert(artifact, library.summary());
    }
    for file in &gate.files {
        let root = place.resolve_path(&file.from)?;
        for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
            let entry = entry.map_err(|error| GateError::Io {
                path: error.path().unwrap_or(&root).to_owned(),
                source: error.into(),
            })?;
            if !entry.file_type().is_file() {
                continue;
            }
            let below = entry.path().strip_prefix(&root).unwrap_or(Path::new("")).display().to_string();
            let path = if below.is_empty() { file.path.to_string() } else { format!("{}/{below}", file.path) };
            let (size, leaks) = search(entry.path(), machine, interrupt)?;
            report.findings.extend(leaks::judge(&path, &leaks));
            report.largest.push(FileSize { path, size });
        }
    }
    report.largest.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    report.largest.truncate(LISTED);
    gate::accept(&mut report.findings, &gate.accept);
    write(&place.out().join("gate.json"), &report)?;
    if gate::is_stopped(&report.findings) {
        return Err(GateError::Stopped(report.findings).into());
    }
    Ok(report)
}

fn expectations(gated: &GatedLibrary, place: &Place<'_>) -> Result<Expectations> {
    let mut expected = Expectations::default();
    if let Some(config) = &gated.config {
        let path = place.resolve_path(config)?;
        let config: Value = serde_json::from_slice(&read(&path)?)
            .map_err(|error| GateError::Malformed { path, reason: error.to_string() })?;
        expected.settings = gate::settings_of_config(&config);
    }
    let settings = gated.settings.iter().map(|(key, value)| (key.to_string(), Value::from(*value)));
    let quantization = gated.quantization.iter().map(|name| ("quantization".to_owned(), Value::from(name.clone())));
    // What was asked for counts more than what the configuration says.
    for (key, value) in settings.chain(quantization) {
        expected.settings.insert(key, Expected { value, by: "the pins" });
    }
    if let Some(cache) = &gated.tensor_cache {
        let path = place.resolve_path(cache)?;
        let cache =
            weights::read(&read(&path)?).map_err(|error| GateError::Malformed { path, reason: error.to_string() })?;
        expected.weights = Some(cache);
    }
    Ok(expected)
}

/// The size of the file at `path`, and where it or what is packed in it names the machine.
fn search(path: &Path, machine: &Machine, interrupt: &Interrupt) -> Result<(u64, Vec<leaks::Leak>)> {
    let failed = |source| GateError::Io { path: path.to_owned(), source };
    let mut scanner = Scanner::new(machine);
    let plain = decode(path, Encoding::Identity, u64::MAX, &mut scanner, interrupt).map_err(failed)?;
    let mut found = scanner.finish();
    let packed = [(Encoding::Gzip, [0x1f, 0x8b].as_slice())];
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut head)).map_err(failed)?;
    for (encoding, _) in packed.into_iter().filter(|(_, magic)| head.starts_with(magic)) {
        let mut scanner = Scanner::new(machine);
        // What cannot be unpacked cannot tell anything either, to whoever unpacks it.
        let _ = decode(path, encoding, LARGEST, &mut scanner, interrupt).map_err(failed)?;
        found.extend(scanner.finish());
    }
    Ok((plain.packed.size, found))
}

fn read(path: &Path) -> Result<Vec<u8>, GateError> {
    let failed = |source| GateError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > LARGEST {
        return Err(GateError::TooLarge { path: path.to_owned(), size });
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn write(path: &Path, report: &GateReport) -> Result<(), GateError> {
    let text = serde_json::to_value(report).unwrap_or_default();
    std::fs::write(path, format!("{text:#}\n")).map_err(|source| GateError::Io { path: path.to_owned(), source })
}
