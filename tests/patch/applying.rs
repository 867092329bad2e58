//! What applies, and that it gives exactly the post-image.

use std::fs;

use rebuild_model::exec::patch::git_blob_id;

use crate::lab::{Lab, diff, diff_with, numbered};

/// Applies the diff between `old` and `new` and compares the result.
fn round_trip(name: &str, old: &[u8], new: &[u8]) {
    let lab = Lab::with(&[(name, old)]);
    let applied = lab.apply(diff(name, old, new)).unwrap();
    assert_eq!(lab.read(name), new);
    assert_eq!(applied.len(), 1);
    assert_eq!(applied[0].before, Some(git_blob_id(old)));
    assert_eq!(applied[0].after, Some(git_blob_id(new)));
    assert_eq!(lab.notes(), [""; 0]);
}

#[test]
fn a_blob_id_is_what_git_hash_object_prints() {
    assert_eq!(git_blob_id(b"").as_str(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_eq!(git_blob_id(b"hello\n").as_str(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

#[test]
fn contents_of_every_kind_are_patched_exactly() {
    round_trip("x", b"one\ntwo\nthree\n", b"one\nTWO\nthree\n");
    round_trip("d/e/x", b"only\n", b"other\n");
    // The end of the file with and without a line feed.
    round_trip("x", b"one\ntwo", b"one\nTWO");
    round_trip("x", b"one\ntwo", b"one\ntwo\n");
    round_trip("x", b"one\ntwo\n", b"one\ntwo");
    round_trip("x", b"one\ntwo", b"one\ntwo\nthree");
    // To and from nothing.
    round_trip("x", b"", b"one\n");
    round_trip("x", b"one\ntwo\n", b"");
    // Carriage returns, bytes that are no text, empty lines, lines that look like a patch.
    round_trip("x", b"one\r\n\r\ntwo\r\n", b"one\r\n\r\nTWO\r\n");
    round_trip("x", b"one\r\ntwo\n", b"one\ntwo\r\n");
    round_trip("x", b"\xff\xfe\n\x80two\n\x01\n", b"\xff\xfe\n\x80TWO\n\x01\n");
    round_trip("x", b"\n\n\n\n\n", b"\n\n+\n\n\n");
    round_trip("x", b"- \n-- x\n++ y\n@@ -1 +1 @@\n", b"-- x\n- \n++ z\n@@ -1 +1 @@\ndiff --git a/x b/x\n");
    // Names that git quotes, and names that it does not.
    round_trip("späce x", b"one\n", b"two\n");
    round_trip("a b/c d", b"one\n", b"two\n");
    round_trip("quo\"te", b"one\n", b"two\n");
}

#[test]
fn the_example_of_a_quoted_path_from_git() {
    let lab = Lab::with(&[("späce x", b"one\n")]);
    let quoted = r#"diff --git "a/sp\303\244ce x" "b/sp\303\244ce x"
--- "a/sp\303\244ce x"
+++ "b/sp\303\244ce x"
@@ -1 +1 @@
-one
+two
"#;
    lab.apply(quoted).unwrap();
    assert_eq!(lab.read("späce x"), b"two\n");
}

#[test]
fn many_hunks_far_apart_keep_their_places() {
    let old = numbered("line", 400);
    let new = old
        .replace("line 20\n", "")
        .replace("line 100\n", "new 1\nnew 2\nnew 3\n")
        .replace("line 399\n", "line 399\nadded\n")
        .replace("line 1\n", "first\n");
    round_trip("x", old.as_bytes(), new.as_bytes());
}

#[test]
fn an_empty_context_line_may_have_lost_its_space() {
    let lab = Lab::with(&[("x", b"one\n\nthree\n\n")]);
    lab.apply("--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n one\n\n-three\n+THREE\n\n").unwrap();
    assert_eq!(lab.read("x"), b"one\n\nTHREE\n\n");
}

#[test]
fn files_are_created_with_their_directories_and_their_mode() {
    let lab = Lab::with(&[]);
    let applied = lab
        .apply(
            "diff --git a/d/e/run b/d/e/run\nnew file mode 100755\n--- /dev/null\n+++ b/d/e/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n\
             diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n",
        )
        .unwrap();
    assert_eq!(lab.read("d/e/run"), b"#!/bin/sh\n");
    assert_eq!(lab.mode("d/e/run"), 0o755);
    assert_eq!(lab.read("empty"), b"");
    assert_eq!(lab.mode("empty"), 0o644);
    assert!(applied.iter().all(|file| file.before.is_none() && file.after.is_some()));
}

#[test]
fn files_are_deleted_and_directories_left_empty_go_with_them() {
    let lab = Lab::with(&[("d/e/x", b"one\ntwo\n"), ("d/y", b""), ("d/z", b"stays\n"), ("empty", b"")]);
    let applied = lab
        .apply(
            "diff --git a/d/e/x b/d/e/x\ndeleted file mode 100644\n--- a/d/e/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n\
             diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n",
        )
        .unwrap();
    assert!(!lab.tree().join("d/e").exists());
    assert!(!lab.tree().join("empty").exists());
    assert_eq!(lab.read("d/z"), b"stays\n");
    assert!(applied.iter().all(|file| file.before.is_some() && file.after.is_none()));
}

#[test]
fn the_executable_bit_is_kept_set_and_taken() {
    let lab = Lab::with(&[("kept", b"one\n"), ("set", b"one\n"), ("taken", b"one\n"), ("narrow", b"one\n")]);
    lab.set_mode("kept", 0o755);
    lab.set_mode("taken", 0o755);
    lab.set_mode("narrow", 0o600);
    let change = "--- a/NAME\n+++ b/NAME\n@@ -1 +1 @@\n-one\n+two\n";
    let file = |name: &str, modes: &str, change: &str| {
        format!("diff --git a/{name} b/{name}\n{modes}{}", change.replace("NAME", name))
    };
    let patch = [
        file("kept", "index 5626abf..f719efd 100755\n", change),
        file("set", "old mode 100644\nnew mode 100755\n", ""),
        file("taken", "old mode 100755\nnew mode 100644\nindex 5626abf..f719efd\n", change),
        file("narrow", "", change),
    ];
    let applied = lab.apply(patch.concat()).unwrap();
    assert_eq!(["kept", "set", "taken", "narrow"].map(|name| lab.mode(name)), [0o755, 0o755, 0o644, 0o600]);
    assert_eq!(["kept", "set", "taken", "narrow"].map(|name| lab.read(name)), [b"two\n", b"one\n", b"two\n", b"two\n"]);
    assert_eq!(applied[1].before, applied[1].after);
    assert_eq!(lab.notes(), [""; 0]);
}

#[test]
fn a_lost_executable_bit_is_noted_and_kept_as_it_is() {
    let lab = Lab::with(&[("x", b"one\n")]);
    lab.apply("diff --git a/x b/x\nindex 5626abf..f719efd 100755\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n")
        .unwrap();
    assert_eq!(lab.mode("x"), 0o644);
    assert_eq!(lab.notes(), ["patch p1: x has mode 100644 where the patch expects 100755; it keeps it"]);
}

#[test]
fn patches_build_on_each_other() {
    let lab = Lab::with(&[("x", b"one\n")]);
    let patches = [
        diff("x", b"one\n", b"one\ntwo\n"),
        diff("x", b"one\ntwo\n", b"one\ntwo\nthree\n"),
        b"--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+a\n".to_vec(),
        b"--- a/d/new\n+++ b/d/new\n@@ -1 +1 @@\n-a\n+b\n".to_vec(),
    ];
    let applied = lab.apply_all(&patches.each_ref().map(Vec::as_slice)).unwrap();
    assert_eq!(lab.read("x"), b"one\ntwo\nthree\n");
    assert_eq!(lab.read("d/new"), b"b\n");
    let names: Vec<_> = applied.iter().map(|file| (file.patch.as_str(), file.path.as_str())).collect();
    assert_eq!(names, [("p1", "x"), ("p2", "x"), ("p3", "d/new"), ("p4", "d/new")]);
    assert_eq!(applied[0].after, applied[1].before);
}

#[test]
fn a_file_created_and_deleted_again_leaves_nothing() {
    let lab = Lab::with(&[("y", b"")]);
    let before = lab.snapshot();
    let create = b"--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+a\n";
    let delete = b"--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    lab.apply_all(&[create, delete]).unwrap();
    assert_eq!(lab.snapshot(), before);
}

/// `git apply` inside a subdirectory of a repository skips files that the repository ignores or does
/// not know, and ends with 0. The workspace lies in the site's repository, where it is ignored.
#[test]
fn a_tree_inside_an_ignored_directory_of_a_repository_is_patched() {
    let lab = Lab::below("site/.rebuild/recipe/tree", &[("src/x", b"one\ntwo\n")]);
    let site = lab.outside().join("site");
    git2::Repository::init(&site).unwrap();
    fs::write(site.join(".gitignore"), "/.rebuild\n").unwrap();
    // Conversions that the enclosing repository asks for are not ours.
    fs::write(site.join(".gitattributes"), "* text eol=crlf\n").unwrap();
    let mut config = git2::Config::open(&site.join(".git/config")).unwrap();
    config.set_bool("core.autocrlf", true).unwrap();

    let applied = lab.apply(diff("src/x", b"one\ntwo\n", b"one\nTWO\n")).unwrap();
    assert_eq!(lab.read("src/x"), b"one\nTWO\n");
    assert_eq!(applied[0].after, Some(git_blob_id(b"one\nTWO\n")));
    // A patch whose paths count from the repository's root must not pass for an applied one.
    let error = lab.refuse(diff(".rebuild/recipe/tree/src/x", b"one\nTWO\n", b"one\n2\n"));
    assert_eq!(error.to_string(), "patch p1: .rebuild/recipe/tree/src/x is not in the tree");
}

#[test]
fn nothing_but_the_named_files_is_touched() {
    let lab = Lab::with(&[("x", b"one\n"), ("y", b"y\n")]);
    // A second name of the same file must not change with it.
    fs::hard_link(lab.tree().join("x"), lab.tree().join("other name")).unwrap();
    lab.apply(diff("x", b"one\n", b"two\n")).unwrap();
    assert_eq!(lab.read("other name"), b"one\n");
    assert_eq!(lab.read("y"), b"y\n");
    let mut names: Vec<_> = fs::read_dir(lab.tree()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["other name", "x", "y"]);
}

#[test]
fn one_line_of_context_is_enough() {
    let (old, new) = (numbered("line", 30), numbered("line", 30).replace("line 15\n", "changed\n"));
    let lab = Lab::with(&[("x", old.as_bytes())]);
    let patch = diff_with("x", old.as_bytes(), new.as_bytes(), |options| {
        options.context_lines(1);
    });
    lab.apply(patch).unwrap();
    assert_eq!(lab.read("x"), new.as_bytes());
}
