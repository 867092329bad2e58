//! What belongs to a person and a machine, not to the pins: mirrors, caches, vendored inputs, and who
//! builds there.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::bounded;
use crate::error::{Class, Fault};
use crate::mirror::{Mirrors, Table};
use crate::provenance::BuilderId;
use crate::store::Store;

/// How inputs are obtained on this machine, and who builds on it. None of it can change what is built,
/// only whether the pinned bytes are found, and what an attestation says of its origin.
#[derive(Debug)]
pub struct Settings {
    /// Other places to fetch from.
    pub mirrors: Mirrors,
    /// Files by digest: vendored directories and the cache.
    pub store: Store,
    /// Use nothing but this host.
    pub offline: bool,
    /// The host's `git`, for what the built-in one cannot do.
    pub git: Option<PathBuf>,
    /// Who builds, where the user's configuration says so.
    pub builder: Option<BuilderId>,
}

/// The user's configuration file, `config.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Who builds, as attestations state it.
    pub builder_id: Option<BuilderId>,
    /// Other places to fetch from.
    #[serde(default)]
    pub mirrors: Table,
}

/// Why the configuration file is refused. One that cannot be read is never ignored.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It exists and cannot be read.
    #[error("cannot read the configuration file {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML, has an unknown key or a value of another form.
    #[error("{path} is not valid\n{error}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The parser's report, with line and caret.
        error: toml::de::Error,
    },
}

impl Fault for ConfigError {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { .. } => "make it a readable file, or move it away".into(),
            Self::Invalid { .. } => {
                "it may hold builder_id = \"URI\", and mirrors as \"URL\" = \"PATH_OR_URL\" below [mirrors]".into()
            }
        })
    }
}

/// The most bytes that the configuration file may have.
const LARGEST: u64 = 1 << 20;

impl Config {
    /// Reads the file at `path`; one that does not exist says nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match bounded::read_text(path, LARGEST) {
            Ok(text) => toml::from_str(&text).map_err(|error| ConfigError::Invalid { path: path.to_owned(), error }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        }
    }
}

/// Where the user's configuration file lies, from the values of `XDG_CONFIG_HOME` and `HOME` (XDG
/// base directory specification: a relative `XDG_CONFIG_HOME` is invalid and ignored).
pub fn config_path(xdg_config_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let directory =
        xdg_config_home.and_then(absolute).or_else(|| home.and_then(absolute).map(|home| home.join(".config")))?;
    Some(directory.join("rebuild-model").join("config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_file_says_who_builds_and_where_to_fetch_from() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        assert_eq!(Config::read(&path).unwrap().builder_id, None);
        std::fs::write(&path, "builder_id = \"urn:example:me\"\n[mirrors]\n\"https://h/a\" = \"/m\"\n").unwrap();
        let config = Config::read(&path).unwrap();
        assert_eq!(config.builder_id.unwrap().as_str(), "urn:example:me");
        let mut mirrors = Mirrors::default();
        mirrors.add_table(&config.mirrors, directory.path());
        assert_eq!(mirrors.candidates("https://h/a"), ["/m", "https://h/a"]);
    }

    #[test]
    fn the_configuration_file_is_refused_with_line_and_caret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        for (text, place) in [
            ("[mirrors]\n\"https://h/a\" = 3\n", "line 2"),
            ("[mirrors]\nh = \"/srv\"\n", "what is mirrored is not a url"),
            ("[mirror]\n", "unknown field `mirror`"),
            ("builder_id = \"me\"\n", "this one has no scheme"),
            ("builder_id = \"https://me:secret@example.org/\"\n", "a user or a password"),
            ("builder_id = 3\n", "line 1"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Config::read(&path).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(place) && message.contains("line ") && message.contains('^'), "{text}: {message}");
            assert!(error.hint().is_some());
        }
        assert!(matches!(Config::read(directory.path()), Err(ConfigError::Unreadable { .. })));
        assert!(matches!(Config::read(Path::new("/dev/zero")), Err(ConfigError::Unreadable { .. })));
        std::fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
        assert!(matches!(Config::read(&path), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn the_configuration_file_lies_where_the_specification_says() {
        let path = |xdg: Option<&str>, home: Option<&str>| config_path(xdg.map(OsStr::new), home.map(OsStr::new));
        assert_eq!(path(Some("/c"), Some("/h")), Some("/c/rebuild-model/config.toml".into()));
        assert_eq!(path(Some("c"), Some("/h")), Some("/h/.config/rebuild-model/config.toml".into()));
        assert_eq!(path(None, None), None);
    }
}
