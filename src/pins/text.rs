//! The small checked texts that pins are made of. Each is refused where it stands, by the parser.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text that a pin may not be.
#[derive(Debug, thiserror::Error)]
#[error("`{found}` is not {wanted}")]
pub struct Malformed {
    found: String,
    wanted: &'static str,
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $wanted:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                let check: fn(&str) -> bool = $check;
                if check(text) { Ok(Self(text.to_owned())) } else { Err(Malformed { found: text.to_owned(), wanted: $wanted }) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;
            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

checked_text! {
    /// The name of a pinned thing: it becomes part of step ids and of directory names.
    Name, "a name: lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
    |text| text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
}

checked_text! {
    /// A git object id (SHA-1) in full: 40 lower-case hexadecimal digits. A branch, a tag or a short
    /// id can move or be ambiguous.
    Commit, "a full git object id: 40 lower-case hexadecimal digits",
    |text| text.len() == 40 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

checked_text! {
    /// A relative path with `/` between its parts, that stays below where it starts.
    RelativePath, "a relative path that stays below its directory (no `..`, no leading `/`, no `\\`)",
    is_relative_path
}

checked_text! {
    /// The name of a published package, with its scope: it is an argument of the package client.
    PackageName, "a package's name: letters, digits, `-`, `_` and `.`, beginning with a letter or digit, perhaps after `@scope/`",
    |text| {
        let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let (scope, name) = text.strip_prefix('@').and_then(|rest| rest.split_once('/')).unwrap_or(("none", text));
        text.len() <= 214 && is_name(scope) && is_name(name)
    }
}

checked_text! {
    /// The exact version of a published package. A tag as `latest`, or a range, can move.
    PackageVersion, "an exact version of a package: it begins with a digit, and has letters, digits, `.`, `-`, `_`, `+` and `!`",
    |text| text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
}

checked_text! {
    /// An operating system and a processor, as in `linux-x86_64`, `macos-aarch64` or `any`.
    Platform, "a platform: `any`, or an operating system and a processor as in `linux-x86_64`",
    |text| text == "any" || text.split_once('-').is_some_and(|(os, arch)| {
        ["linux", "macos", "windows"].contains(&os) && !arch.is_empty() && arch.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn is_relative_path(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(['\\', '\0', '\n'])
        && text.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

impl Name {
    /// A name known to be good when the program is written.
    pub(crate) fn constant(name: &'static str) -> Self {
        debug_assert!(name.parse::<Self>().is_ok());
        Self(name.to_owned())
    }
}

impl RelativePath {
    /// A path known to be good when the program is written.
    pub(crate) fn constant(path: &'static str) -> Self {
        debug_assert!(is_relative_path(path));
        Self(path.to_owned())
    }
}

impl Platform {
    /// The platform that this program was built for.
    pub fn here() -> Self {
        Self(format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH))
    }

    /// Whether something for `self` can be used on `host`.
    pub fn serves(&self, host: &Self) -> bool {
        self.0 == "any" || self == host
    }
}

/// How an unknown digest is written in a pins file.
pub const NOT_RECORDED: &str = "not-recorded";

/// A digest or an id that may not be known yet.
///
/// `"not-recorded"` in the file is a statement: whoever wrote it could not learn the value. A build
/// stops there unless it is told to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<T> {
    /// The value that the input must have.
    Known(T),
    /// Nobody has recorded it yet.
    Not,
}

impl<T> Recorded<T> {
    /// The value, when it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Not => None,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Recorded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => write!(f, "{value}"),
            Self::Not => f.write_str(NOT_RECORDED),
        }
    }
}

impl<T: fmt::Display> Serialize for Recorded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Recorded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == NOT_RECORDED {
            return Ok(Self::Not);
        }
        text.parse().map(Self::Known).map_err(|error| de::Error::custom(format_args!("{error}, or \"{NOT_RECORDED}\"")))
    }
}
