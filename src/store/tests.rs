//! The store, over real directories.

use super::*;

fn quiet(_: String) {}

#[test]
fn the_cache_gives_back_what_it_was_given() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
    let file = root.path().join("a.bin");
    std::fs::write(&file, "content").unwrap();
    let digest = Digest::of(b"content");
    assert_eq!(store.find(&digest, None, quiet), None);
    let place = store.insert(&file, &digest, "a.bin").unwrap();
    assert!(place.ends_with(format!("sha256/{digest}/a.bin")));
    assert_eq!(store.find(&digest, Some(7), quiet), Some(Found { path: place, from: Shelf::Cache }));
    assert!(matches!(store.insert(&file, &Digest::of(b"x"), "a"), Err(StoreError::Other { .. })));
    assert_eq!(store.find(&Digest::of(b"x"), None, quiet), None);
}

#[test]
fn a_damaged_cache_entry_is_noted_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
    let file = root.path().join("a.bin");
    std::fs::write(&file, "content").unwrap();
    let digest = Digest::of(b"content");
    let place = store.insert(&file, &digest, "a.bin").unwrap();
    std::fs::write(&place, "c0ntent").unwrap();
    let mut notes = Vec::new();
    let copied = store.copy_out(&digest, None, &root.path().join("copy"), |note| notes.push(note));
    assert_eq!(copied.unwrap(), None);
    assert!(notes[0].contains("damaged"), "{notes:?}");
    assert!(!place.exists() && !root.path().join("copy").exists());
    assert_eq!(store.insert(&file, &digest, "a.bin").unwrap(), place);
}

#[test]
fn a_full_disk_is_no_fault_of_what_is_copied() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
    let file = root.path().join("a.bin");
    std::fs::write(&file, "content").unwrap();
    let digest = Digest::of(b"content");
    store.insert(&file, &digest, "a.bin").unwrap();
    // /dev/full refuses every write as a full disk does.
    let full = root.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let failed = store.copy_out(&digest, None, &full, |note| panic!("{note}")).unwrap_err();
    assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    assert!(store.find(&digest, None, quiet).is_some());
}

#[test]
fn vendored_files_serve_by_content_wherever_they_lie_and_are_never_touched() {
    let root = tempfile::tempdir().unwrap();
    let vendor = root.path().join("vendor");
    let digest = Digest::of(b"content");
    std::fs::create_dir_all(vendor.join("deep/er")).unwrap();
    std::fs::write(vendor.join("deep/er/any name.whl"), "content").unwrap();
    std::fs::write(vendor.join("same-size"), "7 bytes").unwrap();
    let store = Store::open(vec![vendor.clone()], root.path().join("cache")).unwrap();
    let copy = root.path().join("copy");
    let found = store.copy_out(&digest, Some(7), &copy, quiet).unwrap().unwrap();
    assert_eq!(found.path, vendor.join("deep/er/any name.whl"));
    assert_eq!(std::fs::read(&copy).unwrap(), b"content");
    assert_eq!(store.find(&digest, None, quiet), Some(found));
    assert_eq!(store.find(&digest, Some(8), quiet), None);

    let shelf = vendor.join("sha256").join(Digest::of(b"other").to_string());
    std::fs::create_dir_all(&shelf).unwrap();
    std::fs::write(shelf.join("other"), "0ther").unwrap();
    let mut notes = Vec::new();
    assert_eq!(store.find(&Digest::of(b"other"), None, |note| notes.push(note)), None);
    assert_eq!(notes.len(), 1);
    let impostor = (shelf.join("other"), Digest::of(b"0ther"), 5);
    assert_eq!(store.impostor(&Digest::of(b"other")), Some(impostor));
    assert_eq!(store.impostor(&digest), None);
    assert!(shelf.join("other").exists());
    assert!(!root.path().join("cache").exists());
}

#[test]
fn a_vendored_file_that_changed_since_it_was_hashed_is_not_served() {
    let root = tempfile::tempdir().unwrap();
    let vendor = root.path().join("vendor");
    std::fs::create_dir(&vendor).unwrap();
    std::fs::write(vendor.join("a"), "content").unwrap();
    let store = Store::open(vec![vendor.clone()], root.path().join("cache")).unwrap();
    let digest = Digest::of(b"content");
    let time = std::fs::metadata(vendor.join("a")).unwrap().modified().unwrap();
    assert!(store.find(&digest, None, quiet).is_some());
    std::fs::write(vendor.join("a"), "c0ntent").unwrap();
    std::fs::File::options().write(true).open(vendor.join("a")).unwrap().set_modified(time).unwrap();
    assert_eq!(store.find(&digest, None, quiet), None);
}

#[test]
fn concurrent_inserts_leave_one_whole_file() {
    let root = tempfile::tempdir().unwrap();
    let content = vec![7; 300_000];
    let digest = Digest::of(&content);
    let file = root.path().join("a.bin");
    std::fs::write(&file, &content).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
                store.insert(&file, &digest, "a.bin").unwrap();
                // Whatever another one is doing, a reader sees a whole file or none.
                assert!(store.find(&digest, None, |note| panic!("{note}")).is_some());
            });
        }
    });
    let shelf = root.path().join("cache/sha256").join(digest.to_string());
    assert_eq!(std::fs::read_dir(shelf).unwrap().count(), 1);
}

#[test]
fn a_missing_vendor_directory_is_an_error_and_names_are_kept_inside() {
    let root = tempfile::tempdir().unwrap();
    let missing = Store::open(vec![root.path().join("no")], root.path().join("cache"));
    assert!(matches!(missing, Err(StoreError::NoVendor { .. })));
    let store = Store::open(Vec::new(), root.path().join("cache")).unwrap();
    let file = root.path().join("a.bin");
    std::fs::write(&file, "content").unwrap();
    let place = store.insert(&file, &Digest::of(b"content"), "../../../.ssh").unwrap();
    assert!(place.ends_with("file") && place.starts_with(root.path().join("cache/sha256")));
}

#[test]
fn the_usual_cache_is_in_an_absolute_place() {
    let with = |xdg: &'static str, home: &'static str| {
        Store::usual_cache(|name| Some(if name == "HOME" { home } else { xdg }.into()))
    };
    assert_eq!(with("/x", "/h"), Some("/x/rebuild-model".into()));
    assert_eq!(with("x", "/h"), Some("/h/.cache/rebuild-model".into()));
    assert_eq!(with("", ""), None);
}
