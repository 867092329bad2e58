//! Weights in the form of a tensor cache: seeded ones for what a library asks for, and what is known
//! of given ones.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::metadata::Param;
use super::values::{Random, Stored, fill, stored};
use crate::interrupt::{Interrupt, Interrupted};

/// The most bytes that seeded weights may have.
const LARGEST: u64 = 32 << 30;
/// The most bytes of an index that is read.
const LARGEST_INDEX: u64 = 64 << 20;
/// Bytes that are made at a time.
const BLOCK: u64 = 1 << 20;

/// The name of the index, beside the shards.
pub const INDEX: &str = "tensor-cache.json";

/// What weights there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Extent {
    /// Tensors.
    pub tensors: usize,
    /// Files.
    pub shards: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest tensor as it is stored.
    pub largest_tensor: u64,
}

/// Why there are no weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// A type for which no values can be made.
    #[error("no seeded values can be made for {name} of type {dtype}")]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// More than any library has.
    #[error("the library asks for more than {} bytes of weights", LARGEST)]
    TooLarge,
    /// There are none.
    #[error("the library names no weights")]
    None,
    /// The index is not what it should be.
    #[error("{INDEX}: {0}")]
    Index(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

#[derive(Debug, Serialize, Deserialize)]
struct Index {
    #[serde(default)]
    metadata: serde_json::Value,
    records: Vec<Shard>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shard {
    data_path: String,
    format: String,
    nbytes: u64,
    records: Vec<Record>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    name: String,
    shape: Vec<u64>,
    dtype: String,
    format: String,
    nbytes: u64,
    byte_offset: u64,
}

/// Writes seeded weights for `params` to `directory`: shards of at most `shard_size` bytes, a larger
/// tensor alone in one, as MLC's converter makes them. The same seed gives the same bytes everywhere.
pub fn seed(
    params: &[Param],
    directory: &Path,
    seed: u64,
    shard_size: u64,
    interrupt: &Interrupt,
) -> Result<Extent, WeightsError> {
    let layout = lay_out(params, shard_size)?;
    let mut random = Random::new(seed);
    let mut shards = Vec::new();
    for (number, tensors) in layout.iter().enumerate() {
        let name = format!("params_shard_{number}.bin");
        let mut file = File::create(directory.join(&name))?;
        let (mut records, mut offset) = (Vec::new(), 0);
        for &(param, stored, nbytes) in tensors {
            write_tensor(&mut file, param, stored, nbytes, &mut random, interrupt)?;
            records.push(Record {
                name: param.name.clone(),
                shape: param.shape.clone(),
                dtype: param.dtype.clone(),
                format: stored.format.into(),
                nbytes,
                byte_offset: offset,
            });
            offset += nbytes;
        }
        shards.push(Shard { data_path: name, format: "raw-shard".into(), nbytes: offset, records });
    }
    let index = Index { metadata: serde_json::json!({ "ParamSize": params.len() }), records: shards };
    let text = serde_json::to_vec(&index).map_err(|error| WeightsError::Index(error.to_string()))?;
    std::fs::write(directory.join(INDEX), text)?;
    Ok(extent(&index))
}

/// Tensors of `bytes` in all, each of which fills a shard.
pub fn ballast(bytes: u64, shard_size: u64) -> Vec<Param> {
    let shard = shard_size.max(4);
    let size = |number: u64| (bytes - number * shard).min(shard);
    let param =
        |number| Param { name: format!("ballast.{number}"), shape: vec![size(number) / 4], dtype: "uint32".into() };
    (0..bytes.div_ceil(shard)).map(param).collect()
}

type Tensor<'a> = (&'a Param, Stored, u64);

fn lay_out(params: &[Param], shard_size: u64) -> Result<Vec<Vec<Tensor<'_>>>, WeightsError> {
    let mut shards: Vec<Vec<Tensor>> = Vec::new();
    let (mut filled, mut total) = (0, 0_u64);
    for param in params {
        let stored = stored(&param.dtype)
            .ok_or_else(|| WeightsError::Type { name: param.name.clone(), dtype: param.dtype.clone() })?;
        let size = param.shape.iter().try_fold(stored.width, |size, &length| size.checked_mul(length));
        let nbytes = size.filter(|&size| size <= LARGEST).ok_or(WeightsError::TooLarge)?;
        total += nbytes;
        if total > LARGEST {
            return Err(WeightsError::TooLarge);
        }
        match shards.last_mut() {
            Some(shard) if filled + nbytes <= shard_size => shard.push((param, stored, nbytes)),
            _ => {
                shards.push(vec![(param, stored, nbytes)]);
                filled = 0;
            }
        }
        filled += nbytes;
    }
    if shards.is_empty() { Err(WeightsError::None) } else { Ok(shards) }
}

fn write_tensor(
    file: &mut File,
    param: &Param,
    stored: Stored,
    nbytes: u64,
    random: &mut Random,
    interrupt: &Interrupt,
) -> Result<(), WeightsError> {
    let mut left = nbytes / stored.width;
    let mut block = Vec::new();
    while left > 0 {
        interrupt.check()?;
        let count = left.min(BLOCK / stored.width);
        block.clear();
        fill(param, stored, count, random, &mut block);
        file.write_all(&block)?;
        left -= count;
    }
    Ok(())
}

