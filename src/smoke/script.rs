//! The calls that a library must answer, and what it must answer, where that is known.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::metadata::Metadata;
use super::values::Random;

/// The reference's name beside weights.
pub(super) const REFERENCE: &str = "reference.json";
/// The most bytes of a reference.
const LARGEST: u64 = 1 << 30;
/// The most token ids of a script: they travel in one message.
const MOST_IDS: usize = 8192;
/// Tokens of the prompt where nobody chose one.
const PROMPT: usize = 11;
/// Ids from which a prompt is drawn; every vocabulary has them.
const IDS: u64 = 256;

/// How far a logit may be from its reference by default: absolute, for logits up to about 20.
///
/// WGSL allows sin and cos an error of 2^-11, which alone moves logits of rotary models by 1e-2.
pub const TOLERANCE: f64 = 2e-2;

/// The two functions that a conversation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// Takes in a prompt.
    Prefill,
    /// Takes in one more token.
    Decode,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// How many tokens came before.
    #[serde(default)]
    pub position: usize,
    /// The tokens; the most likely one of the call before where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_ids: Option<Vec<u32>>,
    /// Rows of logits that must come first in its answer.
    #[serde(default, rename = "logits", skip_serializing)]
    pub expected: Option<Vec<Vec<f32>>>,
}

/// Calls in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The calls.
    pub calls: Vec<Call>,
    /// The tolerance that the reference itself asks for.
    pub tolerance: Option<f64>,
    /// The most likely token after each call.
    pub tokens: Option<Vec<u32>>,
}

impl Script {
    /// Whether there is anything to compare with.
    pub fn has_reference(&self) -> bool {
        self.tokens.is_some() || self.calls.iter().any(|call| call.expected.is_some())
    }
}

/// A seeded prompt, and `steps` seeded tokens after it. A prompt of `whole` chunks fills them.
pub fn seeded(metadata: &Metadata, whole: bool, steps: usize, seed: u64) -> Script {
    let mut random = Random::new(seed ^ 0x7072_6f6d_7074);
    let vocabulary = metadata.active_vocab_size.and_then(|size| u64::try_from(size).ok()).filter(|&size| size > 0);
    let below = vocabulary.unwrap_or(IDS).min(IDS);
    let mut draw = || u32::try_from(random.next() % below).unwrap_or(0);
    let chunk = metadata.longest_prompt().min(MOST_IDS);
    let length = if whole { chunk } else { PROMPT.min(chunk) };
    let prompt: Vec<u32> = (0..length).map(|_| draw()).collect();
    let mut calls = vec![Call { function: Function::Prefill, position: 0, input_ids: Some(prompt), expected: None }];
    calls.extend((0..steps).map(|step| decode(length + step, Some(draw()))));
    Script { calls, tolerance: None, tokens: None }
}

fn decode(position: usize, id: Option<u32>) -> Call {
    Call { function: Function::Decode, position, input_ids: id.map(|id| vec![id]), expected: None }
}

/// The reference in the file at `path`: calls with logits, a prompt with tokens, or 32-bit floats
/// (little-endian), one row for each call of `usual`.
pub fn read(path: &Path, usual: &Script) -> Result<Script, String> {
    let bytes = load(path)?;
    if is_text(&bytes) { parse(&bytes) } else { rows(&bytes, usual) }
}

