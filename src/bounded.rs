//! Reading files that somebody else made: not more than is sensible of one, and nothing that is no
//! file, since a device may have no end and opening a pipe would wait for ever.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens the regular file at `path`.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Asked before it is opened, for the pipe's sake.
    if path.metadata()?.is_file() { File::open(path) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The bytes of the regular file at `path`, which may have at most `most`.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    // It may grow meanwhile.
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// The text of the regular file at `path`, which may have at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// The error of a file that has more than `most` bytes.
pub(crate) fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it is larger than {most} bytes"))
}

/// The first bytes of the regular file at `path`, at most `most`; nothing of what is no such file.
pub(crate) fn read_head(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut head = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut head)?;
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_was_said_is_read_and_only_of_files() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "four");
        assert_eq!(read_text(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        assert_eq!(read_head(&file, 3).unwrap().unwrap(), b"fou");
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, 3).unwrap_err().to_string(), "it is not UTF-8");
        for special in [Path::new("/dev/zero"), root.path()] {
            assert_eq!(read_text(special, 3).unwrap_err().to_string(), "it is not a regular file");
            assert_eq!(read_head(special, 3).unwrap(), None);
        }
        assert_eq!(read_text(&root.path().join("none"), 3).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
