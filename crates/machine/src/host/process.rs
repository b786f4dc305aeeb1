//! A program that goes on while this one does something else: a virtual machine, a command that is
//! followed, a run that the page started. Like every command it has a process group of its own, which
//! Ctrl-C does not reach. Also processes that are not our children: find them, and end them.

use super::error::HostError;
use super::{reading, tools};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustix::process::{Pid, Signal, getpid, kill_process};
use stackrace_base::event::shell;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::InWords;
use stackrace_base::unit::{ShownPath, signs};
use stackrace_system::{hold_process, signal_held};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

/// Input and outputs of a program.
#[derive(Debug, Clone, Copy)]
pub enum Streams<'a> {
    /// No input; both outputs, in the C locale, go to a new file in the directory it works in.
    File(&'a str),
    /// No input; both outputs go to an open file, in the user's own language.
    Open(&'a File),
    /// All three are read and written by this program: see [`Process::pipes`].
    Pipes,
    /// Streams of this program: it is used at the terminal, in the user's own language, and shares its process group.
    Ours,
}

/// Letters of a command line that are shown: enough to know it by.
const COMMAND_SHOWN: usize = 120;
/// Time between two looks at whether a process has ended.
const END_LOOK: Duration = Duration::from_millis(20);

/// A program under way. Dropping it leaves it running.
#[derive(Debug)]
pub struct Process {
    child: Child,
    command: String,
}

impl Process {
    /// Starts a program in a directory.
    ///
    /// # Errors
    /// When it is missing or cannot be started.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the room that starts processes"
    )]
    pub fn start(
        command: &[OsString],
        directory: &Path,
        streams: Streams<'_>,
    ) -> Result<Self, HostError> {
        let words = shell(command);
        let not_started = |error: std::io::Error| HostError::NotStarted {
            command: words.clone(),
            cause: error.in_words(),
        };
        let tool = command.first().map(OsString::as_os_str).unwrap_or_default();
        let tool = tool.to_string_lossy();
        let program = if Path::new(&*tool).is_absolute() {
            PathBuf::from(&*tool)
        } else {
            tools::find(&tool).ok_or_else(|| HostError::ToolMissing {
                tool: tool.clone().into_owned(),
                package: None,
            })?
        };
        let mut start = std::process::Command::new(program);
        start.args(command.iter().skip(1)).current_dir(directory);
        let to = |start: &mut std::process::Command, file: File| {
            let errors = file.try_clone()?;
            start.stdin(Stdio::null()).stdout(file).stderr(errors);
            Ok(())
        };
        match streams {
            Streams::File(name) => {
                File::create(directory.join(name)).and_then(|file| to(&mut start, file))
            }
            Streams::Open(file) => file.try_clone().and_then(|file| to(&mut start, file)),
            Streams::Pipes => {
                start.stdin(Stdio::piped());
                start.stdout(Stdio::piped()).stderr(Stdio::piped());
                Ok(())
            }
            Streams::Ours => Ok(()),
        }
        .map_err(not_started)?;
        if !matches!(streams, Streams::Ours) {
            // Ctrl-C at the terminal is for this program, which then ends its children in order.
            start.process_group(0);
        }
        if !matches!(streams, Streams::Open(_) | Streams::Ours) {
            // Output that is read must be in one language; what a user sees keeps theirs.
            start.env("LC_ALL", "C");
        }
        // A command of a run may start it (`lab mount-afp`). It outlives the run, so it must not have
        // the run's mark: `clean` would wait for its end.
        start.env_remove(MARK);
        let child = own(|| start.spawn()).map_err(not_started)?;
        Ok(Self {
            child,
            command: words,
        })
    }

    /// The number of the process, as the kernel has it.
    #[cfg(test)]
    fn id(&self) -> u32 {
        self.child.id()
    }

    /// The numbers of the process and of those that it started: one that is in front lets another one work.
    pub fn ids(&self) -> Vec<u32> {
        let own = Pid::from_child(&self.child);
        let others = all().filter(|id| parent(*id) == Some(own));
        let ids = std::iter::once(own).chain(others);
        ids.map(|id| id.as_raw_nonzero().get().unsigned_abs())
            .collect()
    }

    /// The command as it would be typed.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its standard input, output and error where they are [`Streams::Pipes`]; once.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        let child = &mut self.child;
        Some((
            child.stdin.take()?,
            child.stdout.take()?,
            child.stderr.take()?,
        ))
    }

    /// Status with which it ended; `None` if it is running.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        // A child of ours that cannot be asked is gone.
        self.child.try_wait().unwrap_or_default()
    }

    /// The same where it ends within a time.
    pub fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = SystemClock
            .now_ns()
            .saturating_add(patience.as_nanos() as u64);
        while self.ended().is_none() && SystemClock.now_ns() < until {
            SystemClock.sleep(END_LOOK);
        }
        self.ended()
    }

    /// Waits for its end.
    #[cfg(test)]
    fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Ends it at once, whatever it is doing, and waits until it is gone.
    pub fn kill(&mut self) {
        // One that has ended by itself is what was wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process by its number and the time it was started, as the kernel has it: numbers come back.
pub(super) type KnownProcess = (i32, String);

/// Children that this program started itself.
static OWN: RwLock<BTreeSet<KnownProcess>> = RwLock::new(BTreeSet::new());

/// Starts a child of this program's own.
///
/// # Errors
/// The system's.
pub(super) fn own(start: impl FnOnce() -> std::io::Result<Child>) -> std::io::Result<Child> {
    // Held until it is known: it must not be taken for an orphan meanwhile.
    let mut own = OWN.write();
    // Those that are gone are none any more: a run of days starts many.
    own.retain(is_there);
    let child = start()?;
    own.insert(known(Pid::from_child(&child)));
    Ok(child)
}

/// Counts a process that came to this program as one of its own: it is to go on.
pub(super) fn keep_as_own(id: Pid) {
    OWN.write().insert(known(id));
}

/// The children that this program started itself; none is started as long as they are looked at.
pub(super) fn own_children() -> RwLockReadGuard<'static, BTreeSet<KnownProcess>> {
    OWN.read()
}