/// What is wrong with the reference at `path`, as far as can be told without the library.
pub(super) fn check_file(path: &Path) -> Result<(), String> {
    let bytes = load(path)?;
    if is_text(&bytes) {
        parse(&bytes).map(drop)
    } else if bytes.is_empty() || bytes.len() % 4 != 0 {
        Err(format!("{} bytes are neither JSON nor 32-bit floats", bytes.len()))
    } else {
        Ok(())
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

fn load(path: &Path) -> Result<Vec<u8>, String> {
    if !path.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    Ok(bytes)
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "either `calls`, or `prompt` and `tokens` are wanted")]
enum File {
    Calls {
        #[serde(default)]
        tolerance: Option<f64>,
        calls: Vec<Call>,
    },
    Tokens {
        prompt: Vec<u32>,
        tokens: Vec<u32>,
    },
}

fn parse(bytes: &[u8]) -> Result<Script, String> {
    let script = match serde_json::from_slice(bytes).map_err(|error| error.to_string())? {
        File::Calls { tolerance, calls } => Script { calls, tolerance, tokens: None },
        File::Tokens { prompt, tokens } => {
            let length = prompt.len();
            let first = Call { function: Function::Prefill, position: 0, input_ids: Some(prompt), expected: None };
            let rest = (1..tokens.len()).map(|step| decode(length + step - 1, None));
            Script { calls: std::iter::once(first).chain(rest).collect(), tolerance: None, tokens: Some(tokens) }
        }
    };
    check(&script)?;
    Ok(script)
}

fn check(script: &Script) -> Result<(), String> {
    let ids = || script.calls.iter().filter_map(|call| call.input_ids.as_ref());
    let starts =
        script.calls.first().is_some_and(|call| call.function == Function::Prefill && call.input_ids.is_some());
    if !starts {
        return Err("the first call must be a prefill with ids".into());
    }
    if ids().any(Vec::is_empty) {
        return Err("a call has no ids".into());
    }
    let decodes = script.calls.iter().filter(|call| call.function == Function::Decode);
    if decodes.filter_map(|call| call.input_ids.as_ref()).any(|ids| ids.len() != 1) {
        return Err("a decode takes one id".into());
    }
    if ids().map(Vec::len).sum::<usize>() > MOST_IDS || script.calls.len() > MOST_IDS {
        return Err(format!("it has more than {MOST_IDS} ids"));
    }
    if script.tokens.as_ref().is_some_and(Vec::is_empty) {
        return Err("it expects no token".into());
    }
    for expected in script.calls.iter().filter_map(|call| call.expected.as_ref()) {
        if expected.is_empty() || expected.iter().any(|row| row.is_empty() || row.len() != expected[0].len()) {
            return Err("rows of logits must be as long as each other".into());
        }
    }
    Ok(())
}

fn rows(bytes: &[u8], usual: &Script) -> Result<Script, String> {
    let count = usual.calls.len();
    let row = bytes.len() / count / 4;
    if row == 0 || row * count * 4 != bytes.len() {
        return Err(format!("{} bytes are not {count} rows of 32-bit floats", bytes.len()));
    }
    let values: Vec<f32> =
        bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let mut script = usual.clone();
    for (call, row) in script.calls.iter_mut().zip(values.chunks(row)) {
        call.expected = Some(vec![row.to_vec()]);
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(chunk: i64, vocabulary: Option<i64>) -> Metadata {
        let mut metadata: Metadata = serde_json::from_str("{}").unwrap();
        (metadata.prefill_chunk_size, metadata.active_vocab_size) = (chunk, vocabulary);
        metadata
    }

    #[test]
    fn a_seeded_prompt_fits() {
        let lengths = |chunk, whole| {
            let script = seeded(&metadata(chunk, Some(9)), whole, 2, 1);
            assert!(script.calls.iter().flat_map(|call| call.input_ids.clone().unwrap()).all(|id| id < 9));
            assert!(check(&script).is_ok());
            (script.calls[0].input_ids.as_ref().unwrap().len(), script.calls[2].position)
        };
        assert_eq!(lengths(64, false), (11, 12));
        assert_eq!(lengths(64, true), (64, 65));
        assert_eq!(lengths(4, false), (4, 5));
        assert_eq!(lengths(-1, false), (1, 2));
        assert_eq!(seeded(&metadata(64, None), false, 2, 1), seeded(&metadata(64, None), false, 2, 1));
    }

    #[test]
    fn every_form_is_read() {
        let usual = seeded(&metadata(64, None), false, 1, 1);
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("reference");
        let read_back = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path, &usual)
        };
        let text = br#"{"tolerance":0.5,"calls":[{"function":"prefill","position":0,"input_ids":[1,2],"logits":[[0.5,1],[2,3]]},
            {"function":"decode","position":2,"input_ids":[7]}]}"#;
        let script = read_back(text).unwrap();
        assert_eq!((script.tolerance, script.calls.len(), script.has_reference()), (Some(0.5), 2, true));
        assert_eq!(script.calls[0].expected, Some(vec![vec![0.5, 1.0], vec![2.0, 3.0]]));

        let script = read_back(br#" {"prompt":[1,2],"tokens":[5,6,7]}"#).unwrap();
        assert_eq!(script.calls.iter().map(|call| call.position).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!((script.calls[2].input_ids.as_ref(), script.tokens), (None, Some(vec![5, 6, 7])));

        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let script = read_back(&bytes).unwrap();
        assert_eq!(script.calls[1].expected, Some(vec![vec![3.0, 4.0]]));
        assert_eq!(script.calls[1].input_ids, usual.calls[1].input_ids);
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let usual = seeded(&metadata(64, None), false, 1, 1);
        let refused = |text: &str| {
            let root = tempfile::tempdir().unwrap();
            std::fs::write(root.path().join("r"), text).unwrap();
            read(&root.path().join("r"), &usual).unwrap_err()
        };
        assert_eq!(refused("{}"), "either `calls`, or `prompt` and `tokens` are wanted");
        assert_eq!(refused(r#"{"calls":[]}"#), "the first call must be a prefill with ids");
        assert_eq!(refused(r#"{"prompt":[],"tokens":[1]}"#), "a call has no ids");
        assert_eq!(refused(r#"{"prompt":[1],"tokens":[]}"#), "it expects no token");
        let call = |rest: &str| format!(r#"{{"calls":[{{"function":"prefill","input_ids":[1]{rest}}}]}}"#);
        assert_eq!(refused(&call(r#","logits":[[1,2],[1]]"#)), "rows of logits must be as long as each other");
        let two = r#"},{"function":"decode","input_ids":[1,2]"#;
        assert_eq!(refused(&call(two)), "a decode takes one id");
        let many = format!(r#"{{"prompt":[{}],"tokens":[1]}}"#, vec!["1"; 8193].join(","));
        assert_eq!(refused(&many), "it has more than 8192 ids");
        assert!(refused("").contains("0 bytes are not 2 rows"));
        assert!(refused("12345").contains("5 bytes are not 2 rows"));
        assert!(read(Path::new("/nowhere"), &usual).unwrap_err().contains("No such file"));
    }
}
