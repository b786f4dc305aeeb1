//! One thread's measuring of whole-file operations, and the merging of all threads' into one.
//!
//! A latency is the time of one closure, by the monotonic clock. Only what succeeded is recorded:
//! a failed operation ends its phase and is kept as the phase's error instead.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::outcome::{
    Ended, LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN, Op, OpError, OpOutcome, Outcome, Slice,
};

/// Slices a series may have; what completes later is counted in the last one.
const SLICES_MAX: usize = 1 << 20;

/// Why work ended before it was done.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Somebody asked for it.
    Stopped,
    /// This operation failed.
    Failed(Box<OpError>),
}

impl From<OpError> for Halt {
    fn from(error: OpError) -> Halt {
        Halt::Failed(Box::new(error))
    }
}

/// The time now: the only clock of whole-file operations.
#[expect(
    clippy::disallowed_methods,
    reason = "the engine measures; this is its clock for files"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds from `start` to `end`, 0 if `end` is earlier.
fn ns_between(start: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
}

/// What one thread measured.
pub(crate) struct Meter {
    start: Instant,
    end: Instant,
    slice_ns: u64,
    series: Vec<Slice>,
    /// One per kind, in the order of their discriminants; `None` for kinds that are not issued.
    kinds: [Option<Box<OpOutcome>>; Op::ALL.len()],
    short: u64,
    halt: Option<Halt>,
}

impl Meter {
    /// Makes room for these kinds of operation; slices are `slice_ns` wide, at least 1 ns.
    pub(crate) fn new(slice_ns: u64, ops: &[Op]) -> Meter {
        let start = now();
        let mut kinds = [const { None }; Op::ALL.len()];
        for &op in ops {
            kinds[op as usize] = Some(Box::new(empty(op)));
        }
        let series = Vec::with_capacity(1024);
        Meter {
            start,
            end: start,
            slice_ns: slice_ns.max(1),
            series,
            kinds,
            short: 0,
            halt: None,
        }
    }

    /// Sets the moment from which everything is counted.
    pub(crate) fn begin(&mut self, start: Instant) {
        self.start = start;
        self.end = start;
    }

    /// Runs `work`, which returns the bytes it moved, and records it as one operation.
    ///
    /// # Errors
    /// Those of `work`; nothing is recorded then.
    ///
    /// # Panics
    /// If the meter was not made for this kind of operation.
    #[inline]
    pub(crate) fn time<E>(
        &mut self,
        op: Op,
        work: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        let began = now();
        let bytes = work()?;
        let ended = now();
        self.record(op, bytes, began, ended);
        Ok(bytes)
    }

    #[inline]
    fn record(&mut self, op: Op, bytes: u64, began: Instant, ended: Instant) {
        let kind = self.kinds[op as usize]
            .as_mut()
            .expect("a meter is made for what it times");
        let latency_ns = ns_between(began, ended);
        kind.count += 1;
        kind.bytes += bytes;
        kind.latency_sum_ns += u128::from(latency_ns);
        kind.saturated += u64::from(latency_ns > LATENCY_NS_MAX);
        kind.latency
            .saturating_record(latency_ns.max(LATENCY_NS_MIN));
        if op != Op::Fsync {
            let slice = ns_between(self.start, ended) / self.slice_ns;
            let slice = usize::try_from(slice)
                .unwrap_or(usize::MAX)
                .min(SLICES_MAX - 1);
            if slice >= self.series.len() {
                self.series.resize(slice + 1, Slice::default());
            }
            self.series[slice].ops += 1;
            self.series[slice].bytes += bytes;
        }
    }

    /// Counts a read or write that moved less than was asked for.
    pub(crate) fn count_short(&mut self) {
        self.short += 1;
    }

    /// Sets the moment and the manner of the end.
    pub(crate) fn finish(&mut self, result: Result<(), Halt>) {
        self.end = now();
        self.halt = result.err();
    }

