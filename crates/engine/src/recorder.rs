//! The measurements of one thread: latencies, counts and a time series, merged at the end.
//!
//! Everything is allocated, and the counts of latencies are touched, before the clock starts. Recording an
//! operation is a few additions in memory that no other thread writes. The time series has a fixed
//! number of slices: a longer phase doubles the width of a slice instead of allocating.
//!
//! Units: nanoseconds since the phase began, bytes.

use crate::lane::{Lane, Latencies, merge_latencies};
use crate::outcome::{Op, OpOutcome, Slice, ThreadOutcome, Timing};
use crate::progress::Progress;
use stackrace_system::memory::CachePadded;

/// Most steps of a time series: an hour of 100 ms.
pub const SLICES_MAX: usize = 36_000;

/// Completed work over time.
#[derive(Debug, Clone)]
struct Series {
    slice_ns: u64,
    /// Slices in use. The capacity is reserved at the start, but a slice is written only when its
    /// time comes. So a short series uses little memory, at the cost of one page fault per 256
    /// slices (25 s at 100 ms).
    slices: Vec<Slice>,
    /// The slice written last and its time span. The next operation mostly falls into it, so a
    /// division is needed once per slice, not per operation.
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
    fn add(&mut self, now_ns: u64, ops: u64, bytes: u64) {
        if now_ns >= self.end_ns || now_ns < self.begin_ns {
            self.seek(now_ns);
        }
        let slice = &mut self.slices[self.current];
        slice.ops += ops;
        slice.bytes += bytes;
    }

    #[cold]
    #[inline(never)]
    fn seek(&mut self, now_ns: u64) {
        // More than once if no operation ended for long.
        while now_ns / self.slice_ns >= SLICES_MAX as u64 {
            self.widen();
        }
        self.current = (now_ns / self.slice_ns) as usize;
        self.begin_ns = self.current as u64 * self.slice_ns;
        self.end_ns = self.begin_ns.saturating_add(self.slice_ns);
        self.reach(self.current + 1);
    }

    /// Grows the series to at least `count` slices.
    fn reach(&mut self, count: usize) {
        if count > self.slices.len() {
            self.slices.resize(count, Slice::default());
        }
    }

    /// Doubles the width of a slice: each pair becomes one.
    fn widen(&mut self) {
        self.slice_ns = self.slice_ns.saturating_mul(2);
        // In place and from the front: what is written lies no further than what is read.
        for index in 0..self.slices.len() {
            let slice = std::mem::take(&mut self.slices[index]);
            self.slices[index / 2].ops += slice.ops;
            self.slices[index / 2].bytes += slice.bytes;
        }
        self.slices.truncate(self.slices.len().div_ceil(2));
    }

    /// Widens the slices to at least this width.
    fn widened_to(mut self, slice_ns: u64) -> Series {
        while self.slice_ns < slice_ns {
            self.widen();
        }
        self
    }

    /// Adds another series. Both widths are the same number times a power of two, so the finer
    /// series can always be widened to the coarser one.
    fn merge(&mut self, other: Series) {
        while self.slice_ns < other.slice_ns {
            self.widen();
        }
        let other = other.widened_to(self.slice_ns);
        self.reach(other.slices.len());
        for (ours, theirs) in self.slices.iter_mut().zip(&other.slices) {
            ours.ops += theirs.ops;
            ours.bytes += theirs.bytes;
        }
    }
}

/// The recorder of one thread.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// Padded, because the allocator may place them beside another thread's.
    lanes: [Option<Box<CachePadded<Lane>>>; Op::ALL.len()],
    /// Lateness of each operation, in an open loop only.
    lateness: Option<Latencies>,
    series: Series,
    short: u64,
    /// Records the closing of a phase, not a thread.
    closing: bool,
}

