//! Why an input is not there. Exit code 4 and 5 are told apart here: *not obtained* and *another one*.

use std::io;
use std::path::PathBuf;

use super::look::{Likeness, likeness};
use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::exec::registry::RequirementsError;
use crate::interrupt::Interrupted;
use crate::store::Store;

/// Why an input was not let in.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what their texts say: which input, whence, expected, found")]
pub enum InputError {
    /// Nobody has recorded what it should be.
    #[error("{what} has no recorded sha256")]
    NotRecorded { what: String },
    /// It came whole and is another file.
    #[error("{what} differs from its pin: expected sha256 {}, found {found}{}{}",
        one_of(expected), sizes(*size, *expected_size, *likeness), whence(what, from))]
    Differs {
        what: String,
        from: String,
        expected: Vec<Digest>,
        found: Digest,
        size: Option<u64>,
        expected_size: Option<u64>,
        likeness: Option<Likeness>,
    },
    /// Its digest is right, or not pinned, and its size is another one.
    #[error("{what} differs from its pin: expected {expected} bytes, found {found}")]
    SizeDiffers { what: String, expected: u64, found: u64 },
    /// It goes on far beyond the pinned size; the transfer was ended.
    #[error("{what} differs from its pin: expected {expected} bytes, found more than {found}{}", whence(what, from))]
    Oversize { what: String, from: String, expected: u64, found: u64 },
    /// Only its beginning came.
    #[error("{what} is truncated: got {got} of {of} bytes{}", whence(what, from))]
    Truncated { what: String, from: String, got: u64, of: u64, declared_whole: Option<Digest> },
    /// It is not published there any more.
    #[error("{what} has vanished: {why}{}", whence(what, from))]
    Vanished { what: String, from: String, why: String, digest: Option<Digest> },
    /// The server answers, and does not give it.
    #[error("{what} is refused: {why}{}", whence(what, from))]
    Refused { what: String, from: String, why: String, digest: Option<Digest> },
    /// No answer, or none that could be read to its end.
    #[error("{what} cannot be reached: {why}{}", whence(what, from))]
    Unreachable { what: String, from: String, why: String, digest: Option<Digest> },
    /// The network may not be used and no store has it.
    #[error("{what} is in no vendor directory and not in the cache, and this run is offline")]
    Offline { what: String, digest: Option<Digest> },
    /// A file that should lie on this machine does not.
    #[error("{what} is not there: {path}")]
    Missing { what: String, path: PathBuf, digest: Option<Digest> },
    /// The registry gave a file of another name.
    #[error("{what}: expected the file {expected}, the registry gave {found}")]
    OtherFile { what: String, expected: String, found: String, digest: Option<Digest> },
    /// A wheel is not among those whose digests the requirements file lists.
    #[error("{file} has sha256 {found}, which {requirements} does not list")]
    Unlisted { file: String, requirements: PathBuf, found: Digest },
    /// Every place failed; this is the failure that says most.
    #[error("{worst}")]
    Everywhere { worst: Box<InputError>, attempts: Vec<String> },
    /// A package tool could not be started.
    #[error("cannot start {program}")]
    Start { program: PathBuf, source: io::Error },
    /// The interpreter has no pip.
    #[error("{python} has no pip")]
    NoPip { python: PathBuf },
    /// A package tool failed in a way that we cannot read.
    #[error("{what}: {tool} ended with {status}")]
    Tool { what: String, tool: &'static str, status: String, output: String },
    /// The requirements file is not one that we take.
    #[error("requirements file {path} cannot be used")]
    Requirements { path: PathBuf, source: RequirementsError },
    /// A name that is not a file name.
    #[error("`{name}` is not a file name")]
    Name { name: String },
    /// A file could not be read.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl InputError {
    /// That no store has `what`, which is one of `digests`, and the network may not be used; or, where
    /// another file stands in its place, that this one is not it.
    pub(in crate::exec) fn not_stored(what: String, digests: &[Digest], store: &Store) -> Self {
        let impostor = |digest: &Digest| Some((*digest, store.impostor(digest)?));
        match digests.iter().find_map(impostor) {
            Some((expected, (path, found, size))) => Self::Differs {
                what,
                from: path.display().to_string(),
                expected: vec![expected],
                found,
                size: Some(size),
                expected_size: None,
                likeness: likeness(&path),
            },
            None => Self::Offline { what, digest: digests.first().copied() },
        }
    }

    /// How much it says, for choosing one of several.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::Interrupted(_) | Self::Write { .. } => 6,
            Self::Differs { .. } | Self::SizeDiffers { .. } | Self::Oversize { .. } => 5,
            Self::Truncated { .. } => 4,
            Self::Vanished { .. } => 3,
            Self::Refused { .. } => 2,
            Self::Unreachable { .. } => 1,
            _ => 0,
        }
    }

    /// One error for failures at several places.
    pub(in crate::exec) fn everywhere(mut failures: Vec<Self>) -> Option<Self> {
        let attempts: Vec<String> = failures.iter().map(ToString::to_string).collect();
        let worst = (0..failures.len()).rev().max_by_key(|&index| failures[index].weight())?;
        let worst = failures.swap_remove(worst);
        Some(if attempts.len() > 1 { Self::Everywhere { worst: Box::new(worst), attempts } } else { worst })
    }
}

