//! What the fetching of plain files, packages and wheels has in common: the context it happens in,
//! the one check that lets a file in, and the errors.
//!
//! **Invariant**: a file reaches a step's output directory through `Wanted::admit` only, whole and
//! with the pinned digest.

mod error;
mod look;

pub use error::InputError;
pub use look::{Likeness, likeness};

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::digest::{Digest, hash_file};
use crate::interrupt::Interrupt;
use crate::pins::Recorded;
use crate::process::log::StepLog;
use crate::store::{Found, Store};

/// What fetching needs to know about this run.
#[derive(Clone, Copy)]
pub struct InputContext<'a> {
    /// Where files are looked for first, and kept.
    pub store: &'a Store,
    /// Do not use the network.
    pub offline: bool,
    /// Where a url may be got from instead, best first, and the url itself where it is to be tried:
    /// urls (`http`, `https`, `file`) or paths.
    pub mirrors: &'a dyn Fn(&str) -> Vec<String>,
    /// The pins file's directory.
    pub pins_directory: &'a Path,
    /// A directory for what is in the making.
    pub scratch: &'a Path,
    /// Accept an input without a recorded digest, and report what it is.
    pub record_unknown: bool,
    /// How long to try.
    pub patience: Patience,
    /// The step's log.
    pub log: &'a StepLog,
    /// The wish to stop.
    pub interrupt: &'a Interrupt,
}

/// How long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often a transfer is begun or resumed.
    pub tries: u32,
    /// The wait before the second try; it doubles with each further one.
    pub pause: Duration,
    /// For a connection.
    pub connect: Duration,
    /// Without a byte received.
    pub stall: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            tries: 4,
            pause: Duration::from_millis(500),
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(30),
        }
    }
}

/// A file that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Where it lies now.
    pub path: PathBuf,
    /// Its digest: the pinned one, or the found one where none was recorded.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Where it came from, for people.
    pub from: String,
}

/// A file that a pin asks for.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// What the pins call it: a url, a path or a package.
    pub what: String,
    /// The file name it gets.
    pub name: &'a str,
    /// Its digest.
    pub sha256: Recorded<Digest>,
    /// Its size in bytes, when pinned.
    pub size: Option<u64>,
}

impl Wanted<'_> {
    /// Refuses a pin that cannot be worked with before anything is fetched.
    pub(super) fn check(&self, context: &InputContext) -> Result<(), InputError> {
        context.interrupt.check()?;
        let plain = Path::new(self.name).file_name().is_some_and(|name| name == self.name);
        if !plain {
            return Err(InputError::Name { name: self.name.to_owned() });
        }
        if self.sha256 == Recorded::Not && !context.record_unknown {
            return Err(InputError::NotRecorded { what: self.what.clone() });
        }
        Ok(())
    }

    /// Takes it from the store when the store has it.
    pub(super) fn take_stored(&self, into: &Path, context: &InputContext) -> Result<Option<Admitted>, InputError> {
        let Some(digest) = self.sha256.known() else { return Ok(None) };
        let part = context.scratch.join(format!("stored-{digest}"));
        let Some(found) = copy_stored(digest, self.size, &part, context)? else { return Ok(None) };
        context.log.line(&format!("{} served by {}: {}", self.what, found.from, found.path.display()));
        self.admit(&part, &found.from.to_string(), into).map(Some)
    }

    /// Checks the file at `part` and moves it to its name in `into`; a file that is not right is removed.
    pub(super) fn admit(&self, part: &Path, from: &str, into: &Path) -> Result<Admitted, InputError> {
        let admitted = self.inspect(part, from).and_then(|(digest, size)| {
            let path = into.join(self.name);
            move_file(part, &path).map_err(|source| InputError::Write { path: path.clone(), source })?;
            Ok(Admitted { path, digest, size, from: from.to_owned() })
        });
        if admitted.is_err() {
            let _ = std::fs::remove_file(part);
        }
        admitted
    }

    /// The digest and size of the file at `part`, when they are the pinned ones.
    pub(super) fn inspect(&self, part: &Path, from: &str) -> Result<(Digest, u64), InputError> {
        let (found, size) = hash_file(part).map_err(|source| InputError::Read { path: part.to_owned(), source })?;
        if let Some(&expected) = self.sha256.known()
            && expected != found
        {
            return Err(InputError::Differs {
                what: self.what.clone(),
                from: from.to_owned(),
                expected: vec![expected],
                found,
                size: Some(size),
                expected_size: self.size,
                likeness: likeness(part),
            });
        }
        match self.size {
            Some(expected) if expected != size => {
                Err(InputError::SizeDiffers { what: self.what.clone(), expected, found: size })
            }
            _ => Ok((found, size)),
        }
    }

    /// Keeps an admitted file in the cache. That it cannot be kept does not make it wrong.
    pub(super) fn keep(&self, admitted: &Admitted, context: &InputContext) {
        if let Err(error) = context.store.insert(&admitted.path, &admitted.digest, self.name) {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            context.log.note(format!("{} is not kept in the cache: {error}{cause}", self.what));
        }
    }
}

/// Copies a file with this digest from the store to `part`, when the store has it.
pub(super) fn copy_stored(
    digest: &Digest,
    size: Option<u64>,
    part: &Path,
    context: &InputContext,
) -> Result<Option<Found>, InputError> {
    let failed = |source| InputError::Write { path: part.to_owned(), source };
    context.store.copy_out(digest, size, part, |note| context.log.note(note)).map_err(failed)
}

/// Moves a file, over an existing one, between file systems where it must. Its mode becomes 0644.
pub(crate) fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::set_permissions(from, PermissionsExt::from_mode(0o644))?;
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let directory = to.parent().unwrap_or(Path::new("."));
            let copy = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
            std::fs::copy(from, copy.path())?;
            copy.persist(to).map_err(|error| error.error)?;
            std::fs::remove_file(from)
        }
        renamed => renamed,
    }
}
