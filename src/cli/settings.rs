//! Flags for how inputs are obtained, shared by the verbs that fetch.

use std::path::PathBuf;

use clap::Args;

use crate::bundle::MIRRORS;
use crate::error::{Class, Fault, Result};
use crate::mirror::Mirrors;
use crate::printable::{escape_name, without_secrets};
use crate::settings::{Config, Settings, config_path};
use crate::store::Store;

/// How inputs are obtained.
#[derive(Debug, Args)]
#[command(next_help_heading = "Inputs")]
pub(super) struct SettingsArgs {
    #[command(flatten)]
    inputs: InputArgs,
    /// A directory that serves inputs by digest, and git sources as its mirrors.toml says; can be
    /// given several times
    #[arg(long, value_name = "DIR")]
    vendor: Vec<PathBuf>,
}

/// The same for a verb to which `--vendor` means something else.
#[derive(Debug, Args)]
#[command(next_help_heading = "Inputs")]
pub(super) struct InputArgs {
    /// Fetch what is published under URL from another place; can be given several times. The user's
    /// config.toml can hold such rules under [mirrors]
    #[arg(long, value_name = "URL=PATH_OR_URL")]
    mirror: Vec<String>,
    /// Do not use the network
    #[arg(long)]
    offline: bool,
    /// Where fetched files are kept by digest [env: `REBUILD_CACHE`] [default: rebuild-model in the
    /// user's cache directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// There is nowhere to keep fetched files.
#[derive(Debug, thiserror::Error)]
#[error("neither XDG_CACHE_HOME nor HOME names a directory to keep fetched files in")]
struct NoCache;

impl Fault for NoCache {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("name one with --cache".into())
    }
}

impl SettingsArgs {
    /// The settings from these flags, the environment and the user's configuration file.
    pub(super) fn settings(&self) -> Result<Settings> {
        self.settings_with(None)
    }

    /// The same with one more vendor directory.
    pub(super) fn settings_with(&self, vendor: Option<PathBuf>) -> Result<Settings> {
        let vendors: Vec<PathBuf> = self.vendor.iter().cloned().chain(vendor).collect();
        self.inputs.settings(&vendors)
    }
}

impl InputArgs {
    /// The same with these vendor directories.
    pub(super) fn settings(&self, vendors: &[PathBuf]) -> Result<Settings> {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let mut mirrors = Mirrors::default();
        for rule in &self.mirror {
            mirrors.add(rule, &here)?;
        }
        for vendor in vendors {
            mirrors.add_file(&here.join(vendor).join(MIRRORS))?;
        }
        let (config, home) = (std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"));
        let mut builder = None;
        if let Some(path) = config_path(config.as_deref(), home.as_deref()) {
            let config = Config::read(&path)?;
            mirrors.add_table(&config.mirrors, path.parent().unwrap_or(&here));
            builder = config.builder_id;
        }
        for prefix in mirrors.of_registries() {
            let prefix = without_secrets(&escape_name(prefix)).into_owned();
            tracing::warn!(
                "the mirror of {prefix} serves files and repositories, and no packages: pip and npm take those from \
                 where PIP_INDEX_URL and npm_config_registry, or their own configuration, say"
            );
        }
        let variable = || std::env::var_os("REBUILD_CACHE").filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = match self.cache.clone().or_else(variable) {
            Some(cache) => here.join(cache),
            None => Store::usual_cache(|name| std::env::var_os(name)).ok_or(NoCache)?,
        };
        let store = Store::open(vendors.iter().map(|vendor| here.join(vendor)).collect(), cache)?;
        Ok(Settings { mirrors, store, offline: self.offline, git: which::which("git").ok(), builder })
    }
}
