//! A tensor cache: the list of a model's shards and of the parameters in them, `tensor-cache.json`
//! (earlier `ndarray-cache.json`), as TVM's browser runtime reads it.

use serde::{Deserialize, Serialize};

/// A tensor cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorCache {
    /// The shards, in order.
    pub records: Vec<Shard>,
}

/// A file with parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its path, relative to the cache's own.
    #[serde(rename = "dataPath")]
    pub data_path: String,
    /// Its size in bytes.
    pub nbytes: u64,
    /// What is in it.
    pub records: Vec<Record>,
}

/// A parameter in a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The parameter's name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its element type.
    pub dtype: String,
    /// How it is stored: `raw`, or `f32-to-bf16`.
    #[serde(default)]
    pub format: String,
    /// Its size in the shard, in bytes.
    pub nbytes: u64,
    /// Where it begins in the shard.
    #[serde(rename = "byteOffset")]
    pub byte_offset: u64,
}

/// A tensor cache that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a tensor cache: {reason}")]
pub struct TensorCacheError {
    /// What is wrong, with line and column.
    pub reason: String,
}

/// Reads the tensor cache in `text`.
pub fn read(text: &[u8]) -> Result<TensorCache, TensorCacheError> {
    serde_json::from_slice(text).map_err(|error| TensorCacheError { reason: error.to_string() })
}

impl TensorCache {
    /// Every parameter, in order of shards.
    pub fn params(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().flat_map(|shard| &shard.records)
    }

    /// Bytes of all shards.
    pub fn size(&self) -> u64 {
        self.records.iter().fold(0, |sum, shard| sum.saturating_add(shard.nbytes))
    }
}
