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
pub enum NotAVersion {
    /// It is not written as one.
    #[error(
        "`{0}` is not a version: numbers between dots are wanted, with `=`, `>=`, `>`, `<=` or `<` before them in a range"
    )]
    Malformed(String),
    /// Its bounds contradict each other.
    #[error("no version meets `{0}`: all bounds have to hold together")]
    Empty(String),
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let refused = || NotAVersion::Malformed(text.to_owned());
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

    /// The first version that does not begin with the numbers of this one.
    fn after(&self) -> Option<Self> {
        let mut numbers = self.numbers.clone();
        let last = numbers.last_mut()?;
        *last = last.checked_add(1)?;
        Some(Self { numbers, text: String::new() })
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

    /// Whether no version can satisfy every bound: between two different ones there is always another.
    fn is_empty(&self) -> bool {
        let zero = Version { numbers: vec![0], text: String::new() };
        // Each with whether it is allowed itself.
        let (mut lowest, mut highest) = ((zero, true), None::<(Version, bool)>);
        for (bound, version) in &self.bounds {
            let (low, high) = match bound {
                Bound::AtLeast => (Some((version.clone(), true)), None),
                Bound::Above => (Some((version.clone(), false)), None),
                Bound::AtMost => (None, Some((version.clone(), true))),
                Bound::Below => (None, Some((version.clone(), false))),
                Bound::Prefix => (Some((version.clone(), true)), version.after().map(|after| (after, false))),
            };
            if let Some(low) = low
                && tighter(low.0.compare(&lowest.0), low.1)
            {
                lowest = low;
            }
            if let Some(high) = high
                && highest.as_ref().is_none_or(|highest| tighter(highest.0.compare(&high.0), high.1))
            {
                highest = Some(high);
            }
        }
        highest.is_some_and(|highest| match lowest.0.compare(&highest.0) {
            Ordering::Less => false,
            Ordering::Equal => !(lowest.1 && highest.1),
            Ordering::Greater => true,
        })
    }
}

/// Whether a bound leaves less than another: `order` is that of their places, seen towards the middle of
/// the range; of two at one place the one that excludes it leaves less.
fn tighter(order: Ordering, inclusive: bool) -> bool {
    order.is_gt() || (order.is_eq() && !inclusive)
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
        let bounds = bounds.map_err(|_| NotAVersion::Malformed(text.to_owned()))?;
        let range = Self { bounds, text: text.to_owned() };
        if range.is_empty() { Err(NotAVersion::Empty(text.to_owned())) } else { Ok(range) }
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
    #[test]
    fn a_range_that_no_version_meets_is_refused() {
        for text in [
            ">=7, <3",
            ">7, <7",
            ">=7, <7",
            ">7, <=7",
            "<0",
            "<0.0",
            ">=7.0.0, <7",
            "3.11, 3.12",
            "3.11, <3.11",
            "3.11, >=3.12",
            "3.11, 4",
            ">=1, >=9, <5, <8",
        ] {
            assert!(matches!(text.parse::<VersionRange>(), Err(NotAVersion::Empty(_))), "{text}");
        }
        for text in [
            ">=7, <=7",
            ">=7, <=7.0",
            ">7, <7.0.1",
            "<0.0.1",
            "<=0",
            "3.11, <3.12",
            "3.11, >=3.11.4",
            "3, 3.11",
            ">7",
            ">=18446744073709551615",
            "18446744073709551615",
        ] {
            assert!(text.parse::<VersionRange>().is_ok(), "{text}");
        }
    }
}