    /// Adds up what all threads measured. The error kept is that of the thread that ended first.
    ///
    /// Outstanding operations on average are the sum of all latencies over the elapsed time
    /// (Little's law). `why` says in a clause how the operations were done.
    pub(crate) fn merge(meters: Vec<Meter>, why: String) -> Outcome {
        let mut outcome = blank(why);
        let mut kinds: [Option<Box<OpOutcome>>; Op::ALL.len()] = [const { None }; Op::ALL.len()];
        let mut failed_at: Option<Instant> = None;
        for meter in meters {
            outcome.slice_ns = meter.slice_ns;
            outcome.elapsed_ns = outcome.elapsed_ns.max(ns_between(meter.start, meter.end));
            outcome.short += meter.short;
            add_series(&mut outcome.series, &meter.series);
            for (sum, part) in kinds.iter_mut().zip(meter.kinds) {
                add_kind(sum, part);
            }
            match meter.halt {
                None => {}
                Some(Halt::Stopped) if outcome.ended == Ended::Failed => {}
                Some(Halt::Stopped) => outcome.ended = Ended::Stopped,
                Some(Halt::Failed(error)) => {
                    outcome.ended = Ended::Failed;
                    if failed_at.is_none_or(|at| meter.end < at) {
                        failed_at = Some(meter.end);
                        outcome.error = Some(*error);
                    }
                }
            }
        }
        outcome.ops = kinds.into_iter().flatten().map(|kind| *kind).collect();
        outcome.ops.retain(|kind| kind.count > 0);
        let busy_ns: u128 = outcome.ops.iter().map(|kind| kind.latency_sum_ns).sum();
        if outcome.elapsed_ns > 0 {
            outcome.depth_achieved = busy_ns as f64 / outcome.elapsed_ns as f64;
        }
        outcome
    }
}

fn empty(op: Op) -> OpOutcome {
    let latency = Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
        .expect("the bounds are constants that the histogram accepts");
    OpOutcome {
        op,
        count: 0,
        bytes: 0,
        latency_sum_ns: 0,
        latency,
        saturated: 0,
    }
}

fn blank(why: String) -> Outcome {
    Outcome {
        ended: Ended::Complete,
        elapsed_ns: 0,
        ops: Vec::new(),
        slice_ns: 0,
        series: Vec::new(),
        error: None,
        short: 0,
        engine: "calls",
        engine_why: why,
        depth_achieved: 0.0,
        clock: "monotonic",
        clock_error: 0.0,
        clock_back: 0,
    }
}

fn add_series(sum: &mut Vec<Slice>, part: &[Slice]) {
    if sum.len() < part.len() {
        sum.resize(part.len(), Slice::default());
    }
    for (sum, part) in sum.iter_mut().zip(part) {
        sum.ops += part.ops;
        sum.bytes += part.bytes;
    }
}

fn add_kind(sum: &mut Option<Box<OpOutcome>>, part: Option<Box<OpOutcome>>) {
    match (sum.as_mut(), part) {
        (_, None) => {}
        (None, part) => *sum = part,
        (Some(sum), Some(part)) => {
            sum.count += part.count;
            sum.bytes += part.bytes;
            sum.latency_sum_ns += part.latency_sum_ns;
            sum.saturated += part.saturated;
            sum.latency
                .add(&part.latency)
                .expect("all histograms have the same bounds");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_succeeded_is_recorded_and_threads_add_up() {
        let mut meters = Vec::new();
        for bytes in [10, 20] {
            let mut meter = Meter::new(1_000_000, &[Op::Create, Op::Fsync, Op::Stat]);
            meter.begin(now());
            meter.time::<()>(Op::Create, || Ok(bytes)).unwrap();
            meter.time(Op::Create, || Err(())).unwrap_err();
            meter.time::<()>(Op::Fsync, || Ok(0)).unwrap();
            meter.finish(Ok(()));
            meters.push(meter);
        }
        let outcome = Meter::merge(meters, String::new());
        assert_eq!(outcome.ended, Ended::Complete);
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
    fn a_failure_of_one_thread_is_the_failure_of_all_and_the_earliest_is_kept() {
        let error = |errno| OpError {
            op: Op::Stat,
            path: "x".into(),
            offset: None,
            errno,
            detail: String::new(),
        };
        let mut meters: Vec<Meter> = (0..3).map(|_| Meter::new(1, &[Op::Stat])).collect();
        meters[2].finish(Err(error(28).into()));
        meters[0].finish(Err(Halt::Stopped));
        std::hint::black_box(now());
        meters[1].finish(Err(error(5).into()));
        let outcome = Meter::merge(meters, String::new());
        assert_eq!(outcome.ended, Ended::Failed);
        assert_eq!(outcome.error.map(|error| error.errno), Some(28));
    }
}
