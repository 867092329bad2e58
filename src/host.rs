//! What this host has: tools by path, version and digest; cores, memory, isolation.
//!
//! **Invariant**: it finds facts and holds no policy. Whether a version will do is the plan's to say.

mod known;
mod machine;
mod remembered;
mod tool;

pub use known::unpacked_environment;
pub use machine::Machine;
pub use remembered::Remembered;
pub use tool::{Tool, ToolError, find, probe};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::parallel;
use crate::pins::{Name, Platform};
use crate::plan::Plan;

/// The host as far as a plan needs it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Operating system and processor.
    pub platform: Platform,
    /// The tools of the plan that the host has to provide.
    pub tools: BTreeMap<Name, Tool>,
    /// Whether a child can be run without a network.
    pub isolation: bool,
    /// Processor cores that this process may use.
    pub cores: usize,
    /// Memory that is free to be used, in MiB.
    pub memory_mib: u64,
}

impl Host {
    /// Finds every tool that `plan` wants of the host, and questions those that are not `remembered`.
    ///
    /// A tool that is missing or of a version that will not do is an error; `doctor` lists all.
    pub fn probe(plan: &Plan, remembered: &Remembered, interrupt: &Interrupt) -> Result<Self> {
        let wanted: Vec<_> = plan.tools.iter().filter(|(_, tool)| tool.provided.is_none()).collect();
        let found = parallel::map(&wanted, |(name, wanted)| {
            let known = remembered.recall(name).filter(|tool| tool.suits(wanted));
            known.map_or_else(|| probe(name, wanted, interrupt), Ok)
        });
        interrupt.check()?;
        let named = wanted.iter().map(|(name, _)| (*name).clone()).zip(found);
        let tools = named.map(|(name, tool)| Ok((name, tool?))).collect::<Result<BTreeMap<_, _>, ToolError>>()?;
        Ok(Self {
            platform: Platform::here(),
            tools,
            isolation: crate::process::can_isolate(),
            cores: cores(),
            memory_mib: free_memory_mib(),
        })
    }
}

/// Processor cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory that can be used without swapping, in MiB; where the system does not say, a modest guess.
pub fn free_memory_mib() -> u64 {
    const MODEST: u64 = 4096;
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    available.map_or(MODEST, |kib| kib / 1024)
}

/// The directories on `PATH`.
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}
