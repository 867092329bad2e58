//! Running a program: the only place that spawns a process.
//!
//! Every child leads its own process group, gets exactly the environment it is given, no standard
//! input, and writes to its step's log. Where asked and where the host can, it runs in a network
//! namespace without any interface but a loopback that is down.

pub mod log;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};

use crate::error::{Class, Fault};
use crate::interrupt::{Interrupt, Interrupted, Watched};

use log::StepLog;

/// How many lines of the log an error shows.
const TAIL_LINES: usize = 25;

/// One program run.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program, by absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// The whole environment.
    pub environment: BTreeMap<String, OsString>,
    /// Take the network away.
    pub isolated: bool,
}

/// Why a program run failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It ended with a status that is not 0.
    #[error("{program} ended with exit code {code}")]
    Exit {
        /// The program.
        program: String,
        /// The status.
        code: i32,
        /// The end of its log.
        tail: String,
        /// The log.
        log: PathBuf,
    },
    /// A signal ended it.
    #[error("{program} was ended by signal {signal} ({name})")]
    Signal {
        /// The program.
        program: String,
        /// The signal's number.
        signal: i32,
        /// Its name.
        name: &'static str,
        /// The end of its log.
        tail: String,
        /// The log.
        log: PathBuf,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for CommandError {
    fn class(&self) -> Class {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => Class::Preflight,
            Self::Interrupted(interrupted) => interrupted.class(),
            _ => Class::Step,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Start { .. } => {
                Some("`rebuild-model doctor` shows every tool that is needed and how to get it".into())
            }
            Self::Exit { log, tail, .. } => Some(explain_output(tail).map_or_else(
                || format!("the whole log is {}", log.display()),
                |known| format!("{known}; the whole log is {}", log.display()),
            )),
            Self::Signal { signal: 9, log, .. } => Some(format!(
                "signal 9 usually means that the system ran out of memory (try fewer --jobs), or on macOS that a library's signature is invalid; the whole log is {}",
                log.display()
            )),
            Self::Signal { log, .. } => Some(format!("the whole log is {}", log.display())),
            Self::Interrupted(interrupted) => interrupted.hint(),
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Exit { tail, .. } | Self::Signal { tail, .. } if !tail.is_empty() => Some(tail.clone()),
            _ => None,
        }
    }
}

/// What is known about messages that tools print, as (part of the message, what it means).
const KNOWN_OUTPUT: [(&str, &str); 7] = [
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("MemoryError", "it ran out of memory; try fewer --jobs"),
    ("Cannot allocate memory", "it ran out of memory; try fewer --jobs"),
    ("is not a supported wheel on this platform", "a pinned wheel is for another interpreter or platform"),
    ("FROZEN_CACHE", "the Emscripten cache is frozen and lacks a system library that this build needs"),
    ("Temporary failure in name resolution", "this step has no network; whatever it needs must be a pinned input"),
];

fn explain_output(tail: &str) -> Option<&'static str> {
    KNOWN_OUTPUT.iter().find(|(part, _)| tail.contains(part)).map(|(_, meaning)| *meaning)
}

/// Runs the program to its end, its output going to `log`.
pub fn run(invocation: &Invocation, log: &StepLog, interrupt: &Interrupt) -> Result<(), CommandError> {
    interrupt.check()?;
    log.line(&format!("+ cd {} && {}", invocation.directory.display(), show_command(invocation)));
    let program = invocation.program.display().to_string();
    let failed = |source| CommandError::Start { program: program.clone(), source };
    // duct applies these from the last to the first: standard output must be the log before standard
    // error is made its twin.
    let expression = duct::cmd(&invocation.program, &invocation.arguments)
        .stdin_null()
        .stderr_to_stdout()
        .stdout_file(log.handle().map_err(failed)?);
    let status = wait(&expression, invocation, interrupt).map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    // A child that an interrupt ended did not fail by itself.
    interrupt.check()?;
    let tail = log.tail(TAIL_LINES);
    Err(describe_failure(status, program, tail, log.path()))
}

/// Runs the program to its end and gives back what it printed, for probes and short questions.
pub fn ask(invocation: &Invocation, interrupt: &Interrupt) -> io::Result<Output> {
    // Files and not pipes: a pipe has no end before everything that the program left behind has gone.
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let expression = duct::cmd(&invocation.program, &invocation.arguments)
        .stdin_null()
        .stdout_file(out.try_clone()?)
        .stderr_file(err.try_clone()?);
    let status = wait(&expression, invocation, interrupt)?;
    let read = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map(|_| bytes)
    };
    Ok(Output { status, stdout: read(&mut out)?, stderr: read(&mut err)? })
}

/// A program that runs beside us. Dropping it kills what is left of its process group.
///
/// It also ends with the thread that started it, which has to live as long as it is wanted.
#[derive(Debug)]
pub struct Companion {
    handle: duct::Handle,
    watched: Vec<Watched>,
}

