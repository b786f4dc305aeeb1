//! Live counters of a running plan, with latencies in sysbench's buckets.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::outcome::Op;

/// Buckets of the latency histogram of version 1.0.
pub const BUCKETS: usize = 1024;
/// Logarithms of its bounds, 0.001 ms and 100 s in ms.
const LOW: f64 = -6.907_755_278_982_137;
const HIGH: f64 = 11.512_925_464_970_229;
const PER_STEP: f64 = (BUCKETS - 1) as f64 / (HIGH - LOW);

/// The bucket of a latency in ns; values out of range go to the nearest.
pub fn bucket_of(ns: u64) -> usize {
    let ms = (ns as f64 / 1e6).max(1e-3);
    let place = ((ms.ln() - LOW) * PER_STEP + 0.5).floor();
    (place as usize).min(BUCKETS - 1)
}

/// The figure that sysbench prints for a bucket, ms.
pub fn bucket_ms(bucket: usize) -> f64 {
    (bucket as f64 / PER_STEP + LOW).exp()
}

/// Shared between the threads of a plan and its live report. Only watched plans pay for it: some
/// atomic additions and a logarithm per event.
#[derive(Debug)]
pub struct LiveCounters {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    fsyncs: AtomicU64,
    latencies: Vec<AtomicU64>,
}

/// The events since the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSnapshot {
    /// Bytes of the reads that completed.
    pub read_bytes: u64,
    /// Bytes of the writes that completed.
    pub written_bytes: u64,
    /// fsyncs, those at the end included.
    pub fsyncs: u64,
    /// Events in each of [`BUCKETS`] buckets.
    pub latencies: Vec<u64>,
}

impl Default for LiveCounters {
    fn default() -> LiveCounters {
        let none = || AtomicU64::new(0);
        LiveCounters {
            read_bytes: none(),
            written_bytes: none(),
            fsyncs: none(),
            latencies: (0..BUCKETS).map(|_| none()).collect(),
        }
    }
}

impl LiveCounters {
    pub(super) fn event(&self, op: Op, latency_ns: u64, bytes: u64) {
        match op {
            Op::Read => self.read_bytes.fetch_add(bytes, Ordering::Relaxed),
            Op::Write => self.written_bytes.fetch_add(bytes, Ordering::Relaxed),
            _ => self.fsyncs.fetch_add(1, Ordering::Relaxed),
        };
        self.latencies[bucket_of(latency_ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// An fsync that is no event.
    pub(super) fn fsync(&self) {
        self.fsyncs.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the events since the last call.
    pub fn take(&self) -> LiveSnapshot {
        // Swapped, not read and then cleared: no event between the two is lost.
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        LiveSnapshot {
            read_bytes: take(&self.read_bytes),
            written_bytes: take(&self.written_bytes),
            fsyncs: take(&self.fsyncs),
            latencies: self.latencies.iter().map(take).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds that sysbench 1.0.20 printed in a histogram.
    #[test]
    fn buckets_are_those_sysbench_prints() {
        for printed in ["9.222", "9.389", "9.910", "26.205"] {
            let ms: f64 = printed.parse().unwrap();
            let bucket = bucket_of((ms * 1e6) as u64);
            assert_eq!(format!("{:.3}", bucket_ms(bucket)), printed);
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
        assert_eq!(format!("{:.3}", bucket_ms(BUCKETS - 1)), "100000.000");
    }
}
