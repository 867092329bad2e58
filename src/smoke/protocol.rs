//! The `DevTools` protocol over a pair of pipes: JSON messages, each ended by a zero byte.
//!
//! The messages are described at <https://chromedevtools.github.io/devtools-protocol/>; the framing is
//! that of `--remote-debugging-pipe`.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::interrupt::{Interrupt, Interrupted};

/// The most bytes of one message: logits of some steps over a large vocabulary are tens of MiB.
pub const LARGEST: usize = 512 << 20;
/// How often a wait looks up.
const LOOK: Duration = Duration::from_millis(50);
/// The most events that wait to be looked at; the oldest go first.
const MOST_EVENTS: usize = 4096;

/// What the other side can no longer be asked because of.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// It has ended or closed the pipe.
    #[error("the browser ended")]
    Gone,
    /// It sent what is no message.
    #[error("the browser sent what is no message: {0}")]
    Malformed(String),
    /// It refuses a request.
    #[error("the browser refuses {method}: {message}")]
    Refused {
        /// The request.
        method: String,
        /// What it says.
        message: String,
    },
    /// The page's process has crashed.
    #[error("the page crashed")]
    Crashed,
    /// The time is up.
    #[error("the time is up, waiting for {0}")]
    Timeout(String),
    /// The run was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Something that the browser told by itself.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its name, such as `Log.entryAdded`.
    pub method: String,
    /// What goes with it.
    pub params: Value,
}

/// A connection to a browser.
pub struct Connection {
    to: Box<dyn Write + Send>,
    from: Receiver<Result<Value, ProtocolError>>,
    events: VecDeque<Event>,
    last_id: u64,
    deadline: Instant,
    interrupt: Interrupt,
}

impl Connection {
    /// Speaks through these two, until `deadline` at most.
    pub fn open(
        to: impl Write + Send + 'static,
        from: impl Read + Send + 'static,
        deadline: Instant,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(64);
        // Not joined: it ends with the pipe, which the browser's end closes.
        thread::Builder::new().name("devtools".into()).spawn(move || listen(BufReader::new(from), &sender))?;
        let events = VecDeque::new();
        Ok(Self { to: Box::new(to), from: receiver, events, last_id: 0, deadline, interrupt: interrupt.clone() })
    }

    /// Asks and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value, session: Option<&str>) -> Result<Value, ProtocolError> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).and_then(|()| self.to.flush()).map_err(|_| ProtocolError::Gone)?;
        loop {
            let mut message = self.next(method)?;
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                self.keep(message)?;
                continue;
            }
            if let Some(error) = message.get("error") {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("without a reason");
                return Err(ProtocolError::Refused { method: method.into(), message: text.into() });
            }
            return Ok(message["result"].take());
        }
    }

    /// Waits for the event called `method`.
    pub fn wait_for(&mut self, method: &str) -> Result<(), ProtocolError> {
        while !self.events.iter().any(|event| event.method == method) {
            let message = self.next(method)?;
            self.keep(message)?;
        }
        Ok(())
    }

    /// The events so far, which are forgotten.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    fn keep(&mut self, mut message: Value) -> Result<(), ProtocolError> {
        // An answer that nobody waits for any more is nothing to keep.
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else { return Ok(()) };
        if method == "Inspector.targetCrashed" {
            return Err(ProtocolError::Crashed);
        }
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { method, params: message["params"].take() });
        Ok(())
    }

    fn next(&mut self, what: &str) -> Result<Value, ProtocolError> {
        loop {
            self.interrupt.check()?;
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ProtocolError::Timeout(what.to_owned()));
            }
            match self.from.recv_timeout(left.min(LOOK)) {
                Ok(message) => return message,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // An interrupt ends the browser before it ends us.
                    self.interrupt.check()?;
                    return Err(ProtocolError::Gone);
                }
            }
        }
    }
}

fn listen(mut from: impl BufRead, sender: &SyncSender<Result<Value, ProtocolError>>) {
    loop {
        let message = match read_message(&mut from, LARGEST) {
            Ok(None) | Err(ReadError::Io) => return,
            Ok(Some(message)) => Ok(message),
            Err(ReadError::Malformed(reason)) => Err(ProtocolError::Malformed(reason)),
        };
        let last = message.is_err();
        if sender.send(message).is_err() || last {
            return;
        }
    }
}

