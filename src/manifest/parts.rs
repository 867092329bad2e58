//! The list of a file's parts, for hosts with a limit on a file's size.
//!
//! A file `PATH` over the limit is delivered as `PATH.part-000`, `PATH.part-001`, …, each an artifact
//! of its own, and `PATH.parts.json`, this list, which is an artifact too. Parts joined in their order
//! are the file.

use serde::{Deserialize, Serialize};

use crate::artifact::encoding::FileId;
use crate::pins::{Encoding, RelativePath};

/// The schema of lists of parts.
pub const SCHEMA: u32 = 1;

/// The role of a list in its manifest.
pub const LIST_ROLE: &str = "parts";

/// The role of a part in its manifest.
pub const PART_ROLE: &str = "part";

/// The most bytes of a list: far more than any file has parts for.
pub const LARGEST: u64 = 1 << 20;

/// The path of the list of the parts of the file at `path`.
pub fn name_of(path: &str) -> String {
    format!("{path}.parts.json")
}

/// What a file was before it was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Its path from the directory of the artifacts.
    pub path: RelativePath,
    /// What it is to the site: `model-library`, …
    pub role: String,
    /// How it is encoded.
    pub encoding: Encoding,
    /// What encoded it, with version and level.
    pub encoder: String,
    /// The joined parts.
    pub packed: FileId,
    /// What decoding them gives.
    pub unpacked: FileId,
    /// In order, none empty.
    pub parts: Vec<Part>,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its path, from where [`Parts::path`] starts.
    pub path: RelativePath,
    /// Its bytes.
    #[serde(flatten)]
    pub id: FileId,
}

impl Parts {
    /// Reads a list; the error says what is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let parts: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if parts.schema != SCHEMA {
            return Err(format!("it has schema {}, and this version reads schema {SCHEMA}", parts.schema));
        }
        if parts.parts.is_empty() {
            return Err("it names no part".into());
        }
        Ok(parts)
    }
}
