//! Fetching git sources from repositories on this host.

#[path = "support/repositories.rs"]
#[allow(dead_code, missing_docs, reason = "each test binary uses a part of it")]
mod repositories;

use std::os::unix::fs::PermissionsExt;

use git2::{Oid, Repository};
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::git::{GitError, How};
use rebuild_model::step::Take;
use repositories::*;

const TOP: &str = "./repositories/top.git";

#[test]
fn three_levels_of_submodules_stand_at_their_commits() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let report = field.fetch(&nest.checkout(TOP)).unwrap();
    assert_eq!(paths(&report), [".", "extra", "libs/mid", "libs/mid/deep"]);
    assert_eq!(
        ["top.txt", "extra/extra.txt", "libs/mid/mid.txt", "libs/mid/deep/deep.txt"].map(|path| field.read(path)),
        ["top\n", "extra\n", "mid\n", "deep\n"]
    );
    assert_eq!(field.names("."), [".gitmodules", "extra", "libs", "top.txt"]);
    assert_eq!(field.names("libs/mid/deep"), ["deep.txt"]);
    assert!(
        report.repositories.iter().all(|repository| repository.how == How::Local && repository.fallbacks.is_empty())
    );
    assert_eq!(report.repositories[3].url, "./repositories/deep.git");
    assert_eq!(report.repositories[3].commit, pin(nest.deep));
    assert!(field.log.notes().is_empty());
    let text = serde_json::to_string(&report).unwrap();
    assert!(text.contains("\"how\":\"local\""), "{text}");
}

#[test]
fn relative_urls_work_below_a_file_url_and_a_path() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let path = field.path("pins/repositories/top.git").display().to_string();
    field.fetch_into(&nest.checkout(&format!("file://{path}")), &field.path("out/a")).unwrap();
    field.fetch_into(&nest.checkout(&path), &field.path("out/b")).unwrap();
    for out in ["a", "b"] {
        assert!(field.path(&format!("out/{out}/libs/mid/deep/deep.txt")).exists());
    }
}

#[test]
fn a_working_tree_and_a_name_without_suffix_are_repositories_too() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    assert!(field.fetch_into(&nest.checkout("./repositories/top"), &field.path("out/a")).is_ok());
    let work = Repository::init(field.path("pins/repositories/work")).unwrap();
    let commit = commit_items(&work, &[("a", file("a\n"))]);
    field.fetch(&checkout("./repositories/work", commit)).unwrap();
    assert_eq!(field.read("a"), "a\n");
}

#[test]
fn an_override_stands_in_the_place_of_a_submodule_with_its_own() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let other = field.repository("other.git");
    let modules = "[submodule \"x\"]\npath = x\nurl = ../deep.git\n";
    let other = commit_items(
        &other,
        &[(".gitmodules", file(modules)), ("other.txt", file("other\n")), ("x", Item::Submodule(nest.deep))],
    );
    let inner = with(checkout("./repositories/other.git", other), "x", nest.deep, RECORDED);
    let outer = with(checkout(TOP, nest.top), "libs/mid", nest.mid, Take::Override(Box::new(inner)));
    let report = field.fetch(&with(outer, "extra", nest.extra, RECORDED)).unwrap();
    assert_eq!(paths(&report), [".", "extra", "libs/mid", "libs/mid/x"]);
    assert_eq!(field.names("libs/mid"), [".gitmodules", "other.txt", "x"]);
    assert_eq!(field.read("libs/mid/x/deep.txt"), "deep\n");
}

#[test]
fn a_skipped_submodule_leaves_an_empty_directory() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let mut wanted = nest.checkout(TOP);
    wanted.submodules.get_mut("extra").unwrap().take = Take::Nothing;
    let report = field.fetch(&wanted).unwrap();
    assert_eq!(paths(&report), [".", "libs/mid", "libs/mid/deep"]);
    assert!(field.names("extra").is_empty());
}