/// Returns what tells a process from a later one of its number.
pub(super) fn known(id: Pid) -> KnownProcess {
    // Field 22 of `stat` (proc_pid_stat(5)): ticks since the start of the machine.
    (id.as_raw_nonzero().get(), status(id, 19))
}

fn is_there(process: &KnownProcess) -> bool {
    Pid::from_raw(process.0).is_some_and(|id| known(id) == *process)
}

/// Commands that this program waits for the end of, by number.
static AWAITED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A command whose end is waited for as long as this lives.
pub(super) struct AwaitedCommand(u32);

impl AwaitedCommand {
    pub(super) fn of(child: &Child) -> Self {
        Self::numbered(child.id())
    }

    /// One that a dead run left, which is no child of this program.
    pub(super) fn left_behind(id: Pid) -> Self {
        Self::numbered(number(id))
    }

    fn numbered(number: u32) -> Self {
        AWAITED.lock().push(number);
        Self(number)
    }
}

impl Drop for AwaitedCommand {
    fn drop(&mut self) {
        AWAITED.lock().retain(|number| *number != self.0);
    }
}

/// Commands that this program waits for the end of, each with its number, which is that of its process group, and its
/// command line as it is shown.
pub fn awaited() -> Vec<(u32, String)> {
    let numbers = AWAITED.lock().clone();
    let line = |number: u32| Some((number, line_of(Pid::from_raw(number.try_into().ok()?)?)));
    numbers.into_iter().filter_map(line).collect()
}

/// Processes that this program started, and those below them, that a signal has stopped: each as a text for people,
/// `fio job (process 4711)`.
pub fn stopped() -> Vec<String> {
    let own: Vec<KnownProcess> = OWN.read().iter().cloned().collect();
    let own = own.into_iter().filter(is_there);
    let mut found: Vec<Pid> = own.filter_map(|(id, _)| Pid::from_raw(id)).collect();
    let mut at = 0;
    while let Some(id) = found.get(at) {
        let more: Vec<Pid> = children(*id).filter(|id| !found.contains(id)).collect();
        found.extend(more);
        at += 1;
    }
    // proc_pid_stat(5). Not `t`: under strace a program is in it at each of its calls.
    found.retain(|id| status(*id, 0) == "T");
    found.into_iter().map(named).collect()
}

