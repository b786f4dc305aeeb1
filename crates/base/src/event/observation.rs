//! What one trial measured, and what the system counted meanwhile.

use super::client::ClientsTogether;
use super::counted::Counted;
use super::exchanged::ExchangedStorage;
use super::fact::Fact;
use super::recorded::ReplayedCalls;
use crate::unit;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Way a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Ended {
    /// The trial measured what it was to measure.
    Complete,
    /// The trial was interrupted; what was measured until then is kept and never judged.
    Interrupted,
    /// Something failed; what was measured until then is kept and never judged.
    Failed {
        /// Operation tried, its object and the system's error.
        error: String,
    },
}

impl Ended {
    /// The word as it is written in the log and in every table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
        }
    }

    /// Error of the trial, if something failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error } => Some(error),
            Self::Complete | Self::Interrupted => None,
        }
    }
}

/// Everything one trial left behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Observation {
    /// Round, from 1.
    pub round: u32,
    /// Position in the round's order, from 0.
    pub position: usize,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// Way it ended.
    pub ended: Ended,
    /// Time when its clock started, RFC 3339.
    pub started_at: String,
    /// Preparation (data laid out), outside the clock, ns.
    pub prepare_ns: u64,
    /// Settling (caches, remount), outside the clock, ns.
    pub settle_ns: u64,
    /// Work and findings of settling.
    pub settled: Settled,
    /// Preconditioning before it; `None` if the study does not ask for it, or the stack has stood
    /// since an earlier round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditioned: Option<Preconditioned>,
    /// The measured part, ns.
    pub elapsed_ns: u64,
    /// Counters of the system meanwhile.
    pub counted: Counted,
    /// The phases, in order.
    pub phases: Vec<PhaseObservation>,
    /// Value of each metric of the workload that could be had, in its order; `None` if not measured.
    pub metrics: Vec<Option<f64>>,
    /// Fineness of each of these values, in its own unit: the last digit printed, the tick of the clock, one operation.
    /// `None`, or not there, means no coarser than the digits of the value itself.
    // Beside the values, so that logs from before it was kept are read as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolution: Vec<Option<f64>>,
    /// Notes the reader must know of this trial.
    pub notes: Vec<String>,
    /// Those of the notes that speak against the figures: errors that another tool printed beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// The other machines that did the same at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherNode>,
    /// The clients that measured it together; everything else here is of all of them. `None` if one
    /// machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsTogether>,
    /// Turns it took with the trials of other configurations; `None` if it was measured in one go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sliced: Option<Sliced>,
    /// What was measured at the same time on the same stack; `None` if it was measured alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<WorkedBeside>,
    /// Storage that was exchanged, for which the trial failed; `None` if it lay on the same all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged: Option<Box<ExchangedStorage>>,
    /// Advice about a failure as the layer gave it, one clause that begins with a verb; empty if there is none
    /// ([`Observation::next`] knows of more).
    // Beside the error, which is quoted where advice does not belong: in a verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// Cause of a failure as the system gave it; `None` if nothing failed, the cause is not the system's, or the log is
    /// from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
}

/// Cause of a failure, as a value that the system gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureCause {
    /// A call of the system failed with this number (errno(3)).
    Errno(i32),
    /// A command failed.
    Command {
        /// The command as it would be typed.
        command: String,
        /// Its exit status; `None` if a signal ended it.
        status: Option<i32>,
    },
}

impl FailureCause {
    /// Returns true if it may be gone at another try, because it lies outside of what was asked for: a directory that
    /// was away, a device that could not be mounted, a full disk.
    pub fn can_be_mended(&self) -> bool {
        match self {
            // What was asked for makes no sense there, today and tomorrow.
            Self::Errno(number) => ![Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS]
                .map(Errno::raw_os_error)
                .contains(number),
            // What it disliked may be on the machine: a device, a module, a server.
            Self::Command { .. } => true,
        }
    }
}

impl Observation {
    /// Advice to the user about its failure: one clause that begins with a verb; empty if there is none.
    pub fn next(&self) -> &str {
        match &self.exchanged {
            // Whatever failed because of it has its own advice, which would not help.
            Some(exchanged) => exchanged.advice(),
            None => &self.advice,
        }
    }

    /// A trial that ended like this before anything of it was measured: of the first round, the first
    /// configuration and workload. Callers say what differs.
    pub fn unmeasured(ended: Ended) -> Self {
        Self {
            round: 1,
            position: 0,
            configuration: 0,
            workload: 0,
            ended,
            started_at: String::new(),
            prepare_ns: 0,
            settle_ns: 0,
            settled: Settled::default(),
            preconditioned: None,
            elapsed_ns: 0,
            counted: Counted::default(),
            phases: Vec::new(),
            metrics: Vec::new(),
            resolution: Vec::new(),
            notes: Vec::new(),
            against: Vec::new(),
            others: Vec::new(),
            clients: None,
            sliced: None,
            beside: None,
            exchanged: None,
            advice: String::new(),
            cause: None,
        }
    }
}