impl Fault for InputError {
    fn class(&self) -> Class {
        match self {
            Self::NotRecorded { .. }
            | Self::Differs { .. }
            | Self::SizeDiffers { .. }
            | Self::Oversize { .. }
            | Self::Unlisted { .. } => Class::PinMismatch,
            Self::Truncated { .. }
            | Self::Vanished { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Offline { .. }
            | Self::Missing { .. }
            | Self::OtherFile { .. }
            | Self::Tool { .. } => Class::Unavailable,
            Self::Everywhere { worst, .. } => worst.class(),
            Self::Start { .. } | Self::NoPip { .. } => Class::Preflight,
            Self::Requirements { .. } | Self::Name { .. } => Class::Usage,
            Self::Read { .. } | Self::Write { .. } => Class::Step,
            Self::Interrupted(interrupted) => interrupted.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotRecorded { .. } => {
                "`pins lock` records it; --record-unknown builds without and reports what it found".into()
            }
            Self::Differs { likeness: Some(Likeness::Html | Likeness::ErrorDocument), .. } => {
                "the server answered with a page, not with the file: a login, a proxy or a moved download; serve the pinned file with --mirror or --vendor".into()
            }
            Self::Differs { likeness: Some(Likeness::LfsPointer), .. } => {
                "the url gives the pointer that stands in the repository; pin the url of the file itself, or serve the file with --vendor".into()
            }
            Self::Differs { expected, .. } => format!(
                "if the change is known and wanted, record the new digest with `pins lock`; if not, serve the file with sha256 {} with --vendor or --mirror",
                one_of(expected)
            ),
            Self::SizeDiffers { .. } | Self::Oversize { .. } => "the size in the pins file or the file is wrong; `pins lock` shows which".into(),
            Self::Truncated { declared_whole: Some(found), .. } => format!(
                "the server declares that this is the whole file (sha256 {found}): it holds a truncated one, or another one; another source can serve the pinned file with --mirror or --vendor"
            ),
            Self::Truncated { .. } => "run it again, or serve the whole file with --mirror or --vendor".into(),
            Self::Vanished { digest, .. } | Self::Missing { digest, .. } | Self::OtherFile { digest, .. } => {
                format!("{} can be served by a --vendor directory or a --mirror", named(*digest))
            }
            Self::Refused { digest, .. } => format!(
                "the place may want permission or have moved; {} can be served by a --vendor directory or a --mirror",
                named(*digest)
            ),
            Self::Unreachable { digest, .. } => format!(
                "check the network, the proxy (HTTPS_PROXY, NO_PROXY) and the certificates (SSL_CERT_FILE); {} can be served by a --vendor directory or a --mirror",
                named(*digest)
            ),
            Self::Offline { digest: None, .. } => {
                "run once without --offline: without a recorded digest there is nothing to look for in a --vendor directory".into()
            }
            Self::Offline { digest, .. } => {
                format!("run once without --offline, or put {} into a --vendor directory", named(*digest))
            }
            Self::Unlisted { .. } => "the requirements file lists every wheel that may be used, with its hash".into(),
            Self::Everywhere { worst, .. } => return worst.hint(),
            Self::Start { .. } => "`rebuild-model doctor` shows every tool that is needed and how to get it".into(),
            Self::NoPip { python } => {
                format!("`{} -m ensurepip` or the system's package python3-pip provides it", python.display())
            }
            Self::Tool { .. } => "the step's log has all that it printed".into(),
            Self::Requirements { .. } => {
                "each requirement is `name==version`, perhaps `; marker`, and one or more `--hash=sha256:…`".into()
            }
            Self::Read { source, .. } | Self::Write { source, .. } => return disk(source),
            Self::Interrupted(interrupted) => return interrupted.hint(),
            Self::Name { .. } => return None,
        })
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Tool { output, .. } if !output.is_empty() => Some(output.clone()),
            Self::Everywhere { attempts, .. } => Some(attempts.join("\n")),
            _ => None,
        }
    }
}

/// What to do about a failure of the file system, when that is known.
fn disk(source: &io::Error) -> Option<String> {
    match source.kind() {
        io::ErrorKind::StorageFull => Some("the disk is full".into()),
        io::ErrorKind::QuotaExceeded => Some("the disk quota is used up".into()),
        _ => None,
    }
}

fn named(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "the file".into(), |digest| format!("the file with sha256 {digest}"))
}

fn one_of(digests: &[Digest]) -> String {
    digests.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// What is known of the found file besides its digest, in brackets.
fn sizes(found: Option<u64>, expected: Option<u64>, likeness: Option<Likeness>) -> String {
    let size = match (found, expected) {
        (Some(found), Some(expected)) if found != expected => Some(format!("{found} bytes instead of {expected}")),
        (Some(found), _) => Some(format!("{found} bytes")),
        (None, _) => None,
    };
    let facts: Vec<String> = size.into_iter().chain(likeness.map(|like| like.describe().to_owned())).collect();
    if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) }
}

/// The place, where it is not what the input is called.
fn whence(what: &str, from: &str) -> String {
    if what == from { String::new() } else { format!(", from {from}") }
}
