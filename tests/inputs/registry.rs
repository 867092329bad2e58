//! Packages through pip and npm: scripts stand in for both, with the texts of the real ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rebuild_model::digest::Digest;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::input::{Admitted, InputError};
use rebuild_model::exec::registry::{Programs, fetch_package};
use rebuild_model::pins::{Recorded, Registry};
use rebuild_model::step::FetchPackage;

use crate::desk::Desk;

const WHEEL: &str = "apache_tvm_ffi-0.1.15-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl";

/// Programs of which only the given ones can be started.
pub fn programs(desk: &Desk, python: Option<&Path>, npm: Option<&Path>) -> Programs {
    let or_none = |path: Option<&Path>| path.map_or_else(|| desk.path("programs/none"), Path::to_owned);
    let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".into())]);
    Programs { python: or_none(python), npm: or_none(npm), environment }
}

/// A Python whose `-m pip download` runs `script` with `$dest`, `$log`, `$list` and `$all` set.
pub fn python(desk: &Desk, script: &str) -> PathBuf {
    let arguments = r#"all="$*"
list=/dev/null
while [ $# -gt 0 ]; do
  case "$1" in --dest) dest=$2;; --log) log=$2;; -r) list=$2;; --find-links) links=$2;; esac
  shift
done
echo "$all" >> "${0}.calls""#;
    desk.program("python", &format!("{arguments}\n{script}"))
}

pub fn calls(desk: &Desk, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(desk.path(&format!("programs/{name}.calls"))).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn wheel(content: &[u8]) -> FetchPackage {
    FetchPackage {
        registry: Registry::Pypi,
        package: "apache-tvm-ffi".into(),
        version: "0.1.15".into(),
        file: WHEEL.parse().unwrap(),
        sha256: Recorded::Known(Digest::of(content)),
        size: Some(content.len() as u64),
    }
}

fn tarball(content: &[u8]) -> FetchPackage {
    FetchPackage {
        registry: Registry::Npm,
        package: "@esbuild/linux-x64".into(),
        version: "0.25.0".into(),
        file: "linux-x64-0.25.0.tgz".parse().unwrap(),
        sha256: Recorded::Known(Digest::of(content)),
        size: None,
    }
}

fn get(desk: &Desk, spec: &FetchPackage, programs: &Programs) -> Result<Admitted, InputError> {
    desk.with(|context| fetch_package(spec, programs, &desk.out(), context))
}

/// What comes of it when pip fails, having printed `text` and logged `log`.
fn pip_fails(text: &str, log: &str) -> InputError {
    let desk = Desk::new();
    let script = format!("cat >&2 <<'END'\n{text}\nEND\ncat > \"$log\" <<'END'\n{log}\nEND\nexit 1");
    let python = python(&desk, &script);
    get(&desk, &wheel(b"wheel"), &programs(&desk, Some(&python), None)).unwrap_err()
}

fn npm_fails(text: &str) -> InputError {
    let desk = Desk::new();
    let npm = desk.program("npm", &format!("cat >&2 <<'END'\n{text}\nEND\nexit 1"));
    get(&desk, &tarball(b"tarball"), &programs(&desk, None, Some(&npm))).unwrap_err()
}

#[test]
fn a_wheel_is_had_for_the_platform_in_its_name_and_then_from_the_cache() {
    let mut desk = Desk::new();
    let python = python(&desk, &format!("cat \"$list\" > \"$0.list\"; printf wheel > \"$dest/{WHEEL}\""));
    let programs = programs(&desk, Some(&python), None);
    let admitted = get(&desk, &wheel(b"wheel"), &programs).unwrap();
    assert_eq!(admitted.path, desk.out().join(WHEEL));
    let call = &calls(&desk, "python")[0];
    for part in ["-m pip download --no-deps", "--require-hashes", "--abi=cp311", "--platform=manylinux_2_28_x86_64"] {
        assert!(call.contains(part), "{call}");
    }
    let list = std::fs::read_to_string(desk.path("programs/python.list")).unwrap();
    assert_eq!(list, format!("apache-tvm-ffi==0.1.15 --hash=sha256:{}\n", Digest::of(b"wheel")));
    desk.offline = true;
    assert_eq!(get(&desk, &wheel(b"wheel"), &programs).unwrap().from, "cache");
    assert_eq!(calls(&desk, "python").len(), 1);
    let error = get(&desk, &wheel(b"another"), &programs).unwrap_err();
    assert!(matches!(error, InputError::Offline { .. }), "{error}");
}

#[test]
fn an_unknown_digest_is_recorded_when_asked_and_a_source_archive_is_not_built_from_sources() {
    let mut desk = Desk::new();
    let python = python(&desk, "printf sdist > \"$dest/apache_tvm_ffi-0.1.15.tar.gz\"");
    let programs = programs(&desk, Some(&python), None);
    let mut spec = wheel(b"");
    (spec.file, spec.sha256, spec.size) = ("apache_tvm_ffi-0.1.15.tar.gz".parse().unwrap(), Recorded::Not, None);
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::NotRecorded { .. }), "{error}");
    desk.record_unknown = true;
    assert_eq!(get(&desk, &spec, &programs).unwrap().digest, Digest::of(b"sdist"));
    let call = &calls(&desk, "python")[0];
    assert!(call.contains("--no-binary=apache-tvm-ffi") && !call.contains("--require-hashes"), "{call}");
}

