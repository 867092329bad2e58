//! The plans of the documented pins and of the other choices, and what is refused.

use crate::error::Fault;
use crate::pins::{Platform, parse};
use crate::plan::{Plan, PlanError, render_text};
use crate::recipe::{AnyPins, plan};
use crate::step::Action;

const DOCUMENTED: &str = include_str!("../../../pins.toml");

/// Pins of the other choices, of upstreams that do not exist.
const WHEELS: &str = include_str!("tests/wheels.toml");

/// The public set.
const PUBLIC: &str = include_str!("../../../pins/tvm-0.27/pins.toml");

fn plan_of(text: &str) -> Result<Plan, PlanError> {
    let pins: AnyPins = parse(text, "pins.toml").unwrap_or_else(|error| panic!("{error}"));
    let platform: Platform = "linux-x86_64".parse().unwrap();
    plan(&pins, &platform)
}

fn refusal(text: &str) -> String {
    plan_of(text).unwrap_err().to_string()
}

#[test]
fn the_documented_build_is_planned_whole() {
    insta::assert_snapshot!("documented", render_text(&plan_of(DOCUMENTED).unwrap(), |_| "would run".into()));
}

#[test]
fn the_runtime_of_the_wheels_is_linked_here() {
    insta::assert_snapshot!("wheels", render_text(&plan_of(WHEELS).unwrap(), |_| "would run".into()));
}

#[test]
fn the_documented_build_stops_at_what_nobody_recorded() {
    let error = crate::build::check_recorded(&plan_of(DOCUMENTED).unwrap()).unwrap_err();
    assert_eq!(error.class() as u8, 5);
    insta::assert_snapshot!("not_recorded", error.inputs.join("\n"));
}

#[test]
fn the_other_pins_are_complete_and_the_files_of_the_public_set_stand_beside_it() {
    assert_eq!(plan_of(WHEELS).unwrap().unrecorded_inputs(), Vec::<String>::new());
    let plan = plan_of(PUBLIC).unwrap();
    assert_eq!(plan.unrecorded_inputs(), Vec::<String>::new());
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("pins/tvm-0.27");
    crate::exec::local::check_all(&plan, &directory).unwrap();
}

#[test]
fn the_public_set_is_planned_whole() {
    insta::assert_snapshot!("public", render_text(&plan_of(PUBLIC).unwrap(), |_| "would run".into()));
}

#[test]
fn every_patch_states_the_images_that_its_pins_hold() {
    for (pins, directory) in [(PUBLIC, "pins/tvm-0.27"), (DOCUMENTED, ".")] {
        let pins: AnyPins = parse(pins, "pins.toml").unwrap();
        for (name, pin) in &pins.patch {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(directory).join(pin.file.as_str());
            let Ok(bytes) = std::fs::read(&path) else {
                assert_eq!(pin.sha256.to_string(), "not-recorded", "{name}");
                continue;
            };
            assert_eq!(pin.sha256.to_string(), crate::digest::Digest::of(&bytes).to_string(), "{name}");
            let text = String::from_utf8(bytes).unwrap();
            let mut files = text.lines().filter_map(|line| line.strip_prefix("diff --git a/")).collect::<Vec<_>>();
            files.sort_unstable();
            let named: Vec<String> = pin.images.keys().map(|path| format!("{path} b/{path}")).collect();
            assert_eq!(files, named, "{name}");
        }
    }
}

#[test]
fn the_adapter_delays_no_compilation() {
    let plan = plan_of(DOCUMENTED).unwrap();
    let mut waiting = vec!["adapter"];
    while let Some(id) = waiting.pop() {
        assert!(!id.starts_with("link-"), "a library waits for the adapter");
        let readers = plan.steps.iter().filter(|step| step.inputs.iter().any(|input| input.step.as_str() == id));
        waiting.extend(readers.map(|step| step.id.as_str()).filter(|id| *id != "package"));
    }
}

