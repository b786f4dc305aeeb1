//! A line to `sh` on another machine: scripts go there one at a time, and each has one answer.
//!
//! Every answer stands between marks that hold digits drawn for this line. What a command prints cannot
//! hold them, so that it ends no answer early.

use super::quoted;
use crate::agent::ssh::{
    Destination, PatientPipe, SSH_FAILED, SshError, SshWords, Way, ended, is_given_up,
    not_waited_for, words,
};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stackrace_base::event::{again, shell};
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{Host, HostError, argv, local::LocalHost};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;

/// Digits for a line, which nothing that a command prints can hold.
pub(super) fn digits() -> Result<String, HostError> {
    let here = LocalHost::new(Arc::new(|_| ()));
    Ok(format!("{}{}", here.nonce()?, here.nonce()?))
}

/// Most bytes of one line of an answer that are read at a time.
const PIECE_MAX: u64 = 64 << 10;

/// Most lines that a login may print before the shell answers.
const GREETING_MAX: usize = 1000;

/// Interval between questions whether to go on waiting, while an answer is waited for.
const LOOK_NS: i64 = 20_000_000;

/// Directories of administrators' commands, on the systems that [`super`] is for; a login over ssh may not look there.
const PLACES: &str =
    "/sbin:/usr/sbin:/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/pkg/sbin:/usr/pkg/bin";

/// Reasons no answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The connection ended: the words of ssh.
    Broken(String),
    /// The answer was not waited for any longer.
    GivenUp,
    /// What answers is no shell that can be used.
    NoShell,
}

/// Prints `own` where a command has a process group of its own.
const OWN_GROUP: &str = "exec sh -c 'kill -0 -$$ && echo own'";

/// The first word of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// It has a process group of its own.
    Own,
    /// It has none, and setsid(1) is there to begin one.
    Begins,
    /// It is in a group with others.
    Shares,
    /// There is no `/dev/null`, the input of every command: none would run, and none would say why.
    NoNull,
}

impl Greeting {
    const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Begins => "begins",
            Self::Shares => "shares",
            Self::NoNull => "null",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let mut all = [Self::Own, Self::Begins, Self::Shares, Self::NoNull].into_iter();
        all.find(|greeting| greeting.word() == word)
    }
}

/// Result of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellAnswer {
    /// The beginning of what it printed.
    pub(super) out: Vec<u8>,
    /// Number of further bytes it printed.
    pub(super) dropped: u64,
    /// Exit status as a shell has it.
    pub(super) status: i32,
    /// Text on standard error, without the line breaks at its end.
    pub(super) errors: String,
}

/// A part of an answer, up to a mark.
pub(super) struct ShellSection {
    /// Its beginning.
    pub(super) kept: Vec<u8>,
    /// Number of further bytes there were.
    pub(super) dropped: u64,
    /// Text behind the mark.
    pub(super) says: String,
}

/// A connection with a shell at its other end. The shell ends when this is dropped.
pub(super) struct ShellLine {
    digits: String,
    input: ChildStdin,
    output: BufReader<PatientPipe<ChildStdout>>,
    said: SshWords,
    process: Mutex<Process>,
}

impl Drop for ShellLine {
    fn drop(&mut self) {
        // Its end of the connection closes with it, which the shell there takes for the end of its input.
        self.process.lock().kill();
    }
}

impl ShellLine {
    /// Connects and waits until the shell there answers. `digits` are drawn for this line; `name` is
    /// what the shell is called in a list of processes there.
    ///
    /// # Errors
    /// It is not reached, or what answers is no POSIX shell with a process group of its own.
    pub(super) fn open(way: &Way, digits: &str, name: &str) -> Result<Self, SshError> {
        // One word of any login shell after another, csh included; with -s the words behind are no
        // file, and show whose shell it is.
        let command = argv(words(way, &format!("exec sh -s {name}")));
        // Here: the words for ssh may name a key by a relative path.
        let process = Process::start(&command, Path::new("."), Streams::Pipes);
        let mut process = process.map_err(SshError::Here)?;
        let (input, output, errors) = process.pipes().ok_or_else(|| SshError::Ended {
            to: way.to.clone(),
            said: String::new(),
        })?;
        let mut line = Self {
            digits: digits.to_owned(),
            input,
            output: BufReader::new(PatientPipe::new(output, &way.stop)),
            said: SshWords::of(errors),
            process: Mutex::new(process),
        };
        match line.greeted(name) {
            Ok(Greeting::Own) => Ok(line),
            Ok(Greeting::NoNull) => Err(SshError::NoNull { to: way.to.clone() }),
            Err(NoAnswer::GivenUp) => Err(not_waited_for(way, line.said.now())),
            // Without a group of its own, ending a program would end what else is in that group.
            Ok(Greeting::Begins | Greeting::Shares) | Err(NoAnswer::NoShell) => {
                Err(no_shell(way, line.said.whole()))
            }
            Err(NoAnswer::Broken(said)) => Err(line.unreached(way, said)),
        }
    }

