//! The text of patches: what is understood, and what is refused before any file is looked at.

use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::patch::{Change, Flaw, LineKind, PatchError, PathFlaw, parse};

const HEADER: &str = "diff --git a/x b/x\nindex 0123456..789abcd 100644\n--- a/x\n+++ b/x\n";

fn flaw(text: impl AsRef<[u8]>) -> (usize, Flaw) {
    match parse("p", text.as_ref()) {
        Err(error @ PatchError::Structure { .. }) => {
            assert_eq!(error.class(), Class::Patch);
            assert!(error.hint().is_some());
            let PatchError::Structure { line, flaw, .. } = error else { unreachable!() };
            (line, flaw)
        }
        other => panic!("{other:?}"),
    }
}

/// The flaw of a hunk under an ordinary header.
fn hunk_flaw(hunk: &str) -> (usize, Flaw) {
    flaw(format!("{HEADER}{hunk}"))
}

#[test]
fn a_mail_from_format_patch_is_read_whole() {
    let text = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Why\n\nBecause.\n---\n x | 2 +-\n 1 file changed\n\n\
                diff --git a/x b/x\nold mode 100644\nnew mode 100755\nindex 0123456..789abcd\n--- a/x\n+++ b/x\n\
                @@ -1,3 +1,3 @@ fn main() {\n one\n-two\n+TWO\n three\n\
                diff --git a/new b/new\nnew file mode 100644\nindex 0000000..789abcd\n--- /dev/null\n+++ b/new\n\
                @@ -0,0 +1 @@\n+only\n\\ No newline at end of file\n-- \n2.47.3\n\n";
    let patch = parse("p", text.as_bytes()).unwrap();
    assert!(patch.prelude.starts_with(b"From 0123") && patch.prelude.ends_with(b"changed\n\n"));
    let [x, new] = &patch.files[..] else { panic!() };
    assert_eq!((x.path.as_str(), x.line), ("x", 9));
    assert_eq!(x.change, Change::Mode { from: false, to: true });
    assert_eq!(x.index.as_ref().unwrap().before, "0123456");
    assert_eq!((x.hunks[0].header.as_str(), x.hunks[0].line), ("@@ -1,3 +1,3 @@", 15));
    let kinds: Vec<_> = x.hunks[0].lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds, [LineKind::Context, LineKind::Removed, LineKind::Added, LineKind::Context]);
    assert_eq!(new.change, Change::Create { executable: false });
    assert_eq!(new.hunks[0].lines[0].bytes, b"only");
}

#[test]
fn a_plain_unified_diff_is_read() {
    let text = "Only a comment.\ndiff -ru a/x b/x\n--- a/x\t2024-01-01 00:00:00 +0000\n+++ b/x\t2024-01-02 00:00:00 +0000\n\
                @@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";
    let patch = parse("p", text.as_bytes()).unwrap();
    let changes: Vec<_> = patch.files.iter().map(|file| (file.path.as_str(), file.change)).collect();
    let created = Change::Create { executable: false };
    assert_eq!(changes, [("x", Change::Content), ("new", created), ("old", Change::Delete { executable: None })]);
}

#[test]
fn a_text_without_a_file_or_without_a_change_is_refused() {
    for text in ["", "\n", "just words\n", "--- a/x\n"] {
        assert!(matches!(parse("p", text.as_bytes()), Err(PatchError::Empty { .. })), "{text:?}");
    }
    let no_hunks = Flaw::NoHunks("x".parse().unwrap());
    assert_eq!(flaw(HEADER), (1, no_hunks.clone()));
    assert_eq!(flaw("diff --git a/x b/x\n"), (1, no_hunks.clone()));
    assert_eq!(flaw("--- a/x\n+++ b/x\n"), (1, no_hunks));
    assert_eq!(hunk_flaw("@@ -1,2 +1,2 @@\n one\n two\n"), (5, Flaw::NoChange));
}

#[test]
fn what_cannot_be_applied_exactly_is_refused_by_name() {
    assert_eq!(
        flaw("diff --git a/x b/x\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 3\n"),
        (3, Flaw::Binary)
    );
    assert_eq!(
        flaw("diff --git a/x b/x\nindex 1234567..89abcde 100644\nBinary files a/x and b/x differ\n"),
        (3, Flaw::Binary)
    );
    assert_eq!(flaw("Binary files a/x and b/x differ\n"), (1, Flaw::Binary));
    assert_eq!(hunk_flaw("@@ -1 +1 @@\n-a\0\n+b\n"), (6, Flaw::Nul));
    assert_eq!(flaw("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"), (2, Flaw::Rename));
    assert_eq!(flaw("diff --git a/x b/y\nrename from x\nrename to y\n"), (2, Flaw::Rename));
    assert_eq!(flaw("diff --git a/x b/y\ncopy from x\ncopy to y\n"), (2, Flaw::Rename));
    assert_eq!(flaw("diff --cc x\nindex 1,2..3\n"), (1, Flaw::Combined));
    assert_eq!(flaw("diff --git a/x b/x\nnew file mode 120000\n"), (2, Flaw::Mode("120000".into())));
    assert_eq!(flaw("diff --git a/x b/x\nindex 1234567..89abcde 160000\n"), (2, Flaw::Mode("160000".into())));
}

