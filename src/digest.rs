//! Digests: sha256 everywhere, one way to hash a file, a tree and a value.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::parallel;

/// A sha256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is not a sha256 digest.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a sha256 digest: 64 lower-case hexadecimal digits are wanted")]
pub struct NotADigest(String);

/// Bytes read at a time while hashing. Large enough that system calls do not show, small enough
/// that a pool of threads stays far below the memory promised for `verify`.
const BLOCK: usize = 256 * 1024;

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of `value`'s canonical JSON (see [`canonical_json`]).
    pub fn of_value(value: &impl Serialize) -> Self {
        Self::of(&canonical_json(value))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first twelve digits, for people; never for comparison.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let refused = || NotADigest(text.to_owned());
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(refused());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| match digit {
                b'0'..=b'9' => Some(digit - b'0'),
                b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            };
            let (high, low) = value(pair[0]).zip(value(pair[1])).ok_or_else(refused)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;
    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A writer that hashes and counts what passes through it.
#[derive(Clone)]
pub struct Hasher {
    state: Sha256,
    bytes: u64,
}

impl Hasher {
    /// A hasher that has seen nothing.
    pub fn new() -> Self {
        Self { state: Sha256::new(), bytes: 0 }
    }

    /// Takes in `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The digest and the number of bytes seen.
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.state.finalize().into()), self.bytes)
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest and length in bytes of all that `reader` gives, in constant memory.
pub fn hash_reader(mut reader: impl Read) -> io::Result<(Digest, u64)> {
    let mut hasher = Hasher::new();
    let mut block = vec![0; BLOCK];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher.update(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The digest and length in bytes of the file at `path`.
pub fn hash_file(path: &Path) -> io::Result<(Digest, u64)> {
    hash_reader(std::fs::File::open(path)?)
}

/// The digest and total size in bytes of a file, of a symbolic link itself, or of a directory tree.
///
/// What is none of these (a pipe, a socket, a device) is an error: reading it might never end.
///
/// A tree's digest is the sha256 over one line for each entry, sorted by path bytes: kind (`f`, `x`
/// for an executable file, `l` for a symbolic link, `d`), digest of the content (of the target, for
/// a link), path. Times, owners and other mode bits are left out: they do not survive packaging.
pub fn hash_path(path: &Path) -> io::Result<(Digest, u64)> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_dir() {
        hash_tree(path)
    } else if kind.is_symlink() {
        let mut hasher = Hasher::new();
        hasher.update(b"link to ");
        hasher.update(std::fs::read_link(path)?.as_os_str().as_bytes());
        Ok((hasher.finish().0, 0))
    } else if kind.is_file() {
        hash_file(path)
    } else {
        Err(not_content(path))
    }
}

fn not_content(path: &Path) -> io::Error {
    let reason = format!("{} is neither a file, a directory nor a symbolic link", path.display());
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn hash_tree(root: &Path) -> io::Result<(Digest, u64)> {
    let mut lines: BTreeMap<Vec<u8>, (char, Digest)> = BTreeMap::new();
    let mut files: Vec<TreeFile> = Vec::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.map_err(io::Error::from)?;
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let name = relative.as_os_str().as_bytes().to_vec();
        let kind = entry.file_type();
        if kind.is_dir() {
            lines.insert(name, ('d', Digest::of(b"")));
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path())?;
            lines.insert(name, ('l', Digest::of(target.as_os_str().as_bytes())));
        } else if !kind.is_file() {
            return Err(not_content(entry.path()));
        } else {
            let metadata = entry.metadata().map_err(io::Error::from)?;
            let kind = if metadata.permissions().mode() & 0o100 == 0 { 'f' } else { 'x' };
            files.push(TreeFile { path: entry.into_path(), name, kind, size: metadata.len() });
        }
    }
    // The largest first: then no core is left alone with it at the end.
    files.sort_by_key(|file| std::cmp::Reverse(file.size));
    let digests = parallel::map(&files, |file| hash_file(&file.path));
    let mut total = 0;
    for (file, digest) in files.into_iter().zip(digests) {
        let (digest, size) = digest?;
        lines.insert(file.name, (file.kind, digest));
        total += size;
    }
    Ok((digest_of_tree(&lines), total))
}

