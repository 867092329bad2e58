//! Replacing a file whole or not at all: written and synced beside its place, then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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
            // As any program makes files; tempfile's own default is for secrets. The umask applies.
            _ => Permissions::from_mode(0o666),
        };
        let keep = mode.mode() & 0o7777;
        let file = tempfile::Builder::new().prefix(".rebuild-").permissions(mode).tempfile_in(directory_of(target))?;
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
}
