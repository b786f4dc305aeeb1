//! The one outside: talks to the agent in a guest.

use super::LabError;
use super::wire::{Numbered, Reply, Request, line};
use crate::host::{HostError, Output};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who waits for replies, by the number of the request; none: the guest has gone.
type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Reply>>>>>;

/// How long an agent may take to do what takes no time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether a command that is followed is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// The connection to one who does there what it is asked: a guest.
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
    pub(super) fn new(port: UnixStream) -> std::io::Result<Self> {
        Ok(Self::over(port.try_clone()?, port))
    }

    /// Talks over two ends of a connection.
    pub(super) fn over(
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
    pub(super) fn ask(&self, request: Request) -> Result<(u64, Receiver<Reply>), LabError> {
        let id = {
            let mut next = held(&self.next);
            *next += 1;
            *next
        };
        let (sender, replies) = channel();
        match &mut *held(&self.waiting) {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(LabError::Ended),
        };
        let bytes = line(id, request).map_err(|_| LabError::Ended)?;
        let mut port = held(&self.port);
        port.write_all(&bytes).map_err(|_| LabError::Ended)?;
        Ok((id, replies))
    }

    /// Asks for what is done at once; waits for it at most so long.
    pub(super) fn done(&self, request: Request, patience: Duration) -> Result<(), LabError> {
        match self.ask(request)?.1.recv_timeout(patience) {
            Ok(Reply::Refused { why }) => Err(LabError::Refused(why)),
            Ok(_) => Ok(()),
            Err(_) => Err(LabError::Ended),
        }
    }

    /// Runs a command there to its end, whatever its exit status.
    ///
    /// # Errors
    /// When it cannot be started, or the one asked has gone.
    pub(crate) fn exec(&self, argv: &[OsString]) -> Result<Output, LabError> {
        let (_, replies) = self.begin(argv)?;
        output(replies.recv().map_err(|_| LabError::Ended)?)
    }

    /// Begins a command; what it came to is the [`output`] of the only reply.
    pub(super) fn begin(&self, argv: &[OsString]) -> Result<(u64, Receiver<Reply>), LabError> {
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned());
        self.ask(Request::Exec {
            argv: argv.collect(),
        })
    }

    /// Runs a command that has to succeed.
    ///
    /// # Errors
    /// As [`Agent::exec`], and when the exit status is not 0.
    pub(crate) fn must(&self, argv: &[OsString]) -> Result<Output, LabError> {
        let output = self.exec(argv)?;
        if output.status == Some(0) {
            return Ok(output);
        }
        Err(LabError::Host(HostError::Failed {
            command: crate::host::shown(argv),
            output,
        }))
    }

    /// Writes a file there; its directory is made.
    ///
    /// # Errors
    /// When it cannot be written, or the one asked has gone.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<(), LabError> {
        let request = Request::Write {
            path: path.to_string(),
            text: text.to_string(),
        };
        self.done(request, PATIENCE)
    }

    /// Runs a command that keeps a run in a store there; every line of its log is handed to
    /// `each` as it comes. As soon as `stop` says so, once, the command is interrupted.
    ///
    /// # Errors
    /// When it cannot be started, the one asked has gone, or `each` refuses a line.
    pub(crate) fn follow(
        &self,
        argv: &[OsString],
        store: &str,
        stop: &dyn Fn() -> bool,
        each: &mut dyn FnMut(&str) -> Result<(), LabError>,
    ) -> Result<Output, LabError> {
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned());
        let (id, replies) = self.ask(Request::Follow {
            argv: argv.collect(),
            store: store.to_string(),
        })?;
        let mut stopped = false;
        loop {
            if !stopped && stop() {
                stopped = true;
                self.done(Request::Interrupt { of: id }, PATIENCE)?;
            }
            match replies.recv_timeout(LOOK) {
                Ok(Reply::Line { text }) => each(&text)?,
                Ok(last) => return output(last),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(LabError::Ended),
            }
        }
    }
}

/// What a command came to.
pub(super) fn output(reply: Reply) -> Result<Output, LabError> {
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
        Reply::Refused { why } => Err(LabError::Refused(why)),
        _ => Err(LabError::Ended),
    }
}

/// Hands each reply to the one who waits for it, until the guest has gone.
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
        assert!(matches!(late, Err(LabError::Ended)));
    }
}
