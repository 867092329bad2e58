//! What is made different between runs, to find out what a result depends on. The list is that of
//! `reprotest`; most of it has no effect here, since steps never see what the caller has.

use std::path::PathBuf;

use serde::Serialize;

use super::Request;
use crate::exec::environment;
use crate::host::Host;

/// Something that can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// Where the workspace is.
    Directory,
    /// How many steps run at a time.
    Jobs,
    /// The language.
    Locale,
    /// The modes of new files.
    Umask,
    /// The time of day, by `faketime` where it is on `PATH`.
    Time,
    /// The home directory.
    Home,
}

impl Variation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Directory, Self::Jobs, Self::Locale, Self::Umask, Self::Time, Self::Home];

    /// Its name, as flags and reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Jobs => "jobs",
            Self::Locale => "locale",
            Self::Umask => "umask",
            Self::Time => "time",
            Self::Home => "home",
        }
    }
}

/// What came of a wish to vary something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Varied {
    /// What.
    pub variation: Variation,
    /// Whether the runs differ in it.
    pub varied: bool,
    /// How, or why not.
    pub how: String,
}

/// One run among those of a replay.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// The workspace.
    pub workspace: PathBuf,
    pub jobs: usize,
    /// What commands are started by.
    pub wrapper: Vec<String>,
    /// What is said of it.
    pub label: String,
    /// Whether it is the one in which something was made different.
    pub varied: bool,
}

pub(super) struct Variants {
    pub runs: Vec<Variant>,
    pub varied: Vec<Varied>,
}

/// The runs that `request` asks for.
pub(super) fn variants(request: &Request, host: &Host) -> Variants {
    let jobs = request.jobs.unwrap_or(host.cores).max(1);
    let plain = |number: u32| Variant {
        workspace: request.directory.join(format!("run-{number}")),
        jobs,
        wrapper: Vec::new(),
        label: "as the plan says".to_owned(),
        varied: false,
    };
    let mut runs: Vec<Variant> = (1..=request.times.max(1)).map(plain).collect();
    let mut varied = Vec::new();
    if request.vary.is_empty() {
        return Variants { runs, varied };
    }
    let mut other = Variant { label: "varied".to_owned(), varied: true, ..plain(request.times.max(1) + 1) };
    let mut wanted = request.vary.clone();
    wanted.sort();
    wanted.dedup();
    for variation in wanted {
        let (changed, how) = vary(variation, &mut other, jobs);
        varied.push(Varied { variation, varied: changed, how });
    }
    runs.push(other);
    Variants { runs, varied }
}

fn vary(variation: Variation, other: &mut Variant, jobs: usize) -> (bool, String) {
    let constant = environment::constant();
    match variation {
        Variation::Directory => {
            let plain = other.workspace.clone();
            let name = "a-directory-with-a-name-of-another-length/below-another";
            other.workspace = plain.parent().unwrap_or(&plain).join(name).join("run");
            (true, format!("{} instead of {}", other.workspace.display(), plain.display()))
        }
        Variation::Jobs => {
            other.jobs = if jobs == 1 { 4 } else { 1 };
            (true, format!("{} at a time instead of {jobs}", other.jobs))
        }
        Variation::Locale => {
            let locale = constant.get("LC_ALL").cloned().unwrap_or_default();
            (false, format!("without effect: every step has LC_ALL={locale}, whatever the caller has"))
        }
        Variation::Umask => (false, "without effect: every step has umask 022, whatever the caller has".to_owned()),
        Variation::Home => {
            (false, "without effect: every step has an empty home of its own below its scratch directory".to_owned())
        }
        Variation::Time => match which::which("faketime") {
            Ok(program) => {
                other.wrapper = [&program.display().to_string(), "-f", "+400d"].map(str::to_owned).to_vec();
                (true, format!("commands are started by {} 400 days ahead", program.display()))
            }
            Err(_) => (false, "not varied: faketime is not on PATH".to_owned()),
        },
    }
}
