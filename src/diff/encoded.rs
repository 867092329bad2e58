//! Encoded files: what the header says, and what is inside.

use std::io::{self, Read};

use super::finding::Sink;
use super::{Body, DiffError, bytes, compare_files};
use crate::artifact::decoding::{Decoded, DecodingError, decode};
use crate::pins::Encoding;

/// The most bytes that are unpacked of one file.
const LARGEST: u64 = 2 << 30;

/// Compares two files of which at least one is encoded.
pub(super) fn compare(
    encodings: [Encoding; 2],
    left: &Body,
    right: &Body,
    depth: usize,
    sink: &mut Sink,
) -> Result<(), DiffError> {
    let [encoding, other_encoding] = encodings;
    let (first, inside) = unpack(encoding, left, sink)?;
    let (second, other) = unpack(other_encoding, right, sink)?;
    let same = match (&first.unpacked, &second.unpacked) {
        (Ok(first), Ok(second)) => first.sha256 == second.sha256,
        (first, second) => {
            let name = if encoding == Encoding::Identity { other_encoding } else { encoding }.name();
            sink.add(name, Some(&readable(first)), Some(&readable(second)));
            return bytes::compare(left, right, sink);
        }
    };
    if encodings == [Encoding::Gzip; 2] {
        compare_headers(&read_header(left)?, &read_header(right)?, same, sink);
    }
    if encoding != other_encoding {
        sink.add_repacked("encoding", Some(encoding.name()), Some(other_encoding.name()));
    } else if same {
        let size = |decoded: &Decoded| format!("{} bytes packed", decoded.packed.size);
        sink.add_repacked(
            &format!("{} data: the same content, encoded by another encoder or at another level", encoding.name()),
            Some(&size(&first)),
            Some(&size(&second)),
        );
    }
    if same {
        return Ok(());
    }
    sink.within("content", |sink| compare_files(&inside, &other, depth + 1, sink).map(drop))
}

/// Whether it can be unpacked, or why not.
fn readable<T>(unpacked: &Result<T, DecodingError>) -> String {
    match unpacked {
        Ok(_) => "can be unpacked".to_owned(),
        Err(DecodingError::TooLong(most)) => {
            format!("more than {most} bytes are in it, which is the most that is unpacked here")
        }
        Err(error) => error.to_string(),
    }
}

fn unpack(encoding: Encoding, body: &Body, sink: &Sink) -> Result<(Decoded, Body), DiffError> {
    let name = body.name.strip_suffix(encoding.suffix()).unwrap_or(&body.name);
    let mut decoded = None;
    let inside = Body::copy(name, |file| {
        decoded = Some(decode(&body.path, encoding, LARGEST, io::BufWriter::new(file), sink.interrupt())?);
        Ok(())
    });
    sink.check()?;
    match decoded {
        Some(decoded) => Ok((decoded, inside?)),
        None => Err(inside
            .err()
            .unwrap_or(DiffError::Unreadable { path: body.path.clone(), source: io::ErrorKind::InvalidData.into() })),
    }
}

/// The fields of a gzip header (RFC 1952, section 2.3).
#[derive(Debug, PartialEq, Eq)]
struct Header {
    fields: [(&'static str, String); 5],
}

fn read_header(body: &Body) -> Result<Header, DiffError> {
    let mut head = Vec::new();
    let read = body.open()?.take(64 << 10).read_to_end(&mut head);
    read.map_err(|source| DiffError::Unreadable { path: body.path.clone(), source })?;
    Ok(parse_header(&head))
}

fn parse_header(head: &[u8]) -> Header {
    let byte = |at: usize| head.get(at).copied().unwrap_or(0);
    let flags = byte(3);
    let time = u32::from_le_bytes([byte(4), byte(5), byte(6), byte(7)]);
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([byte(10), byte(11)]));
    }
    let mut text = |present: bool| {
        if !present {
            return "absent".to_owned();
        }
        let rest = head.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        at += end + 1;
        format!("`{}`", String::from_utf8_lossy(&rest[..end]))
    };
    let (name, comment) = (text(flags & 8 != 0), text(flags & 16 != 0));
    Header {
        fields: [
            ("time", time.to_string()),
            ("extra flags", byte(8).to_string()),
            ("operating system", byte(9).to_string()),
            ("file name", name),
            ("comment", comment),
        ],
    }
}

fn compare_headers(left: &Header, right: &Header, same_content: bool, sink: &mut Sink) {
    for ((name, before), (_, after)) in left.fields.iter().zip(&right.fields) {
        if before == after {
            continue;
        }
        let name = format!("gzip header: {name}");
        if same_content {
            sink.add_repacked(&name, Some(before), Some(after));
        } else {
            sink.add(&name, Some(before), Some(after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_not_called_unexpected() {
        let shown = readable::<()>(&Err(DecodingError::TooLong(LARGEST)));
        assert_eq!(shown, "more than 2147483648 bytes are in it, which is the most that is unpacked here");
    }

    #[test]
    fn a_header_is_read_field_by_field() {
        let head = [&[0x1f, 0x8b, 8, 8 | 16, 1, 0, 0, 0, 2, 3][..], b"a.js\0why\0"].concat();
        let header = parse_header(&head);
        let values: Vec<&str> = header.fields.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["1", "2", "3", "`a.js`", "`why`"]);
        assert_eq!(parse_header(&[0x1f]).fields[3].1, "absent");
    }
}
