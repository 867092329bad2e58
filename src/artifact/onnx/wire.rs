//! The wire format of protocol buffers, as far as a reader of ONNX needs it: fields one after another,
//! nothing copied, never a byte beyond the end.
//!
//! The format is described at <https://protobuf.dev/programming-guides/encoding/>.

use super::OnnxError;

/// A message, or what is left of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    /// Where `bytes` begins in the file.
    offset: usize,
}

/// A field's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 2: a string, bytes, a message or packed numbers.
    Bytes(Message<'a>),
    /// Wire types 1 and 5: numbers of 64 and of 32 bits.
    Fixed(&'a [u8]),
}

impl<'a> Message<'a> {
    /// The whole file.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The bytes that are left.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes as text; what is no UTF-8 in it is replaced.
    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    /// The next field: its number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, OnnxError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let start = self.offset;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed(self.take(8)?.bytes),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed(self.take(4)?.bytes),
            // Groups, which ONNX does not have, and what is none.
            kind => return Err(OnnxError::NoField { offset: start, kind }),
        };
        if key >> 3 == 0 {
            return Err(OnnxError::NoField { offset: start, kind: key & 7 });
        }
        Ok(Some((key >> 3, value)))
    }

    /// The numbers of a packed field.
    pub(super) fn varints(mut self, mut each: impl FnMut(u64)) -> Result<(), OnnxError> {
        while !self.bytes.is_empty() {
            each(self.varint()?);
        }
        Ok(())
    }

    fn take(&mut self, length: u64) -> Result<Self, OnnxError> {
        let left = self.bytes.len();
        let length = usize::try_from(length).ok().filter(|length| *length <= left);
        let Some(length) = length else {
            return Err(OnnxError::Truncated { offset: self.offset, left });
        };
        let (taken, rest) = self.bytes.split_at(length);
        let taken = Self { bytes: taken, offset: self.offset };
        *self = Self { bytes: rest, offset: self.offset + length };
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, OnnxError> {
        let mut number = 0_u64;
        for (index, byte) in self.bytes.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[index + 1..];
                self.offset += index + 1;
                return Ok(number);
            }
        }
        if self.bytes.len() < 10 {
            return Err(OnnxError::Truncated { offset: self.offset, left: self.bytes.len() });
        }
        Err(OnnxError::NoField { offset: self.offset, kind: 0 })
    }
}
