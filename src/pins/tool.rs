//! Tools and their versions.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::source::Archive;
use super::text::Platform;

/// `[tool.<name>]`: a program that steps run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPin {
    /// Which versions will do: an exact one (`6.0.13`) or bounds (`>=3.1.6, <7`).
    pub version: VersionRange,
    /// How a person gets it, shown when it is missing.
    pub install: Option<String>,
    /// Archives from which the workspace gets its own copy, by platform. Without one for the host's
    /// platform the program is looked for on `PATH`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub archive: BTreeMap<Platform, Archive>,
}

/// A version: numbers between dots, and perhaps a suffix (`0.27.0.post1`, `6.0.5`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    numbers: Vec<u64>,
    text: String,
}

/// A text that is not a version, or not a range of them.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a version: numbers between dots are wanted, with `=`, `>=`, `>`, `<=` or `<` before them in a range"
)]
pub struct NotAVersion(String);

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let refused = || NotAVersion(text.to_owned());
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let numbers = text[..end].trim_end_matches('.').split('.');
        let numbers = numbers.map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| refused())?;
        Ok(Self { numbers, text: text.to_owned() })
    }
}

impl TryFrom<String> for Version {
    type Error = NotAVersion;
    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.text
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Version {
    /// Compares the numbers; a missing one counts as zero, and suffixes do not count.
    fn compare(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let padded =
            |version: &Self| (0..length).map(|i| version.numbers.get(i).copied().unwrap_or(0)).collect::<Vec<_>>();
        padded(self).cmp(&padded(other))
    }
}

/// Bounds on a version, all of which must hold: `6.0.13`, or `>=3.1.6, <7`.
///
/// A version without a sign before it is exact in the numbers it gives: `3.11` accepts `3.11.7`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VersionRange {
    bounds: Vec<(Bound, Version)>,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Prefix,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl VersionRange {
    /// Whether `version` satisfies every bound.
    pub fn accepts(&self, version: &Version) -> bool {
        self.bounds.iter().all(|(bound, wanted)| {
            let order = version.compare(wanted);
            match bound {
                Bound::Prefix => version.numbers.starts_with(&wanted.numbers),
                Bound::AtLeast => order.is_ge(),
                Bound::Above => order.is_gt(),
                Bound::AtMost => order.is_le(),
                Bound::Below => order.is_lt(),
            }
        })
    }
}

impl FromStr for VersionRange {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let signs = [
            (">=", Bound::AtLeast),
            ("<=", Bound::AtMost),
            (">", Bound::Above),
            ("<", Bound::Below),
            ("=", Bound::Prefix),
        ];
        let bound = |part: &str| {
            let part = part.trim();
            let (bound, version) = signs
                .iter()
                .find_map(|(sign, bound)| part.strip_prefix(sign).map(|rest| (*bound, rest)))
                .unwrap_or((Bound::Prefix, part));
            Ok((bound, version.trim().parse()?))
        };
        let bounds = text.split(',').map(bound).collect::<Result<Vec<_>, NotAVersion>>();
        Ok(Self { bounds: bounds.map_err(|_| NotAVersion(text.to_owned()))?, text: text.to_owned() })
    }
}

impl TryFrom<String> for VersionRange {
    type Error = NotAVersion;
    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

impl From<VersionRange> for String {
    fn from(range: VersionRange) -> Self {
        range.text
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_accept_what_they_say() {
        let cases = [
            ("6.0.13", "6.0.13", true),
            ("6.0.13", "6.0.5", false),
            ("6.0.1", "6.0.13", false),
            ("3.11", "3.11.7", true),
            ("3.11", "3.12.0", false),
            (">=3.1.6", "3.1.6", true),
            (">=3.1.6", "3.1.69", true),
            (">=3.1.6", "3.1.5", false),
            (">=3.1.6, <7", "6.0.13", true),
            (">=3.1.6, <7", "7.0", false),
            (">2", "2.0.0", false),
            ("<=2.1", "2.1.0", true),
            ("= 0.27.0", "0.27.0.post1", true),
        ];
        for (range, version, accepted) in cases {
            let found = range.parse::<VersionRange>().unwrap().accepts(&version.parse().unwrap());
            assert_eq!(found, accepted, "{range} and {version}");
        }
    }

    #[test]
    fn what_is_not_a_range_is_refused() {
        for text in ["", ">=", "latest", "1,,2", "~1.2", "^3", "1.x, y"] {
            assert!(text.parse::<VersionRange>().is_err(), "{text}");
        }
    }
}
