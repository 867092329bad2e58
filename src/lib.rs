//! Rebuild browser and edge model libraries from pinned inputs, and prove it.
//!
//! `pins (+ host) → recipe → plan → execute (journal) → package → manifest → verify`
//!
//! Nothing on the left knows anything on the right. The modules below stand in that order as far as
//! the alphabet lets them; `ARCHITECTURE.md` has the map, and the decisions with their reasons.
//!
//! # Invariants
//!
//! 1. [`pins`], [`plan`], [`step`] and [`recipe`] do no IO.
//! 2. A [`plan::Plan`] holds no absolute path, no clock, and nothing about the host but its platform.
//! 3. Only the fetch actions use the network in this process.
//! 4. Only [`process`] spawns a process.
//! 5. Only [`clock`] asks for the time of day; no time is in a plan or a manifest.
//! 6. Every serialized file carries a schema version, and no hash map is in a serialized type.
//! 7. No step writes outside its declared outputs.
//! 8. Nothing but the workspace and the cache changes before packaging, and publishing replaces
//!    files atomically, the manifest last.
//! 9. A mismatch never exits 0.
//! 10. What is found on disk is hashed again, not trusted.
//!
//! `tests/invariants.rs` holds the sources to 1 to 6; 7 to 10 are tests of what they are about.
//!
//! # As a library
//!
//! [`build::prepare`] reads a pins file and plans, [`build::build`] builds, [`verify::verify`] checks a
//! manifest. Every error is an [`error::Error`], whose class is the exit code of the program.

pub mod artifact;
mod bounded;
pub mod build;
pub mod bundle;
pub mod cli;
pub mod clock;
pub mod diff;
pub mod digest;
pub mod doctor;
pub mod error;
pub mod exec;
pub mod explain;
pub mod gate;
pub mod host;
pub mod inspect;
pub mod interrupt;
pub mod journal;
pub mod key;
pub mod lock;
pub mod manifest;
pub mod mirror;
pub mod parallel;
pub mod past;
pub mod pins;
pub mod plan;
mod printable;
pub mod process;
pub mod provenance;
pub mod recipe;
mod replace;
pub mod replay;
pub mod settings;
pub mod smoke;
pub mod step;
pub mod store;
pub mod ui;
mod unique;
pub mod verify;
pub mod workspace;

#[cfg(test)]
#[path = "../tests/support/small_library.rs"]
mod small_library;
