//! Exact application: every old line of every hunk stands where the header says, or nothing happens.

use super::text::PatchedFile;

/// Why a file's hunks do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// Other lines stand there.
    Lines {
        /// The first hunk of which this is true, from 0.
        hunk: usize,
        /// All others.
        others: Vec<usize>,
    },
    /// The hunk has no context at its end, and the file goes on.
    End {
        /// The hunk, from 0.
        hunk: usize,
        /// The hunk's last old line, from 1.
        last: usize,
        /// How many lines the file has.
        lines: usize,
    },
}

impl Misfit {
    /// The hunk, from 0.
    pub fn hunk(&self) -> usize {
        match self {
            Self::Lines { hunk, .. } | Self::End { hunk, .. } => *hunk,
        }
    }
}

/// The lines of a file, each with its line feed.
pub fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

/// What `file`'s hunks make of `before`.
pub fn rewrite(file: &PatchedFile, before: &[u8]) -> Result<Vec<u8>, Misfit> {
    let lines = split_lines(before);
    let (mut wrong, mut loose) = (Vec::new(), None);
    let mut after = Vec::with_capacity(before.len());
    let mut done = 0;
    for (index, hunk) in file.hunks.iter().enumerate() {
        let old: Vec<&[u8]> = hunk.old_lines().collect();
        let (first, end) = (hunk.first(), hunk.first() + old.len());
        if lines.get(first..end) != Some(&old[..]) {
            wrong.push(index);
            continue;
        }
        if !hunk.ends_in_context() && end != lines.len() {
            loose.get_or_insert(Misfit::End { hunk: index, last: end, lines: lines.len() });
        }
        after.extend(lines[done..first].concat());
        after.extend(hunk.new_lines().flatten());
        done = end;
    }
    after.extend(lines[done..].concat());
    match (wrong.split_first(), loose) {
        (Some((&hunk, others)), _) => Err(Misfit::Lines { hunk, others: others.to_vec() }),
        (None, Some(misfit)) => Err(misfit),
        (None, None) => Ok(after),
    }
}
