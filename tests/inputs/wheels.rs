//! The wheels of a requirements file.

use rebuild_model::digest::Digest;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::input::{Admitted, InputError};
use rebuild_model::exec::registry::{Programs, fetch_wheels};
use rebuild_model::pins::{Recorded, WheelPin};
use rebuild_model::step::{Action, FetchWheels};

use crate::desk::{Desk, files_below};
use crate::registry::{calls, programs, python};

/// Answers as pip does: what is in the links directory is taken, the rest is made when there is a network.
const PIP: &str = r#"cat "$list" > "$0.list"
cp "$links"/*.whl "$dest" 2>/dev/null
for name in one two; do
  file="$dest/$name-1.0-py3-none-any.whl"
  [ -e "$file" ] && continue
  case "$all" in *--no-index*) echo "ERROR: No matching distribution found for $name==1.0" >&2; exit 1;; esac
  printf "$name" > "$file"
done"#;

fn requirements(desk: &Desk, text: &str) -> FetchWheels {
    desk.write("pins/requirements.txt", text);
    FetchWheels {
        requirements: "requirements.txt".parse().unwrap(),
        sha256: Recorded::Known(Digest::of(text.as_bytes())),
        wheels: std::collections::BTreeMap::new(),
    }
}

fn both() -> String {
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    format!(
        "# pinned\none==1.0 \\\n    --hash=sha256:{two} \\\n    --hash=sha256:{one}\ntwo==1.0 --hash=sha256:{two}\n"
    )
}

fn get(desk: &Desk, spec: &FetchWheels, programs: &Programs) -> Result<Vec<Admitted>, InputError> {
    desk.with(|context| fetch_wheels(spec, programs, &desk.out(), context))
}

fn names(desk: &Desk) -> Vec<String> {
    let name = |path: std::path::PathBuf| path.strip_prefix(desk.out()).unwrap().display().to_string();
    let mut names: Vec<_> = files_below(&desk.out()).into_iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn wheels_come_from_the_network_once() {
    let mut desk = Desk::new();
    let python = python(&desk, PIP);
    let programs = programs(&desk, Some(&python), None);
    let spec = requirements(&desk, &both());
    assert_eq!(get(&desk, &spec, &programs).unwrap().len(), 2);
    let all = ["wheels/one-1.0-py3-none-any.whl", "wheels/two-1.0-py3-none-any.whl"];
    assert_eq!(names(&desk), all);
    let list = std::fs::read_to_string(desk.path("programs/python.list")).unwrap();
    assert_eq!(list.lines().count(), 2);
    std::fs::remove_dir_all(desk.out()).unwrap();
    desk.offline = true;
    get(&desk, &spec, &programs).unwrap();
    assert_eq!(names(&desk), all);
    let calls = calls(&desk, "python");
    assert_eq!(calls.iter().map(|call| call.contains("--no-index")).collect::<Vec<_>>(), [false, true]);
    assert!(calls.iter().all(|call| call.contains("--require-hashes") && call.contains("--no-deps")), "{calls:?}");
}

#[test]
fn a_wheel_that_is_pinned_by_itself_joins_the_list() {
    let mut desk = Desk::new();
    let python = python(&desk, PIP);
    let programs = programs(&desk, Some(&python), None);
    let only = |name: &[u8]| format!("one==1.0 --hash=sha256:{}", Digest::of(name));
    let mut spec = requirements(&desk, &only(b"one"));
    let two = |sha256| WheelPin { version: "1.0".parse().unwrap(), sha256 };
    let pin = |spec: &mut FetchWheels, wheel| spec.wheels.insert("two".parse().unwrap(), wheel);
    pin(&mut spec, two(Recorded::Known(Digest::of(b"two"))));
    assert_eq!(get(&desk, &spec, &programs).unwrap().len(), 2);
    let list = std::fs::read_to_string(desk.path("programs/python.list")).unwrap();
    assert!(list.contains(&format!("two==1.0 --hash=sha256:{}", Digest::of(b"two"))), "{list}");

    // No installer takes a wheel without its hash, whatever else may be recorded on the way.
    desk.record_unknown = true;
    pin(&mut spec, two(Recorded::Not));
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert_eq!(error.class(), Class::PinMismatch);
    assert!(error.to_string().contains("wheel two 1.0"), "{error}");
    assert_eq!(Action::FetchWheels(spec.clone()).unrecorded_inputs(), ["two 1.0"]);

    pin(&mut spec, two(Recorded::Known(Digest::of(b"two"))));
    spec.wheels.insert("one".parse().unwrap(), WheelPin { version: "2.0".parse().unwrap(), sha256: spec.sha256 });
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(format!("{error:?}").contains("Twice"), "{error:?}");
}

#[test]
fn a_vendor_directory_is_enough_and_what_lacks_is_named() {
    let mut desk = Desk::new();
    desk.offline = true;
    let python = python(&desk, PIP);
    let mut programs = programs(&desk, Some(&python), None);
    programs.environment.insert("PIP_FIND_LINKS".into(), "https://links.example".into());
    let spec = requirements(&desk, &both());
    desk.write("vendor/two-1.0-py3-none-any.whl", "two");
    desk.write("vendor/nameless", "one");
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert_eq!(error.class(), Class::Unavailable);
    // The digest of `two` is allowed for `one` too; pip is asked, and it knows that the name is another.
    assert!(error.to_string().contains("one==1.0"), "{error}");
    desk.write("vendor/deep/one-1.0-py3-none-any.whl", "one");
    std::fs::remove_file(desk.path("vendor/nameless")).unwrap();
    get(&desk, &spec, &programs).unwrap();
    std::fs::remove_file(desk.path("vendor/two-1.0-py3-none-any.whl")).unwrap();
    std::fs::remove_dir_all(desk.path("cache")).unwrap();
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(&error, InputError::Offline { what, .. } if what == "a wheel of two 1.0"), "{error}");
    // What stands in its place is named.
    let place = format!("vendor/sha256/{}/two-1.0-py3-none-any.whl", Digest::of(b"two"));
    desk.write(&place, "another");
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert_eq!(error.class(), Class::PinMismatch);
    let text = format!(
        "a wheel of two 1.0 differs from its pin: expected sha256 {}, found {} (7 bytes), from {}",
        Digest::of(b"two"),
        Digest::of(b"another"),
        desk.path(&place).display()
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn stored_wheels_that_are_not_enough_are_completed_from_the_network() {
    let desk = Desk::new();
    let python = python(&desk, PIP);
    let spec = requirements(&desk, &both());
    desk.write("vendor/two-1.0-py3-none-any.whl", "two");
    get(&desk, &spec, &programs(&desk, Some(&python), None)).unwrap();
    assert_eq!(calls(&desk, "python").len(), 2);
    assert!(desk.log.notes()[0].contains("not all that is needed"), "{:?}", desk.log.notes());
}

#[test]
fn a_wheel_that_is_not_listed_is_refused() {
    let desk = Desk::new();
    let python = python(&desk, "printf evil > \"$dest/one-1.0-py3-none-any.whl\"");
    let spec = requirements(&desk, &both());
    let error = get(&desk, &spec, &programs(&desk, Some(&python), None)).unwrap_err();
    assert!(matches!(&error, InputError::Unlisted { found, .. } if *found == Digest::of(b"evil")), "{error}");
    assert_eq!(error.class(), Class::PinMismatch);
    assert!(names(&desk).is_empty());
}

#[test]
fn the_requirements_file_is_pinned_and_strict() {
    let desk = Desk::new();
    let programs = programs(&desk, None, None);
    let mut spec = requirements(&desk, &both());
    desk.write("pins/requirements.txt", "edited");
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::Differs { .. }), "{error}");
    assert_eq!(std::fs::read(desk.path("pins/requirements.txt")).unwrap(), b"edited");
    spec.sha256 = Recorded::Not;
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::NotRecorded { .. }), "{error}");
    let error = get(&desk, &requirements(&desk, "one>=1\n"), &programs).unwrap_err();
    assert_eq!(error.class(), Class::Usage);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "line 1: `one>=1` is not `name==version` with one exact version");
    let spec = requirements(&desk, &both());
    std::fs::remove_file(desk.path("pins/requirements.txt")).unwrap();
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::Missing { .. }), "{error}");
}
