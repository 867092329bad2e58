//! Where a repository is looked for, and what happens when it is not there.

use std::os::unix::fs::PermissionsExt;

use git2::{Oid, Repository};
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::git::{GitError, How};

use crate::repositories::*;

use super::TOP;

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

#[test]
fn a_mirror_whose_file_was_altered_is_passed_over() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let altered = field.path("altered.git");
    std::fs::create_dir(&altered).unwrap();
    copy(&field.path("pins/repositories/top.git"), &altered);
    // Another blob, under the id of the pinned one.
    let repository = Repository::open(&altered).unwrap();
    let place = |id: git2::Oid| altered.join("objects").join(&id.to_string()[..2]).join(&id.to_string()[2..]);
    let (pinned, other) = (repository.blob(b"top\n").unwrap(), repository.blob(b"tap\n").unwrap());
    std::fs::remove_file(place(pinned)).unwrap();
    std::fs::rename(place(other), place(pinned)).unwrap();
    field.mirror("./repositories/top=altered.git");
    let report = field.fetch(&nest.checkout(TOP)).unwrap();
    let passed_over = &root(&report).fallbacks[0];
    assert!(passed_over.contains(&format!("the repository is damaged: object {pinned} of top.txt")), "{passed_over}");
    assert_eq!(field.read("top.txt"), "top\n");
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
fn ssh_is_left_to_the_hosts_git() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let place = field.path("pins/repositories/top.git");
    let wanted = nest.checkout(&format!("ssh://nobody@host.invalid{}", place.display()));
    let error = field.fail(&wanted);
    assert!(error.detail().unwrap().contains("the host's git could be asked"), "{:?}", error.detail());

    // Stands for ssh: runs the last argument here.
    let script = field.path("ssh");
    std::fs::write(&script, "#!/bin/sh\nshift $(($# - 1))\nexec sh -c \"$1\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    field.use_host_git();
    let environment = &mut field.host_git.as_mut().unwrap().environment;
    environment.insert("GIT_SSH_COMMAND".into(), script.into());
    environment.insert("GIT_DIR".into(), "/nowhere".into());
    let report = field.fetch(&wanted).unwrap();
    assert_eq!(paths(&report), [".", "extra", "libs/mid", "libs/mid/deep"]);
    assert!(report.repositories.iter().all(|repository| repository.how == How::HostGit));
    assert_eq!(field.read("libs/mid/deep/deep.txt"), "deep\n");
    let missing = checkout(&wanted.url, Oid::from_str(&"7".repeat(40)).unwrap());
    let error = field.fetch_into(&missing, &field.path("out/missing")).unwrap_err();
    assert!(matches!(error, GitError::CommitMissing { .. }), "{error}: {:?}", error.detail());
}

#[test]
fn a_url_that_would_start_a_program_starts_none() {
    let mut field = Field::new();
    field.use_host_git();
    let mark = field.path("mark");
    for url in [format!("ext::touch {}", mark.display()), format!("--upload-pack=touch {}", mark.display())] {
        let error = field.fail(&checkout(&url, Oid::from_str(&"7".repeat(40)).unwrap()));
        assert_eq!(error.class(), Class::Unavailable);
        assert!(!mark.exists());
    }
}

#[test]
fn a_repository_of_another_owner_is_read() {
    if !rustix::process::getuid().is_root() {
        return; // Nobody else can give a directory away.
    }
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let place = field.path("pins/repositories/extra.git");
    let give_away = |path: &std::path::Path| std::os::unix::fs::chown(path, Some(4242), Some(4242)).unwrap();
    give_away(&place);
    let wanted = checkout("./repositories/extra.git", nest.extra);
    assert_eq!(root(&field.fetch_into(&wanted, &field.path("out/a")).unwrap()).how, How::Local);
    let config = "[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\npartialClone = origin\n";
    std::fs::write(place.join("config"), config).unwrap();
    field.use_host_git();
    assert_eq!(root(&field.fetch_into(&wanted, &field.path("out/b")).unwrap()).how, How::HostGit);
}
