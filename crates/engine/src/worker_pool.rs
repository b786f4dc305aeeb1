//! The threads of one phase of whole-file operations: start together, watch, stop together.
//!
//! Everything a thread needs is set up before the common start. If one thread fails, the others
//! stop at their next operation; all measurements until then are kept. A latency is the run time of
//! one closure. Only successful operations are recorded: a failed one ends the phase and becomes
//! its error.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

use rustix::io::Errno;

use crate::clock::{Calibration, FastClock, Readings};
use crate::control::Control;
use crate::descriptors::own_table;
use crate::error::StartError;
use crate::gate::StartGate;
use crate::outcome::{Op, OpError, OpOutcome, PhaseEnd, PhaseOutcome, mean_outstanding};
use crate::recorder::Recorder;
use stackrace_system::cpu::Cpu;

/// A thread publishes its progress after this many operations.
const BATCH_OPS: u64 = 64;
/// A thread publishes its progress after this many bytes.
const BATCH_BYTES: u64 = 8 << 20;

/// The reason for which work ended before it was done.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The caller asked for it, or another thread failed.
    Stopped,
    /// This operation failed.
    Failed(Box<OpError>),
}

impl From<OpError> for Halt {
    fn from(error: OpError) -> Halt {
        Halt::Failed(Box::new(error))
    }
}

/// The error of an operation that the system refused.
pub(crate) fn fault(op: Op, path: &Path, errno: Errno) -> OpError {
    let errno = errno.raw_os_error();
    OpError {
        op,
        path: path.to_path_buf(),
        offset: None,
        errno,
        detail: String::new(),
    }
}

/// The error of an operation that memory could not be had for.
pub(crate) fn no_memory(op: Op, path: &Path, error: impl Into<StartError>) -> OpError {
    refusal(op, path, Errno::NOMEM, error.into().to_string())
}

/// The error of an operation that the system allowed but the engine refuses.
pub(crate) fn refusal(op: Op, path: &Path, errno: Errno, detail: impl Into<String>) -> OpError {
    OpError {
        detail: detail.into(),
        ..fault(op, path, errno)
    }
}

/// The errno behind an error of the standard library.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Options of measuring and watching a phase.
#[derive(Clone, Copy)]
pub(crate) struct PhaseOptions<'a> {
    pub(crate) slice_ns: u64,
    pub(crate) control: &'a Control,
    /// The kinds of operation that will be issued.
    pub(crate) ops: &'a [Op],
}

impl PhaseOptions<'_> {
    fn recorder(&self) -> Recorder {
        Recorder::new(self.slice_ns, self.ops)
    }
}

/// One thread of a phase: its recorder, its clock, and the signal to stop.
pub(crate) struct Worker<'a> {
    recorder: Recorder,
    time: Readings,
    control: &'a Control,
    failed: &'a AtomicBool,
    batch_ops: u64,
    batch_bytes: u64,
}

/// The results of one thread.
struct WorkerReport {
    recorder: Recorder,
    halt: Option<Halt>,
    back: u64,
    end_ns: u64,
}

