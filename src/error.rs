//! Error classes, and the one error type that reaches `main`.
//!
//! Every module has its own `thiserror` enum whose variants carry the facts (step, path, expected,
//! found). What they share is [`Fault`]: a class, which becomes the exit code, and an optional hint.
//! Rendering happens once, in `ui`.

use std::fmt;

use serde::Serialize;

use crate::printable::without_secrets;

/// The class of an error; its number is the process's exit code and is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Class {
    /// The command line or the pins file is not valid.
    Usage = 1,
    /// This host cannot do the build: a tool is missing, of another version, or a path is unusable.
    Preflight = 2,
    /// The workspace exists, is locked, or is not ignored by the enclosing repository.
    Workspace = 3,
    /// A pinned input has vanished or cannot be fetched.
    Unavailable = 4,
    /// An input was obtained and differs from its pin, or its digest is not recorded yet.
    PinMismatch = 5,
    /// A patch does not apply exactly.
    Patch = 6,
    /// A step of the plan failed.
    Step = 7,
    /// An artifact or a manifest failed a check.
    Artifact = 8,
    /// A rebuilt output differs from the recorded one.
    Differs = 9,
    /// The run was interrupted.
    Interrupted = 10,
    /// Nothing can be concluded.
    Inconclusive = 11,
}

impl Class {
    /// The exit code of this class, 1 to 11.
    pub fn exit_code(self) -> u8 {
        self as u8
    }

    /// The class's name as it stands in the JSON error object.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Preflight => "preflight",
            Self::Workspace => "workspace",
            Self::Unavailable => "unavailable",
            Self::PinMismatch => "pin-mismatch",
            Self::Patch => "patch",
            Self::Step => "step",
            Self::Artifact => "artifact",
            Self::Differs => "differs",
            Self::Interrupted => "interrupted",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What each module's error enum tells besides its text.
///
/// The text is lower case without a trailing period; it names step, path, expected and found.
pub trait Fault: std::error::Error + Send + Sync + 'static {
    /// The class, and with it the exit code.
    fn class(&self) -> Class;
    /// What the person can do about it, as one sentence.
    fn hint(&self) -> Option<String> {
        None
    }
    /// Several lines of context that do not fit in a sentence (a hunk, the end of a log).
    fn detail(&self) -> Option<String> {
        None
    }
}

/// Any [`Fault`], with the step it happened in when it happened in one. None of its texts has a
/// password that stood in a url.
#[derive(Debug)]
pub struct Error {
    fault: Box<dyn Fault>,
    step: Option<String>,
}

impl Error {
    /// The same error, known to have happened in `step`.
    #[must_use]
    pub fn in_step(mut self, step: impl Into<String>) -> Self {
        self.step.get_or_insert_with(|| step.into());
        self
    }

    /// The class of the fault.
    pub fn class(&self) -> Class {
        self.fault.class()
    }

    /// The fault's hint.
    pub fn hint(&self) -> Option<String> {
        self.fault.hint().map(|hint| without_secrets(&hint).into_owned())
    }

    /// The fault's lines of context.
    pub fn detail(&self) -> Option<String> {
        self.fault.detail().map(|detail| without_secrets(&detail).into_owned())
    }

    /// The step in which it happened.
    pub fn step(&self) -> Option<&str> {
        self.step.as_deref()
    }

    /// The texts of the fault's causes, outermost first, without the fault itself.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next = self.fault.source();
        while let Some(cause) = next {
            causes.push(without_secrets(&cause.to_string()).into_owned());
            next = cause.source();
        }
        causes
    }
}

impl<F: Fault> From<F> for Error {
    fn from(fault: F) -> Self {
        Self { fault: Box::new(fault), step: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = &self.step {
            write!(f, "step {step}: ")?;
        }
        f.write_str(&without_secrets(&self.fault.to_string()))
    }
}

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
