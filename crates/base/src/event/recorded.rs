//! A recorded application: what a replay of it is held against.

use serde::{Deserialize, Serialize};

/// A recorded application, as the head of a run keeps it. Shares are of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedApplication {
    /// Configuration, by index, on the storage where it was recorded; `None` if that is not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<usize>,
    /// File system that it was recorded on.
    pub file_system: String,
    /// Share of events that were lost.
    pub lost: f64,
    /// Share of the time on storage that is replayed.
    pub covered: f64,
    /// Share of the application's processor time that recording cost.
    pub cost: f64,
    /// Elapsed time without what recording took, ns.
    pub elapsed_ns: u64,
    /// Kinds of calls, those with the most time first.
    pub operations: Vec<RecordedOperation>,
    /// What the devices did; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<RecordedDevice>,
    /// Why its elapsed time says little of the storage; `None` if it says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_by_elapsed: Option<NotByElapsed>,
}

/// Recorded calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedOperation {
    /// `read`, `write`, `fsync` …
    pub op: String,
    /// Time of all of them, ns.
    pub ns: u64,
    /// 99th percentile of their times, ns.
    pub ns_p99: u64,
}

/// What the devices below the recorded directory did, for all programs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDevice {
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Flushes; `None` where the kernel does not count them.
    pub flushes: Option<u64>,
}

/// Why the elapsed time of a recorded application says little of the storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum NotByElapsed {
    /// It mostly waits for clients or timers.
    Waits,
    /// What it is asked for arrives when it did, however fast the storage is.
    Arrivals,
    /// Its threads share syncs: how many it makes follows from how fast the storage is, and a replay makes the recorded ones.
    Joins {
        /// Syncs that several threads shared.
        shared: u64,
        /// Syncs that it made, shared or not.
        syncs: u64,
    },
}

/// Calls of a recorded application that were made again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedCalls {
    /// How many.
    pub calls: u64,
    /// Those whose result is not the recorded one.
    pub differing: u64,
}
