//! What a step can do wrong by itself.

use std::io;
use std::path::PathBuf;

use crate::error::{Class, Fault};

/// What a step did that its plan does not allow.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A declared output is not there.
    #[error("ended well, but did not write its output {output}; it wrote {written}")]
    OutputNotWritten {
        /// The output.
        output: String,
        /// What it wrote.
        written: String,
    },
    /// Something stands in the output directory that is not declared.
    #[error("wrote {output}, which is not one of its outputs ({declared})")]
    UndeclaredOutput {
        /// What it wrote.
        output: String,
        /// What it may write.
        declared: String,
    },
    /// It wrote into what another step made.
    #[error("changed {path}, which step {owner} made")]
    InputChanged {
        /// The path, relative to the workspace.
        path: String,
        /// The step whose output it is.
        owner: String,
    },
    /// Reading or writing the step's directory failed.
    #[error("cannot use {path}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path that a template stands for is not text.
    #[error("{path:?} is not UTF-8")]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
}

impl Fault for StepError {
    fn class(&self) -> Class {
        Class::Step
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("the disk is full; free some space and run again with --resume".into())
            }
            Self::OutputNotWritten { .. } => Some("its log tells what it did".into()),
            Self::InputChanged { .. } => {
                Some("a step may write only below its own output and scratch directories".into())
            }
            _ => None,
        }
    }
}
