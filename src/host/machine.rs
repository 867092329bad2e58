//! What this machine is called: names that no artifact may tell.

use std::env;
use std::path::Path;

/// What a machine is called.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Directories of the build, absolute, each with what it is, as in "the workspace".
    pub directories: Vec<(&'static str, String)>,
    /// The home directory of whoever builds.
    pub home: Option<String>,
    /// Their name.
    pub user: Option<String>,
    /// The host's name.
    pub host: Option<String>,
}

impl Machine {
    /// The names of this machine and of whoever uses it, and `directories` with what each is.
    pub fn here(directories: &[(&'static str, &Path)]) -> Self {
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let mut listed = Vec::new();
        for (what, path) in directories {
            // A tool may see another path to the same place than the one that we were given.
            let real = std::fs::canonicalize(path).ok();
            for path in [Some(path.to_path_buf()), real].into_iter().flatten() {
                let path = path.display().to_string();
                if path.starts_with('/') && !listed.contains(&(*what, path.clone())) {
                    listed.push((*what, path));
                }
            }
        }
        Self {
            directories: listed,
            home: text("HOME"),
            user: text("USER").or_else(|| text("LOGNAME")),
            host: rustix::system::uname().nodename().to_str().ok().map(str::to_owned),
        }
    }
}
