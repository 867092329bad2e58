//! Fetching git sources: an exact commit, as little of its history as can be had, and every
//! submodule of every level at its pinned commit.
//!
//! A repository is obtained from its mirrors or from where it is published, tried in order. What is
//! obtained is checked the same from wherever it came: the objects by their ids, the tree by its
//! pin, the gitlinks by theirs. The tree is then written by this program, byte for byte, with no
//! filter and no hook, to a temporary place that is renamed when everything is whole.
//!
//! **Invariant**: no configuration of the user or of the host takes part (`url.*.insteadOf`,
//! `core.autocrlf`, credential helpers), and none is changed.

mod error;
mod host;
mod keep;
mod library;
mod listing;
mod obtain;
mod protocol;
mod report;
mod submodules;
mod wire;
mod write;

pub use error::GitError;
pub use host::HostGit;
pub use keep::{check_kept, place_of};
pub use report::{FetchedRepository, GitReport, How};

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::mirror::Mirrors;
use crate::pins::Commit;
use crate::process::log::StepLog;
use crate::step::{Checkout, SubmoduleCheckout, Take};
use keep::Keeper;
use listing::Listing;
use submodules::join_path;
use wire::Client;

/// How many sibling submodules are fetched at a time: they wait for servers more than they compute.
const SIBLINGS: usize = 4;

/// What a fetch needs besides the checkout.
#[derive(Debug, Clone, Copy)]
pub struct GitContext<'a> {
    /// Other places to fetch from.
    pub mirrors: &'a Mirrors,
    /// Use only places on this host.
    pub offline: bool,
    /// The directory of the pins file, which `./` urls are relative to.
    pub base: &'a Path,
    /// An existing directory for temporary repositories, on the file system of the destination.
    pub scratch: &'a Path,
    /// The host's `git`, when there is one, for what the built-in one cannot do.
    pub host_git: Option<&'a HostGit>,
    /// How often a transient failure is tried again, and how long to wait before.
    pub retries: Retries,
    /// Receives every fall-back and retry.
    pub log: &'a StepLog,
    /// Ends the fetch.
    pub interrupt: &'a Interrupt,
}

/// A bound on attempts after transient failures.
#[derive(Debug, Clone, Copy)]
pub struct Retries {
    /// Attempts after the first.
    pub count: u32,
    /// The wait before the first of them; it doubles with each.
    pub delay: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { count: 3, delay: Duration::from_secs(1) }
    }
}

/// Fetches `checkout` with its submodules into `into`, which must not exist or be empty, and whose
/// parent must exist. After an error nothing is left in `into`.
pub fn fetch(checkout: &Checkout, into: &Path, context: &GitContext) -> Result<GitReport, GitError> {
    fetch_and_keep(checkout, into, None, context)
}

/// The same, and keeps the objects of every commit below `repositories`: see [`place_of`].
pub fn fetch_and_keep(
    checkout: &Checkout,
    into: &Path,
    repositories: Option<&Path>,
    context: &GitContext,
) -> Result<GitReport, GitError> {
    library::isolate()?;
    context.interrupt.check()?;
    if std::fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(GitError::NotEmpty { path: into.to_owned() });
    }
    let failed = |source| GitError::Io { path: into.to_owned(), source };
    let scratch = tempfile::Builder::new()
        .prefix("git-")
        .tempdir_in(context.scratch)
        .map_err(|source| GitError::Io { path: context.scratch.to_owned(), source })?;
    let staged = scratch.path().join("tree");
    let keeper = repositories.map(Keeper::new);
    let (client, next) = (Client::new(), AtomicUsize::new(0));
    let run = Run { context, scratch: scratch.path(), client, next, keeper };
    let mut repositories = run.fetch_checkout(checkout, "", &staged)?;
    repositories.sort_by(|a, b| a.path.cmp(&b.path));
    context.interrupt.check()?;
    std::fs::rename(&staged, into).map_err(failed)?;
    Ok(GitReport { repositories })
}

/// One call of [`fetch`].
struct Run<'a> {
    context: &'a GitContext<'a>,
    scratch: &'a Path,
    /// Connections that the repositories share.
    client: Client,
    /// Numbers the temporary repositories.
    next: AtomicUsize,
    keeper: Option<Keeper<'a>>,
}

