//! The live page of the real program, asked over real HTTP: who is let in, what is shown, and that
//! nothing is done that was not allowed.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[expect(dead_code, reason = "other tests need file systems too")]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::Ground;

/// A directory twice, with different block sizes; needs no root and no time.
const QUICK: &str = r#"
title = "Block sizes, quick"
[factors]
block-size = ["4 KiB", "8 KiB"]
[[stack]]
dir = { path = "data" }
[[workload]]
name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "10 ms" }
[decide]
rounds-at-most = 3
at-most = "10 min"
until = "never"
"#;

/// The same with phases long enough to be met in the middle.
fn slow(rounds: u32) -> String {
    QUICK
        .replace("quick", "slow")
        .replace("10 ms", "700 ms")
        .replace("rounds-at-most = 3", &format!("rounds-at-most = {rounds}"))
}

/// A program that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server in a ground.
struct Server {
    process: Ended,
    port: u16,
    /// What it printed first.
    link: String,
}

/// What it answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(ground: &Ground, words: &[&str]) -> Self {
        let words: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        let mut command: Command = ground.program(&words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_remove("STACKRACE_TOKEN")
            .spawn()
            .unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut link)
            .unwrap();
        let port = link.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let port = port.split('/').next().unwrap().parse().unwrap();
        Self {
            process: Ended(child),
            port,
            link: link.trim().to_owned(),
        }
    }

    fn token(&self) -> &str {
        self.link
            .split_once("token=")
            .map_or("", |(_, token)| token)
    }

    fn connect(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// A request as a browser that knows the token sends it.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let port = self.port;
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: 127.0.0.1:{port}\r\n")
        };
        let cookie = match self.token() {
            "" => String::new(),
            token => format!("Cookie: stackrace-{port}={token}\r\n"),
        };
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{host}{cookie}{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        Answer::read(self.connect(&text))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("Origin: http://127.0.0.1:{}\r\n", self.port);
        self.ask("POST", path, &origin, body)
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

impl Answer {
    fn read(mut from: BufReader<TcpStream>) -> Self {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    #[track_caller]
    fn has(&self, status: u16, part: &str) -> &Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        assert!(self.body.contains(part), "no {part:?} in\n{}", self.body);
        self
    }
}

/// A ground with one quick run in it, and the run's id.
fn with_a_run() -> (Ground, String) {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("quick.toml", QUICK);
    ground.stackrace(&["run", study.to_str().unwrap()]).ended(0);
    let run = runs(&ground).remove(0);
    (ground, run)
}

fn runs(ground: &Ground) -> Vec<String> {
    let runs = fs::read_dir(ground.store().join("runs"));
    let mut runs: Vec<String> = runs
        .into_iter()
        .flatten()
        .map(|run| run.unwrap().file_name().into_string().unwrap())
        .collect();
    runs.sort();
    runs
}

/// Everything in the store with its length.
fn store(ground: &Ground) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut left = vec![ground.store()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push((path.clone(), fs::metadata(&path).unwrap().len()));
            }
        }
    }
    found.sort();
    found
}

/// Asks again until it is so; how long that may take is the business of the one who runs the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn until<T>(mut asked: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = asked() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_page_of_a_finished_run_can_be_read_without_a_script() {
    let (ground, run) = with_a_run();
    let server = Server::start(&ground, &[]);
    let list = server.get("/");
    list.has(200, "Block sizes, quick").has(200, "finished");
    assert!(list.head.contains("default-src 'none'"), "{}", list.head);
    let page = server.get(&format!("/run/{run}"));
    page.has(200, "<svg").has(200, "Method in plain words");
    assert!(!page.body.contains("data-events"), "nothing comes any more");
    let whole = server.get(&format!("/run/{run}/report.html"));
    let file = ground.path().join("report.html");
    ground
        .stackrace(&["report", "--html", file.to_str().unwrap()])
        .ended(0);
    assert_eq!(whole.body, fs::read_to_string(file).unwrap());
    let history = server.get("/history?study=Block+sizes%2C+quick");
    history.has(200, "random write").has(200, &run);
    server.get("/history").has(200, "1 run");
    let beside = server.get(&format!("/beside?a={run}/0&b={run}/1"));
    beside.has(200, "8 KiB beside 4 KiB").has(200, "unpaired");
    server.get("/import").has(200, "bonnie++");
    server.get("/style.css").has(200, "--page");
    server.get("/page.js").has(200, "EventSource");
    let head = server.ask("HEAD", "/", "", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for page in [list, page, history, beside] {
        for outside in ["http://", "https://", "<style", "style=", "onclick"] {
            // Names of XML are no addresses to be fetched.
            let body = page.body.replace("http://www.w3.org/", "");
            assert!(!body.contains(outside), "{outside} in\n{body}");
        }
    }
}