impl Recorder {
    /// A recorder for these kinds of operation (about 90 KiB each) and steps of this width.
    pub fn new(slice_ns: u64, ops: &[Op]) -> Recorder {
        let mut lanes = [const { None }; Op::ALL.len()];
        for op in ops {
            lanes[*op as usize] = Some(Box::new(CachePadded(Lane::new(*op))));
        }
        Recorder {
            lanes,
            lateness: None,
            series: Series::new(slice_ns),
            short: 0,
            closing: false,
        }
    }

    /// Adds the service times and the lateness of an open loop. Fsyncs are not scheduled, so their
    /// latency is already their service time.
    pub fn open_loop(mut self) -> Recorder {
        for lane in self.lanes.iter_mut().flatten() {
            lane.0.service = (lane.0.op != Op::Fsync).then(Latencies::new);
        }
        self.lateness = Some(Latencies::new());
        self
    }

    /// Makes it the recorder for the closing of a phase: it counts, but not as a thread.
    pub fn closing(mut self) -> Recorder {
        self.closing = true;
        self
    }

    /// Records a completed operation. It counts for the slice in which it ended. Fsyncs are left
    /// out of the series: they move no data.
    ///
    /// # Panics
    /// If `op` was not given to [`Recorder::new`]: a bug of the caller.
    #[inline(always)]
    pub fn record(&mut self, op: Op, start_ns: u64, end_ns: u64, bytes: u64) {
        let Some(CachePadded(lane)) = self.lanes[op as usize].as_deref_mut() else {
            unannounced(op);
        };
        lane.record(end_ns.saturating_sub(start_ns), 1, bytes);
        if op != Op::Fsync {
            self.series.add(end_ns, 1, bytes);
        }
    }

    /// Records `count` operations that began and ended together and moved `bytes` in sum, like as
    /// many calls of [`Recorder::record`]. A completed batch is recorded at the cost of one
    /// operation.
    ///
    /// # Panics
    /// As [`Recorder::record`].
    #[inline(always)]
    pub fn record_alike(&mut self, op: Op, start_ns: u64, end_ns: u64, count: u64, bytes: u64) {
        let Some(CachePadded(lane)) = self.lanes[op as usize].as_deref_mut() else {
            unannounced(op);
        };
        lane.record(end_ns.saturating_sub(start_ns), count, bytes);
        if op != Op::Fsync {
            self.series.add(end_ns, count, bytes);
        }
    }

    /// Adds the service time, from issue to completion, of the operation just recorded.
    #[inline(always)]
    pub fn served(&mut self, op: Op, service_ns: u64) {
        if let Some(lane) = &mut self.lanes[op as usize]
            // Only an open loop has one; in a closed loop it would be the latency once more.
            && let Some(service) = &mut lane.0.service
        {
            service.record(service_ns, 1);
        }
    }

    /// Records how late an operation of an open loop was issued.
    #[inline(always)]
    pub fn late(&mut self, late_ns: u64) {
        if let Some(lateness) = &mut self.lateness {
            lateness.record(late_ns, 1);
        }
    }

    /// The operation just recorded moved fewer bytes than asked.
    #[inline]
    pub fn short(&mut self) {
        self.short += 1;
    }

    /// Number of operations of this kind that were recorded.
    pub fn count(&self, op: Op) -> u64 {
        self.lanes[op as usize]
            .as_ref()
            .map_or(0, |lane| lane.0.count)
    }

    /// Everything recorded so far.
    pub(crate) fn done(&self) -> Vec<OpOutcome> {
        let lanes = self.lanes.iter().flatten().filter(|lane| lane.0.count > 0);
        lanes.map(|lane| lane.0.outcome()).collect()
    }

    /// Everything recorded so far, fsyncs left out, in sum.
    pub(crate) fn progress(&self) -> Progress {
        let lanes = self.lanes.iter().flatten().map(|lane| &lane.0);
        let work = lanes.filter(|lane| lane.op != Op::Fsync);
        work.fold(Progress::default(), |sum, lane| {
            sum.plus(Progress {
                ops: lane.count,
                bytes: lane.bytes,
                latency_ns: lane.latency_sum_ns(),
            })
        })
    }

