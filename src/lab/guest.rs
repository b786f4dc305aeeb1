//! The agent: this program inside a guest, doing what the one outside asks, and, in node 2 and
//! those after it, what node 1 asks over the private network.
//!
//! Every request has a thread of its own, so that a command under way can be interrupted. When the
//! one outside has gone, the agent ends, and the guest with it: nobody is left to want it.

use super::peer;
use super::wire::{Numbered, PORT, Reply, Request, line};
use crate::host::process::{Process, Streams};
use crate::host::verb::{self, Told, Verb};
use crate::host::{Host, local::LocalHost};
use crate::time::{Clock, SystemClock};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often an idle port is looked at before the first request.
const IDLE: Duration = Duration::from_millis(20);

/// How often the log of a command that is followed is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Most bytes kept of each output of a command that is followed.
const OUTPUT_MAX: u64 = 1 << 20;

/// What the threads share.
struct Agent {
    port: Mutex<Box<dyn Write + Send>>,
    /// Commands that are followed, by the number of their request.
    followed: Mutex<HashMap<u64, Arc<Mutex<Process>>>>,
}

/// Serves until the one outside has gone.
///
/// # Errors
/// When there is no port, or it fails.
pub(crate) fn serve() -> Result<(), String> {
    let path = port()?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    if let Some(address) = peer::own_address() {
        let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A connection that breaks is the end of that connection alone.
                std::thread::spawn(move || of_peer(stream));
            }
        });
    }
    let agent = Agent::new(file.try_clone().map_err(failed)?);
    let mut lines = BufReader::new(file);
    while lines.fill_buf().map_err(failed)?.is_empty() {
        // Nobody has opened the other end yet.
        SystemClock.sleep(IDLE);
    }
    converse(&mut lines, &agent)
}

/// A connection from another guest.
pub(super) fn of_peer(stream: TcpStream) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    stream.set_nodelay(true).map_err(words)?;
    let agent = Agent::new(stream.try_clone().map_err(words)?);
    converse(&mut BufReader::new(stream), &agent)
}

/// Answers requests until there are no more.
fn converse(lines: &mut impl BufRead, agent: &Arc<Agent>) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    let mut text = String::new();
    while lines.read_line(&mut text).map_err(words)? > 0 {
        let request: Numbered<Request> =
            serde_json::from_str(&text).map_err(|error| format!("not understood: {error}"))?;
        text.clear();
        match request.said {
            // What takes no time, and what is measured, is not handed to another thread.
            Request::Hello => agent.say(request.id, Reply::Done),
            Request::Receive { bytes } => {
                std::io::copy(&mut lines.by_ref().take(bytes), &mut std::io::sink())
                    .map_err(words)?;
                agent.say(request.id, Reply::Done);
            }
            said => {
                let agent = Arc::clone(agent);
                std::thread::spawn(move || {
                    let reply = agent.answer(request.id, said);
                    agent.say(request.id, reply);
                });
            }
        }
    }
    Ok(())
}

