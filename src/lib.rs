//! Rebuild browser and edge model libraries from pinned inputs, and prove it.

pub mod artifact;
pub mod digest;
pub mod error;
pub mod exec;
pub mod interrupt;
pub mod manifest;
pub mod pins;
mod replace;
pub mod step;
pub mod verify;
