//! What the build delivers: how artifacts are encoded, decoded and looked into.
//!
//! The readers are pure and give facts; nothing here judges them.

pub mod browser;
pub mod decoding;
pub mod encoding;
pub mod gzip;
pub mod library;
pub mod onnx;
mod tap;
pub mod wasm;
pub mod weights;
pub mod wgsl;
