//! A program that is measured: started in a directory, watched to its end, and gone afterwards with
//! all that it began.
//!
//! It has a process group of its own: an interrupt at the terminal reaches this program alone, which
//! then ends the group. What left the group (a server that made a session of its own) comes to this
//! program when its parent ends, whatever its environment is ([`super::adopted`]); `clean` finds it after this
//! program died, by [`DIRECTORY`] in its environment.

use super::{HostError, adopted, process, reading, tools};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use stackrace_base::event::shell;
use stackrace_base::owned::held::with_real_names;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::InWords;
use stackrace_system::child::StoppedProgram;
use stackrace_system::front::ended_for_memory;
use stackrace_system::{hold_process, signal_held};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Names, in the environment of a program, the directory it is to work in.
pub const DIRECTORY: &str = "STACKRACE_DIR";

/// Most bytes kept of what a program prints, from its beginning: a result of any known tool is shorter.
pub const PRINTED_MAX: usize = 8 << 20;
/// Bytes kept of what it says on standard error, from its end.
const ERRORS_MAX: usize = 64 << 10;
/// Pause between checks that the program is to be stopped, ms.
const LOOK_MS: i64 = 20;
/// Longest time that a program that was asked to end may take before it is made to, ns.
const GRACE_NS: u64 = 5_000_000_000;
/// Longest time that its outputs may stay open after its end.
const OUTPUTS: Duration = Duration::from_secs(2);

/// A program to be measured.
pub struct ProgramCall<'a> {
    /// Program and arguments.
    pub argv: &'a [OsString],
    /// Directory in which it works; its real path is in [`DIRECTORY`].
    pub directory: &'a Path,
    /// Further variables of its environment.
    pub environment: &'a [(&'a str, OsString)],
    /// Longest time it may take, ns.
    pub time_max_ns: u64,
    /// True if its time ends only when what it wrote is on the storage.
    pub durable: bool,
    /// True if it starts a server that goes on; whatever else a program leaves running is ended.
    pub leaves_server: bool,
    /// Returns true if it is to be ended.
    pub stopped: &'a dyn Fn() -> bool,
    /// Gets each line that it prints, when it comes; `None` if nothing waits for them.
    pub lines: Option<Sender<HeardLine>>,
}

/// A line that a program printed.
#[derive(Debug)]
pub struct HeardLine {
    /// When it came, ns on the clock that does not stop.
    pub at_ns: u64,
    /// The line, lossy where it is not UTF-8, without its end.
    pub text: String,
}

/// The reason why a program did not come to its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramCut {
    /// Its time was over.
    TimeOver,
    /// A request to stop it.
    Stopped,
}

/// A program that has ended.
#[derive(Debug, Clone, Default)]
pub struct ProgramRun {
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that the kernel ended for want of memory while it ran, of it or of others; 0 where it does not tell.
    pub out_of_memory: u64,
    /// The reason why it was ended; `None` if it ended by itself.
    pub cut: Option<ProgramCut>,
    /// The beginning of what it printed.
    pub stdout: String,
    /// True if it printed more than was kept.
    pub stdout_cut: bool,
    /// The end of what it said on standard error.
    pub stderr: String,
    /// Time from its start to its end, ns.
    pub elapsed_ns: u64,
    /// Processor time of it and of the children it waited for, ns.
    pub cpu_user_ns: u64,
    /// The same in the kernel.
    pub cpu_system_ns: u64,
    /// Bytes that they read by system calls, from files, pipes and terminals; `None` if not known.
    pub read_bytes: Option<u64>,
    /// Bytes that they wrote, likewise.
    pub written_bytes: Option<u64>,
    /// The smallest step of the clock that timed it, ns; 0 if too small to matter.
    pub step_ns: u64,
    /// Processes that it left running, which were ended: `sleep (process 4711)`.
    pub left: Vec<String>,
    /// A program of it that was stopped, on a machine where nothing else would notice.
    pub stopped: Option<StoppedProgram>,
}

