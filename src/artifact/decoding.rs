//! Decoders that trust nothing: one pass over the file gives both digests, and decoding stops as
//! soon as more bytes come out than were announced.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::bufread::GzDecoder;

use super::encoding::FileId;
use super::tap::Tap;
use crate::digest::Hasher;
use crate::interrupt::Interrupt;
use crate::pins::Encoding;

/// What was found in an encoded file.
#[derive(Debug)]
pub struct Decoded {
    /// The file as it is.
    pub packed: FileId,
    /// What is in it, or why that cannot be told.
    pub unpacked: Result<FileId, DecodingError>,
}

/// Why a file cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodingError {
    /// The file ends before the encoded data does.
    #[error("the {0} data ends too early")]
    Truncated(&'static str),
    /// The bytes are not what the encoding allows, or fail its own checksum.
    #[error("the {encoding} data is damaged: {reason}")]
    Damaged {
        /// The encoding's name.
        encoding: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// Something follows the encoded data.
    #[error("bytes follow the end of the {0} data")]
    Trailing(&'static str),
    /// More came out than was announced.
    #[error("more than the expected {0} bytes come out")]
    TooLong(u64),
}

/// Bytes read and decoded at a time.
const BLOCK: usize = 256 * 1024;

/// Digest and size of the file at `path`, stopping like [`decode`] at an interrupt.
pub fn identify(path: &Path, interrupt: &Interrupt) -> io::Result<FileId> {
    let mut reader = Tap::new(File::open(path)?, interrupt);
    drain(&mut reader);
    reader.finish()
}

/// Reads to the end; a failure is remembered by the tap below.
fn drain(reader: &mut impl Read) {
    let mut block = vec![0; BLOCK];
    while match reader.read(&mut block) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == io::ErrorKind::Interrupted,
    } {}
}

/// Decodes the file at `path` into `sink`, at most `limit` bytes.
///
/// An error means that the file cannot be read or `sink` not be written; what is wrong with the
/// encoded data is part of the result. An interrupt is an error that contains
/// [`Interrupted`](crate::interrupt::Interrupted).
pub fn decode(
    path: &Path,
    encoding: Encoding,
    limit: u64,
    sink: impl Write,
    interrupt: &Interrupt,
) -> io::Result<Decoded> {
    decode_from(File::open(path)?, encoding, limit, sink, interrupt)
}

/// The same of what `source` gives.
pub fn decode_from(
    source: impl Read,
    encoding: Encoding,
    limit: u64,
    sink: impl Write,
    interrupt: &Interrupt,
) -> io::Result<Decoded> {
    let mut reader = BufReader::with_capacity(BLOCK, Tap::new(source, interrupt));
    let mut out = Bounded { sink, hasher: Hasher::new(), left: limit };
    let name = encoding.name();
    let ended = match encoding {
        Encoding::Gzip => decode_gzip(&mut reader, &mut out),
        Encoding::Brotli => decode_brotli(&mut reader, &mut out),
        Encoding::Identity => pour(&mut reader, &mut out, |_| Stop::TooLong),
    };
    let ended = match ended {
        Ok(()) if reader.fill_buf().is_ok_and(|rest| !rest.is_empty()) => Err(DecodingError::Trailing(name)),
        Ok(()) => Ok(()),
        Err(Stop::Sink(error)) => return Err(error),
        Err(Stop::TooLong) => Err(DecodingError::TooLong(limit)),
        Err(Stop::Truncated) => Err(DecodingError::Truncated(name)),
        Err(Stop::Damaged(reason)) => Err(DecodingError::Damaged { encoding: name, reason }),
    };
    // The packed digest covers the whole file, whatever the decoder made of it.
    let mut rest = reader.into_inner();
    drain(&mut rest);
    let packed = rest.finish()?;
    Ok(Decoded { packed, unpacked: ended.map(|()| FileId::from(out.hasher.finish())) })
}

enum Stop {
    Truncated,
    Damaged(String),
    TooLong,
    Sink(io::Error),
}

/// Takes decoded bytes as long as there are not too many.
struct Bounded<W> {
    sink: W,
    hasher: Hasher,
    left: u64,
}

impl<W: Write> Bounded<W> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(Stop::TooLong)?;
        self.hasher.update(bytes);
        self.sink.write_all(bytes).map_err(Stop::Sink)
    }
}

fn decode_gzip(reader: &mut impl BufRead, out: &mut Bounded<impl Write>) -> Result<(), Stop> {
    // One member only, as browsers read it: whatever follows is left in the reader.
    pour(&mut GzDecoder::new(reader), out, |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Stop::Truncated,
        _ => Stop::Damaged(error.to_string()),
    })
}

/// Reads `reader` to its end.
fn pour(reader: &mut impl Read, out: &mut Bounded<impl Write>, explain: fn(io::Error) -> Stop) -> Result<(), Stop> {
    let mut block = vec![0; BLOCK];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(count) => out.take(&block[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(explain(error)),
        }
    }
}

