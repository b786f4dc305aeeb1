//! What several clients of one storage measured in a trial, all at the same time.

use super::counted::Counted;
use serde::{Deserialize, Serialize};

/// Work of each client, and how well they did it at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientsTogether {
    /// Each process, by rank: its place in this value.
    pub each: Vec<ClientPart>,
    /// Each phase.
    pub phases: Vec<CommonPhase>,
}

/// Work of one process of a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientPart {
    // One entry for each process: several of them may be of one client.
    /// The client, as the user named it.
    pub client: String,
    /// Number of the process, from 1.
    pub process: u32,
    /// The shortest round trip to it when the clocks were compared, ns: the starts are known to half
    /// of it.
    pub round_trip_ns: u64,
    /// Time its wall clock is ahead of that of the first client, ns.
    pub wall_clock_ahead_ns: i64,
    /// Way its caches were emptied: `drop_caches`, `advice`, `none`.
    pub caches: String,
    /// Work in each phase.
    pub phases: Vec<ClientPhase>,
    // Of each apart: a limit of one client is not one of all.
    /// Counters of its system, all phases together.
    pub counted: Counted,
}

/// Work of one process in a phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientPhase {
    /// Delay after the first one at which it began, ns.
    pub began_ns: u64,
    /// Duration, ns.
    pub elapsed_ns: u64,
    /// Operations that completed, fsyncs left out.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    // A step of the time series that lies in the common time in part counts in part, so these are no
    // whole numbers.
    /// Operations that completed while all were at work.
    pub window_operations: f64,
    /// Bytes they moved.
    pub window_bytes: f64,
    /// 99th percentile of the latency of the most frequent operation, ns; 0 if there was none.
    pub latency_ns_p99: u64,
}

/// Overlap of the clients in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonPhase {
    /// Name of the phase within the workload.
    pub name: String,
    /// Time from the first start to the last one, ns.
    pub skew_ns: u64,
    /// Time all were at work: from the last start to the first end, ns.
    pub window_ns: u64,
    /// Time from the first start to the last end, ns.
    pub elapsed_ns: u64,
}

impl CommonPhase {
    /// The share of the phase in which all were at work.
    pub fn overlap(&self) -> f64 {
        // Read from a log, which may say 0.
        self.window_ns as f64 / (self.elapsed_ns as f64).max(1.0)
    }
}
