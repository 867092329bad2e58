//! The shaders in a model library. TVM's device module is a part of linear memory in which each
//! string stands behind its length (eight bytes, little-endian): for each kernel a description of its
//! arguments, then its name and its source as it is.

use super::memory::{find, find_all};
use super::{Image, Run};

/// What every compute shader has (WGSL, section 13.3).
const COMPUTE: &[u8] = b"@compute";

/// How a kernel's description says which of its buffers it writes, such as `paramWriteAccess:[0,1]`.
const WRITES: &[u8] = b"paramWriteAccess:[";

/// The longest text that is taken for a shader, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// The longest name of a kernel.
const LONGEST_NAME: usize = 1024;

/// A shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shader {
    /// The kernel's name, when one stands before it.
    pub name: Option<String>,
    /// Where it stands, for people.
    pub place: String,
    /// Its source.
    pub text: String,
    /// For each of its buffers, whether the runtime will bind it for writing, when the library says.
    pub writes: Option<Vec<bool>>,
}

/// Every shader in `image`, in order of address.
pub fn find_shaders(image: &Image) -> Vec<Shader> {
    let mut shaders = Vec::new();
    for run in image.runs() {
        let mut end = 0;
        for at in find_all(&run.bytes, COMPUTE) {
            if at < end {
                continue;
            }
            let (start, stop) = text_around(&run.bytes, at);
            end = stop;
            if stop - start > LONGEST {
                continue;
            }
            shaders.push(shader(run, start, stop));
        }
    }
    add_writes(image, &mut shaders);
    shaders
}

fn shader(run: &Run, start: usize, stop: usize) -> Shader {
    let region = &run.bytes[start..stop];
    // The first bytes of the next string's length may look like text.
    let announced = length_before(&run.bytes, start).filter(|&length| length <= region.len());
    let length = announced
        .filter(|length| region.len() - length < 8)
        .unwrap_or_else(|| region.iter().rposition(|&byte| byte == b'}').map_or(region.len(), |last| last + 1));
    Shader {
        name: announced.and_then(|_| name_before(&run.bytes, start)),
        place: run.place(start),
        text: String::from_utf8_lossy(&region[..length]).into_owned(),
        writes: None,
    }
}

/// The text that has the byte at `at` in it: everything up to the nearest bytes that are none.
fn text_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let is_text = |byte: u8| byte >= b' ' && byte != 0x7f || matches!(byte, b'\n' | b'\t' | b'\r');
    let start = bytes[..at].iter().rposition(|&byte| !is_text(byte)).map_or(0, |last| last + 1);
    let stop = bytes[at..].iter().position(|&byte| !is_text(byte)).map_or(bytes.len(), |next| at + next);
    (start, stop)
}

/// The number in the eight bytes before `at`.
fn length_before(bytes: &[u8], at: usize) -> Option<usize> {
    let eight: [u8; 8] = bytes.get(at.checked_sub(8)?..at)?.try_into().ok()?;
    usize::try_from(u64::from_le_bytes(eight)).ok()
}

/// The string that stands before the length of the one at `at`.
fn name_before(bytes: &[u8], at: usize) -> Option<String> {
    let end = at.checked_sub(8)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // A name has no end mark, and the length before it may look like a part of it.
    for start in (end.saturating_sub(LONGEST_NAME)..end).rev() {
        if !is_name(bytes[start]) {
            return None;
        }
        if length_before(bytes, start) == Some(end - start) {
            return String::from_utf8(bytes[start..end].to_vec()).ok();
        }
    }
    None
}

/// Descriptions stand in the order of their names, and each begins with its kernel's name.
fn add_writes(image: &Image, shaders: &mut [Shader]) {
    for shader in shaders.iter_mut() {
        let Some(name) = &shader.name else { continue };
        let mut key = (name.len() as u64).to_le_bytes().to_vec();
        key.extend_from_slice(name.as_bytes());
        shader.writes = image.find(&key).find_map(|(run, at)| {
            let rest = &run.bytes[at + key.len()..];
            // The name twice, types of arguments and tags of launch parameters: that is short.
            let rest = &rest[..rest.len().min(4096 + 2 * name.len())];
            let tag = find(rest, WRITES)?;
            if find(rest, b"@compute").is_some_and(|source| source < tag) {
                return None;
            }
            parse_writes(&rest[tag + WRITES.len()..])
        });
    }
}

fn parse_writes(bytes: &[u8]) -> Option<Vec<bool>> {
    let end = find(bytes, b"]")?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let flag = |word: &str| match word.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    text.split(',').filter(|word| !word.trim().is_empty()).map(flag).collect()
}
