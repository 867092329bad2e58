//! Packages from `PyPI` and npm, through the host's own pip and npm.
//!
//! These tools know the registries, their mirrors, credentials and proxies; what they bring is judged
//! by us: the file's name, its sha256 and its size. The store is asked before they are.

mod npm;
mod pip;
mod requirements;

pub use requirements::{Requirement, RequirementsError};

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::digest::{Digest, hash_file};
use crate::exec::input::{Admitted, InputContext, InputError, Wanted, copy_stored, move_file};
use crate::pins::{Recorded, Registry};
use crate::process::{Invocation, ask, quote};
use crate::step::{FetchPackage, FetchWheels};
use crate::workspace::free_mib;

/// The package tools, and the environment that they get.
#[derive(Debug, Clone)]
pub struct Programs {
    /// A Python with pip.
    pub python: PathBuf,
    /// npm.
    pub npm: PathBuf,
    /// The whole environment: `PATH`, `HOME`, proxies, certificates, `PIP_*` and `npm_config_*`.
    pub environment: BTreeMap<String, OsString>,
}

/// Obtains one published file of a package, in the directory `into`.
pub fn fetch_package(
    spec: &FetchPackage,
    programs: &Programs,
    into: &Path,
    context: &InputContext,
) -> Result<Admitted, InputError> {
    let registry = match spec.registry {
        Registry::Pypi => "pypi",
        Registry::Npm => "npm",
    };
    let what = format!("{registry} package {} {}", spec.package, spec.version);
    let wanted = Wanted { what, name: spec.file.as_str(), sha256: spec.sha256, size: spec.size };
    wanted.check(context)?;
    // Both become part of a command line, where another form would mean another thing.
    for text in [&spec.package, &spec.version] {
        let plain = text.trim_start_matches('@').replace('/', "-");
        if !requirements::is_version(&plain) {
            return Err(InputError::Name { name: text.clone() });
        }
    }
    if let Some(admitted) = wanted.take_stored(into, context)? {
        return Ok(admitted);
    }
    if context.offline {
        let digest = spec.sha256.known().copied();
        let what = format!("{} ({})", wanted.what, wanted.name);
        return Err(InputError::not_stored(what, digest.as_slice(), context.store));
    }
    let directory = fresh_directory(context, "package")?;
    let file = match spec.registry {
        Registry::Pypi => pip::download_one(spec, &wanted, programs, &directory, context)?,
        Registry::Npm => npm::pack(spec, &wanted, programs, &directory, context)?,
    };
    let admitted = wanted.admit(&file, registry, into)?;
    wanted.keep(&admitted, context);
    Ok(admitted)
}

/// `spec` with the digests of the wheels of which nobody recorded one, where that is to be done: they
/// are obtained and kept in the store.
pub fn record_wheels(
    spec: &FetchWheels,
    programs: &Programs,
    context: &InputContext,
) -> Result<FetchWheels, InputError> {
    let mut spec = spec.clone();
    for (name, pin) in spec.wheels.iter_mut().filter(|(_, pin)| pin.sha256.known().is_none()) {
        let what = format!("wheel {name} {}", pin.version);
        if !context.record_unknown {
            return Err(InputError::NotRecorded { what });
        }
        if context.offline {
            return Err(InputError::Offline { what, digest: None });
        }
        if !requirements::is_version(pin.version.as_str()) {
            return Err(InputError::Name { name: pin.version.to_string() });
        }
        let directory = fresh_directory(context, "unknown")?;
        let path = pip::download_unknown(name.as_str(), pin.version.as_str(), programs, &directory, context)?;
        let (digest, size) = hash_file(&path).map_err(|source| InputError::Read { path: path.clone(), source })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = Wanted { what: what.clone(), name: &name, sha256: Recorded::Known(digest), size: None };
        wanted.keep(&Admitted { path, digest, size, from: "pypi".to_owned() }, context);
        context.log.note(format!("{what} was not recorded; found sha256 {digest}"));
        pin.sha256 = Recorded::Known(digest);
    }
    Ok(spec)
}

