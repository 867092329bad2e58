//! Patches, through the library: what is read, what is applied, what is refused and how.

mod applying;
mod failing;
mod ids;
mod lab;
mod property;
mod reading;