#[test]
fn paths_out_of_the_tree_are_refused() {
    let at = |path: &str| {
        let (_, flaw) =
            flaw(format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"));
        let Flaw::Path { reason, .. } = flaw else { panic!("{flaw:?}") };
        reason
    };
    assert_eq!(at("../x"), PathFlaw::Leaves);
    assert_eq!(at("/etc/passwd"), PathFlaw::Absolute);
    assert_eq!(at(".git/hooks/post-checkout"), PathFlaw::Git);
    assert_eq!(at("sub/.GiT/config"), PathFlaw::Git);
    assert_eq!(at("x\\y"), PathFlaw::Backslash);
    // The `---` and `+++` lines are looked at on their own, too.
    let (line, found) = flaw("--- a/x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n");
    assert!(matches!((line, found), (2, Flaw::Path { reason: PathFlaw::Leaves, .. })));
    let (_, found) = flaw("diff --git a/x b/x\n--- a/x\n+++ b/.git/config\n@@ -1 +1 @@\n-a\n+b\n");
    assert!(matches!(found, Flaw::Path { reason: PathFlaw::Git, .. }));
}

#[test]
fn header_lines_must_agree() {
    let names = |text: &str| matches!(flaw(text).1, Flaw::Names(..));
    assert!(names("diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(names("diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(names("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"));
    let prefix = |text: &str| matches!(flaw(text).1, Flaw::Prefix(..));
    assert!(prefix("diff --git x x\n--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(prefix("diff --git i/x w/x\n--- i/x\n+++ w/x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(prefix("diff --git x x\nold mode 100644\nnew mode 100755\n"));
    let header = |text: &str| matches!(flaw(text).1, Flaw::Header(..));
    assert!(header("diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"));
    assert!(header("diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(header("diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(header("diff --git a/x b/x\nindex 1234567..89abcde\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(header("diff --git a/x b/x\nnew mode 100755\n"));
    assert!(header("diff --git a/x b/x\nindex 1234567.89abcde\n"));
    assert!(header("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n"));
    let shape = |text: &str| matches!(flaw(text).1, Flaw::Shape(..));
    assert!(shape("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"));
    assert!(shape("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n"));
}

#[test]
fn a_file_has_one_header() {
    let one = format!("{HEADER}@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(flaw(format!("{one}{one}")), (8, Flaw::Twice("x".parse().unwrap())));
    let (line, found) = flaw(format!("{one}--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+a\n"));
    assert_eq!((line, found), (8, Flaw::Nested("x".parse().unwrap(), "x/y".parse().unwrap())));
}

#[test]
fn counts_are_kept_and_nothing_behind_a_hunk_is_lost() {
    // One added line more than the header says: others would drop it without a word.
    assert_eq!(hunk_flaw("@@ -1,2 +1,3 @@\n one\n+new\n two\n+lost\n"), (9, Flaw::Loose("+lost".into())));
    assert_eq!(hunk_flaw("@@ -1 +1,2 @@\n one\n+new\n two\n"), (8, Flaw::Loose(" two".into())));
    assert_eq!(hunk_flaw("@@ -1 +1 @@\n-one\n+two\nOnly in b: y\n"), (8, Flaw::Loose("Only in b: y".into())));
    assert_eq!(hunk_flaw("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n"), (9, Flaw::Cut { old: 1, new: 1 }));
    assert_eq!(hunk_flaw("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three"), (9, Flaw::NoLineFeed));
    assert_eq!(
        hunk_flaw("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\ndiff --git a/y b/y\n"),
        (9, Flaw::HunkLine("diff --git a/y b/y".into()))
    );
    assert_eq!(hunk_flaw("@@ -1,1 +1,2 @@\n-one\n-two\n+TWO\n"), (7, Flaw::Overfull("old")));
    assert_eq!(hunk_flaw("@@ -1,2 +1,1 @@\n+one\n+TWO\n-two\n"), (7, Flaw::Overfull("new")));
    assert_eq!(flaw("@@ -1 +1 @@\n-a\n+b\n"), (1, Flaw::StrayHunk));
    for header in ["@@ -1 @@", "@@ -x +1 @@", "@@ -1,2 +1,2", "@@ -0,1 +1 @@", "@@ -1234567890 +1 @@", "@@ -+1 +1 @@"] {
        assert!(matches!(hunk_flaw(&format!("{header}\n-a\n+b\n")), (5, Flaw::HunkHeader(_))), "{header}");
    }
}

#[test]
fn line_numbers_follow_from_each_other() {
    let two = |second: &str| format!("@@ -1,2 +1,3 @@\n one\n+new\n two\n{second}\n ten\n-eleven\n+ELEVEN\n twelve\n");
    assert!(parse("p", format!("{HEADER}{}", two("@@ -10,3 +11,3 @@")).as_bytes()).is_ok());
    assert_eq!(hunk_flaw(&two("@@ -10,3 +10,3 @@")), (9, Flaw::NewLine { expected: 11, found: 10 }));
    assert_eq!(hunk_flaw(&two("@@ -2,3 +3,3 @@")), (9, Flaw::Order(2)));
    assert_eq!(hunk_flaw("@@ -3,2 +4,3 @@\n one\n+new\n two\n"), (5, Flaw::NewLine { expected: 3, found: 4 }));
}

#[test]
fn a_hunk_that_only_a_number_holds_in_place_is_refused() {
    assert_eq!(hunk_flaw("@@ -7 +7 @@\n-seven\n+SEVEN\n"), (5, Flaw::Unanchored));
    assert_eq!(hunk_flaw("@@ -7 +6,0 @@\n-seven\n"), (5, Flaw::Unanchored));
    assert_eq!(hunk_flaw("@@ -7,0 +8 @@\n+new\n"), (5, Flaw::Unanchored));
    assert_eq!(hunk_flaw("@@ -7,2 +7,2 @@\n-seven\n+SEVEN\n eight\n"), (5, Flaw::Unanchored));
}

#[test]
fn marks_of_a_missing_line_feed_stand_at_the_end_only() {
    let mark = "\\ No newline at end of file\n";
    let last = format!("{HEADER}@@ -1 +1 @@\n-a\n{mark}+b\n{mark}");
    let patch = parse("p", last.as_bytes()).unwrap();
    assert_eq!(patch.files[0].hunks[0].lines[1].bytes, b"b");
    // git's text is translated.
    let german = format!("{HEADER}@@ -1 +1 @@\n-a\n\\ Kein Zeilenumbruch am Dateiende.\n+b\n");
    assert!(parse("p", german.as_bytes()).is_ok());
    assert_eq!(hunk_flaw(&format!("@@ -1,2 +1,2 @@\n a\n{mark}-b\n+c\n")).1, Flaw::Newline);
    assert_eq!(hunk_flaw(&format!("@@ -1 +1 @@\n{mark}-a\n+b\n")).1, Flaw::Newline);
    assert_eq!(hunk_flaw(&format!("@@ -1 +1 @@\n-a\n+b\n{mark}{mark}")).1, Flaw::Loose(mark.trim_end().into()));
    let two = format!("@@ -1 +1 @@\n-a\n+b\n{mark}@@ -5,2 +5,2 @@\n c\n-d\n+e\n");
    assert_eq!(hunk_flaw(&two), (9, Flaw::Newline));
}

#[test]
fn a_converted_patch_file_is_named_as_such() {
    let text = format!("{HEADER}@@ -1 +1 @@\n-a\n+b\n").replace('\n', "\r\n");
    assert_eq!(flaw(&text), (1, Flaw::Converted));
    assert_eq!(hunk_flaw("@@ -1 +1 @@\r\n-a\r\n+b\r\n"), (5, Flaw::Converted));
    // The content's own carriage returns are content.
    let patch = parse("p", format!("{HEADER}@@ -1 +1 @@\n-a\r\n+b\r\n").as_bytes()).unwrap();
    assert_eq!(patch.files[0].hunks[0].lines[0].bytes, b"a\r\n");
}

#[test]
fn hostile_texts_are_errors_and_never_panics() {
    let pieces = [
        "diff --git ",
        "a/x",
        " b/x\n",
        "--- ",
        "+++ ",
        "@@ -",
        "1,2 +1 @@\n",
        "\\ ",
        "\n",
        "\r",
        "-",
        "+",
        "\"",
        "index ",
        "0..1",
    ];
    // A fixed walk through many combinations (a linear congruential generator).
    let mut state = 1_u32;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(pieces[(state >> 16) as usize % pieces.len()]);
        }
        let _ = parse("p", text.as_bytes());
    }
}