#[test]
fn what_pip_brings_is_judged_by_us() {
    let desk = Desk::new();
    let python = python(&desk, &format!("printf other > \"$dest/{WHEEL}\""));
    let error = get(&desk, &wheel(b"wheel"), &programs(&desk, Some(&python), None)).unwrap_err();
    assert!(matches!(&error, InputError::Differs { found, .. } if *found == Digest::of(b"other")), "{error}");

    let python = self::python(&desk, "printf wheel > \"$dest/apache_tvm_ffi-0.1.15-py3-none-any.whl\"");
    let error = get(&desk, &wheel(b"wheel"), &programs(&desk, Some(&python), None)).unwrap_err();
    assert!(error.to_string().contains("the registry gave apache_tvm_ffi-0.1.15-py3-none-any.whl"), "{error}");

    let python = self::python(&desk, "");
    let error = get(&desk, &wheel(b"wheel"), &programs(&desk, Some(&python), None)).unwrap_err();
    assert!(matches!(&error, InputError::OtherFile { found, .. } if found == "none"), "{error}");
    assert!(crate::desk::files_below(&desk.out()).is_empty());
}

#[test]
fn pips_hash_mismatch_is_a_pin_mismatch() {
    let (expected, found) = (Digest::of(b"wheel"), Digest::of(b"other"));
    let error = pip_fails(
        &format!(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, please update the hashes.\n    \
             apache-tvm-ffi==0.1.15 from https://files.example/d9/{WHEEL} (from -r r.txt (line 1)):\n        \
             Expected sha256 {expected}\n        \
             Expected     or {found}\n             \
             Got        {found}\n"
        ),
        "",
    );
    assert_eq!(error.class(), Class::PinMismatch);
    let InputError::Differs { what, from, expected: wanted, found: got, .. } = &error else { panic!("{error}") };
    assert_eq!(
        (what.as_str(), from.as_str()),
        ("apache-tvm-ffi==0.1.15", &*format!("https://files.example/d9/{WHEEL}"))
    );
    assert_eq!((wanted, got), (&vec![expected, found], &found));
}

