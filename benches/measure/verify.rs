//! `verify` beside programs that print sha256 digests of the same files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rebuild_model::artifact::encoding::encode;
use rebuild_model::interrupt::Interrupt;
use rebuild_model::manifest::{Entries, Entry, Manifest};
use rebuild_model::pins::{Encoding, RelativePath};

use crate::child::{in_turns, quiet, time, version, watch};
use crate::table::{Row, median, mib, print, ratio, show};
use crate::{program, scratch};

const ROUNDS: usize = 11;
const FILES: usize = 8;
const MIB_EACH: usize = 50;
/// KiB.
pub const MEMORY_GOAL: u64 = 32 * 1024;

pub fn measure() {
    let plain = deliver("plain", Encoding::Identity);
    let packed = deliver("packed", Encoding::Gzip);
    let mut rows = measure_plain(&plain);
    rows.extend(measure_packed(&packed));
    print(&format!("verify: {} MiB in {FILES} files, in the page cache", FILES * MIB_EACH), &rows);
}

fn measure_plain(set: &Set) -> Vec<Row> {
    let files = set.arguments();
    let mut ours = || time(&mut quiet(program(), &["verify", set.manifest.to_str().unwrap()]));
    let mut openssl = || time(quiet("openssl", &["dgst", "-sha256"]).args(&files));
    let mut coreutils = || time(quiet("sha256sum", &[]).args(&files));
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = vec![&mut ours];
    let mut peers = Vec::new();
    if let Some(version) = version("openssl", &["version"]) {
        peers.push((format!("{version}: openssl dgst -sha256"), 1.5));
        turns.push(&mut openssl);
    }
    if let Some(version) = version("sha256sum", &["--version"]) {
        peers.push((version, 4.0));
        turns.push(&mut coreutils);
    }
    let times = in_turns(ROUNDS, &mut turns);
    let ours = median(&times[0]);
    let mut rows: Vec<Row> = Vec::new();
    for ((peer, goal), theirs) in peers.into_iter().zip(&times[1..]) {
        let faster = ratio(median(theirs), ours);
        rows.push(Row {
            subject: "verify, plain files".into(),
            peer,
            n: ROUNDS,
            ours: show(ours),
            theirs: show(median(theirs)),
            ratio: format!("{faster:.2} × as fast"),
            goal: Some((format!("≥ {goal} ×"), faster >= goal)),
            ..Row::default()
        });
    }
    rows.push(memory("verify, plain files", set));
    rows
}

fn measure_packed(set: &Set) -> Vec<Row> {
    let files = set.arguments();
    let mut ours = || time(&mut quiet(program(), &["verify", set.manifest.to_str().unwrap()]));
    // Reads, decodes and checks the same bytes, with CRC-32 for its digest.
    let mut gzip = || time(quiet("gzip", &["-t"]).args(&files));
    let times = in_turns(3, &mut [&mut ours, &mut gzip]);
    let (ours, theirs) = (median(&times[0]), median(&times[1]));
    vec![
        Row {
            subject: format!("verify, gzip files of {} MiB", set.bytes / (1 << 20)),
            peer: format!("{}: gzip -t", version("gzip", &["--version"]).unwrap_or_default()),
            n: 3,
            ours: show(ours),
            theirs: show(theirs),
            ratio: format!("{:.2} × as fast", ratio(theirs, ours)),
            ..Row::default()
        },
        memory("verify, gzip files", set),
    ]
}

fn memory(subject: &str, set: &Set) -> Row {
    let peak = |_| {
        let mut command = quiet(program(), &["verify", set.manifest.to_str().unwrap()]);
        watch(&mut command, Duration::from_millis(1)).peak_kib
    };
    let peak = (0..3).map(peak).max().unwrap_or(0);
    Row {
        subject: format!("{subject}: memory"),
        n: 3,
        ours: mib(peak),
        goal: Some(("≤ 32 MiB".into(), peak <= MEMORY_GOAL)),
        peak_kib: Some(peak),
        ..Row::default()
    }
}

/// Delivered files with their manifest.
pub struct Set {
    pub manifest: PathBuf,
    files: Vec<PathBuf>,
    bytes: u64,
}

impl Set {
    fn arguments(&self) -> Vec<&Path> {
        self.files.iter().map(PathBuf::as_path).collect()
    }
}

pub fn deliver(name: &str, encoding: Encoding) -> Set {
    let directory = scratch().join(name);
    let manifest = directory.join("manifest.json");
    let source = scratch().join("source.bin");
    std::fs::create_dir_all(&directory).unwrap();
    let (mut files, mut entries, mut bytes) = (Vec::new(), Entries::new(), 0);
    for number in 0..FILES {
        let path: RelativePath = format!("shard_{number}.bin{}", encoding.suffix()).parse().unwrap();
        let target = directory.join(path.as_str());
        // The same bytes in every run, so what an earlier one left would do; this keeps it simple.
        std::fs::write(&source, content(number as u64 + 1)).unwrap();
        let encoded = encode(&source, &target, encoding, 2, &Interrupt::default()).unwrap();
        bytes += encoded.packed.size;
        entries.insert(path.clone(), Entry::new(&path, "weights", &encoded));
        files.push(target);
    }
    std::fs::remove_file(&source).unwrap();
    std::fs::File::create(&manifest).unwrap().write_all(Manifest::fresh(&entries).as_bytes()).unwrap();
    Set { manifest, files, bytes }
}

/// Bytes of which four bits each are random, so that encoders find something to do.
fn content(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(MIB_EACH << 20);
    while bytes.len() < MIB_EACH << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes().map(|byte| byte & 0x0f));
    }
    bytes
}
