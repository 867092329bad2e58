//! Obtaining one repository with one commit: which places are tried, in which ways, how often.

use std::fmt;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository, RepositoryOpenFlags};

use super::listing::{Listing, Unlisted};
use super::wire::Client;
use super::{GitContext, GitError, How, library, protocol};
use crate::interrupt::Interrupt;
use crate::mirror::is_local;
use crate::pins::Commit;
use crate::printable::without_secrets;

/// What is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// Its path in the whole tree, for messages.
    pub(super) path: &'a str,
    /// Where it is published.
    pub(super) url: &'a str,
    pub(super) commit: &'a Commit,
}

/// A repository in which every object of the wanted commit's tree can be read.
pub(super) struct Obtained {
    pub(super) repository: Repository,
    pub(super) listing: Listing,
    pub(super) place: String,
    pub(super) how: How,
    pub(super) bytes: u64,
    pub(super) fallbacks: Vec<String>,
}

/// Why one way to one place failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No answer, or one that broke off.
    Unreachable { message: String, transient: bool },
    /// There is no repository.
    NotFound(String),
    /// The repository is there, and does not give the commit in this way.
    Refused(String),
    /// The repository is there, and does not have the commit.
    NoCommit,
    /// The commit is there, and one of its objects is not, or is another one.
    Damaged(String),
    /// This way does not know how to get there.
    Unsupported(String),
    /// No other way or place helps.
    Fatal(GitError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { message, .. }
            | Self::NotFound(message)
            | Self::Refused(message)
            | Self::Unsupported(message) => f.write_str(message.trim_end()),
            Self::NoCommit => f.write_str("the commit is not there"),
            Self::Damaged(message) => write!(f, "the repository {message}"),
            Self::Fatal(error) => error.fmt(f),
        }
    }
}

/// A repository that was reached in some way.
struct Reached {
    repository: Repository,
    how: How,
    bytes: u64,
}

/// One search for a source.
struct Search<'a> {
    source: &'a Source<'a>,
    scratch: &'a Path,
    client: &'a Client,
    context: &'a GitContext<'a>,
    fallbacks: Vec<String>,
}

/// Obtains `source` from the first place that has it; temporary repositories are made in `scratch`,
/// a directory that is not there yet.
pub(super) fn obtain(
    source: &Source,
    scratch: &Path,
    client: &Client,
    context: &GitContext,
) -> Result<Obtained, GitError> {
    let (path, url, commit) = (source.path.to_owned(), source.url.to_owned(), source.commit.clone());
    let mut places = context.mirrors.candidates(source.url);
    places.retain(|place| !context.offline || is_local(place));
    if places.is_empty() {
        return Err(GitError::Offline { path, url, commit });
    }
    std::fs::create_dir(scratch).map_err(|source| GitError::Io { path: scratch.to_owned(), source })?;
    let mut search = Search { source, scratch, client, context, fallbacks: Vec::new() };
    let mut attempts = Vec::new();
    let mut missing = false;
    for (index, place) in places.iter().enumerate() {
        match search.search_place(place) {
            Ok((reached, listing)) => {
                let Reached { repository, how, bytes } = reached;
                return Ok(Obtained {
                    repository,
                    listing,
                    place: without_secrets(place).into_owned(),
                    how,
                    bytes,
                    fallbacks: search.fallbacks,
                });
            }
            Err(Failure::Fatal(error)) => return Err(error),
            Err(failure) => {
                missing |= matches!(failure, Failure::NoCommit | Failure::Refused(_));
                attempts.push(format!("{place}: {failure}"));
                if let Some(next) = places.get(index + 1) {
                    search.fall_back(&format!("{place}: {failure}; trying {next}"));
                }
            }
        }
    }
    Err(if missing {
        GitError::CommitMissing { path, url, commit, attempts }
    } else {
        GitError::Unreachable { path, url, commit, attempts }
    })
}

