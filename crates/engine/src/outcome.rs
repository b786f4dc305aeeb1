//! The results of a phase: counts, latencies, a time series, the first error.
//!
//! One [`PhaseOutcome`] is one phase. Nothing here is averaged: there are only histograms and
//! counters, so that readers can merge and cut them later. Units: bytes, nanoseconds.

use std::path::PathBuf;

use hdrhistogram::Histogram;

use crate::alternation::AlternatedPart;
use stackrace_system::shown::ShownPath;

/// The kinds of operation the engine can issue. Each has its own histogram and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// `pread` or its ring equivalent.
    Read,
    /// `pwrite` or its ring equivalent.
    Write,
    /// `fsync` or `fdatasync`.
    Fsync,
    /// Makes a file: opens it with `O_CREAT | O_EXCL`, writes its content if it has any, closes it.
    Create,
    /// Opens an existing file, reads it whole, closes it; in a replay the opening alone, of new files too.
    Open,
    /// `statx` of one path; in a replay whatever else asks and changes nothing, too.
    Stat,
    /// Removes one file.
    Unlink,
    /// Makes one directory.
    Mkdir,
    /// Removes one directory.
    Rmdir,
    /// Renames one file.
    Rename,
    /// Gives one file a second name (`linkat`).
    Link,
    /// Reads a directory's entries, all of one directory being one operation.
    Readdir,
    /// Copies one whole file (open, copy, close).
    Copy,
    /// Opens an existing file, writes at its end, closes it.
    Append,
    /// Closes a file, in a replay.
    Close,
    /// Sets attributes of a file, in a replay: mode, owner, times, extended ones.
    Attribute,
    /// Sets the size of a file or allocates, in a replay.
    Resize,
    /// Maps a file and reads its pages, in a replay.
    Map,
}

impl Op {
    /// Every kind, in the order of their discriminants.
    pub const ALL: [Op; 18] = [
        Op::Read,
        Op::Write,
        Op::Fsync,
        Op::Create,
        Op::Open,
        Op::Stat,
        Op::Unlink,
        Op::Mkdir,
        Op::Rmdir,
        Op::Rename,
        Op::Link,
        Op::Readdir,
        Op::Copy,
        Op::Append,
        Op::Close,
        Op::Attribute,
        Op::Resize,
        Op::Map,
    ];

    /// The word used in records, tables and pages.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Fsync => "fsync",
            Op::Create => "create",
            Op::Open => "open",
            Op::Stat => "stat",
            Op::Unlink => "unlink",
            Op::Mkdir => "mkdir",
            Op::Rmdir => "rmdir",
            Op::Rename => "rename",
            Op::Link => "link",
            Op::Readdir => "readdir",
            Op::Copy => "copy",
            Op::Append => "append",
            Op::Close => "close",
            Op::Attribute => "attribute",
            Op::Resize => "resize",
            Op::Map => "map",
        }
    }
}

/// Smallest latency a histogram tells apart, ns.
pub const LATENCY_NS_MIN: u64 = 1;
/// Largest latency a histogram holds, ns: one hour. Longer ones saturate and are counted.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits of every latency histogram.
pub const LATENCY_DIGITS: u8 = 3;

/// A distribution of times: every one of them, and their exact sum.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Exact sum, ns.
    pub sum_ns: u128,
    /// Every time, ns; same bounds as a latency histogram.
    pub histogram: Histogram<u64>,
}

impl Timing {
    pub(crate) fn merge(&mut self, other: &Timing) {
        self.sum_ns += other.sum_ns;
        add(&mut self.histogram, &other.histogram);
    }
}

/// An empty histogram of latencies. Its memory is there as far as counts are written.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
        .expect("the bounds are constants the histogram accepts")
}

fn add(ours: &mut Histogram<u64>, theirs: &Histogram<u64>) {
    ours.add(theirs)
        .expect("histograms of the same bounds can be added");
}