impl<'a> Worker<'a> {
    fn new(
        recorder: Recorder,
        clock: FastClock,
        control: &'a Control,
        failed: &'a AtomicBool,
    ) -> Worker<'a> {
        Worker {
            recorder,
            time: Readings::new(clock),
            control,
            failed,
            batch_ops: 0,
            batch_bytes: 0,
        }
    }

    /// Runs `work` as one operation; it returns the bytes it moved.
    ///
    /// # Errors
    /// Those of `work`; nothing is recorded then.
    #[inline]
    pub(crate) fn time<E>(
        &mut self,
        op: Op,
        work: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        let begun_ns = self.time.now_ns();
        let bytes = work()?;
        let ended_ns = self.time.now_ns();
        self.record(op, begun_ns, ended_ns, bytes);
        Ok(bytes)
    }

    /// Nanoseconds since the common start.
    #[inline(always)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        self.time.now_ns()
    }

    /// Records an operation whose times were read by [`Worker::now_ns`].
    #[inline]
    pub(crate) fn record(&mut self, op: Op, begun_ns: u64, ended_ns: u64, bytes: u64) {
        self.recorder.record(op, begun_ns, ended_ns, bytes);
        self.batch_ops += 1;
        self.batch_bytes += bytes;
        // In batches: an atomic addition per operation would make all threads fight for one cache
        // line.
        if self.batch_ops >= BATCH_OPS || self.batch_bytes >= BATCH_BYTES {
            self.tell();
        }
    }

    /// Where progress is told.
    pub(crate) fn control(&self) -> &Control {
        self.control
    }

    /// Work of this thread so far.
    pub(crate) fn done(&self) -> Vec<OpOutcome> {
        self.recorder.done()
    }

    /// Counts a short read or write.
    pub(crate) fn count_short(&mut self) {
        self.recorder.short();
    }

    /// Checks that the work may go on.
    ///
    /// # Errors
    /// [`Halt::Stopped`] if the caller asked to stop or another thread failed.
    #[inline]
    pub(crate) fn proceed(&self) -> Result<(), Halt> {
        if self.control.stopped() || self.failed.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    fn tell(&mut self) {
        self.control
            .ops
            .fetch_add(std::mem::take(&mut self.batch_ops), Ordering::Relaxed);
        self.control
            .bytes
            .fetch_add(std::mem::take(&mut self.batch_bytes), Ordering::Relaxed);
    }

    fn finish(mut self, result: Result<(), Halt>) -> WorkerReport {
        let end_ns = self.time.now_ns();
        self.tell();
        if matches!(result, Err(Halt::Failed(_))) {
            // Relaxed is enough: the flag carries no data, and the join orders the rest.
            self.failed.store(true, Ordering::Relaxed);
        }
        WorkerReport {
            recorder: self.recorder,
            halt: result.err(),
            back: self.time.back,
            end_ns,
        }
    }
}

/// Adds up the results of all threads. Of several errors, the earliest is kept.
///
/// Outstanding operations on average are the sum of all latencies over the elapsed time (Little's
/// law). `why` is a clause that says how the operations were done.
fn merge(
    reports: Vec<WorkerReport>,
    slice_ns: u64,
    clock: FastClock,
    cpu: Cpu,
    why: String,
) -> PhaseOutcome {
    let (mut ended, mut elapsed_ns, mut clock_back) = (PhaseEnd::Complete, 0, 0);
    let mut first: Option<(u64, OpError)> = None;
    let mut recorders = Vec::with_capacity(reports.len());
    for report in reports {
        elapsed_ns = elapsed_ns.max(report.end_ns);
        clock_back += report.back;
        match report.halt {
            None => {}
            // A thread stopped by another's failure must not hide that failure.
            Some(Halt::Stopped) if ended == PhaseEnd::Failed => {}
            Some(Halt::Stopped) => ended = PhaseEnd::Stopped,
            Some(Halt::Failed(error)) => {
                ended = PhaseEnd::Failed;
                if first
                    .as_ref()
                    .is_none_or(|(at_ns, _)| report.end_ns < *at_ns)
                {
                    first = Some((report.end_ns, *error));
                }
            }
        }
        recorders.push(report.recorder);
    }
    let merged = Recorder::merge(recorders, slice_ns);
    // A thread that did one operation after the other was busy for the sum of its latencies.
    let busy_ns = merged.ops.iter().map(|kind| kind.latency_sum_ns).sum();
    PhaseOutcome {
        ended,
        cpu_user_ns: cpu.user_ns,
        cpu_system_ns: cpu.system_ns,
        ops: merged.ops,
        threads: merged.threads,
        series: merged.series,
        error: first.map(|(_, error)| error),
        short: merged.short,
        depth_achieved: mean_outstanding(busy_ns, elapsed_ns),
        clock: clock.name(),
        clock_error: clock.disagreement(),
        clock_back,
        ..PhaseOutcome::of_program("calls", why, elapsed_ns, merged.slice_ns)
    }
}

