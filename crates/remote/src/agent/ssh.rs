//! The way to another machine: the system's own `ssh`, with the user's keys, agent and settings.
//!
//! One connection does it all. A line of shell says what is there; this program is copied if it is
//! not there yet, under a temporary name, and renamed once it runs and says that it is whole; then
//! the shell becomes the worker, and the connection leads to it. Nothing but a POSIX shell is
//! needed there.

mod destination;
mod error;
mod patient;
#[cfg(test)]
mod tests;

pub use destination::Destination;
pub use error::SshError;
pub use patient::StopAsked;
pub(super) use patient::{PatientPipe, is_given_up};

use super::connection::{Connection, ConnectionError};
use super::message::{COORDINATOR, ExecRequest, HEARTBEAT, WorkerRequest};
use super::program::{Program, libc_needed, version};
use super::remote_host::RemoteHost;
use super::router::Router;
use parking_lot::Mutex;
use stackrace_base::bounded::ByteLimit;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::verb::Verb;
use stackrace_machine::host::{Host, HostError, argv};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Options of ssh besides what the user asks: never a question at the terminal, an end to waiting
/// for a machine that does not answer, and for one that has fallen silent, after as long as the
/// worker there waits ([`super::worker::stdio`]).
const OPTIONS: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=20",
    "-o",
    "ServerAliveCountMax=6",
];

/// Begins each line of the shell there that is meant for us; a login may print others.
const MARK: &str = "stackrace: ";

/// Most lines a login may print before the shell answers.
const GREETING_MAX: usize = 1000;

/// Most of one line that a login may print: a path has at most 4 KiB (PATH_MAX).
const GREETING_LINE: ByteLimit = ByteLimit::new(16 << 10);

/// Most bytes kept of what ssh and the shell there say, the last ones.
const SAID_MAX: usize = 4096;

/// Time an ssh whose connection has ended may take to say why and end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Number of questions in turn at which a worker that has not answered is lost.
const UNANSWERED: u32 = 8;

/// Interval between looks meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Exit status of ssh when it has failed itself (ssh(1)).
pub const SSH_FAILED: i32 = 255;

/// Way to reach a machine.
#[derive(Debug, Clone)]
pub struct Way {
    /// Place of the machine.
    pub to: Destination,
    /// The ssh command with options of the user's: `ssh -i key`.
    pub ssh: Vec<String>,
    /// True to be root there, by `sudo`.
    pub sudo: bool,
    /// Seconds of silence after which the worker there ends; `None` for its own time.
    pub silence_s: Option<u32>,
    /// Words of a command that runs those that follow on that machine, with its input and output here:
    /// `srun --nodelist=n1`. `None` if it is reached with ssh.
    pub launcher: Option<Vec<String>>,
    /// Options of the command line that name the machine, and how it is reached.
    pub named_by: Vec<String>,
    /// Says that the machine is not waited for any longer.
    pub stop: StopAsked,
}

/// A machine that is connected to, with this program on it. The connection ends when this is dropped;
/// what the worker there does is then interrupted.
pub struct Remote {
    way: Way,
    connection: Arc<Connection>,
    found: Found,
}

/// Findings of the shell there on its machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    /// `Linux x86_64`.
    system: String,
    /// `glibc 2.36`; empty if it does not say.
    libc: String,
    /// `$SSH_CONNECTION`: address and port of the client, of the server; empty if sshd does not say.
    connection: String,
    /// True if this very program is there and runs.
    have: bool,
    /// Path where it is, or will be.
    program: PathBuf,
    /// The directory of the stores of what is done there from elsewhere.
    stores: PathBuf,
}

