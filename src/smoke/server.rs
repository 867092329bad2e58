//! A server of chosen files on 127.0.0.1, where browsers allow WebGPU and the Cache API.
//!
//! It speaks as much HTTP/1.1 as a browser needs for that: GET and HEAD, one request a connection
//! (RFC 9112). What is not published is not found, and that is remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most bytes of a request's head.
const LARGEST_HEAD: u64 = 16 * 1024;
/// The most connections at a time; a browser opens six to a host.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to send a request or to take the next bytes.
const PATIENCE: Duration = Duration::from_mins(1);
/// Bytes that are sent at a time.
const BLOCK: usize = 256 * 1024;
/// The most paths that are remembered as not found.
const MOST_MISSING: usize = 100;
/// How long each weight file is held back while they are watched, so that requests made together
/// are seen together.
const HOLD: Duration = Duration::from_millis(20);

/// What stands under a path.
#[derive(Debug, Clone)]
pub enum Content {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// What is in this file when it is asked for.
    File(PathBuf),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().into())
    }
}

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    site: Arc<Site>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Site {
    pages: Mutex<BTreeMap<String, Content>>,
    missing: Mutex<BTreeSet<String>>,
    open: AtomicUsize,
    stopped: AtomicBool,
    watched: AtomicBool,
    weights: AtomicUsize,
    weights_peak: AtomicUsize,
}

