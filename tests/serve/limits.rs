//! What strangers and slow visitors can take of the machine: little, and pages still load.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::server::{Answer, Events, Server, runs, token_file, until, with_a_run};
use crate::support::Ground;

/// The head of a form that will have so many bytes.
fn post(server: &Server, path: &str, bytes: usize) -> String {
    let port = server.port;
    format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {bytes}\r\n\r\n")
}

/// The status of what was answered; none: the connection ended without an answer.
fn status(mut from: BufReader<TcpStream>) -> Option<u16> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// The most memory that a server ever had, KiB.
fn peak_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn a_stranger_is_refused_before_a_form_is_read() {
    let (ground, _) = with_a_run();
    let server = Server::start(
        &ground,
        &[
            "--token-file",
            &token_file(&ground, "correct-horse-battery"),
        ],
    );
    // None of the bytes that it promises is ever sent.
    let answer = Answer::read(server.connect(&post(&server, "/import", 1 << 24)));
    answer.has(401, "needs its token");
    let server = Server::start(&ground, &[]);
    let evil = post(&server, "/import", 1 << 24).replace("Host: ", "Host: evil.example:");
    Answer::read(server.connect(&evil)).has(421, "Unknown host");
}

fn a_form_has_few_bytes_and_few_values() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let refused = |path: &str, bytes| Answer::read(server.connect(&post(&server, path, bytes)));
    refused("/start", 4097).has(413, "other forms 4 KiB");
    refused("/import", (16 << 20) + 1).has(413, "16 MiB");
    server
        .post("/import", &"name=a&".repeat(129))
        .has(400, "too many values");
    server
        .get(&format!("/history?{}", "a&".repeat(129)))
        .has(400, "too many values");
}

fn forms_that_never_end_take_little_memory() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let part = vec![b'a'; 1 << 20];
    let mut open = Vec::new();
    for _ in 0..12 {
        let mut form = server.connect(&post(&server, "/import", 15 << 20));
        // All but the last bytes; a form that is refused is not taken.
        let _ = (0..14).try_for_each(|_| form.get_mut().write_all(&part));
        open.push(form);
    }
    server.get("/").has(200, "quick");
    let peak = peak_kib(&server);
    assert!(peak < 100 << 10, "{peak} KiB");
    let refused = open.into_iter().skip(2).map(status);
    assert!(refused.flatten().all(|status| status == 503));
}

fn pages_load_while_requests_never_end() {
    let (ground, run) = with_a_run();
    let server = Server::start(&ground, &[]);
    let begun = |_| server.connect("GET / HTTP/1.1\r\nHost: local");
    let open: Vec<_> = (0..150).map(begun).collect();
    server.get(&format!("/run/{run}")).has(200, "quick");
    drop(open);
    server.get("/").has(200, "quick");
}

fn threads_of_visitors_take_memory_from_one_place() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let begun = |_| server.connect("GET / HTTP/1.1\r\nHost: local");
    let open: Vec<_> = (0..40).map(begun).collect();
    server.get("/").has(200, "quick");
    // The arena of a thread begins where 64 MiB of addresses begin (mallopt(3): M_ARENA_MAX).
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap();
    let arenas = maps.lines().filter(|line| {
        let mut words = line.split_whitespace();
        let begins = words.next().and_then(|range| range.split('-').next());
        let begins = begins.and_then(|start| u64::from_str_radix(start, 16).ok());
        let written = words.next() == Some("rw-p") && words.nth(3).is_none();
        written && begins.is_some_and(|start| start % (64 << 20) == 0)
    });
    let count = arenas.count();
    assert!(count <= 1, "{count} arenas\n{maps}");
    drop(open);
}

fn pages_load_while_event_streams_are_open() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let port = server.port;
    let events = format!("GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..80 {
        let mut stream = server.connect(&events);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        match line.contains("200") {
            true => open.push(stream),
            false => refused += 1,
        }
    }
    assert_eq!((open.len(), refused), (16, 64), "of one address");
    server.get("/").has(200, "quick");
    // One that ends makes room for another.
    open.clear();
    until(|| (status(server.connect(&events)) == Some(200)).then_some(()));
}