#[test]
fn what_is_not_there_is_said_and_no_path_leads_out_of_the_store() {
    let (ground, run) = with_a_run();
    fs::write(ground.path().join("log.jsonl"), "not yours").unwrap();
    let server = Server::start(&ground, &[]);
    for path in [
        "/run/..",
        "/run/.",
        "/run/",
        "/run/../..",
        "/run/%2e%2e",
        "/run/..%2f..",
        "/run/..%2f../report.html",
        "/run/../events",
        "/run/2026",
        &format!("/run/{run}/log.jsonl"),
        &format!("/run/{run}/../{run}"),
        "/beside?a=../../0&b=../../0",
        "/history?study=..",
        "//etc/passwd",
        "/etc/passwd",
        "/start/x",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert!(!answer.body.contains("not yours"), "{path}");
    }
    server
        .get(&format!("/beside?a={run}/7&b={run}/0"))
        .has(404, "no such configuration");
    server
        .get(&format!("/beside?a={run}&b={run}"))
        .has(400, "one of its configurations");
    let refused = Answer::read(server.connect("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    refused.has(405, "Only GET");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000));
    Answer::read(server.connect(&long)).has(431, "too long");
    Answer::read(server.connect("what?\r\n\r\n")).has(400, "Malformed HTTP request");
}

#[test]
fn strangers_are_kept_out() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let status = |headers: &str| server.ask("GET", "/", headers, "").status;
    assert_eq!(status("Host: evil.example\r\n"), 421);
    assert_eq!(status("Host: localhost:1234\r\n"), 200);
    assert_eq!(status("Origin: http://evil.example\r\n"), 403);
    assert_eq!(
        status("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n"),
        403
    );

    let server = Server::start(&ground, &["--token", "correct-horse-battery"]);
    let port = server.port;
    let plain = |path: &str, more: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}\r\n");
        Answer::read(server.connect(&text))
    };
    for path in ["/", "/style.css", "/history", "/events"] {
        plain(path, "").has(401, "needs its token");
    }
    plain("/?token=correct-horse-batterz", "").has(403, "Wrong token");
    let visit = plain("/import?token=correct-horse-battery", "");
    assert_eq!(visit.status, 303);
    assert!(
        visit.head.contains("Location: /import\r\n"),
        "{}",
        visit.head
    );
    let cookie = visit.head.split("Set-Cookie: ").nth(1).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"));
    let cookie = cookie.split(';').next().unwrap();
    plain("/import", &format!("Cookie: {cookie}\r\n")).has(200, "bonnie++");
    plain("/", "Cookie: stackrace=correct-horse-battery\r\n").has(401, "");
    plain("/", "Authorization: Bearer correct-horse-battery\r\n").has(200, "quick");
}

#[test]
fn a_server_that_was_given_no_hands_only_reads() {
    let (ground, run) = with_a_run();
    let before = store(&ground);
    let server = Server::start(&ground, &[]);
    for path in [
        format!("/run/{run}/stop"),
        format!("/run/{run}/resume"),
        "/start".to_owned(),
        "/import/keep".to_owned(),
    ] {
        server.post(&path, "study=quick.toml").has(403, "--control");
    }
    server.get("/start").has(403, "--control");
    server.post("/", "").has(405, "");
    let text = fs::read_to_string("tests/golden/fio/fio-3.33_two_jobs.json").unwrap();
    server
        .post("/import", &form("fio.json", &text))
        .has(200, "Not kept");
    assert_eq!(store(&ground), before);
}

