//! `pip download`: one pinned file, or all that a list of hashes names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Programs, only_file, other_file, run_tool, text_of, unexplained};
use crate::digest::Digest;
use crate::exec::input::{InputContext, InputError, Wanted};
use crate::pins::Recorded;
use crate::step::FetchPackage;

/// Downloads the package's file to `directory`.
///
/// The file's own name says for which interpreter and platform it is, so that a wheel can be had that
/// does not fit this host. Of a source distribution pip prepares the metadata, which runs its build
/// backend: after the hash has been checked, when one is pinned.
pub(super) fn download_one(
    spec: &FetchPackage,
    wanted: &Wanted,
    programs: &Programs,
    directory: &Path,
    context: &InputContext,
) -> Result<PathBuf, InputError> {
    let exact = format!("{}=={}", spec.package, spec.version);
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(tags) = wheel_tags(wanted.name) {
        arguments.extend(["--only-binary=:all:".into(), "--ignore-requires-python".into()]);
        arguments.extend(tags.into_iter().map(OsString::from));
    } else {
        // `:all:` would have every build requirement built from source too.
        arguments.push(format!("--no-binary={}", spec.package).into());
    }
    if let Some(digest) = spec.sha256.known() {
        let list = context.scratch.join("requirement.txt");
        std::fs::write(&list, format!("{exact} --hash=sha256:{digest}\n"))
            .map_err(|source| InputError::Write { path: list.clone(), source })?;
        arguments.extend(["--require-hashes".into(), "-r".into(), list.into()]);
    } else {
        arguments.push(exact.into());
    }
    let call = Call { what: &wanted.what, digest: spec.sha256.known().copied(), network: true };
    call.run(arguments, programs, directory, context)?;
    let (name, path) = only_file(directory, wanted)?;
    if name != wanted.name {
        return Err(other_file(wanted, name));
    }
    Ok(path)
}

/// Downloads a wheel of which only name and version are known to `directory`.
pub(super) fn download_unknown(
    name: &str,
    version: &str,
    programs: &Programs,
    directory: &Path,
    context: &InputContext,
) -> Result<PathBuf, InputError> {
    let exact = format!("{name}=={version}");
    let call = Call { what: &exact, digest: None, network: true };
    call.run(vec!["--only-binary=:all:".into(), exact.clone().into()], programs, directory, context)?;
    let wanted = Wanted { what: exact, name: "a wheel", sha256: Recorded::Not, size: None };
    only_file(directory, &wanted).map(|(_, path)| path)
}

/// Downloads the wheels of the requirements file `list` to `directory`; those in `links` need no network.
pub(super) fn download_all(
    list: &Path,
    links: &Path,
    network: bool,
    programs: &Programs,
    directory: &Path,
    context: &InputContext,
) -> Result<(), InputError> {
    let mut arguments: Vec<OsString> =
        ["--only-binary=:all:", "--require-hashes", "--find-links"].map(Into::into).into();
    arguments.extend([links.into(), "-r".into(), list.into()]);
    if !network {
        arguments.push("--no-index".into());
    }
    Call { what: "the Python requirements", digest: None, network }.run(arguments, programs, directory, context)
}

struct Call<'a> {
    what: &'a str,
    digest: Option<Digest>,
    network: bool,
}

impl Call<'_> {
    fn run(
        &self,
        more: Vec<OsString>,
        programs: &Programs,
        directory: &Path,
        context: &InputContext,
    ) -> Result<(), InputError> {
        // Only pip's full log tells a missing project from an index that does not answer.
        let log = context.scratch.join("pip.log");
        let _ = std::fs::remove_file(&log);
        let mut arguments: Vec<OsString> = [
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-input",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--progress-bar=off",
            "--log",
        ]
        .map(Into::into)
        .into();
        arguments.extend([log.clone().into(), "--dest".into(), directory.into()]);
        arguments.extend(more);
        let mut environment = programs.environment.clone();
        if !self.network {
            // Any of these could name a place on the network.
            for variable in ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"] {
                environment.remove(variable);
            }
            environment.insert("PIP_CONFIG_FILE".into(), "/dev/null".into());
        }
        let output = run_tool(&programs.python, arguments, environment, context)?;
        if output.status.success() {
            return Ok(());
        }
        let text = text_of(&output);
        if text.contains("No module named pip") {
            return Err(InputError::NoPip { python: programs.python.clone() });
        }
        let full = std::fs::read(&log).unwrap_or_default();
        Err(self
            .explain(&text, &String::from_utf8_lossy(&full))
            .unwrap_or_else(|| unexplained(self.what, "pip", &output, context)))
    }

    /// What pip's messages mean. `text` is what it printed, `full` its log.
    fn explain(&self, text: &str, full: &str) -> Option<InputError> {
        if let Some(mismatch) = parse_mismatch(text) {
            return Some(mismatch);
        }
        let (what, from, digest) = (self.what.to_owned(), "pypi".to_owned(), self.digest);
        // `HTTP error 404 while getting URL`, `Could not fetch URL x: 503 Server Error: …`.
        let status = after(text, "HTTP error ").or_else(|| {
            after(full, "Could not fetch URL ").and_then(|rest| rest.split_once(": ").map(|(_, reason)| reason))
        });
        if let Some(reason) = status {
            let why = reason.trim_end_matches(" - skipping").to_owned();
            return Some(match reason.split(' ').next().and_then(|code| code.parse().ok()) {
                Some(404 | 410) => InputError::Vanished { what, from, why, digest },
                Some(401 | 403) => InputError::Refused { what, from, why, digest },
                _ => InputError::Unreachable { what, from, why, digest },
            });
        }
        if let Some(requirement) = after(text, "No matching distribution found for ") {
            let why = format!("the index has no matching file for {requirement}");
            return Some(InputError::Vanished { what, from, why, digest });
        }
        let broken = [
            "Max retries exceeded",
            "ReadTimeoutError",
            "ConnectTimeoutError",
            "Connection broken",
            "IncompleteRead",
            "ProxyError",
            "SSLError",
            "ConnectionResetError",
            "Read timed out",
        ];
        let line = text.lines().rev().find(|line| broken.iter().any(|sign| line.contains(sign)))?;
        Some(InputError::Unreachable { what, from, why: line.trim_start_matches("ERROR: ").to_owned(), digest })
    }
}

