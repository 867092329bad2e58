//! A real Chromium, with a runtime and "libraries" of the test's own on its software GPU: what the page's
//! instruments count, and that the browser goes when it should.

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, Ran, ended, processes_with, wait_for};

/// Bytes of one of the four tensors that the libraries ask for.
const TENSOR: u64 = 10_000_000;

/// A trial of the library that behaves as `mode` says, each tensor in a shard of its own.
fn smoke(mode: &str) -> Ran {
    lab(mode).smoke(&["--shard-size", "1"])
}

fn lab(mode: &str) -> Lab {
    let lab = Lab::new();
    lab.real();
    lab.write("library.wasm", mode);
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/smoke/runtime.js"), lab.path("tvmjs.cjs")).unwrap();
    lab
}

fn figure(ran: &Ran, name: &str) -> u64 {
    ran.report()["figures"][name].as_u64().unwrap_or_else(|| panic!("{name}: {:#}", ran.report()))
}

#[test]
fn a_loader_that_streams_holds_little_and_one_that_does_not_holds_all() {
    let streamed = smoke("stream").code(0);
    assert!(streamed.report()["browser"].as_str().unwrap().starts_with("Chrome/"));
    assert_eq!(streamed.report()["weights"]["shards"], 4);
    assert_eq!(figure(&streamed, "delivered"), 4 * TENSOR);
    assert!(figure(&streamed, "heldPeak") < TENSOR, "{:#}", streamed.report());
    assert!(figure(&streamed, "queuedPeak") < TENSOR, "{:#}", streamed.report());
    assert_eq!(figure(&streamed, "parallelShards"), 1);

    let whole = smoke("whole").code(0);
    assert_eq!(figure(&whole, "heldPeak"), 4 * TENSOR);
    assert_eq!(figure(&whole, "largestBody"), TENSOR);
    assert!(figure(&whole, "parallelShards") > 1);
    // Four tensors, ten results and one that is read back.
    for ran in [&streamed, &whole] {
        assert_eq!(figure(ran, "gpuReady"), 4 * TENSOR);
        assert_eq!(figure(ran, "gpuPeak"), 4 * TENSOR + 11 * 256);
    }
}

#[test]
fn buffers_that_are_forgotten_are_seen() {
    // What was loaded first is not destroyed before it is loaded again.
    assert_eq!(figure(&smoke("forgetful").code(0), "gpuReady"), 8 * TENSOR);
}

#[test]
fn a_shader_that_the_browser_refuses_leaves_zeros_and_an_error() {
    let ran = smoke("faulty").code(8);
    assert_eq!(ran.check("not-zero"), ("failed".into(), "call 0: all logits are zero".into()));
    let (outcome, text) = ran.check("gpu");
    assert!(outcome == "failed" && text.contains("GPU error"), "{text}");
}

#[test]
fn a_module_that_is_none_fails() {
    let lab = lab("stream");
    lab.write("tvmjs.cjs", "exports.instantiate = () => {}; require('fs');");
    let (outcome, text) = lab.smoke(&[]).code(8).check("browser-module");
    assert!(outcome == "failed" && text.contains("needs fs, which a browser does not have"), "{text}");
}

#[test]
fn an_interrupt_leaves_no_browser() {
    let lab = lab("hang");
    let child = lab.start(&["-v"]);
    let place = lab.path("tmp").display().to_string();
    wait_for(|| (processes_with(&place).len() > 3).then_some(()));
    // In the middle of its start, or of a load that never ends.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    ended(child).code(10);
    wait_for(|| processes_with(&place).is_empty().then_some(()));
    assert!(std::fs::read_dir(lab.path("tmp")).unwrap().next().is_none());
}
