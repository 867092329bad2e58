//! A server on this machine that gives one file, as badly as a test asks for.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it came: the path, and header lines in lower case.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub headers: Vec<String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The start of the range asked for.
    pub fn start(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
    /// Close the connection after this many bytes of the body.
    pub cut: Option<usize>,
    pub framing: Framing,
}

/// How the end of the body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    Close,
}

impl Reply {
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self { status, headers: Vec::new(), body: body.to_vec(), cut: None, framing: Framing::Length }
    }

    pub fn header(mut self, line: impl Into<String>) -> Self {
        self.headers.push(line.into());
        self
    }

    pub fn cut(mut self, at: usize) -> Self {
        self.cut = Some(at);
        self
    }

    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// `content` from `start` on, as a server that knows ranges gives it.
    pub fn rest(content: &[u8], start: usize) -> Self {
        let range = format!("content-range: bytes {start}-{}/{}", content.len() - 1, content.len());
        Self::new(206, &content[start..]).header(range)
    }
}

/// The running server; it ends when dropped.
pub struct HttpFile {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpFile {
    /// Answers each request with what `answer` makes of its number, counted from 0, and of itself.
    pub fn serve(answer: impl Fn(usize, &Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let (log, end) = (Arc::clone(&requests), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&stream) else { continue };
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                // A client that goes away early is one of the things that tests do.
                let _ = write_reply(&mut stream, &answer(number, &request));
            }
        });
        Self { address, requests, ended, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for HttpFile {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let headers = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
    let headers = headers.map(|line| match line.split_once(':') {
        Some((name, value)) => format!("{}: {}", name.to_lowercase(), value.trim()),
        None => line,
    });
    Some(Request { path, headers: headers.collect() })
}

fn write_reply(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let framing = match reply.framing {
        Framing::Length => format!("content-length: {}", reply.body.len()),
        Framing::Chunked => "transfer-encoding: chunked".to_owned(),
        Framing::Close => "x-framing: close".to_owned(),
    };
    let mut lines = vec![format!("HTTP/1.1 {} Whatever", reply.status), "connection: close".to_owned(), framing];
    lines.extend(reply.headers.iter().cloned());
    stream.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes())?;
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len())];
    if reply.framing == Framing::Chunked {
        stream.write_all(format!("{:x}\r\n", body.len()).as_bytes())?;
        stream.write_all(body)?;
        // A chunked body that is cut lacks its last chunk.
        stream.write_all(if reply.cut.is_some() { b"\r\n" } else { b"\r\n0\r\n\r\n" })
    } else {
        stream.write_all(body)
    }
}
