//! What the build delivers: how artifacts are encoded, decoded and looked into.

pub mod decoding;
pub mod encoding;
pub mod onnx;
mod tap;