/// The other workloads that were measured at the same time on the same stack. Each has a trial of its own; the
/// counters of the system are of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkedBeside {
    /// Their numbers in the study.
    pub workloads: Vec<usize>,
    /// Bytes that they read.
    pub read_bytes: u64,
}

/// A trial that took turns with those of other configurations, slice by slice. Every second lap goes
/// backwards (A B, B A, ...). Nothing is left out of any slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sliced {
    /// Planned duration of a slice, ns.
    pub slice_ns: u64,
    /// Number of slices it had.
    pub slices: u64,
    /// Slices of laps in the order of the round.
    pub forwards: SliceSum,
    /// Slices of laps in the opposite order.
    pub backwards: SliceSum,
}

/// Work done in several slices together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceSum {
    /// Duration, ns.
    pub ns: u64,
    /// Operations that completed, fsyncs left out.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their latencies, ns.
    pub latency_ns: u64,
}

/// Measurement of another machine in a trial, doing the same as the first at the same time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OtherNode {
    /// `node2`.
    pub host: String,
    /// The measured part there, ns.
    pub elapsed_ns: u64,
    /// The phases, in order.
    pub phases: Vec<PhaseObservation>,
    /// Values of the workload's own metrics, in its order.
    pub metrics: Vec<Option<f64>>,
    /// Pauses of a second or more of the program there, as [`Counted::paused_ns`], ns.
    #[serde(default)]
    pub paused_ns: u64,
    /// Time that machine was suspended, ns.
    #[serde(default)]
    pub suspended_ns: u64,
}

/// Time one of a trial's machines did not run while it measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwayTime<'a> {
    /// `node2`; empty for the first machine.
    pub host: &'a str,
    /// The program was stopped or had no processor, ns.
    pub paused_ns: u64,
    /// The machine was suspended, ns.
    pub suspended_ns: u64,
    /// A process that the program started and that was stopped instead; `None`: it was the program itself, or is not told.
    pub stopped: Option<&'a str>,
    /// The measured part, ns.
    pub elapsed_ns: u64,
}

impl AwayTime<'_> {
    /// What was away, and for how long, as a clause; `None` if nothing was.
    pub fn said(&self) -> Option<String> {
        let on = match self.host {
            "" => String::new(),
            host => format!(" on {host}"),
        };
        let (what, ns) = match self.suspended_ns >= self.paused_ns {
            true => ("the machine was suspended".to_owned(), self.suspended_ns),
            false => {
                let who = self.stopped.unwrap_or("the program");
                (format!("{who} was stopped"), self.paused_ns)
            }
        };
        (ns > 0).then(|| format!("{what}{on} for {}", unit::time_ns(ns as f64)))
    }

    /// Share of the measured part; above 1 where the machine was suspended for longer than it was measured.
    pub fn share(&self) -> f64 {
        let away = self.paused_ns as f64 + self.suspended_ns as f64;
        away / (self.elapsed_ns as f64).max(1.0)
    }
}

impl Observation {
    /// Fineness of the value of a metric, in its own unit; 0 if it is exact, or there is no value.
    pub fn step(&self, metric: usize) -> f64 {
        let told = self.resolution.get(metric).copied().flatten();
        let value = self.metrics.get(metric).copied().flatten();
        // Values that agree to the last bit were cut somewhere: their digits say where.
        told.unwrap_or_else(|| value.map_or(0.0, unit::step_of))
    }

    /// The machine that was away for the largest share of its measured part; the first one, where none
    /// was.
    pub fn away(&self) -> AwayTime<'_> {
        let first = AwayTime {
            host: "",
            paused_ns: self.counted.paused_ns.unwrap_or(0),
            suspended_ns: self.counted.suspended_ns.unwrap_or(0),
            stopped: self.counted.stopped.as_deref(),
            elapsed_ns: self.elapsed_ns,
        };
        let others = self.others.iter().map(|other| AwayTime {
            host: &other.host,
            paused_ns: other.paused_ns,
            suspended_ns: other.suspended_ns,
            stopped: None,
            elapsed_ns: other.elapsed_ns,
        });
        let clients = self.clients.iter().flat_map(|clients| &clients.each);
        let clients = clients.map(|client| AwayTime {
            host: &client.client,
            paused_ns: client.counted.paused_ns.unwrap_or(0),
            suspended_ns: client.counted.suspended_ns.unwrap_or(0),
            stopped: client.counted.stopped.as_deref(),
            elapsed_ns: client.phases.iter().map(|phase| phase.elapsed_ns).sum(),
        });
        others
            .chain(clients)
            .fold(first, |most, other| match other.share() > most.share() {
                true => other,
                false => most,
            })
    }
}

/// Preconditioning of a stack to its steady state before a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preconditioned {
    /// Bytes written from beginning to end first, all times together; 0 if they were before an
    /// earlier trial on the same stack.
    pub written_bytes: u64,
    /// Duration of all of it, ns.
    pub elapsed_ns: u64,
    /// The primary metric in each pass of the workload that followed; `None` if it could not be had.
    pub passes: Vec<Option<f64>>,
    /// True if the last five passes satisfy the criterion of the steady state; else as many were
    /// done as the specification allows.
    pub steady: bool,
}

