//! A model library's own description: one JSON object in linear memory, written there by MLC-LLM
//! when it compiles the model (`mlc_llm/compiler_pass/attach_support_info.py`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Image;

/// How the description begins in every library.
const BEGINNING: &[u8] = b"{\"model_type\"";

/// The longest description that is read, in bytes. Those of large models have some hundred KiB.
const LONGEST: usize = 32 * 1024 * 1024;

/// What a library says of itself. Numbers are as written: -1 stands for "none" in some of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The model's architecture, such as `qwen2`.
    pub model_type: String,
    /// MLC's name of the quantization, such as `q4f16_1`.
    #[serde(default)]
    pub quantization: Option<String>,
    /// Parameters in the order in which the library takes them.
    #[serde(default)]
    pub params: Vec<Param>,
    /// Bytes of work memory that each function plans for.
    #[serde(default)]
    pub memory_usage: BTreeMap<String, u64>,
    /// Everything else: `context_window_size`, `max_batch_size`, `kv_state_kind`, …
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

/// A parameter. It may say more, about how it is made from the original weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its dimensions; a negative number or a name stands for one that is not fixed.
    pub shape: Vec<Value>,
    /// Its element type, such as `float16`.
    pub dtype: String,
}

/// A description in a library, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Where, for people.
    pub place: String,
    /// Its bytes.
    pub size: usize,
    /// What it says.
    pub metadata: Metadata,
}

/// A description that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model metadata at {place} cannot be read: {reason}")]
pub struct MetadataError {
    /// Where it begins.
    pub place: String,
    /// What is wrong.
    pub reason: String,
}

/// Every description in `image`. A model library has exactly one, other modules none.
pub fn find(image: &Image) -> Result<Vec<Found>, MetadataError> {
    let mut found = Vec::new();
    for (run, at) in image.find(BEGINNING) {
        let place = run.place(at);
        let bytes = &run.bytes[at..run.bytes.len().min(at.saturating_add(LONGEST))];
        // Whatever follows the object in memory is not looked at: the parser knows where it ends.
        let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Metadata>();
        match stream.next() {
            Some(Ok(metadata)) => found.push(Found { place, size: stream.byte_offset(), metadata }),
            Some(Err(error)) => return Err(MetadataError { place, reason: error.to_string() }),
            None => return Err(MetadataError { place, reason: "it is empty".into() }),
        }
    }
    Ok(found)
}
