//! The requirements files that we take: exact versions with hashes, and nothing that would let pip
//! look elsewhere.
//!
//! This is a small part of pip's format. What is not in it is refused with its line, since a line
//! that we read in another way than pip does would be a hole.

use std::collections::BTreeMap;

use crate::digest::Digest;

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The line it begins in, counted from 1.
    pub line: usize,
    /// Name, with its extras.
    pub name: String,
    /// The exact version.
    pub version: String,
    /// When it applies (PEP 508), verbatim.
    pub marker: Option<String>,
    /// The digests of the files that may satisfy it; at least one.
    pub hashes: Vec<Digest>,
}

/// Why a requirements file is not taken.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the line, counted from 1, and the text in question")]
pub enum RequirementsError {
    /// A line of options: they change where packages come from.
    #[error("line {line}: the option `{found}` is not allowed, a requirement is wanted")]
    Option { line: usize, found: String },
    /// A url or a path instead of a name and a version.
    #[error("line {line}: `{found}` is a url or a path, `name==version` is wanted")]
    Url { line: usize, found: String },
    /// Not `name==version`.
    #[error("line {line}: `{found}` is not `name==version` with one exact version")]
    NotExact { line: usize, found: String },
    /// No hash.
    #[error("line {line}: {name} has no `--hash=sha256:…`")]
    NoHash { line: usize, name: String },
    /// Something else than a sha256 hash.
    #[error("line {line}: `{found}` is not `--hash=sha256:` and 64 lower-case hexadecimal digits")]
    NotAHash { line: usize, found: String },
    /// The same package twice, not told apart by markers.
    #[error("line {line}: {name} is required in line {first} already")]
    Twice { line: usize, name: String, first: usize },
    /// The last line says that it goes on.
    #[error("line {line}: the file ends where the line should go on")]
    CutOff { line: usize },
    /// No requirement at all.
    #[error("it has no requirement")]
    Empty,
}

/// Reads a requirements file.
pub fn parse(text: &str) -> Result<Vec<Requirement>, RequirementsError> {
    let mut requirements = Vec::new();
    let mut seen: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for (line, text) in logical_lines(text)? {
        let requirement = parse_line(line, &text)?;
        let marked = requirement.marker.is_some();
        let name = normalized(&requirement.name);
        if let Some((first, first_marked)) = seen.insert(name.clone(), (line, marked))
            && !(marked && first_marked)
        {
            return Err(RequirementsError::Twice { line, name, first });
        }
        requirements.push(requirement);
    }
    if requirements.is_empty() { Err(RequirementsError::Empty) } else { Ok(requirements) }
}

impl std::fmt::Display for Requirement {
    /// As a line that pip reads as we do.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=={}", self.name, self.version)?;
        if let Some(marker) = &self.marker {
            write!(f, " ; {marker}")?;
        }
        self.hashes.iter().try_for_each(|hash| write!(f, " --hash=sha256:{hash}"))
    }
}

/// Lines without comments, put together where one ends in a backslash, each with its first number.
fn logical_lines(text: &str) -> Result<Vec<(usize, String)>, RequirementsError> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let comment = line.trim_start().starts_with('#');
        let (line, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(line) if !comment => (line, true),
            _ => (line, false),
        };
        let content = if comment { "" } else { line.find(" #").map_or(line, |at| &line[..at]) };
        let (_, joined) = open.get_or_insert_with(|| (last, String::new()));
        joined.push(' ');
        joined.push_str(content.trim());
        if !goes_on && let Some((first, joined)) = open.take() {
            lines.push((first, joined.trim().to_owned()));
        }
    }
    if open.is_some() {
        return Err(RequirementsError::CutOff { line: last });
    }
    lines.retain(|(_, line)| !line.is_empty());
    Ok(lines)
}

fn parse_line(line: usize, text: &str) -> Result<Requirement, RequirementsError> {
    let found = || text.split(" --hash").next().unwrap_or(text).trim().to_owned();
    if text.starts_with('-') {
        let option = text.split([' ', '=']).next().unwrap_or(text);
        return Err(RequirementsError::Option { line, found: option.to_owned() });
    }
    let (head, options) = text.split_at(text.find(" --").unwrap_or(text.len()));
    let (exact, marker) = match head.split_once(';') {
        Some((exact, marker)) => (exact.trim(), Some(marker.trim().to_owned())),
        None => (head.trim(), None),
    };
    if exact.contains("://") || exact.contains('@') || exact.contains('/') || exact.starts_with('.') {
        return Err(RequirementsError::Url { line, found: found() });
    }
    let not_exact = || RequirementsError::NotExact { line, found: found() };
    let (name, version) = exact.split_once("==").ok_or_else(not_exact)?;
    let (name, version) = (name.trim_end().to_owned(), version.trim_start().to_owned());
    if !is_name(&name) || !is_version(&version) || marker.as_ref().is_some_and(String::is_empty) {
        return Err(not_exact());
    }
    let hashes: Vec<Digest> =
        options.split_whitespace().map(|option| parse_hash(line, option)).collect::<Result<_, _>>()?;
    if hashes.is_empty() {
        return Err(RequirementsError::NoHash { line, name });
    }
    Ok(Requirement { line, name, version, marker, hashes })
}

