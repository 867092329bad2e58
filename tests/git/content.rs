//! What is written, and what never is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use git2::Oid;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::git::{GitError, How};

use crate::http_git::{Behaviour, HttpGit};
use crate::repositories::*;

use super::TOP;

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
fn a_hostile_configuration_changes_nothing() {
    // The library reads the configuration of whoever runs it, so another process has to.
    let field = Field::new();
    let nest = Nest::plant(&field);
    let home = field.path("home");
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    let config = "[core]\n\tautocrlf = true\n\teol = crlf\n[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = http://\n\tinsteadOf = file://\n\tinsteadOf = ./\n\tinsteadOf = /\n[safe]\n\tdirectory =\n[protocol]\n\tallow = never\n";
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
    let output = run("content::in_a_hostile_environment");
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
    // From a server that only the library knows to talk to.
    let upstream = Path::new(&there).join("pins/repositories");
    let server = HttpGit::serve(Behaviour { root: upstream.clone(), old_protocol: true, ..Behaviour::default() });
    field.fetch_into(&checkout(&server.url("deep.git"), commit), &field.path("out/b")).unwrap();
    // The same by the host's git, from a repository that the library cannot read.
    let place = field.path("copy.git");
    std::fs::create_dir(&place).unwrap();
    copy(&upstream.join("deep.git"), &place);
    let config = "[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\npartialClone = origin\n";
    std::fs::write(place.join("config"), config).unwrap();
    field.use_host_git();
    let report = field.fetch(&checkout(place.to_str().unwrap(), commit)).unwrap();
    assert_eq!(root(&report).how, How::HostGit);
    assert_eq!(field.read("deep.txt"), "deep\n");
}
