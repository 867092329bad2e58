//! A directory as a deterministic archive: sorted, without times and owners, and compressed where
//! compressing helps.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::contents::TITLE;
use super::{BundleError, at};
use crate::artifact::encoding::FileId;
use crate::artifact::gzip::PiecewiseGzip;
use crate::interrupt::Interrupt;
use crate::replace::Replacement;

/// The most bytes that are looked at to tell a bundle, packed and unpacked.
const HEAD: u64 = 16 * 1024;

/// How files begin that are compressed as they are: zip (and so wheels), gzip, xz, zstd, bzip2.
const COMPRESSED: [&[u8]; 5] =
    [b"PK\x03\x04", &[0x1f, 0x8b, 8], &[0xfd, b'7', b'z', b'X', b'Z', 0], &[0x28, 0xb5, 0x2f, 0xfd], b"BZh"];

/// Packs what is in `root` as the directory `name` into the archive at `into`.
pub(super) fn pack(
    root: &Path,
    name: &str,
    into: &Path,
    level: u8,
    scratch: &Path,
    interrupt: &Interrupt,
) -> Result<FileId, BundleError> {
    let packed = scratch.join("bundle.tar.gz");
    let id = write(root, name, &packed, level, interrupt)?;
    // The directory and the archive may be wanted on different file systems.
    match fs::rename(&packed, into) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut replacement = Replacement::begin(into).map_err(at(into))?;
            let copy = |replacement: &mut Replacement| io::copy(&mut File::open(&packed)?, replacement);
            copy(&mut replacement).and_then(|_| replacement.sync()).map_err(at(into))?;
            replacement.commit().map_err(at(into))?;
        }
        renamed => renamed.map_err(at(into))?,
    }
    Ok(id)
}

fn write(root: &Path, name: &str, into: &Path, level: u8, interrupt: &Interrupt) -> Result<FileId, BundleError> {
    let interrupted = || interrupt.check().map_err(|interrupted| BundleError::Encoding(interrupted.into()));
    let file = File::create(into).map_err(at(into))?;
    let mut builder = tar::Builder::new(PiecewiseGzip::begin(file, level, interrupt).map_err(at(into))?);
    // Sorted as one list of whole paths, which no order of directories can change.
    let mut entries: Vec<_> = walkdir::WalkDir::new(root)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| at(root)(error.into()))?;
    entries.sort_by(|one, other| one.path().cmp(other.path()));
    for entry in entries {
        interrupted()?;
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap_or(path);
        let place = Path::new(name).join(relative);
        let metadata = fs::metadata(path).map_err(at(path))?;
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        let appended = if metadata.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, place.join(""), io::empty())
        } else {
            let executable = metadata.permissions().mode() & 0o100 != 0;
            header.set_mode(if executable { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            let (content, compressed) = open(path).map_err(at(path))?;
            builder.get_mut().set_level(if compressed { 0 } else { level }).map_err(at(into))?;
            builder.append_data(&mut header, place, content)
        };
        // The writer stops at an interrupt, too.
        appended.or_else(|error| interrupted().and(Err(at(into)(error))))?;
    }
    builder.into_inner().and_then(PiecewiseGzip::finish).map_err(at(into))
}

/// Whether the file at `path` is an archive as [`pack`] makes it, as far as its first file tells.
pub(super) fn is_bundle(path: &Path) -> io::Result<bool> {
    // Bounded on both sides: nobody knows what this file is.
    let head = MultiGzDecoder::new(File::open(path)?.take(HEAD)).take(HEAD);
    let mut archive = tar::Archive::new(head);
    // The directory, and the first that is in it.
    for entry in archive.entries()?.take(2) {
        let Ok(mut entry) = entry else { return Ok(false) };
        if entry.header().entry_type().is_dir() {
            continue;
        }
        let is_named = entry.path().is_ok_and(|path| path.ends_with("README.md") && path.components().count() == 2);
        let mut title = Vec::new();
        let read = (&mut entry).take(TITLE.len() as u64).read_to_end(&mut title);
        return Ok(is_named && read.is_ok() && title == TITLE.as_bytes());
    }
    Ok(false)
}

/// Opens a file, and tells whether it is compressed as it is.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head)?;
    file.rewind()?;
    Ok((file, COMPRESSED.iter().any(|start| head.starts_with(start))))
}
