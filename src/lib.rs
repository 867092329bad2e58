//! Rebuild browser and edge model libraries from pinned inputs, and prove it.

pub mod artifact;
pub mod clock;
pub mod digest;
pub mod error;
pub mod exec;
pub mod host;
pub mod interrupt;
mod replace;
pub mod journal;
pub mod key;
pub mod manifest;
pub mod mirror;
pub mod pins;
pub mod plan;
pub mod recipe;
pub mod step;
pub mod store;
pub mod verify;
pub mod workspace;