/// A process as it is named to people: `sleep 5 (process 4711)`.
pub(super) fn named(id: Pid) -> String {
    format!("{} (process {})", line_of(id), number(id))
}

/// Children of a process, where the kernel lists them: to look through all processes takes too long beside what is
/// measured.
fn children(of: Pid) -> impl Iterator<Item = Pid> {
    let threads = PathBuf::from(format!("/proc/{}/task", of.as_raw_nonzero()));
    let threads = reading::list(&threads).map(|names| (threads, names));
    let files = threads.into_iter().flat_map(|(below, names)| {
        let path = move |name: OsString| below.join(name).join("children");
        names.into_iter().map(path)
    });
    let lists = files.filter_map(|file| reading::text(&file).ok());
    let numbers = lists.flat_map(|list| {
        let words = list.split_whitespace().map(str::parse);
        words.flatten().collect::<Vec<i32>>()
    });
    numbers.filter_map(Pid::from_raw)
}

/// The process that holds a lock (`flock`) on what is open here, with its command, as a text for people; `None` where
/// the kernel does not tell: no `/proc`, or a process of another name space.
pub fn locker(file: &File) -> Option<String> {
    let of = file.metadata().ok()?;
    let (major, minor) = stackrace_system::device_parts(of.dev());
    let place = format!("{major:02x}:{minor:02x}:{}", of.ino());
    // `1: FLOCK ADVISORY WRITE 4711 fe:00:131 0 EOF` (proc_locks(5)).
    let locks = reading::text(Path::new("/proc/locks")).ok()?;
    let number = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, number, at, ..] if at == place => number.parse().ok(),
            _ => None,
        }
    })?;
    Some(format!(
        "process {number}: {}",
        line_of(Pid::from_raw(number)?)
    ))
}

/// The command line of a process, as it is shown.
fn line_of(id: Pid) -> String {
    let line = about(id, "cmdline");
    let line = line.trim_end_matches('\0').replace('\0', " ");
    signs(&line).chars().take(COMMAND_SHOWN).collect()
}

/// Processes below this one, children of children too, each with its number and command line as it is shown.
pub fn below() -> Vec<(u32, String)> {
    let found = below_of(getpid());
    let below = found.iter().skip(1);
    below.map(|id| (number(*id), line_of(*id))).collect()
}

/// The numbers of a process and of all below it; empty if there is no such process.
pub fn with_below(of: u32) -> Vec<u32> {
    let of = of.try_into().ok().and_then(Pid::from_raw);
    let of = of.filter(|of| parent(*of).is_some() || number(*of) == 1);
    let found = of.map_or_else(Vec::new, below_of);
    found.into_iter().map(number).collect()
}

/// Whether a process has not ended yet.
pub fn runs(process: u32) -> bool {
    let Some(id) = process.try_into().ok().and_then(Pid::from_raw) else {
        return false;
    };
    let threads = reading::list(Path::new(&format!("/proc/{process}/task")));
    // Its first thread may have ended while others go on.
    threads.is_ok_and(|threads| threads.len() > 1)
        || !matches!(status(id, 0).as_str(), "" | "Z" | "X")
}

fn number(id: Pid) -> u32 {
    id.as_raw_nonzero().get().cast_unsigned()
}

/// A process, and all below it.
fn below_of(id: Pid) -> Vec<Pid> {
    let mut others: Vec<(Pid, Pid)> = all().filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![id];
    // Those whose parent is known by now, until there are no more: numbers are in no order.
    loop {
        let known = found.len();
        others.retain(|(id, parent)| {
            let is_below = found.contains(parent);
            found.extend(is_below.then_some(*id));
            !is_below
        });
        if found.len() == known {
            return found;
        }
    }
}

