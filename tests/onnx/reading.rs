//! What the reader finds, and that nothing makes it panic.

use proptest::prelude::*;
use rebuild_model::artifact::onnx::{Dimension, OnnxError, Pattern, read};

use crate::onnx::{BOOL, CONSTANT, FLOAT, INT8, Message, NODE, external, good, mask, model, node, tensor};

#[test]
fn a_model_says_what_it_is() {
    let found = read(&model(&good())).unwrap();
    assert_eq!((found.ir_version, found.producer.as_str()), (8, "onnx.quantize 0.1.0"));
    assert_eq!(found.opsets.get(""), Some(&17));
    assert_eq!(found.inputs[0].to_string(), "input_ids int64 [1, seq]");
    assert_eq!(found.outputs[0].to_string(), "logits float32 [logits_dim_0, seq, 8]");
    assert_eq!(found.outputs[0].shape.as_ref().unwrap()[2], Dimension::Fixed(8));
    let names: Vec<_> = found.constants.iter().map(|constant| (constant.name.as_str(), constant.bytes)).collect();
    assert_eq!(names, [("head", 128), ("words", 32), ("scale", 4)]);
    assert_eq!(found.constants[1].used_by, ["Gather"]);
    assert_eq!(found.quantized().into_iter().collect::<Vec<_>>(), [("DequantizeLinear", 1)]);
    assert!(found.external.is_empty());
}

#[test]
fn constants_of_nodes_and_of_graphs_within_count_too() {
    let value = |tensor: Message| Message::default().bytes(1, "value").bytes(5, tensor);
    let constant = node("Constant", &[], "inner").bytes(5, value(tensor("", FLOAT, &[2], &[0; 8])));
    let graph = Message::default().bytes(NODE, constant).bytes(NODE, node("If", &["inner"], "x"));
    let outer = node("If", &["condition"], "y").bytes(5, Message::default().bytes(1, "then").bytes(6, graph));
    let own = node("Fused", &["a"], "z").bytes(7, "com.example");
    let found = read(&model(&[(NODE, outer), (NODE, own)])).unwrap();
    let operators: Vec<_> = found.operators.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(operators, [("Constant", 1), ("If", 2), ("com.example.Fused", 1)]);
    assert_eq!((found.constants[0].name.as_str(), found.constants[0].bytes), ("inner", 8));
}

#[test]
fn inputs_that_are_constants_are_none() {
    let mut parts = good();
    parts.push((crate::onnx::INPUT, crate::onnx::value("head", FLOAT, &[])));
    assert_eq!(read(&model(&parts)).unwrap().inputs.len(), 1);
}

#[test]
fn masks_that_could_be_computed_are_known() {
    let cases = [
        (mask(256, 256), vec![1, 1, 256, 256], Some(Pattern::Causal)),
        (mask(256, 32), vec![256, 256], Some(Pattern::Window(32))),
        (mask(256, 32), vec![1, 256, 256, 1], None),
        (vec![1; 65536], vec![256, 256], None),
        (vec![0; 65536], vec![256, 256], None),
        (mask(256, 256), vec![128, 512], None),
    ];
    for (raw, dimensions, expected) in cases {
        let found = read(&model(&[(CONSTANT, tensor("mask", BOOL, &dimensions, &raw))])).unwrap();
        assert_eq!(found.constants[0].pattern, expected, "{dimensions:?}");
        assert_eq!(found.computable_share() > 0.9, expected.is_some());
    }
    let mut spoiled = mask(256, 256);
    spoiled[256 * 100 + 200] = 1;
    let found = read(&model(&[(CONSTANT, tensor("mask", BOOL, &[256, 256], &spoiled))])).unwrap();
    assert_eq!(found.constants[0].pattern, None);
    // The same bytes as another type are other numbers.
    let found = read(&model(&[(CONSTANT, tensor("mask", INT8, &[256, 256], &mask(256, 256)))])).unwrap();
    assert_eq!(found.constants[0].pattern, None);
}

#[test]
fn data_in_other_files_is_named() {
    let found = read(&model(&[(CONSTANT, external("w", "weights.bin"))])).unwrap();
    assert_eq!(found.external.into_iter().collect::<Vec<_>>(), ["weights.bin"]);
}

#[test]
fn what_is_cut_off_or_no_model_says_where() {
    let whole = model(&good());
    for length in 1..whole.len() {
        match read(&whole[..length]) {
            Ok(found) => assert!(found.size == length as u64, "{length}"),
            Err(OnnxError::Truncated { offset, .. }) => assert!(offset <= length, "{length}"),
            Err(OnnxError::NoGraph) => assert!(length < 40, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert_eq!(read(b""), Err(OnnxError::NoGraph));
    let error = read(&whole[..100]).unwrap_err().to_string();
    assert!(error.starts_with("it is cut off: at byte "), "{error}");
    let error = read(b"version https://git-lfs.github.com/spec/v1\n").unwrap_err().to_string();
    assert!(error.starts_with("it is no protocol buffer: at byte ") || error.starts_with("it is cut off"), "{error}");
    assert_eq!(
        read(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).unwrap_err(),
        OnnxError::NoField { offset: 1, kind: 0 }
    );
}

#[test]
fn graphs_are_nested_only_so_deep() {
    let mut graph = Message::default();
    for _ in 0..20 {
        let attribute = Message::default().bytes(6, graph);
        graph = Message::default().bytes(NODE, node("If", &[], "y").bytes(5, attribute));
    }
    let bytes = Message::default().bytes(7, graph).0;
    assert_eq!(read(&bytes), Err(OnnxError::TooDeep { limit: 16 }));
}

proptest! {
    #[test]
    fn a_changed_file_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
        let mut bytes = model(&good());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = read(&bytes);
        let _ = read(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
        let _ = read(&Message::default().bytes(7, &bytes).0);
    }
}
