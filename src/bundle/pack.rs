//! A directory as a deterministic archive: sorted, without times and owners, compressed by the encoder
//! that artifacts are compressed with.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{BundleError, at};
use crate::artifact::encoding::{FileId, encode};
use crate::interrupt::Interrupt;
use crate::pins::Encoding;
use crate::replace::Replacement;

/// Packs what is in `root` as the directory `name` into the archive at `into`.
pub(super) fn pack(
    root: &Path,
    name: &str,
    into: &Path,
    level: u8,
    scratch: &Path,
    interrupt: &Interrupt,
) -> Result<FileId, BundleError> {
    let (tar, packed) = (scratch.join("bundle.tar"), scratch.join("bundle.tar.gz"));
    write_tar(root, name, &tar, interrupt)?;
    let encoded = encode(&tar, &packed, Encoding::Gzip, level, interrupt)?;
    let sync = || File::open(&packed)?.sync_all();
    sync().map_err(at(&packed))?;
    // The directory and the archive may be wanted on different file systems.
    match fs::rename(&packed, into) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
            let mut replacement = Replacement::begin(into).map_err(at(into))?;
            let copy = |replacement: &mut Replacement| std::io::copy(&mut File::open(&packed)?, replacement);
            copy(&mut replacement).and_then(|_| replacement.sync()).map_err(at(into))?;
            replacement.commit().map_err(at(into))?;
        }
        renamed => renamed.map_err(at(into))?,
    }
    Ok(encoded.packed)
}

fn write_tar(root: &Path, name: &str, into: &Path, interrupt: &Interrupt) -> Result<(), BundleError> {
    let file = File::create(into).map_err(at(into))?;
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 20, file));
    // Sorted as one list of whole paths, which no order of directories can change.
    let mut entries: Vec<_> = walkdir::WalkDir::new(root)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| at(root)(error.into()))?;
    entries.sort_by(|one, other| one.path().cmp(other.path()));
    for entry in entries {
        interrupt.check().map_err(|interrupted| BundleError::Encoding(interrupted.into()))?;
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap_or(path);
        let place = Path::new(name).join(relative);
        let metadata = fs::metadata(path).map_err(at(path))?;
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        if metadata.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, place.join(""), std::io::empty()).map_err(at(into))?;
        } else {
            let executable = metadata.permissions().mode() & 0o100 != 0;
            header.set_mode(if executable { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            let content = File::open(path).map_err(at(path))?;
            builder.append_data(&mut header, place, content).map_err(at(into))?;
        }
    }
    builder.into_inner().and_then(|mut writer| writer.flush()).map_err(at(into))
}
