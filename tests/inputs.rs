//! Inputs that are not git: plain files, packages, wheels and archives, through the library.

#![allow(missing_docs, reason = "tests")]

#[path = "inputs/desk.rs"]
mod desk;
#[path = "inputs/file.rs"]
mod file;
#[path = "support/http_file.rs"]
mod http_file;
#[path = "inputs/registry.rs"]
mod registry;
#[path = "inputs/unpack.rs"]
mod unpack;
#[path = "inputs/wheels.rs"]
mod wheels;
