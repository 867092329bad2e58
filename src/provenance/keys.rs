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
    #[error("{path} is not a {wanted} key: found {found}")]
    Form {
        /// The key file.
        path: PathBuf,
        /// `private` or `public`.
        wanted: &'static str,
        /// What it is.
        found: String,
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
            Self::Form { wanted: "private", .. } => {
                "an ed25519 key in PKCS#8 PEM is wanted: `openssl genpkey -algorithm ed25519 -out KEY`".into()
            }
            Self::Form { .. } => {
                "an ed25519 key in SPKI PEM is wanted: `openssl pkey -in KEY -pubout -out PUBLIC`".into()
            }
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
        let (text, mode) = read_file(path)?;
        let form = |found: &str| KeyError::Form { path: path.to_owned(), wanted: "private", found: found.into() };
        let key = match label(&text) {
            Some("ENCRYPTED PRIVATE KEY") => return Err(KeyError::Encrypted { path: path.to_owned() }),
            // The older form of encryption, inside a block of another name.
            Some(_) if text.contains("Proc-Type: 4,ENCRYPTED") => {
                return Err(KeyError::Encrypted { path: path.to_owned() });
            }
            Some("PRIVATE KEY") => SigningKey::from_pkcs8_pem(text.trim()).map_err(|error| form(&error.to_string()))?,
            Some(label) => return Err(form(&format!("a block called `{label}`"))),
            None => return Err(form("no PEM block")),
        };
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
        let (text, _) = read_file(path)?;
        let form = |found: &str| KeyError::Form { path: path.to_owned(), wanted: "public", found: found.into() };
        match label(&text) {
            Some("PUBLIC KEY") => {
                let key = VerifyingKey::from_public_key_pem(text.trim()).map_err(|error| form(&error.to_string()))?;
                // With such a key one signature can be made to fit many messages.
                if key.is_weak() { Err(form("a key of small order, which proves nothing")) } else { Ok(Self(key)) }
            }
            Some(label) => Err(form(&format!("a block called `{label}`"))),
            None => Err(form("no PEM block")),
        }
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

/// The text of the key file and its mode.
fn read_file(path: &Path) -> Result<(String, u32), KeyError> {
    let failed = |source| KeyError::Read { path: path.to_owned(), source };
    // Asked before it is opened: opening a pipe would wait for ever.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
    Ok((text, mode))
}

/// The label of the first PEM block (RFC 7468).
fn label(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
}