impl Remote {
    /// Connects, copies this program there unless it is there, and starts a worker: the machine of a
    /// number.
    ///
    /// # Errors
    /// When ssh cannot, or this program cannot run there.
    pub fn connect(way: &Way, router: &Arc<Router>, machine: u32) -> Result<Self, SshError> {
        let program = Program::own().map_err(|error| {
            SshError::Here(HostError::path("read", Path::new("/proc/self/exe"), error))
        })?;
        let mut process = Process::start(
            &argv(command(way, &program.hash)),
            Path::new("."), // The words for ssh may name a key by a relative path.
            Streams::Pipes,
        )
        .map_err(SshError::Here)?;
        // They were asked for.
        let (input, output, errors) = process.pipes().ok_or_else(|| SshError::Ended {
            to: way.to.clone(),
            said: String::new(),
        })?;
        let mut input = PatientPipe::new(input, &way.stop);
        let mut talk = Login {
            way,
            to: &way.to,
            given_up: false,
            lines: BufReader::new(PatientPipe::new(output, &way.stop)),
            said: SshWords::of(errors),
            process: Mutex::new(process),
        };
        let found = talk.found()?;
        if !found.have {
            check(&way.to, &found, &program)?;
            talk.copy(&mut input, &program.bytes)?;
        }
        talk.ready()?;
        // What a login says to everybody is no reason why the line breaks later.
        talk.said.forget();
        talk.lines.get_mut().wait_for_ever();
        input.wait_for_ever();
        let Login {
            lines,
            said,
            process,
            ..
        } = talk;
        let to = way.to.clone();
        // Ended by the process's own end: dropping it would leave ssh running.
        let why = move |known: Option<&str>| {
            let said = if let Some(known) = known {
                // ssh runs still, and what it brings is not read any more.
                process.lock().kill();
                known.to_owned()
            } else {
                let status = ended(&process);
                Some(said.whole())
                    .filter(|said| !said.is_empty())
                    .unwrap_or_else(|| silent_end(status))
            };
            let to = to.clone();
            let error = SshError::Ended { to, said };
            ConnectionError {
                why: error.to_string(),
                next: error.next(),
            }
        };
        let connection = router.connect(machine, lines, input, Box::new(why));
        beat(&connection);
        Ok(Self {
            way: way.clone(),
            connection,
            found,
        })
    }

    /// Place of the machine, as it was asked for.
    pub fn to(&self) -> String {
        self.way.to.to_string()
    }

    /// The address at which it was reached, as its sshd says.
    pub fn address(&self) -> Option<IpAddr> {
        self.found.connection.split(' ').nth(2)?.parse().ok()
    }

    /// The connection to the worker there.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The machine as a host, reached over this connection.
    pub fn host(&self) -> RemoteHost {
        RemoteHost::direct(self.to(), &self.connection).with_named_by(&self.way.named_by)
    }

    /// A store there for something that is done now: a name of ours, so that it can be removed whole.
    pub fn store(&self, id: &str) -> PathBuf {
        self.found.stores.join(format!("{OURS}{id}"))
    }

    /// The stores that are there, of whatever is done now or was left behind.
    ///
    /// # Errors
    /// When the line breaks.
    pub fn stores(&self) -> Result<Vec<PathBuf>, HostError> {
        self.ours(&self.found.stores)
    }

    /// The directory of the copy that this connection brought there; `None` if it was there before.
    pub fn brought(&self) -> Option<&Path> {
        match self.found.have {
            true => None,
            false => self.found.program.parent(),
        }
    }

    /// The directories there with a copy of this program, of whatever version.
    ///
    /// # Errors
    /// When the line breaks.
    pub fn copies(&self) -> Result<Vec<PathBuf>, HostError> {
        let Some(copies) = self.found.program.ancestors().nth(2) else {
            return Ok(Vec::new());
        };
        self.ours(copies)
    }

    /// Entries of ours in a directory, by name.
    fn ours(&self, directory: &Path) -> Result<Vec<PathBuf>, HostError> {
        let host = self.host();
        // Not `is_dir`: a connection that is lost does not mean that nothing is there.
        let path = directory.to_path_buf();
        if !host.value(ExecRequest::Operation(Verb::IsDir { path }))? {
            return Ok(Vec::new());
        }
        let names = host.list(directory)?;
        let ours = names
            .iter()
            .filter(|name| name.to_string_lossy().starts_with(OURS));
        Ok(ours.map(|name| directory.join(name)).collect())
    }
}

