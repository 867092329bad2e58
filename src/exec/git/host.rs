//! Fetching with the host's `git`, for what libgit2 cannot do: ssh, protocol version 2, repositories
//! of newer formats, https in a build without it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::GitError;
use super::obtain::Failure;
use crate::interrupt::Interrupt;
use crate::process::log::StepLog;
use crate::process::{Invocation, ask};

/// The host's `git`.
#[derive(Debug, Clone)]
pub struct HostGit {
    /// The program, by absolute path.
    pub program: PathBuf,
    /// The environment it gets, with proxy and certificate settings. Variables of git's own are
    /// dropped, except those about certificates and ssh.
    pub environment: BTreeMap<String, OsString>,
}

/// Variables of git's own that may pass.
const PASSED: [&str; 4] = ["GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSH", "GIT_SSH_COMMAND"];

/// The whole configuration. In a file, because `git` does not hand configuration in the environment
/// on to the `upload-pack` that serves a path on this host. Hooks and maintenance have nothing to do here.
const CONFIG: &str = "[safe]\n\tdirectory = *\n[protocol]\n\tversion = 2\n[core]\n\thooksPath = /dev/null\n\
                      [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[fetch]\n\tfsckObjects = false\n";

impl HostGit {
    /// Fetches `wanted` (refspecs or a commit id) from `place` into the bare repository at `into`;
    /// without history where `shallow`.
    pub(super) fn fetch(
        &self,
        into: &Path,
        place: &str,
        wanted: &[&str],
        shallow: bool,
        log: &StepLog,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let config = into.join("rebuild-gitconfig");
        std::fs::write(&config, CONFIG)
            .map_err(|source| Failure::Fatal(GitError::Io { path: config.clone(), source }))?;
        let mut arguments: Vec<OsString> = vec!["--git-dir".into(), into.into(), "fetch".into()];
        arguments.extend(["--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"].map(OsString::from));
        if shallow {
            arguments.push("--depth=1".into());
        }
        arguments.extend(["--", place].map(OsString::from));
        arguments.extend(wanted.iter().map(OsString::from));
        let invocation = Invocation {
            program: self.program.clone(),
            arguments,
            directory: into.to_owned(),
            environment: self.environment(&config),
            isolated: false,
        };
        log.line(&format!("+ git fetch {place} {}", wanted.join(" ")));
        // Not into the log directly: siblings write there at the same time, and what it says decides what comes next.
        let output = ask(&invocation, interrupt);
        interrupt.check().map_err(|interrupted| Failure::Fatal(interrupted.into()))?;
        let output = output.map_err(|error| Failure::Unreachable {
            message: format!("cannot start {}: {error}", self.program.display()),
            transient: false,
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        said.lines().for_each(|line| log.line(line));
        if output.status.success() { Ok(()) } else { Err(classify(&said)) }
    }

    fn environment(&self, config: &Path) -> BTreeMap<String, OsString> {
        let mut environment = self.environment.clone();
        environment.retain(|name, _| !name.starts_with("GIT_") || PASSED.contains(&name.as_str()));
        environment.entry("GIT_SSH_COMMAND".into()).or_insert_with(|| "ssh -o BatchMode=yes".into());
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("SSH_ASKPASS", ""),
            // A url out of `.gitmodules` must not start a program (`ext::`).
            ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
            // What it says is read below.
            ("LC_ALL", "C"),
        ] {
            environment.insert(name.into(), value.into());
        }
        environment.insert("GIT_CONFIG_GLOBAL".into(), config.into());
        environment
    }
}

fn classify(said: &str) -> Failure {
    let matters = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let message = said.lines().filter(matters).collect::<Vec<_>>().join("; ");
    let says = |text: &str| message.contains(text);
    if says("not our ref") || says("unadvertised object") || says("couldn't find remote ref") {
        Failure::Refused(message)
    } else if says("not found") || says("does not appear to be a git repository") || says("does not exist") {
        Failure::NotFound(message)
    } else {
        let lasting = ["could not read Username", "Authentication failed", "Permission denied", "not allowed"];
        let transient = !lasting.iter().any(|text| says(text));
        Failure::Unreachable { message: if message.is_empty() { "git failed".into() } else { message }, transient }
    }
}
