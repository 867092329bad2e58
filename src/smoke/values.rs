//! Seeded values for a weight, by its type and its name: random, and of such a size that a model of any
//! depth gives logits that are finite and differ.

use super::metadata::Param;

/// A generator of numbers that are the same everywhere (splitmix64, Steele, Lea and Flood 2014).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        // 24 bits are exactly a float's.
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let share = (self.next() >> 40) as f32 / 16_777_216.0;
        low + share * (high - low)
    }
}

/// How a tensor's bytes are stored in a shard, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// The record's `format`.
    pub format: &'static str,
    /// Bytes of one element in the shard.
    pub width: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bits,
    Half,
    Brain,
}

/// How values of `dtype` are stored, if seeded ones can be made. MLC stores 32-bit floats by their upper
/// halves, and so do we, so that the decoder is part of what is tried.
pub(super) fn stored(dtype: &str) -> Option<Stored> {
    let (format, width, kind) = match dtype {
        "uint8" | "int8" => ("raw", 1, Kind::Bits),
        "uint16" | "int16" => ("raw", 2, Kind::Bits),
        "uint32" | "int32" => ("raw", 4, Kind::Bits),
        "float16" => ("raw", 2, Kind::Half),
        "bfloat16" => ("raw", 2, Kind::Brain),
        "float32" => ("f32-to-bf16", 2, Kind::Brain),
        _ => return None,
    };
    Some(Stored { format, width, kind })
}

/// Appends `count` elements of `param` to `bytes`.
pub(super) fn fill(param: &Param, stored: Stored, count: u64, random: &mut Random, bytes: &mut Vec<u8>) {
    if stored.kind == Kind::Bits {
        let end = bytes.len() as u64 + count * stored.width;
        while (bytes.len() as u64) < end {
            let left = usize::try_from((end - bytes.len() as u64).min(8)).unwrap_or(8);
            bytes.extend_from_slice(&random.next().to_le_bytes()[..left]);
        }
        return;
    }
    let (low, high) = range(param);
    for _ in 0..count {
        let value = random.between(low, high);
        let half = if stored.kind == Kind::Half { half_of(value) } else { brain_of(value) };
        bytes.extend_from_slice(&half.to_le_bytes());
    }
}

/// The range of a float tensor's values.
fn range(param: &Param) -> (f32, f32) {
    #[expect(clippy::cast_precision_loss, reason = "a size, of which the order matters")]
    let inner = param.shape.last().copied().unwrap_or(1).max(1) as f32;
    // Embeddings are often the output matrix too; larger ones keep the most likely token apart.
    let gain = if param.name.contains("embed") { 4.0 } else { 1.0 };
    if param.name.ends_with("scale") {
        // One scale for about 32 values of 4 bits, whose own deviation is 4.6: rows of about unit length.
        let middle = gain / (4.6 * (32.0 * inner).sqrt());
        (0.5 * middle, 1.5 * middle)
    } else if param.name.contains("norm") {
        (0.8, 1.2)
    } else if param.shape.len() < 2 {
        (-0.3, 0.3)
    } else {
        let bound = gain * (3.0 / inner).sqrt();
        (-bound, bound)
    }
}

/// The upper half of a 32-bit float, rounded to even (bfloat16).
fn brain_of(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    u16::try_from(rounded >> 16).unwrap_or_default()
}

/// The 16-bit float (IEEE 754 binary16) nearest below `value` in size; values here are neither large nor
/// need the last bit.
fn half_of(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let exponent = (bits >> 23 & 0xff).saturating_sub(127 - 15);
    let half = match exponent {
        0 => sign,
        1..=30 => sign | exponent << 10 | bits >> 13 & 0x3ff,
        _ => sign | 0x7bff,
    };
    u16::try_from(half).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, shape: &[u64], dtype: &str) -> Param {
        Param { name: name.into(), shape: shape.into(), dtype: dtype.into() }
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs of splitmix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn halves_are_near_their_floats() {
        let floats = [0.0_f32, 1.0, -1.0, 0.5, 0.333, -0.01, 1e-3, 6.2e-5, 60000.0, -1e9, 1e-9];
        let found: Vec<f32> = floats.iter().map(|&value| from_half(half_of(value))).collect();
        for (value, half) in floats.iter().zip(&found) {
            let expected = value.clamp(-65504.0, 65504.0);
            assert!((half - expected).abs() <= expected.abs() / 1024.0 + 6.2e-5, "{value} {half}");
        }
        for value in [0.0_f32, 1.0, -1.5, 0.333, 1e-9] {
            let back = f32::from_bits(u32::from(brain_of(value)) << 16);
            assert!((back - value).abs() <= value.abs() / 256.0, "{value} {back}");
        }
    }

    fn from_half(half: u16) -> f32 {
        let (sign, exponent, fraction) = (half >> 15, i32::from(half >> 10 & 31), f32::from(half & 0x3ff));
        let size = if exponent == 0 {
            fraction * 2f32.powi(-24)
        } else {
            (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15)
        };
        if sign == 1 { -size } else { size }
    }

    #[test]
    fn each_kind_of_tensor_has_its_range() {
        let scale = range(&param("a.q_scale", &[8, 4], "float32"));
        assert!(scale.0 > 0.0 && scale.1 < 0.04, "{scale:?}");
        assert!(range(&param("embed.q_scale", &[8, 4], "float32")).0 > 3.0 * scale.0);
        assert_eq!(range(&param("a.layernorm.weight", &[8], "float32")), (0.8, 1.2));
        assert_eq!(range(&param("a.bias", &[8], "float32")), (-0.3, 0.3));
        assert_eq!(range(&param("a.weight", &[8, 3], "float32")), (-1.0, 1.0));
    }

    #[test]
    fn as_many_bytes_come_as_are_announced() {
        for dtype in ["uint8", "int8", "uint16", "uint32", "float16", "bfloat16", "float32"] {
            let stored = stored(dtype).unwrap();
            let mut bytes = vec![7];
            fill(&param("a", &[13], dtype), stored, 13, &mut Random::new(1), &mut bytes);
            assert_eq!(bytes.len() as u64, 1 + 13 * stored.width, "{dtype}");
        }
        assert_eq!(stored("float8_e4m3fn"), None);
    }
}
