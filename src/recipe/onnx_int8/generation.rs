//! `[recipe.onnx-int8.generation]`: how the model is made to speak, as data that every runtime follows.

use serde::{Deserialize, Serialize};

/// `[recipe.onnx-int8.generation]`. It is delivered in `generation.json`, with what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The prompt, in which `{text}` stands for what is said to the model.
    pub prompt: String,
    /// What is said to the model in each build.
    pub texts: Vec<String>,
    /// Seeds; each text is tried with each.
    pub seeds: Vec<u32>,
    /// Which random numbers a seed gives.
    pub random: Random,
    /// What the runtime may change in the graph before it runs it.
    pub optimization: Optimization,
    /// How many of the likeliest tokens are drawn from.
    pub top_k: u32,
    /// What logits are divided by before they become weights.
    pub temperature: f64,
    /// The most tokens after the prompt.
    pub max_new_tokens: u32,
    /// Characters that are taken out of what was generated.
    pub strip: String,
    /// Characters that end a sentence. Generation stops at the first one that remains.
    pub sentence_ends: String,
    /// The token that ends a text. Generation stops at it.
    pub end_token: String,
    /// Prompts that are known to go wrong, with `{text}`: what they give is reported and judged by
    /// nothing.
    #[serde(default)]
    pub traps: Vec<String>,
}

/// A sequence of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Random {
    /// Tommy Ettinger's Mulberry32: 32-bit state and output, here divided by 2³².
    Mulberry32,
}

/// onnxruntime's level of graph optimization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimization {
    /// None.
    Disabled,
    /// Constants are folded, what is superfluous goes.
    Basic,
    /// Operators are fused, differently on each processor.
    Extended,
    /// Layouts too.
    All,
}

impl Generation {
    /// What is wrong with it: the key and the reason.
    pub(super) fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let has_text = |prompt: &String| prompt.contains("{text}");
        if !has_text(&self.prompt) {
            Some(("prompt", "it has no `{text}`"))
        } else if !self.traps.iter().all(has_text) {
            Some(("traps", "one has no `{text}`"))
        } else if self.texts.is_empty() {
            Some(("texts", "there is nothing to say to the model"))
        } else if self.seeds.is_empty() {
            Some(("seeds", "there is no seed"))
        } else if self.top_k == 0 {
            Some(("top_k", "at least 1 token is wanted"))
        } else if !(self.temperature.is_finite() && self.temperature > 0.0) {
            Some(("temperature", "a number above 0 is wanted"))
        } else if self.max_new_tokens == 0 {
            Some(("max_new_tokens", "at least 1 token is wanted"))
        } else if self.sentence_ends.is_empty() {
            Some(("sentence_ends", "there is no character that ends a sentence"))
        } else {
            None
        }
    }
}
