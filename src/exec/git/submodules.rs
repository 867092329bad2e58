//! `.gitmodules` and the urls in it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use git2::Repository;

use super::GitError;
use super::listing::{Kind, Listing};

/// The urls of `.gitmodules`, by submodule path.
#[derive(Debug, Default)]
pub(super) struct Modules(BTreeMap<String, String>);

impl Modules {
    pub(super) fn url(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// `parent/child`, where either may be empty.
pub(super) fn join_path(parent: &str, child: &str) -> String {
    match (parent, child) {
        ("", path) | (path, "") => path.to_owned(),
        (parent, child) => format!("{parent}/{child}"),
    }
}

/// Reads the `.gitmodules` at the root of `listing`; without one there are no urls. `shown` names
/// the repository in messages.
pub(super) fn read_modules(
    repository: &Repository,
    listing: &Listing,
    shown: &str,
    scratch: &Path,
) -> Result<Modules, GitError> {
    let Some(entry) = listing.entries.iter().find(|entry| entry.path == b".gitmodules") else {
        return Ok(Modules::default());
    };
    let bad = |reason: String| GitError::BadModules { path: shown.to_owned(), reason };
    if !matches!(entry.kind, Kind::File { .. }) {
        return Err(bad("it is not a file".into()));
    }
    let object = |source| GitError::Object { path: ".gitmodules".into(), object: entry.id.to_string(), source };
    let blob = repository.find_blob(entry.id).map_err(object)?;
    let failed = |source| GitError::Io { path: scratch.to_owned(), source };
    let mut file = tempfile::NamedTempFile::new_in(scratch).map_err(failed)?;
    file.write_all(blob.content()).map_err(failed)?;
    parse_modules(file.path()).map_err(|error| bad(error.message().to_owned()))
}

fn parse_modules(file: &Path) -> Result<Modules, git2::Error> {
    let mut paths = BTreeMap::new();
    let mut urls = BTreeMap::new();
    let config = git2::Config::open(file)?;
    let mut entries = config.entries(Some(r"^submodule\..*\.(path|url)$"))?;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let (Ok(name), Ok(value)) = (entry.name(), entry.value()) else { continue };
        // A submodule's name may have dots in it, so the key is taken from the end.
        let Some((name, key)) = name.strip_prefix("submodule.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let values = if key == "path" { &mut paths } else { &mut urls };
        values.insert(name.to_owned(), value.to_owned());
    }
    let of_path = |(name, path): (String, String)| Some((path.trim_end_matches('/').to_owned(), urls.remove(&name)?));
    Ok(Modules(paths.into_iter().filter_map(of_path).collect()))
}

/// Where the submodule at `path` of the repository published at `parent` is published. `shown` names
/// the submodule in messages.
pub(super) fn resolve_url(parent: &str, modules: &Modules, path: &str, shown: &str) -> Result<String, GitError> {
    let url = modules.url(path).ok_or_else(|| GitError::NoUrl { path: shown.to_owned() })?;
    join_url(parent, url).ok_or_else(|| GitError::BadUrl {
        path: shown.to_owned(),
        url: url.to_owned(),
        parent: parent.to_owned(),
    })
}

/// `url`, which may begin with `./` or `../`, as seen from the repository at `parent`: each `../`
/// takes one part away from the parent's url, beginning with the repository itself, as
/// `git submodule` does it. `None` when nothing is left to take away.
fn join_url(parent: &str, url: &str) -> Option<String> {
    if !url.starts_with("./") && !url.starts_with("../") {
        return Some(url.to_owned());
    }
    // What stands before the path, with the character that ends it: never taken away.
    let parent = parent.trim_end_matches('/');
    let root = match parent.split_once("://") {
        Some((scheme, rest)) => scheme.len() + 3 + rest.find('/')? + 1,
        None if crate::mirror::is_local(parent) => usize::from(parent.starts_with('/')),
        None => parent.find(':')? + 1,
    };
    let (root, path) = parent.split_at(root);
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut rest = url;
    loop {
        if let Some(after) = rest.strip_prefix("../") {
            match parts.pop()? {
                // A parent that is itself relative can be left upwards: `./x.git` lies in `.`.
                "." | ".." => return None,
                _ => rest = after,
            }
        } else if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else {
            break;
        }
    }
    parts.extend(rest.split('/').filter(|part| !part.is_empty()));
    Some(format!("{root}{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_urls_are_taken_from_the_parents_url() {
        for (parent, url, joined) in [
            ("https://h/org/a.git", "../b.git", Some("https://h/org/b.git")),
            ("https://h/org/a.git/", "../../x/b", Some("https://h/x/b")),
            ("https://h/org/a", "./b", Some("https://h/org/a/b")),
            ("https://h:80/a", "../b", Some("https://h:80/b")),
            ("https://h/a", "../../b", None),
            ("https://h", "../b", None),
            ("https://h/a", "https://other/b", Some("https://other/b")),
            ("git@h:org/a.git", "../b.git", Some("git@h:org/b.git")),
            ("git@h:a.git", "../b.git", Some("git@h:b.git")),
            ("git@h:a.git", "../../b.git", None),
            ("file:///srv/a.git", "../b.git", Some("file:///srv/b.git")),
            ("file:///a.git", "../b.git", Some("file:///b.git")),
            ("./repositories/a.git", "../b.git", Some("./repositories/b.git")),
            ("./a.git", "../b.git", Some("./b.git")),
            ("./a.git", "../../b.git", None),
            ("/srv/a.git", "../b.git", Some("/srv/b.git")),
            ("/srv/a.git", "../.././b.git", Some("/b.git")),
            ("/a.git", "../../b.git", None),
        ] {
            assert_eq!(join_url(parent, url).as_deref(), joined, "{parent} + {url}");
        }
    }

    #[test]
    fn modules_are_read_by_path() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = "[submodule \"A.b/c\"]\n\tpath = 3rdparty/c/\n\turl = ../c.git ; why\n\tignore = dirty\n\
                    [submodule \"no url\"]\n\tpath = x\n[submodule \"q\"]\npath = \"with space\"\nurl = https://h/q#1\n";
        file.write_all(text.as_bytes()).unwrap();
        let modules = parse_modules(file.path()).unwrap();
        assert_eq!(modules.url("3rdparty/c"), Some("../c.git"));
        assert_eq!(modules.url("with space"), Some("https://h/q"));
        assert_eq!(modules.url("x"), None);
        std::fs::write(file.path(), "[submodule \"x\"\n").unwrap();
        assert!(parse_modules(file.path()).is_err());
    }
}
