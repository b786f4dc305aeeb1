//! What one thread counts of its operations of one kind, and how it becomes an outcome.
//!
//! The counts of latencies are those of the outcome's histogram, entry by entry: a power of two has 1,024 equal steps,
//! so that each step is below a thousandth of its latency. Here they are a plain array, of which only the part up to a
//! millisecond is in memory from the start. A longer latency may meet a page that is not: that costs about a microsecond,
//! which is less than a step there. So a thread takes 90 KiB for each kind of operation, and not 264.
//!
//! Units: nanoseconds, bytes.

use std::alloc::{Layout, handle_alloc_error};

use hdrhistogram::Histogram;
use stackrace_system::memory::SparseCounts;

use crate::outcome::{LATENCY_NS_MAX, Op, OpOutcome, Timing, latencies};

/// Bits of a step's number within its power of two.
const STEP_BITS: u32 = 10;
/// Entries of the array: those of latencies up to [`LATENCY_NS_MAX`].
const ENTRIES: usize = entry(LATENCY_NS_MAX) + 1;
/// Latencies up to here never meet a page that is not in memory, ns.
const PRESENT_NS: u64 = 1 << 20;

/// Returns the entry that counts a latency.
#[inline(always)]
const fn entry(ns: u64) -> usize {
    // Below 2,048 ns every latency has its own; beyond, each power of two has as many as the one before.
    let doubled = (ns | ((1 << (STEP_BITS + 1)) - 1)).ilog2() - STEP_BITS;
    ((doubled as usize) << STEP_BITS) + (ns >> doubled) as usize
}

/// Returns the least latency that an entry counts.
const fn least_of(entry: usize) -> u64 {
    let doubled = (entry >> STEP_BITS).saturating_sub(1);
    ((entry - (doubled << STEP_BITS)) as u64) << doubled
}

/// Latencies, counted one by one, and their exact sum.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: SparseCounts,
    /// Entries that are looked at in the end: all beyond are 0.
    reached: usize,
    sum_ns: u128,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let counts = SparseCounts::new(ENTRIES, entry(PRESENT_NS) + 1);
        Self {
            // Like any allocation that cannot be had: those that wait for this thread would wait for ever.
            counts: counts.unwrap_or_else(|_| handle_alloc_error(Layout::new::<[u64; ENTRIES]>())),
            reached: 0,
            sum_ns: 0,
        }
    }

    /// Counts `count` operations of equal latency.
    #[inline(always)]
    pub(crate) fn record(&mut self, ns: u64, count: u64) {
        self.sum_ns += u128::from(ns) * u128::from(count);
        // At the upper bound beyond it: a stall of days still counts among the slowest.
        let entry = entry(ns.min(LATENCY_NS_MAX));
        self.counts.all_mut()[entry] += count;
        self.reached = self.reached.max(entry + 1);
    }

    fn merge(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.reached = self.reached.max(other.reached);
        let theirs = &other.counts.all()[..other.reached];
        for (ours, theirs) in self.counts.all_mut().iter_mut().zip(theirs) {
            // What has none may lie in a page that is not there, and stays so.
            if *theirs > 0 {
                *ours += theirs;
            }
        }
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = latencies();
        let counts = self.counts.all()[..self.reached].iter().enumerate();
        for (entry, count) in counts.filter(|(_, count)| **count > 0) {
            histogram
                .record_n(least_of(entry), *count)
                .expect("every entry lies within the bounds of the histogram");
        }
        histogram
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing {
            sum_ns: self.sum_ns,
            histogram: self.histogram(),
        }
    }
}

impl Clone for Latencies {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.merge(self);
        copy
    }
}

/// Adds latencies that only some threads have.
pub(crate) fn merge_latencies(ours: &mut Option<Latencies>, theirs: Option<&Latencies>) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours.merge(theirs),
        (ours @ None, Some(theirs)) => *ours = Some(theirs.clone()),
        (_, None) => {}
    }
}

/// Operations of one kind, as one thread did them; the fields are those of [`OpOutcome`].
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) op: Op,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    latency: Latencies,
    saturated: u64,
    pub(crate) service: Option<Latencies>,
}

impl Lane {
    /// A lane without any operation so far.
    pub(crate) fn new(op: Op) -> Self {
        Self {
            op,
            count: 0,
            bytes: 0,
            latency: Latencies::new(),
            saturated: 0,
            service: None,
        }
    }

    /// Records `count` operations of equal latency that moved `bytes` together.
    #[inline(always)]
    pub(crate) fn record(&mut self, latency_ns: u64, count: u64, bytes: u64) {
        self.count += count;
        self.bytes += bytes;
        if latency_ns > LATENCY_NS_MAX {
            self.saturated += count;
        }
        self.latency.record(latency_ns, count);
    }

    pub(crate) fn latency_sum_ns(&self) -> u128 {
        self.latency.sum_ns
    }

    /// Adds the results of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.saturated += other.saturated;
        self.latency.merge(&other.latency);
        merge_latencies(&mut self.service, other.service.as_ref());
    }

    pub(crate) fn outcome(&self) -> OpOutcome {
        OpOutcome {
            op: self.op,
            count: self.count,
            bytes: self.bytes,
            latency_sum_ns: self.latency.sum_ns,
            latency: self.latency.histogram(),
            saturated: self.saturated,
            service: self.service.as_ref().map(Latencies::timing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_latency() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..4_096_u64,
            0..LATENCY_NS_MAX,
            LATENCY_NS_MAX - 9..=u64::MAX
        ]
    }

    proptest! {
        /// Counted here or in the histogram itself: the same histogram, from one thread or from two.
        #[test]
        fn latencies_are_counted_as_the_histogram_counts_them(
            all in prop::collection::vec((any_latency(), 1..9_u64), 0..200), cut in 0..200_usize,
        ) {
            let (mut first, mut second) = (Latencies::new(), Latencies::new());
            let mut direct = latencies();
            for (number, (ns, count)) in all.iter().enumerate() {
                let own = if number < cut { &mut first } else { &mut second };
                own.record(*ns, *count);
                direct.record_n((*ns).min(LATENCY_NS_MAX), *count).unwrap();
            }
            first.merge(&second);
            prop_assert_eq!(first.histogram(), direct);
            let sum: u128 = all.iter().map(|(ns, count)| u128::from(*ns) * u128::from(*count)).sum();
            prop_assert_eq!(first.sum_ns, sum);
        }

        #[test]
        fn an_entry_counts_latencies_that_differ_by_less_than_a_thousandth(ns in 0..=LATENCY_NS_MAX) {
            let least = least_of(entry(ns));
            prop_assert!(least <= ns && ns - least <= ns / 1_000, "{ns} counts as {least}");
            prop_assert_eq!(entry(least), entry(ns));
        }
    }

    /// 16 threads would take 4 MiB for reads alone.
    #[test]
    fn counts_of_latencies_take_memory_up_to_a_millisecond_and_where_there_are_some() {
        let mut counted = Latencies::new();
        let pages = |latencies: &Latencies| latencies.counts.pages_present().unwrap_or(0);
        let present = pages(&counted);
        assert!(present <= 23, "{present} pages");
        counted.record(60_000_000_000, 1);
        assert!(pages(&counted) <= present + 1);
        let mut sum = Latencies::new();
        sum.merge(&counted);
        assert!(pages(&sum) <= present + 1);
    }
}