/// Work of settling before the clock started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// `drop_caches`, `advice` (posix_fadvise, no root), `none`, or `unknown` (imported).
    pub caches: String,
    /// True if the file system was unmounted and mounted again.
    pub remounted: bool,
    /// Bytes of the prepared data that were in the page cache when the clock started; `None` if
    /// nothing was prepared, or it could not be found out.
    pub resident_bytes: Option<u64>,
    /// Bytes of prepared data that was looked at.
    pub prepared_bytes: Option<u64>,
    /// Bytes of the data by how the file system stores them; `None` if it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredBytes>,
    /// True if a program serves the file system (FUSE): what it reads and writes for a trial, the kernel counts as that
    /// program's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub served_by_program: bool,
}

/// Bytes of a trial's data by how they are stored when the clock starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBytes {
    /// Bytes of all files that were looked at.
    pub bytes: u64,
    /// Bytes in holes: read as zeros without a device.
    pub hole_bytes: u64,
    /// Bytes in extents that were reserved and never written: read as zeros too.
    pub unwritten_bytes: u64,
    /// Bytes in extents that are compressed or encrypted.
    pub encoded_bytes: u64,
}

impl From<stackrace_system::extents::Stored> for StoredBytes {
    fn from(stored: stackrace_system::extents::Stored) -> Self {
        Self {
            bytes: stored.bytes,
            hole_bytes: stored.hole_bytes,
            unwritten_bytes: stored.unwritten_bytes,
            encoded_bytes: stored.encoded_bytes,
        }
    }
}

/// A trial whose program did not run for more than this share of the measured part is not counted.
pub const AWAY_SHARE: f64 = 0.05;

/// One phase of one trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseObservation {
    /// Name of the phase within the workload.
    pub name: String,
    /// Time from the first start to the last end, ns.
    pub elapsed_ns: u64,
    /// Processor time of this process within the phase alone, user, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_user_ns: Option<u64>,
    /// The same, system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_system_ns: Option<u64>,
    /// Engine and why it was chosen.
    pub engine: String,
    /// Clock in use.
    pub clock: String,
    /// Mean operations outstanding; 0 if not measured.
    pub depth_achieved: f64,
    /// Operations per second the schedule asked for; `None` for a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Each kind of operation.
    pub operations: Vec<OperationObservation>,
    /// Width of a step of the time series, ns.
    // On record, since a long phase doubles it until its series is short enough.
    pub step_ns: u64,
    /// Completed (operations, bytes) in each step.
    pub series: Vec<(u64, u64)>,
    /// Open loop only: how late operations were issued, which is the generator's own fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<TimingObservation>,
    /// Open loop only: operations that were due when the phase ended, and were not issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unissued: Option<u64>,
    /// Each thread alone, where there were several.
    // One thread alone has the figures of its phase, and they are there already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Vec<ThreadOperation>>,
    /// Sentences of the program that was measured against its own figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// The work that the program says it did: of the first trial of each configuration in an execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<WorkDone>>,
    /// How the results of a replay compare with the recorded ones; `None` if it is no replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<ReplayedCalls>,
}

/// The work that a program says it did: figures of other work by the same command are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// The command that it was started by, in words that no other one has.
    pub command: String,
    /// Settings of each of its results.
    pub results: Vec<Vec<Fact>>,
}

/// One kind of operation of one thread within a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOperation {
    /// `read`, `write`, `fsync`, `create` …
    pub op: String,
    /// Completed.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Median latency, ns.
    pub latency_ns_p50: u64,
    /// 99th percentile, ns.
    pub latency_ns_p99: u64,
    /// Largest latency, ns.
    pub latency_ns_max: u64,
}

/// A distribution of times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingObservation {
    /// Arithmetic mean of the times, ns.
    pub ns_mean: f64,
    /// Median, ns.
    pub ns_p50: u64,
    /// 99th percentile, ns.
    pub ns_p99: u64,
    /// Largest, ns.
    pub ns_max: u64,
    /// The whole histogram: HdrHistogram V2, deflated, base64.
    // Kept whole: percentiles of several trials cannot be computed from their percentiles.
    pub histogram: String,
}

/// One kind of operation within a phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OperationObservation {
    /// `read`, `write`, `fsync`, `create` …
    pub op: String,
    /// Completed.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Smallest latency, ns.
    pub latency_ns_min: u64,
    /// Arithmetic mean of the latencies, ns.
    pub latency_ns_mean: f64,
    /// Median latency, ns.
    pub latency_ns_p50: u64,
    /// 95th percentile, ns.
    pub latency_ns_p95: u64,
    /// 99th percentile, ns.
    pub latency_ns_p99: u64,
    /// 99.9th percentile, ns; none below 10,000 operations.
    pub latency_ns_p999: Option<u64>,
    /// Largest latency, ns.
    pub latency_ns_max: u64,
    /// The whole histogram: HdrHistogram V2, deflated, base64.
    pub histogram: String,
    /// Open loop only: from the issue to the completion, the latencies above being counted from the
    /// intended start. `None` if the latencies are the service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<TimingObservation>,
}
