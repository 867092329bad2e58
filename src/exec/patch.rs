//! Patches: read strictly, applied exactly, verified by blob id.
//!
//! A patch is applied twice, in memory: by `place`, which compares every line of every hunk with
//! the line that its header names, and by libgit2 on a repository that exists in memory only
//! (`witness`). Both must give the same blobs, and these must be the pinned ones; only then is
//! anything written. No repository is ever looked for, so it does not matter whether the tree lies
//! inside one, and there is no fuzz, no offset and no skipped file that could pass for success.

#![allow(clippy::similar_names, reason = "patch and path are what this module is about")]

mod error;
mod flaw;
mod header;
mod hunk;
mod nearest;
mod path;
mod place;
mod report;
mod text;
mod tree;
mod witness;

use std::collections::BTreeMap;
use std::path::Path;

pub use error::{Image, PatchError, Promise};
pub use flaw::{Flaw, PathFlaw};
pub use report::Difference;
pub use text::{Change, Hunk, HunkLine, IndexLine, LineKind, PatchText, PatchedFile, parse};

use crate::pins::{Commit, Images, Recorded, RelativePath};
use crate::process::log::StepLog;
use place::Misfit;
use tree::{Content, Overlay};

/// What a patch made of one file: git's blob ids before and after, absent where there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    /// The patch's name.
    pub patch: String,
    /// The file, by its path in the tree.
    pub path: RelativePath,
    /// The pre-image.
    pub before: Option<Commit>,
    /// The post-image.
    pub after: Option<Commit>,
}

/// The id that git gives to a file of these `bytes`.
///
/// # Panics
/// Never in practice: libgit2 hashes any bytes, and writes an id as 40 digits.
pub fn git_blob_id(bytes: &[u8]) -> Commit {
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, bytes).expect("any bytes have a blob id");
    id.to_string().parse().expect("an object id is 40 digits")
}

/// Applies `patches` to the directory `tree`, each on top of the one before, all of them or none.
///
/// `images` says which files a patch must touch and what they are before and after; when it is empty
/// only the patch's own `index` lines are compared. Nothing is written before everything fits.
///
/// # Errors
/// Any hunk whose lines do not stand where its header says, any file that is not what is pinned, any
/// target reached through a symbolic link, and any file that cannot be read or written.
pub fn apply(
    tree: &Path,
    patches: &[(PatchText, &BTreeMap<RelativePath, Images>)],
    log: &StepLog,
) -> Result<Vec<AppliedFile>, PatchError> {
    let mut overlay = Overlay::of(tree);
    let mut applied = Vec::new();
    for (patch, images) in patches {
        compare_names(patch, images)?;
        applied.extend(apply_one(patch, images, &mut overlay, log)?);
    }
    overlay.write()?;
    Ok(applied)
}

/// The pinned files and the touched ones must be the same.
fn compare_names(patch: &PatchText, images: &BTreeMap<RelativePath, Images>) -> Result<(), PatchError> {
    if images.is_empty() {
        return Ok(());
    }
    if let Some(file) = patch.files.iter().find(|file| !images.contains_key(&file.path)) {
        return Err(PatchError::NotPinned { patch: patch.name.clone(), path: file.path.clone() });
    }
    match images.keys().find(|path| patch.files.iter().all(|file| file.path != **path)) {
        Some(path) => Err(PatchError::NotTouched { patch: patch.name.clone(), path: path.clone() }),
        None => Ok(()),
    }
}

fn apply_one(
    patch: &PatchText,
    images: &BTreeMap<RelativePath, Images>,
    overlay: &mut Overlay,
    log: &StepLog,
) -> Result<Vec<AppliedFile>, PatchError> {
    let mut before = Vec::new();
    for file in &patch.files {
        before.push(overlay.read(&patch.name, &file.path)?);
    }
    refuse_applied(patch, images, &before)?;
    let mut after = Vec::new();
    let mut applied = Vec::new();
    for (file, content) in patch.files.iter().zip(&before) {
        let pinned = images.get(&file.path);
        let made = change_file(patch, file, pinned, content.as_ref(), overlay, log)?;
        let ids = AppliedFile {
            patch: patch.name.clone(),
            path: file.path.clone(),
            before: content.as_ref().map(|content| git_blob_id(&content.bytes)),
            after: made.as_ref().map(|made| git_blob_id(&made.bytes)),
        };
        compare_ids(file, pinned, &ids, log)?;
        ask_witness(patch, file, content.as_ref(), &ids)?;
        if made == *content {
            return Err(PatchError::NothingChanged { patch: patch.name.clone(), path: file.path.clone() });
        }
        log.line(&format!(
            "{}: {} {} -> {}",
            patch.name,
            file.path,
            show(ids.before.as_ref()),
            show(ids.after.as_ref())
        ));
        applied.push(ids);
        after.push(made);
    }
    for (file, made) in patch.files.iter().zip(after) {
        overlay.put(&file.path, made);
    }
    Ok(applied)
}

