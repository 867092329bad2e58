//! The lines above a file's hunks.

use super::flaw::Flaw;
use super::path::{Side, lossy, read_pair, read_side};
use super::text::{Change, IndexLine, PatchedFile, Reader, Refusal};

/// What git's extended header lines say.
#[derive(Default)]
struct Extended {
    old_mode: Option<bool>,
    new_mode: Option<bool>,
    created: Option<bool>,
    deleted: Option<bool>,
    index: Option<IndexLine>,
}

/// Reads from a `diff --git` line to the first hunk. The file has no hunks yet.
pub fn read_git_header(reader: &mut Reader<'_>) -> Result<PatchedFile, Refusal> {
    let line = reader.number();
    let names = reader.header(b"diff --git ")?.unwrap_or_default();
    let pair = read_pair(names).map_err(|flaw| (line, flaw))?;
    reader.advance();
    let extended = read_extended(reader)?;
    let sides = read_sides(reader)?;
    let (path, has_sides) = match (sides, pair) {
        (None, None) => return Err((line, Flaw::Prefix(lossy(names)))),
        (None, Some(path)) => (path, false),
        (Some((old, new)), pair) => {
            let exists = (old != Side::Nothing, new != Side::Nothing);
            if exists != (extended.created.is_none(), extended.deleted.is_none()) {
                return Err((line, Flaw::Header("/dev/null goes with `new file mode` or `deleted file mode`")));
            }
            let path = join_sides(old, new).map_err(|flaw| (line, flaw))?;
            if let Some(pair) = pair.as_ref().filter(|pair| **pair != path) {
                return Err((line, Flaw::Names(path.to_string(), pair.to_string())));
            }
            if pair.is_none() {
                return Err((line, Flaw::Names(path.to_string(), lossy(names))));
            }
            (path, true)
        }
    };
    let change = extended.change().map_err(|flaw| (line, flaw))?;
    if !has_sides && reader.header(b"@@ -")?.is_some() {
        return reader.refuse(Flaw::Header("hunks need `---` and `+++` lines"));
    }
    Ok(PatchedFile { path, change, index: extended.index, hunks: Vec::new(), line })
}

/// Reads the `---` and `+++` lines of a plain unified diff. The file has no hunks yet.
pub fn read_plain_header(reader: &mut Reader<'_>) -> Result<PatchedFile, Refusal> {
    let line = reader.number();
    let Some((old, new)) = read_sides(reader)? else { return reader.refuse(Flaw::StrayHunk) };
    let change = match (&old, &new) {
        (Side::Nothing, _) => Change::Create { executable: false },
        (_, Side::Nothing) => Change::Delete { executable: None },
        _ => Change::Content,
    };
    let path = join_sides(old, new).map_err(|flaw| (line, flaw))?;
    Ok(PatchedFile { path, change, index: None, hunks: Vec::new(), line })
}

fn join_sides(old: Side, new: Side) -> Result<crate::pins::RelativePath, Flaw> {
    match (old, new) {
        (Side::File(old), Side::File(new)) if old != new => Err(Flaw::Names(new.to_string(), old.to_string())),
        (Side::File(path), _) | (Side::Nothing, Side::File(path)) => Ok(path),
        (Side::Nothing, Side::Nothing) => Err(Flaw::Header("both sides are /dev/null")),
    }
}

fn read_sides(reader: &mut Reader<'_>) -> Result<Option<(Side, Side)>, Refusal> {
    let Some(old) = reader.header(b"--- ")? else { return Ok(None) };
    let old = read_side(old, b"a/").or_else(|flaw| reader.refuse(flaw))?;
    reader.advance();
    let Some(new) = reader.header(b"+++ ")? else {
        return reader.refuse(Flaw::Header("a `+++` line must follow the `---` line"));
    };
    let new = read_side(new, b"b/").or_else(|flaw| reader.refuse(flaw))?;
    reader.advance();
    Ok(Some((old, new)))
}

fn read_extended(reader: &mut Reader<'_>) -> Result<Extended, Refusal> {
    let mut extended = Extended::default();
    loop {
        let renames = [&b"rename "[..], b"copy ", b"similarity index ", b"dissimilarity index "];
        if renames.iter().any(|mark| reader.peek().is_some_and(|line| line.starts_with(mark))) {
            return reader.refuse(Flaw::Rename);
        }
        if reader.header(b"GIT binary patch")?.is_some() || reader.header(b"Binary files ")?.is_some() {
            return reader.refuse(Flaw::Binary);
        }
        let modes = [
            (&b"old mode "[..], &mut extended.old_mode),
            (b"new mode ", &mut extended.new_mode),
            (b"new file mode ", &mut extended.created),
            (b"deleted file mode ", &mut extended.deleted),
        ];
        let mut found = false;
        for (mark, place) in modes {
            if let Some(mode) = reader.header(mark)? {
                *place = Some(read_mode(mode).or_else(|flaw| reader.refuse(flaw))?);
                found = true;
            }
        }
        if let Some(rest) = reader.header(b"index ")? {
            extended.index = Some(read_index(rest).or_else(|flaw| reader.refuse(flaw))?);
            found = true;
        }
        if !found {
            return Ok(extended);
        }
        reader.advance();
    }
}

impl Extended {
    fn change(&self) -> Result<Change, Flaw> {
        match (self.created, self.deleted, self.old_mode, self.new_mode) {
            (Some(executable), None, None, None) => Ok(Change::Create { executable }),
            (None, Some(executable), None, None) => Ok(Change::Delete { executable: Some(executable) }),
            (None, None, Some(from), Some(to)) if from != to => Ok(Change::Mode { from, to }),
            (None, None, None, None) => Ok(Change::Content),
            _ => Err(Flaw::Header("they must create, delete, or change one mode to another")),
        }
    }
}

fn read_mode(text: &[u8]) -> Result<bool, Flaw> {
    match text {
        b"100644" => Ok(false),
        b"100755" => Ok(true),
        _ => Err(Flaw::Mode(lossy(text))),
    }
}

fn read_index(text: &[u8]) -> Result<IndexLine, Flaw> {
    let refused = || Flaw::Header("`index` is followed by two ids, `..` between them, and perhaps a mode");
    let text = std::str::from_utf8(text).map_err(|_| refused())?;
    let (ids, mode) = text.split_once(' ').map_or((text, None), |(ids, mode)| (ids, Some(mode)));
    let (before, after) = ids.split_once("..").ok_or_else(refused)?;
    // Git never writes fewer than four digits, and a sha256 repository's ids are not ours.
    let is_id = |id: &str| (4..=40).contains(&id.len()) && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_id(before) || !is_id(after) {
        return Err(refused());
    }
    let executable = mode.map(|mode| read_mode(mode.as_bytes())).transpose()?;
    Ok(IndexLine { before: before.to_owned(), after: after.to_owned(), executable })
}
