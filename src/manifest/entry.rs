//! What a manifest says of one delivered file.

use serde::{Deserialize, Serialize};

use crate::artifact::encoding::{Encoded, FileId};
use crate::digest::Digest;
use crate::pins::{Encoding, RelativePath};

/// The value of one key under `artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What it is to the site: `model-library`, `browser-module`, `weights`, …
    pub role: String,
    /// How it is encoded.
    pub encoding: Encoding,
    /// What encoded it, with version and level; `none` for identity.
    pub encoder: String,
    /// The file as it is delivered.
    pub packed: FileId,
    /// The file as it was built: what decoding gives.
    pub unpacked: FileId,
    /// For fetches that check what they get.
    pub integrity: Integrity,
    /// A file name that changes with the content, for sites that cache without limit. The file is
    /// not delivered under it.
    pub hashed_name: String,
}

/// Integrity metadata as W3C Subresource Integrity writes it (section 3.5): `sha256-` and base64.
///
/// A page that fetches a file which its server sends with `Content-Encoding` sees the unpacked
/// bytes; one that decodes the file itself sees the packed ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    /// Of the file as it is delivered.
    pub packed: String,
    /// Of what decoding gives.
    pub unpacked: String,
}

impl Entry {
    /// The entry for the file at `path` that `encoded` describes.
    pub fn new(path: &RelativePath, role: impl Into<String>, encoded: &Encoded) -> Self {
        Self {
            role: role.into(),
            encoding: encoded.encoding,
            encoder: encoded.encoder.clone(),
            packed: encoded.packed,
            unpacked: encoded.unpacked,
            integrity: Integrity {
                packed: integrity_of(&encoded.packed.sha256),
                unpacked: integrity_of(&encoded.unpacked.sha256),
            },
            hashed_name: hashed_name(path, encoded.encoding, &encoded.packed.sha256),
        }
    }
}

/// `sha256-<base64>`.
pub fn integrity_of(digest: &Digest) -> String {
    format!("sha256-{}", base64(digest.as_bytes()))
}

/// `<stem>.<first 16 digits of the packed sha256>.<extension>`, the encoding's suffix staying last.
pub(crate) fn hashed_name(path: &RelativePath, encoding: Encoding, packed: &Digest) -> String {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    let base = name.strip_suffix(encoding.suffix()).filter(|base| !base.is_empty()).unwrap_or(name);
    let suffix = &name[base.len()..];
    let digits = &packed.to_string()[..16];
    match base.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => format!("{stem}.{digits}.{extension}{suffix}"),
        None => format!("{base}.{digits}{suffix}"),
    }
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let sextet = bits >> (18 - 6 * index) & 63;
            text.push(if index <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrity_is_what_browsers_expect() {
        // RFC 4648, section 10.
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(integrity_of(&Digest::of(b"")), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn hashed_names_keep_their_extensions() {
        let digest = Digest::of(b"");
        let name = |path: &str, encoding| hashed_name(&path.parse().unwrap(), encoding, &digest);
        assert_eq!(name("model/lib.wasm.gz", Encoding::Gzip), "lib.e3b0c44298fc1c14.wasm.gz");
        assert_eq!(name("lib.v2.wasm.br", Encoding::Brotli), "lib.v2.e3b0c44298fc1c14.wasm.br");
        assert_eq!(name("params_shard_0.bin", Encoding::Identity), "params_shard_0.e3b0c44298fc1c14.bin");
        assert_eq!(name("LICENSE", Encoding::Identity), "LICENSE.e3b0c44298fc1c14");
        assert_eq!(name(".gz", Encoding::Gzip), ".gz.e3b0c44298fc1c14");
    }
}
