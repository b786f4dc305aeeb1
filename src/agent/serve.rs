//! The agent: this program inside a guest, doing what the one outside asks, and, in node 2 and
//! those after it, what node 1 asks over the private network.
//!
//! Every request has a thread of its own, so that a command under way can be interrupted. When the
//! one outside has gone, the agent ends, and the guest with it: nobody is left to want it.

use super::speed;
use super::wire::{Numbered, PORT, Reply, Request, line};
use crate::host::process::{Process, Streams};
use crate::host::verb::{self, Told, Verb};
use crate::host::{Host, local::LocalHost};
use crate::time::{Clock, SystemClock};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the one outside may be silent, where it says something every [`super::BEAT`], until it
/// counts as gone.
const SILENCE: Duration = Duration::from_secs(120);

/// How long commands may take to end then. One that cannot get rid of what it prints can when the
/// agent has ended.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often an idle port is looked at before the first request.
const IDLE: Duration = Duration::from_millis(20);

/// How often a command that prints no more is looked at until it has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Most bytes kept of the standard error of a command that is followed.
const ERRORS_MAX: u64 = 1 << 20;

/// Serves in this very process, on a thread of its own: this machine as a place among others.
///
/// # Errors
/// The system's.
pub(crate) fn here() -> std::io::Result<super::Agent> {
    let (ours, theirs) = UnixStream::pair()?;
    let agent = Agent::new(theirs.try_clone()?);
    std::thread::spawn(move || converse(&mut BufReader::new(theirs), &agent));
    super::Agent::new(ours)
}

/// What the threads share.
struct Agent {
    port: Mutex<Box<dyn Write + Send>>,
    /// Commands that are followed, by the number of their request.
    followed: Mutex<HashMap<u64, Followed>>,
    /// Whose commands it runs; none: nobody said.
    run: Mutex<Option<String>>,
}

/// A command under way, and what it reads: the end, as soon as the agent has ended.
struct Followed {
    process: Arc<Mutex<Process>>,
    input: ChildStdin,
}

/// Serves in a guest, and for its peers at an address, until the one outside has gone.
///
/// # Errors
/// When there is no port, or it fails.
pub(crate) fn guest(listen: Option<SocketAddr>) -> Result<(), String> {
    let path = port()?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    if let Some(address) = listen {
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

/// Serves over standard input and output until the one outside has gone, or has been silent for two
/// minutes. Commands that are followed are then interrupted, and this returns when they have ended:
/// nothing goes on, and nothing stands, that nobody is left to want.
///
/// # Errors
/// When standard input fails, or brings what is not understood.
pub(crate) fn stdio() -> Result<(), String> {
    let agent = Agent::new(std::io::stdout());
    let heard = Arc::new(AtomicU64::new(SystemClock.now_ns()));
    let (watched, last) = (Arc::clone(&agent), Arc::clone(&heard));
    std::thread::spawn(move || {
        let silent = || {
            SystemClock
                .now_ns()
                .saturating_sub(last.load(Ordering::Relaxed))
        };
        while u128::from(silent()) < SILENCE.as_nanos() {
            SystemClock.sleep(super::BEAT);
        }
        watched.end();
        std::process::exit(1);
    });
    let input = Listened {
        input: std::io::stdin(),
        heard,
    };
    let conversed = converse(&mut BufReader::new(input), &agent);
    agent.end();
    conversed
}

/// Standard input, and when something last came from it.
struct Listened {
    input: std::io::Stdin,
    heard: Arc<AtomicU64>,
}

impl Read for Listened {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(bytes);
        self.heard.store(SystemClock.now_ns(), Ordering::Relaxed);
        read
    }
}

/// A connection from another guest.
pub(crate) fn of_peer(stream: TcpStream) -> Result<(), String> {
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
            // In the order they came.
            Request::Belong { run } => {
                *held(&agent.run) = Some(run);
                agent.say(request.id, Reply::Done);
            }
            Request::Tell { of, text } => {
                let reply = match agent.tell(of, &text) {
                    Ok(()) => Reply::Done,
                    Err(why) => Reply::Refused { why },
                };
                agent.say(request.id, reply);
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
            run: Mutex::new(None),
        })
    }

    fn say(&self, id: u64, reply: Reply) {
        if let Ok(bytes) = line(id, reply) {
            // If the one outside has gone, the reading thread finds out as well and ends.
            let _ = held(&self.port).write_all(&bytes);
        }
    }

    /// Interrupts what is followed, which then reads the end, and waits until it has ended.
    fn end(&self) {
        let followed = std::mem::take(&mut *held(&self.followed));
        let followed: Vec<_> = followed.into_values().map(|one| one.process).collect();
        for process in &followed {
            held(process).interrupt();
        }
        let began = SystemClock.now_ns();
        let waited = || u128::from(SystemClock.now_ns().saturating_sub(began));
        let going = |process: &Arc<Mutex<Process>>| held(process).ended().is_none();
        while followed.iter().any(going) && waited() < PATIENCE.as_nanos() {
            SystemClock.sleep(LOOK);
        }
    }

    fn answer(&self, id: u64, request: Request) -> Reply {
        let refused = |why: String| Reply::Refused { why };
        match request {
            Request::Hello
            | Request::Belong { .. }
            | Request::Receive { .. }
            | Request::Tell { .. } => Reply::Done,
            Request::Do { verb } => perform(verb),
            Request::Measure { address, bytes } => speed::speed_to(address, bytes).map_or_else(
                |error| refused(format!("the line to {address} cannot be measured: {error}")),
                |speed| Reply::Did {
                    value: serde_json::json!(speed),
                },
            ),
            Request::Listen { address } => speed::listen_once(address).map_or_else(
                |error| refused(format!("cannot listen at {address}: {error}")),
                |at| Reply::Did {
                    value: serde_json::json!(at),
                },
            ),
            Request::Exec { argv } => self.exec(&argv).unwrap_or_else(refused),
            Request::Write { path, text } => match write(Path::new(&path), &text) {
                Ok(()) => Reply::Done,
                Err(error) => refused(format!("cannot write {path}: {error}")),
            },
            Request::Follow { argv } => self.follow(id, &argv).unwrap_or_else(refused),
            Request::Interrupt { of } => {
                if let Some(followed) = held(&self.followed).get(&of) {
                    held(&followed.process).interrupt();
                }
                Reply::Done
            }
        }
    }

    fn exec(&self, argv: &[String]) -> Result<Reply, String> {
        let host = LocalHost::new(Arc::new(|_| ()));
        if let Some(run) = &*held(&self.run) {
            host.belong_to(run);
        }
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

    fn follow(&self, id: u64, argv: &[String]) -> Result<Reply, String> {
        let words = |error: std::io::Error| error.to_string();
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let began = SystemClock.now_ns();
        let mut process = Process::start(&argv, Path::new("."), Streams::Pipes)
            .map_err(|error| error.to_string())?;
        let pipes = process.pipes().ok_or("the command has no pipes")?;
        let (input, output, errors) = pipes;
        let process = Arc::new(Mutex::new(process));
        let followed = Followed {
            process: Arc::clone(&process),
            input,
        };
        held(&self.followed).insert(id, followed);
        let errors = std::thread::spawn(move || beginning(errors));
        for text in BufReader::new(output).lines() {
            let text = text.map_err(words)?;
            self.say(id, Reply::Line { text });
        }
        // It is not held while it is waited for: it can still be interrupted.
        let status = loop {
            let ended = held(&process).ended();
            match ended {
                Some(status) => break status,
                None => SystemClock.sleep(LOOK),
            }
        };
        held(&self.followed).remove(&id);
        Ok(Reply::Ended {
            status: status.code(),
            stdout: String::new(),
            stderr: errors.join().unwrap_or_default(),
            elapsed_ns: SystemClock.now_ns().saturating_sub(began),
        })
    }

    /// Hands a line to a command that is followed.
    fn tell(&self, of: u64, text: &str) -> Result<(), String> {
        let mut all = held(&self.followed);
        let followed = all.get_mut(&of).ok_or("that command has ended")?;
        let line = format!("{text}\n");
        let written = followed.input.write_all(line.as_bytes());
        written.map_err(|error| format!("that command does not listen: {error}"))
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

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)
}