/// A patch whose post-images stand in the tree has been applied before. Only ids decide this: a hunk
/// that seems to fit backwards may be chance.
fn refuse_applied(
    patch: &PatchText,
    images: &BTreeMap<RelativePath, Images>,
    before: &[Option<Content>],
) -> Result<(), PatchError> {
    let is_applied = |file: &PatchedFile, content: Option<&Content>| {
        // The absence of a file to be deleted proves nothing: the tree may be another one.
        let Some(content) = content else { return false };
        let id = git_blob_id(&content.bytes);
        let pinned = images.get(&file.path).and_then(|images| images.after.as_ref()).and_then(Recorded::known);
        pinned.map_or_else(|| file.index.as_ref().is_some_and(|index| index.after_is(&id)), |pinned| *pinned == id)
    };
    let mut done = Vec::new();
    let mut open = Vec::new();
    for (file, content) in patch.files.iter().zip(before) {
        let deleted = matches!(file.change, Change::Delete { .. }) && content.is_none();
        // A change of mode leaves the id as it is.
        let same_blob = matches!(file.change, Change::Mode { .. }) && file.hunks.is_empty();
        if same_blob {
            continue;
        }
        if is_applied(file, content.as_ref()) {
            done.push(file.path.clone());
        } else if !deleted {
            open.push(file.path.clone());
        }
    }
    match (done.is_empty(), open.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => Err(PatchError::AlreadyApplied { patch: patch.name.clone(), paths: done }),
        (false, false) => Err(PatchError::PartlyApplied { patch: patch.name.clone(), done, open }),
    }
}

/// What `file` of `patch` makes of `content`.
fn change_file(
    patch: &PatchText,
    file: &PatchedFile,
    pinned: Option<&Images>,
    content: Option<&Content>,
    overlay: &Overlay,
    log: &StepLog,
) -> Result<Option<Content>, PatchError> {
    let (name, path) = (|| patch.name.clone(), || file.path.clone());
    let Some(content) = content else {
        return match file.change {
            Change::Create { executable } => {
                let bytes = place::rewrite(file, b"").map_err(|misfit| describe(patch, file, pinned, b"", &misfit))?;
                Ok(Some(Content { bytes, executable }))
            }
            _ => {
                Err(PatchError::Missing { patch: name(), path: path(), namesakes: overlay.find_namesakes(&file.path) })
            }
        };
    };
    if matches!(file.change, Change::Create { .. }) {
        return Err(PatchError::Exists { patch: name(), path: path(), found: git_blob_id(&content.bytes) });
    }
    let bytes = place::rewrite(file, &content.bytes)
        .map_err(|misfit| describe(patch, file, pinned, &content.bytes, &misfit))?;
    let (expected, executable) = match file.change {
        Change::Mode { from, to } => (Some(from), to),
        Change::Delete { executable } => (executable, content.executable),
        _ => (file.index.as_ref().and_then(|index| index.executable), content.executable),
    };
    if expected.is_some_and(|expected| expected != content.executable) {
        let (expected, found) = if content.executable { ("100644", "100755") } else { ("100755", "100644") };
        if matches!(file.change, Change::Mode { .. }) {
            return Err(PatchError::Mode { patch: name(), path: path(), expected, found });
        }
        // Archives often lose the executable bit, and the content is what the patch is about.
        log.note(format!(
            "patch {}: {} has mode {found} where the patch expects {expected}; it keeps it",
            patch.name, file.path
        ));
    }
    if matches!(file.change, Change::Delete { .. }) {
        let remains = bytes.split_inclusive(|&byte| byte == b'\n').count();
        return if remains == 0 {
            Ok(None)
        } else {
            Err(PatchError::Remains { patch: name(), path: path(), lines: remains })
        };
    }
    Ok(Some(Content { bytes, executable }))
}

