//! HTTP for git: a request on a thread of its own, so that whoever waits for a silent server can
//! leave at once when the run is interrupted.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use ureq::{Agent, Body, ResponseExt, http};

use super::obtain::Failure;
use crate::exec::file::web;
use crate::interrupt::Interrupt;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a server may say nothing. Packing a large tree takes a while.
const STALL: Duration = Duration::from_mins(2);
/// How often somebody who waits looks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
const BLOCK: usize = 64 * 1024;
/// How many blocks may wait to be read.
const AHEAD: usize = 16;

/// Connections to servers.
pub(super) struct Client(Agent);

/// An answer with a good status; reading it gives its body.
pub(super) struct Answer {
    /// Where it came from, after redirections.
    pub(super) url: String,
    pub(super) content_type: String,
    events: Receiver<Event>,
    interrupt: Interrupt,
    block: io::Cursor<Vec<u8>>,
    ended: bool,
}

enum Event {
    Head { status: http::StatusCode, url: String, content_type: String },
    Block(Vec<u8>),
    End,
    NoAnswer(ureq::Error),
    Broken(io::Error),
}

impl Client {
    /// A client that takes proxies and certificates as the environment has them.
    pub(super) fn new() -> Self {
        let config = Agent::config_builder()
            .tls_config(web::tls())
            .http_status_as_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(STALL))
            .timeout_per_write(Some(STALL))
            // Servers look for `git/` where they tell git's requests from a browser's.
            .user_agent(concat!("git/2 (rebuild-model ", env!("CARGO_PKG_VERSION"), ")"))
            .build();
        Self(config.new_agent())
    }

    pub(super) fn get(&self, url: &str, headers: &[(&str, &str)], interrupt: &Interrupt) -> Result<Answer, Failure> {
        let mut request = self.0.get(url).config().proxy(web::proxy(url)).build();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::wait(move || request.call(), interrupt)
    }

    pub(super) fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<Answer, Failure> {
        let mut request = self.0.post(url).config().proxy(web::proxy(url)).build();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::wait(move || request.send(body), interrupt)
    }
}

impl Answer {
    fn wait(
        call: impl FnOnce() -> Result<http::Response<Body>, ureq::Error> + Send + 'static,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let (sender, events) = sync_channel(AHEAD);
        std::thread::spawn(move || match call() {
            Ok(response) => pass_on(response, &sender),
            // Whoever waited may be gone.
            Err(error) => drop(sender.send(Event::NoAnswer(error))),
        });
        let mut answer = Self {
            url: String::new(),
            content_type: String::new(),
            events,
            interrupt: interrupt.clone(),
            block: io::Cursor::default(),
            ended: false,
        };
        match answer.next_event() {
            Ok(Event::Head { status, url, content_type }) => {
                (answer.url, answer.content_type) = (url, content_type);
                check_status(status).map(|()| answer)
            }
            Ok(Event::NoAnswer(error)) => Err(explain(&error)),
            Ok(Event::Broken(error)) | Err(error) => Err(broken(&error)),
            Ok(Event::Block(_) | Event::End) => Err(broken(&io::ErrorKind::InvalidData.into())),
        }
    }

    /// Waits for the end, so that the connection can serve the next request.
    pub(super) fn finish(mut self) {
        // Whether anything comes before the end, or the end does not come, no longer matters.
        let _ = self.read(&mut [0]);
    }

    /// What comes next; an error when an interrupt is wanted.
    fn next_event(&self) -> io::Result<Event> {
        loop {
            self.interrupt.check().map_err(io::Error::other)?;
            match self.events.recv_timeout(LOOK) {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.read(buffer)?;
            if count > 0 || self.ended || buffer.is_empty() {
                return Ok(count);
            }
            match self.next_event()? {
                Event::Block(block) => self.block = io::Cursor::new(block),
                Event::Broken(error) => return Err(error),
                Event::Head { .. } | Event::NoAnswer(_) | Event::End => self.ended = true,
            }
        }
    }
}

/// Sends on what comes, until nobody wants it any more.
fn pass_on(response: http::Response<Body>, sender: &SyncSender<Event>) {
    let url = response.get_uri().to_string();
    let content_type = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let mut wanted = sender.send(Event::Head { status: response.status(), url, content_type }).is_ok();
    let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
    let mut block = vec![0; BLOCK];
    while wanted {
        let event = match body.read(&mut block) {
            Ok(0) => Event::End,
            Ok(count) => Event::Block(block[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Event::Broken(error),
        };
        let more = matches!(event, Event::Block(_));
        wanted = sender.send(event).is_ok() && more;
    }
}

fn check_status(status: http::StatusCode) -> Result<(), Failure> {
    let message = format!("the server answered {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        404 | 410 => Err(Failure::NotFound(message)),
        code => Err(Failure::Unreachable { message, transient: code >= 500 || code == 408 || code == 429 }),
    }
}

fn explain(error: &ureq::Error) -> Failure {
    let lasting = match error {
        ureq::Error::TooManyRedirects
        | ureq::Error::RedirectFailed
        | ureq::Error::BadUri(_)
        | ureq::Error::Http(_)
        | ureq::Error::InvalidProxyUrl => true,
        // A certificate that is not trusted now will not be in a second.
        ureq::Error::NativeTls(error) => error.to_string().contains("certificate"),
        _ => false,
    };
    Failure::Unreachable { message: error.to_string(), transient: !lasting }
}

/// A transfer that broke off.
pub(super) fn broken(error: &io::Error) -> Failure {
    Failure::Unreachable { message: format!("the transfer broke off: {error}"), transient: true }
}
