//! What a build says of itself, and what becomes of it when somebody changes a part.

mod building;
#[path = "../cli/env.rs"]
#[allow(dead_code, reason = "the tests of the program use the rest")]
mod env;
#[path = "../cli/mini.rs"]
#[allow(dead_code, reason = "the tests of the program use the rest")]
mod mini;
mod policies;
mod reading;
#[path = "../support/repositories.rs"]
#[allow(dead_code, reason = "the tests of git sources use the rest")]
mod repositories;
mod signing;
#[path = "../support/small_library.rs"]
mod small_library;
mod verifying;