/// The rest of the first line that has `sign`, behind it.
fn after<'a>(text: &'a str, sign: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.split_once(sign)).map(|(_, rest)| rest.trim())
}

/// Reads the block that pip prints when a file has another hash:
/// `NAME==VERSION from URL (from -r …):`, `Expected sha256 …`, `Expected or …`, `Got …`.
fn parse_mismatch(text: &str) -> Option<InputError> {
    let mut lines = text.lines().skip_while(|line| !line.contains("DO NOT MATCH THE HASHES")).skip(1);
    let head = lines.next()?.trim();
    let (what, from) = head.split_once(" from ").unwrap_or((head, "pypi"));
    let from = from.split([' ', '#']).next().unwrap_or(from).trim_end_matches(':');
    let mut expected = Vec::new();
    for line in lines {
        let digest = line.split_whitespace().next_back().and_then(|word| word.parse::<Digest>().ok());
        if line.contains("Expected") || line.trim_start().starts_with("or ") {
            expected.extend(digest);
        } else if line.contains("Got") {
            return Some(InputError::Differs {
                what: what.trim_end_matches(':').to_owned(),
                from: from.to_owned(),
                expected,
                found: digest?,
                size: None,
                expected_size: None,
                likeness: None,
            });
        }
    }
    None
}

/// pip's options for the tags in a wheel's file name (PEP 427):
/// `name-version(-build)?-python-abi-platform.whl`. None when it is no wheel.
fn wheel_tags(file: &str) -> Option<Vec<String>> {
    let stem = file.strip_suffix(".whl")?;
    let mut parts = stem.rsplitn(4, '-');
    let (platforms, abis, pythons) = (parts.next()?, parts.next()?, parts.next()?);
    if !parts.next()?.contains('-') {
        return None;
    }
    // Of `py2.py3` the newer is asked for; the file is the same.
    let python = pythons.rsplit('.').next()?;
    let (implementation, version) = python.split_at(python.find(|c: char| c.is_ascii_digit())?);
    let (major, minor) = version.split_at(1);
    let version = if minor.is_empty() { major.to_owned() } else { format!("{major}.{minor}") };
    let mut options = vec![format!("--implementation={implementation}"), format!("--python-version={version}")];
    options.extend(abis.split('.').map(|abi| format!("--abi={abi}")));
    options.extend(platforms.split('.').map(|platform| format!("--platform={platform}")));
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheels_name_says_what_it_is_for() {
        let options = |name| wheel_tags(name).map(|options| options.join(" "));
        let tags = options("apache_tvm_ffi-0.1.15.post2-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl");
        assert_eq!(
            tags.unwrap(),
            "--implementation=cp --python-version=3.11 --abi=cp311 --platform=manylinux_2_24_x86_64 --platform=manylinux_2_28_x86_64"
        );
        let tags = options("six-1.16.0-py2.py3-none-any.whl");
        assert_eq!(tags.unwrap(), "--implementation=py --python-version=3 --abi=none --platform=any");
        let tags = options("a-1-1build-cp39-abi3-win32.whl");
        assert_eq!(tags.unwrap(), "--implementation=cp --python-version=3.9 --abi=abi3 --platform=win32");
        assert_eq!(options("six-1.16.0.tar.gz"), None);
        assert_eq!(options("six-py3-none-any.whl"), None);
    }
}
