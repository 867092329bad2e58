//! One file over HTTP: resumed after a broken transfer, tried again a bounded number of times.
//!
//! Proxies are those of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), and
//! certificates those of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode, header};

use super::web;
use crate::exec::input::{InputContext, InputError, Patience, Wanted};

const MAX_REDIRECTS: u32 = 10;
/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(20);
const BLOCK: usize = 64 * 1024;

/// Writes `url`'s content to the file `part`. Whether it is right is for the caller to see; here it is
/// only seen to that all of it came. Gives whether the file was put together from several transfers.
pub(super) fn download(
    url: &str,
    from: &str,
    wanted: &Wanted,
    part: &Path,
    resume: bool,
    context: &InputContext,
) -> Result<bool, InputError> {
    let agent = agent(url, &context.patience);
    let file = File::create(part).map_err(|source| InputError::Write { path: part.to_owned(), source })?;
    let mut transfer =
        Transfer { url, from, wanted, part, file, have: 0, total: None, validator: None, resumed: false };
    context.log.line(&format!("fetching {from}"));
    let mut pause = context.patience.pause;
    for tries_left in (0..context.patience.tries).rev() {
        let (failure, wait) = match transfer.run(&agent, context) {
            Ok(()) => return Ok(transfer.resumed),
            Err(Stop::Final(failure)) => return Err(failure),
            Err(Stop::Again(failure, wait)) => (failure, wait),
        };
        if tries_left == 0 {
            return Err(failure);
        }
        context.log.note(format!("{failure}; trying again"));
        transfer.prepare_again(resume);
        context.interrupt.sleep(wait.unwrap_or(pause))?;
        pause *= 2;
    }
    Err(transfer.unreachable("no try is allowed".into()))
}

struct Transfer<'a> {
    url: &'a str,
    from: &'a str,
    wanted: &'a Wanted<'a>,
    part: &'a Path,
    file: File,
    /// Bytes written so far.
    have: u64,
    /// Bytes that there should be, as the server says.
    total: Option<u64>,
    /// By what the server knows this version of the file again (RFC 9110, section 13.1.5).
    validator: Option<String>,
    resumed: bool,
}

enum Stop {
    Final(InputError),
    /// Worth another try, after the wait that the server asks for.
    Again(InputError, Option<Duration>),
}

impl From<InputError> for Stop {
    fn from(failure: InputError) -> Self {
        Self::Final(failure)
    }
}