/// Runs `work` on the calling thread. `why` is a clause that says how operations are done.
pub(crate) fn alone(
    watch: PhaseOptions<'_>,
    why: String,
    work: impl FnOnce(&mut Worker<'_>) -> Result<(), Halt>,
) -> PhaseOutcome {
    let calibration = Calibration::begin();
    let failed = AtomicBool::new(false);
    let recorder = watch.recorder();
    watch.control.await_start();
    let clock = calibration.finish();
    watch.control.begins();
    let cpu = Cpu::now();
    let mut worker = Worker::new(recorder, clock, watch.control, &failed);
    let result = work(&mut worker);
    let report = worker.finish(result);
    merge(vec![report], watch.slice_ns, clock, cpu.spent(), why)
}

/// Work that closes a phase of several threads; its time counts.
pub(crate) type ClosingWork<'a> = &'a dyn Fn(&mut Worker<'_>) -> Result<(), Halt>;

/// The threads of one phase.
pub(crate) struct WorkerPool<'a> {
    pub(crate) watch: PhaseOptions<'a>,
    /// A clause that says how operations are done.
    pub(crate) why: String,
    /// The path named in the error when a thread cannot be started.
    pub(crate) root: &'a Path,
    /// Descriptors the work uses; the threads see no others of the process. None: they share the table of the process.
    pub(crate) keep: Option<&'a [OwnedFd]>,
}

impl WorkerPool<'_> {
    /// Runs `work` once per part, each on its own thread, from a common start. Unless a thread
    /// failed or was stopped, `close` then runs on the calling thread; its time is part of the
    /// elapsed time, and it records [`Op::Fsync`].
    ///
    /// # Errors
    /// A thread could not be started; no work was done then.
    ///
    /// # Safety
    /// Where there is `keep`, `work` and the parts use and drop no descriptor but those of it: in the table of a thread
    /// the number of another is closed, or another file's.
    pub(crate) unsafe fn together<P: Send>(
        self,
        parts: Vec<P>,
        work: impl Fn(P, &mut Worker<'_>) -> Result<(), Halt> + Sync,
        close: Option<ClosingWork<'_>>,
    ) -> Result<PhaseOutcome, OpError> {
        let watch = self.watch;
        let calibration = Calibration::begin();
        let failed = AtomicBool::new(false);
        let close =
            close.map(|close| (close, Recorder::new(watch.slice_ns, &[Op::Fsync]).closing()));
        let (clock, cpu, mut reports) = self.start(parts, &work, calibration, &failed)?;
        if let Some((close, recorder)) = close {
            let mut last = Worker::new(recorder, clock, watch.control, &failed);
            let result = last.proceed().and_then(|()| close(&mut last));
            reports.push(last.finish(result));
        }
        Ok(merge(reports, watch.slice_ns, clock, cpu.spent(), self.why))
    }

    /// Starts the threads and waits for their end. For `together` alone, whose contract it needs.
    fn start<P: Send>(
        &self,
        parts: Vec<P>,
        work: &(impl Fn(P, &mut Worker<'_>) -> Result<(), Halt> + Sync),
        calibration: Calibration,
        failed: &AtomicBool,
    ) -> Result<(FastClock, Cpu, Vec<WorkerReport>), OpError> {
        let (watch, keep, gate) = (self.watch, self.keep, &StartGate::default());
        let count = parts.len();
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(count);
            let mut refused: Option<Errno> = None;
            for part in parts {
                let body = move || {
                    // Before anything else: the thread must not own a descriptor yet.
                    if let Some(keep) = keep {
                        // SAFETY: the thread has just begun, and its work uses no descriptor but those
                        // of `keep`, as `together` demands; they outlive the scope.
                        unsafe { own_table(keep) };
                    }
                    let recorder = watch.recorder();
                    let mut worker = Worker::new(recorder, gate.pass(None)?, watch.control, failed);
                    let result = work(part, &mut worker);
                    Some(worker.finish(result))
                };
                match Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        refused = Some(errno_of(&error));
                        break;
                    }
                }
            }
            let number = threads.len();
            let call_off = refused.map(|errno| StartError::Thread {
                errno: errno.raw_os_error(),
            });
            // The gate opens even when a thread is missing: those that wait at it must end before
            // the scope does.
            let begun = gate.open(number, calibration, call_off, watch.control);
            let join = |thread: ScopedJoinHandle<'_, Option<WorkerReport>>| match thread.join() {
                Ok(report) => report,
                // A panic of a worker is a bug: it must not turn into a partial result.
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let reports: Vec<WorkerReport> = threads.into_iter().filter_map(join).collect();
            let (clock, cpu) = begun.map_err(|error| {
                let detail = format!("thread {} of {count}: {error}", number + 1);
                // `clone` reports EAGAIN at the limit of processes; the same word where no errno
                // came.
                let errno = refused.unwrap_or(Errno::AGAIN);
                refusal(first_kind(watch.ops), self.root, errno, detail)
            })?;
            Ok((clock, cpu, reports))
        })
    }
}