#[test]
fn a_pinned_url_replaces_the_one_of_gitmodules() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    std::fs::rename(field.path("pins/repositories/extra.git"), field.path("pins/moved.git")).unwrap();
    let mut wanted = nest.checkout(TOP);
    let error = field.fail(&wanted);
    assert!(matches!(&error, GitError::Unreachable { path, .. } if path == "extra"), "{error}");
    wanted.submodules.get_mut("extra").unwrap().take = Take::Recorded { url: Some("./moved.git".into()) };
    field.fetch(&wanted).unwrap();
    assert_eq!(field.read("extra/extra.txt"), "extra\n");
}

#[test]
fn a_moved_gitlink_is_a_mismatch() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let wanted = with(nest.checkout(TOP), "libs/mid/deep", nest.extra, RECORDED);
    let error = field.fail(&wanted);
    assert_eq!(error.class(), Class::PinMismatch);
    assert_eq!(
        error.to_string(),
        format!(
            "submodule libs/mid/deep: expected commit {}, and ./repositories/mid.git at {} records {}",
            nest.extra, nest.mid, nest.deep
        )
    );
    assert!(error.hint().is_some());
}

#[test]
fn a_submodule_without_a_pin_is_a_mismatch_at_every_level() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    for missing in ["extra", "libs/mid/deep"] {
        let mut wanted = nest.checkout(TOP);
        wanted.submodules.remove(missing);
        let error = field.fail(&wanted);
        assert_eq!(error.class(), Class::PinMismatch);
        assert!(matches!(&error, GitError::Unpinned { path, url: Some(_), .. } if path == missing), "{error}");
        assert!(error.hint().unwrap().contains(&format!("\"{missing}\" = {{ commit = ")));
    }
}

#[test]
fn a_pin_without_a_submodule_is_a_mismatch() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    for path in ["top.txt", "libs", "libs/mid/none", "libs/middle", "extra/deep"] {
        let error = field.fail(&with(nest.checkout(TOP), path, nest.deep, RECORDED));
        assert!(matches!(&error, GitError::NotASubmodule { path: found, .. } if found == path), "{error}");
        assert_eq!(error.class(), Class::PinMismatch);
    }
    let mut wanted = nest.checkout(TOP);
    wanted.submodules.get_mut("libs/mid").unwrap().take = Take::Nothing;
    let error = field.fail(&wanted);
    assert!(matches!(&error, GitError::Replaced { path, .. } if path == "libs/mid/deep"), "{error}");
}

#[test]
fn a_submodule_without_a_usable_url_is_named() {
    let field = Field::new();
    let repository = field.repository("top.git");
    let link = Oid::from_str(&"1".repeat(40)).unwrap();
    for modules in [
        None,
        Some("[submodule \"a\"]\npath = b\nurl = ../b.git\n"),
        Some("[submodule \"a\"]\npath = a\nurl = ../../../b\n"),
        Some("[sub"),
    ] {
        let mut items = vec![("a", Item::Submodule(link))];
        items.extend(modules.map(|text| (".gitmodules", file(text))));
        items.reverse();
        let commit = commit_items(&repository, &items);
        let error = field.fail(&with(checkout(TOP, commit), "a", link, RECORDED));
        assert_eq!(error.class(), Class::PinMismatch);
        let fits = matches!(error, GitError::NoUrl { .. } | GitError::BadUrl { .. } | GitError::BadModules { .. });
        assert!(fits && error.hint().is_some(), "{error}");
        let skipped = with(checkout(TOP, commit), "a", link, Take::Nothing);
        field.fetch_into(&skipped, &field.path("out").join("skipped")).unwrap();
        std::fs::remove_dir_all(field.path("out/skipped")).unwrap();
    }
    let modules = tree(&repository, &[]);
    let commit = commit_items(&repository, &[(".gitmodules", Item::Tree(modules)), ("a", Item::Submodule(link))]);
    let error = field.fail(&with(checkout(TOP, commit), "a", link, RECORDED));
    assert!(matches!(error, GitError::BadModules { .. }), "{error}");
}

