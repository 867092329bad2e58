//! Rebuild browser and edge model libraries from pinned inputs, and prove it.

pub mod artifact;
pub mod build;
pub mod cli;
pub mod clock;
pub mod digest;
pub mod doctor;
pub mod error;
pub mod exec;
pub mod host;
pub mod interrupt;
pub mod journal;
pub mod key;
pub mod lock;
pub mod manifest;
pub mod mirror;
pub mod parallel;
pub mod pins;
pub mod plan;
pub mod recipe;
mod replace;
pub mod settings;
pub mod step;
pub mod store;
pub mod ui;
pub mod verify;
pub mod workspace;
