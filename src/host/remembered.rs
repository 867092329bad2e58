//! What an earlier run of a build found out about its tools, and whether that can still be so.
//!
//! Asking five tools for their versions takes longer than all else that a finished build has to do.
//! As long as the same program stands on `PATH` and none of its files was touched, the answer stands.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::known::probe_of;
use super::tool::{Tool, companions_of, find};
use crate::bounded;
use crate::pins::Name;

/// Tools as an earlier run found them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Always 1.
    schema: u32,
    tools: BTreeMap<Name, Memory>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    /// What stood on `PATH`.
    found: PathBuf,
    /// Every file that makes out the tool.
    files: BTreeMap<PathBuf, Stamp>,
    tool: Tool,
}

/// Enough to notice that a file was replaced or written: its place on disk, size, and both times in
/// nanoseconds. The change time cannot be set back without privilege.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

const SCHEMA: u32 = 1;

/// The most bytes that are read; a tool takes some hundred.
const LARGEST: u64 = 4 << 20;

impl Remembered {
    /// Reads what was written at `path`. A file that is absent or of another form remembers nothing:
    /// then every tool is asked again.
    pub fn read(path: &Path) -> Self {
        let text = bounded::read_text(path, LARGEST).unwrap_or_default();
        serde_json::from_str(&text).ok().filter(|memory: &Self| memory.schema == SCHEMA).unwrap_or_default()
    }

    /// What is to be remembered of `tools`.
    pub fn of(tools: &BTreeMap<Name, Tool>) -> Self {
        let memory = |(name, tool): (&Name, &Tool)| {
            let found = find(name)?;
            let files = stamps(name, &found, &tool.path)?;
            Some((name.clone(), Memory { found, files, tool: tool.clone() }))
        };
        Self { schema: SCHEMA, tools: tools.iter().filter_map(memory).collect() }
    }

    /// The tool called `name`, when nothing about it has changed.
    pub(super) fn recall(&self, name: &Name) -> Option<Tool> {
        let memory = self.tools.get(name)?;
        let same = find(name)? == memory.found && stamps(name, &memory.found, &memory.tool.path)? == memory.files;
        same.then(|| memory.tool.clone())
    }
}

/// The stamps of what stands on `PATH`, of the program behind it, and of that one's companions.
fn stamps(name: &Name, found: &Path, program: &Path) -> Option<BTreeMap<PathBuf, Stamp>> {
    let companions = companions_of(program, probe_of(name.as_str()).companions);
    let files = [found.to_owned(), program.to_owned()].into_iter().chain(companions);
    files.map(|file| stamp(&file).map(|stamp| (file, stamp))).collect()
}

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    Some(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}
