//! One recording, from the first look to the last event.

use stackrace_base::unit::InWords;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use stackrace_base::failure::{Failure, FailureKind, INTERRUPTED};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{self, ShownPath};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::process::{self, Process, Streams};
use stackrace_machine::host::{Host, MountInfo};
use stackrace_machine::observe::Snapshot;
use stackrace_trace::trace::{
    Above, Compiler, DeviceTotal, Ending, NameKey, Operation, RawEvent, Recorded, StopReason,
    THREADS_MAX, TraceError, TraceOrigin, TraceWriter,
};

use super::able::KernelSeen;
use super::counts::Counts;
use super::kernel::KernelSide;
use super::target::{Target, sees};
use super::tree;

/// Time between two looks at the ring, and between two looks at the limits.
const LOOK: Duration = Duration::from_millis(5);
const LIMITS_LOOK_NS: u64 = 100_000_000;
/// Looks for processes that are not followed yet, which one or two of them end.
const LOOKS_MAX: u32 = 100;
/// Time that a command has to end by the same Ctrl-C.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Most events that are taken between two looks at the limits.
const EVENTS: usize = 16 << 10;
/// Free space that the file system of the trace keeps.
const RESERVE: u64 = 64 << 20;
/// Threads that end a recording: a trace takes no more than these and those that still begin in a full ring.
const THREADS: u64 = THREADS_MAX as u64 - (128 << 10);
/// Processor time that looking at an event takes, and sending it, ns: a million calls of `getppid`, and of `pread`, on two
/// processors of an AMD EPYC took 0.31 and 0.77 µs more each.
const HANDLED_NS: u64 = 310;
const SENT_NS: u64 = 500;
/// Processor time of the application before its cost is judged, ns.
const JUDGED_NS: u64 = 500_000_000;

/// What is recorded, and where to.
#[derive(Debug)]
pub struct Request {
    /// The directory that would move to another storage.
    pub below: PathBuf,
    /// The application.
    pub target: Target,
    /// Devices under it, as `/proc/diskstats` names them: its own first.
    pub devices: Vec<String>,
    /// The file of the trace, which is made.
    pub output: PathBuf,
    /// Version of this program.
    pub program: String,
    /// When to stop.
    pub limits: RecordingLimits,
}

/// When a recording stops by itself.
#[derive(Debug, Clone, Copy)]
pub struct RecordingLimits {
    /// Longest time, ns.
    pub time_ns: u64,
    /// Largest file, bytes.
    pub bytes: u64,
    /// Largest share of the application's processor time.
    pub cost: f64,
}

/// A recording that has ended: what it holds, and what became of its command.
#[derive(Debug)]
pub struct Recording {
    /// How it ended.
    pub ending: Ending,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// How the command ended, if it did.
    pub ended: Option<ExitStatus>,
    /// The command goes on; its number.
    pub goes_on: Option<u32>,
}

/// Records an application until it ends, a limit is reached, or it is interrupted. Calls `begun` when it begins.
///
/// # Errors
/// The machine cannot record, there is no such application, or the trace cannot be written: nothing of it is kept then.
pub fn record(
    request: &Request,
    interrupt: &Interrupt,
    begun: &dyn Fn(),
) -> Result<Recording, Failure> {
    let architecture = KernelSeen::now().architecture()?;
    // Before any file is made: a mistake leaves nothing.
    let processes = request.target.processes()?;
    let below = request.below.canonicalize();
    let below = below.map_err(|error| {
        Failure::usage(format!(
            "--below {}: {error}",
            request.below.shown(),
            error = error.in_words()
        ))
        .next("name the directory with the application's data")
    })?;
    if !below.is_dir() {
        let why = format!("--below {} is no directory", request.below.shown());
        return Err(Failure::usage(why).next("name the directory with the application's data"));
    }
    sees(&processes, &below)?;
    let mount = LocalHost::new(Arc::new(|_| ())).mount_of(&below);
    let mount = mount.map_err(|error| Failure::unable(error.to_string()))?;
    let output = Output::make(&request.output, &below)?;
    // From here on a file exists, which is removed when this fails.
    let kept = record_into(
        request,
        architecture,
        (&below, &mount),
        output.file,
        interrupt,
        begun,
    );
    if kept.is_err() {
        // A trace without an end is none. One that cannot be removed is refused by every reader.
        let _ = std::fs::remove_file(&request.output);
    }
    kept
}

/// The file of a trace.
struct Output {
    file: File,
}