/// Obtains every wheel of a requirements file that applies to the interpreter, in `into/wheels`.
pub fn fetch_wheels(
    spec: &FetchWheels,
    programs: &Programs,
    into: &Path,
    context: &InputContext,
) -> Result<Vec<Admitted>, InputError> {
    let requirements = read_requirements(spec, context)?;
    let listed: BTreeSet<Digest> = requirements.iter().flat_map(|one| one.hashes.iter().copied()).collect();
    let links = fresh_directory(context, "links")?;
    let stored = link_stored(&listed, &links, context)?;
    let missing =
        requirements.iter().find(|one| one.marker.is_none() && !one.hashes.iter().any(|h| stored.contains(h)));
    let what = |one: &Requirement| format!("a wheel of {} {}", one.name, one.version);
    if let Some(missing) = missing
        && context.offline
    {
        return Err(InputError::not_stored(what(missing), &missing.hashes, context.store));
    }
    let list = context.scratch.join("requirements.txt");
    let text: Vec<String> = requirements.iter().map(ToString::to_string).collect();
    std::fs::write(&list, text.join("\n")).map_err(|source| InputError::Write { path: list.clone(), source })?;

    let directory = fresh_directory(context, "wheels")?;
    let mut offline = Err(None);
    if missing.is_none() {
        offline = pip::download_all(&list, &links, false, programs, &directory, context).map_err(Some);
    }
    match offline {
        Ok(()) => {}
        Err(Some(failure)) if context.offline || matches!(failure, InputError::Interrupted(_)) => return Err(failure),
        Err(failure) => {
            if let Some(failure) = failure {
                context.log.note(format!("the stored wheels are not all that is needed: {failure}"));
            }
            pip::download_all(&list, &links, true, programs, &directory, context)?;
        }
    }
    admit_wheels(&directory, &listed, spec, into, context)
}

/// The requirements, once the file is the pinned one, and the wheels that are pinned beside it.
fn read_requirements(spec: &FetchWheels, context: &InputContext) -> Result<Vec<Requirement>, InputError> {
    let path = context.pins_directory.join(spec.requirements.as_str());
    let what = spec.requirements.to_string();
    let wanted = Wanted { what, name: "requirements.txt", sha256: spec.sha256, size: None };
    wanted.check(context)?;
    let from = spec.requirements.as_str();
    if !path.is_file() {
        let digest = spec.sha256.known().copied();
        return Err(InputError::Missing { what: wanted.what, path, digest });
    }
    wanted.inspect(&path, from)?;
    let text = std::fs::read_to_string(&path).map_err(|source| InputError::Read { path: path.clone(), source })?;
    // pip and uv install nothing without its hash, so this cannot be found out on the way.
    if let Some((name, pin)) = spec.wheels.iter().find(|(_, pin)| pin.sha256.known().is_none()) {
        return Err(InputError::NotRecorded { what: format!("wheel {name} {}", pin.version) });
    }
    requirements::parse(&with_wheels(text, spec)).map_err(|source| InputError::Requirements { path, source })
}

/// `text`, a requirements file, with the wheels that are pinned beside it.
pub fn with_wheels(mut text: String, spec: &FetchWheels) -> String {
    for (name, pin) in &spec.wheels {
        let _ = write!(text, "\n{name}=={} --hash=sha256:{}\n", pin.version, pin.sha256);
    }
    text
}

/// Copies the wheels that the store has to where pip can find them, and gives their digests.
fn link_stored(
    listed: &BTreeSet<Digest>,
    links: &Path,
    context: &InputContext,
) -> Result<BTreeSet<Digest>, InputError> {
    let mut stored = BTreeSet::new();
    let part = context.scratch.join("stored-wheel");
    for digest in listed {
        context.interrupt.check()?;
        let Some(found) = copy_stored(digest, None, &part, context)? else { continue };
        let name = found.path.file_name().filter(|name| Path::new(name).extension().is_some_and(|ext| ext == "whl"));
        let Some(name) = name else {
            context.log.note(format!("ignored {}: pip needs a wheel's own name", found.path.display()));
            continue;
        };
        context.log.line(&format!("{} served by {}", found.path.display(), found.from));
        let path = links.join(name);
        move_file(&part, &path).map_err(|source| InputError::Write { path, source })?;
        stored.insert(*digest);
    }
    Ok(stored)
}

