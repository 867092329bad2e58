//! Plain files: where they come from, and what is said when they do not.

use rebuild_model::digest::Digest;
use rebuild_model::error::{Class, Fault};
use rebuild_model::exec::file::fetch;
use rebuild_model::exec::input::{Admitted, InputError, Likeness};
use rebuild_model::pins::Recorded;
use rebuild_model::step::{FetchFile, FileOrigin};

use crate::desk::Desk;
use crate::http_file::{Framing, HttpFile, Reply};

fn content() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

fn spec(url: &str, content: &[u8]) -> FetchFile {
    FetchFile {
        name: "model.bin".into(),
        from: FileOrigin::Url(url.into()),
        sha256: Recorded::Known(Digest::of(content)),
        size: Some(content.len() as u64),
    }
}

fn get(desk: &Desk, spec: &FetchFile) -> Result<Admitted, InputError> {
    desk.with(|context| fetch(spec, &desk.out(), context))
}

#[track_caller]
fn assert_file(desk: &Desk, expected: &[u8]) {
    assert!(std::fs::read(desk.path("out/model.bin")).unwrap() == expected);
    assert!(crate::desk::files_below(&desk.path("scratch")).is_empty());
}

#[test]
fn a_file_is_fetched_once_and_then_served_by_the_cache() {
    let whole = content();
    let server = HttpFile::serve(move |_, _| Reply::new(200, &whole));
    let mut desk = Desk::new();
    let spec = spec(&server.url("/a"), &content());
    let admitted = get(&desk, &spec).unwrap();
    assert_eq!((admitted.size, admitted.from.as_str()), (800_000, server.url("/a").as_str()));
    assert_file(&desk, &content());
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
    desk.offline = true;
    assert_eq!(get(&desk, &spec).unwrap().from, "cache");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_damaged_cache_entry_is_fetched_again() {
    let whole = content();
    let server = HttpFile::serve(move |_, _| Reply::new(200, &whole));
    let desk = Desk::new();
    let spec = spec(&server.url("/a"), &content());
    get(&desk, &spec).unwrap();
    let entry = desk.path(&format!("cache/sha256/{}/model.bin", Digest::of(&content())));
    std::fs::write(&entry, "damaged").unwrap();
    get(&desk, &spec).unwrap();
    assert_file(&desk, &content());
    assert!(desk.log.notes()[0].contains("damaged"), "{:?}", desk.log.notes());
    assert_eq!(std::fs::read(entry).unwrap(), content());
}

#[test]
fn a_broken_transfer_goes_on_where_it_ended() {
    for framing in [Framing::Length, Framing::Chunked, Framing::Close] {
        let whole = content();
        let server = HttpFile::serve(move |number, request| match (number, request.start()) {
            (0, None) => Reply::new(200, &whole).header("etag: \"v1\"").cut(300_000).framing(framing),
            (1, Some(300_000)) if request.header("if-range") == Some("\"v1\"") => {
                Reply::rest(&whole, 300_000).cut(100_000)
            }
            (2, Some(400_000)) => Reply::rest(&whole, 400_000),
            _ => Reply::new(400, b""),
        });
        let desk = Desk::new();
        get(&desk, &spec(&server.url("/a"), &content())).unwrap();
        assert_file(&desk, &content());
        assert_eq!(server.requests().len(), 3, "{framing:?}");
        let note = &desk.log.notes()[0];
        assert!(note.contains("truncated: got 300000 of 800000 bytes"), "{note}");
    }
}

#[test]
fn a_server_that_ignores_ranges_is_read_from_the_beginning() {
    let whole = content();
    let server = HttpFile::serve(move |number, _| {
        let reply = Reply::new(200, &whole);
        if number == 0 { reply.cut(300_000) } else { reply }
    });
    let desk = Desk::new();
    get(&desk, &spec(&server.url("/a"), &content())).unwrap();
    assert_file(&desk, &content());
}

#[test]
fn a_file_that_changed_between_two_transfers_is_fetched_whole() {
    let whole = content();
    let server = HttpFile::serve(move |number, request| match (number, request.start()) {
        (0, None) => Reply::new(200, &vec![0; whole.len()]).cut(1000),
        (1, Some(start)) => Reply::rest(&whole, start),
        (2, None) => Reply::new(200, &whole),
        _ => Reply::new(400, b""),
    });
    let desk = Desk::new();
    get(&desk, &spec(&server.url("/a"), &content())).unwrap();
    assert_file(&desk, &content());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn another_range_than_the_one_asked_for_is_not_taken() {
    let whole = content();
    let server = HttpFile::serve(move |number, request| match (number, request.start()) {
        (0, _) => Reply::new(200, &whole).cut(1000),
        (1, _) => Reply::rest(&whole, 5),
        (2, None) => Reply::new(200, &whole).cut(2000),
        (3, Some(2000)) => Reply::rest(&whole, 2000),
        _ => Reply::new(400, b""),
    });
    let desk = Desk::new();
    get(&desk, &spec(&server.url("/a"), &content())).unwrap();
    assert_file(&desk, &content());
}

#[test]
fn trouble_that_passes_is_waited_for_and_no_longer() {
    let server = HttpFile::serve(|number, _| match number {
        0 => Reply::new(503, b"").header("retry-after: 0"),
        1 => Reply::new(429, b""),
        2 => Reply::new(408, b""),
        _ => Reply::new(200, b"model"),
    });
    let desk = Desk::new();
    get(&desk, &spec(&server.url("/a"), b"model")).unwrap();
    assert_eq!(server.requests().len(), 4);

    let server = HttpFile::serve(|_, _| Reply::new(503, b"").header("retry-after: 0"));
    let desk = Desk::new();
    let error = get(&desk, &spec(&server.url("/a"), b"model")).unwrap_err();
    assert_eq!(server.requests().len(), 4);
    assert_eq!(error.class(), Class::Unavailable);
    assert!(matches!(&error, InputError::Unreachable { why, .. } if why.contains("503")), "{error}");
    desk.assert_nothing_left();
}

#[test]
fn a_truncated_file_is_told_from_another_one() {
    let server = HttpFile::serve(|_, _| Reply::new(200, &content()).cut(5).header("etag: \"x\""));
    let desk = Desk::new();
    let error = get(&desk, &spec(&server.url("/a"), &content())).unwrap_err();
    assert_eq!(error.class(), Class::Unavailable);
    assert!(error.to_string().ends_with("is truncated: got 5 of 800000 bytes"), "{error}");
    desk.assert_nothing_left();

    // Whole by the server's account, and short of the pinned size.
    let server = HttpFile::serve(|_, _| Reply::new(200, &content()[..1000]));
    let error = get(&desk, &spec(&server.url("/a"), &content())).unwrap_err();
    assert!(matches!(error, InputError::Truncated { got: 1000, of: 800_000, declared_whole: Some(_), .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
    desk.assert_nothing_left();

    let server = HttpFile::serve(|_, _| Reply::new(200, b"other"));
    let error = get(&desk, &spec(&server.url("/a"), b"model")).unwrap_err();
    assert_eq!(error.class(), Class::PinMismatch);
    let text = error.to_string();
    let (expected, found) = (Digest::of(b"model"), Digest::of(b"other"));
    assert!(text.contains(&format!("expected sha256 {expected}, found {found} (5 bytes)")), "{text}");
    assert!(error.hint().unwrap().contains(&expected.to_string()));
    desk.assert_nothing_left();
}

#[test]
fn stand_ins_for_the_file_are_recognised() {
    let cases: [(&[u8], Likeness); 4] = [
        (b"\n<!DOCTYPE HTML><title>Sign in</title>", Likeness::Html),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", Likeness::LfsPointer),
        (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", Likeness::ErrorDocument),
        (b"{\"error\": \"gated\"}", Likeness::ErrorDocument),
    ];
    for (body, expected) in cases {
        let server = HttpFile::serve(|_, _| Reply::new(200, body));
        let desk = Desk::new();
        let error = get(&desk, &spec(&server.url("/a"), &content())).unwrap_err();
        assert!(matches!(&error, InputError::Differs { likeness: Some(found), .. } if *found == expected), "{error}");
        assert!(error.to_string().contains(expected.describe()), "{error}");
        desk.assert_nothing_left();
    }
}

#[test]
fn a_vanished_file_is_its_own_kind_and_the_hint_names_the_digest() {
    for status in [404, 410] {
        let server = HttpFile::serve(move |_, _| Reply::new(status, b"<html>gone</html>"));
        let desk = Desk::new();
        let error = get(&desk, &spec(&server.url("/a"), b"model")).unwrap_err();
        assert!(matches!(error, InputError::Vanished { .. }), "{error}");
        assert_eq!((error.class(), server.requests().len()), (Class::Unavailable, 1));
        assert!(error.hint().unwrap().contains(&Digest::of(b"model").to_string()));
    }
    let server = HttpFile::serve(|_, _| Reply::new(403, b""));
    let error = get(&Desk::new(), &spec(&server.url("/a"), b"model")).unwrap_err();
    assert!(matches!(error, InputError::Refused { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn nobody_listening_is_unreachable() {
    // Bound and not listening any more: the port was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let desk = Desk::new();
    let error = get(&desk, &spec(&format!("http://{address}/a"), b"model")).unwrap_err();
    assert!(matches!(error, InputError::Unreachable { .. }), "{error}");
    assert_eq!(desk.log.notes().len(), 3);
    desk.assert_nothing_left();
}

#[test]
fn redirects_are_followed_up_to_a_limit() {
    let server = HttpFile::serve(|_, request| match request.path.as_str() {
        "/a" => Reply::new(302, b"").header("location: /b"),
        "/b" => Reply::new(307, b"").header("location: /c"),
        "/c" => Reply::new(200, b"model"),
        _ => Reply::new(302, b"").header("location: /loop"),
    });
    let desk = Desk::new();
    get(&desk, &spec(&server.url("/a"), b"model")).unwrap();
    let desk = Desk::new();
    let error = get(&desk, &spec(&server.url("/loop"), b"model")).unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    assert_eq!(server.requests().len(), 3 + 11);
}

#[test]
fn what_goes_on_without_end_is_ended() {
    let server = HttpFile::serve(|_, _| Reply::new(200, &vec![0; 65 * 1024 * 1024]));
    let desk = Desk::new();
    let error = get(&desk, &spec(&server.url("/a"), b"model")).unwrap_err();
    assert!(matches!(error, InputError::Oversize { expected: 5, .. }), "{error}");
    desk.assert_nothing_left();
}

#[test]
fn an_unknown_digest_stops_unless_it_is_to_be_recorded() {
    let server = HttpFile::serve(|_, _| Reply::new(200, b"model"));
    let mut desk = Desk::new();
    let mut spec = spec(&server.url("/a"), b"model");
    spec.sha256 = Recorded::Not;
    let error = get(&desk, &spec).unwrap_err();
    assert!(matches!(error, InputError::NotRecorded { .. }));
    assert_eq!((error.class(), server.requests().len()), (Class::PinMismatch, 0));
    desk.record_unknown = true;
    assert_eq!(get(&desk, &spec).unwrap().digest, Digest::of(b"model"));
    spec.size = Some(6);
    let error = get(&desk, &spec).unwrap_err();
    assert!(matches!(error, InputError::SizeDiffers { expected: 6, found: 5, .. }), "{error}");
}

#[test]
fn an_unknown_file_without_a_validator_is_never_put_together() {
    let whole = content();
    let server = HttpFile::serve(move |number, request| {
        let reply = Reply::new(if request.start().is_some() { 400 } else { 200 }, &whole);
        if number == 0 { reply.cut(1000) } else { reply }
    });
    let mut desk = Desk::new();
    desk.record_unknown = true;
    let mut spec = spec(&server.url("/a"), &content());
    spec.sha256 = Recorded::Not;
    assert_eq!(get(&desk, &spec).unwrap().digest, Digest::of(&content()));
}

#[test]
fn a_file_beside_the_pins_is_judged_as_it_lies_there() {
    let desk = Desk::new();
    let mut spec = spec("", b"model");
    spec.from = FileOrigin::Path("inputs/a.bin".parse().unwrap());
    let error = get(&desk, &spec).unwrap_err();
    assert!(matches!(&error, InputError::Missing { path, .. } if path.ends_with("pins/inputs/a.bin")), "{error}");
    desk.write("vendor/a", "model");
    assert!(get(&desk, &spec).unwrap().from.starts_with("vendor directory"));
    desk.write("pins/inputs/a.bin", "edited");
    let error = get(&desk, &spec).unwrap_err();
    assert!(matches!(error, InputError::Differs { .. }), "{error}");
    desk.write("pins/inputs/a.bin", "model");
    get(&desk, &spec).unwrap();
    assert_file(&desk, b"model");
    assert_eq!(std::fs::read(desk.path("pins/inputs/a.bin")).unwrap(), b"model");
}

#[test]
fn offline_only_this_machine_serves() {
    let server = HttpFile::serve(|_, _| Reply::new(200, b"model"));
    let mut desk = Desk::new();
    desk.offline = true;
    let spec = spec(&server.url("/a"), b"model");
    let error = get(&desk, &spec).unwrap_err();
    assert!(matches!(error, InputError::Offline { .. }), "{error}");
    assert_eq!(error.class(), Class::Unavailable);
    assert!(error.hint().unwrap().contains(&Digest::of(b"model").to_string()));
    let place = format!("vendor/sha256/{}/a.bin", Digest::of(b"model"));
    desk.write(&place, "m0del");
    let error = get(&desk, &spec).unwrap_err();
    assert_eq!(error.class(), Class::PinMismatch);
    assert!(error.to_string().ends_with(&format!("from {}", desk.path(&place).display())), "{error}");
    std::fs::remove_file(desk.path(&place)).unwrap();
    let mirrored = desk.write("mirror/a b", "model");
    desk.mirrors = vec![server.url("/a"), format!("file://{}", mirrored.display()).replace(' ', "%20")];
    get(&desk, &spec).unwrap();
    desk.mirrors.clear();
    std::fs::remove_dir_all(desk.path("cache")).unwrap();
    desk.write("vendor/x/y", "model");
    get(&desk, &spec).unwrap();
    assert_file(&desk, b"model");
    assert!(server.requests().is_empty());
}

#[test]
fn mirrors_are_tried_in_order_and_the_failure_that_says_most_is_told() {
    let server = HttpFile::serve(|_, request| match request.path.as_str() {
        "/good" => Reply::new(200, b"model"),
        "/other" => Reply::new(200, b"other"),
        _ => Reply::new(404, b""),
    });
    let mut desk = Desk::new();
    let spec = spec(&server.url("/a"), b"model");
    desk.mirrors = vec!["/nowhere/a".into(), server.url("/other"), server.url("/a"), server.url("/good")];
    assert_eq!(get(&desk, &spec).unwrap().from, server.url("/good"));
    assert_eq!(desk.log.notes().len(), 4);

    let mut desk = Desk::new();
    desk.mirrors = vec![server.url("/none"), server.url("/other"), server.url("/a")];
    let error = get(&desk, &spec).unwrap_err();
    assert_eq!(error.class(), Class::PinMismatch);
    assert!(error.to_string().contains(&server.url("/other")), "{error}");
    assert_eq!(error.detail().unwrap().lines().count(), 3);
    desk.assert_nothing_left();
}

#[test]
fn an_interrupt_ends_a_transfer() {
    let desk = Desk::new();
    let interrupt = desk.interrupt.clone();
    let server = HttpFile::serve(move |_, _| {
        interrupt.raise();
        Reply::new(200, &content()).cut(10)
    });
    let error = get(&desk, &spec(&server.url("/a"), &content())).unwrap_err();
    assert_eq!(error.class(), Class::Interrupted);
    assert_eq!(server.requests().len(), 1);
    desk.assert_nothing_left();
}

#[test]
fn a_cache_that_cannot_be_written_is_noted_and_a_bad_name_refused() {
    let server = HttpFile::serve(|_, _| Reply::new(200, b"model"));
    let desk = Desk::new();
    desk.write("cache", "a file where the directory should be");
    let mut spec = spec(&server.url("/a"), b"model");
    get(&desk, &spec).unwrap();
    assert!(desk.log.notes()[0].contains("not kept in the cache"));
    assert!(desk.log_text().contains("fetching"));
    spec.name = "../model.bin".into();
    assert!(matches!(get(&desk, &spec), Err(InputError::Name { .. })));
}

#[test]
fn credentials_stay_out_of_logs_and_errors() {
    let server = HttpFile::serve(|_, _| Reply::new(404, b""));
    let desk = Desk::new();
    let url = server.url("/a").replace("http://", "http://me:secret@");
    let error = get(&desk, &spec(&url, b"model")).unwrap_err();
    assert!(!format!("{error} {error:?} {}", desk.log_text()).contains("secret"));
}
