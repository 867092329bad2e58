//! What a `WebLLM` engine asks for beside weights, made up for a model that has none of it: a tokenizer of
//! single bytes and a chat configuration. And what its reply must be.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::metadata::Metadata;
use super::report::{Check, EngineFigures, bytes_of};

/// The configuration's name beside the weights.
pub(super) const CONFIG: &str = "mlc-chat-config.json";
/// The tokenizer's.
pub(super) const TOKENIZER: &str = "tokenizer.json";
/// Tokens of the reply.
pub(super) const TOKENS: usize = 8;
/// What is said to the model.
pub(super) const PROMPT: &str = "the quick brown fox";

/// Whether `directory` has what an engine needs.
pub(super) fn is_complete(directory: &Path) -> bool {
    directory.join(CONFIG).is_file() && directory.join(TOKENIZER).is_file()
}

/// A byte-level tokenizer of `vocabulary` tokens in the form of the `tokenizers` library: one for each
/// byte, and fillers.
pub(super) fn tokenizer(vocabulary: usize) -> Value {
    let mut vocab = Map::new();
    for (id, letter) in byte_letters().into_iter().enumerate() {
        vocab.insert(letter.to_string(), id.into());
    }
    for id in vocab.len()..vocabulary {
        vocab.insert(format!("<w{id}>"), id.into());
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": []
        }
    })
}

/// The letters that byte-level tokenizers write for the 256 bytes: those that are visible in Latin-1
/// for themselves, the rest from U+0100 on.
fn byte_letters() -> Vec<char> {
    let visible = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100;
    let letter = |byte: u8| {
        if visible(byte) {
            return char::from(byte);
        }
        next += 1;
        char::from_u32(next - 1).unwrap_or('?')
    };
    (0..=u8::MAX).map(letter).collect()
}

/// A chat configuration that fits the library.
pub(super) fn chat_config(metadata: &Metadata, vocabulary: usize) -> Value {
    let last = vocabulary.saturating_sub(1);
    json!({
        "version": "0.1.0",
        "model_type": metadata.model_type,
        "quantization": metadata.quantization,
        "model_config": {},
        "vocab_size": vocabulary,
        "context_window_size": metadata.context_window_size,
        "sliding_window_size": metadata.sliding_window_size,
        "attention_sink_size": metadata.attention_sink_size,
        "prefill_chunk_size": metadata.prefill_chunk_size,
        "tensor_parallel_shards": 1,
        "temperature": 1.0, "top_p": 1.0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0,
        "tokenizer_files": [TOKENIZER],
        "tokenizer_info": {
            "token_postproc_method": "byte_level", "prepend_space_in_encode": false, "strip_space_in_decode": false
        },
        "conv_template": {
            "name": "smoke", "system_template": "{system_message}", "system_message": "",
            "system_prefix_token_ids": null, "add_role_after_system_message": true,
            "roles": { "user": "u", "assistant": "a", "tool": "t" },
            "role_templates": { "user": "{user_message}", "assistant": "{assistant_message}", "tool": "{tool_message}" },
            "messages": [], "seps": ["|"], "role_content_sep": ":", "role_empty_sep": ":",
            "stop_str": [], "stop_token_ids": [last], "function_string": "", "use_function_calling": false
        },
        "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": [last]
    })
}

/// What the page tells of a completion.
#[derive(Debug, Deserialize)]
struct Reply {
    load_ms: f64,
    first_token_ms: Option<f64>,
    stream_ms: f64,
    tokens: Option<f64>,
    pieces: usize,
    text: String,
    finish: Option<String>,
}

/// Judges the reply: that text came, piece by piece, and that the engine knows why it ended.
pub(super) fn judge(value: &Value) -> (Check, EngineFigures) {
    const NAME: &str = "engine";
    let reply = match Reply::deserialize(value) {
        Ok(reply) => reply,
        Err(error) => {
            return (Check::failed(NAME, format!("the page gave no reply: {error}")), EngineFigures::default());
        }
    };
    let tokens = reply.tokens.unwrap_or(0.0);
    let figures = EngineFigures {
        load_ms: Some(reply.load_ms),
        first_token_ms: reply.first_token_ms,
        tokens: Some(bytes_of(tokens)),
        tokens_per_second: (reply.stream_ms > 0.0).then(|| tokens * 1000.0 / reply.stream_ms),
        gpu_peak: None,
    };
    let check = match (&reply.finish, reply.pieces) {
        (None, _) => Check::failed(NAME, "the stream ended without a reason"),
        // A model may stop at once; it has then shown that it answers, and nothing else.
        (Some(reason), 0) if reason != "stop" => Check::failed(NAME, "no text came"),
        (Some(reason), pieces) => {
            let shown = crate::printable::cut(&reply.text, 60);
            Check::passed(NAME, format!("{tokens} tokens came in {pieces} pieces, then `{reason}`: {shown:?}"))
        }
    };
    (check, figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smoke::report::Outcome;

    #[test]
    fn the_tokenizer_has_a_letter_for_each_byte_and_as_many_tokens_as_asked() {
        let made = tokenizer(300);
        let vocab = made["model"]["vocab"].as_object().unwrap();
        assert_eq!(vocab.len(), 300);
        // As GPT-2's: a space is U+0120, a line break U+010A, and the last byte without a letter U+0143.
        for (letter, byte) in
            [("a", 97), ("\u{120}", 32), ("\u{10a}", 10), ("\u{143}", 0xad), ("ÿ", 255), ("<w299>", 299)]
        {
            assert_eq!(vocab[letter], byte, "{letter}");
        }
    }

    #[test]
    fn a_reply_must_have_text_and_an_end() {
        let reply = |pieces: usize, finish: Value| {
            judge(&json!({
                "load_ms": 5, "first_token_ms": 1, "stream_ms": 4000, "tokens": 8, "pieces": pieces, "text": "a\u{1b}", "finish": finish
            }))
        };
        let (check, figures) = reply(3, json!("length"));
        assert_eq!(check, Check::passed("engine", r#"8 tokens came in 3 pieces, then `length`: "a\u{1b}""#));
        assert_eq!((figures.tokens, figures.tokens_per_second), (Some(8), Some(2.0)));
        assert_eq!(reply(0, json!("length")).0.outcome, Outcome::Failed);
        assert_eq!(reply(0, json!("stop")).0.outcome, Outcome::Passed);
        assert_eq!(reply(3, Value::Null).0.outcome, Outcome::Failed);
        assert_eq!(judge(&Value::Null).0.outcome, Outcome::Failed);
    }
}
