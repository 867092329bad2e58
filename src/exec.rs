//! Performing steps: one file for each kind of action, and the loop that runs a plan.

pub mod collect;
pub mod command;
pub mod file;
pub mod input;
pub mod log;
pub mod registry;
pub mod unpack;
