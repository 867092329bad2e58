//! What a key file is, for whoever gave one of another kind or form: one sentence, and the way out.

/// The most bytes in front of a key in which its algorithm is named.
const HEAD: usize = 64;

/// How to get a private key.
const MAKE: &str = "`openssl genpkey -algorithm ed25519 -out KEY` makes one, and `openssl pkey -in KEY -pubout -out \
                    PUBLIC` the public key for those who verify";

/// How to get a public key.
pub(super) const ASK: &str = "get the public key of whoever signed: they write it with \
                              `openssl pkey -in KEY -pubout -out PUBLIC`";

/// How to get the public key of a private one.
const DERIVE: &str = "give the public key: `openssl pkey -in KEY -pubout -out PUBLIC` writes it";

/// What it is to give the public key for signing.
const WANT_PRIVATE: &str = "give the private key that belongs to it; what it signs, this one verifies";

/// A key file that is no ed25519 key in PEM of the wanted half.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Other {
    /// What it is, with an article.
    pub what: String,
    /// How to come to what is wanted.
    pub hint: &'static str,
}

/// What `bytes` are, where a private key is wanted or, if `private` is not set, a public one. `inner` is
/// what the first PEM block holds, by its `label`; a block that does not decode is one of nothing.
pub(super) fn tell(bytes: &[u8], pem: Option<(&str, &[u8])>, private: bool) -> Other {
    let other = |what: String, hint| Other { what, hint };
    let elsewhere = if private { MAKE } else { ASK };
    let Some((label, inner)) = pem else {
        if let Some(half) = half_of_der(bytes) {
            let what = format!("{} {half} key in DER", algorithm(bytes));
            let hint = match (algorithm(bytes), half, private) {
                ("an ed25519", "private", true) => "`openssl pkey -inform DER -in KEY -out PEM` writes it in PEM",
                ("an ed25519", "public", false) => {
                    "`openssl pkey -pubin -inform DER -in PUBLIC -out PEM` writes it in PEM"
                }
                ("an ed25519", "private", false) => {
                    "give the public key: `openssl pkey -inform DER -in KEY -pubout -out PUBLIC` writes it"
                }
                ("an ed25519", _, _) => WANT_PRIVATE,
                _ => elsewhere,
            };
            return other(what, hint);
        }
        let ssh = bytes.starts_with(b"ssh-") || bytes.starts_with(b"ecdsa-") || bytes.starts_with(b"sk-");
        let what = if ssh { "a public key in OpenSSH's own format" } else { "a file without a PEM block" };
        return other(what.into(), elsewhere);
    };
    let what = match label {
        "RSA PRIVATE KEY" => "an RSA private key".into(),
        "RSA PUBLIC KEY" => "an RSA public key".into(),
        "EC PRIVATE KEY" => "an elliptic-curve (ECDSA) private key".into(),
        "DSA PRIVATE KEY" => "a DSA private key".into(),
        "OPENSSH PRIVATE KEY" => "a private key in OpenSSH's own format".into(),
        "SSH2 PUBLIC KEY" => "a public key in an SSH format".into(),
        "CERTIFICATE" | "TRUSTED CERTIFICATE" => "a certificate".into(),
        "PRIVATE KEY" if half_of_der(inner) == Some("private") => format!("{} private key", algorithm(inner)),
        "PUBLIC KEY" if half_of_der(inner) == Some("public") => format!("{} public key", algorithm(inner)),
        label => format!("a block called `{label}`"),
    };
    let hint = match (what.as_str(), private) {
        ("an ed25519 private key", false) => DERIVE,
        ("an ed25519 public key", true) => WANT_PRIVATE,
        _ => elsewhere,
    };
    other(what, hint)
}

/// Which half of a pair DER bytes are: PKCS#8 (RFC 5958) begins with a version, SPKI (RFC 5280, 4.1)
/// with the algorithm. The forms of RSA's own standard have no algorithm, and several numbers.
fn half_of_der(bytes: &[u8]) -> Option<&'static str> {
    let rest = inside(bytes)?;
    match rest {
        [0x02, 0x01, 0 | 1, ..] => Some("private"),
        [0x30 | 0x02, ..] => Some("public"),
        _ => None,
    }
}

/// What a DER sequence holds, if the bytes begin with one.
fn inside(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(&[0x30])?;
    match *rest.first()? {
        0..=0x7f => rest.get(1..),
        0x81 => rest.get(2..),
        0x82 => rest.get(3..),
        _ => None,
    }
}

/// The algorithm that the beginning of a key in DER names by its object identifier, with an article.
fn algorithm(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(HEAD)];
    let names = |id: &[u8]| head.windows(id.len()).any(|window| window == id);
    // 1.3.101.110 to 113 (RFC 8410), 1.2.840.113549.1.1 (RFC 8017), 1.2.840.10045.2.1 (RFC 5480), 1.2.840.10040.4.1.
    let known: [(&[u8], &str); 7] = [
        (&[0x06, 3, 0x2b, 0x65, 0x6e], "an X25519"),
        (&[0x06, 3, 0x2b, 0x65, 0x6f], "an X448"),
        (&[0x06, 3, 0x2b, 0x65, 0x70], "an ed25519"),
        (&[0x06, 3, 0x2b, 0x65, 0x71], "an ed448"),
        (&[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01], "an RSA"),
        (&[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01], "an elliptic-curve (ECDSA)"),
        (&[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01], "a DSA"),
    ];
    let found = known.iter().find(|(id, _)| names(id)).map(|(_, name)| *name);
    // RSA's own form begins with a large number, the modulus, or with a version and that.
    let is_number = inside(bytes).is_some_and(|rest| rest.starts_with(&[0x02]));
    found.unwrap_or(if is_number { "an RSA" } else { "an unknown" })
}
