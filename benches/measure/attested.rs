//! `verify` of an attestation and everything that it attests, beside programs that only hash.
//!
//! The attestation is the example's, as a build left it, made to attest large files too: with subjects for
//! them, and with the package that follows from these.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rebuild_model::digest::{Digest, hash_path};
use rebuild_model::manifest::{Entries, Manifest};
use rebuild_model::parallel;
use serde_json::{Value, json};

use crate::child::{in_turns, quiet, time, version, watch};
use crate::example::Place;
use crate::table::{Row, median, mib, print, ratio, show};
use crate::verify::{MEMORY_GOAL, deliver};
use crate::{program, scratch};

const ROUNDS: usize = 11;
const MORE_GOAL: Duration = Duration::from_millis(50);
const OPENSSL_GOAL: f64 = 1.5;

pub fn measure() {
    if !Place::example().ensure_built() {
        return;
    }
    let (attestation, files) = attest();
    let command = || quiet(program(), &["verify", attestation.to_str().unwrap()]);
    let mut ours = || time(&mut command());
    let mut hashed = || {
        let start = Instant::now();
        assert!(parallel::map(&files, |path| hash_path(path).unwrap().1).iter().all(|size| *size > 0));
        start.elapsed()
    };
    let mut openssl = || time(quiet("openssl", &["dgst", "-sha256"]).args(&files));
    let peer = version("openssl", &["version"]);
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = vec![&mut ours, &mut hashed];
    if peer.is_some() {
        turns.push(&mut openssl);
    }
    let times = in_turns(ROUNDS, &mut turns);
    let (ours, hashing) = (median(&times[0]), median(&times[1]));
    let peak = (0..3).map(|_| watch(&mut command(), Duration::from_millis(1)).peak_kib).max().unwrap_or(0);
    let row = |peer: String, theirs, ratio, goal| Row {
        subject: "verify of an attestation".into(),
        peer,
        n: ROUNDS,
        ours: show(ours),
        theirs: show(theirs),
        ratio,
        goal: Some(goal),
        ..Row::default()
    };
    let more = ours.saturating_sub(hashing);
    let goal = ("≤ 50 ms more".into(), more <= MORE_GOAL);
    let mut rows = vec![row("hash_path over the same files".into(), hashing, format!("{} more", show(more)), goal)];
    if let (Some(peer), Some(theirs)) = (peer, times.get(2).map(|times| median(times))) {
        let faster = ratio(theirs, ours);
        let goal = (format!("≥ {OPENSSL_GOAL} ×"), faster >= OPENSSL_GOAL);
        rows.push(row(format!("{peer}: openssl dgst -sha256"), theirs, format!("{faster:.2} × as fast"), goal));
    }
    rows.push(Row {
        subject: "verify of an attestation: memory".into(),
        n: 3,
        ours: mib(peak),
        goal: Some(("≤ 32 MiB".into(), peak <= MEMORY_GOAL)),
        peak_kib: Some(peak),
        ..Row::default()
    });
    let bytes: u64 = files.iter().map(|path| path.metadata().unwrap().len()).sum();
    let title = format!("attested: {} MiB in {} files, in the page cache", bytes >> 20, files.len());
    print(&title, &rows);
}

/// Delivers the example with large files among its weights; gives the attestation and the files.
fn attest() -> (PathBuf, Vec<PathBuf>) {
    let root = scratch().join("attested");
    let _ = std::fs::remove_dir_all(&root);
    let original = Place::example().output.join("manifest.json");
    let entries = |path: &Path| -> Entries { Manifest::read(path).unwrap().entries(path).unwrap() };
    let mut all = entries(&original);
    for path in all.keys() {
        let to = root.join(path.as_str());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(Place::example().output.join(path.as_str()), to).unwrap();
    }
    let large = entries(&deliver("attested", rebuild_model::pins::Encoding::Identity).manifest);
    let statement = std::fs::read(Place::example().output.join("manifest.intoto.json")).unwrap();
    let mut statement: Value = serde_json::from_slice(&statement).unwrap();
    let subjects = statement["subject"].as_array_mut().unwrap();
    for (path, entry) in &large {
        subjects.push(json!({
            "name": path,
            "digest": { "sha256": entry.packed.sha256 },
            "annotations": {
                "artifact": path, "encoder": entry.encoder, "encoding": entry.encoding, "form": "packed",
                "role": entry.role, "size": entry.packed.size,
            },
        }));
    }
    all.extend(large);
    let manifest = Manifest::fresh(&all);
    std::fs::write(root.join("manifest.json"), &manifest).unwrap();
    let files: Vec<PathBuf> = all.keys().map(|path| root.join(path.as_str())).collect();
    // What the step `package` makes: the files, and a manifest of them.
    let package = scratch().join("attested-package");
    let _ = std::fs::remove_dir_all(&package);
    for path in all.keys() {
        let to = package.join("files").join(path.as_str());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::hard_link(root.join(path.as_str()), to).unwrap();
    }
    std::fs::write(package.join("manifest.json"), &manifest).unwrap();
    let (digest, size) = hash_path(&package).unwrap();
    std::fs::remove_dir_all(&package).unwrap();
    let byproducts = statement["predicate"]["runDetails"]["byproducts"].as_array_mut().unwrap();
    let step = byproducts.iter_mut().find(|byproduct| byproduct["name"] == "step:package").unwrap();
    step["annotations"]["outputs"]["package"] = json!({ "sha256": digest, "size": size });
    step["digest"]["sha256"] = json!(Digest::of_value(&step["annotations"]));
    let attestation = root.join("manifest.intoto.json");
    std::fs::write(&attestation, serde_json::to_vec_pretty(&statement).unwrap()).unwrap();
    (attestation, files)
}