fn describe(
    patch: &PatchText,
    file: &PatchedFile,
    pinned: Option<&Images>,
    bytes: &[u8],
    misfit: &Misfit,
) -> PatchError {
    let (index, of) = (misfit.hunk(), file.hunks.len());
    let hunk = &file.hunks[index];
    let (patch, path, header) = (patch.name.clone(), file.path.clone(), hunk.header.clone());
    match misfit {
        Misfit::Lines { others, .. } => {
            let (difference, mut report) = report::explain(file, index, others, bytes);
            if let Some(line) = identify(file, pinned, &git_blob_id(bytes)) {
                report = format!("{report}\n{line}");
            }
            PatchError::Hunk { patch, path, number: index + 1, of, header, difference, report }
        }
        Misfit::End { last, lines, .. } => {
            PatchError::LooseEnd { patch, path, number: index + 1, of, header, last: *last, lines: *lines }
        }
    }
}

/// Whether it is the file or the patch that is another one, as far as ids tell.
fn identify(file: &PatchedFile, pinned: Option<&Images>, found: &Commit) -> Option<String> {
    let pin = pinned.and_then(|images| images.before.as_ref()).and_then(Recorded::known);
    let index = file.index.as_ref().map(|index| index.before.as_str());
    let expected = pin.map(Commit::as_str).or(index)?;
    Some(if IndexLine::names(expected, Some(found)) {
        format!("{} is blob {found}, for which the patch was made: the patch has been edited or damaged", file.path)
    } else {
        format!("{} is blob {found}, and the patch was made for {expected}", file.path)
    })
}

/// Compares both ids with what is pinned and with what the patch's own `index` line promises.
fn compare_ids(
    file: &PatchedFile,
    pinned: Option<&Images>,
    ids: &AppliedFile,
    log: &StepLog,
) -> Result<(), PatchError> {
    let differs = |image, promise, expected: Option<&Commit>, found: Option<&Commit>| {
        let (patch, path) = (ids.patch.clone(), ids.path.clone());
        Err(PatchError::ImageDiffers { patch, path, image, promise, expected: show(expected), found: show(found) })
    };
    let sides = [(Image::Before, ids.before.as_ref()), (Image::After, ids.after.as_ref())];
    for (image, found) in sides {
        let Some(pinned) = pinned else { break };
        let pin = if image == Image::Before { &pinned.before } else { &pinned.after };
        match pin {
            Some(Recorded::Not) if found.is_some() => {}
            Some(Recorded::Known(expected)) if Some(expected) == found => {}
            None if found.is_none() => {}
            _ => return differs(image, Promise::Pin, pin.as_ref().and_then(Recorded::known), found),
        }
    }
    let Some(index) = &file.index else { return Ok(()) };
    for (image, found) in sides {
        let digits = if image == Image::Before { &index.before } else { &index.after };
        if IndexLine::names(digits, found) {
            continue;
        }
        if let Ok(expected) = digits.parse() {
            return differs(image, Promise::IndexLine, Some(&expected), found);
        }
        // A shortened id is no promise (people edit patches and leave it), but worth knowing.
        log.note(format!(
            "patch {}: {} is {} {image} the patch, which was made for {digits}",
            ids.patch,
            ids.path,
            show(found)
        ));
    }
    Ok(())
}

/// libgit2 must make the same blob. Where there is no hunk there is nothing that it could do.
fn ask_witness(
    patch: &PatchText,
    file: &PatchedFile,
    before: Option<&Content>,
    ids: &AppliedFile,
) -> Result<(), PatchError> {
    if file.hunks.is_empty() {
        return Ok(());
    }
    let theirs = witness::rewrite(file, before.map(|content| content.bytes.as_slice()))
        .map_err(|source| PatchError::Git { patch: patch.name.clone(), path: file.path.clone(), source })?;
    let theirs = theirs.map(|id| id.to_string());
    if theirs.as_deref() == ids.after.as_ref().map(Commit::as_str) {
        return Ok(());
    }
    Err(PatchError::Disagreement {
        patch: patch.name.clone(),
        path: file.path.clone(),
        ours: show(ids.after.as_ref()),
        theirs: theirs.unwrap_or_else(|| show(None)),
    })
}

fn show(id: Option<&Commit>) -> String {
    id.map_or_else(|| "no file".to_owned(), Commit::to_string)
}
