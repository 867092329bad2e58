//! What belongs to a person and a machine, not to the pins: mirrors, caches, vendored inputs.

use std::path::PathBuf;

use crate::mirror::Mirrors;
use crate::store::Store;

/// How inputs are obtained on this machine. None of it can change what is built, only whether the
/// pinned bytes are found.
#[derive(Debug)]
pub struct Settings {
    /// Other places to fetch from.
    pub mirrors: Mirrors,
    /// Files by digest: vendored directories and the cache.
    pub store: Store,
    /// Use nothing but this host.
    pub offline: bool,
    /// The host's `git`, for what the built-in one cannot do.
    pub git: Option<PathBuf>,
}
