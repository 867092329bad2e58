//! Submodules of every level against their pins.

use git2::Oid;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::git::{GitError, How};
use rebuild_model::pins::Recorded;
use rebuild_model::step::{Action, FetchGit, Take};

use crate::repositories::*;

use super::TOP;

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
fn a_submodule_of_which_nobody_recorded_the_commit_stands_at_what_its_parent_records() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let mut wanted = nest.checkout(TOP);
    wanted.submodules.get_mut("libs/mid").unwrap().recorded = Recorded::Not;
    wanted.submodules.get_mut("extra").unwrap().recorded = Recorded::Not;
    wanted.submodules.get_mut("extra").unwrap().take = Take::Nothing;
    let inputs = Action::FetchGit(FetchGit { checkout: wanted.clone() }).unrecorded_inputs();
    assert_eq!(inputs, ["the commit of extra", "the commit of libs/mid"]);
    let report = field.fetch(&wanted).unwrap();
    assert_eq!(paths(&report), [".", "libs/mid", "libs/mid/deep"]);
    assert_eq!(report.repositories[1].commit, pin(nest.mid));
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
