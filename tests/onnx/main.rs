//! The recipe `onnx-int8`: reading ONNX files written here by hand, judging them, and whole builds with
//! scripts in the place of torch and onnxruntime.

mod building;
mod judging;
mod mini;
#[path = "../support/onnx.rs"]
#[allow(clippy::cast_possible_truncation, reason = "the seven low bits of a number are a byte")]
mod onnx;
mod reading;
mod speaking;
