//! What a library says of itself, as far as a smoke test needs it.

use serde::Deserialize;

/// The part of `_metadata()` that is used here.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    /// The architecture's name.
    #[serde(default)]
    pub model_type: String,
    /// The quantization's name.
    #[serde(default)]
    pub quantization: String,
    /// Tokens; -1 where a sliding window bounds them instead.
    #[serde(default)]
    pub context_window_size: i64,
    /// Tokens; -1 where there is none.
    #[serde(default)]
    pub sliding_window_size: i64,
    /// Tokens at the start that a sliding window keeps; -1 where there are none.
    #[serde(default)]
    pub attention_sink_size: i64,
    /// The most tokens of one prefill.
    #[serde(default)]
    pub prefill_chunk_size: i64,
    /// Sequences at a time.
    #[serde(default)]
    pub max_batch_size: i64,
    /// What holds a conversation: `kv_cache`, `rnn_state`, `hybrid`, `none`.
    #[serde(default)]
    pub kv_state_kind: String,
    /// Tokens that can come out.
    #[serde(default)]
    pub active_vocab_size: Option<i64>,
    /// The weights, in the order in which the functions take them.
    #[serde(default)]
    pub params: Vec<Param>,
}

/// One tensor of the weights.
#[derive(Debug, Clone, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its elements' type, such as `float16`.
    pub dtype: String,
}

impl Metadata {
    /// Whether its shaders need 16-bit floats.
    pub fn needs_f16(&self) -> bool {
        self.quantization.contains("f16") || self.params.iter().any(|param| param.dtype == "float16")
    }

    /// The largest prompt of one call.
    pub fn longest_prompt(&self) -> usize {
        usize::try_from(self.prefill_chunk_size).unwrap_or(0).max(1)
    }
}
