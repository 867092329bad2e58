//! The whole program, from its command line to its exit code.

mod auditing;
mod building;
mod bundling;
mod comparing;
mod env;
mod explaining;
mod fetching;
mod forging;
mod gating;
#[path = "../support/http_git.rs"]
#[allow(dead_code, reason = "the tests of git sources use the rest")]
mod http_git;
mod locking;
mod mini;
mod planning;
mod refusing;
mod replaying;
#[path = "../support/repositories.rs"]
#[allow(dead_code, reason = "the tests of git sources use the rest")]
mod repositories;
mod resuming;
#[path = "../support/small_library.rs"]
mod small_library;
mod stubborn;
mod terminal;
mod tools;
mod working;
