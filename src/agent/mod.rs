//! This program on another machine, asked over a line: a guest's serial port, TCP between guests,
//! SSH to another machine.
//!
//! Here is the end that asks; [`serve`] is the one that does it, [`wire`] what they say. [`ssh`]
//! brings this program to a machine and begins to talk there.

pub(crate) mod dial;
pub(crate) mod program;
pub(crate) mod serve;
pub(crate) mod speed;
pub(crate) mod ssh;
pub(crate) mod wire;

use crate::host::verb::Verb;
use crate::host::{HostError, Output, shown};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::{Numbered, Reply, Request, line};

/// How long an agent may take to do what takes no time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often something is said over a line whose end listens for silence.
pub(crate) const BEAT: Duration = Duration::from_secs(15);

/// Who waits for replies, by the number of the request; none: the other end has gone.
type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Reply>>>>>;

/// Why an agent could not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentError {
    /// The line has broken, or the machine at its end has gone.
    Ended,
    /// It could not be done there, or what came of it was refused here.
    Refused(String),
    /// A command that has to succeed did not.
    Host(HostError),
}

impl AgentError {
    /// What the user can do about it.
    pub(crate) fn next(&self) -> String {
        match self {
            Self::Ended | Self::Refused(_) => String::new(),
            Self::Host(error) => error.next(),
        }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the other end of the line has gone"),
            Self::Refused(why) => f.write_str(why),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AgentError {}

/// The line to one agent.
pub(crate) struct Agent {
    port: Mutex<Box<dyn Write + Send>>,
    next: Mutex<u64>,
    waiting: Waiting,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    /// Talks over a connected socket.
    pub(crate) fn new(port: UnixStream) -> std::io::Result<Self> {
        Ok(Self::over(port.try_clone()?, port))
    }

    /// Talks over two ends of a connection.
    pub(crate) fn over(
        reading: impl Read + Send + 'static,
        writing: impl Write + Send + 'static,
    ) -> Self {
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let told = Arc::clone(&waiting);
        std::thread::spawn(move || {
            listen(reading, &told);
            // Whoever still waits hears that nothing will come.
            *held(&told) = None;
        });
        Self {
            port: Mutex::new(Box::new(writing)),
            next: Mutex::new(1),
            waiting,
        }
    }

    /// Asks; the number, and where the replies come.
    pub(crate) fn ask(&self, request: Request) -> Result<(u64, Receiver<Reply>), AgentError> {
        let id = {
            let mut next = held(&self.next);
            *next += 1;
            *next
        };
        let (sender, replies) = channel();
        match &mut *held(&self.waiting) {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(AgentError::Ended),
        };
        let bytes = line(id, request).map_err(|_| AgentError::Ended)?;
        let mut port = held(&self.port);
        port.write_all(&bytes).map_err(|_| AgentError::Ended)?;
        Ok((id, replies))
    }

    /// Whether the other end has gone: nothing can be asked any more.
    pub(crate) fn has_ended(&self) -> bool {
        held(&self.waiting).is_none()
    }

    /// Asks for what is done at once; waits for it at most so long.
    pub(crate) fn done(&self, request: Request, patience: Duration) -> Result<(), AgentError> {
        match self.ask(request)?.1.recv_timeout(patience) {
            Ok(Reply::Refused { why }) => Err(AgentError::Refused(why)),
            Ok(_) => Ok(()),
            Err(_) => Err(AgentError::Ended),
        }
    }

    /// Runs a command there to its end, whatever its exit status.
    ///
    /// # Errors
    /// When it cannot be started, or the other end has gone.
    pub(crate) fn exec(&self, argv: &[OsString]) -> Result<Output, AgentError> {
        let (_, replies) = self.begin(argv)?;
        output(replies.recv().map_err(|_| AgentError::Ended)?)
    }

    /// Begins a command; what it came to is the [`output`] of the only reply.
    ///
    /// # Errors
    /// When the other end has gone.
    pub(crate) fn begin(&self, argv: &[OsString]) -> Result<(u64, Receiver<Reply>), AgentError> {
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned());
        self.ask(Request::Exec {
            argv: argv.collect(),
        })
    }

    /// Has done there what a [`Host`](crate::host::Host) does; `name` is that machine's in errors.
    ///
    /// # Errors
    /// When it cannot be done, or the line breaks.
    pub(crate) fn does<T: DeserializeOwned>(
        &self,
        name: &str,
        verb: Verb,
    ) -> Result<T, AgentError> {
        match self.ask(Request::Do { verb })?.1.recv() {
            Ok(Reply::Did { value }) => serde_json::from_value(value)
                .map_err(|error| AgentError::Refused(error.to_string())),
            Ok(Reply::Unable { told }) => Err(AgentError::Host(told.heard(name))),
            Ok(_) | Err(_) => Err(AgentError::Ended),
        }
    }

    /// Runs a command that has to succeed.
    ///
    /// # Errors
    /// As [`Agent::exec`], and when the exit status is not 0.
    pub(crate) fn must(&self, argv: &[OsString]) -> Result<Output, AgentError> {
        let output = self.exec(argv)?;
        if output.status == Some(0) {
            return Ok(output);
        }
        Err(AgentError::Host(HostError::Failed {
            command: shown(argv),
            output,
        }))
    }

    /// Writes a file there; its directory is made.
    ///
    /// # Errors
    /// When it cannot be written, or the line breaks.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<(), AgentError> {
        let request = Request::Write {
            path: path.to_string(),
            text: text.to_string(),
        };
        self.done(request, PATIENCE)
    }