/// One kind of operation within one phase.
#[derive(Debug, Clone)]
pub struct OpOutcome {
    /// Kind of the operations.
    pub op: Op,
    /// Operations that completed without error.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Exact sum of the latencies, ns (the mean is this over `count`).
    pub latency_sum_ns: u128,
    /// Every latency, ns.
    pub latency: Histogram<u64>,
    /// Latencies beyond [`LATENCY_NS_MAX`], recorded there.
    pub saturated: u64,
    /// Time from the issue to the completion, in an open loop only. The latency above then is the
    /// response time, counted from the intended start. `None` means that the latency is the service
    /// time.
    pub service: Option<Timing>,
}

impl OpOutcome {
    /// Adds the results of another thread.
    pub(crate) fn merge(&mut self, other: &OpOutcome) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency_sum_ns += other.latency_sum_ns;
        self.saturated += other.saturated;
        add(&mut self.latency, &other.latency);
        merge_timings(&mut self.service, other.service.as_ref());
    }
}

/// Adds timings that only some threads have.
pub(crate) fn merge_timings(ours: &mut Option<Timing>, theirs: Option<&Timing>) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours.merge(theirs),
        (ours @ None, Some(theirs)) => *ours = Some(theirs.clone()),
        (_, None) => {}
    }
}

/// Work completed within one step of the time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Operations completed in the slice, all kinds but fsync.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

/// A part of a phase with its own time; the next part follows without a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Name of the work that is done in it.
    pub name: &'static str,
    /// Its duration, ns.
    pub elapsed_ns: u64,
    /// Operations that completed in it, each kind that may be issued in it.
    pub counts: Vec<(Op, u64)>,
}

/// The first operation that failed, with all that is known.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} of {}{}", self.op.name(), self.place(), self.cause())]
pub struct OpError {
    /// Kind of the operation.
    pub op: Op,
    /// Path of the file.
    pub path: PathBuf,
    /// Offset in the file, bytes, where an offset means something.
    pub offset: Option<u64>,
    /// Error of the system (raw errno).
    pub errno: i32,
    /// Fault of the data, for a verification failure; empty otherwise.
    pub detail: String,
}

impl OpError {
    fn place(&self) -> String {
        match self.offset {
            Some(offset) => format!("{} at offset {offset}", self.path.shown()),
            None => self.path.shown().to_string(),
        }
    }

    fn cause(&self) -> String {
        match self.detail.as_str() {
            "" => format!(
                " failed: {}",
                stackrace_system::limit::words_at(self.errno, &self.path)
            ),
            detail => format!(": {detail}"),
        }
    }
}

/// One promised operation as it was done (see [`crate::promises`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromiseRecord {
    /// Thread that did it, from 0.
    pub worker: u32,
    /// [`crate::promises::Idiom::op`], or [`Op::Unlink`].
    pub op: Op,
    /// The file, relative to the root; what a database is asked for is named by its caller.
    pub object: String,
    /// Place in the file, bytes.
    pub offset: u64,
    /// Number of bytes written.
    pub bytes: u64,
    /// Generation of the content, from 1.
    pub generation: u32,
    /// Beginning of the operation, ns of the monotonic clock.
    pub begun_ns: u64,
    /// Instant of its acknowledgement; `None` if it failed.
    pub acknowledged_ns: Option<u64>,
}

/// A result that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayDifference {
    /// Kind of the call.
    pub op: Op,
    /// Its file below the directory, by the name in the trace; empty: it is not known by one.
    pub name: String,
    /// Result when recorded: an error is below 0.
    pub recorded: i64,
    /// Result of the replay.
    pub replayed: i64,
}

/// How the results of a replay compare with the recorded ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayResults {
    /// Calls that were made.
    pub calls: u64,
    /// Those whose result differs.
    pub differing: u64,
    /// The first of these that was seen.
    pub first: Option<ReplayDifference>,
}

impl ReplayResults {
    /// Adds the results of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.differing += other.differing;
        // Of several threads any first one will do: their order in time is not kept.
        self.first = self.first.take().or(other.first);
    }
}