fn parse_hash(line: usize, option: &str) -> Result<Digest, RequirementsError> {
    if !option.starts_with("--hash") && option.starts_with('-') {
        return Err(RequirementsError::Option { line, found: option.to_owned() });
    }
    let digest = option.strip_prefix("--hash=sha256:").and_then(|digits| digits.parse().ok());
    digest.ok_or_else(|| RequirementsError::NotAHash { line, found: option.to_owned() })
}

/// A package's name, perhaps with extras in square brackets.
fn is_name(text: &str) -> bool {
    let (name, extras) = match text.split_once('[') {
        Some((name, extras)) => (name, extras.strip_suffix(']').unwrap_or("?")),
        None => (text, "x"),
    };
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    plain(name) && extras.split(',').all(|extra| plain(extra.trim()))
}

/// A version without wild card (PEP 440 in the form that indexes use).
pub(super) fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+!".contains(c))
}

/// Names that an index takes for the same (PEP 503); extras do not count.
fn normalized(name: &str) -> String {
    let name = name.split('[').next().unwrap_or(name).trim().to_ascii_lowercase();
    name.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn what_uv_and_pip_compile_write_is_read() {
        let text = format!(
            "# made by a tool \\\n\nml-dtypes==0.5.1 \\\n    --hash=sha256:{A} \\\n    --hash=sha256:{B}\n    # via numpy\n\
             numpy[x,y]==1.26.4 ; python_full_version < '3.12' --hash=sha256:{A} # why\n\
             numpy==2.0+cpu;python_full_version >= '3.12' --hash=sha256:{B}"
        );
        let found = parse(&text).unwrap();
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(lines[0], format!("ml-dtypes==0.5.1 --hash=sha256:{A} --hash=sha256:{B}"));
        assert_eq!(lines[1], format!("numpy[x,y]==1.26.4 ; python_full_version < '3.12' --hash=sha256:{A}"));
        assert_eq!(lines[2], format!("numpy==2.0+cpu ; python_full_version >= '3.12' --hash=sha256:{B}"));
        assert_eq!((found[0].line, found[1].line), (3, 7));
        assert_eq!(parse(&lines.join("\n")).unwrap().len(), 3);
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        let good = format!("six==1.16.0 --hash=sha256:{A}");
        let cases = [
            ("--index-url https://host/simple", "line 2: the option `--index-url`"),
            ("-r other.txt", "line 2: the option `-r`"),
            ("-e .", "line 2: the option `-e`"),
            ("https://host/a.whl", "line 2: `https://host/a.whl` is a url"),
            ("a @ https://host/a.whl --hash=sha256:x", "line 2: `a @ https://host/a.whl` is a url"),
            ("./a.whl", "line 2: `./a.whl` is a url or a path"),
            ("numpy>=1", "line 2: `numpy>=1` is not `name==version`"),
            ("numpy==1.*", "line 2: `numpy==1.*` is not"),
            ("numpy===1", "line 2: `numpy===1` is not"),
            ("numpy==1,<2", "line 2: `numpy==1,<2` is not"),
            ("numpy", "line 2: `numpy` is not"),
            ("nu mpy==1", "line 2: `nu mpy==1` is not"),
            ("numpy==${V}", "line 2: `numpy==${V}` is not"),
            ("numpy==1", "line 2: numpy has no `--hash"),
            ("numpy==1 --hash=sha512:aa", "line 2: `--hash=sha512:aa` is not"),
            ("numpy==1 --hash=sha256:AA", "line 2: `--hash=sha256:AA` is not"),
            ("numpy==1 --config-settings=x", "line 2: the option `--config-settings=x`"),
            (&good.replace("six", "Six"), "line 2: six is required in line 1 already"),
            ("numpy==1 \\", "line 2: the file ends where"),
        ];
        for (line, expected) in cases {
            let error = parse(&format!("{good}\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
        assert!(matches!(parse("# nothing\n"), Err(RequirementsError::Empty)));
    }
}
