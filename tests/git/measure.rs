//! A fetch measured against `git fetch --depth 1` of the same commits: a history of 5 000 commits in
//! each of three nested repositories, over http. Not part of an ordinary test run:
//! `cargo test --release --test git -- --ignored --nocapture fetch_against_git`.

use std::path::Path;
use std::time::{Duration, Instant};

use git2::Oid;

use crate::http_git::{Behaviour, HttpGit};
use crate::repositories::*;

const COMMITS: usize = 5_000;
const FILES: usize = 300;
const ROUNDS: usize = 7;

/// A repository with a long history, whose pinned commit is the last but one.
fn grow(field: &Field, name: &str, submodule: Option<(&str, Oid)>, refs: usize) -> Oid {
    let repository = field.repository(name);
    let mut state = name.bytes().map(u64::from).sum::<u64>();
    let mut line = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x} {:016x}\n", state, state.rotate_left(23).wrapping_mul(0x9e37_79b9))
    };
    let files: Vec<Oid> =
        (0..FILES).map(|_| repository.blob((0..120).map(|_| line()).collect::<String>().as_bytes()).unwrap()).collect();
    let directories: Vec<Oid> = files
        .chunks(30)
        .map(|part| {
            let names: Vec<String> = (0..part.len()).map(|index| format!("file{index:03}.c")).collect();
            let items: Vec<_> =
                names.iter().zip(part).map(|(name, id)| (name.as_str(), Item::Mode("100644", *id))).collect();
            tree(&repository, &items)
        })
        .collect();
    let mut pinned = Oid::ZERO_SHA1;
    let mut parent = Oid::ZERO_SHA1;
    let names: Vec<String> = (0..directories.len()).map(|index| format!("dir{index:02}")).collect();
    for number in 0..COMMITS {
        let mut items = Vec::new();
        if let Some((child, id)) = submodule {
            items.push((".gitmodules", file(&format!("[submodule \"s\"]\npath = sub\nurl = ../{child}\n"))));
            items.push(("CHANGES", file(&format!("change {number}\n{}", line()))));
            items.extend(names.iter().zip(&directories).map(|(name, id)| (name.as_str(), Item::Tree(*id))));
            items.push(("sub", Item::Submodule(id)));
        } else {
            items.push(("CHANGES", file(&format!("change {number}\n{}", line()))));
            items.extend(names.iter().zip(&directories).map(|(name, id)| (name.as_str(), Item::Tree(*id))));
        }
        pinned = parent;
        parent = commit_items(&repository, &items);
    }
    for number in 0..refs {
        repository.reference(&format!("refs/pull/{number}/head"), parent, true, "").unwrap();
    }
    git(repository.path(), &["repack", "-adq"]);
    git(repository.path(), &["pack-refs", "--all"]);
    pinned
}

#[expect(clippy::disallowed_methods, reason = "what is measured against")]
fn git(directory: &Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.arg("-C").arg(directory).args(arguments).status().unwrap().success());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn measure(refs: usize) {
    let field = Field::new();
    let deep = grow(&field, "deep.git", None, refs);
    let mid = grow(&field, "mid.git", Some(("deep.git", deep)), refs);
    let top = grow(&field, "top.git", Some(("mid.git", mid)), refs);
    let server =
        HttpGit::serve(Behaviour { root: field.path("pins/repositories"), any_commit: true, ..Behaviour::default() });
    let wanted = with(checkout(&server.url("top.git"), top), "sub", mid, RECORDED);
    let wanted = with(wanted, "sub/sub", deep, RECORDED);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_bytes, mut their_bytes) = (0, 0);
    for round in 0..ROUNDS {
        let before = server.sent() + server.received();
        let start = Instant::now();
        field.fetch_into(&wanted, &field.path(&format!("out/{round}"))).unwrap();
        ours.push(start.elapsed());
        our_bytes = server.sent() + server.received() - before;

        let before = server.sent() + server.received();
        let start = Instant::now();
        for (name, id) in [("top.git", top), ("mid.git", mid), ("deep.git", deep)] {
            let path = field.path(&format!("out/git-{round}-{name}"));
            std::fs::create_dir(&path).unwrap();
            git(&path, &["init", "-q", "--bare", "."]);
            git(&path, &["fetch", "-q", "--depth", "1", &server.url(name), &id.to_string()]);
        }
        theirs.push(start.elapsed());
        their_bytes = server.sent() + server.received() - before;
    }
    let (ours, theirs) = (median(ours), median(theirs));
    // Percentages, so that no cast is needed.
    let (time, bytes) = (ours.as_micros() * 100 / theirs.as_micros(), our_bytes * 100 / their_bytes);
    println!(
        "{refs} refs: time {ours:?} against {theirs:?}: {time} %; bytes {our_bytes} against {their_bytes}: {bytes} %"
    );
}

#[test]
#[ignore = "a measurement"]
fn fetch_against_git() {
    measure(0);
    measure(5_000);
}
