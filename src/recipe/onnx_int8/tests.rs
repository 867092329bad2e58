//! The plan of the pins, and what is refused.

use super::{BROWSER, COMPACT, EXPORT, FACTS, GENERATE, IMPORTS, PARITY, QUANTIZE};
use crate::error::Fault;
use crate::pins::{Platform, parse};
use crate::plan::{Plan, PlanError, render_text};
use crate::recipe::{AnyPins, plan};
use crate::step::Action;

const PINS: &str = include_str!("../../../pins/tinystories-1m.toml");

fn plan_of(text: &str) -> Result<Plan, PlanError> {
    let pins: AnyPins = parse(text, "pins.toml").unwrap_or_else(|error| panic!("{error}"));
    let platform: Platform = "linux-x86_64".parse().unwrap();
    plan(&pins, &platform)
}

/// The plan of the pins with one text for another.
#[track_caller]
fn changed(from: &str, to: &str) -> Result<Plan, PlanError> {
    assert!(PINS.contains(from), "{from}");
    plan_of(&PINS.replace(from, to))
}

#[test]
fn tinystories_is_planned_whole() {
    let mut text = render_text(&plan_of(PINS).unwrap(), |_| "would run".into());
    let scripts = [
        ("imports.py", IMPORTS),
        ("facts.py", FACTS),
        ("export.py", EXPORT),
        ("quantize.py", QUANTIZE),
        ("compact.py", COMPACT),
        ("parity.py", PARITY),
        ("generate.py", GENERATE),
        ("generate.mjs", BROWSER),
    ];
    for (name, script) in scripts {
        let shown = script.replace('$', "$$").replace('\'', r"'\''");
        assert_eq!(text.matches(&shown).count(), 1, "{name}");
        text = text.replace(&shown, &format!("<{name}>"));
    }
    insta::assert_snapshot!("tinystories", text);
}

#[test]
fn the_pins_stop_at_what_nobody_recorded_and_their_files_stand_beside_them() {
    let plan = plan_of(PINS).unwrap();
    let error = crate::build::check_recorded(&plan).unwrap_err();
    assert_eq!(error.class() as u8, 5);
    let named = ["special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"];
    assert!(named.iter().all(|name| error.inputs.iter().any(|input| input.contains(name))), "{:?}", error.inputs);
    assert_eq!(error.inputs.len(), named.len(), "{:?}", error.inputs);
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("pins");
    crate::exec::local::check_all(&plan, &directory).unwrap();
}

#[test]
fn masks_may_stay_and_activations_may_be_quantized() {
    let plan = changed("masks = \"computed\"", "masks = \"stored\"").unwrap();
    assert!(plan.step("masks").is_none());
    let Action::CheckGraph(check) = &plan.step("graph").unwrap().action else { panic!("it checks") };
    assert_eq!(check.model.to_string(), "${step:quantize/model.onnx}");
    let plan = changed("activations = \"float\"", "activations = \"dynamic\"").unwrap();
    let Action::Run(run) = &plan.step("quantize").unwrap().action else { panic!("it runs") };
    let settings = r#"{"operators":["MatMul","Gather"],"per_channel":false,"activations":"dynamic"}"#;
    assert_eq!(run.commands[0][4].to_string(), settings);
}

#[test]
fn nothing_is_delivered_before_it_was_judged() {
    let plan = plan_of(PINS).unwrap();
    let reads =
        |step: &str, wanted: &str| plan.step(step).unwrap().inputs.iter().any(|input| input.step.as_str() == wanted);
    assert!(reads("export", "imports") && reads("export", "facts"));
    assert!(reads("parity", "graph") && reads("generation", "parity") && reads("package", "generation"));
}

#[test]
fn without_a_runtime_none_is_delivered() {
    let start = PINS.find("[package.onnxruntime-web]").unwrap();
    let end = PINS.find("[python]").unwrap();
    let without = format!("{}{}", &PINS[..start], &PINS[end..]).replace("web_runtime = \"onnxruntime-web\"\n", "");
    let start = without.find("[tool.npm]").unwrap();
    let end = without.find("[packaging]").unwrap();
    let plan = plan_of(&format!("{}{}", &without[..start], &without[end..])).unwrap();
    let Action::Package(package) = &plan.step("package").unwrap().action else { panic!("it packages") };
    assert!(package.artifacts.iter().all(|artifact| artifact.role != "runtime"));
    assert_eq!(package.artifacts.len(), 6);
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    for (from, to, expected) in [
        ("model = \"model.onnx\"", "model = \"model.bin\"", "model: `model.bin` does not end in .onnx"),
        ("\"MatMul\", \"Gather\"", "", "quantization.operators: there is no operator to quantize"),
        ("[1, 17, 256, 257, 512]", "[]", "parity.lengths: lengths of at least 1 are wanted"),
        ("[1, 17, 256, 257, 512]", "[0]", "parity.lengths: lengths of at least 1 are wanted"),
        ("asked \"{text}\"", "asked", "generation.prompt: it has no `{text}`"),
        ("\"you: {text}\\nhim: \"", "\"you: \"", "generation.traps: one has no `{text}`"),
        ("seeds = [1, 2]", "seeds = []", "generation.seeds: there is no seed"),
        ("top_k = 40", "top_k = 0", "generation.top_k: at least 1 token is wanted"),
        ("temperature = 0.9", "temperature = 0.0", "generation.temperature: a number above 0 is wanted"),
        ("temperature = 0.9", "temperature = nan", "generation.temperature: a number above 0 is wanted"),
        ("max_new_tokens = 60", "max_new_tokens = 0", "generation.max_new_tokens: at least 1 token is wanted"),
        ("sentence_ends = \".!?\"", "sentence_ends = \"\"", "generation.sentence_ends: there is no character"),
        ("config = \"config\"", "config = \"tokenizer\"", "config: `tokenizer.json` is not config.json"),
        ("weights = \"weights\"", "weights = \"config\"", "weights: `config.json` is neither pytorch_model.bin"),
        ("[\"tokenizer\", ", "[", "tokenizer: none of the files is tokenizer.json"),
    ] {
        let error = changed(from, to).unwrap_err();
        let expected = format!("[recipe.onnx-int8] {expected}");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(error.class() as u8, 1);
    }
}

#[test]
fn unknown_choices_are_refused_where_they_stand() {
    for (good, bad, expected) in [
        ("architecture = \"gpt_neo\"", "architecture = \"llama\"", "unknown variant `llama`, expected `gpt_neo`"),
        ("masks = \"computed\"", "masks = \"gone\"", "unknown variant `gone`"),
        ("\"Gather\"]", "\"Conv\"]", "unknown variant `Conv`"),
        ("random = \"mulberry32\"", "random = \"dice\"", "unknown variant `dice`"),
        ("per_channel = false", "per_chanel = false", "unknown field `per_chanel`"),
        ("seeds = [1, 2]", "seeds = [-1]", "u32"),
    ] {
        let text = PINS.replacen(good, bad, 1);
        assert_ne!(text, PINS, "{good}");
        let error = parse::<crate::recipe::Recipe>(&text, "pins.toml").unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains('^'), "{bad}: {error}");
    }
}
