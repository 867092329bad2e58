//! Addresses of what is pinned. Each is refused where it stands when no client could fetch it, when a
//! client would take it for something else, or when it holds a secret: pins are reviewed and quoted,
//! and attestations carry them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a git repository is published: a url, `user@host:path`, or a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitUrl(String);

/// Where a plain file is published: an `http`, `https` or `file` url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileUrl(String);

/// A text that is no such address. It does not repeat the text, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not {wanted}: {reason}")]
pub struct NotAnAddress {
    wanted: &'static str,
    reason: String,
}

macro_rules! address {
    ($name:ident, $wanted:expr, $check:expr) => {
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NotAnAddress;
            fn from_str(text: &str) -> Result<Self, NotAnAddress> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(text).map_err(|reason| NotAnAddress { wanted: $wanted, reason })?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnAddress;
            fn try_from(text: String) -> Result<Self, NotAnAddress> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(address: $name) -> Self {
                address.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

address!(GitUrl, "the address of a git repository", check_git);
address!(FileUrl, "the url of a file", check_file);

fn check_git(text: &str) -> Result<(), String> {
    check_any(text)?;
    if text.contains("://") {
        return check_url(text, &["https", "http", "ssh", "git", "file"]);
    }
    let first = text.split('/').next().unwrap_or_default();
    let Some((host, _)) = first.split_once(':') else { return Ok(()) };
    let path = &text[host.len() + 1..];
    // `ext::program` and its like make git start something.
    if path.starts_with(':') {
        return Err(format!("`{host}::` names no place but a program"));
    }
    // Without user or dot, `javascript:` and the shorthands of somebody's own ssh look the same.
    if !host.contains(['@', '.']) {
        return Err(format!(
            "nobody fetches from `{host}:`; a host is written ssh://{host}/PATH, a path with a colon ./{host}:…"
        ));
    }
    check_host(host.rsplit('@').next().unwrap_or_default())?;
    if path.is_empty() { Err("it has no path".into()) } else { Ok(()) }
}

fn check_file(text: &str) -> Result<(), String> {
    check_any(text)?;
    if !text.contains("://") {
        return Err("it has to begin with https://, http:// or file://".into());
    }
    check_url(text, &["https", "http", "file"])?;
    // The last part of the path is what the file is called where it is used.
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let name = path.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    if name.rsplit('/').next().is_none_or(str::is_empty) { Err("its path names no file".into()) } else { Ok(()) }
}

fn check_any(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.starts_with('-') {
        return Err("it begins with `-`, and would be taken for an option".into());
    }
    if text.chars().any(char::is_control) || text.trim() != text {
        return Err("it has a control character in it, or white space at an end".into());
    }
    Ok(())
}

fn check_url(text: &str, schemes: &[&str]) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    if !schemes.contains(&scheme) {
        let schemes: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        return Err(format!("it has to begin with one of {}", schemes.join(", ")));
    }
    let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = rest[authority.len()..].split(['?', '#']).next().unwrap_or_default();
    if scheme == "file" {
        let is_here = authority.is_empty() || authority == "localhost";
        return if is_here && path.len() > 1 { Ok(()) } else { Err("a file's url is file:///PATH".into()) };
    }
    if rest.contains(char::is_whitespace) {
        return Err("it has white space in it, which a url has as %20".into());
    }
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    // A user of ssh is no secret, and a part of the address.
    if user.is_some_and(|user| scheme != "ssh" || user.contains(':') || user.starts_with('-')) {
        return Err("it has a user or a password in it, which the pins would publish and an attestation carry: \
                    leave it out, and let a mirror rule of your own have it (--mirror, or [mirrors] in config.toml)"
            .into());
    }
    if let Some(name) = secret_parameter(rest) {
        return Err(format!(
            "its parameter `{name}` is a credential, which the pins would publish and an attestation carry: \
             leave it out, and let a mirror rule of your own have it (--mirror, or [mirrors] in config.toml)"
        ));
    }
    check_host(host)
}

fn check_host(text: &str) -> Result<(), String> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, after)) if host.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c)) => {
            (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
        }
        Some(_) => ("", None),
        None => text.split_once(':').map_or((text, Some("")), |(host, port)| (host, Some(port))),
    };
    let allowed = |c: char| c.is_alphanumeric() || "-._~%".contains(c);
    let is_name = bracketed.is_some() || host.chars().all(allowed);
    if host.is_empty() || host.starts_with(['-', '.']) || !is_name {
        return Err("it names no host".into());
    }
    match port {
        Some(port) if port.is_empty() || port.parse::<u16>().is_ok() => Ok(()),
        _ => Err("its port is no number up to 65535".into()),
    }
}