/// A form with one text.
fn form(name: &str, text: &str) -> String {
    let escaped: String = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("name={name}&text={escaped}")
}

#[test]
fn what_other_tools_printed_is_shown_and_kept_only_when_asked() {
    let ground = Ground::new();
    let server = Server::start(&ground, &["--control"]);
    let text = fs::read_to_string("tests/golden/fio/fio-3.33_two_jobs.json").unwrap();
    let shown = server.post("/import", &form("fio.json", &text));
    shown
        .has(200, "Imported from fio-3.33")
        .has(200, "Keep this as a run");
    assert_eq!(runs(&ground).len(), 0);
    let refused = server.post("/import", "name=notes&text=hello");
    refused.has(422, "notes, line 1").has(422, "hello");
    server
        .post("/import", "name=x&text=+")
        .has(422, "No text to read");
    let kept = server.post("/import/keep", &form("fio.json", &text));
    assert_eq!(kept.status, 303, "{}", kept.body);
    let run = runs(&ground).remove(0);
    assert!(kept.head.contains(&format!("Location: /run/{run}\r\n")));
    server
        .get(&format!("/run/{run}"))
        .has(200, "Imported from fio-3.33");
    // As the command keeps it.
    let file = ground.write("fio.json", &text);
    ground
        .stackrace(&["import", file.to_str().unwrap()])
        .ended(0);
    let said = ground.stackrace(&["diff", &runs(&ground)[0], &runs(&ground)[1]]);
    assert!(
        said.code == Some(0) || said.err.contains("configurations"),
        "{}",
        said.err
    );
}

/// Events as they arrive: name and data.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(server: &Server, path: &str) -> Self {
        let port = server.port;
        let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        let mut from = server.connect(&text);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(from.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.contains("text/event-stream"), "{head}");
        Self(from)
    }

    /// The next event; none: the line is closed.
    fn next(&mut self) -> Option<(String, String)> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", value)) => name = value.to_owned(),
                Some(("data", value)) => data.push_str(value),
                _ if line == "\n" && !name.is_empty() => return Some((name, data)),
                _ => {}
            }
        }
    }
}

