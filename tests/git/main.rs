//! Fetching git sources.

#[path = "../support/http_git.rs"]
#[allow(dead_code, missing_docs, reason = "a benchmark uses the rest")]
mod http_git;
#[path = "../support/repositories.rs"]
#[allow(missing_docs, reason = "support")]
mod repositories;

mod content;
mod http;
mod places;
mod submodules;

/// The outermost repository of most tests.
const TOP: &str = "./repositories/top.git";
