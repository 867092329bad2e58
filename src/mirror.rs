//! Mirrors: other places that serve what is published under a url.
//!
//! A mirror replaces a url's beginning. What a mirror serves is checked like what the published
//! place serves, so a mirror needs no trust. Rules come from `--mirror`, from the user's
//! `config.toml` and from vendored inputs; a rule that cannot be read is an error, never ignored.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Class, Fault};

/// Mirror rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors {
    /// Longest prefix first; among equals the one given first.
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    prefix: String,
    replacement: String,
}

/// Why mirror rules are refused.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A `--mirror` that is not `URL=PATH_OR_URL`.
    #[error("`{text}` is not a mirror: {reason}")]
    Malformed {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of mirrors exists and cannot be read.
    #[error("cannot read the mirrors in {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file of mirrors is not TOML, has an unknown key or a value that is no mirror.
    #[error("{path} is not valid\n{error}")]
    Invalid {
        /// The file.
        path: String,
        /// The parser's report, with line and caret.
        error: toml::de::Error,
    },
}

impl Fault for MirrorError {
    fn class(&self) -> Class {
        Class::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed { .. } => {
                Some("write --mirror URL=PATH_OR_URL, as in --mirror https://github.com/=/srv/git".into())
            }
            Self::Unreadable { .. } => None,
            Self::Invalid { .. } => Some("mirrors are written as \"URL\" = \"PATH_OR_URL\" below [mirrors]".into()),
        }
    }
}

impl Mirrors {
    /// Adds a rule written as `URL=PATH_OR_URL`; a relative path is taken from `directory`.
    ///
    /// The first `=` divides the two; a url with an `=` in it can be mirrored by the configuration file.
    pub fn add(&mut self, text: &str, directory: &Path) -> Result<(), MirrorError> {
        let refused = |reason| MirrorError::Malformed { text: text.to_owned(), reason };
        let (prefix, replacement) = text.split_once('=').ok_or_else(|| refused("there is no `=` in it"))?;
        check_prefix(prefix).map_err(refused)?;
        check_replacement(replacement).map_err(refused)?;
        self.insert(prefix, replacement, directory);
        Ok(())
    }

    /// Adds the `[mirrors]` of the file at `path`, which holds nothing else, after the rules there are. Relative
    /// paths in it are taken from its directory. A file that does not exist adds nothing.
    pub fn add_file(&mut self, path: &Path) -> Result<(), MirrorError> {
        let shown = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(MirrorError::Unreadable { path: shown, source }),
        };
        let file: MirrorsFile = toml::from_str(&text).map_err(|error| MirrorError::Invalid { path: shown, error })?;
        self.add_table(&file.mirrors, path.parent().unwrap_or(Path::new(".")));
        Ok(())
    }

    /// Adds the rules of a table `[mirrors]`, after the rules there are; a relative path is taken from
    /// `directory`.
    pub fn add_table(&mut self, table: &Table, directory: &Path) {
        for (prefix, replacement) in &table.0 {
            self.insert(&prefix.0, &replacement.0, directory);
        }
    }

    /// Where `url` can be had: from its mirrors, the most specific first, and then from itself.
    pub fn candidates(&self, url: &str) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for place in self.rules.iter().filter_map(|rule| rule.apply(url)).chain([url.to_owned()]) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// What the rules mirror that belongs to a package registry by its host's name. Packages come
    /// through the clients of their registries, which know nothing of these rules.
    pub fn of_registries(&self) -> impl Iterator<Item = &str> {
        let is_registry = |prefix: &&str| {
            let host = prefix.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(rest));
            host.split(['.', '-', ':', '@']).any(|word| ["npm", "npmjs", "pypi"].contains(&word))
        };
        self.rules.iter().map(|rule| rule.prefix.as_str()).filter(is_registry)
    }

    fn insert(&mut self, prefix: &str, replacement: &str, directory: &Path) {
        let replacement = if is_local(replacement) && !replacement.starts_with("file://") {
            directory.join(replacement).display().to_string()
        } else {
            replacement.to_owned()
        };
        self.rules.push(Rule { prefix: prefix.to_owned(), replacement });
        self.rules.sort_by_key(|rule| std::cmp::Reverse(rule.prefix.len()));
    }
}

impl Rule {
    /// The place that stands for `url`, when the prefix is the whole of it (with or without `.git`)
    /// or ends where a part of its path ends.
    fn apply(&self, url: &str) -> Option<String> {
        let prefix = self.prefix.trim_end_matches('/');
        let bare = |text: &str| text.trim_end_matches('/').trim_end_matches(".git").to_owned();
        if bare(url) == bare(prefix) {
            return Some(self.replacement.clone());
        }
        let rest = url.strip_prefix(prefix)?.strip_prefix('/')?;
        Some(format!("{}/{rest}", self.replacement.trim_end_matches('/')))
    }
}

/// Whether `place` is on this host: a path or a `file://` url. Everything else needs the network.
pub fn is_local(place: &str) -> bool {
    if let Some((scheme, _)) = place.split_once("://") {
        return scheme == "file";
    }
    // `host:path` is how ssh remotes are written; a colon behind a slash belongs to a path.
    place.split('/').next().is_none_or(|first| !first.contains(':'))
}

