//! What passes and what does not, and what is said about it.

use std::collections::BTreeMap;

use rebuild_model::error::Fault;
use rebuild_model::exec::graph::{GraphError, GraphReport, check};
use rebuild_model::step::CheckGraph;

use crate::onnx::{
    BOOL, CONSTANT, FLOAT, INPUT, INT64, Message, OUTPUT, Size, external, good, mask, model, tensor, value,
};

fn wanted() -> CheckGraph {
    CheckGraph {
        model: "model.onnx".parse().unwrap(),
        input: "input_ids".to_owned(),
        output: "logits".to_owned(),
        vocabulary: 8,
        opset: 17,
        operators: BTreeMap::from([("MatMul".to_owned(), 1)]),
        size_limit: 1000,
    }
}

fn judge_bytes(bytes: &[u8], wanted: &CheckGraph) -> Result<GraphReport, GraphError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.onnx");
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(directory.path().join("beside.bin"), "data").unwrap();
    check(&path, wanted)
}

fn judge(change: impl FnOnce(&mut Vec<(u64, Message)>)) -> Result<GraphReport, GraphError> {
    let mut parts = good();
    change(&mut parts);
    judge_bytes(&model(&parts), &wanted())
}

#[track_caller]
fn refused(result: Result<GraphReport, GraphError>, said: &str) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.class().exit_code(), 8);
    assert!(error.to_string().contains(said), "{error}");
    error.hint().unwrap()
}

#[test]
fn a_good_model_passes_and_its_report_says_what_it_is() {
    let report = judge(|_| {}).unwrap();
    insta::assert_json_snapshot!(report);
}

#[test]
fn another_input_or_output_is_refused() {
    let seq = || Size::Any("seq");
    let hint = refused(
        judge(|parts| parts.push((INPUT, value("attention_mask", INT64, &[Size::Is(1), seq()])))),
        "its inputs are input_ids int64 [1, seq], attention_mask int64 [1, seq], and only input_ids int64 [1, any] is wanted",
    );
    assert!(hint.contains("create_causal_mask"), "{hint}");
    let replace = |field: u64, with: Message| {
        judge(move |parts| {
            parts.retain(|(each, _)| *each != field);
            parts.push((field, with));
        })
    };
    refused(replace(INPUT, value("input_ids", FLOAT, &[Size::Is(1), seq()])), "input_ids float32 [1, seq]");
    refused(replace(INPUT, value("input_ids", INT64, &[Size::Is(1), Size::Is(8)])), "input_ids int64 [1, 8]");
    refused(replace(INPUT, value("ids", INT64, &[Size::Is(1), seq()])), "ids int64");
    let wide = value("logits", FLOAT, &[Size::Is(1), seq(), Size::Is(9)]);
    refused(replace(OUTPUT, wide), "only logits float32 [1 or any, any, 8] is wanted");
    replace(OUTPUT, value("logits", FLOAT, &[Size::Is(1), seq(), Size::Is(8)])).unwrap();
    refused(replace(OUTPUT, value("logits", FLOAT, &[Size::Is(2), seq(), Size::Is(8)])), "logits float32 [2, seq, 8]");
    refused(judge(|parts| parts.retain(|(field, _)| *field != OUTPUT)), "its outputs are none");
}

#[test]
fn names_in_a_model_command_no_terminal() {
    let error = judge(|parts| parts.push((INPUT, value("a\u{1b}[2J\nb", INT64, &[])))).unwrap_err();
    assert!(error.to_string().contains("a\\u{1b}[2J\\nb int64"), "{error}");
}

#[test]
fn a_model_over_the_limit_has_its_largest_constants_listed() {
    let mut parts = good();
    parts.push((CONSTANT, tensor("onnx::Slice_1", BOOL, &[1, 1, 256, 256], &mask(256, 256))));
    let error = judge_bytes(&model(&parts), &wanted()).unwrap_err();
    assert!(error.to_string().contains("bytes, more than the 1000 that are allowed"), "{error}");
    let detail = error.detail().unwrap();
    assert!(
        detail.contains("onnx::Slice_1 (bool 1 × 1 × 256 × 256, 65536 bytes: says only that row ≥ column), 99.")
            && detail.contains("head (float32 4 × 8, 128 bytes), 0.2 % of the file, used by MatMul"),
        "{detail}"
    );
    assert!(error.hint().unwrap().contains("masks = \"computed\""));
    let roomy = CheckGraph { size_limit: 100_000, ..wanted() };
    let notes = judge_bytes(&model(&parts), &roomy).unwrap().notes;
    assert_eq!(notes, ["99 % of the file are 1 masks that their row and column say: they could be computed"]);
}

#[test]
fn layers_that_changed_and_weights_that_were_not_quantized_are_found() {
    let other = CheckGraph { operators: BTreeMap::from([("MatMulInteger".to_owned(), 3)]), opset: 18, ..wanted() };
    let error = judge_bytes(&model(&good()), &other).unwrap_err();
    let detail = error.detail().unwrap();
    assert!(detail.contains("it has MatMulInteger 0 times, and 3 are wanted"), "{detail}");
    assert!(detail.contains("operators of version 17, and 18 is wanted"), "{detail}");
    assert!(error.to_string().ends_with("; and 1 more flaw"), "{error}");
    let floats = judge(|parts| parts[3] = (CONSTANT, tensor("words", FLOAT, &[8, 4], &[0; 128])));
    refused(floats, "none of its weights has 8 bits");
}

#[test]
fn data_in_other_files_is_missing_or_not_delivered() {
    for (name, said) in [
        ("gone.bin", "the file gone.bin, which is missing"),
        ("beside.bin", "the file beside.bin, which is not delivered"),
        ("../../etc/passwd", "the file ../../etc/passwd, which is missing"),
    ] {
        refused(judge(|parts| parts.push((CONSTANT, external("w", name)))), said);
    }
}

#[test]
fn a_model_that_is_cut_off_is_damaged() {
    let whole = model(&good());
    let error = judge_bytes(&whole[..whole.len() - 3], &wanted()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        error.to_string().contains("model.onnx is damaged") && cause.starts_with("it is cut off"),
        "{error} {cause}"
    );
    assert!(matches!(check(std::path::Path::new("/no/such/model"), &wanted()), Err(GraphError::Read { .. })));
}
