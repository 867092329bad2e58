//! Plain files by digest: from beside the pins file, the store, a mirror, or where they are published.

mod http;
pub(in crate::exec) mod web;

use std::io;
use std::path::{Path, PathBuf};

use crate::exec::input::{Admitted, InputContext, InputError, Likeness, Wanted};
use crate::printable::without_secrets;
use crate::step::{FetchFile, FileOrigin};

/// Obtains the file that `spec` asks for, in the directory `into`.
///
/// A file beside the pins file is judged as it lies there: an old copy in the cache must not hide that
/// somebody changed it. A published file comes from the store when the store has it.
pub fn fetch(spec: &FetchFile, into: &Path, context: &InputContext) -> Result<Admitted, InputError> {
    let what = match &spec.from {
        FileOrigin::Url(url) => without_secrets(url).into_owned(),
        FileOrigin::Path(path) => path.to_string(),
    };
    let wanted = Wanted { what, name: &spec.name, sha256: spec.sha256, size: spec.size };
    wanted.check(context)?;
    if let FileOrigin::Path(path) = &spec.from {
        let path = context.pins_directory.join(path.as_str());
        return match from_disk(&wanted, &path, into, context) {
            Err(InputError::Missing { what, path, digest }) => {
                let stored = wanted.take_stored(into, context)?;
                stored.ok_or(InputError::Missing { what, path, digest })
            }
            other => other,
        };
    }
    if let Some(admitted) = wanted.take_stored(into, context)? {
        return Ok(admitted);
    }
    let FileOrigin::Url(url) = &spec.from else { unreachable!("paths were dealt with") };
    let admitted = from_anywhere(&wanted, url, into, context)?;
    wanted.keep(&admitted, context);
    Ok(admitted)
}

/// Tries each place that may have `url`'s file.
fn from_anywhere(wanted: &Wanted, url: &str, into: &Path, context: &InputContext) -> Result<Admitted, InputError> {
    let mut candidates = (context.mirrors)(url);
    if candidates.is_empty() {
        candidates.push(url.to_owned());
    }
    let mut failures = Vec::new();
    for candidate in &candidates {
        let tried = match local_path(candidate) {
            Some(path) => from_disk(wanted, &context.pins_directory.join(path), into, context),
            None if context.offline => continue,
            None => from_web(wanted, candidate, into, context),
        };
        match tried {
            Ok(admitted) => {
                if candidate != url {
                    context.log.note(format!("{} came from {}", wanted.what, admitted.from));
                }
                return Ok(admitted);
            }
            Err(InputError::Interrupted(interrupted)) => return Err(interrupted.into()),
            Err(failure) => {
                if candidates.len() > 1 {
                    context.log.note(failure.to_string());
                }
                failures.push(failure);
            }
        }
    }
    let digest = wanted.sha256.known().copied();
    let offline = || InputError::not_stored(wanted.what.clone(), digest.as_slice(), context.store);
    Err(InputError::everywhere(failures).unwrap_or_else(offline))
}

/// Takes a file of this machine.
fn from_disk(wanted: &Wanted, path: &Path, into: &Path, context: &InputContext) -> Result<Admitted, InputError> {
    let part = context.scratch.join(format!("copied-{}", wanted.name));
    if let Err(source) = std::fs::copy(path, &part) {
        let _ = std::fs::remove_file(&part);
        return Err(match source.kind() {
            io::ErrorKind::NotFound => InputError::Missing {
                what: wanted.what.clone(),
                path: path.to_owned(),
                digest: wanted.sha256.known().copied(),
            },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => InputError::Write { path: part, source },
            _ => InputError::Read { path: path.to_owned(), source },
        });
    }
    wanted.admit(&part, &path.display().to_string(), into)
}

/// Downloads it, and once more from its beginning when parts of two transfers made something else.
fn from_web(wanted: &Wanted, url: &str, into: &Path, context: &InputContext) -> Result<Admitted, InputError> {
    let part = context.scratch.join(format!("download-{}", wanted.name));
    let from = without_secrets(url);
    let admitted = download(wanted, url, &from, &part, context).and_then(|()| wanted.admit(&part, &from, into));
    if admitted.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    admitted.map_err(|failure| match failure {
        // The server said that this is all, and it has not the size of the file: more likely cut
        // somewhere before us than written anew, and worth another try elsewhere.
        InputError::Differs {
            what,
            from,
            found,
            size,
            expected_size: Some(of),
            likeness: None | Some(Likeness::Empty),
            ..
        } if size.is_some_and(|size| size < of) => {
            InputError::Truncated { what, from, got: size.unwrap_or(0), of, declared_whole: Some(found) }
        }
        other => other,
    })
}

fn download(wanted: &Wanted, url: &str, from: &str, part: &Path, context: &InputContext) -> Result<(), InputError> {
    let resumed = http::download(url, from, wanted, part, true, context)?;
    if resumed && let Err(failure @ InputError::Differs { .. }) = wanted.inspect(part, from) {
        context.log.note(format!("{failure}; it was put together from several transfers: fetching it whole"));
        http::download(url, from, wanted, part, false, context)?;
    }
    Ok(())
}

/// The path that a candidate stands for, when it is one: a `file` url (RFC 8089) or a plain path.
fn local_path(candidate: &str) -> Option<PathBuf> {
    match candidate.split_once("://") {
        None => Some(PathBuf::from(candidate)),
        Some(("file", rest)) => {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            Some(PathBuf::from(percent_decoded(path)))
        }
        Some(_) => None,
    }
}

fn percent_decoded(text: &str) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let pair = pair.filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    std::ffi::OsString::from_vec(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_on_disk_are_told_from_those_on_the_network() {
        assert_eq!(local_path("/a/b c"), Some("/a/b c".into()));
        assert_eq!(local_path("file:///a/b%20c%zz%2"), Some("/a/b c%zz%2".into()));
        assert_eq!(local_path("file://localhost/a"), Some("/a".into()));
        assert_eq!(local_path("https://host/a"), None);
    }
}