/// Every process there is.
pub(super) fn all() -> impl Iterator<Item = Pid> {
    let names = reading::list(Path::new("/proc")).unwrap_or_default();
    names
        .into_iter()
        .filter_map(|name| Pid::from_raw(name.to_str()?.parse().ok()?))
}

/// Text of a file of `/proc` about a process; empty if it is gone, or belongs to another user.
pub(super) fn about(id: Pid, what: &str) -> String {
    let path = format!("/proc/{}/{what}", id.as_raw_nonzero());
    reading::text(Path::new(&path)).unwrap_or_default()
}

/// The session a process is in; empty if it is gone. Not by getsid(2), which says 0 of a session
/// that this name space of processes does not have, and 0 is no process.
pub(super) fn session(id: Pid) -> String {
    status(id, 3)
}

/// The parent of a process; `None` if it is gone, or has none here.
pub(super) fn parent(id: Pid) -> Option<Pid> {
    Pid::from_raw(status(id, 1).parse().ok()?)
}

/// One word of `/proc/PID/stat`, `4711 (name) S PARENT GROUP SESSION …`, from 0 behind the name.
fn status(id: Pid, at: usize) -> String {
    let status = about(id, "stat");
    // A name may have brackets of its own.
    let after_name = status.rsplit(')').next().unwrap_or_default();
    let mut words = after_name.split_whitespace();
    words.nth(at).unwrap_or_default().to_owned()
}

/// Processes whose program is called `program…` and whose command line names a path.
pub(super) fn naming(program: &str, path: &Path) -> Vec<Pid> {
    let path = path.to_string_lossy();
    let names_it = |id: &Pid| {
        let line = about(*id, "cmdline");
        let mut words = line.split('\0');
        let name = words.next().map(Path::new).and_then(Path::file_name);
        name.and_then(OsStr::to_str)
            .is_some_and(|name| name.starts_with(program))
            // By the directory of the run, which is on its command line: a name alone would also
            // find machines of others.
            && words.any(|word| word.contains(&*path))
    };
    all().filter(names_it).collect()
}

/// Ends the processes [`naming`] finds; none is fine. True: none is left.
pub(super) fn end(program: &str, path: &Path) -> bool {
    for id in naming(program, path) {
        // One that ended meanwhile is what was wanted.
        let _ = kill_process(id, Signal::KILL);
    }
    naming(program, path).is_empty()
}

/// Sends SIGINT, as Ctrl-C does, to a process that has a file open; to another one that has come to
/// its number meanwhile, never.
///
/// # Errors
/// There is no such process, it does not have the file open as far as we may see, or the system
/// refuses; one sentence.
pub fn interrupt_holder(pid: u32, file: &Path) -> Result<(), String> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| format!("{pid} is no process"))?;
    // Held from here on, so that the number cannot come to mean another process.
    let held = hold_process(number).map_err(|errno| {
        format!(
            "process {pid} cannot be reached: {errno}",
            errno = errno.in_words()
        )
    })?;
    let wanted = std::fs::metadata(file)
        .map_err(|error| format!("{}: {error}", file.shown(), error = error.in_words()))?;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| {
        format!(
            "process {pid} cannot be looked at: {error}",
            error = error.in_words()
        )
    })?;
    let holds = open.flatten().any(|entry| {
        let is_it =
            |found: std::fs::Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
        std::fs::metadata(entry.path()).is_ok_and(is_it) && is_written(pid, &entry.file_name())
    });
    if !holds {
        return Err(format!(
            "process {pid} does not have {} open to write it",
            file.shown()
        ));
    }
    signal_held(&held, Signal::INT).map_err(|errno| {
        format!(
            "process {pid} cannot be signalled: {errno}",
            errno = errno.in_words()
        )
    })
}

/// Most holders named in an error.
const HOLDERS_MAX: usize = 8;

/// Names, in the environment of a command, the run it belongs to: `ID in session 4711`.
pub(super) const MARK: &str = "STACKRACE_RUN";

