//! Replacing a file whole or not at all: written and synced beside its place, then renamed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Class, Fault};

/// A file that is being written beside the one it will replace. Dropped, it leaves no trace.
#[derive(Debug)]
pub(crate) struct Replacement {
    file: NamedTempFile,
    target: PathBuf,
}

impl Replacement {
    /// Begins to replace the file at `path`, whose directory must exist. A symbolic link stays one:
    /// what it points to is replaced.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Self::begin_unfollowed(&resolve(path)?)
    }

    /// The same, but a symbolic link at `target` is replaced itself, and what it points to stays.
    pub fn begin_unfollowed(target: &Path) -> io::Result<Self> {
        let mode = match fs::symlink_metadata(target) {
            Ok(old) if old.is_file() => old.permissions(),
            Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A device or a pipe is not a thing to put a file in the place of.
            Ok(old) if !old.is_symlink() => return Err(io::Error::other("it is not a regular file")),
            // As any program makes files; tempfile's own default is for secrets. The umask applies.
            _ => Permissions::from_mode(0o666),
        };
        let keep = mode.mode() & 0o7777;
        // Opened here, since errors of `tempfile_in` name the temporary file, which nobody has heard of.
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode.mode()).open(path);
        let file = tempfile::Builder::new().prefix(".rebuild-").make_in(directory_of(target), open)?;
        if target.is_file() && !target.is_symlink() {
            fs::set_permissions(file.path(), Permissions::from_mode(keep))?;
        }
        Ok(Self { file, target: target.to_owned() })
    }

    /// Waits until what was written is on disk: a rename may outlive a crash that the data does not.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()?;
        self.file.as_file().sync_all()
    }

    /// Puts the new file in its place.
    pub fn commit(self) -> io::Result<()> {
        self.file.persist(&self.target).map_err(|error| error.error)?;
        File::open(directory_of(&self.target))?.sync_all()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file or directory that somebody named for an output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", .path.display())]
pub struct CannotWrite {
    /// As it was named.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl Fault for CannotWrite {
    fn class(&self) -> Class {
        Class::Preflight
    }

    fn hint(&self) -> Option<String> {
        if self.path == std::env::temp_dir() {
            return Some("set TMPDIR to a directory for temporary files that you can write to".into());
        }
        let advice = match self.source.kind() {
            io::ErrorKind::NotFound => "make the directory first, or name a place in an existing one",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "make the place writable for you, or name another; what stood there is untouched"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or name a place on another disk; what stood there is untouched"
            }
            io::ErrorKind::IsADirectory => "a directory stands there: name a file",
            io::ErrorKind::NotADirectory => "what stands there, or above it, is not a directory: name another place",
            _ => "name another place",
        };
        Some(advice.into())
    }
}

impl CannotWrite {
    /// From what went wrong with the output at `path`.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// Makes `bytes` the content of the file at `path`, whole or not at all; what is a device or a pipe is
/// written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), CannotWrite> {
    if is_special(path) {
        return fs::write(path, bytes).map_err(CannotWrite::at(path));
    }
    let mut replacement = Replacement::begin(path).map_err(CannotWrite::at(path))?;
    replacement.write_all(bytes).and_then(|()| replacement.sync()).map_err(CannotWrite::at(path))?;
    replacement.commit().map_err(CannotWrite::at(path))
}

/// Whether the file at `path` could be replaced: asked before work is done for it.
pub(crate) fn check(path: &Path) -> Result<(), CannotWrite> {
    if is_special(path) { Ok(()) } else { Replacement::begin(path).map(drop).map_err(CannotWrite::at(path)) }
}

/// Whether files could be put into the directory at `path`, which need not exist yet.
pub(crate) fn check_directory(path: &Path) -> Result<(), CannotWrite> {
    use rustix::fs::{Access, access};
    let standing = path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    if !standing.is_dir() {
        return Err(CannotWrite { path: path.to_owned(), source: io::ErrorKind::NotADirectory.into() });
    }
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    access(standing, needed).map_err(|error| CannotWrite { path: path.to_owned(), source: error.into() })
}

/// Whether something stands there that is neither file nor directory: `/dev/stdout` is such.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Where the file is that `path` means: at the end of every link.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    if path.is_symlink() { fs::canonicalize(path) } else { Ok(path.to_owned()) }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_seen_before_the_commit_and_the_mode_stays() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("file");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        let mut replacement = Replacement::begin(&target).unwrap();
        replacement.write_all(b"new").unwrap();
        replacement.sync().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        replacement.commit().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        drop(Replacement::begin(&target).unwrap());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
    /// Replaces what `link` means with "new".
    fn replaced(link: &Path, begin: fn(&Path) -> io::Result<Replacement>) {
        let mut replacement = begin(link).unwrap();
        replacement.write_all(b"new").unwrap();
        replacement.commit().unwrap();
        assert_eq!(fs::read_to_string(link).unwrap(), "new");
    }

    #[test]
    fn a_link_is_followed_unless_it_is_to_be_replaced_itself() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        let (real, link) = (root.path().join("elsewhere/real"), root.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("elsewhere/between", &link).unwrap();
        symlink("real", root.path().join("elsewhere/between")).unwrap();
        replaced(&link, Replacement::begin);
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

        fs::write(&real, "old").unwrap();
        replaced(&link, Replacement::begin_unfollowed);
        assert!(!link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "old");
    }

    #[test]
    fn a_link_to_nothing_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        symlink("nowhere", root.path().join("link")).unwrap();
        symlink("circle", root.path().join("circle")).unwrap();
        assert_eq!(Replacement::begin(&root.path().join("link")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(Replacement::begin(&root.path().join("circle")).is_err());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }
    #[test]
    fn an_error_names_what_was_to_be_written_and_no_temporary_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        for (path, kind) in [
            ("none/file", io::ErrorKind::NotFound),
            ("file/below", io::ErrorKind::NotADirectory),
            ("", io::ErrorKind::IsADirectory),
        ] {
            let path = root.path().join(path);
            let error = replace(&path, b"x").unwrap_err();
            let said = format!("{error}: {}", error.source);
            assert_eq!((error.class(), error.source.kind()), (Class::Preflight, kind), "{said}");
            assert!(said.contains(&path.display().to_string()) && !said.contains(".rebuild-"), "{said}");
            assert!(error.hint().is_some() && check(&path).is_err());
        }
        check_directory(&root.path().join("none/below")).unwrap();
        assert!(check_directory(&root.path().join("file")).is_err());
        // Nothing takes the place of a device.
        let null = Path::new("/dev/null");
        check(null).unwrap();
        replace(null, b"x").unwrap();
        assert!(Replacement::begin(null).is_err() && !null.is_file());
        let target = root.path().join("new");
        check(&target).unwrap();
        assert!(!target.exists());
        replace(&target, b"x").unwrap();
        assert_eq!(fs::read(target).unwrap(), b"x");
    }
}
