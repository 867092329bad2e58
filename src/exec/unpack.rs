//! Unpacking archives: zip (and with it wheels), tar, and tar in gzip or xz, told apart by their content.
//!
//! An archive is somebody else's list of paths. Every member is judged before anything is written for
//! it, links are made last, and **invariant**: nothing is written outside the directory, nor through a
//! link. Times and owners are left out, of the modes only the executable bit is kept.

mod error;
mod member;
mod tarball;
mod zipped;

pub use error::UnpackError;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use member::{Tree, Wanted};

/// What came out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    /// How many files and links.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// What every archive may unpack to, in bytes, however small it is.
const ALWAYS_ALLOWED: u64 = 1 << 30;
/// How many times its own size a larger archive may unpack to. Sources reach about 20; a bomb, 1000.
const MAX_RATIO: u64 = 200;

/// Unpacks `archive` into the directory `into`, which is made and must be empty if it exists.
///
/// `strip` leading parts of each member's path are dropped, and members with no more parts than that
/// are left out. Of `only`, each is a path in what remains: that file, or that directory with all that
/// is below it; all is taken when it is empty. Each of them must be there.
/// Of `except` each is such a path too, of what is left out of that.
pub fn unpack(
    archive: &Path,
    into: &Path,
    strip: u32,
    only: &[String],
    except: &[String],
) -> Result<Unpacked, UnpackError> {
    let size = archive.metadata().map_err(|source| UnpackError::read(archive, source))?.len();
    let wanted = Wanted::new(only, except);
    unpack_within(archive, into, strip, wanted, size.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED))
}

fn unpack_within(archive: &Path, into: &Path, strip: u32, wanted: Wanted, limit: u64) -> Result<Unpacked, UnpackError> {
    let unreadable = |source| UnpackError::read(archive, source);
    let mut file = File::open(archive).map_err(unreadable)?;
    let mut head = Vec::new();
    (&mut file).take(512).read_to_end(&mut head).map_err(unreadable)?;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;

    let mut tree = Tree::new(archive, into, strip, wanted, limit)?;
    match kind_of(&head) {
        Some(Kind::Zip) => zipped::unpack(file, &mut tree)?,
        Some(Kind::Tar) => tarball::unpack(std::io::BufReader::new(file), &mut tree)?,
        Some(Kind::GzipTar) => {
            let reader = flate2::bufread::MultiGzDecoder::new(std::io::BufReader::new(file));
            tarball::unpack(std::io::BufReader::new(reader), &mut tree)?;
        }
        Some(Kind::XzTar) => {
            // Each of several streams is read; what follows them is refused by the decoder.
            let reader = lzma_rust2::XzReader::new(std::io::BufReader::new(file), true);
            tarball::unpack(std::io::BufReader::new(reader), &mut tree)?;
        }
        None => return Err(UnpackError::Kind { archive: archive.to_owned(), looks: looks_like(&head, archive) }),
    }
    tree.finish()
}

enum Kind {
    Zip,
    Tar,
    GzipTar,
    XzTar,
}

fn kind_of(head: &[u8]) -> Option<Kind> {
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Some(Kind::Zip)
    } else if head.starts_with(&[0x1f, 0x8b]) {
        Some(Kind::GzipTar)
    } else if head.starts_with(b"\xfd7zXZ\0") {
        Some(Kind::XzTar)
    } else if head.get(257..262) == Some(b"ustar") {
        Some(Kind::Tar)
    } else {
        None
    }
}

fn looks_like(head: &[u8], archive: &Path) -> String {
    let other = [
        (&b"BZh"[..], "a bzip2 file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"!<arch>\n", "an ar archive"),
        (b"\x7fELF", "a program"),
    ];
    if let Some((_, name)) = other.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*name).into();
    }
    match crate::exec::input::likeness(archive) {
        Some(likeness) => likeness.describe().into(),
        None => format!("something that begins with {:02x?}", &head[..head.len().min(8)]),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_unpacks_to_more_than_its_size_allows_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let zeros = vec![0; 100_000];
        let zip = root.path().join("a.zip");
        let mut writer = zip::ZipWriter::new(File::create(&zip).unwrap());
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file("zeros", options).unwrap();
        writer.write_all(&zeros).unwrap();
        writer.finish().unwrap();

        let tar = root.path().join("a.tar.gz");
        let encoder = flate2::write::GzEncoder::new(File::create(&tar).unwrap(), flate2::Compression::best());
        let mut builder = tar::Builder::new(encoder);
        let mut header = tar::Header::new_ustar();
        header.set_size(zeros.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, "zeros", &zeros[..]).unwrap();
        builder.into_inner().unwrap().finish().unwrap();

        for archive in [&zip, &tar] {
            let into = archive.with_extension("out");
            let error = unpack_within(archive, &into, 0, Wanted::new(&[], &[]), 99_999).unwrap_err();
            assert!(matches!(error, UnpackError::TooLarge { limit: 99_999, .. }), "{error}");
            let into = archive.with_extension("whole");
            assert_eq!(unpack_within(archive, &into, 0, Wanted::new(&[], &[]), 100_000).unwrap().bytes, 100_000);
        }
    }
}