/// Runs a program to its end.
///
/// # Errors
/// It is missing or cannot be started.
pub fn run(call: &ProgramCall<'_>) -> Result<ProgramRun, HostError> {
    let not_started = |error: std::io::Error| HostError::NotStarted {
        command: shell(call.argv),
        cause: error.in_words(),
    };
    let real = with_real_names(&call.directory.to_string_lossy());
    let mut start = to_start(call, &real)?;
    // What it leaves comes to this program from here on.
    let orphans = adopted::Orphans::expected(call.leaves_server);
    let ended_before = ended_for_memory();
    let began = SystemClock.now_ns();
    let mut child = process::own(|| start.spawn()).map_err(not_started)?;
    let _awaited = process::AwaitedCommand::of(&child);
    let pid = Pid::from_child(&child);
    let stdout = child.stdout.take().map(|pipe| printed(pipe, call));
    let stderr = child.stderr.take().map(|pipe| kept(pipe, last));
    let held = hold_process(pid).map_err(|errno| not_started(errno.into()))?;
    let cut = watch(call, &held, pid, began)?;
    let ended_ns = SystemClock.now_ns().saturating_sub(began);
    let [read_bytes, written_bytes] = moved(pid);
    if !call.leaves_server {
        // Before it is waited for: until then its number cannot come to mean another group.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let reaped = stackrace_system::child::reap_child(child.id()).map_err(not_started)?;
    let left = orphans.end();
    if !call.leaves_server {
        end_those(&|directory| directory == real);
    }
    // Most programs leave what they wrote in memory, and the fastest memory would win. Not the program's time: that for
    // finding what it left, which grows with all processes of the machine.
    let elapsed_ns = match call.durable && cut.is_none() {
        true => {
            let written = SystemClock.now_ns();
            reading::sync(call.directory)?;
            ended_ns.saturating_add(SystemClock.now_ns().saturating_sub(written))
        }
        false => ended_ns,
    };
    let of = |output: Option<Receiver<(Vec<u8>, bool)>>| {
        let read = output.and_then(|output| output.recv_timeout(OUTPUTS).ok());
        read.unwrap_or_default()
    };
    let ((stdout, stdout_cut), (stderr, _)) = (of(stdout), of(stderr));
    let status = ExitStatus::from_raw(reaped.status);
    Ok(ProgramRun {
        status: status.code(),
        signal: status.signal(),
        out_of_memory: ended_for_memory().saturating_sub(ended_before),
        cut,
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stdout_cut,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        elapsed_ns,
        cpu_user_ns: reaped.cpu_user_ns,
        cpu_system_ns: reaped.cpu_system_ns,
        read_bytes,
        written_bytes,
        step_ns: 0,
        left,
        // The pulse looks at it.
        stopped: None,
    })
}

/// The program as it is started in a directory of this real name: in a group of its own, with its output kept.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the room that starts processes"
)]
fn to_start(call: &ProgramCall<'_>, real: &str) -> Result<std::process::Command, HostError> {
    let mut start = std::process::Command::new(found(call.argv)?);
    start
        .args(call.argv.iter().skip(1))
        .current_dir(call.directory)
        // Figures are read from what it prints: one language, one decimal point.
        .env("LC_ALL", "C")
        .env("PATH", tools::path())
        .envs(call.environment.iter().map(|(name, value)| (name, value)))
        .env(DIRECTORY, real)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(start)
}

fn found(argv: &[OsString]) -> Result<PathBuf, HostError> {
    let tool = argv.first().map(|tool| tool.to_string_lossy());
    let tool = tool.unwrap_or_default();
    // With a slash it is a path, as for a shell; a relative one begins at the directory it works in.
    if tool.contains('/') {
        return Ok(PathBuf::from(&*tool));
    }
    tools::find(&tool).ok_or_else(|| HostError::ToolMissing {
        tool: tool.into_owned(),
        package: None,
    })
}