    /// Sets the shell up, with a process group of its own, and waits for its word.
    fn greeted(&mut self, name: &str) -> Result<Greeting, NoAnswer> {
        let greeting = self.greeting()?;
        if greeting != Greeting::Begins {
            return Ok(greeting);
        }
        // An ssh server that starts no session for a command without a terminal, as dropbear does.
        // The old shell may read ahead what is sent before the new one is there, which says so.
        let (digits, begun) = (&self.digits, Greeting::Own.word());
        let again = format!("printf '\\n%s hello {begun}\\n' {digits}; exec sh -s {name}");
        let again = quoted(again.as_ref());
        self.send(&format!("exec setsid sh -c {again}\n"))?;
        self.hello()?;
        self.greeting()
    }

    /// Sets a shell up, and waits for its word.
    fn greeting(&mut self) -> Result<Greeting, NoAnswer> {
        let digits = self.digits.clone();
        let [own, begins, shares, null] = [
            Greeting::Own,
            Greeting::Begins,
            Greeting::Shares,
            Greeting::NoNull,
        ]
        .map(Greeting::word);
        // Standard error is kept in a variable, so that no file is needed. Descriptor 4 is the way
        // back, which a command gets as its standard output alone.
        let begin = format!(
            "LC_ALL=C; export LC_ALL; umask 077; unset CDPATH ENV; PATH=${{PATH:-}}:{PLACES}; export PATH; exec 3<&0 4>&1\n\
             stackrace_run() {{ printf '\\n%s begin\\n' {digits}; \
             stackrace_e=$( ( eval \"$1\" ) 2>&1 >&4 4>&- 3<&- </dev/null ); stackrace_s=$?; \
             printf '\\n%s end %s\\n%s\\n%s done\\n' {digits} \"$stackrace_s\" \"$stackrace_e\" {digits}; }}\n\
             if [ ! -c /dev/null ]; then stackrace_g={null}; \
             elif kill -0 -$$ 2>/dev/null; then stackrace_g={own}; \
             elif command -v setsid >/dev/null 2>&1; then stackrace_g={begins}; \
             else stackrace_g={shares}; fi; \
             printf '\\n%s hello %s\\n' {digits} \"$stackrace_g\"\n"
        );
        self.send(&begin)?;
        self.hello()
    }

    /// Waits for the first word of a shell.
    fn hello(&mut self) -> Result<Greeting, NoAnswer> {
        let mark = format!("{} hello ", self.digits);
        for _ in 0..GREETING_MAX {
            let piece = self.piece(&|| true)?;
            let text = String::from_utf8_lossy(&piece);
            match text.trim_end().strip_prefix(&mark) {
                Some(word) => return Greeting::of(word).ok_or(NoAnswer::NoShell),
                None => self.said.add(text.trim_end()),
            }
        }
        Err(NoAnswer::NoShell)
    }

    /// Waits for whatever is asked from here on, as long as it takes.
    pub(super) fn wait_for_ever(&mut self) {
        self.output.get_mut().wait_for_ever();
    }

    /// Sends a script that answers by itself, between marks of this line.
    pub(super) fn send(&mut self, script: &str) -> Result<(), NoAnswer> {
        let sent = self.input.write_all(script.as_bytes());
        let sent = sent.and_then(|()| self.input.flush());
        sent.map_err(|_| self.broken())
    }

    /// The marks of this line.
    pub(super) fn digits(&self) -> &str {
        &self.digits
    }

