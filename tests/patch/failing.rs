//! What does not apply, and what the person is told. A refused patch leaves the tree as it was:
//! `Lab::refuse` checks that every time.

use std::fs;
use std::os::unix::fs::symlink;

use rebuild_model::error::Fault;
use rebuild_model::exec::patch::{Difference, PatchError};

use crate::lab::{Lab, diff, diff_with, numbered, show};

const SOURCE: &str = "\
#include <vector>

namespace demo {

int first(int x) {
  int y = x + 1;
  return y;
}

int second(int x) {
  int y = x + 2;
  return y;
}

}  // namespace demo
";

/// A patch to [`SOURCE`] that changes the line `int y = x + 2;`.
fn change_second() -> Vec<u8> {
    let new = SOURCE.replace("x + 2", "x + 20");
    diff_with("src/demo.cc", SOURCE.as_bytes(), new.as_bytes(), |_| {})
}

fn explain(source: &str) -> String {
    show(&Lab::with(&[("src/demo.cc", source.as_bytes())]).refuse(change_second()))
}

#[test]
fn lines_that_moved_are_found_and_not_patched() {
    insta::assert_snapshot!(explain(&format!("// A new first line.\n{SOURCE}")), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: other lines stand there
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
         8 +   return y;
         9   }
        10
           …
        13     return y;
        14   }
           -
    nearest match: all expected lines stand at line 9, 1 line further down
    src/demo.cc is blob 6ea00f78105715c7ae596b71872850064787461f, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn one_changed_context_line_is_shown_in_its_place() {
    insta::assert_snapshot!(explain(&SOURCE.replace("second(int x)", "second(long x)")), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: other lines stand there
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
         8   }
         9
           - int second(int x) {
        10 + int second(long x) {
        11     int y = x + 2;
        12     return y;
           …
    nearest match: this place, 6 of 7 lines as expected
    src/demo.cc is blob e3faa8f33ce3be8d5cf6f39c497a226c7dcaaea5, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn moved_and_changed_lines_are_found_by_likeness() {
    let source = format!("{}{SOURCE}", numbered("// line", 30)).replace("x + 2", "x + 3");
    insta::assert_snapshot!(explain(&source), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: other lines stand there
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
           - }
           -
           - int second(int x) {
           -   int y = x + 2;
           -   return y;
           - }
           -
         8 + // line 8
         9 + // line 9
        10 + // line 10
        11 + // line 11
        12 + // line 12
        13 + // line 13
        14 + // line 14
    nearest match: line 38, 30 lines further down, 6 of 7 lines as expected:
           …
        39
        40   int second(int x) {
           -   int y = x + 2;
        41 +   int y = x + 3;
        42     return y;
        43   }
           …
    src/demo.cc is blob cd91370b1f72b68388749f05eadef57ce2005d75, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn a_function_like_the_right_one_is_not_patched_in_its_place() {
    // Fuzz has put changes into another function elsewhere: here the right one is gone.
    let source = SOURCE.replace("int second(int x) {\n  int y = x + 2;\n  return y;\n}\n\n", "");
    insta::assert_snapshot!(explain(&source), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: the file ends at line 10
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
         8   }
         9
           - int second(int x) {
           -   int y = x + 2;
           -   return y;
           - }
           -
        10 + }  // namespace demo
             (the file ends at line 10)
    nearest match: line 3, 5 lines further up, 4 of 7 lines as expected:
           - }
         3 + namespace demo {
         4
           - int second(int x) {
           -   int y = x + 2;
         5 + int first(int x) {
         6 +   int y = x + 1;
         7     return y;
         8   }
           …
    src/demo.cc is blob 5c2ea51c84925805919252c562220a2b63129bdb, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn a_file_with_other_line_endings_is_named_as_such() {
    insta::assert_snapshot!(explain(&SOURCE.replace('\n', "\r\n")), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: the line endings differ, LF in the patch and CR LF in the file
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
           - }
           -
           - int second(int x) {
           -   int y = x + 2;
           -   return y;
           - }
           -
         8 + }\r
         9 + \r
        10 + int second(int x) {\r
        11 +   int y = x + 2;\r
        12 +   return y;\r
        13 + }\r
        14 + \r
    nearest match: all expected lines, but for line endings, stand at line 8, this place
    src/demo.cc is blob df7055eee17faa56c3d6f9fbdc704d56b4613000, and the patch was made for 9f97974
    hint: line endings are part of the content: make the patch from files with the endings of the pinned source, with core.autocrlf off
    "#);
}

#[test]
fn a_patch_with_other_line_endings_is_named_as_such() {
    let lab = Lab::with(&[("x", b"one\ntwo\n")]);
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+TWO\r\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x: hunk 1 of 1 (@@ -1,2 +1,2 @@) does not fit: the line endings differ, CR LF in the patch and LF in the file
    hunk 1 of 1, line 3 of the patch, expects (-) and x has (+) at line 1:
           - one\r
           - two\r
         1 + one
         2 + two
    nearest match: all expected lines, but for line endings, stand at line 1, this place
    hint: line endings are part of the content: make the patch from files with the endings of the pinned source, with core.autocrlf off
    "#);
}

#[test]
fn a_converted_patch_file_is_named_as_such() {
    let lab = Lab::with(&[("x", b"one\ntwo\n")]);
    let error = lab.refuse(String::from_utf8(diff("x", b"one\ntwo\n", b"one\n2\n")).unwrap().replace('\n', "\r\n"));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1, line 1: this header line ends in CR LF: the patch file itself was converted
    hint: give the patch file its line feeds back, and keep them with `*.patch -text` in .gitattributes
    "#);
}

#[test]
fn white_space_is_content() {
    insta::assert_snapshot!(explain(&SOURCE.replace("  int y", "\tint y").replace("second(int x) {", "second(int x) {  ")), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: the lines differ in white space
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
         8   }
         9
           - int second(int x) {
           -   int y = x + 2;
        10 + int second(int x) {··
        11 + \tint y = x + 2;
        12     return y;
        13   }
           …
    nearest match: all expected lines, but for white space, stand at line 8, this place
    src/demo.cc is blob b8fbb5bd3d3426dc7a191c408f513e232b0e5eb9, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn a_missing_line_feed_at_the_end_is_content() {
    let lab = Lab::with(&[("x", b"one\ntwo")]);
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x: hunk 1 of 1 (@@ -1,2 +1,2 @@) does not fit: the file's last line has no line feed
    hunk 1 of 1, line 3 of the patch, expects (-) and x has (+) at line 1:
         1   one
           - two
         2 + two [no line feed]
    nearest match: all expected lines, but for line endings, stand at line 1, this place
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
    let lab = Lab::with(&[("x", b"one\ntwo\n")]);
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n\\ No newline at end of file\n");
    assert!(
        matches!(error, PatchError::Hunk { difference: Difference::FinalLineFeed { file_lacks: false }, .. }),
        "{error}"
    );
}

#[test]
fn a_file_that_ends_early_and_one_that_is_empty() {
    insta::assert_snapshot!(explain("#include <vector>\n"), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: the file ends at line 1
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
           - }
           -
           - int second(int x) {
           -   int y = x + 2;
           -   return y;
           - }
           -
             (the file ends at line 1)
    nearest match: none; no place in the file resembles these lines
    src/demo.cc is blob 3b3a25f213f2c2116af96c604546af91f4915573, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
    insta::assert_snapshot!(explain(""), @r#"
    patch p1: src/demo.cc: hunk 1 of 1 (@@ -8,7 +8,7 @@) does not fit: the file is empty
    hunk 1 of 1, line 5 of the patch, expects (-) and src/demo.cc has (+) at line 8:
           - }
           -
           - int second(int x) {
           -   int y = x + 2;
           -   return y;
           - }
           -
    nearest match: none; no place in the file resembles these lines
    src/demo.cc is blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391, and the patch was made for 9f97974
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn other_failing_hunks_are_counted() {
    let old = numbered("line", 100);
    let new = old.replace("line 10\n", "x\n").replace("line 50\n", "y\n").replace("line 90\n", "z\n");
    let patch = diff_with("x", old.as_bytes(), new.as_bytes(), |_| {});
    let lab = Lab::with(&[("x", old.replace("line 49\n", "!\n").replace("line 91\n", "!\n").as_bytes())]);
    insta::assert_snapshot!(show(&lab.refuse(patch)), @r#"
    patch p1: x: hunk 2 of 3 (@@ -47,7 +47,7 @@) does not fit: other lines stand there
    hunk 2 of 3, line 14 of the patch, expects (-) and x has (+) at line 47:
        47   line 47
        48   line 48
           - line 49
        49 + !
        50   line 50
        51   line 51
           …
    nearest match: this place, 6 of 7 lines as expected
    1 more of its 3 hunks do not fit: 3
    x is blob 6027b5834193faaf2c17ef2592e25949567e889d, and the patch was made for 8a34ce1
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn bytes_that_are_no_text_and_terminal_codes_are_shown_safely() {
    let lab = Lab::with(&[("x", b"caf\xe9 \x1b[31m\n")]);
    let error = lab.refuse(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-caf\xe8\n+caf\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x: hunk 1 of 1 (@@ -1 +1 @@) does not fit: other lines stand there
    hunk 1 of 1, line 3 of the patch, expects (-) and x has (+) at line 1:
           - caf\xe8
         1 + caf\xe9 \u{1b}[31m
    nearest match: none; no place in the file resembles these lines
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn a_report_of_a_large_hunk_stays_short() {
    let (old, new) = (numbered("old line", 2500), numbered("quite another text", 2500));
    let lab = Lab::with(&[("x", numbered("found", 3000).as_bytes())]);
    let error = lab.refuse(diff_with("x", old.as_bytes(), new.as_bytes(), |_| {}));
    assert!(error.detail().unwrap().lines().count() <= 40);
    let long = "x".repeat(100_000);
    let lab = Lab::with(&[("x", format!("{long}\n").as_bytes())]);
    let error = lab.refuse(format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{long}y\n+z\n"));
    assert!(error.detail().unwrap().len() < 1000);
}

#[test]
fn a_hunk_without_context_at_its_end_must_end_the_file() {
    let lab = Lab::with(&[("x", numbered("line", 5).as_bytes())]);
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n line 1\n-line 2\n+TWO\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x: hunk 1 of 1 (@@ -1,2 +1,2 @@) has no context line after its last change, and ends at line 2 of 5
    hint: make the patch again with context lines: `git diff -U3`
    "#);
    // A change of the whole of a one-line file has no context, and is safe; of a longer file it is not.
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-line 1\n+ONE\n");
    assert!(matches!(error, PatchError::LooseEnd { .. }));
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+ZERO\n");
    assert!(matches!(error, PatchError::LooseEnd { .. }));
}

#[test]
fn a_deletion_names_the_whole_file() {
    let lab = Lab::with(&[("x", b"one\ntwo\n"), ("y", b"one\n")]);
    let error = lab.refuse("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n");
    assert!(matches!(error, PatchError::LooseEnd { .. }));
    let error = lab.refuse("diff --git a/y b/y\ndeleted file mode 100644\nindex e69de29..0000000\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: y is to be deleted, and has content that the patch does not name (1 lines)
    hint: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn a_missing_file_and_where_its_namesakes_are() {
    let lab = Lab::with(&[("tvm/src/demo.cc", SOURCE.as_bytes()), ("other.cc", b"")]);
    insta::assert_snapshot!(show(&lab.refuse(change_second())), @r#"
    patch p1: src/demo.cc is not in the tree
    files of this name in the tree:
      tvm/src/demo.cc
    hint: the paths in a patch are relative to its target's root; check the target and its pin
    "#);
}

#[test]
fn a_created_file_must_not_exist() {
    let lab = Lab::with(&[("x", b"one\n")]);
    insta::assert_snapshot!(show(&lab.refuse("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+two\n")), @r#"
    patch p1: x is to be created and exists already, as blob 5626abf0f72e58d7a153368ba57db4c673c0e171
    hint: the pinned source has the file already: check the pin, or make a patch that changes the file
    "#);
}

#[test]
fn a_changed_mode_is_the_expected_one() {
    let lab = Lab::with(&[("x", b"one\n")]);
    lab.set_mode("x", 0o755);
    let error = lab.refuse("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x has mode 100755, and the patch changes mode 100644
    hint: there is no fuzz and no offset: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}

#[test]
fn symbolic_links_are_not_followed() {
    let lab = Lab::with(&[("real/x", b"one\n")]);
    fs::write(lab.outside().join("secret"), "one\n").unwrap();
    symlink(lab.outside().join("secret"), lab.tree().join("link")).unwrap();
    symlink("real", lab.tree().join("directory")).unwrap();
    symlink("nowhere", lab.tree().join("dangling")).unwrap();
    let change = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-one\n+two\n");
    let error = lab.refuse(change("directory/x"));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: directory/x is reached through the symbolic link directory
    hint: a patch may change plain files below its target only
    "#);
    let create = |name: &str| format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+two\n");
    for patch in [change("link"), change("dangling"), create("dangling"), create("directory/new"), create("link")] {
        assert!(matches!(lab.refuse(patch), PatchError::Symlink { .. }));
    }
    assert_eq!(fs::read(lab.outside().join("secret")).unwrap(), b"one\n");
}

#[test]
fn directories_files_and_devices_in_the_way() {
    let lab = Lab::with(&[("d/x", b"one\n"), ("f", b"one\n")]);
    let create = |name: &str| format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+two\n");
    insta::assert_snapshot!(show(&lab.refuse(create("d"))), @r#"
    patch p1: d cannot be a file: d is a directory
    hint: a patch may change plain files below its target only
    "#);
    assert!(matches!(lab.refuse(create("f/x")), PatchError::Obstacle { found: "a file", .. }));
    let socket = std::os::unix::net::UnixListener::bind(lab.tree().join("socket")).unwrap();
    assert!(matches!(
        lab.refuse(create("socket")),
        PatchError::Obstacle { found: "neither a file nor a directory", .. }
    ));
    drop(socket);
    // What an earlier patch creates is in the way of a later one.
    let error = lab.refuse_with(|lab| lab.apply_all(&[create("n").as_bytes(), create("n/x").as_bytes()]));
    assert!(matches!(error, PatchError::Obstacle { .. }));
    let error = lab.refuse_with(|lab| lab.apply_all(&[create("n/x").as_bytes(), create("n").as_bytes()]));
    assert!(matches!(error, PatchError::Obstacle { .. }));
}

#[test]
fn all_files_of_all_patches_or_none() {
    let lab = Lab::with(&[("x", b"one\n"), ("y", b"one\n"), ("z", b"else\n")]);
    lab.refuse([diff("x", b"one\n", b"two\n"), diff("z", b"one\n", b"two\n")].concat());
    let (good, bad) = (diff("x", b"one\n", b"two\n"), diff("z", b"one\n", b"two\n"));
    let error = lab.refuse_with(|lab| lab.apply_all(&[&good, &bad]));
    assert!(error.to_string().starts_with("patch p2: z: hunk 1 of 1"), "{error}");
}

#[test]
fn a_damaged_patch_is_told_from_another_file() {
    let lab = Lab::with(&[("src/demo.cc", SOURCE.as_bytes())]);
    let damaged = String::from_utf8(change_second()).unwrap().replace(" int second", " int secund");
    let error = lab.refuse(damaged);
    assert!(error.detail().unwrap().ends_with("for which the patch was made: the patch has been edited or damaged"));
}

#[test]
fn a_refused_patch_has_the_patch_class() {
    let lab = Lab::with(&[("x", b"one\n")]);
    assert_eq!(lab.refuse(diff("x", b"two\n", b"three\n")).class().exit_code(), 6);
    assert_eq!(lab.refuse("no patch\n").class().exit_code(), 6);
}
