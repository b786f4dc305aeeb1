//! Phases that run at the same time and do their operations in proportion.
//!
//! A phase may begin its next operation as long as it has not done more than its share of what all of
//! them did, give or take one operation for each of its parts. One of them always may. One that
//! ends takes its operations with it, so that the others go on in proportion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest pause before a phase asks again, ns.
const PAUSE_NS: u64 = 10_000;

/// The work of all phases of a flow.
#[derive(Debug, Default)]
pub struct FlowGroup {
    operations: AtomicU64,
    parts: AtomicU64,
}

/// The share of a phase in a flow.
#[derive(Debug, Clone)]
pub struct FlowShare {
    /// The flow.
    pub group: Arc<FlowGroup>,
    /// Its parts: a phase with 3 does three times as many operations as one with 1. At least 1.
    pub parts: u32,
    /// Time it waits before it asks again, ns.
    pub pause_ns: u64,
}

/// A worker in a flow, until it is dropped.
#[derive(Debug)]
pub(crate) struct FlowSeat {
    share: FlowShare,
    operations: u64,
}

impl FlowSeat {
    pub(crate) fn enter(share: &FlowShare) -> FlowSeat {
        let share = share.clone();
        let parts = u64::from(share.parts);
        share.group.parts.fetch_add(parts, Ordering::Relaxed);
        FlowSeat {
            share,
            operations: 0,
        }
    }

    /// Time at which the worker may begin, or ask again.
    pub(crate) fn due_ns(&self, now_ns: u64) -> u64 {
        let group = &self.share.group;
        let all = u128::from(group.operations.load(Ordering::Relaxed));
        let parts = u128::from(group.parts.load(Ordering::Relaxed));
        let own = u128::from(self.share.parts);
        // Without a division: more than its share, and one for each of its parts.
        if u128::from(self.operations) * parts <= (all + parts) * own {
            return 0;
        }
        now_ns.saturating_add(self.share.pause_ns.max(PAUSE_NS))
    }

    pub(crate) fn take(&mut self) {
        self.operations += 1;
        self.share.group.operations.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for FlowSeat {
    fn drop(&mut self) {
        let group = &self.share.group;
        group
            .operations
            .fetch_sub(self.operations, Ordering::Relaxed);
        group
            .parts
            .fetch_sub(u64::from(self.share.parts), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(parts: &[u32]) -> Vec<FlowSeat> {
        let group = Arc::new(FlowGroup::default());
        let share = |parts: &u32| FlowShare {
            group: Arc::clone(&group),
            parts: *parts,
            pause_ns: 0,
        };
        parts
            .iter()
            .map(|parts| FlowSeat::enter(&share(parts)))
            .collect()
    }

    #[test]
    fn operations_are_done_in_proportion_and_one_may_always_go_on() {
        let mut seats = seats(&[3, 1]);
        for _ in 0..1_000 {
            let mut any = false;
            for seat in &mut seats {
                if seat.due_ns(0) == 0 {
                    seat.take();
                    any = true;
                }
            }
            assert!(any);
        }
        let done: Vec<u64> = seats.iter().map(|seat| seat.operations).collect();
        assert!(done[0].abs_diff(3 * done[1]) <= 8, "{done:?}");
    }

    #[test]
    fn the_last_one_waits_for_none() {
        let mut seats = seats(&[1, 8]);
        while seats[0].due_ns(0) == 0 {
            seats[0].take();
        }
        drop(seats.pop());
        for _ in 0..1_000 {
            assert_eq!(seats[0].due_ns(0), 0);
            seats[0].take();
        }
    }
}
