//! The id of a builder, as an attestation states it and a policy demands it.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::BUILDER_ID;
use crate::pins::secret_parameter;

/// The most characters that an id may have.
const LONGEST: usize = 2048;

/// Who builds: a URI ([RFC 3986][1]), since SLSA's `builder.id` is a [`TypeURI`][2].
///
/// Nothing is fetched from it. It says whose platform built, and only a signature proves that.
///
/// [1]: https://www.rfc-editor.org/rfc/rfc3986
/// [2]: https://slsa.dev/spec/v1.1/provenance#builder.id
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BuilderId(String);

/// A text that is no builder's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a builder's id is a URI, as in https://example.org/builders/release or urn:example:builder: {0}")]
pub struct NotABuilderId(&'static str);

impl BuilderId {
    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for BuilderId {
    /// The id of whoever has not said who they are: [`BUILDER_ID`].
    fn default() -> Self {
        Self(BUILDER_ID.to_owned())
    }
}

impl fmt::Display for BuilderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BuilderId {
    type Err = NotABuilderId;

    fn from_str(text: &str) -> Result<Self, NotABuilderId> {
        check(text).map_err(NotABuilderId)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for BuilderId {
    type Error = NotABuilderId;
    fn try_from(text: String) -> Result<Self, NotABuilderId> {
        text.parse()
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    if text.len() > LONGEST {
        return Err("this one is too long");
    }
    let (scheme, rest) = text.split_once(':').ok_or("this one has no scheme")?;
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    // Upper case is allowed and means the same; two spellings of one id would be two ids to a policy.
    if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.chars().all(letters) {
        return Err("this one's scheme is not made of small letters, digits, `+`, `-` and `.`");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    if !rest.chars().all(allowed) || rest.matches('#').count() > 1 {
        return Err("this one has a character that no URI has");
    }
    let is_escape = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !rest.split('%').skip(1).all(is_escape) {
        return Err("this one has a `%` without two hexadecimal digits");
    }
    if let Some(rest) = rest.strip_prefix("//") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err("this one has a user or a password in it, which would stand in every attestation");
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err("this one has no host");
        }
    } else if ["http", "https"].contains(&scheme) {
        return Err("this one has no host");
    }
    if secret_parameter(rest).is_some() {
        return Err("this one has a credential among its parameters, which would stand in every attestation");
    }
    let name = rest.split_once(':');
    let is_urn = name.is_some_and(|(space, name)| space.len() > 1 && !space.contains('/') && !name.is_empty());
    if rest.is_empty() || (scheme == "urn" && !is_urn) {
        return Err("this one names nothing");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uri() {
        for text in [
            BUILDER_ID,
            "https://example.org/builders/release",
            "https://example.org",
            "https://[::1]:8080/a?b=c#d",
            "mailto:build@example.org",
            "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
            "https://github.com/actions/runner/github-hosted",
            "tag:example.org,2026:builder",
            "https://example.org/a%20b",
        ] {
            assert_eq!(text.parse::<BuilderId>().unwrap().as_str(), text);
        }
        assert_eq!(BuilderId::default().as_str().parse(), Ok(BuilderId::default()));
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for text in [
            "",
            "release",
            "example.org/builder",
            "/builders/release",
            ":x",
            "1x:y",
            "https:",
            "https://",
            "https:///path",
            "https:path",
            "https://:80/",
            "HTTPS://example.org/",
            "https://example.org/a b",
            "https://example.org/a\nb",
            "https://example.org/%2",
            "https://example.org/%zz",
            "https://example.org/ä",
            "https://example.org/#a#b",
            "https://user:secret@example.org/",
            "https://token@example.org/",
            "https://example.org/b?token=secret",
            "https://example.org/b?a=b&Access_Token=secret#c",
            "urn:example:b?+sig=x&sig=secret",
            "C:\\builder",
            "urn:",
            "urn:x",
            "urn:example:",
            &format!("urn:example:{}", "x".repeat(LONGEST)),
        ] {
            assert!(text.parse::<BuilderId>().is_err(), "{text}");
        }
    }
}