/// The kind that a pool which could not start is told by. The threads of a replay count their calls elsewhere, and name
/// none.
fn first_kind(ops: &[Op]) -> Op {
    ops.first().copied().unwrap_or(Op::Open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_without_kinds_is_told_by_one_as_well() {
        assert_eq!(first_kind(&[Op::Fsync, Op::Read]), Op::Fsync);
        assert_eq!(first_kind(&[]), Op::Open);
    }

    fn worker<'a>(watch: PhaseOptions<'a>, clock: FastClock, failed: &'a AtomicBool) -> Worker<'a> {
        Worker::new(watch.recorder(), clock, watch.control, failed)
    }

    #[test]
    fn only_successful_operations_are_recorded_and_threads_add_up() {
        let (control, failed) = (Control::default(), AtomicBool::new(false));
        let watch = PhaseOptions {
            slice_ns: 1_000_000,
            control: &control,
            ops: &[Op::Create, Op::Fsync, Op::Stat],
        };
        let clock = FastClock::calibrated();
        let mut reports = Vec::new();
        for bytes in [10, 20] {
            let mut worker = worker(watch, clock, &failed);
            worker.time::<()>(Op::Create, || Ok(bytes)).unwrap();
            worker.time(Op::Create, || Err(())).unwrap_err();
            worker.time::<()>(Op::Fsync, || Ok(0)).unwrap();
            reports.push(worker.finish(Ok(())));
        }
        let cpu = Cpu::default();
        let outcome = merge(reports, watch.slice_ns, clock, cpu, String::new());
        assert_eq!(outcome.ended, PhaseEnd::Complete);
        let kinds: Vec<_> = outcome
            .ops
            .iter()
            .map(|k| (k.op, k.count, k.bytes))
            .collect();
        assert_eq!(
            kinds,
            [(Op::Fsync, 2, 0), (Op::Create, 2, 30)],
            "kinds not issued are left out"
        );
        assert!(
            outcome
                .ops
                .iter()
                .all(|kind| kind.latency.len() == kind.count)
        );
        let ops: u64 = outcome.series.iter().map(|slice| slice.ops).sum();
        let bytes: u64 = outcome.series.iter().map(|slice| slice.bytes).sum();
        assert_eq!((ops, bytes), (2, 30), "the series leaves fsync out");
    }

    #[test]
    fn one_failed_thread_fails_the_phase_and_the_earliest_error_is_kept() {
        let error = |errno| OpError {
            op: Op::Stat,
            path: "x".into(),
            offset: None,
            errno,
            detail: String::new(),
        };
        let (control, failed) = (Control::default(), AtomicBool::new(false));
        let watch = PhaseOptions {
            slice_ns: 1,
            control: &control,
            ops: &[Op::Stat],
        };
        let clock = FastClock::calibrated();
        let end = |result| worker(watch, clock, &failed).finish(result);
        let third = end(Err(error(28).into()));
        let first = end(Err(Halt::Stopped));
        let second = end(Err(error(5).into()));
        assert!(failed.load(Ordering::Relaxed), "the others were not told");
        let (reports, cpu) = (vec![first, second, third], Cpu::default());
        let outcome = merge(reports, 1, clock, cpu, String::new());
        assert_eq!(outcome.ended, PhaseEnd::Failed);
        assert_eq!(outcome.error.map(|error| error.errno), Some(28));
    }

    #[test]
    fn the_outcome_names_the_clock_that_was_read() {
        let control = Control::default();
        let watch = PhaseOptions {
            slice_ns: 1,
            control: &control,
            ops: &[Op::Stat],
        };
        let work = |worker: &mut Worker<'_>| {
            worker
                .time::<Halt>(Op::Stat, || {
                    stackrace_system::sleep_ns(1_000_000);
                    Ok(0)
                })
                .map(drop)
        };
        let one = alone(watch, String::new(), work);
        let many = |(), worker: &mut Worker<'_>| work(worker);
        let workers = WorkerPool {
            watch,
            why: String::new(),
            root: Path::new("/"),
            keep: Some(&[]),
        };
        // SAFETY: the work uses no descriptor.
        let two = unsafe { workers.together(vec![(); 2], many, None) };
        for outcome in [one, two.unwrap()] {
            assert_eq!(outcome.clock, FastClock::calibrated().name());
            assert!(outcome.clock_error < 0.1, "{}", outcome.clock_error);
            assert!(outcome.elapsed_ns >= 900_000);
        }
    }
}