/// Looks through every process this user may look into; a socket is a path, too (`socket:[4711]`).
pub(super) fn holders(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for process in reading::list(Path::new("/proc")).unwrap_or_default() {
        if !process.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let about = Path::new("/proc").join(&process);
        let open = reading::list(&about.join("fd")).unwrap_or_default();
        let links = open
            .iter()
            .map(|number| about.join("fd").join(number))
            .chain(["cwd", "root", "exe"].map(|name| about.join(name)));
        if links
            .filter_map(|link| std::fs::read_link(link).ok())
            .any(|target| target.starts_with(path))
        {
            let name = reading::text(&about.join("comm")).unwrap_or_default();
            found.push(format!(
                "{} (process {})",
                name.trim(),
                OsStr::display(&process)
            ));
            // Enough to act on; a busy directory may have hundreds.
            if found.len() == HOLDERS_MAX {
                break;
            }
        }
    }
    found
}

/// Returns true if a process may write through one of its open files. One that only reads a log, a
/// pager for example, does not run what the log is about.
fn is_written(pid: u32, number: &OsStr) -> bool {
    let path = Path::new("/proc")
        .join(pid.to_string())
        .join("fdinfo")
        .join(number);
    let about = reading::text(&path).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS != READ_ONLY)
}

/// The bits of a file's flags that say how it was opened, and their value for reading alone
/// (`open(2)`, `proc_pid_fdinfo(5)`).
const ACCESS: u32 = 3;
const READ_ONLY: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::argv;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_process_is_found_by_what_it_names_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        std::fs::write(&mark, "").unwrap();
        let command = argv([OsStr::new("tail"), OsStr::new("-f"), mark.as_os_str()]);
        let mut process = Process::start(&command, dir.path(), Streams::File("out")).unwrap();
        // Until its program is loaded, a new process has the command line of this test.
        while naming("tail", &mark).is_empty() {
            std::thread::yield_now();
        }
        assert!(naming("qemu-system-", &mark).is_empty(), "another program");
        end("tail", &mark);
        assert!(!process.wait().unwrap().success());
        assert!(end("tail", &mark));
        assert!(process.ended().is_some());
    }

    fn started(words: &[&str]) -> (Process, tempfile::NamedTempFile) {
        let said = tempfile::NamedTempFile::new().unwrap();
        let streams = Streams::Open(said.as_file());
        let process = Process::start(&argv(words), Path::new("."), streams).unwrap();
        (process, said)
    }

    #[test]
    fn what_a_program_says_and_how_it_ended_is_kept() {
        let (mut process, said) = started(&["sh", "-c", "echo out; echo err >&2; exit 3"]);
        assert_eq!(process.wait().unwrap().code(), Some(3));
        assert_eq!(std::fs::read_to_string(said.path()).unwrap(), "out\nerr\n");
        let nowhere = argv(["/nowhere"]);
        Process::start(&nowhere, Path::new("."), Streams::Ours).unwrap_err();
    }

    #[test]
    fn only_the_process_that_holds_the_file_is_stopped() {
        // Who starts us in the background may have SIGINT ignored, and that is inherited.
        let sleeper = ["env", "--default-signal=INT", "sleep", "1000"];
        let (mut process, said) = started(&sleeper);
        let other = tempfile::NamedTempFile::new().unwrap();
        let refused = interrupt_holder(process.id(), other.path()).unwrap_err();
        assert!(refused.contains("does not have"), "{refused}");
        assert_eq!(process.ended(), None);
        // A reader of the file is left alone, whatever number `now.json` has.
        let reads = ["tail", "-f", said.path().to_str().unwrap()];
        let (mut reader, _out) = started(&reads);
        let holds = |pid: u32| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
                .unwrap()
                .flatten();
            let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            links.into_iter().any(|link| link == said.path())
        };
        while !holds(reader.id()) {
            std::thread::yield_now();
        }
        assert!(interrupt_holder(reader.id(), said.path()).is_err());
        reader.kill();
        // Its standard output is the file.
        interrupt_holder(process.id(), said.path()).unwrap();
        assert_eq!(process.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
        assert!(interrupt_holder(process.id(), said.path()).is_err());
    }
}
