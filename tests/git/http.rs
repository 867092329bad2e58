//! Fetching over http, from `git http-backend`.

use std::io::{BufRead, BufReader, Write};

use git2::Oid;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::git::{GitError, How};

use crate::http_git::{Behaviour, HttpGit};
use crate::repositories::*;

fn serve(field: &Field, change: impl FnOnce(&mut Behaviour)) -> HttpGit {
    let mut behaviour = Behaviour { root: field.path("pins/repositories"), any_commit: true, ..Behaviour::default() };
    change(&mut behaviour);
    HttpGit::serve(behaviour)
}

#[test]
fn the_exact_commits_come_without_history() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let server = serve(&field, |_| {});
    let report = field.fetch(&nest.checkout(&server.url("top.git"))).unwrap();
    assert_eq!(paths(&report), [".", "extra", "libs/mid", "libs/mid/deep"]);
    for repository in &report.repositories {
        assert_eq!(repository.how, How::Shallow);
        assert!(repository.bytes > 0 && repository.fallbacks.is_empty());
    }
    assert_eq!(report.repositories[3].url, server.url("deep.git"));
    assert_eq!(field.read("libs/mid/deep/deep.txt"), "deep\n");
    assert!(field.log.notes().is_empty());
}

#[test]
fn a_branch_tip_comes_without_history_from_a_server_that_serves_no_other_commit() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| (behaviour.any_commit, behaviour.old_protocol) = (false, true));
    let report = field.fetch(&checkout(&server.url("deep.git"), nest.deep)).unwrap();
    assert_eq!(root(&report).how, How::Shallow);
}

#[test]
fn a_server_that_serves_tips_only_is_fetched_in_full() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| (behaviour.any_commit, behaviour.old_protocol) = (false, true));
    let report = field.fetch(&nest.checkout(&server.url("top.git"))).unwrap();
    assert_eq!(root(&report).how, How::Full);
    assert!(root(&report).fallbacks[0].contains("fetching all branches and tags"), "{report:?}");
    assert_eq!(field.log.notes().len(), 1);
    assert_eq!(field.read("top.txt"), "top\n");
}

#[test]
fn a_server_of_the_newer_protocol_serves_every_commit() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| behaviour.any_commit = false);
    let report = field.fetch(&nest.checkout(&server.url("top.git"))).unwrap();
    assert_eq!(root(&report).how, How::Shallow);
    assert!(root(&report).fallbacks.is_empty(), "{report:?}");
    // One request for what the server can, one for the pack, for each repository.
    assert_eq!(server.requests(), 8);
}

#[test]
fn a_server_of_the_older_protocol_serves_any_commit_where_it_is_allowed() {
    let field = Field::new();
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| behaviour.old_protocol = true);
    let report = field.fetch(&nest.checkout(&server.url("top.git"))).unwrap();
    assert_eq!(root(&report).how, How::Shallow);
    assert!(root(&report).fallbacks.is_empty(), "{report:?}");
    assert_eq!(field.read("top.txt"), "top\n");
}

#[test]
fn every_way_is_tried_before_the_last_one() {
    let mut field = Field::new();
    field.use_host_git();
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| (behaviour.any_commit, behaviour.old_protocol) = (false, true));
    let report = field.fetch(&nest.checkout(&server.url("top.git"))).unwrap();
    assert_eq!(root(&report).how, How::Full);
    assert_eq!(root(&report).fallbacks.len(), 2, "{report:?}");
}

#[test]
fn a_commit_that_no_branch_has_is_missing() {
    let mut field = Field::new();
    Nest::plant(&field);
    for old_protocol in [false, true, false, true] {
        let server = serve(&field, |behaviour| behaviour.old_protocol = old_protocol);
        let wanted = checkout(&server.url("top.git"), Oid::from_str(&"7".repeat(40)).unwrap());
        let error = field.fail(&wanted);
        assert!(matches!(error, GitError::CommitMissing { .. }), "{error}: {:?}", error.detail());
        assert_eq!(error.class(), Class::Unavailable);
        assert!(error.to_string().contains(&"7".repeat(40)) && error.to_string().contains("top.git"));
        // Where the answer is sure nothing else is tried.
        assert_eq!(field.log.notes().is_empty(), !old_protocol);
        if old_protocol {
            field = Field::new();
            Nest::plant(&field);
            field.use_host_git();
        }
    }
}

#[test]
fn a_repository_that_is_not_there_is_asked_for_once() {
    let mut field = Field::new();
    field.retries = 3;
    let server = serve(&field, |_| {});
    let error = field.fail(&checkout(&server.url("none.git"), Oid::from_str(&"7".repeat(40)).unwrap()));
    assert!(matches!(error, GitError::Unreachable { .. }), "{error}");
    assert!(error.detail().unwrap().contains("404"), "{:?}", error.detail());
    assert_eq!(server.requests(), 1);
    assert!(field.log.notes().is_empty());
}

