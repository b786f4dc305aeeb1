//! One run's log while it is written.
//!
//! The file is an [`AppendLog`]: whole lines whatever happens. A torn rest is kept beside it
//! (`log.torn`). What must survive a power cut (a trial, the end of a round, a check, the
//! end) is on the disk before [`Log::append`] returns.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RecordError;
use super::read::Record;
use stackrace_base::appendlog::{AppendError, AppendLog, Durable, Reopened, is_being_written};
use stackrace_base::event::{Event, FORMAT, LineError, LogLine, RunStarted};
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_base::time::Clock;
use stackrace_base::unit;

/// Name of the log in its run's directory.
pub(super) const LOG: &str = "log.jsonl";
/// Name of the file that keeps the rest of a torn last line.
const TORN: &str = "log.torn";
/// The study as it was given, for people who look into the directory.
const STUDY: &str = "study.toml";

/// The log of one run, open for writing; no second writer is admitted while it lives.
pub struct Log {
    lines: AppendLog,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    /// When this execution of the run began, ns of the monotonic clock.
    began_ns: u64,
    /// Both clocks when they were last compared.
    compared: ClockPair,
}

/// Both clocks at one moment.
#[derive(Clone, Copy)]
struct ClockPair {
    /// Time of day, ns since 1970; `None` if it cannot be read.
    day_ns: Option<i128>,
    /// By the monotonic clock, with the time in which the machine was suspended, ns.
    passed_ns: u64,
}

impl ClockPair {
    fn now(clock: &dyn Clock) -> Self {
        let day: Option<jiff::Timestamp> = clock.today().parse().ok();
        Self {
            day_ns: day.map(jiff::Timestamp::as_nanosecond),
            passed_ns: clock.with_sleep_ns(),
        }
    }

    /// Time by which the time of day was set since `before`, ns; negative: back. None: it was not set.
    fn set_since(self, before: Self) -> Option<i128> {
        let passed = i128::from(self.passed_ns) - i128::from(before.passed_ns);
        let set = self.day_ns? - before.day_ns? - passed;
        // A clock that is led towards the right time runs a little faster or slower for a while.
        let led = CLOCK_STEP_NS + passed / 100;
        (set.abs() > led).then_some(set)
    }
}

/// Shortest step of the time of day that is told, ns.
const CLOCK_STEP_NS: i128 = 2_000_000_000;

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("path", &self.path).finish()
    }
}

impl Log {
    /// Makes the run's directory in `runs` (it must not exist), its log with the first line, and a
    /// copy of the study; all of it is on the disk when this returns. Where that fails, the
    /// directory is removed again.
    pub(super) fn create(
        runs: &OwnDir,
        head: RunStarted,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, LogLine), RecordError> {
        let run = head.run.clone();
        let dir = runs.make_dir(&run).map_err(|error| match error {
            OwnError::System { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                RecordError::Exists { run: run.clone() }
            }
            error => error.into(),
        })?;
        let made = Self::create_in(&dir, head, clock).inspect_err(|_| {
            // Best effort: a directory without a log is ignored by every reader.
            for name in [STUDY, LOG] {
                let _ = dir.remove_file(name);
            }
            let _ = runs.remove_dir(&run);
        })?;
        // The directory's own entry: without it a power cut could lose a log that was flushed.
        runs.sync()?;
        Ok(made)
    }

    fn create_in(
        dir: &OwnDir,
        head: RunStarted,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, LogLine), RecordError> {
        let path = dir.path().join(STUDY);
        dir.create(STUDY)?
            .write_all(head.study.as_bytes())
            .map_err(|source| RecordError::system("write", &path, source))?;
        let path = dir.path().join(LOG);
        let lines = AppendLog::create(dir, LOG).map_err(|error| refused(error, &path))?;
        let mut log = Self::of(lines, path, clock);
        let line = log.append(Event::RunStarted(Box::new(head)))?;
        dir.sync()?;
        Ok((log, line))
    }

    /// Goes on with the log in `dir`. Bytes after the last whole line are moved to `log.torn`;
    /// the number of them is returned. Nothing is moved before the rest was understood.
    pub(super) fn reopen(dir: &OwnDir, clock: Arc<dyn Clock>) -> Result<(Self, u64), RecordError> {
        let path = dir.path().join(LOG);
        let Reopened {
            log: mut lines,
            whole,
            torn,
        } = AppendLog::open(dir, LOG).map_err(|error| refused(error, &path))?;
        if whole.is_empty() {
            // Without a head nothing says what the trials were; there is nothing to go on with.
            return Err(RecordError::NoHead {
                path,
                error: LineError::NotJson,
            });
        }
        let record = Record::parse(&whole, &path)?;
        record.is_of_run(&path)?;
        // Lines that this program writes might mean something else there.
        let format = record.head.format;
        if format > FORMAT {
            return Err(RecordError::NewerFormat { path, format });
        }
        if !torn.is_empty() {
            // In this order: a kill between the two leaves the rest twice rather than nowhere.
            save_torn(dir, &torn)?;
            lines.cut_torn().map_err(|error| refused(error, &path))?;
        }
        Ok((Self::of(lines, path, clock), torn.len() as u64))
    }

