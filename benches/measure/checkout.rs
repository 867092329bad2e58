//! The fetch of a commit with submodules of three levels, out of histories of 5 000 commits, over
//! http, beside `git fetch --depth 1` of the same commits.
//!
//! Ours also writes the files and checks every object; git only keeps its pack. What git needs to
//! write the files too is shown for information.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use git2::{Oid, Repository};

use crate::child::{in_turns, quiet, version};
use crate::http_git::{Behaviour, HttpGit};
use crate::repositories::{Field, Item, RECORDED, checkout, file, tree, with, write_commit};
use crate::scratch;
use crate::table::{Row, median, print, ratio, show};

const COMMITS: usize = 5_000;
const FILES: usize = 300;
const ROUNDS: usize = 11;
const GOAL: f64 = 1.1;

/// A repository with a long history, whose pinned commit is the last but one.
fn grow(field: &Field, name: &str, submodule: Option<(&str, Oid)>, refs: usize) -> Oid {
    let repository = field.repository(name);
    // Loose objects would have to be deleted again, and ext4 is slow to make files where it has
    // deleted many in the last minutes: whoever is measured then would pay for it.
    let objects = repository.odb().unwrap();
    let memory = objects.add_new_mempack_backend(1_000).unwrap();
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
    let (mut pinned, mut parent) = (None, None);
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
        parent = Some(write_commit(&repository, tree(&repository, &items), pinned));
    }
    let mut bytes = git2::Buf::new();
    memory.dump(&repository, &mut bytes).unwrap();
    let at_rest = Repository::open_bare(repository.path()).unwrap();
    let objects = at_rest.odb().unwrap();
    let mut pack = objects.packwriter().unwrap();
    pack.write_all(&bytes).unwrap();
    pack.commit().unwrap();
    let (tip, pinned) = (parent.unwrap(), pinned.unwrap());
    let mut lines = format!("# pack-refs with: peeled fully-peeled sorted \n{tip} refs/heads/main\n");
    let mut names: Vec<String> = (0..refs).map(|number| format!("refs/pull/{number}/head")).collect();
    names.sort();
    for name in names {
        writeln!(lines, "{tip} {name}").unwrap();
    }
    std::fs::write(repository.path().join("packed-refs"), lines).unwrap();
    pinned
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = quiet("git", &[]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.arg("-C").arg(directory).args(arguments).status().unwrap().success());
}

pub fn measure() {
    let mut rows = Vec::new();
    // Deleted when everything is measured.
    let mut fields = Vec::new();
    for (place, name) in [(scratch(), "disk"), ("/dev/shm".into(), "memory file system")] {
        if place.is_dir() {
            for refs in [0, 5_000] {
                let field = Field::new_in(&place);
                rows.extend(measure_in(&field, name, refs));
                fields.push(field);
            }
        }
    }
    print("checkout: three nested repositories of 5 000 commits each, over http", &rows);
}

fn measure_in(field: &Field, place: &str, refs: usize) -> Vec<Row> {
    let deep = grow(field, "deep.git", None, refs);
    let mid = grow(field, "mid.git", Some(("deep.git", deep)), refs);
    let top = grow(field, "top.git", Some(("mid.git", mid)), refs);
    let server =
        HttpGit::serve(Behaviour { root: field.path("pins/repositories"), any_commit: true, ..Behaviour::default() });
    let wanted = with(checkout(&server.url("top.git"), top), "sub", mid, RECORDED);
    let wanted = with(wanted, "sub/sub", deep, RECORDED);
    let all = [("top.git", top), ("mid.git", mid), ("deep.git", deep)];
    let transferred = || server.sent() + server.received();
    let turn = std::cell::Cell::new(0);
    // Nothing is deleted between turns, for the reason told in `grow`.
    let fresh = || {
        turn.set(turn.get() + 1);
        let path = field.path(&format!("out/{}", turn.get()));
        std::fs::create_dir(&path).unwrap();
        path
    };

    let (mut our_bytes, mut their_bytes) = (0, 0);
    let mut ours = || {
        let out = fresh();
        let before = transferred();
        let start = Instant::now();
        field.fetch_into(&wanted, &out.join("tree")).unwrap();
        let taken = start.elapsed();
        our_bytes = transferred() - before;
        taken
    };
    let mut fetched = || {
        let out = fresh();
        let before = transferred();
        let start = Instant::now();
        for (name, id) in all {
            fetch_by_git(&server, &out.join(name), name, id);
        }
        let taken = start.elapsed();
        their_bytes = transferred() - before;
        taken
    };
    let mut checked_out = || {
        let out = fresh();
        let start = Instant::now();
        for (name, id) in all {
            let path = out.join(name);
            fetch_by_git(&server, &path, name, id);
            let files = path.join("files");
            std::fs::create_dir(&files).unwrap();
            git(&path, &["--work-tree", files.to_str().unwrap(), "checkout", "-q", "-f", &id.to_string(), "--", "."]);
        }
        start.elapsed()
    };
    let times = in_turns(ROUNDS, &mut [&mut ours, &mut fetched, &mut checked_out]);
    let times: Vec<Duration> = times.iter().map(|times| median(times)).collect();
    let git = version("git", &["--version"]).unwrap_or_default();
    let row = |what: &str, peer: &str| Row {
        subject: format!("{what}, {refs} refs, {place}"),
        peer: format!("{git}: {peer}"),
        n: ROUNDS,
        ..Row::default()
    };
    let compare = |row: Row, theirs: Duration, goal: Option<f64>| Row {
        ours: show(times[0]),
        theirs: show(theirs),
        ratio: format!("{:.2} × the time", ratio(times[0], theirs)),
        goal: goal.map(|goal| (format!("≤ {goal} ×"), ratio(times[0], theirs) <= goal)),
        ..row
    };
    vec![
        compare(row("time", "fetch --depth 1"), times[1], Some(GOAL)),
        compare(row("time", "fetch --depth 1, then checkout"), times[2], None),
        Row {
            ours: format!("{our_bytes} B"),
            theirs: format!("{their_bytes} B"),
            ratio: format!("{:.3} × the bytes", share(our_bytes, their_bytes)),
            goal: Some((format!("≤ {GOAL} ×"), share(our_bytes, their_bytes) <= GOAL)),
            ..row("bytes", "fetch --depth 1")
        },
    ]
}

fn fetch_by_git(server: &HttpGit, into: &Path, name: &str, id: Oid) {
    std::fs::create_dir(into).unwrap();
    git(into, &["init", "-q", "--bare", "."]);
    git(into, &["fetch", "-q", "--depth", "1", &server.url(name), &id.to_string()]);
}

#[expect(clippy::cast_precision_loss, reason = "far below the integers that a float holds exactly")]
fn share(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
