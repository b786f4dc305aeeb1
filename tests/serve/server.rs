//! A server of the real program, asked as a browser asks it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::Ground;

/// A directory twice, with different block sizes; needs no root and no time.
pub(crate) const QUICK: &str = study!(
    "Block sizes, quick",
    r#"block-size = ["4 KiB", "8 KiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "10 ms" }"#],
    3
);

/// The same with phases long enough to be met in the middle.
pub(crate) fn slow(rounds: u32) -> String {
    QUICK
        .replace("quick", "slow")
        .replace("10 ms", "700 ms")
        .replace("rounds-at-most = 3", &format!("rounds-at-most = {rounds}"))
}

/// A program that is ended with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server in a ground.
pub(crate) struct Server {
    pub(crate) process: Ended,
    pub(crate) port: u16,
    /// What it printed first.
    pub(crate) link: String,
}

/// What it answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start(ground: &Ground, words: &[&str]) -> Self {
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

    pub(crate) fn token(&self) -> &str {
        self.link
            .split_once("token=")
            .map_or("", |(_, token)| token)
    }

    pub(crate) fn connect(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// A request as a browser that knows the token sends it.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
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

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("Origin: http://127.0.0.1:{}\r\n", self.port);
        self.ask("POST", path, &origin, body)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

impl Answer {
    pub(crate) fn read(mut from: BufReader<TcpStream>) -> Self {
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
    pub(crate) fn has(&self, status: u16, part: &str) -> &Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        assert!(self.body.contains(part), "no {part:?} in\n{}", self.body);
        self
    }
}

pub(crate) fn runs(ground: &Ground) -> Vec<String> {
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
pub(crate) fn store(ground: &Ground) -> Vec<(PathBuf, u64)> {
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
pub(crate) fn until<T>(mut asked: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = asked() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A form with one text.
pub(crate) fn form(name: &str, text: &str) -> String {
    let escaped: String = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("name={name}&text={escaped}")
}

/// Events as they arrive: name and data.
pub(crate) struct Events(pub(crate) BufReader<TcpStream>);

impl Events {
    pub(crate) fn of(server: &Server, path: &str) -> Self {
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
    pub(crate) fn next(&mut self) -> Option<(String, String)> {
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

/// A ground with one quick run in it, and the run's id.
pub(crate) fn with_a_run() -> (Ground, String) {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("quick.toml", QUICK);
    ground.stackrace(&["run", study.to_str().unwrap()]).ended(0);
    let run = runs(&ground).remove(0);
    (ground, run)
}

/// A file with a token that only its owner can read.
pub(crate) fn token_file(ground: &Ground, token: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = ground.write("token", format!("{token}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}
