//! Files beside the pins: what a stranger cannot fetch, and so has to be given.

use std::path::Path;

use crate::digest::Digest;
use crate::exec::local::{self, LocalError};
use crate::plan::Plan;

/// The most bytes of one file that are carried.
pub const LARGEST_CARRIED: usize = 1 << 20;

/// The most bytes of all of them together.
const LARGEST_TOGETHER: usize = 8 << 20;

/// A file beside the pins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedFile {
    /// `patch`, `requirements` or `file`.
    pub kind: &'static str,
    /// Its path from the pins file's directory.
    pub path: String,
    /// Its digest.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes, unless they are too many.
    pub content: Option<Vec<u8>>,
}

/// Reads the files that `plan` takes from `directory`, the pins file's, each once and in plan order.
pub fn carry(plan: &Plan, directory: &Path) -> Result<Vec<CarriedFile>, LocalError> {
    let mut files: Vec<CarriedFile> = Vec::new();
    let mut together = 0;
    for (kind, path, pinned) in local::files_of(plan) {
        if files.iter().any(|file| file.path == path) {
            continue;
        }
        let (found, size) = local::identify(kind, directory, path, pinned)?;
        let mut file = CarriedFile { kind, path: path.to_owned(), sha256: found, size, content: None };
        let fits = |size: u64| usize::try_from(size).is_ok_and(|size| size <= LARGEST_CARRIED);
        if fits(size) {
            let bytes = local::read(kind, directory, path, pinned)?;
            // Read again, so asked again: only what has this digest may stand under it.
            if Digest::of(&bytes) == found && together + bytes.len() <= LARGEST_TOGETHER {
                together += bytes.len();
                file.content = Some(bytes);
            }
        }
        files.push(file);
    }
    Ok(files)
}
