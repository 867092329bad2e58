//! Resource descriptors and digest sets ([in-toto Attestation Framework v1][1]).
//!
//! [1]: https://github.com/in-toto/attestation/blob/main/spec/v1/resource_descriptor.md

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::artifact::encoding::FileId;
use crate::digest::Digest;

/// Something that went into a build or came out of it. One of `uri`, `digest` and `content` is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDescriptor {
    /// What it is called, unique among its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is, for everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its digests by algorithm: `sha256`, `gitCommit`, `gitTree`; lower-case hexadecimal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub digest: BTreeMap<String, String>,
    /// Its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Where it can be got, when that is not `uri`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_location: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What else there is to say of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Value>,
}

impl ResourceDescriptor {
    /// A descriptor with a name and nothing else yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// With its sha256.
    #[must_use]
    pub fn sha256(mut self, digest: Digest) -> Self {
        self.digest.insert("sha256".into(), digest.to_string());
        self
    }

    /// With an annotation.
    #[must_use]
    pub fn note(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Its name, or nothing.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Its annotation `kind`, or nothing.
    pub fn kind(&self) -> &str {
        self.annotation("kind")
    }

    /// The annotation `key` as text, or nothing.
    pub fn annotation(&self, key: &str) -> &str {
        self.annotations.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its sha256, when it has a well-formed one.
    pub fn sha256_of(&self) -> Option<Digest> {
        self.digest.get("sha256")?.parse().ok()
    }

    /// Its sha256 and the annotation `size`, when it has both.
    pub fn file_id(&self) -> Option<FileId> {
        Some(FileId { sha256: self.sha256_of()?, size: self.annotations.get("size")?.as_u64()? })
    }
}

/// Bytes that stand as base64 in JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(pub Vec<u8>);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode_base64(&text).map(Self).ok_or_else(|| de::Error::custom("base64 is wanted"))
    }
}

/// The bytes that `text` stands for: base64 of either alphabet, padded or not, as the specifications
/// of envelopes and of JSON's bytes allow.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::alphabet;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if text.contains(['-', '_']) { alphabet::URL_SAFE } else { alphabet::STANDARD };
    GeneralPurpose::new(&alphabet, lenient).decode(text).ok()
}
