//! Deterministic encoders: the same bytes and level give the same file on every host.
//!
//! gzip (RFC 1952): one member, time 0, no name, operating system 255; the extra-flags byte is what
//! the level makes of it (2 at level 9, 4 at levels 0 and 1, else 0). Brotli (RFC 7932): window of
//! 2²² bytes, generic mode. Both run on one thread and in constant memory. What they write still
//! depends on the version of the crate, so that is recorded; two builds compare unpacked digests first.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};

use super::tap::Tap;
use crate::digest::Digest;
use crate::error::{Class, Fault};
use crate::interrupt::{Interrupt, Interrupted};
use crate::pins::Encoding;

/// Digest and size of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Its sha256.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

impl From<(Digest, u64)> for FileId {
    fn from((sha256, size): (Digest, u64)) -> Self {
        Self { sha256, size }
    }
}

/// What an encoder made of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoded {
    /// The encoding.
    pub encoding: Encoding,
    /// The encoder with its version and level; see [`encoder_name`].
    pub encoder: String,
    /// The file as it is delivered.
    pub packed: FileId,
    /// The file as it was built.
    pub unpacked: FileId,
}

/// Why a file was not encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodingError {
    /// The source cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The source.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The encoded file cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The encoded file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The encoder has no such level.
    #[error("level {level} is not one of {encoding}'s: expected {low} to {high}")]
    Level {
        /// The encoding's name.
        encoding: &'static str,
        /// The level asked for.
        level: u8,
        /// The lowest.
        low: u8,
        /// The highest.
        high: u8,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Fault for EncodingError {
    fn class(&self) -> Class {
        match self {
            Self::Level { .. } => Class::Usage,
            Self::Interrupted(interrupted) => interrupted.class(),
            Self::Read { .. } | Self::Write { .. } => Class::Step,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Level { .. } => Some("set `level` under [packaging] to one that the encoding has".into()),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("the disk is full; free some space and run again with --resume".into())
            }
            Self::Interrupted(interrupted) => interrupted.hint(),
            _ => None,
        }
    }
}

/// Base-2 logarithm of brotli's window. 22 is what every browser's decoder is tuned for, and the
/// largest that keeps two decoders within the memory promised for `verify`.
const BROTLI_WINDOW: i32 = 22;

/// Bytes handed to an encoder at a time.
const BLOCK: usize = 64 * 1024;

const FLATE2: &str = locked_version("flate2");
const ZLIB_RS: &str = locked_version("zlib-rs");
const BROTLI: &str = locked_version("brotli");

/// The encoder as it is recorded: the crates that write the bytes, their versions as this program
/// was built, and every parameter that the bytes depend on.
pub fn encoder_name(encoding: Encoding, level: u8) -> String {
    match encoding {
        Encoding::Gzip => format!("flate2 {FLATE2}, zlib-rs {ZLIB_RS}, level {level}"),
        Encoding::Brotli => format!("brotli {BROTLI}, level {level}, window {BROTLI_WINDOW}"),
        Encoding::Identity => "none".into(),
    }
}

/// Encodes the file `from` into the file `to`, which is made or overwritten.
///
/// `level` counts for gzip (0 to 9) and brotli (0 to 11) only.
pub fn encode(
    from: &Path,
    to: &Path,
    encoding: Encoding,
    level: u8,
    interrupt: &Interrupt,
) -> Result<Encoded, EncodingError> {
    let levels = encoding.levels();
    if !levels.contains(&level) {
        let (low, high) = levels.into_inner();
        return Err(EncodingError::Level { encoding: encoding.name(), level, low, high });
    }
    let cannot_read = |source| EncodingError::Read { path: from.to_owned(), source };
    let cannot_write = |source| EncodingError::Write { path: to.to_owned(), source };
    let file = File::open(from).map_err(cannot_read)?;
    let size = file.metadata().map_err(cannot_read)?.len();
    let mut reader = Tap::new(file, interrupt);
    let mut writer = Tap::new(File::create(to).map_err(cannot_write)?, interrupt);
    let result = match encoding {
        Encoding::Gzip => write_gzip(&mut reader, &mut writer, level),
        Encoding::Brotli => write_brotli(&mut reader, &mut writer, level, size),
        Encoding::Identity => copy(&mut reader, &mut writer),
    };
    interrupt.check()?;
    // A failed reader or writer knows more than the encoder that met it.
    let unpacked = reader.finish().map_err(cannot_read)?;
    let packed = writer.finish().map_err(cannot_write)?;
    result.map_err(cannot_write)?;
    Ok(Encoded { encoding, encoder: encoder_name(encoding, level), packed, unpacked })
}

fn write_gzip(reader: &mut Tap<File>, writer: &mut Tap<File>, level: u8) -> io::Result<()> {
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(writer, Compression::new(u32::from(level)));
    copy(reader, &mut encoder)?;
    encoder.finish()?.flush()
}

fn write_brotli(reader: &mut Tap<File>, writer: &mut Tap<File>, level: u8, size: u64) -> io::Result<()> {
    let parameters = BrotliEncoderParams {
        quality: i32::from(level),
        lgwin: BROTLI_WINDOW,
        // Left at 0 the encoder would take the length of the first read for it, and choose by that.
        size_hint: usize::try_from(size).unwrap_or(usize::MAX).max(1),
        ..BrotliEncoderParams::default()
    };
    brotli::BrotliCompress(&mut BufReader::with_capacity(BLOCK, reader), writer, &parameters)?;
    writer.flush()
}

