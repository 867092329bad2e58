//! The environment that commands get: a scrubbed base, and for steps with network what the host's
//! network needs. Nothing of the caller's environment goes further than these lists.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

/// Variables with the same value on every machine. They are part of every step's key.
///
/// `SOURCE_DATE_EPOCH` follows the reproducible-builds.org specification. 315532800 is 1980-01-01,
/// the earliest time that a zip member, and so a wheel, can carry.
const CONSTANT: [(&str, &str); 8] = [
    ("LC_ALL", "C.UTF-8"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("SOURCE_DATE_EPOCH", "315532800"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONNOUSERSITE", "1"),
    ("TERM", "dumb"),
];

/// What a network needs that only the host knows: proxies, certificates, indexes.
const PASSED_THROUGH: [&str; 33] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_RETRIES",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_CAFILE",
    "npm_config_registry",
    "npm_config_userconfig",
    "npm_config_cafile",
];

/// What there was of these when the program began. libgit2's set-up puts `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` into our own environment, and those are not the caller's.
static CALLER: LazyLock<BTreeMap<&str, OsString>> =
    LazyLock::new(|| PASSED_THROUGH.iter().filter_map(|&name| Some((name, env::var_os(name)?))).collect());

/// Remembers the caller's environment as it is now.
pub fn remember_caller() {
    LazyLock::force(&CALLER);
}

/// The constant part of the base, as it enters step keys.
pub fn constant() -> BTreeMap<String, String> {
    CONSTANT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Names of the variables that steps with network get from the caller.
pub fn passed_through() -> Vec<String> {
    CALLER.keys().map(|&name| name.to_owned()).collect()
}

/// The whole environment of a step's commands, without the step's own variables.
///
/// `scratch` is the step's scratch directory, `path` what `PATH` is made of.
pub fn base(scratch: &Path, path: OsString, network: bool) -> BTreeMap<String, OsString> {
    let mut environment: BTreeMap<String, OsString> =
        constant().into_iter().map(|(name, value)| (name, value.into())).collect();
    let temporary = scratch.join("tmp");
    for name in ["TMPDIR", "TMP", "TEMP"] {
        environment.insert(name.to_owned(), temporary.clone().into());
    }
    let home = scratch.join("home");
    environment.insert("XDG_CACHE_HOME".to_owned(), home.join(".cache").into());
    environment.insert("HOME".to_owned(), home.into());
    environment.insert("PATH".to_owned(), path);
    if network {
        environment.extend(CALLER.iter().map(|(&name, value)| (name.to_owned(), value.clone())));
        add_user_configuration(&mut environment);
    }
    environment
}

/// With a private HOME, package clients no longer find the person's own configuration, which names
/// the index to use in many companies; they are pointed to it.
fn add_user_configuration(environment: &mut BTreeMap<String, OsString>) {
    let Some(home) = env::var_os("HOME").map(std::path::PathBuf::from) else { return };
    let files = [("NPM_CONFIG_USERCONFIG", ".npmrc"), ("PIP_CONFIG_FILE", ".config/pip/pip.conf")];
    for (name, file) in files {
        let file = home.join(file);
        let given = environment.keys().any(|key| key.eq_ignore_ascii_case(name));
        if file.is_file() && !given {
            environment.insert(name.to_owned(), file.into());
        }
    }
}