    /// Starts a command there that reads and prints lines.
    ///
    /// # Errors
    /// When the other end has gone.
    pub(crate) fn follow(&self, argv: &[OsString]) -> Result<Talk<'_>, AgentError> {
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned());
        let (id, replies) = self.ask(Request::Follow {
            argv: argv.collect(),
        })?;
        Ok(Talk {
            agent: self,
            id,
            replies,
        })
    }
}

/// A command under way at the other end, by [`Agent::follow`].
pub(crate) struct Talk<'a> {
    agent: &'a Agent,
    id: u64,
    replies: Receiver<Reply>,
}

/// What is heard of a command.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line it printed.
    Line(String),
    /// It has ended, with what it wrote to standard error.
    Ended(Output),
}

impl Talk<'_> {
    /// Hands it a line.
    ///
    /// # Errors
    /// It has ended, or the other end has gone.
    pub(crate) fn tell(&self, text: &str) -> Result<(), AgentError> {
        let (of, text) = (self.id, text.to_owned());
        self.agent.done(Request::Tell { of, text }, PATIENCE)
    }

    /// What comes of it; none: nothing, for so long.
    ///
    /// # Errors
    /// It could not be started, or the other end has gone.
    pub(crate) fn hear(&self, patience: Duration) -> Result<Option<Heard>, AgentError> {
        match self.replies.recv_timeout(patience) {
            Ok(Reply::Line { text }) => Ok(Some(Heard::Line(text))),
            Ok(last) => output(last).map(|output| Some(Heard::Ended(output))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(AgentError::Ended),
        }
    }

    /// Asks it to end, as Ctrl-C would.
    ///
    /// # Errors
    /// The other end has gone.
    pub(crate) fn interrupt(&self) -> Result<(), AgentError> {
        self.agent
            .done(Request::Interrupt { of: self.id }, PATIENCE)
    }
}

/// What a command came to.
///
/// # Errors
/// It could not be started, or the reply is none to a command.
pub(crate) fn output(reply: Reply) -> Result<Output, AgentError> {
    match reply {
        Reply::Ended {
            status,
            stdout,
            stderr,
            ..
        } => Ok(Output {
            status,
            stdout,
            stderr,
        }),
        Reply::Refused { why } => Err(AgentError::Refused(why)),
        _ => Err(AgentError::Ended),
    }
}

/// Hands each reply to the one who waits for it, until the other end has gone.
fn listen(port: impl Read, waiting: &Waiting) {
    for text in BufReader::new(port).lines() {
        let Ok(text) = text else { return };
        let Ok(reply) = serde_json::from_str::<Numbered<Reply>>(&text) else {
            return;
        };
        if let Some(waiting) = &mut *held(waiting) {
            let last = !matches!(reply.said, Reply::Line { .. });
            if let Some(sender) = waiting.get(&reply.id) {
                // One who no longer waits does not want it.
                let _ = sender.send(reply.said);
            }
            if last {
                waiting.remove(&reply.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_find_their_request_and_a_gone_guest_is_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let agent = Agent::new(ours).unwrap();
        let guest = std::thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut asked = Vec::new();
            for _ in 0..2 {
                let text = lines.next().unwrap().unwrap();
                asked.push(serde_json::from_str::<Numbered<Request>>(&text).unwrap());
            }
            // The second one is answered first.
            for request in asked.iter().rev() {
                let Request::Exec { argv } = &request.said else {
                    panic!("not asked: {request:?}");
                };
                let reply = Reply::Ended {
                    status: Some(0),
                    stdout: argv.join(" "),
                    stderr: String::new(),
                    elapsed_ns: 1,
                };
                let bytes = line(request.id, reply).unwrap();
                (&theirs).write_all(&bytes).unwrap();
            }
        });
        std::thread::scope(|scope| {
            for word in ["first", "second"] {
                let agent = &agent;
                scope.spawn(move || {
                    let output = agent.exec(&[OsString::from(word)]).unwrap();
                    assert_eq!(output.stdout, word);
                });
            }
        });
        guest.join().unwrap();
        let late = agent.exec(&[OsString::from("late")]);
        assert!(matches!(late, Err(AgentError::Ended)));
        assert!(agent.has_ended());
    }
}