/// The reason for which a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseEnd {
    /// The phase did all its work.
    Complete,
    /// The caller set [`crate::Control::stop`].
    Stopped,
    /// An operation failed: see [`PhaseOutcome::error`].
    Failed,
}

/// What one of several threads did.
#[derive(Debug, Clone)]
pub struct ThreadOutcome {
    /// Operations of the thread, as [`PhaseOutcome::ops`].
    pub ops: Vec<OpOutcome>,
    /// Work over time, as [`PhaseOutcome::series`], with steps of the same width.
    pub series: Vec<Slice>,
}

/// All results of one phase. Every fraction is finite, and 0 where it was not measured.
#[derive(Debug, Clone)]
pub struct PhaseOutcome {
    /// Reason of its end.
    pub ended: PhaseEnd,
    /// Time from the common start of all threads to the end of the last one, closing fsync included, ns.
    pub elapsed_ns: u64,
    /// Processor time of the process during the phase, in user mode, all threads together, ns. It
    /// includes everything else the process did at that time.
    pub cpu_user_ns: u64,
    /// The same in the kernel, without the kernel's own threads (write-back).
    pub cpu_system_ns: u64,
    /// One entry for each kind that was issued, in the order of [`Op::ALL`].
    pub ops: Vec<OpOutcome>,
    /// The same for each thread alone, in the order they were started; empty where one thread did
    /// everything. With plain calls and a queue depth above 1 these are the threads that stand in
    /// for it. A closing fsync belongs to none of them.
    pub threads: Vec<ThreadOutcome>,
    /// Lateness of each operation, in an open loop only: how much later it was issued than by a
    /// generator that is never late, which issues at the intended start or when a slot in the queue
    /// is free, whichever is later. The generator causes it (or a machine that gave it no
    /// processor), not the storage. It includes operations held up behind a late one. A response
    /// time is this lateness, plus the wait for a slot, plus the service time.
    pub lateness: Option<Timing>,
    /// Operations that were due when the phase ended, and were not issued; in an open loop only.
    pub unissued: u64,
    /// Bytes whose content was checked (see [`crate::verify`]); 0 where nothing was.
    pub verified_bytes: u64,
    /// Width of one step of `series`, ns.
    pub slice_ns: u64,
    /// Completed work over time, merged over all threads; slice `i` begins at `i * slice_ns`.
    pub series: Vec<Slice>,
    /// The completed parts of a phase that times its parts, in order.
    pub stretches: Vec<Stretch>,
    /// The parts of a phase that alternated with others, in order; empty for one that ran alone.
    pub parts: Vec<AlternatedPart>,
    /// Records of promised operations (see [`crate::promises`]); empty for all others.
    pub promised: Vec<PromiseRecord>,
    /// How the results of a replay compare with those of the recording (see [`crate::replay::ReplayPlan`]); none: it was none.
    pub replayed: Option<ReplayResults>,
    /// Figures that another program reported of itself, in the order they were asked for; empty
    /// where this engine made the calls.
    pub reported: Vec<Option<f64>>,
    /// Step in which each of these is known, in its own unit: the last digit, the tick of the
    /// clock. `None`, or not there: no coarser than its digits.
    pub reported_steps: Vec<Option<f64>>,
    /// Text that the program printed on standard output and on standard error, as far as it was kept.
    pub printed: [String; 2],
    /// Sentences of the program against its own figures, for the reader of a report.
    pub told: Vec<String>,
    /// A program that was stopped while it worked, where this process does not see that by itself.
    pub stopped: Option<stackrace_system::child::StoppedProgram>,
    /// The work that the program says it did, where that is not known yet; `None` otherwise.
    pub work: Option<ProgramWork>,
    /// The first failure, if any.
    pub error: Option<OpError>,
    /// Short reads and writes (also counted in `ops`).
    pub short: u64,
    /// Which I/O engine ran (`sync`, `io_uring`, `null`, `calls`).
    pub engine: &'static str,
    /// Reason for this engine; a clause for reports.
    pub engine_why: String,
    /// Time-weighted mean of outstanding operations over all threads; 0 where not measured.
    pub depth_achieved: f64,
    /// Clock in use (`tsc` or `monotonic`) and, for `tsc`, its disagreement with the monotonic
    /// clock over the phase, as a fraction.
    pub clock: &'static str,
    /// Disagreement of the clock (see `clock`); 0 for the monotonic clock itself.
    pub clock_error: f64,
    /// Number of clock readings that were before the one preceding them.
    pub clock_back: u64,
}

