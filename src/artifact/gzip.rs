//! A gzip file whose level changes on the way, for archives of which much is compressed already.

use std::fs::File;
use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use super::encoding::FileId;
use super::tap::Tap;
use crate::interrupt::Interrupt;

/// The header of RFC 1952 as [`super::encoding`] writes it: no time, no name, system 255.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Bytes of compressed data written at a time.
const BLOCK: usize = 64 * 1024;

/// Writes one gzip member, whose DEFLATE blocks come from a new compressor after every change of level.
///
/// Each compressor but the last ends at a byte's boundary with an empty block (RFC 1951, 3.2.4), and knows
/// nothing of the bytes before it. The result depends on the bytes, the levels and where they change alone.
pub struct PiecewiseGzip<'a> {
    out: Tap<'a, File>,
    crc: Crc,
    level: u8,
    compress: Compress,
    block: Vec<u8>,
}

impl<'a> PiecewiseGzip<'a> {
    /// Begins a member in `file` with `level`, 0 to 9. Writing ends with an error once `interrupt` is wanted.
    pub fn begin(file: File, level: u8, interrupt: &'a Interrupt) -> io::Result<Self> {
        let mut out = Tap::new(file, interrupt);
        out.write_all(&HEADER)?;
        Ok(Self { out, crc: Crc::new(), level, compress: compressor(level), block: Vec::with_capacity(BLOCK) })
    }

    /// Compresses what follows with `level`, 0 to 9; 0 stores it.
    pub fn set_level(&mut self, level: u8) -> io::Result<()> {
        if level != self.level {
            self.end_piece(FlushCompress::Sync)?;
            (self.level, self.compress) = (level, compressor(level));
        }
        Ok(())
    }

    /// Ends the member, waits until it is on disk, and tells what was written.
    pub fn finish(mut self) -> io::Result<FileId> {
        self.end_piece(FlushCompress::Finish)?;
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        // RFC 1952: the length modulo 2^32, which is what the checksum counts.
        self.out.write_all(&self.crc.amount().to_le_bytes())?;
        self.out.sync()?;
        self.out.finish()
    }

    /// Writes what the compressor still holds.
    fn end_piece(&mut self, flush: FlushCompress) -> io::Result<()> {
        loop {
            self.block.clear();
            let status = self.compress.compress_vec(&[], &mut self.block, flush)?;
            self.out.write_all(&self.block)?;
            // A flush is done when it leaves room; it may not be asked for again, or it writes another block.
            if status == Status::StreamEnd || (flush == FlushCompress::Sync && self.block.len() < self.block.capacity())
            {
                return Ok(());
            }
        }
    }
}

impl Write for PiecewiseGzip<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.block.clear();
            let before = self.compress.total_in();
            self.compress.compress_vec(rest, &mut self.block, FlushCompress::None)?;
            let taken = usize::try_from(self.compress.total_in() - before).unwrap_or(rest.len());
            rest = &rest[taken..];
            self.out.write_all(&self.block)?;
        }
        self.crc.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn compressor(level: u8) -> Compress {
    Compress::new(Compression::new(u32::from(level)), false)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::digest::Digest;

    /// Packs pieces, each with its level, and gives the file.
    fn packed(pieces: &[(u8, &[u8])]) -> Vec<u8> {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let interrupt = Interrupt::default();
        let mut gzip = PiecewiseGzip::begin(File::create(&path).unwrap(), 9, &interrupt).unwrap();
        for (level, bytes) in pieces {
            gzip.set_level(*level).unwrap();
            gzip.write_all(bytes).unwrap();
        }
        let id = gzip.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(id, FileId { sha256: Digest::of(&bytes), size: bytes.len() as u64 });
        bytes
    }

    /// Bytes that nothing compresses.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn pieces_of_every_length_and_level_come_back_from_one_member() {
        // Around the block's length, where a flush exactly fills what there is for it.
        let lengths = [0, 1, 1000, BLOCK - 20, BLOCK - 10, BLOCK - 5, BLOCK, BLOCK + 1, 3 * BLOCK + 7];
        for levels in [[9, 0, 9], [0, 9, 0], [1, 1, 1], [0, 1, 6]] {
            for length in lengths {
                let (text, noise) = ("text ".repeat(length / 5 + 1), noise(length));
                let pieces = [(levels[0], text.as_bytes()), (levels[1], &noise), (levels[2], text.as_bytes())];
                let bytes = packed(&pieces);
                let mut back = Vec::new();
                let mut decoder = flate2::bufread::GzDecoder::new(&bytes[..]);
                decoder.read_to_end(&mut back).unwrap();
                let whole: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
                assert!(back == whole, "levels {levels:?}, {length} bytes");
                assert!(decoder.into_inner().is_empty(), "a second member, or garbage");
            }
        }
    }

    #[test]
    fn what_is_stored_is_neither_searched_nor_swollen() {
        let noise = noise(1 << 20);
        let bytes = packed(&[(9, "text ".repeat(10_000).as_bytes()), (0, &noise), (9, b"end")]);
        assert!(bytes.len() > noise.len());
        assert!(bytes.len() < noise.len() + 1000, "{} bytes", bytes.len());
    }

    #[test]
    fn levels_alone_make_no_difference_to_what_is_said() {
        let nothing = packed(&[]);
        assert_eq!(nothing[..10], HEADER);
        assert_eq!(packed(&[(9, b"a"), (9, b"b")]), packed(&[(9, b"ab")]), "no new piece without a new level");
    }

    #[test]
    fn an_interrupt_ends_the_writing() {
        let root = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        let file = File::create(root.path().join("file")).unwrap();
        let mut gzip = PiecewiseGzip::begin(file, 0, &interrupt).unwrap();
        interrupt.raise();
        assert!(gzip.write_all(&noise(BLOCK * 4)).is_err());
    }
}