    /// Runs a script to its end; at most so many bytes of what it prints are kept.
    pub(super) fn run(&mut self, script: &str, kept_max: usize) -> Result<ShellAnswer, NoAnswer> {
        self.send(&format!("stackrace_run {}\n", quoted(script.as_ref())))?;
        let always = || true;
        self.section("begin", 0, &always)?;
        let out = self.section("end", kept_max, &always)?;
        let errors = self.section("done", kept_max, &always)?;
        Ok(ShellAnswer {
            out: out.kept,
            dropped: out.dropped,
            // What is no number is no status of a shell.
            status: out.says.parse().unwrap_or(-1),
            errors: String::from_utf8_lossy(&errors.kept).into_owned(),
        })
    }

    /// Reads up to the mark with a word; at most so many bytes of what stands before it are kept.
    pub(super) fn section(
        &mut self,
        word: &str,
        kept_max: usize,
        waits: &dyn Fn() -> bool,
    ) -> Result<ShellSection, NoAnswer> {
        let mark = format!("{} {word}", self.digits);
        let (mut kept, mut dropped, mut at_start) = (Vec::new(), 0_u64, true);
        loop {
            let piece = self.piece(waits)?;
            let text = String::from_utf8_lossy(&piece);
            let marked = text.trim_end().strip_prefix(&mark);
            if let Some(says) = marked.filter(|_| at_start) {
                // The line break before the mark is the mark's.
                if kept.last() == Some(&b'\n') && dropped == 0 {
                    kept.pop();
                }
                let says = says.trim().to_owned();
                return Ok(ShellSection {
                    kept,
                    dropped,
                    says,
                });
            }
            at_start = piece.last() == Some(&b'\n');
            let room = kept_max.saturating_sub(kept.len()).min(piece.len());
            kept.extend_from_slice(&piece[..room]);
            dropped += (piece.len() - room) as u64;
        }
    }

    /// The next line, or the next part of a long one.
    fn piece(&mut self, waits: &dyn Fn() -> bool) -> Result<Vec<u8>, NoAnswer> {
        // While it logs in, the pipe itself has an end of waiting.
        while self.output.buffer().is_empty() && self.output.get_ref().waits_for_ever() {
            let look = Timespec {
                tv_sec: 0,
                tv_nsec: LOOK_NS,
            };
            let ready = poll(
                &mut [PollFd::new(self.output.get_ref(), PollFlags::IN)],
                Some(&look),
            );
            if ready.is_ok_and(|ready| ready > 0) {
                break;
            }
            if !waits() {
                return Err(NoAnswer::GivenUp);
            }
        }
        let mut piece = Vec::new();
        let read = (&mut self.output)
            .take(PIECE_MAX)
            .read_until(b'\n', &mut piece);
        match read {
            Ok(1..) => Ok(piece),
            Err(error) if is_given_up(&error) => Err(NoAnswer::GivenUp),
            _ => Err(self.broken()),
        }
    }

    /// Reason the connection ended, when it has.
    fn broken(&self) -> NoAnswer {
        ended(&self.process);
        NoAnswer::Broken(self.said.whole())
    }

    /// Reason it did not come to an answer.
    fn unreached(&self, way: &Way, said: String) -> SshError {
        match ended(&self.process) {
            Some(SSH_FAILED) => SshError::Unreached {
                to: way.to.clone(),
                said,
            },
            _ => no_shell(way, said),
        }
    }
}

fn no_shell(way: &Way, said: String) -> SshError {
    SshError::NoShell {
        to: way.to.clone(),
        by_hand: shell(&words(way, OWN_GROUP)),
        said,
    }
}

/// The error of a machine that does not answer a question while it is connected to.
pub(super) fn unanswered(way: &Way, why: &NoAnswer, script: &str) -> SshError {
    let said = format!("`{script}` was not answered");
    match why {
        NoAnswer::GivenUp => not_waited_for(way, said),
        NoAnswer::Broken(_) | NoAnswer::NoShell => no_shell(way, said),
    }
}

/// The error of a line that broke in the middle of something.
pub(super) fn lost(to: &Destination, said: &str) -> HostError {
    HostError::Elsewhere {
        host: to.to_string(),
        said: format!("the connection ended; said last: {}", last_line(said)),
        next: format!(
            "when it answers again: {}",
            again(&["clean", "--on", &to.to_string(), "--agent", "none"])
        ),
        kind: std::io::ErrorKind::NotConnected,
    }
}

/// The last of what was said.
fn last_line(said: &str) -> &str {
    match said.trim().lines().next_back() {
        Some(line) => line,
        None => "ssh said nothing",
    }
}