/// The table `[mirrors]` of a file.
#[derive(Debug, Default, Deserialize)]
pub struct Table(BTreeMap<Prefix, Replacement>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MirrorsFile {
    #[serde(default)]
    mirrors: Table,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct Prefix(String);

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Replacement(String);

impl TryFrom<String> for Prefix {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        check_prefix(&text).map(|()| Self(text))
    }
}

impl TryFrom<String> for Replacement {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        check_replacement(&text).map(|()| Self(text))
    }
}

fn check_prefix(text: &str) -> Result<(), &'static str> {
    let written_like_a_url = text.contains("://") || text.starts_with("./") || text.starts_with('/') || !is_local(text);
    if text.trim() != text || text.contains(char::is_control) || !written_like_a_url || text.ends_with("://") {
        return Err("what is mirrored is not a url, nor the beginning of one");
    }
    Ok(())
}

fn check_replacement(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("the place of the mirror is empty");
    }
    if text.trim() != text || text.contains(char::is_control) || text.starts_with('-') || text.ends_with("://") {
        return Err("the place of the mirror is neither a path nor a url");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(rules: &[&str]) -> Mirrors {
        let mut mirrors = Mirrors::default();
        for rule in rules {
            mirrors.add(rule, Path::new("/here")).unwrap();
        }
        mirrors
    }

    #[test]
    fn the_longest_prefix_comes_first_and_the_url_itself_last() {
        let mirrors = mirrors(&[
            "https://github.com/=https://mirror.example/github",
            "https://github.com/apache/tvm=/srv/tvm.git",
            "https://github.com/apache=local",
        ]);
        assert_eq!(
            mirrors.candidates("https://github.com/apache/tvm.git"),
            [
                "/srv/tvm.git",
                "/here/local/tvm.git",
                "https://mirror.example/github/apache/tvm.git",
                "https://github.com/apache/tvm.git"
            ]
        );
        assert_eq!(mirrors.candidates("https://example.org/x"), ["https://example.org/x"]);
    }

    #[test]
    fn a_prefix_ends_where_a_part_of_the_path_ends() {
        let mirrors = mirrors(&["https://github.com/apache/tvm=/srv/tvm"]);
        assert_eq!(mirrors.candidates("https://github.com/apache/tvm-ffi"), ["https://github.com/apache/tvm-ffi"]);
        assert_eq!(mirrors.candidates("https://github.com/apache/tvm/")[0], "/srv/tvm");
        assert_eq!(mirrors.candidates("https://github.com/apache/tvm/sub")[0], "/srv/tvm/sub");
        let with_suffix = super::tests::mirrors(&["https://github.com/apache/tvm.git=/srv/tvm"]);
        assert_eq!(with_suffix.candidates("https://github.com/apache/tvm")[0], "/srv/tvm");
    }

    #[test]
    fn rules_for_the_registries_of_packages_are_known() {
        let mirrors = mirrors(&[
            "https://registry.npm.example/=/srv/npm",
            "https://pypi.example:443=/srv/pypi",
            "https://git.example/npm/pypi=/srv/git",
            "./npm/=/srv/git",
        ]);
        let found: Vec<&str> = mirrors.of_registries().collect();
        assert_eq!(found, ["https://registry.npm.example/", "https://pypi.example:443"]);
    }

    #[test]
    fn a_malformed_mirror_is_refused() {
        for text in
            ["", "https://x", "=/srv", "https://x=", "x=/srv", "https://x= /srv", "https://=/srv", "https://x=https://"]
        {
            let error = Mirrors::default().add(text, Path::new("/")).unwrap_err();
            assert_eq!(error.class(), Class::Usage, "{text}");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn a_file_adds_rules_after_the_flags() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mirrors.toml");
        std::fs::write(&path, "[mirrors]\n\"https://h/a\" = \"mirror\"\n").unwrap();
        let mut mirrors = mirrors(&["https://h/a=/flag"]);
        mirrors.add_file(&path).unwrap();
        let beside = directory.path().join("mirror").display().to_string();
        assert_eq!(mirrors.candidates("https://h/a"), ["/flag".to_owned(), beside, "https://h/a".to_owned()]);
        mirrors.add_file(&directory.path().join("none.toml")).unwrap();
    }

    #[test]
    fn a_file_is_refused_with_line_and_caret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mirrors.toml");
        for (text, place) in [
            ("[mirrors]\n\"https://h/a\" = 3\n", "line 2"),
            ("[mirrors]\n\"https://h/a\" = \"\"\n", "the place of the mirror is empty"),
            ("[mirrors]\nh = \"/srv\"\n", "what is mirrored is not a url"),
            ("[mirror]\n", "unknown field `mirror`"),
            ("mirrors = [\n", "line 1"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Mirrors::default().add_file(&path).unwrap_err().to_string();
            assert!(message.contains(place) && message.contains("line ") && message.contains('^'), "{text}: {message}");
        }
        let error = Mirrors::default().add_file(directory.path()).unwrap_err();
        assert!(matches!(error, MirrorError::Unreadable { .. }), "{error}");
    }

    #[test]
    fn places_on_this_host_are_told_from_others() {
        for place in ["/a/b", "./a", "a/b", "file:///a", "/a:b", "./a:b"] {
            assert!(is_local(place), "{place}");
        }
        for place in ["https://h/a", "http://h", "git@h:a/b.git", "h:a", "ssh://h/a", "git://h/a", "ext::sh -c x"] {
            assert!(!is_local(place), "{place}");
        }
    }
}
