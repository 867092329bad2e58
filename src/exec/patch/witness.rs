//! The second opinion: libgit2 applies the same hunks, and must come to the same blob.
//!
//! Its repository is an object store in memory. It has no directory and no configuration, so it
//! cannot be mistaken for a repository around the tree, and no filter or `core.autocrlf` applies.
//!
//! libgit2 gets the hunks in a form of ours. It reads only some of what git writes (no header without
//! hunks before the next one, no trimmed context line at the end), finds a hunk by its new line number
//! and does not look at the old one, and does not compare the content of a file that is deleted: it
//! could not be the only judge.

use git2::{Diff, Index, IndexEntry, IndexTime, ObjectType, Odb, Oid, Repository};

use super::text::{Change, LineKind, PatchedFile};

/// The blob that libgit2 makes of `before` with the hunks of `file`; nothing when it deletes the file.
pub fn rewrite(file: &PatchedFile, before: Option<&[u8]>) -> Result<Option<Oid>, git2::Error> {
    let odb = Odb::new()?;
    odb.add_new_mempack_backend(1)?;
    let repository = Repository::from_odb(odb)?;
    let mut index = Index::new()?;
    if let Some(bytes) = before {
        index.add(&entry(file.path.as_str(), repository.odb()?.write(ObjectType::Blob, bytes)?))?;
    }
    let tree = repository.find_tree(index.write_tree_to(&repository)?)?;
    let after = repository.apply_to_tree(&tree, &Diff::from_buffer(&render(file))?, None)?;
    Ok(after.get_path(file.path.as_str().as_ref(), 0).map(|entry| entry.id))
}

fn entry(path: &str, id: Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

/// `file` as a git patch of content only, in the plainest form there is.
fn render(file: &PatchedFile) -> Vec<u8> {
    // Paths are free of control characters and backslashes: the quotation mark is all that is quoted.
    let path = file.path.as_str().replace('"', "\\\"");
    let (old, new) = (format!("\"a/{path}\""), format!("\"b/{path}\""));
    let (mode, old_side, new_side) = match file.change {
        Change::Create { .. } => ("new file mode 100644\n", "/dev/null", new.as_str()),
        Change::Delete { .. } => ("deleted file mode 100644\n", old.as_str(), "/dev/null"),
        Change::Content | Change::Mode { .. } => ("", old.as_str(), new.as_str()),
    };
    let mut text = format!("diff --git {old} {new}\n{mode}--- {old_side}\n+++ {new_side}\n").into_bytes();
    for hunk in &file.hunks {
        text.extend(format!("{}\n", hunk.header).bytes());
        for line in &hunk.lines {
            text.push(match line.kind {
                LineKind::Context => b' ',
                LineKind::Removed => b'-',
                LineKind::Added => b'+',
            });
            text.extend(&line.bytes);
            if !line.bytes.ends_with(b"\n") {
                text.extend(b"\n\\ No newline at end of file\n");
            }
        }
    }
    text
}