#[test]
fn another_tree_is_a_mismatch_and_the_right_one_is_none() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let mut wanted = nest.checkout(TOP);
    wanted.tree = Some(pin(nest.deep));
    let error = field.fail(&wanted);
    assert_eq!(error.class(), Class::PinMismatch);
    let GitError::TreeDiffers { expected, found, .. } = &error else { panic!("{error}") };
    assert_eq!(*expected, pin(nest.deep));
    wanted.tree = Some(found.clone());
    assert_eq!(root(&field.fetch(&wanted).unwrap()).tree, *found);
}

#[test]
fn a_commit_that_is_not_there_is_unavailable() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let error = field.fail(&checkout(TOP, nest.mid));
    assert!(matches!(error, GitError::CommitMissing { .. }), "{error}");
    assert_eq!(error.class(), Class::Unavailable);
    let error = field.fail(&checkout("./repositories/none.git", nest.top));
    assert!(matches!(error, GitError::Unreachable { .. }), "{error}");
    assert_eq!(error.class(), Class::Unavailable);
    assert!(error.to_string().contains(&nest.top.to_string()) && error.to_string().contains("none.git"));
    assert!(error.hint().unwrap().contains("--mirror ./repositories/none.git=PATH_OR_URL"));
    // A tree's or a blob's id is no commit.
    let repository = Repository::open(field.path("pins/repositories/top.git")).unwrap();
    let tree = repository.find_commit(nest.top).unwrap().tree_id();
    assert_eq!(field.fail(&checkout(TOP, tree)).class(), Class::Unavailable);
}

#[test]
fn a_remote_that_does_not_answer_is_tried_again_and_then_unavailable() {
    let mut field = Field::new();
    field.retries = 2;
    let commit = Oid::from_str(&"1".repeat(40)).unwrap();
    // Nobody listens on a port that was given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/x.git");
    let error = field.fail(&checkout(&url, commit));
    assert!(matches!(error, GitError::Unreachable { .. }), "{error}");
    assert_eq!(error.class(), Class::Unavailable);
    assert!(error.detail().unwrap().contains(&url));
    let notes = field.log.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[1].contains("trying again (2 of 2)"), "{notes:?}");
}

#[test]
fn mirrors_serve_by_prefix_and_are_named() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let place = field.path("pins/repositories");
    field.mirror(&format!("https://upstream.invalid/org={}", place.display()));
    let report = field.fetch(&nest.checkout("https://upstream.invalid/org/top.git")).unwrap();
    assert_eq!(paths(&report).len(), 4);
    let deep = &report.repositories[3];
    assert_eq!(deep.url, "https://upstream.invalid/org/deep.git");
    assert_eq!(deep.place, place.join("deep.git").display().to_string());
}

#[test]
fn a_mirror_without_the_commit_is_passed_over_with_a_note() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    field.mirror("./repositories/top=pins/repositories/extra.git");
    let report = field.fetch(&nest.checkout(TOP)).unwrap();
    assert_eq!(root(&report).place, TOP);
    assert!(root(&report).fallbacks[0].contains("the commit is not there; trying ./repositories/top.git"));
    assert_eq!(field.log.notes().len(), 1);
}