impl Output {
    /// Makes it, for its owner alone.
    fn make(path: &Path, below: &Path) -> Result<Self, Failure> {
        let shown = path.shown();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let failed = |error: std::io::Error| {
            Failure::usage(format!("-o {shown}: {error}", error = error.in_words()))
        };
        let folder = folder.canonicalize().map_err(failed)?;
        // Its own writes would slow the application down on the same directory.
        if folder.starts_with(below) {
            return Err(Failure::usage(format!(
                "-o {shown} is below {}, and would be recorded too",
                below.shown()
            ))
            .next("name a file on another file system, or at least in another directory"));
        }
        // The application may need the room as well.
        if free(&folder) < 2 * RESERVE {
            let (free, reserve) = (unit::bytes(free(&folder)), unit::bytes(RESERVE));
            return Err(Failure::unable(format!(
                "-o {shown}: {free} are free there, and {reserve} stay free in any case"
            ))
            .next("name a file where there is more room"));
        }
        // Never over a file that is there, and readable by its owner alone: it tells what the application does.
        let mut make = File::options();
        let made = make.write(true).create_new(true).mode(0o600).open(path);
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::refused(format!("{shown} is there already"))
                    .next("name another file with -o"))
            }
            made => Ok(Self {
                file: made.map_err(failed)?,
            }),
        }
    }
}

/// Free bytes of a file system, for those who are not root; one that cannot be asked has none.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize))
}

/// Number of a file system as the kernel side sees it: `MKDEV` of linux/kdev_t.h.
fn device(mount: &MountInfo) -> u32 {
    let (major, minor) = mount.st_dev;
    major << 20 | minor
}

/// The names by which an application may know the directory: without links, and as it was typed.
fn names_of(below: &Path, typed: &Path) -> Vec<Vec<u8>> {
    let typed = std::path::absolute(typed).ok();
    let typed = typed.filter(|typed| typed != below);
    let names = std::iter::once(below.to_owned()).chain(typed);
    names
        .map(|name| name.into_os_string().into_encoded_bytes())
        .collect()
}

/// The directories that a directory stands in; one that cannot be asked is left out.
fn above(directory: &Path) -> Vec<Above> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let all = directory.ancestors().skip(1).filter_map(|path| {
        Some(Above {
            device: device(&host.mount_of(path).ok()?),
            inode: std::fs::metadata(path).ok()?.ino(),
            path: path.as_os_str().as_bytes().to_vec(),
        })
    });
    all.collect()
}

fn origin(request: &Request, mount: &MountInfo) -> TraceOrigin {
    let uname = rustix::system::uname();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    TraceOrigin {
        program: request.program.clone(),
        kernel: uname.release().to_string_lossy().into_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        file_system: mount.file_system.clone(),
        processors: processors.try_into().unwrap_or(u32::MAX),
        cost_limit: (request.limits.cost * 10_000.0) as u32,
        cut: false,
    }
}

/// A key that is kept nowhere.
fn key() -> Result<NameKey, Failure> {
    let mut key = [0; 32];
    // Who guesses the key can tell which names a trace has.
    let mut random = File::open("/dev/urandom").map_err(|error| {
        Failure::unable(format!(
            "could not open /dev/urandom for the key of names: {error}",
            error = error.in_words()
        ))
    })?;
    std::io::Read::read_exact(&mut random, &mut key).map_err(|error| {
        Failure::unable(format!(
            "could not read /dev/urandom: {error}",
            error = error.in_words()
        ))
    })?;
    Ok(NameKey(key))
}

fn unwritten(output: &Path) -> impl Fn(TraceError) -> Failure {
    move |error| {
        let next = match error {
            TraceError::System(_) => "free space there, or name another file with -o",
            // Room is not what it lacks: a part would be longer than readers take.
            _ => "name a directory further below, which has fewer names",
        };
        Failure::unable(format!("could not write {}: {error}", output.shown())).next(next)
    }
}

/// Refuses to go on before anything is recorded.
fn going_on(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.raised() {
        true => Err(Failure::new(
            FailureKind::Remote(INTERRUPTED),
            "stopped while the tree was read: nothing was recorded",
        )),
        false => Ok(()),
    }
}