/// Waits for the end of a program, and brings it about where it must end.
///
/// # Errors
/// It must end, and belongs to another user.
fn watch(
    call: &ProgramCall<'_>,
    held: &OwnedFd,
    pid: Pid,
    began: u64,
) -> Result<Option<ProgramCut>, HostError> {
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_MS * 1_000_000,
    };
    let mut asked: Option<(ProgramCut, u64)> = None;
    loop {
        // pidfd_open(2): it can be read from when the process has ended.
        let ended = poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&look));
        if ended.is_ok_and(|ready| ready > 0) {
            return Ok(asked.map(|(why, _)| why));
        }
        let now = SystemClock.now_ns();
        let why = match (call.stopped)() {
            true => Some(ProgramCut::Stopped),
            false => (now.saturating_sub(began) > call.time_max_ns).then_some(ProgramCut::TimeOver),
        };
        match (asked, why) {
            (None, Some(why)) => {
                asked = Some((why, now));
                // One that ended meanwhile is what was wanted.
                let _ = kill_process_group(pid, Signal::TERM);
            }
            (Some((_, at)), _) if now.saturating_sub(at) > GRACE_NS => {
                let killed = kill_process_group(pid, Signal::KILL);
                // A group of which nothing may be ended: it is not waited for without end.
                let ours = killed != Err(Errno::PERM);
                ours.then_some(()).ok_or_else(|| HostError::NotEnded {
                    command: shell(call.argv),
                    process: pid.as_raw_nonzero().get(),
                })?;
            }
            _ => {}
        }
    }
}

/// Bytes read and written by a program that has ended and was not waited for yet, and by the children
/// that it waited for (proc_pid_io(5)).
fn moved(pid: Pid) -> [Option<u64>; 2] {
    let about = process::about(pid, "io");
    ["rchar: ", "wchar: "].map(|name| {
        let mut lines = about.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    })
}

/// Part of an output that is kept, and true if more came.
type Kept = fn(&mut dyn Read) -> (Vec<u8>, bool);

/// What it prints, kept and, where a call waits for lines, told.
fn printed(pipe: impl Read + Send + 'static, call: &ProgramCall<'_>) -> Receiver<(Vec<u8>, bool)> {
    match call.lines.clone() {
        Some(lines) => kept(Told::new(pipe, lines), first),
        None => kept(pipe, first),
    }
}

/// Most bytes of a line that is told.
const LINE_MAX: usize = 64 << 10;

/// An output of which each line is told when it comes.
struct Told<R> {
    output: R,
    lines: Sender<HeardLine>,
    begun: Vec<u8>,
}

impl<R> Told<R> {
    fn new(output: R, lines: Sender<HeardLine>) -> Self {
        Self {
            output,
            lines,
            begun: Vec::new(),
        }
    }
}

impl<R: Read> Read for Told<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.output.read(buffer)?;
        // After it was read: what is said to have come was there.
        let at_ns = SystemClock.now_ns();
        for byte in &buffer[..count] {
            match byte {
                b'\n' => {
                    let text = String::from_utf8_lossy(&self.begun).into_owned();
                    self.begun.clear();
                    // One that is not waited for any more is not missed.
                    let _ = self.lines.send(HeardLine { at_ns, text });
                }
                byte if self.begun.len() < LINE_MAX => self.begun.push(*byte),
                _ => {}
            }
        }
        Ok(count)
    }
}

/// Reads an output to its end on a thread of its own: a full pipe would stop the program.
fn kept(mut pipe: impl Read + Send + 'static, keep: Kept) -> Receiver<(Vec<u8>, bool)> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Not awaited any more where a program that cannot be found keeps the pipe open.
        let _ = sender.send(keep(&mut pipe));
    });
    receiver
}

fn first(pipe: &mut dyn Read) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    // An error of a pipe is its end.
    let _ = (&mut *pipe)
        .take(PRINTED_MAX as u64)
        .read_to_end(&mut bytes);
    let rest = std::io::copy(pipe, &mut std::io::sink()).unwrap_or(0);
    (bytes, rest > 0)
}

fn last(pipe: &mut dyn Read) -> (Vec<u8>, bool) {
    let mut bytes = VecDeque::new();
    let mut buffer = [0; 4096];
    let mut cut = false;
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        bytes.extend(&buffer[..read]);
        let over = bytes.len().saturating_sub(ERRORS_MAX);
        cut |= over > 0;
        bytes.drain(..over);
    }
    (bytes.into(), cut)
}

