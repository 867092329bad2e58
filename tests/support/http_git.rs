//! A small HTTP server on 127.0.0.1 that serves repositories through `git http-backend`, counts the
//! bytes and can be told to misbehave.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// What the server does.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// The directory whose repositories are served.
    pub root: PathBuf,
    /// `uploadpack.allowAnySHA1InWant`.
    pub any_commit: bool,
    /// Act like a server that knows protocol version 0 only.
    pub old_protocol: bool,
    /// This many requests are answered with status 503 before the first good answer.
    pub unavailable: usize,
    /// This many packs break off in their middle.
    pub broken_packs: usize,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    requests: AtomicUsize,
    unavailable: AtomicUsize,
    broken_packs: AtomicUsize,
    stop: AtomicBool,
}

/// The server; it stops when dropped.
#[derive(Debug)]
pub struct HttpGit {
    address: SocketAddr,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl HttpGit {
    /// Serves from now on, on a free port.
    pub fn serve(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        counts.unavailable.store(behaviour.unavailable, Ordering::SeqCst);
        counts.broken_packs.store(behaviour.broken_packs, Ordering::SeqCst);
        let shared = Arc::clone(&counts);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                let (behaviour, counts) = (behaviour.clone(), Arc::clone(&shared));
                // A client that went away is no failure of the server's.
                std::thread::spawn(move || drop(stream.and_then(|stream| converse(&stream, &behaviour, &counts))));
            }
        });
        Self { address, counts, thread: Some(thread) }
    }

    /// The url of the repository at `path` below the root.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Bytes of bodies and heads sent to clients.
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::SeqCst)
    }

    /// Bytes of bodies received from clients.
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::SeqCst)
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

impl Drop for HttpGit {
    fn drop(&mut self) {
        self.counts.stop.store(true, Ordering::SeqCst);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Answers requests until the client closes the connection.
fn converse(stream: &TcpStream, behaviour: &Behaviour, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream.try_clone()?;
    while let Some(request) = read_request(&mut reader, &mut writer)? {
        counts.requests.fetch_add(1, Ordering::SeqCst);
        counts.received.fetch_add(request.body.len() as u64, Ordering::SeqCst);
        let (status, head, mut body) = if take_one(&counts.unavailable) {
            ("503 Service Unavailable".to_owned(), String::new(), Vec::new())
        } else {
            run_backend(&request, behaviour)?
        };
        let length = body.len();
        let is_pack = request.method == "POST" && body.windows(4).any(|window| window == b"PACK");
        let breaks = is_pack && take_one(&counts.broken_packs);
        if breaks {
            body.truncate(length / 2);
        }
        let head = format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n");
        writer.write_all(head.as_bytes())?;
        writer.write_all(&body)?;
        writer.flush()?;
        counts.sent.fetch_add((head.len() + body.len()) as u64, Ordering::SeqCst);
        if breaks {
            return stream.shutdown(std::net::Shutdown::Both);
        }
    }
    Ok(())
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

fn read_request(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    if headers.get("expect").is_some_and(|value| value == "100-continue") {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if headers.get("transfer-encoding").is_some_and(|value| value == "chunked") {
        read_chunks(reader)?
    } else {
        let length = headers.get("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        body
    };
    Ok(Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body }))
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        reader.read_exact(&mut body[start..])?;
        reader.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// The backend's status, its head and its body (RFC 3875).
#[expect(clippy::disallowed_methods, reason = "a server of the tests, not the program")]
fn run_backend(request: &Request, behaviour: &Behaviour) -> io::Result<(String, String, Vec<u8>)> {
    let mut command = Command::new("git");
    command.arg("-c").arg(format!("uploadpack.allowAnySHA1InWant={}", behaviour.any_commit)).arg("http-backend");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", &behaviour.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_LENGTH", request.body.len().to_string());
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("accept", "HTTP_ACCEPT"),
        ("git-protocol", "GIT_PROTOCOL"),
    ] {
        if let Some(value) =
            request.headers.get(header).filter(|_| !(header == "git-protocol" && behaviour.old_protocol))
        {
            command.env(variable, value);
        }
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
    let mut output = Vec::new();
    std::thread::scope(|scope| {
        // Its answer may begin before it has read everything.
        scope.spawn(|| stdin.take().map(|mut stdin| stdin.write_all(&request.body)));
        stdout.as_mut().map_or(Ok(0), |stdout| stdout.read_to_end(&mut output))
    })?;
    child.wait()?;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").map_or(output.len(), |at| at + 4);
    let body = output.split_off(end);
    let mut status = "200 OK".to_owned();
    let mut head = String::new();
    for line in String::from_utf8_lossy(&output).lines().filter(|line| !line.is_empty()) {
        match line.split_once(": ") {
            Some(("Status", value)) => value.clone_into(&mut status),
            _ => head.extend([line, "\r\n"]),
        }
    }
    Ok((status, head, body))
}
