//! Looking into a native library: does it export what its users will ask for?
//!
//! A compiler and a runtime that come from different commits fail late and obscurely; a missing
//! symbol says so at once. ELF and Mach-O are read, the latter also as a universal binary, of which
//! every part must export what is wanted. The file is never loaded into the process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use object::elf::{DF_1_PIE, DT_FLAGS_1};
use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{FileKind, NameOrOrdinal, Object, ObjectKind, ReadCache, ReadRef};
use serde::Serialize;

use crate::error::{Class, Fault};

/// How many similar names are shown for a missing symbol.
const NEAR_MISSES: usize = 3;

/// What was found in a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SymbolReport {
    /// Always 1.
    pub schema: u32,
    /// `elf` or `mach-o`.
    pub format: &'static str,
    /// The processors it is for; more than one in a universal binary.
    pub architectures: Vec<String>,
    /// The libraries it needs, as it names them, in its order.
    pub needed: Vec<String>,
    /// The symbols that were asked for, all of which it exports.
    pub exports: Vec<String>,
    /// How many symbols it exports altogether.
    pub exported: usize,
}

/// A symbol that is not exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingSymbol {
    /// Its name.
    pub name: String,
    /// Exported names that resemble it, the nearest first.
    pub near: Vec<String>,
}

