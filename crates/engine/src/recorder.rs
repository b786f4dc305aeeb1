//! What one thread saw: latencies, counts and a time series, merged when all is over.
//!
//! Everything is allocated, and the histograms are touched, before the clock starts; recording an
//! operation is a few additions in memory no other thread writes to. The time series has a fixed
//! number of slices: a phase that outlasts them doubles the width of a slice and goes on, instead
//! of allocating.
//!
//! Units: nanoseconds since the phase began, bytes.

use hdrhistogram::Histogram;

use crate::memory::Apart;
use crate::outcome::{LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN, Op, OpOutcome, Slice};

/// How many slices a time series may have: an hour of 100 ms.
pub const SLICES_MAX: usize = 36_000;

/// One kind of operation, as one thread saw it.
#[derive(Debug, Clone)]
struct Lane {
    count: u64,
    bytes: u64,
    latency_sum_ns: u128,
    saturated: u64,
    latency: Histogram<u64>,
}

impl Lane {
    fn new() -> Lane {
        let mut latency =
            Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
                .expect("the bounds are constants the histogram accepts");
        // Writes all of it, so that no page is touched for the first time while measuring.
        latency.clear();
        Lane {
            count: 0,
            bytes: 0,
            latency_sum_ns: 0,
            saturated: 0,
            latency,
        }
    }

    fn merge(&mut self, other: &Lane) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency_sum_ns += other.latency_sum_ns;
        self.saturated += other.saturated;
        self.latency
            .add(&other.latency)
            .expect("histograms of the same bounds can be added");
    }
}

/// Completed work over time.
#[derive(Debug, Clone)]
struct Series {
    slice_ns: u64,
    /// Slices in use. There is room for all from the beginning, but only those that time has come
    /// to are written: a series takes memory for as long as it lasted, not for the longest one, at
    /// the price of one page fault in 256 slices (25 s at 100 ms).
    slices: Vec<Slice>,
    /// The slice written last, and the times it spans: mostly the next one too, so that a division
    /// is needed once per slice, not once per operation.
    current: usize,
    begin_ns: u64,
    end_ns: u64,
}

impl Series {
    fn new(slice_ns: u64) -> Series {
        Series {
            slice_ns: slice_ns.max(1),
            slices: Vec::with_capacity(SLICES_MAX),
            current: 0,
            begin_ns: 0,
            end_ns: 0,
        }
    }

    #[inline(always)]
    fn add(&mut self, now_ns: u64, bytes: u64) {
        if now_ns >= self.end_ns || now_ns < self.begin_ns {
            self.seek(now_ns);
        }
        let slice = &mut self.slices[self.current];
        slice.ops += 1;
        slice.bytes += bytes;
    }

    #[cold]
    #[inline(never)]
    fn seek(&mut self, now_ns: u64) {
        while now_ns / self.slice_ns >= SLICES_MAX as u64 {
            self.widen();
        }
        self.current = (now_ns / self.slice_ns) as usize;
        self.begin_ns = self.current as u64 * self.slice_ns;
        self.end_ns = self.begin_ns.saturating_add(self.slice_ns);
        self.reach(self.current + 1);
    }

    /// Puts at least so many slices to use.
    fn reach(&mut self, count: usize) {
        if count > self.slices.len() {
            self.slices.resize(count, Slice::default());
        }
    }

    /// Doubles the width of a slice: each pair becomes one.
    fn widen(&mut self) {
        self.slice_ns = self.slice_ns.saturating_mul(2);
        for index in 0..self.slices.len() {
            let slice = std::mem::take(&mut self.slices[index]);
            self.slices[index / 2].ops += slice.ops;
            self.slices[index / 2].bytes += slice.bytes;
        }
        self.slices.truncate(self.slices.len().div_ceil(2));
    }

    /// Adds another series. Widths are the same number doubled some times, so the finer one can
    /// always be brought to the coarser one.
    fn merge(&mut self, mut other: Series) {
        while self.slice_ns < other.slice_ns {
            self.widen();
        }
        while other.slice_ns < self.slice_ns {
            other.widen();
        }
        self.reach(other.slices.len());
        for (ours, theirs) in self.slices.iter_mut().zip(&other.slices) {
            ours.ops += theirs.ops;
            ours.bytes += theirs.bytes;
        }
    }
}

/// One thread's notebook.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// Allocated one by one, perhaps beside another thread's.
    lanes: [Option<Box<Apart<Lane>>>; Op::ALL.len()],
    series: Series,
    short: u64,
}

