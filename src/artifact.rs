//! What the build delivers: how artifacts are encoded, decoded and looked into.

pub mod decoding;
pub mod encoding;
mod tap;