/// Ends every process that a dead run's programs left: their directory has the run in its name.
pub(super) fn end_of_run(run: &str) {
    end_those(&|directory| directory.contains(run));
}

/// Ends every process whose environment names such a directory.
pub fn end_those(of: &dyn Fn(&str) -> bool) {
    // Again until there is none: one may start another while it is looked for.
    for _ in 0..10 {
        let found: Vec<OwnedFd> = process::all()
            .filter_map(|id| {
                // Held first: what is read then is of this process, or it has ended.
                let held = hold_process(id).ok()?;
                let environment = process::about(id, "environ");
                let mut variables = environment.split('\0');
                let directory = variables.find_map(|variable| {
                    let value = variable.strip_prefix(DIRECTORY)?;
                    value.strip_prefix('=')
                })?;
                let ours = of(directory) && id != rustix::process::getpid();
                ours.then_some(held)
            })
            .collect();
        if found.is_empty() {
            return;
        }
        for one in &found {
            // One that ended meanwhile is what was wanted.
            let _ = signal_held(one, Signal::KILL);
        }
        for one in &found {
            let second = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let _ = poll(&mut [PollFd::new(one, PollFlags::IN)], Some(&second));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::argv;

    /// What several programs of one process left cannot be told apart: one at a time.
    static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    fn tried(script: &str, time_max_ns: u64, stopped: &dyn Fn() -> bool) -> ProgramRun {
        let _alone = ALONE.lock();
        let base = tempfile::tempdir().unwrap();
        run(&ProgramCall {
            argv: &argv(["sh", "-c", script]),
            directory: base.path(),
            environment: &[("MORE", "x y".into())],
            time_max_ns,
            durable: false,
            leaves_server: false,
            stopped,
            lines: None,
        })
        .unwrap()
    }

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn what_a_program_did_is_known() {
        let script = "pwd -P; echo $STACKRACE_DIR $MORE; head -c 1000000 /dev/zero > a; cat a > b; echo bad >&2; exit 3";
        let ran = tried(script, MINUTE, &|| false);
        assert_eq!((ran.status, ran.signal, ran.cut), (Some(3), None, None));
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines[1], format!("{} x y", lines[0]));
        assert_eq!(ran.stderr, "bad\n");
        assert!(ran.elapsed_ns > 0 && ran.cpu_user_ns + ran.cpu_system_ns > 0);
        // The children's bytes count: 1 MB from /dev/zero, then once more from the file.
        // A process that has ended shows them to root alone.
        let shown = rustix::process::geteuid().is_root();
        assert_eq!(ran.read_bytes.is_some(), shown);
        assert!(ran.read_bytes.is_none_or(|bytes| bytes >= 2_000_000));
        assert!(ran.written_bytes.is_none_or(|bytes| bytes >= 2_000_000));
    }

    #[test]
    fn a_program_ends_with_its_time_and_when_it_is_stopped_with_all_it_began() {
        // The second has a session of its own and keeps the output open.
        let script = "sleep 1000 & setsid sleep 1001 & echo $$; trap '' TERM; sleep 1002";
        let over = tried("sleep 1000", 1, &|| false);
        assert_eq!(over.cut, Some(ProgramCut::TimeOver));
        assert_eq!(over.signal, Some(Signal::TERM.as_raw()));
        let stopped = tried("sleep 1000; exit 1", MINUTE, &|| true);
        assert_eq!(stopped.cut, Some(ProgramCut::Stopped));
        let all = tried(&script.replace("sleep 1002", "exit 0"), MINUTE, &|| false);
        assert_eq!((all.status, all.cut), (Some(0), None));
        let group = Pid::from_raw(all.stdout.trim().parse().unwrap()).unwrap();
        let left =
            process::all().find(|id| process::about(*id, "stat").contains(&format!(" {group} ")));
        let alive = left.is_some_and(|id| !process::about(id, "cmdline").is_empty());
        assert!(!alive, "its group goes on");
    }

    #[test]
    fn what_is_printed_is_bounded_and_the_end_of_the_errors_is_kept() {
        let script = "head -c 9000000 /dev/zero; head -c 200000 /dev/zero >&2; echo the end >&2";
        let ran = tried(script, MINUTE, &|| false);
        assert_eq!((ran.stdout.len(), ran.stdout_cut), (PRINTED_MAX, true));
        assert_eq!(ran.stderr.len(), ERRORS_MAX);
        assert!(ran.stderr.ends_with("the end\n"));
    }

    #[test]
    fn what_a_dead_run_left_is_ended_by_the_name_of_the_run() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("2026-of-this-test");
        std::fs::create_dir(&directory).unwrap();
        let _alone = ALONE.lock();
        let started = run(&ProgramCall {
            argv: &argv(["sh", "-c", "setsid sleep 1003 > /dev/null 2>&1 & echo $!"]),
            directory: &directory,
            environment: &[],
            time_max_ns: MINUTE,
            durable: false,
            leaves_server: true,
            stopped: &|| false,
            lines: None,
        })
        .unwrap();
        let left = Pid::from_raw(started.stdout.trim().parse().unwrap()).unwrap();
        end_of_run("another-run");
        assert!(!process::about(left, "cmdline").is_empty());
        end_of_run("2026-of-this-test");
        assert!(process::about(left, "cmdline").is_empty());
    }

    /// Its environment is its own, its session too, and it holds no pipe by which it could be found.
    #[test]
    fn a_daemon_is_ended_and_named_whatever_its_environment() {
        let place = tempfile::tempdir().unwrap();
        // One that heeds no signal that can be heeded, and one that is stopped. In this test, because all orphans of this
        // process are its own.
        for (seconds, before) in [("1007", ":"), ("1008", "kill -STOP $$")] {
            let begun = place.path().join(seconds);
            let begun = begun.display();
            let daemon = format!(
                "env -i setsid sh -c 'trap : TERM HUP INT; sleep {seconds} & echo > {begun}; {before}; \
                 while :; do wait; done' > /dev/null 2>&1 & \
                 until [ -e {begun} ]; do sleep 0.05; done; sleep 0.1"
            );
            let ran = tried(&daemon, MINUTE, &|| false);
            assert_eq!(ran.left.len(), 2, "{:?}", ran.left);
            let line = format!("sleep\0{seconds}\0");
            assert!(!process::all().any(|id| process::about(id, "cmdline") == line));
        }
        let begun = place.path().join("begun");
        let begun = begun.display();
        // A busy machine takes its time to start it.
        let daemon = format!(
            "env -i setsid sh -c 'sleep 1004 & echo > {begun}; sleep 1005' > /dev/null 2>&1 & \
             until [ -e {begun} ]; do sleep 0.05; done; sleep 0.1"
        );
        let ran = tried(&daemon, MINUTE, &|| false);
        assert_eq!(ran.status, Some(0));
        let alive = |seconds: &str| {
            let line = format!("sleep\0{seconds}\0");
            process::all().any(|id| process::about(id, "cmdline") == line)
        };
        assert!(!alive("1004") && !alive("1005"), "{:?}", ran.left);
        assert!(
            ran.left
                .iter()
                .any(|one| one.starts_with("sleep (process ")),
            "{:?}",
            ran.left
        );
        // What was there before is none of its own.
        let mut other = process::Process::start(
            &argv(["sleep", "1006"]),
            Path::new("/"),
            process::Streams::File("/dev/null"),
        )
        .unwrap();
        assert_eq!(tried("true", MINUTE, &|| false).left, [""; 0]);
        assert!(other.ended().is_none());
        other.kill();
    }

    #[test]
    fn a_missing_program_is_named() {
        let nothing = argv(["no-such-program"]);
        let call = ProgramCall {
            argv: &nothing,
            directory: Path::new("/"),
            environment: &[],
            time_max_ns: MINUTE,
            durable: false,
            leaves_server: false,
            stopped: &|| false,
            lines: None,
        };
        let error = run(&call).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not installed");
    }
}
