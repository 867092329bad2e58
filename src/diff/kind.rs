//! What a file is.

use std::io::Read;

use super::{Body, DiffError};
use crate::pins::Encoding;

/// A kind of file that is compared in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Wasm,
    Encoded(Encoding),
    Zip,
    Tar,
    Json,
    Toml,
    Text,
    Binary,
}

impl Kind {
    /// How it is encoded; `identity` for what is none of the encoded kinds.
    pub(super) fn encoding(self) -> Encoding {
        if let Self::Encoded(encoding) = self { encoding } else { Encoding::Identity }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Encoded(encoding) => encoding.name(),
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::Json => "json",
            Self::Toml => "toml",
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }
}

/// Looks at the beginning of `body`; of what could be text at all that is small enough.
pub(super) fn recognize(body: &Body) -> Result<Kind, DiffError> {
    let unreadable = |source| DiffError::Unreadable { path: body.path.clone(), source };
    let mut head = Vec::new();
    body.open()?.take(512).read_to_end(&mut head).map_err(unreadable)?;
    let ends = |suffix: &str| body.name.to_ascii_lowercase().ends_with(suffix);
    if head.starts_with(b"\0asm") {
        return Ok(Kind::Wasm);
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        return Ok(Kind::Encoded(Encoding::Gzip));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(Kind::Zip);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Ok(Kind::Tar);
    }
    if ends(".br") {
        return Ok(Kind::Encoded(Encoding::Brotli));
    }
    let Some(bytes) = body.load()? else { return Ok(Kind::Binary) };
    if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
        return Ok(Kind::Binary);
    }
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let object = matches!(first, Some(b'{' | b'['));
    if object && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
        return Ok(Kind::Json);
    }
    Ok(if ends(".toml") { Kind::Toml } else { Kind::Text })
}