/// Says something every now and then, as long as there is a connection: the worker there ends when it
/// hears nothing for two minutes, and so does what waits for it here.
fn beat(connection: &Arc<Connection>) {
    let connection = Arc::downgrade(connection);
    std::thread::spawn(move || {
        let mut unanswered = 0;
        let mut asked_ns = SystemClock.now_ns();
        loop {
            SystemClock.sleep(HEARTBEAT);
            let Some(connection) = connection.upgrade() else {
                return;
            };
            let now_ns = SystemClock.now_ns();
            let heard_ns = now_ns.saturating_sub(connection.silent_ns());
            // By what was asked, and not by time alone: this program may have been stopped for a while.
            unanswered = match heard_ns >= asked_ns {
                true => 0,
                false => unanswered + 1,
            };
            if unanswered >= UNANSWERED {
                let seconds = HEARTBEAT.as_secs() * u64::from(UNANSWERED);
                return connection.end(Some(&format!("it has said nothing for {seconds} s")));
            }
            asked_ns = now_ns;
            if connection.open(COORDINATOR, &WorkerRequest::Hello).is_err() {
                return;
            }
        }
    });
}

/// The words of the local command that copies this program and starts it.
fn command(way: &Way, hash: &str) -> Vec<String> {
    words(way, &script(hash, way.sudo, way.silence_s))
}

/// The words of the local command that has a login there carry out one line.
pub fn words(way: &Way, script: &str) -> Vec<String> {
    if let Some(launcher) = &way.launcher {
        // What ssh hands to a login shell is one line of it, and so is this.
        let shell = ["sh", "-c", script].map(str::to_owned);
        return launcher.iter().cloned().chain(shell).collect();
    }
    let mut words = way.ssh.clone();
    words.extend(OPTIONS.map(str::to_string));
    if let Some(port) = way.to.port {
        words.extend(["-p".to_string(), port.to_string()]);
    }
    words.extend(["-T".to_string(), way.to.login.clone()]);
    words.push(script.to_owned());
    words
}

/// Commands for the shell there, as one line that any login shell hands on as it is: neither a single quote nor a
/// backslash, line break or exclamation mark is in it.
///
/// Lines of ours that it prints begin with [`MARK`]. The program is read by `head`, which may read
/// further than it must: nothing more is sent until the shell has said `ready`. Directories on the
/// way are made as the user who logs in, also where the worker is then root.
fn script(hash: &str, sudo: bool, silence_s: Option<u32>) -> String {
    let silence = silence_s.map_or_else(String::new, |seconds| format!(" --silence {seconds}"));
    let agent = match sudo {
        true => format!("exec sudo -n \"$p\" agent serve{silence}"),
        false => format!("exec \"$p\" agent serve{silence}"),
    };
    let allowed = match sudo {
        true => "sudo -n true || { echo \"stackrace: sudo no\"; exit 1; }; ",
        false => "",
    };
    format!(
        "exec sh -c 'u=$(umask); umask 077; \
         d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/stackrace/{COPIES}/{OURS}{hash}\"; p=\"$d/stackrace\"; \
         s=\"${{XDG_STATE_HOME:-$HOME/.local/state}}/stackrace/{STORES}\"; \
         {allowed}\
         h=no; if [ -x \"$p\" ] && [ \"$(\"$p\" agent hash 2>/dev/null)\" = {hash} ]; then h=yes; fi; \
         echo \"stackrace: system $(uname -sm)\"; \
         echo \"stackrace: libc $(getconf GNU_LIBC_VERSION 2>/dev/null)\"; \
         echo \"stackrace: connection $SSH_CONNECTION\"; \
         echo \"stackrace: program $p\"; echo \"stackrace: stores $s\"; \
         echo \"stackrace: have $h\"; \
         mkdir -p \"$s\" || exit 1; \
         if [ $h = no ]; then \
         read -r n && [ -n \"$n\" ] || exit 1; \
         t=\"$p.$(uname -n).$$\"; mkdir -p \"$d\" && head -c \"$n\" >\"$t\" && chmod 700 \"$t\" || \
         {{ rm -f \"$t\"; echo \"stackrace: copied no\"; exit 1; }}; \
         f=\"$(\"$t\" agent hash 2>&1)\"; \
         if [ \"$f\" = {hash} ]; then mv -f \"$t\" \"$p\" || exit 1; \
         else rm -f \"$t\"; echo \"$f\" >&2; echo \"stackrace: runs no\"; exit 1; fi; fi; \
         umask $u; echo \"stackrace: ready yes\"; {agent}'"
    )
}

