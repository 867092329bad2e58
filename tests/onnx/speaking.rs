//! The browser's module, run in Node.js with a model of a few lines. `make onnx` holds it against
//! onnxruntime.

use serde_json::{Value, json};

/// What `expression` gives, with the module as `m` and `input`.
#[track_caller]
fn evaluate(expression: &str, input: &Value) -> Value {
    let module = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/src/recipe/onnx_int8/generate.mjs");
    let script = format!(
        "import * as m from {module:?};\nconst input = {input};\nconsole.log(JSON.stringify(await (async () => {{ {expression} }})()));"
    );
    #[expect(clippy::disallowed_methods, reason = "the module under test is run here")]
    let output = std::process::Command::new("node").args(["--input-type=module", "--eval", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A tokenizer of all bytes, four merges and an end.
fn tokenizer() -> Value {
    let letters = (0..256_u32).map(|byte| match byte {
        33..=126 | 161..=172 | 174..=255 => byte,
        0..=32 => 256 + byte,
        127..=160 => 256 + byte - 127 + 33,
        _ => 256 + 67,
    });
    let mut words: Vec<String> = letters.map(|letter| char::from_u32(letter).unwrap().to_string()).collect();
    let merges = [("h", "e"), ("\u{120}", "t"), ("\u{120}t", "he"), ("l", "l")];
    words.extend(merges.map(|(one, other)| [one, other].concat()));
    words.push("<|end|>".to_owned());
    let vocabulary: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(id, word)| (word.clone(), json!(id))).collect();
    json!({
        "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel" },
        "added_tokens": [{ "id": 260, "content": "<|end|>" }],
        "model": { "type": "BPE", "vocab": vocabulary, "merges": merges.map(|(one, other)| format!("{one} {other}")) },
    })
}

#[test]
fn texts_become_tokens_and_texts_again() {
    let round = |text: &str| {
        let input = json!({ "tokenizer": tokenizer(), "text": text });
        evaluate(
            "const t = m.createTokenizer(input.tokenizer); const ids = t.encode(input.text); return [ids, t.decode(ids)];",
            &input,
        )
    };
    let space = 32;
    assert_eq!(round("he the hell"), json!([[256, 258, space, 256, 259], "he the hell"]));
    // The last of several spaces belongs to the next word.
    assert_eq!(round("a  the"), json!([[97, space, 258], "a  the"]));
    for text in ["", "é日\u{1f600}", "it's\n\n\tso \"odd\"... ", "\u{a0}x\u{feff}", "12 ab34"] {
        assert_eq!(round(text)[1], text);
    }
    // Half a character is shown as one that is unknown.
    let input = json!({ "tokenizer": tokenizer() });
    assert_eq!(evaluate("return m.createTokenizer(input.tokenizer).decode([104, 0xe9, 105]);", &input), "h\u{fffd}i");
    let other =
        json!({ "normalizer": null, "pre_tokenizer": null, "added_tokens": [], "model": { "type": "Unigram" } });
    let said = evaluate("try { m.createTokenizer(input); } catch (error) { return error.message; }", &other);
    assert_eq!(said, "tokenizer.json is not one of byte-level BPE");
}

/// What is said where the logit of each id is `logits` (an expression in `id` and `at`).
fn say(logits: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut contract = json!({
        "top_k": 40, "temperature": 0.9, "max_new_tokens": 20, "strip": "\"", "sentence_ends": ".!?", "end_token": "<|end|>",
    });
    change(&mut contract);
    let input = json!({ "tokenizer": tokenizer(), "contract": contract });
    let expression = format!(
        "const t = m.createTokenizer(input.tokenizer);
        const logitsOf = async (ids) => Float32Array.from({{ length: 261 }}, (_, id) => {{ const at = ids.length - 2; return {logits}; }});
        return m.say(input.contract, t, logitsOf, 'he ', 1);"
    );
    evaluate(&expression, &input)
}

#[test]
fn the_first_sentence_is_said_without_quotation_marks() {
    let spell = "id === ('\" no, \"yes\"! and'.charCodeAt(at) || 260) ? 100 : 0";
    let said = say(spell, |_| {});
    assert_eq!((said["said"].as_str(), said["sentence"].as_bool()), (Some("no, yes!"), Some(true)));
    assert_eq!(said["prompt_tokens"], json!([256, 32]));
    assert_eq!(said["tokens"].as_array().unwrap().len(), 12);
    let said = say(spell, |contract| contract["sentence_ends"] = json!("]^-\\"));
    assert_eq!((said["said"].as_str(), said["sentence"].as_bool()), (Some("no, yes! and"), Some(false)));
}

#[test]
fn nothing_but_a_line_break_is_nothing() {
    let said = say("id === (at === 0 ? 10 : 260) ? 100 : 0", |_| {});
    assert_eq!((said["said"].as_str(), said["tokens"].clone()), (Some(""), json!([10])));
}

#[test]
fn tokens_are_drawn_as_the_contract_says() {
    // Mulberry32 with seed 1 begins 0.6271, 0.0027, 0.5274, 0.9811, 0.9684: of four equal ids the third, the
    // first, the third, the fourth, the fourth.
    let said = say("id >= 97 && id < 101 ? 5 : 0", |contract| {
        contract["top_k"] = json!(4);
        contract["max_new_tokens"] = json!(5);
    });
    assert_eq!(said["tokens"], json!([99, 97, 99, 100, 100]));
    assert!((said["closest_draw"].as_f64().unwrap() - 0.0027).abs() < 1e-4, "{said}");
    // Of equal ids the lower come first, and no other than the first `top_k` are drawn.
    let said = say("id >= 97 && id < 101 ? 5 : 0", |contract| {
        contract["top_k"] = json!(1);
        contract["max_new_tokens"] = json!(3);
    });
    assert_eq!(said["tokens"], json!([97, 97, 97]));
    // A weight of three and one of one: the second begins at 0.75.
    let said = say("id === 97 ? Math.log(3) * 0.5 : id === 98 ? 0 : -1000", |contract| {
        contract["temperature"] = json!(0.5);
        contract["max_new_tokens"] = json!(5);
    });
    assert_eq!(said["tokens"], json!([97, 97, 97, 98, 98]));
}
