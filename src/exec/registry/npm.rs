//! `npm pack`: the published tarball as it is, without running anything of the package.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Programs, only_file, other_file, run_tool, text_of, unexplained};
use crate::exec::input::{InputContext, InputError, Wanted};
use crate::step::FetchPackage;

/// Downloads the package's tarball to `directory`.
pub(super) fn pack(
    spec: &FetchPackage,
    wanted: &Wanted,
    programs: &Programs,
    directory: &Path,
    context: &InputContext,
) -> Result<PathBuf, InputError> {
    let mut arguments: Vec<OsString> =
        ["pack", "--ignore-scripts", "--update-notifier=false", "--pack-destination"].map(Into::into).into();
    arguments.push(directory.into());
    // npm's own cache would be a second store, unpinned and perhaps damaged.
    arguments.push("--cache".into());
    arguments.push(context.scratch.join("npm-cache").into());
    arguments.push(format!("{}@{}", spec.package, spec.version).into());
    let output = run_tool(&programs.npm, arguments, programs.environment.clone(), context)?;
    if !output.status.success() {
        return Err(
            explain(&text_of(&output), wanted).unwrap_or_else(|| unexplained(&wanted.what, "npm", &output, context))
        );
    }
    let (name, path) = only_file(directory, wanted)?;
    // The registry leaves the scope out of the file's name, and npm puts it in again.
    let bare = spec.package.rsplit('/').next().unwrap_or(&spec.package);
    let published = format!("{bare}-{}.tgz", spec.version);
    if name != wanted.name && published != wanted.name {
        return Err(other_file(wanted, name));
    }
    Ok(path)
}

/// What npm's error code means.
fn explain(text: &str, wanted: &Wanted) -> Option<InputError> {
    let code = text
        .lines()
        .find_map(|line| line.strip_prefix("npm error code ").or_else(|| line.strip_prefix("npm ERR! code ")))?;
    let code = code.trim();
    let (what, from, digest) = (wanted.what.clone(), "npm".to_owned(), wanted.sha256.known().copied());
    // Behind the code come its parts in lines of two words, and then a sentence.
    let said =
        text.lines().filter_map(|line| line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! ")));
    let said = said.map(str::trim).find(|line| line.split_whitespace().nth(2).is_some());
    let why = said.map_or_else(|| format!("npm says {code}"), |said| format!("npm says {code}: {said}"));
    Some(match code {
        "E404" | "E410" | "ETARGET" | "ENOVERSIONS" => InputError::Vanished { what, from, why, digest },
        "E401" | "E402" | "E403" | "E451" | "ENEEDAUTH" => InputError::Refused { what, from, why, digest },
        "ECONNREFUSED"
        | "ECONNRESET"
        | "ENOTFOUND"
        | "EAI_AGAIN"
        | "ETIMEDOUT"
        | "ENETUNREACH"
        | "EHOSTUNREACH"
        | "EPIPE"
        | "ERR_SOCKET_TIMEOUT"
        | "EINTEGRITY"
        | "E408"
        | "E429"
        | "E500"
        | "E502"
        | "E503"
        | "E504"
        | "SELF_SIGNED_CERT_IN_CHAIN"
        | "DEPTH_ZERO_SELF_SIGNED_CERT"
        | "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
        | "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
        | "UNABLE_TO_GET_ISSUER_CERT"
        | "CERT_HAS_EXPIRED" => InputError::Unreachable { what, from, why, digest },
        _ => return None,
    })
}