/// Directory of the copies of this program, in the cache of the user there.
const COPIES: &str = "bin";

/// Beginning of the names of what is ours to remove; a copy's hash follows, or what a store is for.
const OURS: &str = ".stackrace-";

/// Directory of the stores of what is done there from elsewhere, in the user's state there.
const STORES: &str = "on";

/// The connection while a shell is at its other end.
struct Login<'a> {
    way: &'a Way,
    to: &'a Destination,
    /// True if it was not waited for any longer.
    given_up: bool,
    lines: BufReader<PatientPipe<ChildStdout>>,
    said: SshWords,
    process: Mutex<Process>,
}

impl Login<'_> {
    /// The next word and value that is meant for us; `None` if the shell has ended.
    fn next(&mut self) -> Option<(String, String)> {
        for _ in 0..GREETING_MAX {
            let line = match GREETING_LINE.line(&mut self.lines) {
                Ok(line) => line?,
                Err(error) if is_given_up(&error) => {
                    self.given_up = true;
                    return None;
                }
                Err(error) => {
                    // What follows would be read as the rest of this line.
                    self.said
                        .add(&format!("what it prints is refused: {error}"));
                    return None;
                }
            };
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end();
            if let Some((word, value)) = text
                .strip_prefix(MARK)
                .and_then(|text| text.split_once(' '))
            {
                return Some((word.to_string(), value.trim().to_string()));
            }
            self.said.add(text);
        }
        None
    }

    fn found(&mut self) -> Result<Found, SshError> {
        let mut found = Found::default();
        while let Some((word, value)) = self.next() {
            match word.as_str() {
                "system" => found.system = value,
                "libc" => found.libc = value,
                "connection" => found.connection = value,
                "program" => found.program = value.into(),
                "stores" => found.stores = value.into(),
                "have" => {
                    found.have = value == "yes";
                    return Ok(found);
                }
                _ => return Err(self.failed(&word)),
            }
        }
        Err(self.failed(""))
    }

    fn copy(
        &mut self,
        input: &mut PatientPipe<ChildStdin>,
        program: &[u8],
    ) -> Result<(), SshError> {
        let length = format!("{}\n", program.len());
        let sent = input
            .write_all(length.as_bytes())
            .and_then(|()| input.write_all(program))
            .and_then(|()| input.flush());
        self.lines.get_mut().begin_anew();
        sent.or_else(|error| {
            self.given_up |= is_given_up(&error);
            match self.given_up {
                true => Err(self.failed("")),
                // Why it was not taken is what the shell there says.
                false => self.ready(),
            }
        })
    }

    /// Waits until the shell there is about to become the worker.
    fn ready(&mut self) -> Result<(), SshError> {
        match self.next() {
            Some((word, _)) if word == "ready" => Ok(()),
            Some((word, _)) => Err(self.failed(&word)),
            None => Err(self.failed("")),
        }
    }

    /// Reason it did not come to a worker; `word` is the last thing the shell there said.
    fn failed(&mut self, word: &str) -> SshError {
        if self.given_up {
            self.process.lock().kill();
            return not_waited_for(self.way, self.said.now());
        }
        let status = ended(&self.process);
        let (to, said) = (self.to.clone(), self.said.whole());
        match word {
            "sudo" => SshError::Sudo { to, said },
            "copied" => SshError::NotCopied { to, said },
            "runs" => SshError::NotRunning { to, said },
            _ if status == Some(SSH_FAILED) => SshError::Unreached { to, said },
            _ => SshError::Ended { to, said },
        }
    }
}