#[test]
fn a_run_is_watched_from_its_first_trial_to_its_end() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(3));
    let server = Server::start(&ground, &[]);
    let mut racing = Ended(
        ground
            .program(&["run", study.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let run = until(|| runs(&ground).pop());
    let now = ground.store().join("runs").join(&run).join("now.json");
    until(|| now.exists().then_some(()));
    until(|| (server.get(&format!("/run/{run}")).status == 200).then_some(()));
    server.get("/").has(200, "running");
    server
        .get(&format!("/run/{run}"))
        .has(200, &format!("data-events=\"/run/{run}/events?seen="));
    let mut events = Events::of(&server, &format!("/run/{run}/events"));
    let (mut names, mut rates, mut last) = (Vec::new(), 0, String::new());
    while let Some((name, data)) = events.next() {
        if name == "doing" && data.contains("random write") && data.contains("/s</span>") {
            rates += 1;
        }
        if name == "record" {
            last = data;
        }
        names.push(name);
    }
    assert!(rates > 0, "no throughput was shown: {names:?}");
    for name in ["race", "record", "status"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert_eq!(names.last().map(String::as_str), Some("end"));
    assert!(last.contains("3 of at most 3 rounds"), "{last}");
    assert!(racing.0.wait().unwrap().success());
    assert!(!now.exists(), "no run is active any more");
    server.get("/").has(200, "finished");
    // A visitor who comes late sees the end at once.
    let mut late = Events::of(&server, &format!("/run/{run}/events"));
    let end = until(|| late.next().filter(|(name, _)| name == "end"));
    assert!(end.1.contains("finished"), "{}", end.1);
    assert_eq!(late.next(), None);
}

#[test]
fn the_list_tells_of_a_new_run_and_a_killed_one_is_not_running() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(9));
    let server = Server::start(&ground, &[]);
    let mut events = Events::of(&server, "/events");
    assert!(events.next().unwrap().1.contains("No runs on record"));
    let racing = Ended(
        ground
            .program(&["run", study.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until(|| {
        events
            .next()
            .unwrap()
            .1
            .contains("run running")
            .then_some(())
    });
    let run = runs(&ground).remove(0);
    let now = ground.store().join("runs").join(&run).join("now.json");
    until(|| now.exists().then_some(()));
    drop(racing);
    until(|| {
        events
            .next()
            .unwrap()
            .1
            .contains("run interrupted")
            .then_some(())
    });
    assert!(now.exists(), "left behind, and not believed");
    server
        .get(&format!("/run/{run}"))
        .has(200, "stackrace resume");
    ground.stackrace(&["clean"]).ended(0);
}

#[test]
fn studies_are_started_stopped_and_gone_on_with_where_that_is_allowed() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(2));
    ground.write("secret.toml", slow(2));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    assert_eq!(server.token().len(), 32, "{}", server.link);
    server.get("/start").has(200, "slow.toml");
    for study in ["..%2Fsecret.toml", "%2Fetc%2Fpasswd", "demo", ""] {
        server
            .post("/start", &format!("study={study}"))
            .has(409, "no study");
    }
    let stranger = server.ask(
        "POST",
        "/start",
        "Origin: http://evil.example\r\n",
        "study=slow.toml",
    );
    assert_eq!(stranger.status, 403);
    assert_eq!(runs(&ground).len(), 0);

    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    let run = until(|| runs(&ground).pop());
    let now = ground.store().join("runs").join(&run).join("now.json");
    let told: serde_json::Value = until(|| serde_json::from_slice(&fs::read(&now).ok()?).ok());
    assert_ne!(told["pid"], server.pid());
    server.get("/start").has(200, &format!("Watch it: {run}"));
    server
        .post(&format!("/run/{run}/resume"), "")
        .has(409, "going on already");
    assert_eq!(server.post(&format!("/run/{run}/stop"), "").status, 303);
    let again = server.post(&format!("/run/{run}/stop"), "");
    assert_eq!(again.status, 409, "a second Ctrl-C would end it at once");
    until(|| {
        server
            .get("/start")
            .body
            .contains("exit code 130")
            .then_some(())
    });
    server
        .get(&format!("/run/{run}"))
        .has(200, "Go on with this run");
    server
        .post(&format!("/run/{run}/stop"), "")
        .has(409, "not going on");

    assert_eq!(server.post(&format!("/run/{run}/resume"), "").status, 303);
    until(|| {
        server
            .get("/start")
            .body
            .contains("It ended well")
            .then_some(())
    });
    server
        .get(&format!("/run/{run}"))
        .has(200, "2 of at most 2 rounds");
    server.post("/run/../stop", "").has(404, "no such run");
}

#[test]
fn what_is_started_goes_on_when_the_server_ends() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(2));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    let run = until(|| runs(&ground).pop());
    // Ctrl-C on the server's terminal.
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    drop(server);
    let log = ground.store().join("runs").join(run).join("log.jsonl");
    until(|| {
        fs::read_to_string(&log)
            .ok()?
            .contains("\"run-ended\"")
            .then_some(())
    });
    assert!(fs::read_to_string(&log).unwrap().contains("\"rounds\""));
}

#[test]
fn a_page_for_others_has_a_token_and_says_it_is_not_encrypted() {
    let ground = Ground::new();
    for (words, part) in [
        (vec!["--listen", "storage:80"], "no address"),
        (vec!["--token", "short"], "at least 12"),
        (vec!["--token", "with blanks in it"], "letters, digits"),
        (vec!["--studies", "."], "--control"),
        (
            vec!["--control", "--studies", "nowhere"],
            "no such directory",
        ),
    ] {
        let words: Vec<&str> = std::iter::once("serve").chain(words).collect();
        ground.stackrace(&words).ended(2).err_has(part);
    }
    let mut child = Ended(
        ground
            .program(&["serve", "--listen", "0.0.0.0:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let line = |from: &mut dyn BufRead| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line
    };
    let link = line(&mut BufReader::new(child.0.stdout.take().unwrap()));
    let token = link.trim().split_once("/?token=").unwrap().1;
    assert_eq!(token.len(), 32, "{link}");
    let mut said = BufReader::new(child.0.stderr.take().unwrap());
    line(&mut said);
    assert!(line(&mut said).contains("nothing is encrypted"));
}
