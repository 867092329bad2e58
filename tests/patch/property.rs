//! Any edit of any file goes through a diff unchanged; any damage is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use rebuild_model::exec::patch::git_blob_id;

use crate::lab::{Lab, diff, diff_with};

/// Lines that are repeated, that look like parts of a patch, and that are no text.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let lines: [&[u8]; 24] = [
        b"",
        b"",
        b" ",
        b"}",
        b"}",
        b"a",
        b"b",
        b"c",
        b"a\r",
        b"\r",
        b"- ",
        b"-- ",
        b"-- x",
        b"++ y",
        b"+",
        b"@@ -1 +1 @@",
        b"diff --git a/x b/x",
        b"\\ No newline at end of file",
        b"\xff\xfe",
        b"caf\xe9",
        b"\t",
        b"a ",
        b"index 1..2",
        b"2.47.3",
    ];
    prop_oneof![
        4 => select(lines.map(<[u8]>::to_vec).to_vec()),
        1 => "[a-z]{1,8}".prop_map(String::into_bytes),
    ]
}

fn join(lines: &[Vec<u8>], ends_in_feed: bool) -> Vec<u8> {
    let mut bytes = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect::<Vec<_>>();
    if !ends_in_feed {
        bytes.pop();
    }
    bytes
}

/// What happens to one line.
#[derive(Debug, Clone)]
enum Edit {
    Keep,
    Drop,
    Replace(Vec<u8>),
    Insert(Vec<Vec<u8>>),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        12 => Just(Edit::Keep),
        1 => Just(Edit::Drop),
        1 => line().prop_map(Edit::Replace),
        1 => vec(line(), 1..4).prop_map(Edit::Insert),
    ]
}

fn perform(lines: &[Vec<u8>], edits: &[Edit]) -> Vec<Vec<u8>> {
    let mut made = Vec::new();
    for (line, edit) in lines.iter().zip(edits) {
        match edit {
            Edit::Keep => made.push(line.clone()),
            Edit::Drop => {}
            Edit::Replace(other) => made.push(other.clone()),
            Edit::Insert(others) => {
                made.extend(others.iter().cloned());
                made.push(line.clone());
            }
        }
    }
    made
}

/// A file, and the file after some edits.
fn files() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let lines = vec((line(), edit()), 0..60);
    (lines, any::<bool>(), any::<bool>())
        .prop_map(|(lines, old_feed, new_feed)| {
            let (lines, edits): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            (join(&lines, old_feed), join(&perform(&lines, &edits), new_feed))
        })
        .prop_filter("an edit is wanted", |(old, new)| old != new)
}

/// Lines that occur once each, so that no damage can be undone by chance.
fn distinct_files() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    vec(edit(), 3..60)
        .prop_map(|edits| {
            let lines: Vec<_> = (0..edits.len()).map(|at| format!("line {at}").into_bytes()).collect();
            let made = perform(&lines, &edits);
            (lines, made)
        })
        .prop_filter("an edit is wanted", |(old, new)| old != new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_edit_arrives_exactly((old, new) in files(), context in 1_u32..6, between in 0_u32..4) {
        let lab = Lab::with(&[("d/x", &old)]);
        let patch = diff_with("d/x", &old, &new, |options| {
            options.context_lines(context).interhunk_lines(between).id_abbrev(40);
        });
        let applied = lab.apply(&patch);
        prop_assert!(applied.is_ok(), "{}\n{}", applied.unwrap_err(), String::from_utf8_lossy(&patch));
        prop_assert_eq!(lab.read("d/x"), new);
        // And once more: by its id it is known to be applied.
        prop_assert!(lab.apply(&patch).is_err());
    }

    #[test]
    fn creations_and_deletions_arrive_exactly((bytes, _) in files(), executable in any::<bool>()) {
        prop_assume!(!bytes.is_empty());
        let mode = if executable { "100755" } else { "100644" };
        let (id, none) = (git_blob_id(&bytes), "0".repeat(40));
        // A diff from nothing has the right hunk; the header is written here.
        let hunk_of = |old: &[u8], new: &[u8]| {
            let patch = diff("x", old, new);
            let at = patch.windows(4).position(|window| window == b"@@ -").unwrap();
            patch[at..].to_vec()
        };
        let lab = Lab::with(&[]);
        let header = format!("diff --git a/x b/x\nnew file mode {mode}\nindex {none}..{id}\n--- /dev/null\n+++ b/x\n");
        lab.apply([header.into_bytes(), hunk_of(b"", &bytes)].concat()).unwrap();
        prop_assert_eq!(lab.read("x"), bytes.clone());
        prop_assert_eq!(lab.mode("x") & 0o111 != 0, executable);
        let header = format!("diff --git a/x b/x\ndeleted file mode {mode}\nindex {id}..{none}\n--- a/x\n+++ /dev/null\n");
        lab.apply([header.into_bytes(), hunk_of(&bytes, b"")].concat()).unwrap();
        prop_assert!(!lab.tree().join("x").exists());
    }

    /// Without any id, so that nothing but the lines decides.
    #[test]
    fn a_damaged_patch_never_applies((old, new) in files(), at in any::<Index>(), byte in any::<Index>(), flip in 1_u8..128) {
        let lab = Lab::with(&[("x", &old)]);
        let patch = diff_with("x", &old, &new, |_| {});
        let text = patch.split_inclusive(|&b| b == b'\n').scan(false, |inside, line| {
            let was = *inside;
            *inside |= line.starts_with(b"@@ -");
            Some((was, line.to_vec()))
        });
        let mut lines: Vec<(bool, Vec<u8>)> = text.collect();
        // A line that must be found, with something on it to damage.
        let old_lines: Vec<usize> = (0..lines.len())
            .filter(|&n| lines[n].0 && (lines[n].1.starts_with(b" ") || lines[n].1.starts_with(b"-")) && lines[n].1.len() > 2)
            .collect();
        prop_assume!(!old_lines.is_empty());
        let line = &mut lines[old_lines[at.index(old_lines.len())]].1;
        let place = 1 + byte.index(line.len() - 2);
        line[place] ^= flip;
        prop_assume!(line[place] != b'\n');
        let damaged: Vec<u8> = lines.into_iter().flat_map(|(_, line)| line).collect();
        let error = lab.refuse(&damaged);
        prop_assert_eq!(rebuild_model::error::Fault::class(&error).exit_code(), 6);
    }

    #[test]
    fn a_damaged_file_is_never_patched((old, new) in distinct_files(), at in any::<Index>(), how in 0..4) {
        let patch = diff_with("x", &join(&old, true), &join(&new, true), |_| {});
        let mut damaged = old.clone();
        match how {
            // Lines that moved by one, up or down: no offset.
            0 => damaged.insert(0, b"inserted".to_vec()),
            1 => drop(damaged.remove(0)),
            _ => {
                // A line that some hunk must find.
                let text = String::from_utf8_lossy(&patch).into_owned();
                let wanted: Vec<_> = text.lines().skip(4).filter_map(|line| line.strip_prefix([' ', '-'])).collect();
                let wanted: Vec<_> = (0..old.len()).filter(|&n| wanted.iter().any(|line| line.as_bytes() == old[n])).collect();
                prop_assume!(!wanted.is_empty());
                let line = wanted[at.index(wanted.len())];
                if how == 2 { damaged[line].push(b' ') } else { damaged[line].push(b'\r') }
            }
        }
        let lab = Lab::with(&[("x", &join(&damaged, true))]);
        // Removing or adding a line at the top leaves a hunk in place only when it is not there yet.
        lab.refuse(&patch);
    }
}