/// The query's parameter that is known to hold a credential: access tokens, and what presigned urls
/// of object stores end with.
pub(crate) fn secret_parameter(rest: &str) -> Option<&str> {
    const SECRET: [&str; 12] = [
        "access_token",
        "api_key",
        "apikey",
        "auth_token",
        "password",
        "private_token",
        "sig",
        "token",
        "x-amz-credential",
        "x-amz-security-token",
        "x-amz-signature",
        "x-goog-signature",
    ];
    let (_, query) = rest.split('#').next()?.split_once('?')?;
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next());
    names.find(|name| SECRET.contains(&name.to_ascii_lowercase().replace("%2d", "-").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_fetches_is_an_address() {
        for text in [
            "https://github.com/apache/tvm.git",
            "http://127.0.0.1:8000/x.git",
            "https://[::1]:8000/x",
            "ssh://git@example.org/x.git",
            "ssh://git@example.org:22/x.git",
            "git://example.org/x.git",
            "file:///srv/x.git",
            "file://localhost/srv/x.git",
            "git@github.com:apache/tvm.git",
            "example.org:x.git",
            "./repositories/decoder.git",
            "./a:b",
            "/srv/my repositories/x.git",
            "../x.git",
        ] {
            assert_eq!(text.parse::<GitUrl>().unwrap().as_str(), text);
        }
        for text in [
            "https://example.org/a/b.bin?download=true",
            "http://127.0.0.1:8000/x",
            "file:///srv/x",
            "https://example.org/a@b",
            "https://example.org/a?tokens=2#x",
        ] {
            assert_eq!(text.parse::<FileUrl>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_no_client_fetches_is_refused() {
        for text in [
            "",
            " https://example.org/x",
            "https://example.org/x\n",
            "https://example.org/a b",
            "javascript:alert(1)",
            "data:text/plain,x",
            "ftp://example.org/x",
            "https:///x",
            "https://",
            "https://exa mple.org/x",
            "https://-oProxyCommand=x/y",
            "https://example.org:port/x",
            "https://example.org:99999/x",
            "https://[::1/x",
            "https://[host]/x",
            "HTTPS:/example.org/x",
            "file://",
            "file:///",
            "file://server/x",
            "--upload-pack=touch x",
            "-x",
        ] {
            assert!(text.parse::<GitUrl>().is_err(), "{text}");
            assert!(text.parse::<FileUrl>().is_err(), "{text}");
        }
        for text in ["ext::sh -c x", "ssh://-oProxyCommand=x/y", "ssh://-x@host/y", "user@-host:x", "example.org:"] {
            assert!(text.parse::<GitUrl>().is_err(), "{text}");
        }
        for text in ["https://example.org", "https://example.org/", "https://example.org/a/?b", "file:///a/"] {
            assert!(text.parse::<FileUrl>().is_err(), "{text}");
        }
        for text in ["./x", "x", "/srv/x", "ssh://git@example.org/x", "git@example.org:x"] {
            assert!(text.parse::<FileUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        for text in [
            "https://me:hunter2@example.org/x",
            "https://hunter2@example.org/x",
            "https://example.org/x?access_token=hunter2",
            "https://example.org/x?a=b&X-Amz-Signature=hunter2",
            "https://example.org/x?X%2dAmz%2DSignature=hunter2",
            "http://me:hunter2@example.org@example.org/x",
        ] {
            let errors = [text.parse::<GitUrl>().unwrap_err(), text.parse::<FileUrl>().unwrap_err()];
            for error in errors.map(|error| error.to_string()) {
                assert!(error.contains("--mirror") && !error.contains("hunter2"), "{text}: {error}");
            }
        }
        assert!("ssh://me:hunter2@example.org/x".parse::<GitUrl>().is_err());
    }
}