/// The digest of a tree (see [`hash_path`]) in which these files stand, none of them executable, by path from
/// its root, below no more directories than that takes.
pub fn digest_of_files(files: impl IntoIterator<Item = (String, Digest)>) -> Digest {
    let mut lines = BTreeMap::new();
    for (path, digest) in files {
        for (end, _) in path.match_indices('/') {
            lines.insert(path.as_bytes()[..end].to_vec(), ('d', Digest::of(b"")));
        }
        lines.insert(path.into_bytes(), ('f', digest));
    }
    digest_of_tree(&lines)
}

/// The digest of a tree (see [`hash_path`]) from kind and digest of each entry, by path.
fn digest_of_tree(entries: &BTreeMap<Vec<u8>, (char, Digest)>) -> Digest {
    let mut hasher = Hasher::new();
    for (name, (kind, digest)) in entries {
        hasher.update(format!("{kind} {digest} ").as_bytes());
        hasher.update(name);
        hasher.update(b"\0");
    }
    hasher.finish().0
}

/// A file in a tree that is being hashed.
struct TreeFile {
    path: PathBuf,
    name: Vec<u8>,
    kind: char,
    /// As it was seen; only what is read later counts.
    size: u64,
}

/// `value` as JSON with object keys sorted by code point, no white space and a fixed form of numbers.
///
/// # Panics
/// When `value` cannot be JSON (a map with keys that are not text), which none of our types is:
/// hashing something else in its place would make two values look alike.
pub fn canonical_json(value: &impl Serialize) -> Vec<u8> {
    fn sorted(value: serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Object(map) => {
                let ordered: BTreeMap<_, _> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
                serde_json::Value::Object(ordered.into_iter().collect())
            }
            serde_json::Value::Array(items) => items.into_iter().map(sorted).collect(),
            other => other,
        }
    }
    let value = serde_json::to_value(value).expect("our types are JSON");
    sorted(value).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_lower_case_digits_and_nothing_else() {
        let good = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(good.parse::<Digest>().unwrap(), Digest::of(b""));
        assert_eq!(Digest::of(b"").to_string(), good);
        for bad in [&good[1..], &good.to_uppercase(), "", &format!("{good}0"), &good.replace('e', "g")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn canonical_json_does_not_depend_on_key_order() {
        let one: serde_json::Value =
            serde_json::from_str(r#"{"b": {"d": 1, "c": [2, {"z": 0, "y": 1}]}, "a": 1e-5}"#).unwrap();
        let two: serde_json::Value =
            serde_json::from_str(r#"{"a": 0.00001, "b": {"c": [2, {"y": 1, "z": 0}], "d": 1}}"#).unwrap();
        assert_eq!(canonical_json(&one), canonical_json(&two));
        assert_eq!(canonical_json(&one), br#"{"a":0.00001,"b":{"c":[2,{"y":1,"z":0}],"d":1}}"#);
    }

    #[test]
    fn a_tree_digest_sees_names_content_links_and_the_executable_bit() {
        let make = |change: &dyn Fn(&Path)| {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir(root.path().join("d")).unwrap();
            std::fs::write(root.path().join("d/a"), "one").unwrap();
            std::fs::write(root.path().join("b"), "two").unwrap();
            std::os::unix::fs::symlink("b", root.path().join("l")).unwrap();
            change(root.path());
            hash_path(root.path()).unwrap()
        };
        let base = make(&|_| {});
        assert_eq!(
            base,
            make(&|root| {
                std::fs::File::open(root.join("b")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            })
        );
        assert_eq!(base.1, 6);
        let changes: [&dyn Fn(&Path); 5] = [
            &|root| std::fs::write(root.join("b"), "twO").unwrap(),
            &|root| std::fs::rename(root.join("b"), root.join("c")).unwrap(),
            &|root| std::fs::create_dir(root.join("empty")).unwrap(),
            &|root| std::fs::set_permissions(root.join("b"), PermissionsExt::from_mode(0o755)).unwrap(),
            &|root| {
                std::fs::remove_file(root.join("l")).unwrap();
                std::os::unix::fs::symlink("d", root.join("l")).unwrap();
            },
        ];
        for change in changes {
            assert_ne!(base.0, make(change).0);
        }
    }
}
