//! Signed envelopes ([DSSE 1.0][1]): a statement's bytes with signatures over them.
//!
//! A signature is over type and payload in their pre-authentication encoding, so that it cannot be
//! taken for one under something else. Key ids are hints that nobody has signed: which key made a
//! signature is found out by trying.
//!
//! [1]: https://github.com/secure-systems-lab/dsse

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::descriptor::{Content, decode_base64};
use super::keys::{PrivateKey, PublicKey};

/// The type of payloads that are in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The most signatures that an envelope may have: more than people can mean, and few enough to try each
/// with every key.
pub const MOST_SIGNATURES: usize = 64;

/// An envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Always [`PAYLOAD_TYPE`].
    pub payload_type: String,
    /// The statement's bytes.
    pub payload: Content,
    /// The signatures.
    pub signatures: Vec<EnvelopeSignature>,
}

/// A signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeSignature {
    /// A hint at the key.
    #[serde(default)]
    pub keyid: String,
    /// The signature's bytes as base64.
    pub sig: String,
}

impl Envelope {
    /// An envelope around `payload` without a signature.
    pub fn new(payload: Vec<u8>) -> Self {
        Self { payload_type: PAYLOAD_TYPE.into(), payload: Content(payload), signatures: Vec::new() }
    }

    /// Adds the signature of `key`; gives `false` and changes nothing when it is there already.
    pub fn sign(&mut self, key: &PrivateKey) -> bool {
        let message = self.message();
        let public = key.public();
        if self.signatures.iter().any(|signature| signature.is_by(&public, &message)) {
            return false;
        }
        let sig = Content(key.sign(&message).to_vec());
        // In base64 as any other bytes.
        let sig = serde_json::to_value(sig).ok().and_then(|value| value.as_str().map(str::to_owned));
        self.signatures.push(EnvelopeSignature { keyid: public.id(), sig: sig.unwrap_or_default() });
        true
    }

    /// What is signed.
    fn message(&self) -> Vec<u8> {
        encode(&self.payload_type, &self.payload.0)
    }

    /// The envelope as it stands in a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Holds the signatures against `keys`, at least `threshold` different ones of which must have signed.
    pub fn check(&self, keys: &[PublicKey], threshold: usize) -> Checked {
        let message = self.message();
        let mut checked = Checked::default();
        let mut signed: BTreeMap<String, usize> = BTreeMap::new();
        for signature in &self.signatures {
            match keys.iter().find(|key| signature.is_by(key, &message)) {
                Some(key) => *signed.entry(key.id()).or_default() += 1,
                None if keys.iter().any(|key| key.id() == signature.keyid) => {
                    checked.problems.push(SignatureProblem::Wrong { key: signature.keyid.clone() });
                }
                None => checked.unknown.push(signature.keyid.clone()),
            }
        }
        let twice = signed.iter().filter(|(_, count)| **count > 1);
        checked.problems.extend(twice.map(|(key, _)| SignatureProblem::Twice { key: key.clone() }));
        checked.by = signed.into_keys().collect();
        if checked.by.len() < threshold {
            let wanted = keys.iter().map(PublicKey::id).filter(|id| !checked.by.contains(id)).collect();
            checked.problems.push(SignatureProblem::TooFew {
                threshold,
                found: checked.by.len(),
                wanted,
                unknown: checked.unknown.clone(),
            });
        }
        checked
    }
}

impl EnvelopeSignature {
    fn is_by(&self, key: &PublicKey, message: &[u8]) -> bool {
        decode_base64(&self.sig).is_some_and(|signature| key.verifies(message, &signature))
    }
}

/// The pre-authentication encoding: `DSSEv1`, and length and bytes of type and payload.
pub fn encode(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    message.extend_from_slice(payload);
    message
}

/// What came of holding signatures against keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Ids of the keys that have signed.
    pub by: Vec<String>,
    /// Key ids, as the envelope says them, of signatures by none of the keys.
    pub unknown: Vec<String>,
    /// What is wrong.
    pub problems: Vec<SignatureProblem>,
}

/// What is wrong with an envelope's signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "signature", rename_all = "kebab-case")]
pub enum SignatureProblem {
    /// It says that it is by a key, and is not.
    Wrong {
        /// The key's id.
        key: String,
    },
    /// One key has signed more than once, which counts once and should not be.
    Twice {
        /// The key's id.
        key: String,
    },
    /// Too few of the keys have signed.
    TooFew {
        /// How many must.
        threshold: usize,
        /// How many have.
        found: usize,
        /// The ids of those that have not.
        wanted: Vec<String>,
        /// Who else has signed, by their own word.
        unknown: Vec<String>,
    },
}

impl fmt::Display for SignatureProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { key } => write!(f, "the signature that names key {key} is not by it"),
            Self::Twice { key } => write!(f, "key {key} has signed more than once"),
            Self::TooFew { threshold, found, wanted, unknown } => {
                write!(
                    f,
                    "{threshold} of the given keys must have signed, found {found}; not by {}",
                    wanted.join(", ")
                )?;
                if !unknown.is_empty() {
                    write!(f, "; by others: {}", unknown.join(", "))?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_the_specifications() {
        // The example of DSSE's protocol.md.
        let message = encode("http://example.com/HelloWorld", b"hello world");
        assert_eq!(message, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
