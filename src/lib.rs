//! Rebuild browser and edge model libraries from pinned inputs, and prove it.

pub mod digest;
pub mod error;
pub mod exec;
pub mod interrupt;
pub mod mirror;
pub mod pins;
pub mod step;