impl Transfer<'_> {
    fn run(&mut self, agent: &Agent, context: &InputContext) -> Result<(), Stop> {
        context.interrupt.check().map_err(InputError::from)?;
        let mut request = agent.get(self.url).header("accept-encoding", "identity");
        if self.have > 0 {
            request = request.header("range", format!("bytes={}-", self.have));
            if let Some(validator) = &self.validator {
                request = request.header("if-range", validator);
            }
        }
        let response = request.call().map_err(|error| self.no_answer(&error))?;
        let (head, body) = response.into_parts();
        self.judge(head.status, &head.headers)?;
        let chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
        self.receive(&mut body.into_with_config().limit(u64::MAX).reader(), chunked, context)
    }

    /// What the answer's status means for the transfer.
    fn judge(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<(), Stop> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let length: Option<u64> = text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
        match status.as_u16() {
            200 => {
                self.restart()?;
                self.total = length;
                self.validator = validator(headers);
                Ok(())
            }
            206 if self.have > 0 => {
                let range = text(header::CONTENT_RANGE).and_then(parse_content_range);
                let Some((start, total)) = range.filter(|(start, _)| *start == self.have) else {
                    self.restart()?;
                    return Err(Stop::Again(self.unreachable("it answered with another range".into()), None));
                };
                self.total = total.or_else(|| length.map(|length| start + length));
                self.resumed = true;
                Ok(())
            }
            416 if self.have > 0 => {
                self.restart()?;
                Err(Stop::Again(self.unreachable("it has no such range".into()), None))
            }
            404 | 410 => Err(Stop::Final(InputError::Vanished {
                what: self.wanted.what.clone(),
                from: self.from.to_owned(),
                why: answer(status),
                digest: self.wanted.sha256.known().copied(),
            })),
            408 | 425 | 429 | 500.. => {
                let wait = text(header::RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
                let wait = wait.map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
                Err(Stop::Again(self.unreachable(answer(status)), wait))
            }
            _ => Err(Stop::Final(InputError::Refused {
                what: self.wanted.what.clone(),
                from: self.from.to_owned(),
                why: answer(status),
                digest: self.wanted.sha256.known().copied(),
            })),
        }
    }

    fn receive(&mut self, body: &mut impl Read, chunked: bool, context: &InputContext) -> Result<(), Stop> {
        let mut block = vec![0; BLOCK];
        // A page in place of a small file is worth having whole, for its digest; a stream without end is not.
        let limit = self.wanted.size.map(|size| size.saturating_mul(4).max(64 * 1024 * 1024));
        loop {
            context.interrupt.check().map_err(InputError::from)?;
            let count = match body.read(&mut block) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Again(self.broken(self.total.or(self.wanted.size), &error), None)),
            };
            self.file.write_all(&block[..count]).map_err(|source| self.unwritten(source))?;
            self.have += count as u64;
            if limit.is_some_and(|limit| self.have > limit) {
                return Err(Stop::Final(InputError::Oversize {
                    what: self.wanted.what.clone(),
                    from: self.from.to_owned(),
                    expected: self.wanted.size.unwrap_or(0),
                    found: self.have,
                }));
            }
        }
        // Without a length and without chunks the end of the connection is the end of the file
        // (RFC 9112, section 6.3), and only the pinned size can tell a cut from it.
        let expected = self.total.or(if chunked { None } else { self.wanted.size });
        match expected {
            Some(of) if self.have < of => Err(Stop::Again(self.truncated(of), None)),
            _ => Ok(()),
        }
    }

    /// Whether the next try goes on where this one ended.
    fn prepare_again(&mut self, resume: bool) {
        // Without a validator only the digest can tell that the file changed between two tries.
        if !resume || (self.validator.is_none() && self.wanted.sha256.known().is_none()) {
            self.have = 0;
        }
    }

    fn restart(&mut self) -> Result<(), Stop> {
        self.have = 0;
        self.resumed = false;
        self.total = None;
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map(drop).map_err(|source| Stop::Final(self.unwritten(source)))
    }

    fn no_answer(&self, error: &ureq::Error) -> Stop {
        let why = match error {
            // The texts of these say what was met, not what it means.
            ureq::Error::Timeout(what) => format!("nothing came in time ({what})"),
            ureq::Error::TooManyRedirects => format!("more than {MAX_REDIRECTS} redirects"),
            ureq::Error::RequireHttpsOnly(to) => format!("it redirects from https to {to}"),
            other => other.to_string(),
        };
        let failure = self.unreachable(why);
        match error {
            ureq::Error::TooManyRedirects
            | ureq::Error::RequireHttpsOnly(_)
            | ureq::Error::BadUri(_)
            | ureq::Error::Http(_)
            | ureq::Error::InvalidProxyUrl => Stop::Final(failure),
            _ => Stop::Again(failure, None),
        }
    }

    fn unreachable(&self, why: String) -> InputError {
        InputError::Unreachable {
            what: self.wanted.what.clone(),
            from: self.from.to_owned(),
            why,
            digest: self.wanted.sha256.known().copied(),
        }
    }

    fn broken(&self, of: Option<u64>, error: &io::Error) -> InputError {
        match of {
            Some(of) if self.have < of => self.truncated(of),
            _ => self.unreachable(format!("the transfer broke after {} bytes: {error}", self.have)),
        }
    }

    fn truncated(&self, of: u64) -> InputError {
        InputError::Truncated {
            what: self.wanted.what.clone(),
            from: self.from.to_owned(),
            got: self.have,
            of,
            declared_whole: None,
        }
    }

    fn unwritten(&self, source: io::Error) -> InputError {
        InputError::Write { path: self.part.to_owned(), source }
    }
}

fn agent(url: &str, patience: &Patience) -> Agent {
    Agent::config_builder()
        .tls_config(web::tls())
        .proxy(web::proxy(url))
        .http_status_as_error(false)
        .https_only(url.starts_with("https:"))
        .max_redirects(MAX_REDIRECTS)
        .timeout_resolve(Some(patience.connect))
        .timeout_connect(Some(patience.connect))
        .timeout_per_read(Some(patience.stall))
        .timeout_per_write(Some(patience.stall))
        .user_agent(concat!("rebuild-model/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

fn answer(status: StatusCode) -> String {
    format!("the server answered {status}")
}

/// A strong validator; a weak one does not promise the same bytes.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text(header::ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(header::LAST_MODIFIED)).map(str::to_owned)
}

/// Start and total of `bytes START-END/TOTAL` (RFC 9110, section 14.4).
fn parse_content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range("bytes 5-9/*"), Some((5, None)));
        for bad in ["", "bytes */10", "items 5-9/10", "bytes 5-9", "bytes x-9/10"] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
