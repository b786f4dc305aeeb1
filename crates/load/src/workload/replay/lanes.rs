//! Recorded threads that did not live at the same time, one behind the other in a thread of the replay.
//!
//! A server that starts a process for each request has thousands of threads, and few of them at once. One that begins
//! takes the place of the one that has been gone for the longest time: what it waits for lies behind it in the recording,
//! too, so no circle comes of it.

use std::collections::VecDeque;

/// Threads that a replay has before one follows another: as far apart as can be, so that none waits for the one before.
const APART: u32 = 256;
/// Most threads of a replay.
pub(super) const LANES_MAX: u32 = 4096;

/// The threads of a replay while the recorded ones begin and end.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    count: u32,
    /// Those whose recorded thread has ended, the longest ago first.
    free: VecDeque<u32>,
}

impl Lanes {
    /// The place of a recorded thread that begins. One that was there from the start follows none: it waits for its moment.
    pub(super) fn begin(&mut self, was_there: bool) -> u32 {
        let follows = !was_there && self.count >= APART;
        let free = follows.then(|| self.free.pop_front()).flatten();
        free.unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// The recorded thread in this place has ended.
    pub(super) fn end(&mut self, lane: u32) {
        self.free.push_back(lane);
    }

    /// Returns true if more threads lived at the same time than a replay has.
    pub(super) fn are_too_many(&self) -> bool {
        self.count > LANES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_live_at_once_never_share_a_place() {
        let mut lanes = Lanes::default();
        let first: Vec<u32> = (0..APART + 10).map(|_| lanes.begin(false)).collect();
        assert_eq!(first, (0..APART + 10).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_follows_the_one_that_ended_first() {
        let mut lanes = Lanes::default();
        for _ in 0..APART {
            lanes.begin(false);
        }
        lanes.end(7);
        lanes.end(3);
        assert_eq!(lanes.begin(true), APART, "one that was there waits alone");
        assert_eq!(lanes.begin(false), 7);
        assert_eq!(lanes.begin(false), 3);
        assert_eq!(lanes.begin(false), APART + 1);
        assert!(!lanes.are_too_many());
    }

    #[test]
    fn few_threads_have_a_place_each() {
        let mut lanes = Lanes::default();
        for thread in 0..APART {
            assert_eq!(lanes.begin(false), thread);
            lanes.end(thread);
        }
        assert_eq!(lanes.begin(false), 0);
    }
}
