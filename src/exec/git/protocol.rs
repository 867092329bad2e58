//! Git's protocol version 2 over http, as much of it as the fetch of one commit needs.
//!
//! libgit2 speaks version 0 only. In version 2 a server serves any commit by its id and says for sure
//! when it has none, and asking takes two requests instead of three. See gitprotocol-v2(5),
//! gitprotocol-http(5) and gitprotocol-common(5).

use std::io::{Read, Write};

use git2::Repository;

use super::library;
use super::obtain::Failure;
use super::wire::{Answer, Client, broken};
use crate::interrupt::Interrupt;
use crate::pins::Commit;

const VERSION: (&str, &str) = ("Git-Protocol", "version=2");
/// libgit2's code of an error without a code of its own.
const GENERIC: i32 = -1;
/// The largest packet, its four digits of length included.
const MAX_PACKET: usize = 65_520;

/// Whether `url` is one for this module.
pub(super) fn speaks(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Fetches `commit` alone into `repository`; the number of bytes of its pack.
///
/// [`Failure::Unsupported`] when the server does not speak version 2.
pub(super) fn fetch_commit(
    client: &Client,
    repository: &Repository,
    url: &str,
    commit: &Commit,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let result = ask_capabilities(client, url, interrupt)
        .and_then(|server| fetch_pack(client, &server, repository, commit, interrupt));
    // An interrupt shows as whatever error it led to.
    interrupt.check().map_err(|interrupted| Failure::Fatal(interrupted.into()))?;
    result
}

/// What a server says about itself.
struct Server {
    /// Its url, after redirections.
    url: String,
    /// It wants to hear which hash is meant.
    object_format: bool,
}

const ADVERTISEMENT: &str = "info/refs?service=git-upload-pack";

fn ask_capabilities(client: &Client, url: &str, interrupt: &Interrupt) -> Result<Server, Failure> {
    let url = url.trim_end_matches('/');
    let mut answer = client.get(&format!("{url}/{ADVERTISEMENT}"), &[VERSION], interrupt)?;
    if !answer.content_type.starts_with("application/x-git-upload-pack-advertisement") {
        return Err(Failure::Unsupported("the server does not speak git's smart protocol".into()));
    }
    let older = || Failure::Unsupported("the server does not speak version 2 of git's protocol".into());
    let mut first = read_packet(&mut answer)?;
    // http puts the service's name, and the end of it, before what the service says.
    if matches!(&first, Packet::Data(line) if line.starts_with(b"# service=")) {
        read_packet(&mut answer)?;
        first = read_packet(&mut answer)?;
    }
    if !matches!(&first, Packet::Data(line) if line.trim_ascii_end() == b"version 2") {
        return Err(older());
    }
    let base = answer.url.strip_suffix(ADVERTISEMENT).map_or(url, |base| base.trim_end_matches('/')).to_owned();
    let mut server = Server { url: base, object_format: false };
    let mut shallow = false;
    while let Packet::Data(line) = read_packet(&mut answer)? {
        let line = String::from_utf8_lossy(&line);
        match line.trim_end().split_once('=') {
            Some(("fetch", features)) => shallow = features.split(' ').any(|feature| feature == "shallow"),
            Some(("object-format", "sha1")) => server.object_format = true,
            Some(("object-format", other)) => {
                return Err(Failure::Unsupported(format!("the repository's ids are of {other}, and pins are of sha1")));
            }
            _ => {}
        }
    }
    answer.finish();
    if shallow { Ok(server) } else { Err(older()) }
}

fn fetch_pack(
    client: &Client,
    server: &Server,
    repository: &Repository,
    commit: &Commit,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let mut body = packet("command=fetch\n");
    if server.object_format {
        body.extend(packet("object-format=sha1\n"));
    }
    body.extend_from_slice(b"0001");
    for argument in ["no-progress\n", "ofs-delta\n", "deepen 1\n", &format!("want {commit}\n"), "done\n"] {
        body.extend(packet(argument));
    }
    body.extend_from_slice(b"0000");
    let headers = [
        VERSION,
        ("Content-Type", "application/x-git-upload-pack-request"),
        ("Accept", "application/x-git-upload-pack-result"),
    ];
    let mut answer = client.post(&format!("{}/git-upload-pack", server.url), &headers, body, interrupt)?;
    // Sections before the pack tell where the history was cut: at the commit, as was asked.
    loop {
        match read_packet(&mut answer)? {
            Packet::Data(line) if line.trim_ascii_end() == b"packfile" => break,
            Packet::Data(_) | Packet::Delimiter => {}
            Packet::Flush => return Err(Failure::Refused("the server answered without the commit".into())),
        }
    }
    let unwritten = |error: git2::Error| library::classify(&error, repository.path());
    let objects = repository.odb().map_err(unwritten)?;
    let mut pack = objects.packwriter().map_err(unwritten)?;
    let mut received = 0;
    // Each packet begins with the number of its band (gitprotocol-pack(5)).
    while let Packet::Data(data) = read_packet(&mut answer)? {
        match data.split_first() {
            Some((1, bytes)) => {
                pack.write_all(bytes).map_err(|_| unwritten(git2::Error::last_error(GENERIC)))?;
                received += bytes.len() as u64;
            }
            Some((3, message)) => return Err(refuse(message)),
            _ => {}
        }
    }
    answer.finish();
    pack.commit().map_err(unwritten)?;
    Ok(received)
}

enum Packet {
    Data(Vec<u8>),
    Delimiter,
    Flush,
}

fn packet(line: &str) -> Vec<u8> {
    format!("{:04x}{line}", line.len() + 4).into_bytes()
}

fn read_packet(answer: &mut Answer) -> Result<Packet, Failure> {
    let strange = || Failure::Unsupported("the server's answer is not git's protocol".into());
    let mut length = [0; 4];
    answer.read_exact(&mut length).map_err(|error| broken(&error))?;
    let length = std::str::from_utf8(&length).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
    match length.ok_or_else(strange)? {
        0 => Ok(Packet::Flush),
        1 => Ok(Packet::Delimiter),
        length @ 4..=MAX_PACKET => {
            let mut data = vec![0; length - 4];
            answer.read_exact(&mut data).map_err(|error| broken(&error))?;
            data.strip_prefix(b"ERR ").map_or(Ok(()), |message| Err(refuse(message)))?;
            Ok(Packet::Data(data))
        }
        _ => Err(strange()),
    }
}

fn refuse(message: &[u8]) -> Failure {
    let message = String::from_utf8_lossy(message).trim_end().to_owned();
    // git says this in version 2 only when it has no such object; other servers say other things.
    if message.contains("not our ref") { Failure::NoCommit } else { Failure::Refused(message) }
}