#[test]
fn no_step_but_those_that_fetch_has_network_and_none_runs_make_or_git() {
    for text in [DOCUMENTED, WHEELS, PUBLIC] {
        for step in &plan_of(text).unwrap().steps {
            let Action::Run(run) = &step.action else { continue };
            assert!(!step.network, "{}", step.id);
            for words in &run.commands {
                let program = words[0].to_string();
                assert!(program.starts_with("${"), "{}: {program} is no pinned program", step.id);
                assert!(!["make", "git", "bash", "sh"].iter().any(|name| program.ends_with(&format!("/{name}"))));
            }
        }
    }
}

#[test]
fn macos_libraries_are_signed_where_they_are_installed() {
    let pins: AnyPins = parse(DOCUMENTED, "pins.toml").unwrap();
    let plan = plan(&pins, &"macos-aarch64".parse().unwrap()).unwrap();
    let Action::Run(run) = &plan.step("python").unwrap().action else { panic!("python runs commands") };
    assert!(run.commands.last().unwrap()[2].to_string().contains("codesign"));
    let Action::CheckSymbols(check) = &plan.step("tvm-ffi-symbols").unwrap().action else { panic!("it checks") };
    assert!(check.library.to_string().ends_with("libtvm_ffi.dylib"));
}

#[test]
fn parameters_that_do_not_go_together_are_refused() {
    let second = |library: &str| {
        format!(
            "{WHEELS}\n[recipe.mlc-webgpu.models.second]\nconfig = \"config\"\nquantization = \"q4f16_1\"\n\
             max_batch_size = 1\nlibrary = \"{library}\"\n"
        )
    };
    assert!(plan_of(&second("second.wasm")).is_ok());
    let native = "tvm_ffi = { native = { version = \"1.0\", exports = [] } }";
    let cases = [
        (second("first.wasm"), "[recipe.mlc-webgpu] models.second.library: first is delivered as `first.wasm` already"),
        (second("second.bin"), "[recipe.mlc-webgpu] models.second.library: `second.bin` does not end in .wasm"),
        (
            second("second.wasm").replace(
                "config = \"config\"\nquantization = \"q4f16_1\"",
                "config = \"other\"\nquantization = \"q4f16_1\"",
            ),
            "recipe mlc-webgpu needs [file.other] in the pins file",
        ),
        (
            WHEELS.replace("tvm_ffi = \"as-required\"", native),
            "[recipe.mlc-webgpu] tvm_ffi: `native` is built from TVM's submodule, and the runtime comes from wheels",
        ),
        (
            WHEELS.replace("source = \"compiler\"", "wheel = \"compiler\""),
            "recipe mlc-webgpu needs [python.wheels.compiler] in the pins file",
        ),
        (
            WHEELS.replace("imports = \"imports\"", "imports = \"exports\""),
            "recipe mlc-webgpu needs [file.exports] in the pins file",
        ),
        (WHEELS.replace("own = \"adapter\"", "own = \"config\""), "recipe mlc-webgpu does not use [file.adapter]"),
    ];
    for (text, expected) in cases {
        let error = plan_of(&text).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.class() as u8, 1);
    }
    let start = WHEELS.find("[recipe.mlc-webgpu.models.first]").unwrap();
    let end = start + WHEELS[start..].find("\n\n").unwrap();
    let none = format!("{}[recipe.mlc-webgpu.models]{}", &WHEELS[..start], &WHEELS[end..]);
    assert_eq!(refusal(&none), "[recipe.mlc-webgpu] models: there is no model to compile");
}

#[test]
fn unknown_choices_are_refused_where_they_stand() {
    for (good, bad, expected) in [
        ("adapter = { own = \"adapter\" }", "adapter = \"none\"", "unknown variant `none`"),
        ("{ wheel = { imports", "{ tarball = { imports", "unknown variant `tarball`"),
        ("max_batch_size = 1", "max_batch_size = 0", "nonzero"),
        ("max_batch_size = 1", "max_batch_size = 100000", "u16"),
        ("mlc_llm = { source", "mlc-llm = { source", "unknown field `mlc-llm`"),
        ("settings = {", "setting = {", "unknown field `setting`"),
    ] {
        let text = WHEELS.replacen(good, bad, 1);
        assert_ne!(text, WHEELS, "{good}");
        let error = parse::<crate::recipe::Recipe>(&text, "pins.toml").unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains('^'), "{bad}: {error}");
    }
}