#[test]
fn a_server_that_is_away_for_a_moment_is_asked_again() {
    let mut field = Field::new();
    field.retries = 2;
    let nest = Nest::plant(&field);
    let server = serve(&field, |behaviour| behaviour.unavailable = 2);
    let report = field.fetch(&checkout(&server.url("deep.git"), nest.deep)).unwrap();
    assert_eq!(root(&report).how, How::Shallow);
    assert_eq!(root(&report).fallbacks.len(), 2);
    assert!(root(&report).fallbacks[1].contains("503") && root(&report).fallbacks[1].contains("(2 of 2)"));
}

#[test]
fn a_pack_that_breaks_off_is_fetched_again() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let wanted = |server: &HttpGit| checkout(&server.url("deep.git"), nest.deep);
    let server = serve(&field, |behaviour| behaviour.broken_packs = 1);
    let error = field.fail(&wanted(&server));
    assert!(matches!(error, GitError::Unreachable { .. }), "{error}");
    field.retries = 1;
    let server = serve(&field, |behaviour| behaviour.broken_packs = 1);
    let report = field.fetch(&wanted(&server)).unwrap();
    assert!(root(&report).fallbacks[0].contains("trying again (1 of 1)"), "{report:?}");
    assert_eq!(field.read("deep.txt"), "deep\n");
}

#[test]
fn a_mirror_that_fails_gives_way_to_the_published_place() {
    let mut field = Field::new();
    let nest = Nest::plant(&field);
    let (mirror, server) = (serve(&field, |_| {}), serve(&field, |_| {}));
    field.mirror(&format!("{}={}", server.url("deep.git"), mirror.url("gone.git")));
    let report = field.fetch(&checkout(&server.url("deep.git"), nest.deep)).unwrap();
    assert_eq!(root(&report).place, server.url("deep.git"));
    assert!(root(&report).fallbacks[0].contains("gone.git") && field.log.notes().len() == 1);
}

#[test]
fn the_tree_and_the_paths_are_checked_the_same_over_the_network() {
    let field = Field::new();
    let repository = field.repository("bad.git");
    let inner = tree(&repository, &[("x", file("x"))]);
    let commit = commit_items(&repository, &[(".GIT", Item::Tree(inner))]);
    let server = serve(&field, |_| {});
    let error = field.fail(&checkout(&server.url("bad.git"), commit));
    assert!(matches!(error, GitError::UnsafePath { .. }), "{error}");
}

#[test]
fn an_interrupt_ends_the_wait_for_a_silent_server() {
    let field = Field::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.git", listener.local_addr().unwrap());
    let interrupt = field.interrupt.clone();
    let silent = std::thread::spawn(move || {
        let connection = listener.accept();
        interrupt.raise();
        connection
    });
    let error = field.fail(&checkout(&url, Oid::from_str(&"7".repeat(40)).unwrap()));
    assert_eq!(error.class(), Class::Interrupted);
    drop(silent.join());
}

#[test]
fn the_answer_of_a_server_that_is_none_of_gits_is_refused() {
    let field = Field::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.git", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The request has no body: it ends with an empty line.
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
            let _ = stream.write_all(page.as_bytes());
        }
    });
    let error = field.fail(&checkout(&url, Oid::from_str(&"7".repeat(40)).unwrap()));
    assert_eq!(error.class(), Class::Unavailable);
}

#[test]
fn a_password_in_a_mirror_is_in_no_log_report_or_error() {
    for host_git in [false, true] {
        let mut field = Field::new();
        let nest = Nest::plant(&field);
        if host_git {
            field.use_host_git();
        }
        // Nobody listens there.
        field.mirror("https://git.example/=http://user:S3CRETPW@127.0.0.1:1/a/");
        field.mirror("https://git.example/=http://127.0.0.1:1/b/?token=S3CRETPW");
        let url = "https://git.example/deep.git";
        field.mirror(&format!("https://git.example/={}", field.path("pins/repositories").display()));
        let report = field.fetch(&checkout(url, nest.deep)).unwrap();
        let missing =
            field.fetch_into(&checkout("http://S3CRETPW@127.0.0.1:1/d", nest.deep), &field.path("other")).unwrap_err();
        let missing = rebuild_model::error::Error::from(missing);
        let log = std::fs::read_to_string(field.log.path()).unwrap();
        let error = format!("{missing} {:?} {:?} {:?}", missing.causes(), missing.detail(), missing.hint());
        assert!(log.contains("127.0.0.1:1/a/") && error.contains("127.0.0.1:1/d"), "{log}\n{error}");
        for text in [log, error, format!("{report:?}"), field.log.notes().join("\n")] {
            assert!(!text.contains("S3CRETPW"), "{text}");
        }
    }
}