#[test]
fn a_damaged_mirror_is_passed_over() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let damaged = field.path("damaged.git");
    std::fs::create_dir(&damaged).unwrap();
    copy(&field.path("pins/repositories/top.git"), &damaged);
    let id = Repository::open(&damaged).unwrap().blob(b"top\n").unwrap().to_string();
    let object = damaged.join("objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(object).unwrap();
    field.mirror("./repositories/top=damaged.git");
    let report = field.fetch(&nest.checkout(TOP)).unwrap();
    assert!(root(&report).fallbacks[0].contains(&format!("the repository is incomplete: object {id}")));
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in walkdir::WalkDir::new(from).min_depth(1) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn offline_uses_only_what_is_on_this_host() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    field.offline = true;
    field.mirror("https://upstream.invalid=https://mirror.invalid");
    let wanted = nest.checkout("https://upstream.invalid/top.git");
    let error = field.fail(&wanted);
    assert!(matches!(error, GitError::Offline { .. }), "{error}");
    assert_eq!(error.class(), Class::Unavailable);
    assert!(error.hint().unwrap().contains("--mirror https://upstream.invalid/top.git="));
    field.mirror("https://upstream.invalid/=pins/repositories");
    assert_eq!(paths(&field.fetch(&wanted).unwrap()).len(), 4);
}

#[test]
fn content_modes_and_symlinks_are_kept_exactly() {
    let field = Field::new();
    let repository = field.repository("top.git");
    let crlf = Item::File(b"a\r\nb\n\r\n\xff".into());
    let attributes = file("* text=auto eol=lf\n*.bin filter=lfs ident\n");
    let commit = commit_items(
        &repository,
        &[
            (".gitattributes", attributes),
            ("crlf.txt", crlf),
            ("empty", file("")),
            ("id.bin", file("$Id$\n")),
            ("link", Item::Symlink("../outside")),
            ("run", Item::Program(b"#!/bin/sh\n".into())),
            ("sp ace\u{e9}", file("x")),
        ],
    );
    field.fetch(&checkout(TOP, commit)).unwrap();
    let out = field.path("out/tree");
    assert_eq!(std::fs::read(out.join("crlf.txt")).unwrap(), b"a\r\nb\n\r\n\xff");
    assert_eq!(field.read("id.bin"), "$Id$\n");
    assert_eq!(std::fs::read_link(out.join("link")).unwrap().to_str(), Some("../outside"));
    let mode = |name: &str| std::fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o111;
    assert_ne!(mode("run"), 0);
    assert_eq!(mode("empty"), 0);
    assert_eq!(field.read("sp ace\u{e9}"), "x");
}

#[test]
fn trees_that_would_write_elsewhere_are_refused() {
    let field = Field::new();
    let repository = field.repository("top.git");
    let inner = tree(&repository, &[("x", file("x"))]);
    let blob = repository.blob(b"x").unwrap();
    let cases = [
        (vec![("..", Item::Tree(inner))], ".."),
        (vec![(".", Item::Tree(inner))], "."),
        (vec![(".git", Item::Tree(inner))], ".git"),
        (vec![(".GIT", file("gitdir: elsewhere"))], ".GIT"),
        (vec![("git~1", Item::Tree(inner))], "git~1"),
        (vec![(".git. ", Item::Tree(inner))], ".git. "),
        (vec![("/etc", file("x"))], "/etc"),
        (vec![("a/../../b", file("x"))], "a/../../b"),
        (vec![("a", Item::Symlink("/tmp")), ("a", Item::Tree(inner))], "a"),
        (vec![("a", file("1")), ("a", file("2"))], "a"),
        (vec![("a", Item::Mode("140000", blob))], "a"),
    ];
    for (items, path) in cases {
        let commit = commit_items(&repository, &items);
        let error = field.fail(&checkout(TOP, commit));
        assert!(matches!(&error, GitError::UnsafePath { path: found, .. } if found == path), "{path}: {error}");
        assert_eq!(error.class(), Class::PinMismatch);
        let nested = tree(&repository, &items);
        let commit = commit_items(&repository, &[("d", Item::Tree(nested))]);
        let error = field.fail(&checkout(TOP, commit));
        assert!(error.to_string().contains(&format!("`d/{path}`")), "{error}");
    }
}