    /// Merges the recorders of a phase, and keeps each thread's results if there were several
    /// threads.
    pub fn merge(recorders: Vec<Recorder>, slice_ns: u64) -> Merged {
        let mut lanes: [Option<Lane>; Op::ALL.len()] = [const { None }; Op::ALL.len()];
        // Those of a single thread would be the whole once more.
        let several = recorders.iter().filter(|r| !r.closing).count() > 1;
        let (mut threads, mut lateness, mut short) = (Vec::new(), None, 0);
        let mut series: Option<Series> = None;
        for recorder in recorders {
            if several && !recorder.closing {
                threads.push((recorder.done(), recorder.series.clone()));
            }
            let kinds = recorder.lanes.into_iter().flatten().map(|kind| kind.0);
            for kind in kinds.filter(|kind| kind.count > 0) {
                match &mut lanes[kind.op as usize] {
                    Some(lane) => lane.merge(&kind),
                    lane => *lane = Some(kind),
                }
            }
            merge_latencies(&mut lateness, recorder.lateness.as_ref());
            match &mut series {
                Some(series) => series.merge(recorder.series),
                None => series = Some(recorder.series),
            }
            short += recorder.short;
        }
        // No recorders: an empty phase still has a series.
        let mut series = series.unwrap_or_else(|| Series::new(slice_ns));
        let threads = threads.into_iter().map(|(ops, part)| ThreadOutcome {
            ops,
            // A thread that ended early has narrower slices than one that went on.
            series: part.widened_to(series.slice_ns).slices,
        });
        let threads = threads.collect();
        // The outcome may be kept for long: return the unused capacity.
        series.slices.shrink_to_fit();
        Merged {
            ops: lanes.iter().flatten().map(Lane::outcome).collect(),
            threads,
            lateness: lateness.as_ref().map(Latencies::timing),
            slice_ns: series.slice_ns,
            series: series.slices,
            short,
        }
    }
}

#[cold]
#[inline(never)]
fn unannounced(op: Op) -> ! {
    panic!("{} was recorded but not announced", op.name());
}

/// The parts of a [`crate::PhaseOutcome`] that come from recorders.
#[derive(Debug, Clone)]
pub struct Merged {
    /// Operations, as [`crate::PhaseOutcome::ops`].
    pub ops: Vec<OpOutcome>,
    /// Work of each thread, as [`crate::PhaseOutcome::threads`].
    pub threads: Vec<ThreadOutcome>,
    /// Lateness, as [`crate::PhaseOutcome::lateness`].
    pub lateness: Option<Timing>,
    /// Width of a slice, as [`crate::PhaseOutcome::slice_ns`]; a power of two times what was asked
    /// for, if the phase lasted longer than [`SLICES_MAX`] slices.
    pub slice_ns: u64,
    /// Work over time, as [`crate::PhaseOutcome::series`].
    pub series: Vec<Slice>,
    /// Short reads and writes, as [`crate::PhaseOutcome::short`].
    pub short: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::LATENCY_NS_MAX;
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

    /// The recorder of an open loop whose operations waited as long as they took.
    fn notebook(events: &[Event]) -> Recorder {
        let mut recorder = Recorder::new(1_000, &[Op::Read, Op::Write, Op::Fsync]).open_loop();
        for (kind, start, latency, bytes) in events {
            let op = Op::ALL[*kind];
            recorder.record(op, *start, start + latency, *bytes);
            recorder.served(op, latency / 2);
            recorder.late(latency % 1_000);
        }
        recorder
    }

    fn same_timing(a: &Option<Timing>, b: &Option<Timing>) -> Result<(), TestCaseError> {
        let parts = |t: &Option<Timing>| t.as_ref().map(|t| (t.sum_ns, t.histogram.clone()));
        prop_assert_eq!(parts(a), parts(b));
        Ok(())
    }

