//! The recipe's builds, bundled and replayed: identical, and one thing at a time that is not.

use crate::mini::Mini;

/// The miniature, built and bundled with every input; nothing else of it is there any more.
fn alone() -> Mini {
    let mini = Mini::new();
    mini.build().code(0);
    let (bundle, vendor) = (mini.path("bundle").display().to_string(), mini.path("vendor").display().to_string());
    mini.start(&["bundle", "--vendor", "--directory", &bundle, "--vendored", &vendor, "--offline"]).code(0);
    for gone in ["vendor", "cache", "site"] {
        std::fs::rename(mini.path(gone), mini.path(&format!("gone-{gone}"))).unwrap();
    }
    std::fs::create_dir(mini.path("site")).unwrap();
    mini
}

fn replay(mini: &Mini, more: &[&str]) -> crate::mini::Ran {
    let path = |name: &str| mini.path(name).display().to_string();
    let (attestation, vendor) = (path("bundle/attestation.json"), path("bundle/vendor"));
    let fixed = ["replay", &attestation, "--vendor", &vendor, "--offline", "--progress", "none"];
    mini.start(&[&fixed[..], more].concat())
}

#[test]
fn what_was_built_from_git_sources_is_replayed_from_its_bundle() {
    let mini = alone();
    let ran = replay(&mini, &["--vary", "directory,jobs"]).code(0);
    assert!(ran.text.contains("identical: all "), "{}", ran.text);
    // Submodules, nested and overridden, are among the commits.
    let mirrors = std::fs::read_to_string(mini.path("bundle/vendor/mirrors.toml")).unwrap();
    for name in ["tvm.git", "tvm-ffi.git", "mlc-llm.git"] {
        assert!(mirrors.contains(name), "{mirrors}");
    }
}

#[test]
fn another_emcc_is_named() {
    let mini = alone();
    mini.replace_tool("emcc", "6.0.13", "6.0.12");
    let ran = replay(&mini, &[]).code(2);
    assert!(ran.text.contains("tool drift") && ran.text.contains("6.0.12"), "{}", ran.text);
}

#[test]
fn a_wheel_that_is_gone_and_a_commit_that_is_gone_are_named() {
    let mini = alone();
    let gone = |end: &str| {
        let entries = walkdir::WalkDir::new(mini.path("bundle/vendor")).into_iter().map(Result::unwrap);
        let mut found =
            entries.map(walkdir::DirEntry::into_path).filter(|path| path.display().to_string().ends_with(end));
        found.next().unwrap()
    };
    let wheel = gone("compiler-1.0-py3-none-any.whl");
    let kept = std::fs::read(&wheel).unwrap();
    std::fs::remove_file(&wheel).unwrap();
    let ran = replay(&mini, &[]).code(4);
    assert!(ran.text.contains("input vanished") && ran.text.contains("wheels"), "{}", ran.text);
    std::fs::write(&wheel, kept).unwrap();
    std::fs::remove_file(gone(".pack")).unwrap();
    let ran = replay(&mini, &[]).code(4);
    assert!(ran.text.contains("input vanished"), "{}", ran.text);
}
