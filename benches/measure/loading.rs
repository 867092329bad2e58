//! Loading weights into a page through TVM's browser module with the browser-memory patch of
//! `pins/tvm-0.27`, beside the same module without any: what is held meanwhile, on the GPU too, and how
//! long it takes. The library is the example's, and so are the sources.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::child::{quiet, time};
use crate::example::Place;
use crate::table::{Row, median, print, ratio, show};
use crate::{program, scratch, source_tree};

const ROUNDS: usize = 3;
/// MiB of weights, and of each of their files.
const WEIGHTS: (&str, &str) = ("512", "128");
const HELD_GOAL: u64 = 16 << 20;
const TIME_GOAL: f64 = 1.1;
const PEER: &str = "without tvm-browser-memory.patch";

/// What one load took.
struct Load {
    time: Duration,
    held: u64,
    gpu: u64,
    browser: String,
}

pub fn measure() {
    if !Place::example().ensure_built() {
        return;
    }
    let unpatched = bundle("unpatched", None);
    let patched = bundle("patched", Some(&source_tree().join("pins/tvm-0.27/patches/tvm-browser-memory.patch")));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (module, loads) in [(&patched, &mut ours), (&unpatched, &mut theirs)] {
            match load(module) {
                Ok(load) => loads.push(load),
                Err(reason) => return println!("\nloading: not measured: {reason}"),
            }
        }
    }
    let times = |loads: &[Load]| median(&loads.iter().map(|load| load.time).collect::<Vec<_>>());
    let most = |loads: &[Load], figure: fn(&Load) -> u64| loads.iter().map(figure).max().unwrap_or(0);
    let held = [&ours, &theirs].map(|loads| most(loads, |load| load.held));
    let gpu = [&ours, &theirs].map(|loads| most(loads, |load| load.gpu));
    let compared = ratio(times(&ours), times(&theirs));
    let shown = |bytes: u64| format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20);
    let row = |subject: &str, ours: String, theirs: String, ratio: String, goal| Row {
        subject: subject.into(),
        peer: PEER.into(),
        n: ROUNDS,
        ours,
        theirs,
        ratio,
        goal: Some(goal),
        ..Row::default()
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let share = |[a, b]: [u64; 2]| format!("{:.3} ×", a as f64 / b.max(1) as f64);
    let rows = [
        row(
            "held of what was transferred",
            shown(held[0]),
            shown(held[1]),
            share(held),
            ("≤ 16 MiB".into(), held[0] <= HELD_GOAL),
        ),
        row("GPU buffers, peak", shown(gpu[0]), shown(gpu[1]), share(gpu), ("no higher".into(), gpu[0] <= gpu[1])),
        row(
            "time",
            show(times(&ours)),
            show(times(&theirs)),
            format!("{compared:.2} ×"),
            ("≤ 1.1 ×".into(), compared <= TIME_GOAL),
        ),
    ];
    print(&format!("loading: {} MiB of weights in files of {} MiB, {}", WEIGHTS.0, WEIGHTS.1, ours[0].browser), &rows);
}

/// The browser module from the wheel's sources with this patch alone.
fn bundle(name: &str, patch: Option<&Path>) -> PathBuf {
    let (out, work) = (Place::example().workspace.join("out"), scratch().join(name));
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(work.join("tvm")).unwrap();
    time(quiet("cp", &["-R"]).arg(out.join("sources/tree/tvm/web")).arg(work.join("tvm")));
    if let Some(patch) = patch {
        // In a repository of its own: inside another one git would skip the patch in silence.
        time(quiet("git", &["init", "--quiet"]).current_dir(&work));
        time(quiet("git", &["apply"]).arg(patch).current_dir(&work));
    }
    let externals = ["fs", "path", "ws", "perf_hooks", "crypto", "node:*"].map(|name| format!("--external:{name}"));
    let mut esbuild = quiet(out.join("esbuild/tree/bin/esbuild"), &["src/index.ts", "--bundle", "--format=cjs"]);
    esbuild.args(["--platform=browser", "--log-level=warning", "--outfile=../../tvmjs.cjs"]).args(externals);
    time(esbuild.current_dir(work.join("tvm/web")));
    work.join("tvmjs.cjs")
}

fn load(module: &Path) -> Result<Load, String> {
    let mut command = quiet(program(), &["smoke", "--format", "json", "--steps", "1", "--library"]);
    command.arg(Place::example().workspace.join("out/link/decoder-webgpu.wasm")).arg("--browser-module").arg(module);
    command.args(["--ballast", WEIGHTS.0, "--shard-size", WEIGHTS.1]).stdout(Stdio::piped());
    let output = command.output().map_err(|error| error.to_string())?;
    let reports: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let report = &reports["libraries"][0];
    if report["outcome"] != "passed" {
        return Err(report["checks"]
            .as_array()
            .and_then(|checks| checks.last())
            .map(Value::to_string)
            .unwrap_or_default());
    }
    let figures = &report["figures"];
    let number = |name: &str| figures[name].as_u64().unwrap_or_default();
    Ok(Load {
        time: Duration::from_secs_f64(figures["loadMs"].as_f64().unwrap_or_default() / 1000.0),
        held: number("heldPeak") + number("queuedPeak"),
        gpu: number("gpuPeak"),
        browser: report["browser"].as_str().unwrap_or_default().to_owned(),
    })
}
