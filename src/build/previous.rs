//! What a new library needs beside the one that it replaces: memory that a visitor's device must have
//! and that no test of the library notices.

use std::path::Path;

use crate::artifact::decoding::decode;
use crate::artifact::encoding::FileId;
use crate::artifact::library;
use crate::artifact::wasm::metadata::Metadata;
use crate::digest::hash_file;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::manifest::{Entries, Entry};

/// The largest library that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// How work memory differs between the libraries among `entries`, which lie in `files`, and those at
/// the same paths in `destination`: a sentence for each function, by artifact.
///
/// What stands in the destination is whatever a site has there; if it cannot be read there is nothing
/// to be compared.
pub(super) fn compare(files: &Path, entries: &Entries, destination: &Path, interrupt: &Interrupt) -> Vec<String> {
    let libraries = entries.iter().filter(|(_, entry)| entry.role == "model-library");
    let mut notes = Vec::new();
    for (path, entry) in libraries {
        // Decoding both takes as long as all the rest of a delivery.
        let delivered = destination.join(path.as_str());
        let stands = || hash_file(&delivered).is_ok_and(|found| FileId::from(found) == entry.packed);
        if !delivered.is_file() || stands() {
            continue;
        }
        let read = |root: &Path| metadata(&root.join(path.as_str()), entry, interrupt);
        let Some((before, after)) = read(destination).zip(read(files)) else { continue };
        notes.extend(gate::compare_memory(&before, &after).into_iter().map(|change| format!("{path}: {change}")));
    }
    notes
}

fn metadata(path: &Path, entry: &Entry, interrupt: &Interrupt) -> Option<Metadata> {
    let mut bytes = Vec::new();
    decode(path, entry.encoding, LARGEST, &mut bytes, interrupt).ok()?.unpacked.ok()?;
    library::metadata(&bytes).ok()?.into_iter().next()
}
