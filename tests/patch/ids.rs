//! Blob ids: what is pinned, what the patch promises, what is already there.

use rebuild_model::exec::patch::{Image, PatchError, Promise, git_blob_id};
use rebuild_model::pins::{Images, Recorded};

use crate::lab::{Lab, Pinned, diff, numbered, path, pin, show};

const ONE: &[u8] = b"one\n";
const TWO: &[u8] = b"two\n";
/// The change of x from [`ONE`] to [`TWO`], without ids.
const PLAIN: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n";

fn pinned(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Pinned {
    let id = |bytes: &[u8]| Recorded::Known(git_blob_id(bytes));
    Pinned::from([(path(name), Images { before: before.map(id), after: after.map(id) })])
}

#[test]
fn pinned_images_that_agree_pass() {
    let lab = Lab::with(&[("x", ONE)]);
    lab.apply_pinned(PLAIN, &pinned("x", Some(ONE), Some(TWO))).unwrap();
    let create = "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+two\n";
    lab.apply_pinned(create, &pinned("y", None, Some(TWO))).unwrap();
    let delete = "--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n";
    lab.apply_pinned(delete, &pinned("y", Some(TWO), None)).unwrap();
}

#[test]
fn images_not_recorded_yet_are_not_compared_but_must_exist() {
    let lab = Lab::with(&[("x", ONE)]);
    let not = || Some(Recorded::Not);
    lab.refuse_with(|lab| lab.apply_pinned(PLAIN, &Pinned::from([(path("x"), Images { before: None, after: not() })])));
    let applied = lab.apply_pinned(PLAIN, &Pinned::from([(path("x"), Images { before: not(), after: not() })]));
    assert_eq!(applied.unwrap()[0].after, Some(git_blob_id(TWO)));
}

#[test]
fn a_pinned_image_that_differs_is_an_error_even_when_every_hunk_fits() {
    // The file differs far from the hunk.
    let text = numbered("", 39).replace(' ', "");
    let other = text.replace("35\n", "thirty-five\n");
    let lab = Lab::with(&[("x", other.as_bytes())]);
    let patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n";
    let pins = Pinned::from([(
        path("x"),
        Images { before: Some(Recorded::Known(git_blob_id(text.as_bytes()))), after: Some(Recorded::Not) },
    )]);
    let error = lab.refuse_with(|lab| lab.apply_pinned(patch, &pins));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x before the patch is 11babb9a4f87f70f30282f63f7f1ed41c028f325, and its pin says 036db16e1baec503df9ceb790aafc599071b5a1c
    hint: the source is not what the patch was reviewed for: check the source's pin, or review the patch again and pin the new ids
    "#);
    let pins =
        Pinned::from([(path("x"), Images { before: Some(Recorded::Not), after: Some(pin(&"0123456789".repeat(4))) })]);
    let error = lab.refuse_with(|lab| lab.apply_pinned(patch, &pins));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1: x after the patch is c2a070b1c8b07353074eea289c6bb81df1a1c771, and its pin says 0123456789012345678901234567890123456789
    hint: the patch makes something else than what was reviewed: review it and pin the new id
    "#);
}

#[test]
fn a_pin_that_says_there_is_no_file_is_kept_to() {
    let lab = Lab::with(&[("x", ONE)]);
    for pins in [pinned("x", None, Some(TWO)), pinned("x", Some(ONE), None)] {
        let error = lab.refuse_with(|lab| lab.apply_pinned(PLAIN, &pins));
        assert!(matches!(error, PatchError::ImageDiffers { promise: Promise::Pin, .. }), "{error}");
    }
}

#[test]
fn the_pinned_files_are_the_touched_files() {
    let lab = Lab::with(&[("x", ONE), ("y", ONE)]);
    let mut pins = pinned("x", Some(ONE), Some(TWO));
    pins.extend(pinned("y", Some(ONE), Some(TWO)));
    let error = lab.refuse_with(|lab| lab.apply_pinned(PLAIN, &pins));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1 does not touch y, which its pinned images list
    hint: list exactly the files that the patch touches, or none
    "#);
    let error = lab.refuse_with(|lab| lab.apply_pinned(PLAIN, &pinned("y", Some(ONE), Some(TWO))));
    insta::assert_snapshot!(show(&error), @r#"
    patch p1 touches x, which its pinned images do not list
    hint: list exactly the files that the patch touches, or none
    "#);
}

#[test]
fn full_ids_in_the_patch_are_promises() {
    let lab = Lab::with(&[("x", b"one\ntwo\nthree\nfour\nfive\n")]);
    let patch = diff("x", b"one\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\n");
    let error = lab.refuse(&patch);
    assert!(
        matches!(error, PatchError::ImageDiffers { image: Image::Before, promise: Promise::IndexLine, .. }),
        "{error}"
    );
    // An edited patch: the change is not what its index line says.
    let patch = String::from_utf8(diff("x", ONE, TWO)).unwrap().replace("+two", "+twp");
    let lab = Lab::with(&[("x", ONE)]);
    let error = lab.refuse(patch);
    assert!(
        matches!(error, PatchError::ImageDiffers { image: Image::After, promise: Promise::IndexLine, .. }),
        "{error}"
    );
}

#[test]
fn shortened_ids_that_differ_are_noted() {
    let lab = Lab::with(&[("x", ONE)]);
    lab.apply(format!("diff --git a/x b/x\nindex 0123456..{}\n{PLAIN}", &git_blob_id(TWO).as_str()[..7])).unwrap();
    assert_eq!(
        lab.notes(),
        ["patch p1: x is 5626abf0f72e58d7a153368ba57db4c673c0e171 before the patch, which was made for 0123456"]
    );
}

#[test]
fn already_applied_is_decided_by_blob_id() {
    let lab = Lab::with(&[("x", TWO)]);
    let by_pin = lab.refuse_with(|lab| lab.apply_pinned(PLAIN, &pinned("x", Some(ONE), Some(TWO))));
    insta::assert_snapshot!(show(&by_pin), @r#"
    patch p1 is already applied: x is already the patch's post-image
    hint: the pinned source may contain the change already: drop the patch, or pin the source without it
    "#);
    let by_index = lab.refuse(diff("x", ONE, TWO));
    assert!(matches!(by_index, PatchError::AlreadyApplied { .. }));
    // Without an id nobody knows: the hunk does not fit, and no more is said.
    let unknown = lab.refuse(PLAIN);
    assert!(matches!(unknown, PatchError::Hunk { .. }));
    // The lines of the patch stand there, in a file that is another one: not applied.
    lab.write("x", b"two\nmore\n");
    let other = lab.refuse(diff("x", ONE, TWO));
    assert!(matches!(other, PatchError::Hunk { .. }), "{other}");
}

#[test]
fn a_creation_that_is_already_there_is_already_applied() {
    let lab = Lab::with(&[("x", TWO)]);
    let create = |id: &str| {
        format!(
            "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..{id}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+two\n"
        )
    };
    assert!(matches!(lab.refuse(create(git_blob_id(TWO).as_str())), PatchError::AlreadyApplied { .. }));
    assert!(matches!(lab.refuse(create("0123456")), PatchError::Exists { .. }));
}

#[test]
fn a_patch_applied_in_part_is_named_as_such() {
    let lab = Lab::with(&[("x", TWO), ("y", ONE)]);
    let error = lab.refuse([diff("x", ONE, TWO), diff("y", ONE, TWO)].concat());
    insta::assert_snapshot!(show(&error), @r#"
    patch p1 is applied in part: x is already the patch's post-image, y is not
    hint: the pinned source may contain the change already: drop the patch, or pin the source without it
    "#);
}

#[test]
fn a_missing_file_is_never_taken_for_a_deleted_one() {
    let lab = Lab::with(&[("other", ONE)]);
    let delete = format!(
        "diff --git a/x b/x\ndeleted file mode 100644\nindex {}..{}\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n",
        git_blob_id(ONE),
        "0".repeat(40)
    );
    assert!(matches!(lab.refuse(&delete), PatchError::Missing { .. }));
}

#[test]
fn a_change_of_mode_is_not_taken_for_applied() {
    let lab = Lab::with(&[("x", ONE)]);
    let patch = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    lab.apply_pinned(patch, &pinned("x", Some(ONE), Some(ONE))).unwrap();
    assert_eq!(lab.mode("x"), 0o755);
}

#[test]
fn a_patch_that_changes_nothing_is_an_error() {
    let lab = Lab::with(&[("x", ONE)]);
    let error = lab.refuse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+one\n");
    insta::assert_snapshot!(show(&error), @r#"
    patch p1 changes nothing in x
    hint: make the patch again from the pinned commit: `git diff --full-index --no-renames`
    "#);
}