/// What the index in `directory` announces. Only its form is looked at; the loader has the rest to say.
pub fn read_extent(directory: &Path) -> Result<Extent, WeightsError> {
    let mut bytes = Vec::new();
    let file = File::open(directory.join(INDEX))?;
    io::Read::read_to_end(&mut io::Read::take(file, LARGEST_INDEX + 1), &mut bytes)?;
    if bytes.len() as u64 > LARGEST_INDEX {
        return Err(WeightsError::Index(format!("it is larger than {LARGEST_INDEX} bytes")));
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| WeightsError::Index(error.to_string()))?;
    Ok(extent(&index))
}

fn extent(index: &Index) -> Extent {
    let tensors = || index.records.iter().flat_map(|shard| &shard.records);
    Extent {
        tensors: tensors().count(),
        shards: index.records.len(),
        bytes: index.records.iter().fold(0, |sum, shard| sum.saturating_add(shard.nbytes)),
        largest_tensor: tensors().map(|record| record.nbytes).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn params() -> Vec<Param> {
        let of = |name: &str, shape: &[u64], dtype: &str| Param {
            name: name.into(),
            shape: shape.into(),
            dtype: dtype.into(),
        };
        vec![
            of("embed.q_weight", &[100, 16], "uint32"),
            of("embed.q_scale", &[100, 4], "float16"),
            of("a.norm.weight", &[128], "float32"),
            of("empty", &[0, 4], "int8"),
            of("odd", &[7], "int8"),
        ]
    }

    #[test]
    fn shards_hold_what_the_index_says() {
        let root = tempfile::tempdir().unwrap();
        let extent = seed(&params(), root.path(), 1, 2000, &Interrupt::default()).unwrap();
        assert_eq!(extent, Extent { tensors: 5, shards: 2, bytes: 6400 + 800 + 256 + 7, largest_tensor: 6400 });
        assert_eq!(read_extent(root.path()).unwrap(), extent);
        let index: Index = serde_json::from_slice(&std::fs::read(root.path().join(INDEX)).unwrap()).unwrap();
        for shard in &index.records {
            let size = std::fs::metadata(root.path().join(&shard.data_path)).unwrap().len();
            assert_eq!(size, shard.nbytes);
            let end = shard.records.iter().fold(0, |offset, record| {
                assert_eq!(record.byte_offset, offset);
                offset + record.nbytes
            });
            assert_eq!(end, size);
        }
        let text = std::fs::read_to_string(root.path().join(INDEX)).unwrap();
        assert!(text.contains(r#""dataPath":"params_shard_1.bin","format":"raw-shard","nbytes":1063"#), "{text}");
        assert!(text.contains(r#""dtype":"float32","format":"f32-to-bf16","nbytes":256,"byteOffset":800"#), "{text}");
    }

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere() {
        let bytes = |number, size| {
            let root = tempfile::tempdir().unwrap();
            let shards = seed(&params(), root.path(), number, size, &Interrupt::default()).unwrap().shards;
            let read = |shard| std::fs::read(root.path().join(format!("params_shard_{shard}.bin"))).unwrap();
            Digest::of(&(0..shards).flat_map(read).collect::<Vec<u8>>())
        };
        assert_eq!(bytes(1, 2000), bytes(1, 1 << 20), "the size of shards changes no value");
        assert_ne!(bytes(1, 2000), bytes(2, 2000));
        assert_eq!(bytes(1, 2000).to_string(), "7d658c4d18ab5a58316660d2bb665bcf2c96883908d81970a793b1ca292fe980");
    }

    #[test]
    fn ballast_fills_shards() {
        let sizes = |bytes, shard| ballast(bytes, shard).iter().map(|param| param.shape[0] * 4).collect::<Vec<_>>();
        assert!(sizes(0, 100).is_empty());
        assert_eq!(sizes(200, 100), [100, 100]);
        assert_eq!(sizes(204, 100), [100, 100, 4]);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let refused = |shape: &[u64], dtype: &str| {
            let param = Param { name: "a".into(), shape: shape.into(), dtype: dtype.into() };
            seed(&[param], root.path(), 1, 1, &Interrupt::default()).unwrap_err().to_string()
        };
        assert_eq!(refused(&[1], "float8_e4m3fn"), "no seeded values can be made for a of type float8_e4m3fn");
        assert!(refused(&[u64::MAX, 2], "int8").contains("more than"));
        assert!(refused(&[1 << 40], "int8").contains("more than"));
        assert!(matches!(seed(&[], root.path(), 1, 1, &Interrupt::default()), Err(WeightsError::None)));
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(matches!(seed(&params(), root.path(), 1, 1, &interrupt), Err(WeightsError::Interrupted(_))));
    }

    #[test]
    fn an_index_that_is_none_is_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(read_extent(root.path()), Err(WeightsError::Io(_))));
        for text in ["", "[]", "{\"records\":[{}]}", "{\"records\":[{\"dataPath\":1}]}"] {
            std::fs::write(root.path().join(INDEX), text).unwrap();
            assert!(matches!(read_extent(root.path()), Err(WeightsError::Index(_))), "{text}");
        }
    }
}