/// The stream interface, because the crate's reader swallows what follows the end of the data.
fn decode_brotli(reader: &mut impl BufRead, out: &mut Bounded<impl Write>) -> Result<(), Stop> {
    let mut state = BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let mut block = vec![0; BLOCK];
    let mut total = 0;
    loop {
        let input = reader.fill_buf().map_err(|error| Stop::Damaged(error.to_string()))?;
        let at_end = input.is_empty();
        let (mut input_left, mut consumed) = (input.len(), 0);
        let (mut output_left, mut written) = (block.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut consumed,
            input,
            &mut output_left,
            &mut written,
            &mut block,
            &mut total,
            &mut state,
        );
        reader.consume(consumed);
        out.take(&block[..written])?;
        match result {
            BrotliResult::ResultSuccess => return Ok(()),
            BrotliResult::ResultFailure => return Err(Stop::Damaged("not a valid stream".into())),
            BrotliResult::NeedsMoreInput if at_end => return Err(Stop::Truncated),
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::artifact::encoding::encode;
    use crate::digest::Digest;

    const ALL: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Identity];
    const COMPRESSED: [Encoding; 2] = [Encoding::Gzip, Encoding::Brotli];

    fn pack(bytes: &[u8], encoding: Encoding, level: u8) -> Vec<u8> {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::write(&from, bytes).unwrap();
        encode(&from, &to, encoding, level, &Interrupt::default()).unwrap();
        std::fs::read(to).unwrap()
    }

    fn unpack(packed: &[u8], encoding: Encoding, limit: u64) -> (Decoded, Vec<u8>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), packed).unwrap();
        let mut bytes = Vec::new();
        let decoded = decode(file.path(), encoding, limit, &mut bytes, &Interrupt::default()).unwrap();
        assert_eq!(decoded.packed, FileId { sha256: Digest::of(packed), size: packed.len() as u64 });
        (decoded, bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_encoded_comes_out_again(
            seed in prop::collection::vec(any::<u8>(), 0..3000), repeat in 1_usize..200, level in 0_u8..=9,
        ) {
            let bytes = seed.repeat(repeat);
            for encoding in ALL {
                let packed = pack(&bytes, encoding, level);
                prop_assert_eq!(&packed, &pack(&bytes, encoding, level));
                let (decoded, found) = unpack(&packed, encoding, bytes.len() as u64);
                prop_assert_eq!(decoded.unpacked.unwrap().sha256, Digest::of(&bytes));
                prop_assert!(found == bytes);
            }
        }
    }

    fn sample() -> Vec<u8> {
        (0..4000_u32).flat_map(|i| format!("{i} {}\n", i.wrapping_mul(2_654_435_761) >> 9).into_bytes()).collect()
    }

    #[test]
    fn a_truncated_file_is_truncated() {
        let bytes = sample();
        for encoding in COMPRESSED {
            let packed = pack(&bytes, encoding, 6);
            for length in [0, 1, 9, packed.len() / 2, packed.len() - 1] {
                let (decoded, _) = unpack(&packed[..length], encoding, bytes.len() as u64);
                assert_eq!(decoded.unpacked, Err(DecodingError::Truncated(encoding.name())), "{length}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_never_passes_for_the_same_file() {
        let bytes = sample();
        for encoding in COMPRESSED {
            let packed = pack(&bytes, encoding, 6);
            let places: Vec<_> = (10..packed.len()).step_by(packed.len() / 60).collect();
            let mut noticed = 0;
            for &at in &places {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << (at % 8);
                let (decoded, found) = unpack(&damaged, encoding, bytes.len() as u64);
                assert_ne!(decoded.packed.sha256, Digest::of(&packed));
                noticed += usize::from(decoded.unpacked.is_err() || found != bytes);
                // Only gzip has a checksum of its own.
                assert!(decoded.unpacked.is_err() || found == bytes || encoding == Encoding::Brotli, "{at}");
            }
            // A flip may turn a back reference to another copy of the same text: rare, and harmless.
            assert!(noticed * 10 > places.len() * 9, "{noticed} of {}", places.len());
        }
    }

    #[test]
    fn what_follows_the_data_is_an_error() {
        let bytes = sample();
        for encoding in COMPRESSED {
            for rest in [b"\0".to_vec(), b"garbage".to_vec(), pack(b"second member", encoding, 9), vec![7; 600_000]] {
                let packed = [pack(&bytes, encoding, 9), rest].concat();
                let (decoded, _) = unpack(&packed, encoding, bytes.len() as u64);
                assert_eq!(decoded.unpacked, Err(DecodingError::Trailing(encoding.name())));
            }
        }
    }

    #[test]
    fn a_bomb_is_stopped_at_the_announced_size() {
        let bytes = vec![0; 64 << 20];
        for encoding in COMPRESSED {
            let packed = pack(&bytes, encoding, 5);
            assert!(packed.len() < 100_000);
            let (decoded, written) = unpack(&packed, encoding, 1000);
            assert_eq!(decoded.unpacked, Err(DecodingError::TooLong(1000)));
            assert!(written.len() <= 1000, "{}", written.len());
        }
    }

    #[test]
    fn an_interrupt_stops_decoding() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pack(&sample(), Encoding::Gzip, 6)).unwrap();
        let interrupt = Interrupt::default();
        interrupt.raise();
        let error = decode(file.path(), Encoding::Gzip, 1 << 20, io::sink(), &interrupt).unwrap_err();
        assert!(error.downcast::<crate::interrupt::Interrupted>().is_ok());
    }
}
