//! What a trace is counted by, and how its waits are meant.

use hdrhistogram::Histogram;
use stackrace_engine::{LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN};

/// How waits for what was not recorded are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::workload) enum Arrivals {
    /// They last as long as they did.
    Closed,
    /// They end when they did, counted from the start.
    Open,
}

/// Recorded calls of a kind.
#[derive(Debug)]
pub(super) struct RecordedOp {
    pub(super) sum_ns: u128,
    pub(super) latency: Histogram<u64>,
}

impl RecordedOp {
    pub(super) fn add(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.latency.saturating_record(ns);
    }
}

impl Default for RecordedOp {
    fn default() -> Self {
        // As those of the engine.
        let bounds = Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS);
        Self {
            sum_ns: 0,
            latency: bounds.expect("the engine has the same bounds"),
        }
    }
}