#[test]
fn a_directory_in_use_is_refused_and_kept() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    std::fs::create_dir(field.path("out/tree")).unwrap();
    field.fetch(&nest.checkout(TOP)).unwrap();
    let error = field.fetch(&nest.checkout(TOP)).unwrap_err();
    assert!(matches!(error, GitError::NotEmpty { .. }), "{error}");
    assert_eq!(field.read("top.txt"), "top\n");
}

#[test]
fn an_interrupt_ends_the_fetch() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    field.interrupt.raise();
    let error = field.fail(&nest.checkout(TOP));
    assert_eq!(error.class(), Class::Interrupted);
}

#[test]
fn a_disk_that_cannot_be_written_is_a_failed_step() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let error = field.fetch_into(&nest.checkout(TOP), &field.path("none/tree")).unwrap_err();
    assert!(matches!(error, GitError::Io { .. }), "{error}");
    assert_eq!(error.class(), Class::Step);
}

#[test]
fn a_repository_of_a_format_that_the_library_does_not_know_is_left_to_the_hosts_git() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let repository = Repository::open(field.path("pins/repositories/extra.git")).unwrap();
    let mut config = repository.config().unwrap();
    config.set_i32("core.repositoryformatversion", 1).unwrap();
    config.set_str("extensions.partialClone", "origin").unwrap();
    let wanted = checkout("./repositories/extra.git", nest.extra);
    let error = field.fail(&wanted);
    assert!(error.detail().unwrap().contains("partialclone"), "{:?}", error.detail());
    field.use_host_git();
    let report = field.fetch(&wanted).unwrap();
    assert_eq!(root(&report).how, How::HostGit);
    assert!(field.log.notes()[0].contains("asking the host's git"));
    assert_eq!(field.read("extra.txt"), "extra\n");
}

#[test]
fn a_hostile_configuration_changes_nothing() {
    // The library reads the configuration of whoever runs it, so another process has to.
    let field = Field::new();
    let nest = Nest::plant(&field);
    let home = field.path("home");
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    let config = "[core]\n\tautocrlf = true\n\teol = crlf\n[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = file://\n\tinsteadOf = ./\n\tinsteadOf = /\n[safe]\n\tdirectory =\n[protocol]\n\tallow = never\n";
    std::fs::write(home.join(".gitconfig"), config).unwrap();
    std::fs::write(home.join(".config/git/config"), config).unwrap();
    let run = |test: &str| {
        #[expect(clippy::disallowed_methods, reason = "a test in another environment")]
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--include-ignored", "--nocapture"]).env("HOME", &home);
        command.env_remove("XDG_CONFIG_HOME").env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"));
        command.env("FIELD", field.directory.path()).env("COMMIT", nest.deep.to_string());
        command.output().unwrap()
    };
    let output = run("in_a_hostile_environment");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
#[ignore = "run by another test, in an environment of its own"]
fn in_a_hostile_environment() {
    let Some(there) = std::env::var_os("FIELD") else { return };
    let commit: Oid = Oid::from_str(&std::env::var("COMMIT").unwrap()).unwrap();
    let url = format!("file://{}/pins/repositories/deep.git", there.to_str().unwrap());
    let mut field = Field::new();
    field.fetch_into(&checkout(&url, commit), &field.path("out/a")).unwrap();
    assert_eq!(std::fs::read(field.path("out/a/deep.txt")).unwrap(), b"deep\n");
    // The same by the host's git, from a repository that the library cannot read.
    let place = field.path("copy.git");
    std::fs::create_dir(&place).unwrap();
    copy(&std::path::Path::new(&there).join("pins/repositories/deep.git"), &place);
    let config = "[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\npartialClone = origin\n";
    std::fs::write(place.join("config"), config).unwrap();
    field.use_host_git();
    let report = field.fetch(&checkout(place.to_str().unwrap(), commit)).unwrap();
    assert_eq!(root(&report).how, How::HostGit);
    assert_eq!(field.read("deep.txt"), "deep\n");
}