/// Why a library is not what it must be.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// It cannot be read.
    #[error("cannot read the library {path}")]
    Read {
        /// The library.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path} is not a shared library: expected ELF or Mach-O, found {found}")]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// Its headers or tables contradict themselves.
    #[error("the library {path} is damaged: {reason}")]
    Damaged {
        /// The library.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It lacks symbols.
    #[error("the library {path} does not export {} of {wanted} symbols: {}", missing.len(), show_missing(missing))]
    Missing {
        /// The library.
        path: PathBuf,
        /// How many were asked for.
        wanted: usize,
        /// Those it lacks.
        missing: Vec<MissingSymbol>,
        /// How many it exports.
        exported: usize,
    },
}

fn show_missing(missing: &[MissingSymbol]) -> String {
    missing.iter().map(|symbol| symbol.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Fault for SymbolError {
    fn class(&self) -> Class {
        Class::Artifact
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing { exported: 0, .. } => "it exports nothing: look at the visibility flags of its build".into(),
            Self::Missing { .. } => {
                "library and headers probably come from different commits; compare their pins".into()
            }
            _ => "look at the log of the step that builds it".into(),
        })
    }

    fn detail(&self) -> Option<String> {
        let Self::Missing { missing, .. } = self else { return None };
        let lines = missing.iter().map(|symbol| match symbol.near.as_slice() {
            [] => format!("{}: nothing similar is exported", symbol.name),
            near => format!("{}: similar are {}", symbol.name, near.join(", ")),
        });
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Checks that the shared library at `path` exports every symbol of `exports`, named as in C: without
/// the underscore that Mach-O puts before each.
pub fn check(path: &Path, exports: &[String]) -> Result<SymbolReport, SymbolError> {
    let unreadable = |source| SymbolError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(SymbolError::NotALibrary { path: path.to_owned(), found: "no regular file".into() });
    }
    // Reads what is asked for and no more: these files have hundreds of megabytes.
    let cache = ReadCache::new(file);
    let damaged = |error: object::Error| SymbolError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let kind = FileKind::parse(&cache)
        .map_err(|_| SymbolError::NotALibrary { path: path.to_owned(), found: "an unknown format".into() })?;
    let parts = match kind {
        FileKind::Elf32 | FileKind::Elf64 | FileKind::MachO32 | FileKind::MachO64 => vec![read_part(path, &cache)?],
        FileKind::MachOFat32 => {
            let fat = MachOFatFile32::parse(&cache).map_err(damaged)?;
            read_parts(path, &cache, fat.arches())?
        }
        FileKind::MachOFat64 => {
            let fat = MachOFatFile64::parse(&cache).map_err(damaged)?;
            read_parts(path, &cache, fat.arches())?
        }
        other => {
            return Err(SymbolError::NotALibrary { path: path.to_owned(), found: format!("{other:?}").to_lowercase() });
        }
    };
    judge(path, exports, parts)
}

/// What one part of a universal binary, or the whole of another library, has.
struct Part {
    format: &'static str,
    architecture: String,
    needed: Vec<String>,
    exported: BTreeSet<String>,
}

fn judge(path: &Path, exports: &[String], mut parts: Vec<Part>) -> Result<SymbolReport, SymbolError> {
    let architectures = parts.iter().map(|part| part.architecture.clone()).collect();
    let Some(mut first) = parts.pop() else {
        return Err(SymbolError::Damaged { path: path.to_owned(), reason: "a universal binary without parts".into() });
    };
    for part in parts {
        first.exported.retain(|name| part.exported.contains(name));
        let more = part.needed.into_iter().filter(|name| !first.needed.contains(name)).collect::<Vec<_>>();
        first.needed.extend(more);
    }
    let missing: Vec<_> = exports
        .iter()
        .filter(|name| !first.exported.contains(*name))
        .map(|name| MissingSymbol { name: name.clone(), near: near_misses(name, &first.exported) })
        .collect();
    let exported = first.exported.len();
    if !missing.is_empty() {
        return Err(SymbolError::Missing { path: path.to_owned(), wanted: exports.len(), missing, exported });
    }
    Ok(SymbolReport {
        schema: 1,
        format: first.format,
        architectures,
        needed: first.needed,
        exports: exports.to_vec(),
        exported,
    })
}

fn read_parts(path: &Path, cache: &ReadCache<File>, arches: &[impl FatArch]) -> Result<Vec<Part>, SymbolError> {
    let part = |arch: &_| {
        let arch: &_ = arch;
        let (offset, size) = FatArch::file_range(arch);
        read_part(path, cache.range(offset, size))
    };
    arches.iter().map(part).collect()
}

fn read_part<'data>(path: &Path, data: impl ReadRef<'data>) -> Result<Part, SymbolError> {
    let damaged = |error: object::Error| SymbolError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let file = object::File::parse(data).map_err(damaged)?;
    let program = match &file {
        object::File::Elf32(elf) => is_program(elf),
        object::File::Elf64(elf) => is_program(elf),
        _ => false,
    };
    if program || file.kind() != ObjectKind::Dynamic {
        let found = match file.kind() {
            ObjectKind::Relocatable => "an object file that is not linked",
            ObjectKind::Executable | ObjectKind::Dynamic => "a program",
            ObjectKind::Core => "a core dump",
            _ => "another kind of file",
        };
        return Err(SymbolError::NotALibrary { path: path.to_owned(), found: found.into() });
    }
    let mach = file.format() == object::BinaryFormat::MachO;
    let mut exported = BTreeSet::new();
    for export in file.exports().map_err(damaged)? {
        let export = export.map_err(damaged)?;
        let NameOrOrdinal::Name(name) = export.name() else { continue };
        let name = String::from_utf8_lossy(name);
        exported.insert(name.strip_prefix('_').filter(|_| mach).unwrap_or(&name).to_owned());
    }
    let mut needed = Vec::new();
    for library in file.import_libraries().map_err(damaged)? {
        needed.push(String::from_utf8_lossy(library.map_err(damaged)?.name()).into_owned());
    }
    Ok(Part {
        format: if mach { "mach-o" } else { "elf" },
        architecture: format!("{:?}", file.architecture()).to_lowercase(),
        needed,
        exported,
    })
}

/// A position-independent program has the type of a library; only a flag tells them apart.
fn is_program<'data, E: FileHeader, R: ReadRef<'data>>(elf: &ElfFile<'data, E, R>) -> bool {
    let flags = elf.elf_dynamic_table().ok().and_then(|table| table.iter().find(|entry| entry.tag == DT_FLAGS_1));
    flags.is_some_and(|entry| entry.val & DF_1_PIE.0 != 0)
}

/// The names nearest to `name`: equal but for case, then by edit distance up to a third of its length.
fn near_misses(name: &str, exported: &BTreeSet<String>) -> Vec<String> {
    let bound = (name.chars().count() / 3).max(1);
    let folded = name.to_lowercase();
    let mut near: Vec<(usize, &String)> = exported
        .iter()
        .filter_map(|other| {
            let distance = if other.to_lowercase() == folded { 0 } else { edit_distance(name, other, bound)? };
            Some((distance, other))
        })
        .collect();
    near.sort();
    near.into_iter().take(NEAR_MISSES).map(|(_, other)| other.clone()).collect()
}

/// The edit distance of two names, when it is at most `bound`.
fn edit_distance(one: &str, two: &str, bound: usize) -> Option<usize> {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    if one.len().abs_diff(two.len()) > bound {
        return None;
    }
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (index, byte) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..two.len() {
            let replaced = diagonal + usize::from(*byte != two[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
        if row.iter().all(|distance| *distance > bound) {
            return None;
        }
    }
    Some(row[two.len()]).filter(|distance| *distance <= bound)
}

#[cfg(test)]
mod tests;