/// One repository to be fetched.
struct Visit<'a> {
    /// The checkout it belongs to, whose pins are asked for its submodules.
    checkout: &'a Checkout,
    /// Its path from that checkout's root; empty for the root.
    path: String,
    /// That checkout's path from the root of the whole tree; empty for the outermost.
    prefix: &'a str,
    /// Where it is published.
    url: String,
    commit: Commit,
    tree: Option<&'a Commit>,
}

/// A submodule that passed the checks.
struct Link<'a> {
    /// Its path in its parent.
    path: String,
    /// What its parent records.
    commit: Commit,
    pin: &'a SubmoduleCheckout,
    /// From the pin or from `.gitmodules`; only where it is needed.
    url: Option<String>,
}

impl Run<'_> {
    /// Fetches a checkout whose root is at `prefix` of the whole tree into `into`.
    fn fetch_checkout(
        &self,
        checkout: &Checkout,
        prefix: &str,
        into: &Path,
    ) -> Result<Vec<FetchedRepository>, GitError> {
        self.visit(
            &Visit {
                checkout,
                path: String::new(),
                prefix,
                url: checkout.url.clone(),
                commit: checkout.commit.clone(),
                tree: checkout.tree.as_ref(),
            },
            into,
        )
    }

    fn visit(&self, visit: &Visit, into: &Path) -> Result<Vec<FetchedRepository>, GitError> {
        let shown = visit.shown("");
        let scratch = self.scratch.join(format!("r{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let source = obtain::Source { path: &shown, url: &visit.url, commit: &visit.commit };
        let obtained = obtain::obtain(&source, &scratch, &self.client, self.context)?;
        let listing = &obtained.listing;
        if let Some(expected) = visit.tree.filter(|&expected| *expected != listing.tree) {
            return Err(GitError::TreeDiffers {
                path: shown,
                url: visit.url.clone(),
                commit: visit.commit.clone(),
                expected: expected.clone(),
                found: listing.tree.clone(),
            });
        }
        let links = self.check_links(visit, listing, &obtained.repository)?;
        if let Some(keeper) = &self.keeper {
            keeper.keep(&obtained.repository, &visit.url, &visit.commit)?;
        }
        write::check_collisions(listing, &shown, self.scratch)?;
        write::make_directories(listing, into)?;
        let mut repositories = vec![FetchedRepository {
            path: shown,
            url: visit.url.clone(),
            place: obtained.place,
            commit: visit.commit.clone(),
            tree: listing.tree.clone(),
            how: obtained.how,
            bytes: obtained.bytes,
            fallbacks: obtained.fallbacks,
            submodules: listing.links.iter().cloned().collect(),
        }];
        let (repository, listing, interrupt) = (obtained.repository, obtained.listing, self.context.interrupt);
        let write = || {
            write::write_files(&repository, &listing, into, interrupt)?;
            // The objects of a large repository are not kept on disk until its submodules are there.
            drop((repository, std::fs::remove_dir_all(&scratch)));
            Ok::<(), GitError>(())
        };
        if links.is_empty() {
            write()?;
            return Ok(repositories);
        }
        // The files are written while the submodules come.
        let (written, children) = std::thread::scope(|scope| {
            let writer = scope.spawn(write);
            let children = self.visit_links(visit, &links, into);
            (writer.join(), children)
        });
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        repositories.extend(children?);
        Ok(repositories)
    }

    /// Holds the gitlinks of a repository's tree against the pins.
    fn check_links<'a>(
        &self,
        visit: &Visit<'a>,
        listing: &Listing,
        repository: &git2::Repository,
    ) -> Result<Vec<Link<'a>>, GitError> {
        let mut links = Vec::new();
        let modules = submodules::read_modules(repository, listing, &visit.shown(""), self.scratch);
        // Where every pin brings its own url, a broken `.gitmodules` does no harm.
        let needs_url = |path: &String| {
            let pin = visit.checkout.submodules.get(join_path(&visit.path, path).as_str());
            pin.is_some_and(|pin| matches!(pin.take, Take::Recorded { url: None }))
        };
        let modules = match modules {
            Err(error) if listing.links.iter().any(|(path, _)| needs_url(path)) => return Err(error),
            modules => modules.unwrap_or_default(),
        };
        for (path, found) in &listing.links {
            let shown = visit.shown(path);
            let full = join_path(&visit.path, path);
            let Some(pin) = visit.checkout.submodules.get(full.as_str()) else {
                let url = modules.url(path).map(str::to_owned);
                return Err(GitError::Unpinned { path: shown, pin: full, commit: found.clone(), url });
            };
            if let Some(expected) = pin.recorded.known()
                && expected != found
            {
                return Err(GitError::LinkMoved {
                    path: shown,
                    parent: visit.url.clone(),
                    commit: visit.commit.clone(),
                    expected: expected.clone(),
                    found: found.clone(),
                });
            }
            let url = match &pin.take {
                Take::Recorded { url: Some(url) } => Some(url.clone()),
                Take::Recorded { url: None } => Some(submodules::resolve_url(&visit.url, &modules, path, &shown)?),
                Take::Override(_) | Take::Nothing => None,
            };
            links.push(Link { path: path.clone(), commit: found.clone(), pin, url });
        }
        self.check_pins(visit, &links)?;
        Ok(links)
    }

    /// Every pin below this repository leads to one of its submodules.
    fn check_pins(&self, visit: &Visit, links: &[Link]) -> Result<(), GitError> {
        for key in visit.checkout.submodules.keys() {
            let key = key.as_str();
            let below = |parent: &str| match parent {
                "" => Some(key),
                parent => key.strip_prefix(parent)?.strip_prefix('/'),
            };
            let Some(rest) = below(&visit.path) else { continue };
            let link = links.iter().find(|link| {
                rest.strip_prefix(link.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            let deeper = link.is_some_and(|link| link.path != rest);
            match link {
                None => return Err(GitError::NotASubmodule { path: visit.shown(rest), url: visit.url.clone() }),
                Some(link) if deeper && !matches!(link.pin.take, Take::Recorded { .. }) => {
                    return Err(GitError::Replaced { path: visit.shown(rest), parent: visit.shown(&link.path) });
                }
                Some(_) => {}
            }
        }
        self.context.interrupt.check()?;
        Ok(())
    }

    /// Fetches the submodules, some at a time. Of several failures the first in path order is told.
    fn visit_links(&self, parent: &Visit, links: &[Link], into: &Path) -> Result<Vec<FetchedRepository>, GitError> {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let results = Mutex::new(Vec::new());
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(link) = links.get(index) else { return };
                let result = self.visit_link(parent, link, into);
                stop.fetch_or(result.is_err(), Ordering::Relaxed);
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
            }
        };
        if links.len() < 2 {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..links.len().min(SIBLINGS) {
                    scope.spawn(work);
                }
            });
        }
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_by_key(|(index, _)| *index);
        let mut repositories = Vec::new();
        for (_, result) in results {
            repositories.extend(result?);
        }
        Ok(repositories)
    }

    fn visit_link(&self, parent: &Visit, link: &Link, into: &Path) -> Result<Vec<FetchedRepository>, GitError> {
        self.context.interrupt.check()?;
        let into = into.join(&link.path);
        match (&link.pin.take, &link.url) {
            (Take::Override(checkout), _) => self.fetch_checkout(checkout, &parent.shown(&link.path), &into),
            (Take::Recorded { .. }, Some(url)) => self.visit(
                &Visit {
                    checkout: parent.checkout,
                    path: join_path(&parent.path, &link.path),
                    prefix: parent.prefix,
                    url: url.clone(),
                    commit: link.commit.clone(),
                    tree: None,
                },
                &into,
            ),
            // The empty directory of a submodule is made with its parent's tree.
            (Take::Nothing | Take::Recorded { .. }, _) => Ok(Vec::new()),
        }
    }
}

impl Visit<'_> {
    /// The path from the root of the whole tree of `below` in this repository; `.` for the root.
    fn shown(&self, below: &str) -> String {
        let path = join_path(&join_path(self.prefix, &self.path), below);
        if path.is_empty() { ".".to_owned() } else { path }
    }
}