/// The error of a login that was not waited for any longer: the user stopped it, or it took too long.
pub(super) fn not_waited_for(way: &Way, said: String) -> SshError {
    let to = way.to.clone();
    match way.stop.asked() {
        true => SshError::Stopped { to },
        false => SshError::Silent { to, said },
    }
}

/// Refuses a machine on which this program cannot run.
fn check(to: &Destination, found: &Found, program: &Program) -> Result<(), SshError> {
    let here = rustix::system::uname();
    let here = [here.sysname(), here.machine()].map(|word| word.to_string_lossy().into_owned());
    if found.system != here.join(" ") {
        return Err(SshError::Unlike {
            to: to.clone(),
            there: found.system.clone(),
            here: here.join(" "),
        });
    }
    let has = found.libc.strip_prefix("glibc ").and_then(version);
    match (libc_needed(&program.bytes), has) {
        (Some(needs), Some(has)) if needs > has => Err(SshError::Libc {
            to: to.clone(),
            needs: format!("{}.{}", needs.0, needs.1),
            has: format!("{}.{}", has.0, has.1),
        }),
        _ => Ok(()),
    }
}

/// Asks again and again, for so long at most.
fn wait<T>(patience: Duration, answer: impl Fn() -> Option<T>) -> Option<T> {
    let began = SystemClock.now_ns();
    loop {
        let answered = answer();
        let waited = u128::from(SystemClock.now_ns().saturating_sub(began));
        if answered.is_some() || waited >= patience.as_nanos() {
            return answered;
        }
        SystemClock.sleep(LOOK);
    }
}

/// Description of how an ssh ended that said nothing for people.
fn silent_end(status: Option<i32>) -> String {
    match status {
        // ssh(1): its own failures, and the end of the program over there by a signal.
        Some(SSH_FAILED) => "ssh failed without a word, or a signal ended the program there".into(),
        Some(status) => format!("the program there ended without a word (exit status {status})"),
        None => "a signal ended ssh here".into(),
    }
}

/// The exit status of an ssh whose connection has ended; `None` if a signal ended it.
pub fn ended(ssh: &Mutex<Process>) -> Option<i32> {
    if wait(LAST_WORDS, || ssh.lock().ended()).is_none() {
        // It has nothing more to do.
        ssh.lock().kill();
    }
    ssh.lock().ended().and_then(|status| status.code())
}

/// Words of ssh, and of the shell there, for people; the end of them.
pub struct SshWords {
    text: Arc<Mutex<String>>,
    reading: Mutex<Option<JoinHandle<()>>>,
}

impl SshWords {
    /// Reads them from a stream, on a thread of its own.
    pub fn of(errors: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&text);
        let reading = std::thread::spawn(move || {
            let mut lines = BufReader::new(errors);
            let mut line = Vec::new();
            // A line without an end is kept in pieces: only the last of them are needed.
            while (&mut lines)
                .take(SAID_MAX as u64)
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                keep(&kept, String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        });
        Self {
            text,
            reading: Mutex::new(Some(reading)),
        }
    }

    /// Adds a line that a login printed.
    pub fn add(&self, line: &str) {
        keep(&self.text, line);
    }

    fn forget(&self) {
        self.text.lock().clear();
    }

    /// All of it until now.
    pub(super) fn now(&self) -> String {
        self.text.lock().trim().to_string()
    }

    /// All of it, when ssh has ended.
    pub fn whole(&self) -> String {
        let ended = |reading: &Option<JoinHandle<()>>| match reading {
            Some(reading) => reading.is_finished(),
            None => true,
        };
        // A process that ssh left in the background may still hold its end.
        wait(LAST_WORDS, || ended(&self.reading.lock()).then_some(()));
        self.now()
    }
}

fn keep(text: &Mutex<String>, line: &str) {
    let mut text = text.lock();
    text.push_str(line);
    text.push('\n');
    if let Some(over) = text.len().checked_sub(SAID_MAX) {
        let from = text.ceil_char_boundary(over);
        text.drain(..from);
    }
}
