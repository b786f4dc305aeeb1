//! The ways a worker may be paced, as types: what is not asked for costs nothing.

use crate::pacing::Schedule;

/// The rule for the start of the next operation.
pub(crate) trait Pacer {
    /// Latency counts from the intended start instead of the actual one.
    const FROM_INTENDED: bool;
    /// Time from which on the place of an operation that completed at `completed_ns` may be used again.
    fn ready_ns(&self, completed_ns: u64) -> u64;
    /// When the next operation is due, if its place is ready since `ready_ns`.
    fn due_ns(&self, ready_ns: u64) -> u64;
    /// The operation just asked about was taken.
    fn taken(&mut self);
    /// Number of operations that were not taken and were due before `until_ns`.
    fn owed(self, until_ns: u64) -> u64;
}

/// A closed loop without think time.
#[derive(Debug)]
pub(crate) struct Eager;

impl Pacer for Eager {
    const FROM_INTENDED: bool = false;
    #[inline(always)]
    fn ready_ns(&self, _completed_ns: u64) -> u64 {
        0
    }
    #[inline(always)]
    fn due_ns(&self, _ready_ns: u64) -> u64 {
        0
    }
    #[inline(always)]
    fn taken(&mut self) {}
    fn owed(self, _until_ns: u64) -> u64 {
        0
    }
}

/// A closed loop with a think time.
#[derive(Debug)]
pub(crate) struct Thinking {
    pub(crate) think_time_ns: u64,
}

impl Pacer for Thinking {
    const FROM_INTENDED: bool = false;
    #[inline(always)]
    fn ready_ns(&self, completed_ns: u64) -> u64 {
        completed_ns.saturating_add(self.think_time_ns)
    }
    #[inline(always)]
    fn due_ns(&self, ready_ns: u64) -> u64 {
        ready_ns
    }
    #[inline(always)]
    fn taken(&mut self) {}
    fn owed(self, _until_ns: u64) -> u64 {
        0
    }
}

/// An open loop: operations are due by the clock.
#[derive(Debug)]
pub(crate) struct Scheduled(pub(crate) Schedule);

impl Pacer for Scheduled {
    const FROM_INTENDED: bool = true;
    /// Time of the completion itself: kept to tell an operation that found no place from one that
    /// was issued late.
    #[inline(always)]
    fn ready_ns(&self, completed_ns: u64) -> u64 {
        completed_ns
    }
    #[inline(always)]
    fn due_ns(&self, _ready_ns: u64) -> u64 {
        self.0.next_ns()
    }
    #[inline(always)]
    fn taken(&mut self) {
        self.0.advance();
    }
    fn owed(self, until_ns: u64) -> u64 {
        self.0.due_before(until_ns)
    }
}
