//! Performing steps: one file for each kind of action, and the loop that runs a plan.

pub mod command;
pub mod log;
pub mod patch;