fn record_into(
    request: &Request,
    architecture: usize,
    (below, mount): (&Path, &MountInfo),
    file: File,
    interrupt: &Interrupt,
    begun: &dyn Fn(),
) -> Result<Recording, Failure> {
    let unwritten = unwritten(&request.output);
    let recorded = Recorded {
        directories: names_of(below, &request.below),
        device: device(mount),
        subvolumes: mount.file_system == "btrfs",
        above: above(below),
        began: 0,
        architecture,
    };
    let mut compiler = Compiler::new(recorded, key()?);
    // The tree before the kernel side: a long walk must not fill the ring.
    let (entries, resident) = tree::named(below, &mut compiler, &|| going_on(interrupt))?;
    let mut writer =
        TraceWriter::new(BufWriter::new(file), &origin(request, mount)).map_err(&unwritten)?;
    let names = compiler.names();
    writer.tree(names, &entries).map_err(&unwritten)?;
    writer.resident(&resident).map_err(&unwritten)?;
    drop((entries, resident));
    let mut side = KernelSide::load(architecture, device(mount))?;
    // Who asked to stop is not left with a command that goes on.
    going_on(interrupt)?;
    let before = Snapshot::take(&request.devices);
    let began = SystemClock.now_ns();
    compiler.begin(began);
    let mut command = match &request.target {
        Target::Command(words) => Some(start(words, &mut side)?),
        _ => None,
    };
    // Last: from here on events arrive. Asked again: the walk may have taken minutes.
    let running = || request.target.processes().unwrap_or_default();
    until_nothing_new(running, |process| follow(process, &mut side))?;
    let mut going = Going {
        request,
        side,
        compiler,
        writer,
        made: Vec::new(),
        began,
        before,
    };
    begun();
    let stopped = going
        .until_stopped(command.as_mut(), interrupt)
        .map_err(&unwritten)?;
    let ended = command.as_mut().and_then(Process::ended);
    let goes_on = match ended {
        Some(_) => None,
        None => command
            .as_ref()
            .and_then(|command| command.ids().first().copied()),
    };
    let (ending, bytes) = going.finish(stopped).map_err(&unwritten)?;
    Ok(Recording {
        ending,
        bytes,
        ended,
        goes_on,
    })
}

/// Follows all that run until a look finds none that was not followed: what is followed brings its children itself, and
/// who was not yet may have started some.
fn until_nothing_new(
    running: impl Fn() -> Vec<u32>,
    mut follow: impl FnMut(u32) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    for _ in 0..LOOKS_MAX {
        let mut new = false;
        for process in running() {
            new |= follow(process)?;
        }
        if !new {
            break;
        }
    }
    Ok(())
}

/// Follows a process that runs. Returns false if it was followed already, or has ended.
fn follow(process: u32, side: &mut KernelSide) -> Result<bool, Failure> {
    if side.follows(process) {
        return Ok(false);
    }
    side.follow(process)?;
    // One that ended before it was followed never tells of its end.
    let runs = process::runs(process);
    if !runs {
        side.unfollow(process);
    }
    Ok(runs)
}

/// Starts a command that is followed from its first moment.
fn start(words: &[std::ffi::OsString], side: &mut KernelSide) -> Result<Process, Failure> {
    let own = std::process::id();
    // A path leads from here; a name alone is looked for where programs are.
    let mut words = words.to_vec();
    if let Some(program) = words.first_mut()
        && Path::new(program).components().count() > 1
        && let Ok(absolute) = std::path::absolute(&*program)
    {
        *program = absolute.into_os_string();
    }
    side.follow_started(own)?;
    let started = Process::start(&words, Path::new("."), Streams::Ours);
    side.unfollow(own);
    started.map_err(|error| {
        Failure::usage(error.to_string()).next("name a command that can be started, behind --")
    })
}

/// A recording that goes on.
struct Going<'a> {
    request: &'a Request,
    side: KernelSide,
    compiler: Compiler,
    writer: TraceWriter<BufWriter<File>>,
    made: Vec<Operation>,
    began: u64,
    /// What the devices had done when it began.
    before: Snapshot,
}