fn copy(reader: &mut Tap<File>, writer: &mut impl Write) -> io::Result<()> {
    io::copy(&mut BufReader::with_capacity(BLOCK, reader), writer)?;
    writer.flush()
}

/// The version of `package` that this program was built with; the build fails when there is none.
const fn locked_version(package: &str) -> &'static str {
    let mut rest = include_str!("../../Cargo.lock").as_bytes();
    while !rest.is_empty() {
        let after = drop_prefix(rest, b"name = \"");
        let after = drop_prefix(after, package.as_bytes());
        let after = drop_prefix(after, b"\"\nversion = \"");
        let mut end = 0;
        while end < after.len() && after[end] != b'"' {
            end += 1;
        }
        if end > 0 {
            match str::from_utf8(after.split_at(end).0) {
                Ok(version) => return version,
                Err(_) => panic!("a version in Cargo.lock is not UTF-8"),
            }
        }
        // To the next line.
        while !rest.is_empty() && rest[0] != b'\n' {
            rest = rest.split_at(1).1;
        }
        if !rest.is_empty() {
            rest = rest.split_at(1).1;
        }
    }
    panic!("Cargo.lock lacks an encoder")
}

/// `text` without `prefix`, or nothing when it does not begin so.
const fn drop_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> &'a [u8] {
    if text.len() < prefix.len() {
        return &[];
    }
    let (start, rest) = text.split_at(prefix.len());
    let mut at = 0;
    while at < prefix.len() {
        if start[at] != prefix[at] {
            return &[];
        }
        at += 1;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that compresses, without a period that would make it trivial.
    fn sample(lines: u32) -> Vec<u8> {
        (0..lines).flat_map(|i| format!("line {i}: {}\n", i.wrapping_mul(2_654_435_761) >> 7).into_bytes()).collect()
    }

    fn encoded(bytes: &[u8], encoding: Encoding, level: u8) -> (Encoded, Vec<u8>) {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::write(&from, bytes).unwrap();
        let encoded = encode(&from, &to, encoding, level, &Interrupt::default()).unwrap();
        (encoded, std::fs::read(to).unwrap())
    }

    #[test]
    fn a_new_encoder_version_is_noticed() {
        let sample = sample(5000);
        let found: Vec<_> = [(Encoding::Gzip, 9), (Encoding::Gzip, 6), (Encoding::Brotli, 11), (Encoding::Brotli, 5)]
            .map(|(encoding, level)| {
                let (encoded, bytes) = encoded(&sample, encoding, level);
                assert_eq!(encoded.packed, FileId { sha256: Digest::of(&bytes), size: bytes.len() as u64 });
                assert_eq!(encoded.unpacked, FileId { sha256: Digest::of(&sample), size: sample.len() as u64 });
                format!("{} {} {}", encoded.encoder, encoded.packed.size, encoded.packed.sha256)
            })
            .into();
        // When an update of a crate changes this, every packed digest that was ever published changes
        // with the next build. That belongs into the changelog.
        insta::assert_snapshot!(found.join("\n"), @r"
        flate2 1.1.11, zlib-rs 0.6.8, level 9 34844 da965d1e5a4b3c0d5dd9535699f7ffc72eb313e6e153789722999b7e3500499d
        flate2 1.1.11, zlib-rs 0.6.8, level 6 35126 6c4e351e27e9aa69b10481be7dd3f08af6e777024383abd1672a8d3590e797f9
        brotli 9.1.1, level 11, window 22 18957 1cf6ebccb6bc6f7247dc7bfce148de56a55a637b84b24f646e7dad9a8fcd1218
        brotli 9.1.1, level 5, window 22 29258 07fcc0dc64fed4eed0d538dd6e99279c4b543cdcd8a6f66f6be800350b90f1c5
        ");
    }

    #[test]
    fn the_gzip_header_tells_nothing_about_the_host() {
        for (level, extra) in [(0, 4), (1, 4), (6, 0), (9, 2)] {
            let (_, bytes) = encoded(b"x", Encoding::Gzip, level);
            assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra, 255]);
        }
    }

    #[test]
    fn identity_is_a_copy() {
        let (encoded, bytes) = encoded(b"as it is", Encoding::Identity, 9);
        assert_eq!(bytes, b"as it is");
        assert_eq!(encoded.packed, encoded.unpacked);
    }

    #[test]
    fn the_versions_are_those_of_the_lock_file() {
        let lock: toml::Table = toml::from_str(include_str!("../../Cargo.lock")).unwrap();
        for (package, version) in [("flate2", FLATE2), ("zlib-rs", ZLIB_RS), ("brotli", BROTLI)] {
            let found: Vec<_> = lock["package"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|entry| entry["name"].as_str() == Some(package))
                .map(|entry| entry["version"].as_str().unwrap())
                .collect();
            assert_eq!(found, [version], "exactly one {package}");
        }
    }

    #[test]
    fn a_level_that_the_encoder_lacks_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        std::fs::write(&from, "x").unwrap();
        for (encoding, level) in [(Encoding::Gzip, 10), (Encoding::Brotli, 12)] {
            let error = encode(&from, &root.path().join("to"), encoding, level, &Interrupt::default()).unwrap_err();
            assert_eq!(error.class(), Class::Usage);
            assert!(error.to_string().contains(&level.to_string()), "{error}");
        }
    }

    #[test]
    fn a_source_that_is_not_there_is_named() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("nothing");
        let error = encode(&from, &root.path().join("to"), Encoding::Gzip, 9, &Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    }
}