impl Recorder {
    /// A notebook for these kinds of operation (about 270 KiB each) and slices of this width.
    pub fn new(slice_ns: u64, ops: &[Op]) -> Recorder {
        let mut lanes = [const { None }; Op::ALL.len()];
        for op in ops {
            lanes[*op as usize] = Some(Box::new(Apart(Lane::new())));
        }
        Recorder {
            lanes,
            series: Series::new(slice_ns),
            short: 0,
        }
    }

    /// An operation completed. Its latency is the time between the two; it counts for the slice it
    /// ended in. An fsync is left out of the series: it completes no work of its own.
    ///
    /// # Panics
    /// If `op` was not announced to [`Recorder::new`]: a mistake of the caller.
    #[inline(always)]
    pub fn record(&mut self, op: Op, start_ns: u64, end_ns: u64, bytes: u64) {
        let Some(Apart(lane)) = self.lanes[op as usize].as_deref_mut() else {
            unannounced(op);
        };
        let latency_ns = end_ns.saturating_sub(start_ns);
        lane.count += 1;
        lane.bytes += bytes;
        lane.latency_sum_ns += u128::from(latency_ns);
        if latency_ns > LATENCY_NS_MAX {
            lane.saturated += 1;
        }
        lane.latency.saturating_record(latency_ns);
        if op != Op::Fsync {
            self.series.add(end_ns, bytes);
        }
    }

    /// The operation just recorded moved fewer bytes than asked.
    #[inline]
    pub fn short(&mut self) {
        self.short += 1;
    }

    /// How many operations of this kind were recorded.
    pub fn count(&self, op: Op) -> u64 {
        self.lanes[op as usize]
            .as_ref()
            .map_or(0, |lane| lane.0.count)
    }

    /// Operations recorded so far, fsyncs left out, and the bytes they moved.
    pub fn progress(&self) -> (u64, u64) {
        let mut sum = (0, 0);
        for (lane, op) in self.lanes.iter().zip(Op::ALL) {
            if let Some(lane) = lane
                && op != Op::Fsync
            {
                sum = (sum.0 + lane.0.count, sum.1 + lane.0.bytes);
            }
        }
        sum
    }

    /// All notebooks of a phase as one.
    pub fn merge(recorders: Vec<Recorder>, slice_ns: u64) -> Merged {
        let mut recorders = recorders.into_iter();
        let mut sum = recorders
            .next()
            .unwrap_or_else(|| Recorder::new(slice_ns, &[]));
        for other in recorders {
            for (ours, theirs) in sum.lanes.iter_mut().zip(other.lanes) {
                match (ours.as_mut(), theirs) {
                    (Some(ours), Some(theirs)) => ours.0.merge(&theirs.0),
                    (None, theirs) => *ours = theirs,
                    (Some(_), None) => {}
                }
            }
            sum.series.merge(other.series);
            sum.short += other.short;
        }
        let ops = sum.lanes.into_iter().zip(Op::ALL).filter_map(|(lane, op)| {
            let lane = lane.map(|lane| lane.0).filter(|lane| lane.count > 0);
            lane.map(|lane| OpOutcome {
                op,
                count: lane.count,
                bytes: lane.bytes,
                latency_sum_ns: lane.latency_sum_ns,
                latency: lane.latency,
                saturated: lane.saturated,
                service: None,
            })
        });
        let mut series = sum.series.slices;
        series.shrink_to_fit();
        Merged {
            ops: ops.collect(),
            slice_ns: sum.series.slice_ns,
            series,
            short: sum.short,
        }
    }
}

#[cold]
#[inline(never)]
fn unannounced(op: Op) -> ! {
    panic!("{} was recorded but not announced", op.name());
}

/// The parts of an [`crate::Outcome`] that come from the notebooks; same meaning as there.
#[derive(Debug, Clone)]
pub struct Merged {
    /// See [`crate::Outcome::ops`].
    pub ops: Vec<OpOutcome>,
    /// See [`crate::Outcome::slice_ns`]; a power of two times what was asked for, if the phase
    /// lasted longer than [`SLICES_MAX`] slices.
    pub slice_ns: u64,
    /// See [`crate::Outcome::series`].
    pub series: Vec<Slice>,
    /// See [`crate::Outcome::short`].
    pub short: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (kind, start, latency, bytes)
    type Event = (usize, u64, u64, u64);