#[derive(Debug, PartialEq)]
enum ReadError {
    Io,
    Malformed(String),
}

/// The next message of at most `limit` bytes; nothing at the end.
fn read_message(from: &mut impl BufRead, limit: usize) -> Result<Option<Value>, ReadError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.by_ref().take(most).read_until(0, &mut bytes).map_err(|_| ReadError::Io)?;
    match bytes.pop() {
        None => return Ok(None),
        Some(0) => {}
        Some(_) if bytes.len() >= limit => {
            return Err(ReadError::Malformed(format!("it is longer than {limit} bytes")));
        }
        Some(_) => return Err(ReadError::Malformed("it has no end".into())),
    }
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(message) if message.is_object() => Ok(Some(message)),
        Ok(_) => Err(ReadError::Malformed("it is no object".into())),
        Err(error) => Err(ReadError::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn connect(said: &str, deadline: Instant) -> Connection {
        Connection::open(io::sink(), io::Cursor::new(said.to_owned()), deadline, &Interrupt::default()).unwrap()
    }

    #[test]
    fn messages_end_at_zero_bytes_however_they_arrive() {
        let mut from = BufReader::with_capacity(3, &b"{\"a\":1}\0{}\0"[..]);
        assert_eq!(read_message(&mut from, 100), Ok(Some(json!({ "a": 1 }))));
        assert_eq!(read_message(&mut from, 100), Ok(Some(json!({}))));
        assert_eq!(read_message(&mut from, 100), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for (bytes, reason) in [
            (&b"{}"[..], "it has no end"),
            (b"[1]\0", "it is no object"),
            (b"\0", "EOF while parsing"),
            (b"{\"a\":\xff}\0", "invalid unicode"),
            (b"{\"a\":\"0123456789\"}\0", "longer than 8 bytes"),
        ] {
            let Err(ReadError::Malformed(found)) =
                read_message(&mut &bytes[..], if reason.contains('8') { 8 } else { 90 })
            else {
                panic!("{reason}");
            };
            assert!(found.contains(reason) || reason == "invalid unicode", "{found}");
        }
    }

    #[test]
    fn an_answer_is_found_among_events() {
        let said = concat!(
            "{\"method\":\"Log.entryAdded\",\"params\":{\"n\":1}}\0{\"id\":7}\0",
            "{\"id\":1,\"result\":{\"x\":2}}\0{\"id\":2,\"error\":{\"message\":\"no such thing\"}}\0",
        );
        let mut connection = connect(said, soon());
        assert_eq!(connection.call("A.b", &json!({}), None).unwrap(), json!({ "x": 2 }));
        let refused = connection.call("A.c", &json!({}), Some("s")).unwrap_err();
        assert_eq!(refused.to_string(), "the browser refuses A.c: no such thing");
        connection.wait_for("Log.entryAdded").unwrap();
        let events = connection.take_events();
        assert_eq!((events.len(), &events[0].params), (1, &json!({ "n": 1 })));
        assert!(matches!(connection.call("A.d", &json!({}), None), Err(ProtocolError::Gone)));
    }

    #[test]
    fn a_crash_nonsense_and_an_end_are_told_apart() {
        let call = |said| connect(said, soon()).call("A.b", &json!({}), None).unwrap_err();
        assert!(matches!(call("{\"method\":\"Inspector.targetCrashed\"}\0"), ProtocolError::Crashed));
        assert!(matches!(call("nonsense\0"), ProtocolError::Malformed(_)));
        assert!(matches!(call(""), ProtocolError::Gone));
    }

    #[test]
    fn a_wait_ends_with_the_time_or_an_interrupt() {
        let (silent, _kept) = io::pipe().unwrap();
        let interrupt = Interrupt::default();
        let mut connection = Connection::open(io::sink(), silent, Instant::now(), &interrupt).unwrap();
        let error = connection.call("A.b", &json!({}), None).unwrap_err();
        assert_eq!(error.to_string(), "the time is up, waiting for A.b");
        interrupt.raise();
        assert!(matches!(connection.wait_for("A.b"), Err(ProtocolError::Interrupted(_))));
    }
}