impl Going<'_> {
    fn until_stopped(
        &mut self,
        mut command: Option<&mut Process>,
        interrupt: &Interrupt,
    ) -> Result<StopReason, TraceError> {
        let (mut looked, mut asked) = (0, None);
        loop {
            let taken = self.take(EVENTS)?;
            let now = SystemClock.now_ns();
            if now.saturating_sub(looked) >= LIMITS_LOOK_NS {
                looked = now;
                self.side.forget_gone();
                if let Some(stopped) = self.limit(now) {
                    return Ok(stopped);
                }
            }
            if self.compiler.threads() >= THREADS {
                return Ok(StopReason::Threads);
            }
            if interrupt.raised() {
                asked = asked.or(Some(now));
                // Ctrl-C at the terminal is for the command as well: its last calls are recorded, too.
                let ends = command
                    .as_mut()
                    .is_some_and(|command| command.ended().is_none());
                let waited = asked.map_or(0, |asked| now.saturating_sub(asked));
                if !ends || waited >= ENDS_WITHIN.as_nanos() as u64 {
                    return Ok(StopReason::Interrupted);
                }
            }
            // A command that ended may have left others behind, which are waited for as well.
            let ended = command
                .as_mut()
                .is_none_or(|command| command.ended().is_some());
            if ended && looked == now && !self.side.follows_some() {
                return Ok(StopReason::Ended);
            }
            // A full batch means that more is waiting: no sleep then.
            if taken < EVENTS {
                SystemClock.sleep(LOOK);
            }
        }
    }

    /// Takes events, at most so many; gives how many there were.
    fn take(&mut self, most: usize) -> Result<usize, TraceError> {
        let mut taken = 0;
        let (compiler, made) = (&mut self.compiler, &mut self.made);
        while taken < most {
            let mut compile = |bytes: &[u8]| {
                // The kernel side writes no others.
                if let Some(event) = RawEvent::parse(bytes) {
                    compiler.event(&event, made);
                }
            };
            if self.side.next_event(&mut compile).is_none() {
                break;
            }
            taken += 1;
        }
        for operation in self.made.drain(..) {
            self.writer.push(self.compiler.names(), operation)?;
        }
        Ok(taken)
    }

    /// The limit that is reached.
    fn limit(&self, now: u64) -> Option<StopReason> {
        let limits = &self.request.limits;
        let counts = self.side.counts();
        let cost = cost_ns(counts);
        let own = counts.processor_ns.saturating_sub(cost);
        let folder = self.request.output.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if now.saturating_sub(self.began) >= limits.time_ns {
            Some(StopReason::Time)
        } else if self.writer.bytes() >= limits.bytes {
            Some(StopReason::FileLimit)
        } else if free(folder) < RESERVE {
            Some(StopReason::NoSpace)
        } else if counts.processor_ns >= JUDGED_NS && cost as f64 > own as f64 * limits.cost {
            Some(StopReason::Cost)
        } else {
            None
        }
    }

    /// Leaves the kernel, and writes what is left.
    fn finish(mut self, stopped: StopReason) -> Result<(Ending, u64), TraceError> {
        let elapsed_ns = SystemClock.now_ns().saturating_sub(self.began);
        let counted = self.before.until(&Snapshot::take(&self.request.devices));
        // First: nothing new arrives while the rest is read.
        self.side.leave();
        while self.take(EVENTS)? == EVENTS {}
        let counts = self.side.counts();
        let ending = Ending {
            stopped: Some(stopped),
            operations: self.writer.operations(),
            threads: self.compiler.threads(),
            events: counts.sent,
            lost: counts.lost,
            not_followed: counts.not_followed,
            unresolved: self.compiler.unresolved(),
            elsewhere: self.compiler.elsewhere(),
            cost_ns: cost_ns(counts),
            processor_ns: counts.processor_ns,
            elapsed_ns,
            device: counted.storage().map(|storage| DeviceTotal {
                read_bytes: storage.read_bytes,
                written_bytes: storage.written_bytes,
                flushes: storage.flushes,
            }),
        };
        let out = self.writer.finish(self.compiler.names(), &ending)?;
        let file = out
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        // It is told as kept only when it is.
        file.sync_all()?;
        Ok((ending, file.metadata()?.len()))
    }
}

/// Processor time that recording took from the application, estimated.
fn cost_ns(counts: Counts) -> u64 {
    counts
        .handled
        .saturating_mul(HANDLED_NS)
        .saturating_add(counts.sent.saturating_mul(SENT_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    #[test]
    fn who_began_before_its_parent_was_followed_is_followed_too() {
        let running = RefCell::new(vec![1, 2]);
        let followed = RefCell::new(BTreeSet::new());
        let follow = |process| {
            // A child of 2, started just before that is followed: nothing tells of it.
            if process == 2 && !followed.borrow().contains(&2) {
                running.borrow_mut().push(3);
            }
            Ok(followed.borrow_mut().insert(process))
        };
        until_nothing_new(|| running.borrow().clone(), follow).unwrap();
        assert_eq!(followed.into_inner(), BTreeSet::from([1, 2, 3]));
    }
}
