//! What stands in a bundle besides the inputs: the sources, the plan, the records, and what is said of
//! them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CONTENTS, PROGRAM, Records, SCHEMA, at};
use crate::artifact::encoding::{FileId, encoder_name};
use crate::build::Prepared;
use crate::digest::{Digest, hash_file};
use crate::error::Result;
use crate::exec::local;
use crate::pins::{Commit, Name, Platform};
use crate::step::Action;

/// An input that is in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Vendored {
    /// A commit without its history.
    Commit {
        /// Where it is published.
        url: String,
        /// The commit.
        commit: Commit,
        /// Its tree.
        tree: Commit,
        /// The bare repository that holds it, below `vendor`.
        repository: String,
    },
    /// A file: a package, a wheel, a tool's archive.
    File {
        /// Its name as published.
        name: String,
        /// Its digest, and so its place below `vendor`.
        sha256: Digest,
        /// Its size in bytes.
        size: u64,
    },
}

/// How the artifacts are packaged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Packaging {
    path: String,
    role: String,
    encoding: String,
    encoder: String,
}

/// `bundle.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Contents<'a> {
    schema: u32,
    recipe: &'a Name,
    /// The platform whose inputs are vendored.
    platform: &'a Platform,
    plan: Digest,
    pins: Digest,
    pins_file: String,
    program: &'static str,
    packaging: Vec<Packaging>,
    vendored: &'a [Vendored],
    files: BTreeMap<String, FileId>,
}

/// Writes everything but the inputs below `root`; gives the number of files there and their bytes.
pub(super) fn write(
    prepared: &Prepared,
    records: &Records,
    vendored: &[Vendored],
    root: &Path,
) -> Result<(usize, u64)> {
    let sources = root.join("sources");
    fs::create_dir_all(&sources).map_err(at(&sources))?;
    let name = prepared.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    put(&sources.join(&name), prepared.text.as_bytes())?;
    for (what, path, pinned) in local::files_of(&prepared.plan) {
        let bytes = local::read(what, &prepared.directory, path, pinned)?;
        put(&sources.join(path), &bytes)?;
    }
    put(&root.join("plan.json"), &text_of(&prepared.plan))?;
    for (name, bytes) in [("manifest.json", &records.manifest), ("attestation.json", &records.attestation)] {
        if let Some(bytes) = bytes {
            put(&root.join(name), bytes)?;
        }
    }
    put(
        &root.join("README.md"),
        readme(prepared, [records.manifest.is_some(), records.attestation.is_some()], !vendored.is_empty()).as_bytes(),
    )?;
    let files = list(root)?;
    let count = files.len();
    let bytes: u64 = files.values().map(|file| file.size).sum();
    let contents = Contents {
        schema: SCHEMA,
        recipe: &prepared.plan.recipe,
        platform: &prepared.plan.platform,
        plan: prepared.plan.digest(),
        pins: prepared.digest,
        pins_file: format!("sources/{name}"),
        program: PROGRAM,
        packaging: packaging(prepared),
        vendored,
        files,
    };
    let text = text_of(&contents);
    put(&root.join(CONTENTS), &text)?;
    Ok((count + 1, bytes + text.len() as u64))
}

/// How the first file of a bundle begins: what tells an earlier bundle from any other archive.
pub(super) const TITLE: &str = "# Sources of a model library\n";

/// A document as it stands in a bundle.
pub(super) fn text_of(document: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(document).unwrap_or_default();
    text.push(b'\n');
    text
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    fs::write(path, bytes).map_err(at(path))?;
    Ok(())
}

/// Every file below `root` with its digest.
fn list(root: &Path) -> Result<BTreeMap<String, FileId>> {
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry.map_err(|error| at(root)(error.into()))?;
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_string_lossy().into_owned();
            files.insert(name, FileId::from(hash_file(entry.path()).map_err(at(entry.path()))?));
        }
    }
    Ok(files)
}

pub(super) fn packaging(prepared: &Prepared) -> Vec<Packaging> {
    let packages = prepared.plan.steps.iter().filter_map(|step| match &step.action {
        Action::Package(package) => Some(package),
        _ => None,
    });
    let of_package = |package: &crate::step::Package| {
        let artifact = |artifact: &crate::step::ArtifactSpec| Packaging {
            path: format!("{}{}", artifact.path, artifact.encoding.suffix()),
            role: artifact.role.clone(),
            encoding: artifact.encoding.name().to_owned(),
            encoder: encoder_name(artifact.encoding, package.level),
        };
        package.artifacts.iter().map(artifact).collect::<Vec<_>>()
    };
    packages.flat_map(of_package).collect()
}

/// The text for people; `[manifest, attestation]` says whether these are there.
pub(super) fn readme(prepared: &Prepared, [manifest_there, attestation_there]: [bool; 2], vendored: bool) -> String {
    let plan = &prepared.plan;
    let pins = prepared.path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "{TITLE}\nRecipe `{}` for {}, plan {}.\n\n\
         `sources/` holds the pins, which name every input by digest, and the files beside them. `plan.json` is what \
         follows from them: every step, every command. `bundle.json` lists the files here and says how the artifacts \
         are encoded.\n\n",
        plan.recipe,
        plan.platform,
        plan.digest()
    );
    let inputs = if vendored {
        text.push_str(
            "`vendor/` holds every input: files by digest below `sha256/`, git commits without history in bare \
             repositories below `git/` (`mirrors.toml` says which stands for which url). No network is needed.\n\n",
        );
        " --offline --vendor vendor"
    } else {
        text.push_str("The inputs are fetched from where the pins say; whatever serves the same bytes will do.\n\n");
        ""
    };
    let manifest = manifest_name(prepared);
    let mut lines = vec![
        ("verify bundle.json".to_owned(), "is everything here what it should be"),
        (format!("build --pins sources/{pins}{inputs} --output dist"), "build"),
        (format!("verify dist/{manifest}"), "is what was delivered what its manifest says"),
    ];
    if manifest_there {
        lines.push((format!("diff manifest.json dist/{manifest}"), "is it what was published"));
    }
    if attestation_there {
        let offline = if vendored { " --offline" } else { "" };
        lines.push((format!("replay bundle.json{offline}"), "the same, step by step"));
    }
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "With `rebuild-model` and the tools that `rebuild-model doctor --pins sources/{pins}` lists:\n\n```sh"
    );
    for (command, comment) in lines {
        let _ = writeln!(text, "rebuild-model {command:<width$}  # {comment}");
    }
    text.push_str("```\n");
    let published = match (manifest_there, attestation_there) {
        (_, false) => "verify manifest.json --root DIRECTORY",
        (true, true) => "verify attestation.json --manifest manifest.json --root DIRECTORY",
        (false, true) => "verify attestation.json --root DIRECTORY",
    };
    if manifest_there || attestation_there {
        let signed = if attestation_there { "; with `--key FILE` for each key that must have signed" } else { "" };
        let _ =
            writeln!(text, "\n`rebuild-model {published}` checks published artifacts that lie in DIRECTORY{signed}.");
    }
    text
}

fn manifest_name(prepared: &Prepared) -> String {
    let manifest = prepared.plan.steps.iter().rev().find_map(|step| match &step.action {
        Action::Package(package) => package.manifest.as_str().rsplit('/').next(),
        _ => None,
    });
    manifest.unwrap_or("manifest.json").to_owned()
}