    /// An execution of the run that begins now.
    fn of(lines: AppendLog, path: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            began_ns: clock.now_ns(),
            compared: ClockPair::now(&*clock),
            lines,
            path,
            clock,
        }
    }

    /// A sentence for the record, if the time of day was set since this was last asked, or since the run went on.
    pub fn clock_was_set(&mut self) -> Option<String> {
        let before = std::mem::replace(&mut self.compared, ClockPair::now(&*self.clock));
        let set = self.compared.set_since(before)?;
        let (by, direction) = (
            unit::long_time(set.abs() as f64 / 1e9),
            if set < 0 { "back" } else { "forward" },
        );
        Some(format!(
            "the clock of this machine was set {direction} by {by} while the run went on: times of day before and after do not \
             agree; durations and limits of time do not rest on it"
        ))
    }

    /// Writes one event, with the time of day, and gives back the line as it was written.
    ///
    /// A trial, the end of a round, a check and the beginning and end of a run are on the
    /// disk when this returns; anything else gets there with the next of those.
    ///
    /// # Errors
    /// The event is then not in the log, and the log is as it was before; only after
    /// [`RecordError::Broken`] its end is unknown and it takes no more.
    pub fn append(&mut self, event: Event) -> Result<LogLine, RecordError> {
        // The time of day is for people; nothing is computed from it, because clocks are set.
        let line = LogLine {
            at: self.clock.today(),
            since_ns: Some(self.clock.now_ns().saturating_sub(self.began_ns)),
            event,
        };
        let unreadable = |error: serde_json::Error| RecordError::Unreadable {
            why: error.to_string(),
        };
        let mut text = serde_json::to_string(&line).map_err(unreadable)?;
        // A figure that is not a number is written as null: better to hear of it now than to find
        // a line that cannot be read when the run is over.
        serde_json::from_str::<LogLine>(&text).map_err(unreadable)?;
        text.push('\n');
        self.lines
            .append(text.as_bytes(), durable(&line.event))
            .map_err(|error| refused(error, &self.path))?;
        Ok(line)
    }

    /// Makes sure that the log still is where it was made.
    ///
    /// # Errors
    /// [`RecordError::Moved`], with all its lines; [`RecordError::Removed`].
    pub fn in_place(&self) -> Result<(), RecordError> {
        // By what is open, and not by a name: another log may have taken that.
        let found = self.lines.in_place();
        found.map_err(|error| refused(error, &self.path))
    }
}

/// The error of the file as one of the record.
fn refused(error: AppendError, path: &Path) -> RecordError {
    let path = path.to_path_buf();
    match error {
        AppendError::Locked => RecordError::Locked { path },
        AppendError::Broken => RecordError::Broken { path },
        AppendError::Removed => RecordError::Removed { path },
        AppendError::Changed { expected, found } => RecordError::Changed {
            path,
            expected,
            found,
        },
        AppendError::Moved { now } => RecordError::Moved { path, now },
        AppendError::NotOpened(error) => error.into(),
        AppendError::System { tried, source } => RecordError::system(tried, &path, source),
    }
}

/// Durability of an event: at once if it must have reached the disk before the run goes on. A sync
/// costs the disk that may be measured, so only what cannot be found out again is durable at once.
fn durable(event: &Event) -> Durable {
    match event {
        Event::RunStarted(_)
        | Event::Trial(_)
        | Event::Promised(_)
        | Event::Cut(_)
        | Event::RoundFinished { .. }
        | Event::Checked { .. }
        | Event::RunEnded { .. } => Durable::Yes,
        // What is lost here by a power cut is measured or done again; nothing rests on it.
        Event::Imported(_)
        | Event::RunResumed { .. }
        | Event::RoundStarted { .. }
        | Event::StackSetUp { .. }
        | Event::StackTornDown { .. }
        | Event::Command(_)
        | Event::Warned { .. } => Durable::No,
    }
}

/// Keeps every other process from writing the log in `dir` while the answer lives; changes nothing.
///
/// # Errors
/// A process writes it, or the system refuses.
pub(super) fn hold(dir: &OwnDir) -> Result<AppendLog, RecordError> {
    let held = AppendLog::open(dir, LOG).map_err(|error| refused(error, &dir.path().join(LOG)))?;
    Ok(held.log)
}

/// Returns true if a process writes the log in `dir` right now.
pub(super) fn written(dir: &OwnDir) -> bool {
    is_being_written(dir, LOG)
}

fn save_torn(dir: &OwnDir, torn: &[u8]) -> Result<(), RecordError> {
    let mut file = dir.append(TORN, true)?;
    file.write_all(torn)
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all())
        .map_err(|source| RecordError::system("write", &dir.path().join(TORN), source))?;
    Ok(dir.sync()?)
}