impl Companion {
    /// Starts the program, which gets the two pipes as file descriptors 3 and 4 and writes to `log`
    /// otherwise.
    pub fn start(
        invocation: &Invocation,
        input: PipeReader,
        output: PipeWriter,
        log: &StepLog,
        interrupt: &Interrupt,
    ) -> Result<Self, CommandError> {
        interrupt.check()?;
        let program = invocation.program.display().to_string();
        let failed = |source| CommandError::Start { program: program.clone(), source };
        log.line(&format!("+ {}", show_command(invocation)));
        // Other descriptors than the standard three are beyond what a safe spawn can give, so a shell
        // moves them on.
        let script = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null 1>&2"#;
        let words = ["-c".into(), script.into(), invocation.program.clone().into_os_string()];
        let expression = duct::cmd("/bin/sh", words.into_iter().chain(invocation.arguments.iter().cloned()))
            .stdin_file(input)
            .stdout_file(output)
            .stderr_file(log.handle().map_err(failed)?);
        let (handle, watched) = spawn(&expression, invocation, interrupt).map_err(failed)?;
        Ok(Self { handle, watched })
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.watched.clear();
        let _ = self.handle.wait();
    }
}

fn wait(expression: &duct::Expression, invocation: &Invocation, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    let (handle, _watched) = spawn(expression, invocation, interrupt)?;
    handle.wait().map(|output| output.status)
}

fn spawn(
    expression: &duct::Expression,
    invocation: &Invocation,
    interrupt: &Interrupt,
) -> io::Result<(duct::Handle, Vec<Watched>)> {
    let isolated = invocation.isolated;
    let handle = expression
        .dir(&invocation.directory)
        .full_env(&invocation.environment)
        .unchecked()
        .before_spawn(move |command| {
            command.process_group(0);
            set_umask(command);
            child::prepare(command, isolated);
            Ok(())
        })
        .start()?;
    let watched = handle.pids().into_iter().filter_map(|pid| interrupt.watch(pid)).collect();
    Ok((handle, watched))
}

/// Gives the child the usual umask: a caller's would show in the modes of what it makes.
#[expect(unsafe_code, reason = "there is no safe way to act between fork and exec")]
fn set_umask(command: &mut std::process::Command) {
    let usual = || {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        Ok(())
    };
    // SAFETY: the closure makes one system call; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(usual) };
}

fn describe_failure(status: ExitStatus, program: String, tail: String, log: &Path) -> CommandError {
    let log = log.to_owned();
    match status.signal() {
        Some(signal) => CommandError::Signal { program, signal, name: signal_name(signal), tail, log },
        None => CommandError::Exit { program, code: status.code().unwrap_or(-1), tail, log },
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "hangup",
        2 => "interrupt",
        4 => "illegal instruction",
        6 => "abort",
        7 => "bus error",
        8 => "arithmetic error",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        15 => "terminated",
        24 => "processor time used up",
        25 => "file too large",
        31 => "forbidden system call",
        _ => "see signal(7)",
    }
}

/// The command as a shell would take it, for logs.
fn show_command(invocation: &Invocation) -> String {
    let words =
        std::iter::once(invocation.program.as_os_str()).chain(invocation.arguments.iter().map(OsString::as_os_str));
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// `word` quoted for a POSIX shell where it needs to be.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether this host lets a child be started without a network.
pub fn can_isolate() -> bool {
    child::can_be_isolated()
}

/// What a child does between fork and exec.
#[cfg(target_os = "linux")]
mod child {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use rustix::process::{Signal, set_parent_process_death_signal};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    /// Has the child end when we do, however we end, and leave the network where asked.
    #[expect(unsafe_code, reason = "there is no safe way to act between fork and exec")]
    pub(super) fn prepare(command: &mut Command, isolated: bool) {
        // Prepared here because the closure may not allocate.
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let uid_map = format!("{uid} {uid} 1");
        let gid_map = format!("{gid} {gid} 1");
        let leave_network = move || -> io::Result<()> {
            // SAFETY: a network namespace shares no memory or file descriptor with its parent.
            if uid == 0 && unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.is_ok() {
                return Ok(());
            }
            // SAFETY: as above; a user namespace changes credentials of this single-threaded child only.
            unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }?;
            write_to(c"/proc/self/setgroups", b"deny")?;
            write_to(c"/proc/self/uid_map", uid_map.as_bytes())?;
            write_to(c"/proc/self/gid_map", gid_map.as_bytes())
        };
        let act = move || {
            if isolated {
                leave_network()?;
            }
            // Last, because new credentials make the kernel forget it. The signal comes when the thread
            // that forked is gone; that thread waits for the child.
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        };
        // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(act) };
    }

    fn write_to(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
        let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
        rustix::io::write(&file, bytes)?;
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "this file is the one that spawns")]
    pub(super) fn can_be_isolated() -> bool {
        let mut command = Command::new("/bin/true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command, true);
        command.status().is_ok_and(|status| status.success())
    }
}

#[cfg(not(target_os = "linux"))]
mod child {
    pub(super) fn prepare(_: &mut std::process::Command, _: bool) {}
    pub(super) fn can_be_isolated() -> bool {
        false
    }
}
