//! Readers and writers that hash what passes through them.

use std::fs::File;
use std::io::{self, Read, Write};

use crate::artifact::encoding::FileId;
use crate::digest::Hasher;
use crate::interrupt::Interrupt;

/// Hashes everything that passes, and ends with an error once an interrupt is wanted.
pub(super) struct Tap<'a, T> {
    inner: T,
    hasher: Hasher,
    interrupt: &'a Interrupt,
    /// What kept `inner` from working, as opposed to what a decoder thought of the bytes.
    failure: Option<io::Error>,
}

impl<'a, T> Tap<'a, T> {
    pub(super) fn new(inner: T, interrupt: &'a Interrupt) -> Self {
        Self { inner, hasher: Hasher::new(), interrupt, failure: None }
    }

    /// The identity of what passed, or why reading or writing stopped.
    pub(super) fn finish(self) -> io::Result<FileId> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(FileId::from(self.hasher.finish())),
        }
    }

    fn check(&mut self) -> io::Result<()> {
        // Not ErrorKind::Interrupted: every reader loop takes that as a wish to try again.
        self.interrupt.check().map_err(|interrupted| self.fail(io::Error::other(interrupted)))
    }

    /// Remembers `error` and gives a stand-in for it, since a decoder may replace what it is given.
    fn fail(&mut self, error: io::Error) -> io::Error {
        let stand_in = io::Error::from(error.kind());
        self.failure = Some(error);
        stand_in
    }
}

impl Tap<'_, File> {
    /// Waits until what was written is on disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.inner.sync_all().map_err(|error| self.fail(error))
    }
}

impl<T: Read> Read for Tap<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        match self.inner.read(buffer) {
            Ok(count) => {
                self.hasher.update(&buffer[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.fail(error)),
        }
    }
}

impl<T: Write> Write for Tap<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        match self.inner.write(bytes) {
            Ok(count) => {
                self.hasher.update(&bytes[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.inner.flush() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(error)),
        }
    }
}