impl Search<'_> {
    fn search_place(&mut self, place: &str) -> Result<(Reached, Listing), Failure> {
        self.check()?;
        let reached = if is_local(place) { self.reach_local(place) } else { self.reach_remote(place) }?;
        let listing = self.list(&reached.repository, reached.how)?;
        Ok((reached, listing))
    }

    /// A repository on this host is read where it lies: a copy would not be safer, since every
    /// object is checked against its id when it is read. What came over a network was, on arrival.
    fn reach_local(&mut self, place: &str) -> Result<Reached, Failure> {
        let path = local_path(place, self.context.base);
        match open_local(&path) {
            Ok(repository) => Ok(Reached { repository, how: How::Local, bytes: 0 }),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Err(Failure::NotFound(format!("there is no repository at {}", path.display())))
            }
            Err(error) => {
                let failure = Failure::Unsupported(error.message().to_owned());
                self.ask_host(&path.to_string_lossy(), &failure).unwrap_or(Err(failure))
            }
        }
    }

    fn reach_remote(&mut self, place: &str) -> Result<Reached, Failure> {
        let failure = match self.reach_alone(place) {
            Err(failure @ (Failure::Fatal(_) | Failure::NotFound(_) | Failure::NoCommit)) => return Err(failure),
            Err(failure) => failure,
            reached => return reached,
        };
        let by_library = !matches!(failure, Failure::Unsupported(_));
        let failure = match self.ask_host(place, &failure) {
            None => match failure {
                Failure::Unsupported(reason) => {
                    Failure::Unsupported(format!("{reason}; the host's git could be asked, and there is none"))
                }
                failure => failure,
            },
            Some(Err(failure)) => failure,
            Some(reached) => return reached,
        };
        if !matches!(failure, Failure::Refused(_) | Failure::NoCommit) {
            return Err(failure);
        }
        self.fall_back(&format!("{place}: {failure}; fetching all branches and tags"));
        self.reach_in_full(place, by_library)
    }

    /// The commit without its history, in the protocol's version 2 or, where that is not spoken, by
    /// libgit2 in version 0.
    fn reach_alone(&mut self, place: &str) -> Result<Reached, Failure> {
        if protocol::speaks(place) {
            match self.retry(place, |search| {
                search.reach_by(|repository, commit, interrupt| {
                    protocol::fetch_commit(search.client, repository, place, commit, interrupt)
                })
            }) {
                Err(Failure::Unsupported(reason)) => {
                    let path = self.source.path;
                    self.context.log.line(&format!("{path}: {place}: {reason}; asking in version 0"));
                }
                reached => return reached,
            }
        }
        self.retry(place, |search| {
            search.reach_by(|repository, commit, interrupt| library::fetch_commit(repository, place, commit, interrupt))
        })
    }

    fn reach_by(
        &self,
        fetch: impl FnOnce(&Repository, &Commit, &Interrupt) -> Result<u64, Failure>,
    ) -> Result<Reached, Failure> {
        let repository = self.make_repository("shallow")?;
        let bytes = fetch(&repository, self.source.commit, self.context.interrupt)?;
        self.expect_commit(&repository, || Failure::Refused("the server answered without the commit".into()))?;
        Ok(Reached { repository, how: How::Shallow, bytes })
    }

    /// The host's `git`, if there is one, for the commit alone.
    fn ask_host(&mut self, place: &str, failure: &Failure) -> Option<Result<Reached, Failure>> {
        let git = self.context.host_git?;
        self.fall_back(&format!("{place}: {failure}; asking the host's git"));
        Some(self.retry(place, |search| {
            let GitContext { log, interrupt, .. } = *search.context;
            let repository = search.make_repository("host")?;
            git.fetch(repository.path(), place, &[search.source.commit.as_str()], true, log, interrupt)?;
            let repository = reopen(&repository)?;
            search.expect_commit(&repository, || Failure::NoCommit)?;
            Ok(Reached { repository, how: How::HostGit, bytes: 0 })
        }))
    }

    fn reach_in_full(&mut self, place: &str, by_library: bool) -> Result<Reached, Failure> {
        self.retry(place, |search| {
            let GitContext { log, interrupt, host_git, .. } = *search.context;
            let repository = search.make_repository("full")?;
            let reached = match host_git {
                Some(git) if !by_library => {
                    git.fetch(repository.path(), place, &library::ALL, false, log, interrupt)?;
                    Reached { repository: reopen(&repository)?, how: How::HostGitFull, bytes: 0 }
                }
                _ => {
                    let bytes = library::fetch_all(&repository, place, interrupt)?;
                    Reached { repository, how: How::Full, bytes }
                }
            };
            search.expect_commit(&reached.repository, || Failure::NoCommit)?;
            Ok(reached)
        })
    }

    /// Tries again after transient failures, each time after twice the wait.
    fn retry<T>(&mut self, place: &str, mut attempt: impl FnMut(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let retries = self.context.retries;
        let mut delay = retries.delay;
        for number in 1..=retries.count {
            match attempt(self) {
                Err(failure @ Failure::Unreachable { transient: true, .. }) => {
                    self.fall_back(&format!("{place}: {failure}; trying again ({number} of {})", retries.count));
                }
                result => return result,
            }
            self.context.interrupt.sleep(delay).map_err(|interrupted| Failure::Fatal(interrupted.into()))?;
            delay *= 2;
        }
        attempt(self)
    }

    fn list(&self, repository: &Repository, how: How) -> Result<Listing, Failure> {
        let Source { url, commit, .. } = *self.source;
        let listed = Listing::read(repository, commit).and_then(|listing| {
            if matches!(how, How::Local) {
                listing.read_files(repository, self.context.interrupt)?;
            }
            Ok(listing)
        });
        listed.map_err(|unlisted| match unlisted {
            Unlisted::NoCommit => Failure::NoCommit,
            Unlisted::Object { object, source: None } => {
                Failure::Damaged(format!("is incomplete: object {object} is missing"))
            }
            Unlisted::Object { object, source: Some(source) } => {
                Failure::Damaged(format!("is damaged: object {object}: {}", source.message()))
            }
            Unlisted::File { path, object, source } => {
                Failure::Damaged(format!("is damaged: object {object} of {path}: {}", source.message()))
            }
            Unlisted::Interrupted(interrupted) => Failure::Fatal(interrupted.into()),
            Unlisted::Unsafe { path, reason } => {
                Failure::Fatal(GitError::UnsafePath { url: url.to_owned(), commit: commit.clone(), path, reason })
            }
        })
    }

    /// libgit2 may succeed without having got what was asked for.
    fn expect_commit(&self, repository: &Repository, otherwise: impl FnOnce() -> Failure) -> Result<(), Failure> {
        let id = git2::Oid::from_str(self.source.commit.as_str());
        id.and_then(|id| repository.find_commit(id)).map(drop).map_err(|_| otherwise())
    }

    fn make_repository(&self, name: &str) -> Result<Repository, Failure> {
        self.check()?;
        library::make_repository(&self.scratch.join(name)).map_err(Failure::Fatal)
    }

    fn check(&self) -> Result<(), Failure> {
        self.context.interrupt.check().map_err(|interrupted| Failure::Fatal(interrupted.into()))
    }

    fn fall_back(&mut self, text: &str) {
        self.context.log.note(format!("{}: {text}", self.source.path));
        self.fallbacks.push(without_secrets(text).into_owned());
    }
}