fn who_closes_an_event_stream_can_always_open_the_next() {
    let (ground, run) = with_a_run();
    let server = Server::start(&ground, &[]);
    let port = server.port;
    for path in ["/events".to_owned(), format!("/run/{run}/events")] {
        let events = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        for number in 1..=40 {
            let answer = status(server.connect(&events));
            assert_eq!(answer, Some(200), "stream {number} of {path}");
        }
    }
}

fn a_thread_that_cannot_start_is_an_answer_and_the_server_goes_on() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    // Nothing was asked before: the stack of a thread that has ended is used again.
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap());
    let maps = fs::read_to_string(format!("/proc/{}/statm", server.pid())).unwrap();
    let pages: u64 = maps.split(' ').next().unwrap().parse().unwrap();
    let limit = |bytes| Rlimit {
        current: bytes,
        maximum: None,
    };
    // Room for an answer and for no stack.
    let little = pages * 4096 + (1 << 20);
    let before = prlimit(pid, Resource::As, limit(Some(little))).unwrap();
    let host = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    let mut answer = String::new();
    let mut from = server.connect(&host);
    from.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("Try again"), "{answer}");
    prlimit(pid, Resource::As, limit(before.current)).unwrap();
    server.get("/").has(200, "quick");
}

fn what_is_written_into_a_name_is_text_on_every_page() {
    let ground = Ground::new();
    let name = "<script>alert(1)</script>\"'&\u{1b}]0;owned\u{7}\u{202e}\u{2066}";
    let text = fs::read_to_string("tests/golden/dd/coreutils-two.txt").unwrap();
    let file = ground.write("dd.txt", text);
    let source = format!("{name}={}", file.display());
    ground
        .stackrace(&["import", &source, "--title", name])
        .ended(0);
    let run = runs(&ground).remove(0);
    let server = Server::start(&ground, &[]);
    let title: String = form_urlencoded(name);
    for path in [
        "/".to_owned(),
        format!("/run/{run}"),
        format!("/run/{run}/report.html"),
        "/history".to_owned(),
        format!("/history?study={title}"),
        "/beside".to_owned(),
        format!("/beside?a={run}/0&b={run}/0"),
    ] {
        let page = server.get(&path);
        page.has(200, "&lt;script&gt;");
        assert!(!page.body.contains("<script>alert"), "{path}");
        assert!(!page.body.contains(name), "{path}");
        assert!(!page.body.contains(COMMANDS), "{path}");
    }
    let mut list = Events::of(&server, "/events");
    let (_, piece) = list.next().unwrap();
    assert!(piece.contains("&lt;script&gt;"), "{piece}");
    assert!(!piece.contains(COMMANDS), "{piece}");
    let mut events = Events::of(&server, &format!("/run/{run}/events?seen=0"));
    let mut heard = 0;
    while let Some((name, piece)) = events.next() {
        assert!(!piece.contains(COMMANDS), "{name}");
        heard += usize::from(piece.contains("&lt;script&gt;"));
    }
    assert!(heard > 0, "the name is in no piece of the page");
}

/// What commands a terminal, or reorders a line.
const COMMANDS: [char; 4] = ['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}'];

fn form_urlencoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        a_stranger_is_refused_before_a_form_is_read,
        a_form_has_few_bytes_and_few_values,
        forms_that_never_end_take_little_memory,
        pages_load_while_requests_never_end,
        threads_of_visitors_take_memory_from_one_place,
        pages_load_while_event_streams_are_open,
        who_closes_an_event_stream_can_always_open_the_next,
        a_thread_that_cannot_start_is_an_answer_and_the_server_goes_on,
        what_is_written_into_a_name_is_text_on_every_page
    ]
}
