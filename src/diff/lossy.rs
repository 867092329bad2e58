//! What is lost when a JSON document is read: the first of two values under one key, and digits that
//! a 64-bit float does not have. Documents that are equal when read need not say the same then.

use crate::unique::Unique;

/// Decimal digits that a 64-bit float always keeps.
const KEPT: usize = 15;

/// Whether the document, which can be read, says more than what is read of it.
pub(super) fn loses(document: &[u8]) -> bool {
    let unique = serde_json::from_slice::<Unique>(document).is_ok();
    !unique || numbers(document).any(is_rounded)
}

/// The words of the document that are numbers: outside of texts every word that is none is `true`,
/// `false` or `null`.
fn numbers(document: &[u8]) -> impl Iterator<Item = &str> {
    let mut rest = document;
    std::iter::from_fn(move || {
        loop {
            let (first, more) = rest.split_first()?;
            if *first == b'"' {
                rest = after_text(more);
            } else if matches!(first, b'-' | b'0'..=b'9') {
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let (number, more) = rest.split_at(end);
                rest = more;
                return std::str::from_utf8(number).ok();
            } else {
                rest = more;
            }
        }
    })
}

/// What follows a text whose opening quote has been read.
fn after_text(mut rest: &[u8]) -> &[u8] {
    loop {
        match rest {
            [b'"', more @ ..] => return more,
            [b'\\', _, more @ ..] | [_, more @ ..] => rest = more,
            [] => return rest,
        }
    }
}

fn is_rounded(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    let digits = number.split(['e', 'E']).next().unwrap_or(number).bytes().filter(u8::is_ascii_digit);
    let digits = digits.skip_while(|digit| *digit == b'0').count();
    // Close to 0 a float has fewer digits, and in the end none.
    let is_tiny = number.parse::<f64>().is_ok_and(|value| value.abs() < f64::MIN_POSITIVE);
    digits > KEPT || (digits > 0 && is_tiny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_whole_is_told_from_what_is_not() {
        for whole in [
            r#"{"a": [1, -2.50, 1e5, 0.1, "1234567890123456789012", {"a": "\"", "b": null}], "b": true}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "0.000e-400",
            "0.00000000000000000001",
        ] {
            assert!(!loses(whole.as_bytes()), "{whole}");
        }
        for lossy in [
            r#"{"a": 1, "a": 1}"#,
            r#"[{"b": {"a": 1, "\u0061": 2}}]"#,
            "18446744073709551616",
            "[0.1000000000000000055]",
            r#"{"\\": 9007199254740993.0}"#,
            "1e-400",
        ] {
            assert!(loses(lossy.as_bytes()), "{lossy}");
        }
    }
}