/// The work that a program says it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramWork {
    /// The command that it was started by, in words that no other one has.
    pub command: String,
    /// Settings by name and value, of each of its results.
    pub results: Vec<Vec<(String, String)>>,
}

impl PhaseOutcome {
    /// A phase of which nothing but the time is known, in steps of `slice_ns`, as of work that another
    /// program did: `engine` names what did it, `why` is a clause for reports.
    pub fn of_program(engine: &'static str, why: String, elapsed_ns: u64, slice_ns: u64) -> Self {
        Self {
            ended: PhaseEnd::Complete,
            elapsed_ns,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            // Left empty rather than guessed: from outside, single operations cannot be seen.
            ops: Vec::new(),
            threads: Vec::new(),
            lateness: None,
            unissued: 0,
            verified_bytes: 0,
            slice_ns,
            series: Vec::new(),
            stretches: Vec::new(),
            parts: Vec::new(),
            promised: Vec::new(),
            replayed: None,
            reported: Vec::new(),
            reported_steps: Vec::new(),
            printed: Default::default(),
            told: Vec::new(),
            stopped: None,
            work: None,
            error: None,
            short: 0,
            engine,
            engine_why: why,
            depth_achieved: 0.0,
            clock: "monotonic",
            clock_error: 0.0,
            clock_back: 0,
        }
    }

    /// Adds a phase that followed this one, as if both were one: what lay between them is left out.
    pub fn followed_by(&mut self, next: PhaseOutcome) {
        self.ended = next.ended;
        // Weighted by time: a long phase says more of the depth than a short one.
        let outstanding = |phase: &Self| phase.depth_achieved * phase.elapsed_ns as f64;
        let both = outstanding(self) + outstanding(&next);
        self.elapsed_ns += next.elapsed_ns;
        self.depth_achieved = both / self.elapsed_ns.max(1) as f64;
        self.cpu_user_ns += next.cpu_user_ns;
        self.cpu_system_ns += next.cpu_system_ns;
        for op in next.ops {
            match self.ops.iter_mut().find(|own| own.op == op.op) {
                // Histograms add up exactly, so that a percentile of both is that of all their operations.
                Some(own) => own.merge(&op),
                None => self.ops.push(op),
            }
        }
        merge_timings(&mut self.lateness, next.lateness.as_ref());
        self.unissued += next.unissued;
        self.verified_bytes += next.verified_bytes;
        self.series.extend(next.series);
        // The first error explains what follows it.
        self.error = self.error.take().or(next.error);
        self.short += next.short;
        // The worse one: a doubt about the clock does not average out.
        self.clock_error = self.clock_error.max(next.clock_error);
        self.clock_back += next.clock_back;
        // Of one phase alone; of several they would need its place in time.
        self.threads.clear();
        self.stretches.clear();
    }

    /// Processor time of the process, in user mode and in the kernel, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns + self.cpu_system_ns
    }
}

/// Time-weighted mean of outstanding operations: the sum of the times they were, over the elapsed
/// time. Always finite; 0 if no time passed.
pub(crate) fn mean_outstanding(outstanding_ns: u128, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        return 0.0;
    }
    outstanding_ns as f64 / elapsed_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_over_no_time_is_zero() {
        assert_eq!(mean_outstanding(0, 0), 0.0);
        assert_eq!(mean_outstanding(5, 0), 0.0);
        assert_eq!(mean_outstanding(5, 2), 2.5);
        assert!(mean_outstanding(u128::MAX, 1).is_finite());
    }
}
