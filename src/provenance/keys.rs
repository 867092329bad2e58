//! Keys: ed25519 (RFC 8032), private ones as PKCS#8 and public ones as SPKI, both in PEM (RFC 8410),
//! as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::DecodePublicKey;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::descriptor::decode_base64;
use super::key_form::{ASK, tell};
use crate::digest::Digest;
use crate::error::{Class, Fault};

/// The most bytes that a key file may have.
const LARGEST: u64 = 64 * 1024;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error("cannot read the key {path}")]
    Read {
        /// The key file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is protected by a passphrase, which nobody is asked for here.
    #[error("the key {path} is protected by a passphrase")]
    Encrypted {
        /// The key file.
        path: PathBuf,
    },
    /// It is a key of another kind or form.
    #[error("an ed25519 {wanted} key in PEM is wanted, and {path} is {found}")]
    Form {
        /// The key file.
        path: PathBuf,
        /// `private (PKCS#8)` or `public (SPKI)`.
        wanted: &'static str,
        /// What it is.
        found: String,
        /// How to come to what is wanted.
        hint: &'static str,
    },
}

impl Fault for KeyError {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { .. } => "name a readable key file".into(),
            Self::Encrypted { .. } => {
                "`openssl pkey -in KEY -out PLAIN` writes one without; keep it where nobody else can read it".into()
            }
            Self::Form { hint, .. } => (*hint).into(),
        })
    }
}

/// A key that signs.
pub struct PrivateKey(SigningKey);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "private key of {}", self.public().id())
    }
}

impl PrivateKey {
    /// Reads the PEM file at `path`. Also tells whether others than its owner may read it.
    pub fn read(path: &Path) -> Result<(Self, bool), KeyError> {
        let (bytes, mode) = read_file(path)?;
        let text = String::from_utf8_lossy(&bytes);
        // The older form of encryption stands inside a block of another name.
        if label(&text) == Some("ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
            return Err(KeyError::Encrypted { path: path.to_owned() });
        }
        let key = SigningKey::from_pkcs8_pem(text.trim());
        let key = key.map_err(|_| other(path, "private (PKCS#8)", &bytes, &text))?;
        Ok((Self(key), mode & 0o077 != 0))
    }

    /// Signs `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// The key that verifies.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }
}

/// A key that verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads the PEM file at `path`.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let (bytes, _) = read_file(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let key = VerifyingKey::from_public_key_pem(text.trim());
        let key = key.map_err(|_| other(path, "public (SPKI)", &bytes, &text))?;
        // With such a key one signature can be made to fit many messages.
        if key.is_weak() {
            let found = "a key of small order, which proves nothing".into();
            return Err(KeyError::Form { path: path.to_owned(), wanted: "public (SPKI)", found, hint: ASK });
        }
        Ok(Self(key))
    }

    /// Its id: the sha256 of its SPKI DER form, which is what
    /// `openssl pkey -pubin -in PUBLIC -outform DER | sha256sum` prints.
    pub fn id(&self) -> String {
        // An ed25519 key always has this form; an empty one would be the id of no key.
        let der = self.0.to_public_key_der().map(|der| der.as_bytes().to_vec()).unwrap_or_default();
        Digest::of(&der).to_string()
    }

    /// Whether `signature` is this key's under `message`. Strict: no signature but the signer's own passes.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let signature = <[u8; 64]>::try_from(signature).map(|bytes| Signature::from_bytes(&bytes));
        signature.is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

/// The bytes of the key file and its mode.
fn read_file(path: &Path) -> Result<(Vec<u8>, u32), KeyError> {
    let failed = |source| KeyError::Read { path: path.to_owned(), source };
    // Asked before it is opened: opening a pipe would wait for ever.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, mode))
}

/// The error that the file is no key as `wanted`.
fn other(path: &Path, wanted: &'static str, bytes: &[u8], text: &str) -> KeyError {
    let lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN ")).skip(1);
    let body: String = lines.take_while(|line| !line.starts_with("-----")).collect();
    let inner = decode_base64(&body).unwrap_or_default();
    let mut found = tell(bytes, label(text).map(|label| (label, inner.as_slice())), wanted.starts_with("private"));
    let blocks = text.lines().filter(|line| line.trim().starts_with("-----BEGIN ")).count();
    if blocks > 1 {
        let half = wanted.split(' ').next().unwrap_or_default();
        if found.what == format!("an ed25519 {half} key") {
            found.hint = "write the one that is meant into a file of its own";
        }
        found.what = format!("a file of {blocks} PEM blocks, the first of which is {}", found.what);
    }
    KeyError::Form { path: path.to_owned(), wanted, found: found.what, hint: found.hint }
}

/// The label of the first PEM block (RFC 7468).
fn label(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
}