/// The beginning of what a command writes; all of it is read.
fn beginning(mut errors: impl Read) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is left out: it is told for a person.
    let _ = errors.by_ref().take(ERRORS_MAX).read_to_end(&mut bytes);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Heard;
    use super::*;

    #[test]
    fn a_command_is_told_and_heard_line_by_line_to_its_end() {
        let outside = here().unwrap();
        let script = "echo ready; while read word; do echo heard $word; \
                      [ $word = stop ] && break; done; echo why >&2; exit 3";
        let argv: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        let talk = outside.follow(&argv).unwrap();
        let hear = || match talk.hear(Duration::from_secs(60)).unwrap() {
            Some(Heard::Line(text)) => text,
            other => panic!("not a line: {other:?}"),
        };
        assert_eq!(hear(), "ready");
        for word in ["one", "two", "stop"] {
            talk.tell(word).unwrap();
            assert_eq!(hear(), format!("heard {word}"));
        }
        match talk.hear(Duration::from_secs(60)).unwrap() {
            Some(Heard::Ended(output)) => {
                assert_eq!((output.status, &*output.stderr), (Some(3), "why\n"));
            }
            other => panic!("not the end: {other:?}"),
        }
        assert!(talk.tell("late").is_err());
    }

    #[test]
    fn commands_are_those_of_the_run_that_was_said() {
        let outside = here().unwrap();
        let whose = || {
            let argv = ["sh", "-c", "echo $STACKRACE_RUN"].map(OsString::from);
            outside.exec(&argv).unwrap().stdout
        };
        assert_eq!(whose(), "\n");
        outside.belong_to(".stackrace-peer-1").unwrap();
        let said = whose();
        assert!(said.starts_with(".stackrace-peer-1 in session "), "{said}");
    }

    #[test]
    fn a_command_that_waits_can_be_interrupted() {
        let outside = here().unwrap();
        let argv: Vec<OsString> = ["sleep", "1000"].map(OsString::from).to_vec();
        let talk = outside.follow(&argv).unwrap();
        // Asked until it has come so far that it can be.
        loop {
            talk.interrupt().unwrap();
            if let Some(Heard::Ended(output)) = talk.hear(Duration::from_millis(1)).unwrap() {
                assert_eq!(output.status, None);
                break;
            }
        }
    }
}
