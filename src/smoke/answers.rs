//! What a library answered, and whether that is sound. Nothing here knows of browsers.

use serde::Deserialize;
use serde_json::Value;

use super::report::{Check, Outcome};
use super::script::Script;

/// The answer to one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Milliseconds from the call until its logits were on the host.
    pub ms: f64,
    /// Length of a row: the size of the vocabulary.
    pub width: usize,
    /// Rows of logits one after another.
    pub logits: Vec<f32>,
}

impl Answer {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.logits.chunks(self.width)
    }
}

/// Reads what the page gives for a run: GPU bytes that were ready before the first call, and answers.
pub fn read_run(value: &Value) -> Result<(u64, Vec<Answer>), String> {
    #[derive(Deserialize)]
    struct Run {
        ready: f64,
        steps: Vec<Step>,
    }
    #[derive(Deserialize)]
    struct Step {
        ms: f64,
        width: usize,
        logits: String,
    }
    let run = Run::deserialize(value).map_err(|error| error.to_string())?;
    let answer = |step: Step| {
        let bytes = decode_base64(&step.logits).ok_or("logits are not base64")?;
        if step.width == 0 || bytes.is_empty() || bytes.len() % (4 * step.width) != 0 {
            return Err(format!("{} bytes of logits are no rows of {}", bytes.len(), step.width));
        }
        let word = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        Ok(Answer { ms: step.ms, width: step.width, logits: bytes.chunks_exact(4).map(word).collect() })
    };
    Ok((super::report::bytes_of(run.ready), run.steps.into_iter().map(answer).collect::<Result<_, String>>()?))
}

/// RFC 4648, section 4, with padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes() {
        let sextet = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

/// The index of the largest value; the first of equal ones.
pub fn most_likely(row: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    best
}

/// Judges two runs of the same script.
pub fn judge(script: &Script, tolerance: f64, first: &[Answer], second: &[Answer]) -> Vec<Check> {
    vec![
        check_finite(first),
        check_varied(first),
        check_equal(first, second),
        check_reference(script, tolerance, first),
    ]
}

fn check_finite(answers: &[Answer]) -> Check {
    for (number, answer) in answers.iter().enumerate() {
        let odd = answer.logits.iter().filter(|value| !value.is_finite()).count();
        if odd > 0 {
            return Check::failed(
                "finite",
                format!("call {number}: {odd} of {} logits are not finite", answer.logits.len()),
            );
        }
    }
    Check::passed("finite", "every logit is finite")
}

/// A rejected shader leaves its buffer as it was: all zero, or all of one value.
fn check_varied(answers: &[Answer]) -> Check {
    for (number, answer) in answers.iter().enumerate() {
        if let Some(row) =
            answer.rows().find(|row| row.len() > 1 && row.iter().all(|value| value.to_bits() == row[0].to_bits()))
        {
            let text = if row[0] == 0.0 { "zero".to_owned() } else { format!("the same, {}", row[0]) };
            return Check::failed("not-zero", format!("call {number}: all logits are {text}"));
        }
    }
    Check::passed("not-zero", "no row of logits is all zero")
}

fn check_equal(first: &[Answer], second: &[Answer]) -> Check {
    if first.len() != second.len() {
        return Check::failed("repeatable", format!("{} answers and then {}", first.len(), second.len()));
    }
    for (number, (one, other)) in first.iter().zip(second).enumerate() {
        let differ = one.logits.iter().zip(&other.logits).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        if differ > 0 || one.logits.len() != other.logits.len() {
            return Check::failed("repeatable", format!("call {number}: {differ} logits differ between two runs"));
        }
    }
    Check::passed("repeatable", "two runs gave the same bits")
}