impl Server {
    /// Starts a server with nothing on it, on a port that is free.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let site = Arc::<Site>::default();
        let shared = site.clone();
        let accepting = thread::Builder::new().name("smoke server".into()).spawn(move || accept(&listener, &shared))?;
        Ok(Self { address, site, accepting: Some(accepting) })
    }

    /// The url of `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves `content` under `path`.
    pub fn publish(&self, path: impl Into<String>, content: impl Into<Content>) {
        self.site.pages().insert(path.into(), content.into());
    }

    /// Serves the regular files that are in `directory` itself under `prefix`, which ends in a slash.
    pub fn publish_directory(&self, prefix: &str, directory: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if let (true, Some(name)) = (path.is_file(), path.file_name().and_then(|name| name.to_str())) {
                self.publish(format!("{prefix}{name}"), Content::File(path.clone()));
            }
        }
        Ok(())
    }

    /// Paths that were asked for and not found.
    pub fn missing(&self) -> Vec<String> {
        lock(&self.site.missing).iter().cloned().collect()
    }

    /// Begins to count the weight files that are on their way at one time.
    pub fn watch_weights(&self) {
        self.site.weights_peak.store(0, Ordering::SeqCst);
        self.site.watched.store(true, Ordering::SeqCst);
    }

    /// Stops counting, and tells how many at most were on their way at one time.
    pub fn weights_peak(&self) -> usize {
        self.site.watched.store(false, Ordering::SeqCst);
        self.site.weights_peak.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.site.stopped.store(true, Ordering::SeqCst);
        // A visitor, so that the thread looks up.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Site {
    fn pages(&self) -> MutexGuard<'_, BTreeMap<String, Content>> {
        lock(&self.pages)
    }

    fn note_missing(&self, path: &str) {
        let mut missing = lock(&self.missing);
        if missing.len() < MOST_MISSING {
            missing.insert(path.chars().take(500).collect());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts something for as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// With the count that includes it.
    fn new(count: &'a AtomicUsize) -> (Self, usize) {
        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
        (Self(count), now)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, site: &Arc<Site>) {
    for stream in listener.incoming() {
        if site.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let site = site.clone();
        // A client that goes away in the middle is no concern of ours.
        let _ = thread::Builder::new().name("smoke answer".into()).spawn(move || {
            let (_counted, open) = Counted::new(&site.open);
            if open <= MOST_CONNECTIONS {
                let _ = answer(&stream, &site);
            }
        });
    }
}

fn answer(stream: &TcpStream, site: &Site) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some((method, target)) = read_request(stream)? else {
        return respond(stream, "400 Bad Request", "text/plain", 0, &mut io::empty());
    };
    if method != "GET" && method != "HEAD" {
        return respond(stream, "405 Method Not Allowed", "text/plain", 0, &mut io::empty());
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let weights = kind_of(path) == OTHER;
    let counted = (weights && site.watched.load(Ordering::SeqCst)).then(|| Counted::new(&site.weights));
    if let Some((_, now)) = &counted {
        site.weights_peak.fetch_max(*now, Ordering::SeqCst);
        thread::sleep(HOLD);
    }
    let content = site.pages().get(&decode(path)).cloned();
    let opened = content.and_then(|content| match content {
        Content::Bytes(bytes) => Some((bytes.len() as u64, Box::new(io::Cursor::new(bytes)) as Box<dyn Read>)),
        Content::File(path) => {
            let file = File::open(path).ok()?;
            let length = file.metadata().ok()?.len();
            Some((length, Box::new(file.take(length)) as Box<dyn Read>))
        }
    });
    let Some((length, mut body)) = opened else {
        site.note_missing(path);
        return respond(stream, "404 Not Found", "text/plain", 0, &mut io::empty());
    };
    if method == "HEAD" {
        body = Box::new(io::empty());
    }
    respond(stream, "200 OK", kind_of(path), length, &mut body)
}

/// The path with its percent-encoded bytes (RFC 3986, section 2.1) as they are meant. What is published
/// is looked up by its whole name, so that nothing can lead out of it.
fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Method and target of the request; nothing when it is not one.
fn read_request(stream: &TcpStream) -> io::Result<Option<(String, String)>> {
    let mut reader = BufReader::new(stream.take(LARGEST_HEAD));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    loop {
        line.clear();
        match reader.read_line(&mut line)? {
            0 => return Ok(None),
            _ if line.trim_end_matches(['\r', '\n']).is_empty() => break,
            _ => {}
        }
    }
    let words: Vec<&str> = first.trim_end().split(' ').collect();
    Ok(match words[..] {
        [method, target, version] if version.starts_with("HTTP/1.") && target.starts_with('/') => {
            Some((method.to_owned(), target.to_owned()))
        }
        _ => None,
    })
}

fn respond(mut stream: &TcpStream, status: &str, kind: &str, length: u64, body: &mut dyn Read) -> io::Result<()> {
    // Not stored: what is measured is a first visit.
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    // Not io::copy, whose buffer is small.
    let mut block = vec![0; BLOCK];
    loop {
        match body.read(&mut block)? {
            0 => return stream.flush(),
            count => stream.write_all(&block[..count])?,
        }
    }
}

/// What weights are, and nothing else that a trial serves.
const OTHER: &str = "application/octet-stream";

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        _ if path.ends_with('/') => "text/html",
        Some("html") => "text/html",
        Some("js" | "cjs" | "mjs") => "text/javascript",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn get(server: &Server, path: &str) -> String {
        ask(server, &format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n"))
    }

    #[test]
    fn what_is_published_is_served_with_its_type() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.json"), "{}").unwrap();
        std::fs::create_dir(root.path().join("below")).unwrap();
        let server = Server::start().unwrap();
        server.publish("/", "page");
        server.publish("/library.wasm", "asm");
        server.publish("/a b%#é", "odd");
        server.publish_directory("/w/", root.path()).unwrap();
        assert!(server.url("/x").starts_with("http://127.0.0.1:"));
        let page = get(&server, "/?query");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n"), "{page}");
        assert!(page.ends_with("\r\n\r\npage"), "{page}");
        assert!(get(&server, "/library.wasm").contains("application/wasm"));
        assert!(get(&server, "/w/a.json").ends_with(
            "application/json\r\nContent-Length: 2\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{}"
        ));
        let head = ask(&server, "HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 4") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(get(&server, "/a%20b%25%23%C3%A9").ends_with("odd"));
        assert!(get(&server, "/a%20b%%23%c3%a9?x").ends_with("odd"));
        assert!(server.missing().is_empty());
    }

    #[test]
    fn what_is_not_published_is_not_found_and_remembered() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("secret"), "s").unwrap();
        std::fs::create_dir(root.path().join("site")).unwrap();
        std::fs::write(root.path().join("site/gone"), "s").unwrap();
        let server = Server::start().unwrap();
        server.publish_directory("/", &root.path().join("site")).unwrap();
        std::fs::remove_file(root.path().join("site/gone")).unwrap();
        for path in ["/../secret", "/%2e%2e/secret", "/site", "/gone"] {
            assert!(get(&server, path).starts_with("HTTP/1.1 404"), "{path}");
        }
        assert_eq!(server.missing(), ["/%2e%2e/secret", "/../secret", "/gone", "/site"]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let server = Server::start().unwrap();
        server.publish("/", "page");
        assert!(ask(&server, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        for request in ["nonsense\r\n\r\n", "GET http://elsewhere/ HTTP/1.1\r\n\r\n", "\r\n\r\n", "GET / FTP\r\n\r\n"] {
            assert!(ask(&server, request).starts_with("HTTP/1.1 400"), "{request}");
        }
        // The rest is not read, so the reply may be lost to the reset of the connection; the server goes on.
        let mut long = TcpStream::connect(server.address).unwrap();
        let _ = long.write_all(format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000)).as_bytes());
        assert!(get(&server, "/").ends_with("page"));
    }

    #[test]
    fn weight_files_on_their_way_together_are_counted() {
        let server = Server::start().unwrap();
        for name in ["/0.bin", "/1.bin"] {
            server.publish(name, "w");
        }
        server.watch_weights();
        get(&server, "/0.bin");
        get(&server, "/1.bin");
        assert_eq!(server.weights_peak(), 1);
        server.watch_weights();
        let open = |path: &str| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\n").as_bytes()).unwrap();
            stream
        };
        let mut both = [open("/0.bin"), open("/1.bin")];
        for stream in &mut both {
            stream.write_all(b"\r\n").unwrap();
        }
        for mut stream in both {
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        assert_eq!(server.weights_peak(), 2);
    }
}
