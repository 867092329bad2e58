//! Reading a file that was delivered in parts as if it were whole.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::parts::{LARGEST, Part, Parts, name_of};

/// Reads the list called `name` below `root`; the error says what is wrong with it.
pub fn read_list(root: &Path, name: &str) -> Result<Parts, String> {
    let words = |error: io::Error| error.to_string();
    let path = root.join(name);
    // Asked before it is opened: opening a pipe would wait for ever.
    if !fs::metadata(&path).map_err(words)?.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(words)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(words)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let parts = Parts::read(&bytes)?;
    if name != name_of(parts.path.as_str()) {
        return Err(format!("it is the list of {}", parts.path));
    }
    Ok(parts)
}

/// The parts that lie below `root`, one after another.
pub fn join(root: &Path, parts: &[Part]) -> Result<Box<dyn Read>, String> {
    let words = |error: io::Error| error.to_string();
    let mut joined: Box<dyn Read> = Box::new(io::empty());
    for part in parts {
        let path = root.join(part.path.as_str());
        if !fs::metadata(&path).map_err(words)?.is_file() {
            return Err(format!("its part {} is not a regular file", part.path));
        }
        joined = Box::new(joined.chain(File::open(path).map_err(words)?));
    }
    Ok(joined)
}
