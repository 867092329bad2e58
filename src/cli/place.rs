//! Flags for where a build works, shared by the verbs that look there.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Class, Fault, Result};
use crate::workspace::{check_path, default_root};

/// Where a build works.
#[derive(Debug, Default, Args)]
pub(super) struct Place {
    /// An absolute, unused path to work in [env: `REBUILD_WORKSPACE`, `AI_BUILD_DIR`] [default:
    /// .rebuild/<recipe> below the current directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Go on in a workspace that an earlier build left
    #[arg(long)]
    resume: bool,
}

/// The current directory is gone or cannot be named.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell the current directory")]
struct NoDirectory(#[source] std::io::Error);

impl Fault for NoDirectory {
    fn class(&self) -> Class {
        Class::Preflight
    }
}

impl Place {
    /// The workspace's path for `recipe`.
    pub(super) fn root(&self, recipe: &str) -> Result<PathBuf> {
        match self.given() {
            Some(root) => Ok(root),
            None => Ok(default_root(&std::env::current_dir().map_err(NoDirectory)?, recipe)),
        }
    }

    /// Refuses a path that was given and in which no build could work, as a build would.
    pub(super) fn check(&self) -> Result<()> {
        self.given().map_or(Ok(()), |root| Ok(check_path(&root)?))
    }

    fn given(&self) -> Option<PathBuf> {
        // The second is the name that the build script had for it before this program. An empty value
        // is how a shell unsets a variable for one command.
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        self.workspace.clone().or_else(|| variable("REBUILD_WORKSPACE")).or_else(|| variable("AI_BUILD_DIR"))
    }

    /// Whether to go on in an existing workspace.
    pub(super) fn resume(&self) -> bool {
        self.resume
    }
}