/// The port of our name.
fn port() -> Result<PathBuf, String> {
    let class = Path::new("/sys/class/virtio-ports");
    let names = std::fs::read_dir(class)
        .map_err(|error| format!("no serial port: {}: {error}", class.display()))?;
    let found = names.flatten().find(|entry| {
        std::fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT)
    });
    found
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .ok_or_else(|| format!("no serial port is called {PORT}: this is no guest of the lab"))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    fn new(port: impl Write + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            port: Mutex::new(Box::new(port)),
            followed: Mutex::new(HashMap::new()),
        })
    }

    fn say(&self, id: u64, reply: Reply) {
        if let Ok(bytes) = line(id, reply) {
            // If the one outside has gone, the reading thread finds out as well and ends.
            let _ = held(&self.port).write_all(&bytes);
        }
    }

    fn answer(&self, id: u64, request: Request) -> Reply {
        let refused = |why: String| Reply::Refused { why };
        match request {
            Request::Hello | Request::Receive { .. } => Reply::Done,
            Request::Do { verb } => perform(verb),
            Request::Measure { address, bytes } => {
                let speed = peer::measure(address, bytes);
                speed.map_or_else(
                    |error| refused(format!("the line to {address} cannot be measured: {error}")),
                    |speed| Reply::Did {
                        value: serde_json::json!(speed),
                    },
                )
            }
            Request::Exec { argv } => exec(&argv).unwrap_or_else(refused),
            Request::Write { path, text } => match write(Path::new(&path), &text) {
                Ok(()) => Reply::Done,
                Err(error) => refused(format!("cannot write {path}: {error}")),
            },
            Request::Follow { argv, store } => self
                .follow(id, &argv, Path::new(&store))
                .unwrap_or_else(refused),
            Request::Interrupt { of } => {
                if let Some(process) = held(&self.followed).get(&of) {
                    held(process).interrupt();
                }
                Reply::Done
            }
        }
    }

    fn follow(&self, id: u64, argv: &[String], store: &Path) -> Result<Reply, String> {
        let words = |error: std::io::Error| error.to_string();
        let [out, errors] =
            ["out", "errors"].map(|name| PathBuf::from(format!("/run/followed-{id}.{name}")));
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let began = SystemClock.now_ns();
        let process = Process::start(&argv, Path::new("/"), Streams::Files(&out, &errors))
            .map_err(|error| error.to_string())?;
        let process = Arc::new(Mutex::new(process));
        held(&self.followed).insert(id, Arc::clone(&process));
        let mut log = Followed::default();
        let status = loop {
            // Asked before the log is read: what it wrote until its end is then not missed.
            let ended = held(&process).ended();
            for text in log.news(store).map_err(words)? {
                self.say(id, Reply::Line { text });
            }
            match ended {
                Some(status) => break status,
                None => SystemClock.sleep(LOOK),
            }
        };
        held(&self.followed).remove(&id);
        Ok(Reply::Ended {
            status: status.code(),
            stdout: beginning(&out).map_err(words)?,
            stderr: beginning(&errors).map_err(words)?,
            elapsed_ns: SystemClock.now_ns().saturating_sub(began),
        })
    }
}

fn perform(verb: Verb) -> Reply {
    let host = LocalHost::new(Arc::new(|_| ()));
    match verb::perform(&host, verb) {
        Ok(value) => Reply::Did { value },
        Err(error) => Reply::Unable {
            told: Told::of(&error),
        },
    }
}

fn exec(argv: &[String]) -> Result<Reply, String> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let began = SystemClock.now_ns();
    let output = host.exec(&argv).map_err(|error| error.to_string())?;
    Ok(Reply::Ended {
        status: output.status,
        stdout: output.stdout,
        stderr: output.stderr,
        elapsed_ns: SystemClock.now_ns().saturating_sub(began),
    })
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)
}

fn beginning(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A log that grows.
#[derive(Default)]
struct Followed {
    path: Option<PathBuf>,
    /// Bytes of whole lines that were read.
    read: u64,
}

impl Followed {
    /// Whole lines that are new; the log is the one of the only run in a store, as soon as there is
    /// one.
    fn news(&mut self, store: &Path) -> std::io::Result<Vec<String>> {
        if self.path.is_none() {
            let runs = std::fs::read_dir(store.join("runs"));
            let logs = runs.into_iter().flatten().flatten();
            self.path = logs
                .map(|run| run.path().join("log.jsonl"))
                .find(|log| log.exists());
        }
        let Some(path) = &self.path else {
            return Ok(Vec::new());
        };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        Ok(text.lines().map(str::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_followed_by_whole_lines() {
        let store = tempfile::tempdir().unwrap();
        let mut log = Followed::default();
        assert!(log.news(store.path()).unwrap().is_empty());
        let run = store.path().join("runs/r");
        std::fs::create_dir_all(&run).unwrap();
        let mut file = File::create(run.join("log.jsonl")).unwrap();
        file.write_all(b"{\"a\":1}\n{\"b\"").unwrap();
        assert_eq!(log.news(store.path()).unwrap(), ["{\"a\":1}"]);
        assert!(log.news(store.path()).unwrap().is_empty());
        file.write_all(b":2}\n\n").unwrap();
        assert_eq!(log.news(store.path()).unwrap(), ["{\"b\":2}", ""]);
    }
}