fn check_reference(script: &Script, tolerance: f64, answers: &[Answer]) -> Check {
    const NAME: &str = "reference";
    if !script.has_reference() {
        return Check { name: NAME, outcome: Outcome::Skipped, detail: "no reference was given".into() };
    }
    let (mut worst, mut compared) = (0.0_f64, 0);
    for (number, (call, answer)) in script.calls.iter().zip(answers).enumerate() {
        let rows = call.expected.as_deref().unwrap_or_default();
        if rows.len() > answer.rows().count() || rows.iter().any(|row| row.len() != answer.width) {
            let (wide, wanted) = (answer.width, rows[0].len());
            return Check::failed(
                NAME,
                format!("call {number}: {} rows of {wide}, wanted {} of {wanted}", answer.rows().count(), rows.len()),
            );
        }
        for (expected, found) in rows.iter().zip(answer.rows()) {
            compared += 1;
            let differences = expected.iter().zip(found).map(|(a, b)| f64::from(*a - *b).abs());
            // Not f64::max, which would lose a NaN.
            let difference =
                differences.fold(0.0, |most: f64, next| if most.is_nan() || next <= most { most } else { next });
            if difference.is_nan() || difference > tolerance {
                return Check::failed(
                    NAME,
                    format!("call {number}: logits are off by {difference:.3e}, tolerance {tolerance:.0e}"),
                );
            }
            worst = worst.max(difference);
            let (wanted, likely) = (most_likely(expected), most_likely(found));
            // Where the two are closer than what may be off, either may come first.
            if wanted != likely && f64::from(expected[wanted] - expected[likely]) > 2.0 * tolerance {
                return Check::failed(
                    NAME,
                    format!("call {number}: token {likely} is the most likely, wanted {wanted}"),
                );
            }
        }
    }
    for (number, (wanted, answer)) in script.tokens.iter().flatten().zip(answers).enumerate() {
        let likely = answer.rows().last().map(most_likely).unwrap_or_default();
        compared += 1;
        if u32::try_from(likely) != Ok(*wanted) {
            return Check::failed(NAME, format!("call {number}: token {likely} is the most likely, wanted {wanted}"));
        }
    }
    if script.tokens.is_some() {
        return Check::passed(NAME, format!("{compared} tokens are the expected ones"));
    }
    Check::passed(NAME, format!("{compared} rows of logits, at most {worst:.2e} off (tolerance {tolerance:.0e})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::smoke::script::{Call, Function};

    fn answer(logits: &[f32]) -> Answer {
        Answer { ms: 1.0, width: 3, logits: logits.into() }
    }

    fn script(rows: Option<Vec<Vec<f32>>>, tokens: Option<Vec<u32>>) -> Script {
        let call = Call { function: Function::Prefill, position: 0, input_ids: Some(vec![1]), expected: rows };
        Script { calls: vec![call], tolerance: None, tokens }
    }

    fn outcomes(script: &Script, first: &[f32], second: &[f32]) -> Vec<(Outcome, String)> {
        let checks = judge(script, 0.1, &[answer(first)], &[answer(second)]);
        checks.into_iter().map(|check| (check.outcome, check.detail)).collect()
    }

    #[test]
    fn each_fault_fails_its_own_check() {
        let plain = script(None, None);
        let failing = |first: &[f32], second: &[f32]| {
            let found = outcomes(&plain, first, second).into_iter().filter(|(outcome, _)| *outcome == Outcome::Failed);
            found.map(|(_, detail)| detail).collect::<Vec<_>>()
        };
        let good = [1.0, 2.0, 3.0];
        assert!(failing(&good, &good).is_empty());
        assert_eq!(failing(&good, &[1.0, 2.0, 3.000_001]), ["call 0: 1 logits differ between two runs"]);
        assert_eq!(failing(&[0.0; 3], &[0.0; 3]), ["call 0: all logits are zero"]);
        let second_row = [1.0, 2.0, 3.0, -2.5, -2.5, -2.5];
        assert_eq!(failing(&second_row, &second_row), ["call 0: all logits are the same, -2.5"]);
        assert_eq!(
            failing(&[f32::NAN, 1.0, f32::INFINITY], &[f32::NAN, 1.0, f32::INFINITY]),
            ["call 0: 2 of 3 logits are not finite"]
        );
    }

    #[test]
    fn a_reference_is_held_to_its_tolerance() {
        let reference = |rows: &[&[f32]], found: &[f32]| {
            let rows = rows.iter().map(|row| row.to_vec()).collect();
            outcomes(&script(Some(rows), None), found, found).pop().unwrap()
        };
        let good = [1.0, 2.0, 3.0];
        assert_eq!(outcomes(&script(None, None), &good, &good)[3].0, Outcome::Skipped);
        let passed = reference(&[&[1.05, 2.0, 3.0]], &good);
        assert_eq!(passed, (Outcome::Passed, "1 rows of logits, at most 5.00e-2 off (tolerance 1e-1)".into()));
        assert!(reference(&[&[1.2, 2.0, 3.0]], &good).1.contains("off by 2.000e-1"));
        assert!(reference(&[&[f32::NAN, 2.0, 3.0]], &good).1.contains("off by NaN"));
        assert!(reference(&[&[1.0, 2.0]], &good).1.contains("1 rows of 3, wanted 1 of 2"));
        assert!(reference(&[&good, &good], &good).1.contains("1 rows of 3, wanted 2 of 3"));
        assert_eq!(reference(&[&[1.0, 2.96, 3.0]], &[1.0, 3.0, 2.99]).0, Outcome::Passed, "too close to tell");
    }

    #[test]
    fn expected_tokens_are_the_last_rows() {
        let tokens = |wanted, found: &[f32]| outcomes(&script(None, Some(vec![wanted])), found, found).pop().unwrap();
        assert_eq!(tokens(1, &[9.0, 0.0, 0.0, 1.0, 5.0, 2.0]).0, Outcome::Passed);
        assert_eq!(tokens(0, &[9.0, 0.0, 0.0, 1.0, 5.0, 2.0]).1, "call 0: token 1 is the most likely, wanted 0");
    }

    #[test]
    fn a_run_is_read_from_what_the_page_gives() {
        // 1.0 and -2.0.
        let run = json!({ "ready": 7, "steps": [{ "ms": 1.5, "width": 2, "likely": 0, "logits": "AACAPwAAAMA=" }] });
        let (ready, answers) = read_run(&run).unwrap();
        assert_eq!((ready, answers), (7, vec![Answer { ms: 1.5, width: 2, logits: vec![1.0, -2.0] }]));
        for (width, logits) in [(0, "AACAPwAAAMA="), (3, "AACAPwAAAMA="), (2, ""), (2, "A*CAPwAAAMA=")] {
            let run = json!({ "ready": 7, "steps": [{ "ms": 1, "width": width, "logits": logits }] });
            assert!(read_run(&run).is_err(), "{width} {logits}");
        }
        assert!(read_run(&json!({})).is_err());
        assert_eq!(decode_base64("Zm9vYg==").unwrap(), b"foob");
    }
}