/// Lets in what pip brought: each wheel must be listed.
fn admit_wheels(
    directory: &Path,
    listed: &BTreeSet<Digest>,
    spec: &FetchWheels,
    into: &Path,
    context: &InputContext,
) -> Result<Vec<Admitted>, InputError> {
    let wheels = into.join("wheels");
    std::fs::create_dir_all(&wheels).map_err(|source| InputError::Write { path: wheels.clone(), source })?;
    let mut admitted = Vec::new();
    for (file, path) in files_in(directory)? {
        let (found, _) = hash_file(&path).map_err(|source| InputError::Read { path: path.clone(), source })?;
        if !listed.contains(&found) {
            let requirements = PathBuf::from(spec.requirements.as_str());
            return Err(InputError::Unlisted { file, requirements, found });
        }
        let wanted = Wanted { what: file.clone(), name: &file, sha256: Recorded::Known(found), size: None };
        let wheel = wanted.admit(&path, "pypi", &wheels)?;
        wanted.keep(&wheel, context);
        admitted.push(wheel);
    }
    Ok(admitted)
}

/// Runs a package tool and logs what it printed.
fn run_tool(
    program: &Path,
    arguments: Vec<OsString>,
    environment: BTreeMap<String, OsString>,
    context: &InputContext,
) -> Result<Output, InputError> {
    context.interrupt.check()?;
    let words = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
    let shown: Vec<String> = words.map(|word| quote(&word.to_string_lossy())).collect();
    context.log.line(&format!("+ {}", shown.join(" ")));
    let directory = context.scratch.to_owned();
    let invocation = Invocation { program: program.to_owned(), arguments, directory, environment, isolated: false };
    let output = ask(&invocation, context.interrupt)
        .map_err(|source| InputError::Start { program: program.to_owned(), source })?;
    context.log.line(&text_of(&output));
    context.interrupt.check()?;
    Ok(output)
}

/// All that a tool printed.
fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A failure that nothing more is known of.
fn unexplained(what: &str, tool: &'static str, output: &Output, context: &InputContext) -> InputError {
    let text = text_of(output);
    // On a full disk a tool may not even be able to say so.
    let full = free_mib(context.scratch).is_ok_and(|free| free == 0);
    if full || text.contains("No space left on device") || text.contains("ENOSPC") {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        return InputError::Write { path: context.scratch.to_owned(), source };
    }
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(15)..].join("\n");
    InputError::Tool { what: what.to_owned(), tool, status: output.status.to_string(), output: last }
}

/// The only file in `directory`, which a tool was to put there.
fn only_file(directory: &Path, wanted: &Wanted) -> Result<(String, PathBuf), InputError> {
    let files = files_in(directory)?;
    match <[_; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) if files.is_empty() => Err(other_file(wanted, "none".into())),
        Err(files) => Err(other_file(wanted, files.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", "))),
    }
}

/// The registry gave `found` instead of the file that is wanted.
fn other_file(wanted: &Wanted, found: String) -> InputError {
    InputError::OtherFile {
        what: wanted.what.clone(),
        expected: wanted.name.to_owned(),
        found,
        digest: wanted.sha256.known().copied(),
    }
}

/// Names and paths of the entries of `directory`, sorted.
fn files_in(directory: &Path) -> Result<Vec<(String, PathBuf)>, InputError> {
    let failed = |source| InputError::Read { path: directory.to_owned(), source };
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    let mut files: Vec<_> =
        entries.into_iter().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    files.sort();
    Ok(files)
}

/// An empty directory in the scratch directory; an earlier try may have left one.
fn fresh_directory(context: &InputContext, name: &str) -> Result<PathBuf, InputError> {
    let path = context.scratch.join(name);
    let made = match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(&path),
    };
    made.map_err(|source| InputError::Write { path: path.clone(), source })?;
    Ok(path)
}