    fn event() -> impl Strategy<Value = Event> {
        (
            0usize..3,
            0u64..20_000_000,
            prop_oneof![0u64..1_000, 0u64..LATENCY_NS_MAX * 2],
            0u64..9_999,
        )
    }

    fn notebook(events: &[Event]) -> Recorder {
        let mut recorder = Recorder::new(1_000, &[Op::Read, Op::Write, Op::Fsync]);
        for (kind, start, latency, bytes) in events {
            recorder.record(Op::ALL[*kind], *start, start + latency, *bytes);
        }
        recorder
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Who recorded what does not matter.
        #[test]
        fn merged_equals_recorded_alone(events in prop::collection::vec(event(), 0..300), cut in 0usize..300) {
            let cut = cut.min(events.len());
            let (left, right) = events.split_at(cut);
            let together = Recorder::merge(vec![notebook(left), notebook(right)], 1_000);
            let alone = Recorder::merge(vec![notebook(&events)], 1_000);
            prop_assert_eq!(together.slice_ns, alone.slice_ns);
            prop_assert_eq!(&together.series, &alone.series);
            prop_assert_eq!(together.ops.len(), alone.ops.len());
            for (a, b) in together.ops.iter().zip(&alone.ops) {
                prop_assert_eq!((a.op, a.count, a.bytes, a.latency_sum_ns, a.saturated),
                    (b.op, b.count, b.bytes, b.latency_sum_ns, b.saturated));
                prop_assert_eq!(&a.latency, &b.latency);
            }
        }

        /// The series loses nothing, however often it was widened, and leaves out fsyncs.
        #[test]
        fn series_sums_equal_counters(events in prop::collection::vec(event(), 0..300)) {
            let merged = Recorder::merge(vec![notebook(&events)], 1_000);
            let sums = merged.series.iter().fold((0, 0), |s, x| (s.0 + x.ops, s.1 + x.bytes));
            let counters = merged.ops.iter().filter(|o| o.op != Op::Fsync)
                .fold((0, 0), |s, o| (s.0 + o.count, s.1 + o.bytes));
            prop_assert_eq!(sums, counters);
            prop_assert!(merged.series.len() <= SLICES_MAX);
        }
    }

    #[test]
    fn work_is_found_in_the_slice_it_ended_in_after_widening() {
        let mut recorder = Recorder::new(1_000, &[Op::Read]);
        recorder.record(Op::Read, 0, 3_500, 10);
        recorder.record(Op::Read, 0, 1_000 * SLICES_MAX as u64, 10);
        let merged = Recorder::merge(vec![recorder], 1_000);
        assert_eq!(merged.slice_ns, 2_000);
        assert_eq!(merged.series[1], Slice { ops: 1, bytes: 10 });
        assert_eq!(merged.series.len(), SLICES_MAX / 2 + 1);
    }

    #[test]
    fn series_of_different_widths_merge_without_loss() {
        let mut short = Recorder::new(1_000, &[Op::Read]);
        short.record(Op::Read, 0, 2_500, 10);
        let mut long = Recorder::new(1_000, &[Op::Read]);
        long.record(Op::Read, 0, 1_000 * SLICES_MAX as u64, 7);
        let expected = Slice { ops: 1, bytes: 10 };
        for both in [vec![short.clone(), long.clone()], vec![long, short]] {
            let merged = Recorder::merge(both, 1_000);
            assert_eq!(merged.slice_ns, 2_000);
            assert_eq!(merged.series[1], expected);
            assert_eq!(merged.series.len(), SLICES_MAX / 2 + 1);
        }
    }

    #[test]
    fn latencies_beyond_the_range_are_counted() {
        let mut recorder = Recorder::new(1_000_000_000, &[Op::Write]);
        recorder.record(Op::Write, 5, 5 + LATENCY_NS_MAX + 1, 1);
        recorder.record(Op::Write, 5, 5 + LATENCY_NS_MAX, 1);
        let merged = Recorder::merge(vec![recorder], 1);
        assert_eq!((merged.ops[0].saturated, merged.ops[0].count), (1, 2));
        assert_eq!(merged.ops[0].latency.len(), 2);
    }

    #[test]
    #[should_panic(expected = "rename was recorded but not announced")]
    fn an_unannounced_kind_is_a_mistake() {
        Recorder::new(1, &[Op::Read]).record(Op::Rename, 0, 1, 0);
    }
}
