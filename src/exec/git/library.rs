//! Fetching with libgit2.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;

use git2::{
    AutotagOption, ConfigLevel, Direction, ErrorClass, ErrorCode, FetchOptions, ProxyOptions, Remote, RemoteCallbacks,
    Repository, RepositoryInitOptions,
};

use super::GitError;
use super::obtain::Failure;
use crate::exec::file::web;
use crate::interrupt::Interrupt;
use crate::pins::Commit;

/// How long a connection may take to come about, in milliseconds.
const CONNECT_TIMEOUT: i32 = 30_000;
/// How long a server may say nothing, in milliseconds. Packing a large repository takes a while.
const SERVER_TIMEOUT: i32 = 120_000;

/// Branches and tags, in the places where `git clone --mirror` puts them.
pub(super) const ALL: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

/// Takes the user's and the host's git configuration away from libgit2, for the whole process and
/// once; it must happen before anything else of libgit2 is used.
///
/// Repositories of other owners are opened too (the "dubious ownership" of `git`): only objects are
/// read from them, nothing of their configuration or hooks is run.
pub(crate) fn isolate() -> Result<(), GitError> {
    static DONE: OnceLock<Result<(), git2::Error>> = OnceLock::new();
    let done = DONE.get_or_init(set_options);
    done.as_ref().copied().map_err(|error| GitError::Library { reason: error.message().to_owned() })
}

#[expect(unsafe_code, reason = "libgit2's global options; `isolate` keeps other threads out while they change")]
fn set_options() -> Result<(), git2::Error> {
    // SAFETY: called once, before any other use of libgit2.
    unsafe {
        for level in [ConfigLevel::ProgramData, ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global] {
            git2::opts::set_search_path(level, "")?;
        }
        git2::opts::set_verify_owner_validation(false)?;
        git2::opts::set_server_connect_timeout_in_milliseconds(CONNECT_TIMEOUT)?;
        git2::opts::set_server_timeout_in_milliseconds(SERVER_TIMEOUT)
    }
}

/// A new bare repository at `path`; what is there is removed.
pub(super) fn make_repository(path: &Path) -> Result<Repository, GitError> {
    // What an earlier attempt left; on a first attempt there is nothing.
    let _ = std::fs::remove_dir_all(path);
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).no_reinit(true);
    Repository::init_opts(path, &options).map_err(|source| GitError::Scratch { path: path.to_owned(), source })
}

/// Fetches `commit` alone into `repository`; the number of bytes received.
///
/// A branch or tag that stands at the commit is asked for by name, which every server allows; the
/// commit by its id only where the server offers that.
pub(super) fn fetch_commit(
    repository: &Repository,
    url: &str,
    commit: &Commit,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    fetch(repository, url, interrupt, |remote| {
        let head = remote.list()?.iter().find(|head| head.oid().to_string() == commit.as_str()).map(|head| {
            let name = head.name();
            format!("+{}:refs/pinned", name.strip_suffix("^{}").unwrap_or(name))
        });
        let wanted = head.unwrap_or_else(|| format!("{commit}:refs/pinned"));
        let mut options = options(url, interrupt);
        options.depth(1);
        remote.download(&[wanted], Some(&mut options))
    })
}

/// Fetches all branches and tags into `repository`; the number of bytes received.
pub(super) fn fetch_all(repository: &Repository, url: &str, interrupt: &Interrupt) -> Result<u64, Failure> {
    fetch(repository, url, interrupt, |remote| remote.download(&ALL, Some(&mut options(url, interrupt))))
}

fn fetch(
    repository: &Repository,
    url: &str,
    interrupt: &Interrupt,
    download: impl FnOnce(&mut Remote) -> Result<(), git2::Error>,
) -> Result<u64, Failure> {
    let mut received = 0;
    let result = repository.remote_anonymous(url).and_then(|mut remote| {
        let mut connection = remote.connect_auth(Direction::Fetch, Some(callbacks(interrupt)), Some(proxy(url)))?;
        let remote = connection.remote();
        download(remote)?;
        received = remote.stats().received_bytes() as u64;
        Ok(())
    });
    // An interrupt shows as whatever error its callback led to.
    if let Err(interrupted) = interrupt.check() {
        return Err(Failure::Fatal(interrupted.into()));
    }
    result.map(|()| received).map_err(|error| classify(&error, repository.path()))
}

fn options<'a>(url: &str, interrupt: &'a Interrupt) -> FetchOptions<'a> {
    let mut options = FetchOptions::new();
    options
        .remote_callbacks(callbacks(interrupt))
        .proxy_options(proxy(url))
        .download_tags(AutotagOption::None)
        .update_fetchhead(false);
    options
}

/// The environment's proxy; none for this host, which is not behind it.
fn proxy(url: &str) -> ProxyOptions<'static> {
    let mut proxy = ProxyOptions::new();
    if !web::is_loopback(url) {
        proxy.auto();
    }
    proxy
}

/// Without a credentials callback nobody is asked for any, and a server that wants some is an error.
fn callbacks(interrupt: &Interrupt) -> RemoteCallbacks<'_> {
    let mut callbacks = RemoteCallbacks::new();
    callbacks.transfer_progress(|_| interrupt.check().is_ok());
    callbacks.sideband_progress(|_| interrupt.check().is_ok());
    callbacks
}

/// What an error means for the search that met it; `path` is the repository that was written to.
pub(super) fn classify(error: &git2::Error, path: &Path) -> Failure {
    let message = error.message().to_owned();
    let says = |text: &str| message.contains(text);
    // Of the system's errors libgit2 hands on the text only.
    for (text, kind) in
        [("No space left on device", ErrorKind::StorageFull), ("Disk quota exceeded", ErrorKind::QuotaExceeded)]
    {
        if says(text) {
            return Failure::Fatal(GitError::Io { path: path.to_owned(), source: kind.into() });
        }
    }
    if says("unsupported URL protocol") || says("there is no TLS stream available") {
        return Failure::Unsupported(message);
    }
    // What a server says in words, which libgit2 does not expect where it asks for a shallow pack; and
    // what it sees in the server's capabilities.
    let refusals =
        ["remote error:", "unexpected packet type", "cannot fetch a specific object", "server doesn't support"];
    if refusals.iter().any(|text| says(text)) {
        return Failure::Refused(message);
    }
    let status = message.split_once("status code: ").map_or("", |(_, status)| status);
    if error.code() == ErrorCode::NotFound || ["404", "410"].contains(&status) {
        return Failure::NotFound(message);
    }
    let lasting = matches!(error.code(), ErrorCode::Auth | ErrorCode::Certificate)
        || (status.starts_with('4') && !["408", "429"].contains(&status));
    let networks = matches!(
        error.class(),
        ErrorClass::Net | ErrorClass::Os | ErrorClass::Http | ErrorClass::Ssl | ErrorClass::Indexer | ErrorClass::Zlib
    );
    Failure::Unreachable { message, transient: networks && !lasting }
}