    fn same(a: &[OpOutcome], b: &[OpOutcome]) -> Result<(), TestCaseError> {
        prop_assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            prop_assert_eq!(
                (a.op, a.count, a.bytes, a.latency_sum_ns, a.saturated),
                (b.op, b.count, b.bytes, b.latency_sum_ns, b.saturated)
            );
            prop_assert_eq!(&a.latency, &b.latency);
            same_timing(&a.service, &b.service)?;
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Any split over threads merges to the same result, and each thread keeps its part.
        #[test]
        fn merged_equals_recorded_alone(
            events in prop::collection::vec(event(), 0..300), cuts in prop::collection::vec(0usize..300, 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(events.len())).collect();
            cuts.extend([0, events.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[Event]> = cuts.windows(2).map(|cut| &events[cut[0]..cut[1]]).collect();
            let together = Recorder::merge(parts.iter().map(|part| notebook(part)).collect(), 1_000);
            let alone = Recorder::merge(vec![notebook(&events)], 1_000);
            prop_assert_eq!(together.slice_ns, alone.slice_ns);
            prop_assert_eq!(&together.series, &alone.series);
            same(&together.ops, &alone.ops)?;
            same_timing(&together.lateness, &alone.lateness)?;
            prop_assert!(alone.threads.is_empty());
            let parts = if parts.len() > 1 { parts } else { Vec::new() };
            prop_assert_eq!(together.threads.len(), parts.len());
            for (thread, part) in together.threads.iter().zip(&parts) {
                same(&thread.ops, &Recorder::merge(vec![notebook(part)], 1_000).ops)?;
            }
            for (index, slice) in together.series.iter().enumerate().filter(|_| parts.len() > 1) {
                let each = together.threads.iter().filter_map(|thread| thread.series.get(index));
                let sum = each.fold((0, 0), |sum, part| (sum.0 + part.ops, sum.1 + part.bytes));
                prop_assert_eq!(sum, (slice.ops, slice.bytes));
            }
        }

        /// Recording together equals recording one by one.
        #[test]
        fn alike_equals_one_by_one(runs in prop::collection::vec((event(), 1u64..50), 0..100)) {
            let mut together = Recorder::new(1_000, &[Op::Read, Op::Write, Op::Fsync]);
            let mut each = together.clone();
            for ((kind, start, latency, bytes), count) in runs {
                let (op, end) = (Op::ALL[kind], start + latency);
                together.record_alike(op, start, end, count, bytes * count);
                (0..count).for_each(|_| each.record(op, start, end, bytes));
            }
            let (together, each) = (
                Recorder::merge(vec![together], 1_000),
                Recorder::merge(vec![each], 1_000),
            );
            prop_assert_eq!(together.slice_ns, each.slice_ns);
            prop_assert_eq!(&together.series, &each.series);
            same(&together.ops, &each.ops)?;
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
    fn the_closing_of_a_phase_is_not_a_thread() {
        let mut thread = Recorder::new(1_000, &[Op::Write]);
        thread.record(Op::Write, 0, 10, 7);
        let mut closing = Recorder::new(1_000, &[Op::Fsync]).closing();
        closing.record(Op::Fsync, 10, 20, 0);
        let one = Recorder::merge(vec![thread.clone(), closing.clone()], 1_000);
        assert_eq!((one.ops.len(), one.threads.len()), (2, 0));
        let two = Recorder::merge(vec![thread.clone(), thread, closing], 1_000);
        let kinds: Vec<_> = two
            .threads
            .iter()
            .flat_map(|thread| &thread.ops)
            .map(|k| (k.op, k.count))
            .collect();
        assert_eq!(kinds, [(Op::Write, 1), (Op::Write, 1)]);
        assert_eq!(two.ops.iter().map(|k| k.count).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    #[should_panic(expected = "rename was recorded but not announced")]
    fn recording_an_unannounced_kind_panics() {
        Recorder::new(1, &[Op::Read]).record(Op::Rename, 0, 1, 0);
    }
}