/// The repository again, with the packs that another process has put there.
fn reopen(repository: &Repository) -> Result<Repository, Failure> {
    let path = repository.path();
    Repository::open_bare(path).map_err(|source| Failure::Fatal(GitError::Scratch { path: path.to_owned(), source }))
}

/// The path of a local `place`; relative ones are below `base`.
fn local_path(place: &str, base: &Path) -> PathBuf {
    match place.strip_prefix("file://") {
        Some(rest) => decode_percent(rest.strip_prefix("localhost").unwrap_or(rest)),
        None => base.join(place.strip_prefix("./").unwrap_or(place)),
    }
}

fn decode_percent(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, width) = match (bytes[at], code) {
            (b'%', Some(code)) => (code, 3),
            (byte, _) => (byte, 1),
        };
        decoded.push(byte);
        at += width;
    }
    std::ffi::OsString::from_vec(decoded).into()
}

/// The repository at `path`, which may be bare, or a working tree, or be written with or without `.git`.
fn open_local(path: &Path) -> Result<Repository, git2::Error> {
    let open = |path: &Path| Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, [] as [&str; 0]);
    let first = open(path);
    if first.as_ref().is_err_and(|error| error.code() == ErrorCode::NotFound) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let twin = name.strip_suffix(".git").map_or_else(|| format!("{name}.git"), str::to_owned);
        if let Ok(repository) = open(&path.with_file_name(twin)) {
            return Ok(repository);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_places_become_paths() {
        let path = |place| local_path(place, Path::new("/base"));
        assert_eq!(path("./r/a.git"), Path::new("/base/r/a.git"));
        assert_eq!(path("r/a.git"), Path::new("/base/r/a.git"));
        assert_eq!(path("/srv/a%20b"), Path::new("/srv/a%20b"));
        assert_eq!(path("file:///srv/a%20b%2"), Path::new("/srv/a b%2"));
        assert_eq!(path("file://localhost/srv"), Path::new("/srv"));
    }
}
