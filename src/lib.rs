//! Rebuild browser and edge model libraries from pinned inputs, and prove it.

pub mod clock;
pub mod digest;
pub mod error;
pub mod exec;
pub mod host;
pub mod interrupt;
pub mod journal;
pub mod key;
pub mod pins;
pub mod plan;
pub mod recipe;
pub mod step;
pub mod store;
pub mod workspace;