#[test]
fn a_vanished_package_is_told_from_an_index_that_does_not_answer() {
    let none = "ERROR: Could not find a version that satisfies the requirement apache-tvm-ffi==0.1.15 (from versions: none)\n\
                ERROR: No matching distribution found for apache-tvm-ffi==0.1.15";
    let log = |reason: &str| {
        format!(
            "2026-01-01T00:00:00,000 Could not fetch URL https://index.example/simple/apache-tvm-ffi/: {reason} - skipping"
        )
    };
    let error = pip_fails(none, "");
    assert!(matches!(error, InputError::Vanished { .. }), "{error}");
    let error = pip_fails(none, &log("404 Client Error: Not Found for url: https://index.example/simple/x/"));
    assert!(matches!(error, InputError::Vanished { .. }), "{error}");
    let error = pip_fails(none, &log("403 Client Error: Forbidden for url: https://index.example/simple/x/"));
    assert!(matches!(error, InputError::Refused { .. }), "{error}");
    for reason in [
        "connection error: HTTPConnectionPool(host='127.0.0.1', port=9): Max retries exceeded",
        "503 Server Error: Unavailable",
    ] {
        let error = pip_fails(none, &log(reason));
        assert!(matches!(error, InputError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.class(), Class::Unavailable);
    }
    let error = pip_fails("ERROR: HTTP error 404 while getting https://files.example/a.whl", "");
    assert!(matches!(error, InputError::Vanished { .. }), "{error}");
    let error =
        pip_fails("ERROR: Exception:\nTraceback (most recent call last):\nReadTimeoutError: Read timed out.", "");
    assert!(matches!(error, InputError::Unreachable { .. }), "{error}");
}

#[test]
fn other_failures_of_the_tools_are_shown_as_they_are() {
    let error = pip_fails("something else", "");
    assert!(matches!(error, InputError::Tool { .. }), "{error}");
    assert_eq!(error.detail().unwrap(), "something else");
    let error = pip_fails("/usr/bin/python3: No module named pip", "");
    assert_eq!(error.class(), Class::Preflight);
    let error =
        pip_fails("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "");
    assert_eq!(error.hint().as_deref(), Some("the disk is full"));
    let desk = Desk::new();
    let error = get(&desk, &wheel(b"wheel"), &programs(&desk, None, None)).unwrap_err();
    assert_eq!((error.class(), error.to_string().contains("programs/none")), (Class::Preflight, true));
}

#[test]
fn an_npm_package_is_had_under_its_published_name_or_npms() {
    let desk = Desk::new();
    let npm = desk.program("npm", "echo \"$*\" >> \"$0.calls\"; printf tarball > \"$5/esbuild-linux-x64-0.25.0.tgz\"");
    let programs = programs(&desk, None, Some(&npm));
    get(&desk, &tarball(b"tarball"), &programs).unwrap();
    assert_eq!(std::fs::read(desk.path("out/linux-x64-0.25.0.tgz")).unwrap(), b"tarball");
    let call = &calls(&desk, "npm")[0];
    assert!(call.starts_with("pack --ignore-scripts") && call.ends_with("@esbuild/linux-x64@0.25.0"), "{call}");

    let mut spec = tarball(b"another");
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::Differs { .. }), "{error}");
    spec.file = "esbuild-linux-x64-0.25.0.tgz".parse().unwrap();
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::Differs { .. }), "{error}");
    spec.file = "esbuild-0.25.0.tgz".parse().unwrap();
    let error = get(&desk, &spec, &programs).unwrap_err();
    assert!(matches!(error, InputError::OtherFile { .. }), "{error}");
}

#[test]
fn npms_codes_are_understood() {
    let gone = npm_fails("npm error code ETARGET\nnpm error notarget No matching version found for esbuild@99.0.0.");
    assert!(matches!(gone, InputError::Vanished { .. }), "{gone}");
    assert!(gone.to_string().contains("No matching version found"), "{gone}");
    let gone = npm_fails("npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x");
    assert!(matches!(gone, InputError::Vanished { .. }), "{gone}");
    let silent = npm_fails(
        "npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error errno ECONNREFUSED\nnpm error FetchError: request to http://127.0.0.1:9/esbuild failed, reason: connect ECONNREFUSED 127.0.0.1:9",
    );
    assert!(matches!(silent, InputError::Unreachable { .. }), "{silent}");
    assert!(silent.to_string().contains("request to http://127.0.0.1:9/esbuild failed"), "{silent}");
    let other = npm_fails("npm error code EUSAGE\nnpm error x");
    assert!(matches!(other, InputError::Tool { .. }), "{other}");
}

#[test]
fn names_that_would_mean_another_thing_to_the_tools_are_refused() {
    let desk = Desk::new();
    let programs = programs(&desk, None, None);
    for (package, version) in
        [("-r", "1"), ("a b", "1"), ("a", "1 --index-url=x"), ("a", "file:../x"), ("", "1"), ("a", "")]
    {
        let mut spec = wheel(b"");
        (spec.package, spec.version) = (package.into(), version.into());
        let error = get(&desk, &spec, &programs).unwrap_err();
        assert!(matches!(error, InputError::Name { .. }), "{package} {version}: {error}");
    }
}
