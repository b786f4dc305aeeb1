//! The critical path of a recorded application, and what no storage can do for it.
//!
//! Each thread carries what its way to the present was made of. A thread that another one woke takes over the way of
//! that one; so the way of the thread that ended last is the critical path. If all storage took no time, the path
//! would still be a chain of steps that wait for each other: it bounds what storage can do.

use super::call::Code;
use super::facts::share;
use super::operation::Operation;

/// Times of a way, ns. They add up to its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// In calls to the recorded storage.
    pub storage: u64,
    /// Computing, also in other calls.
    pub processor: u64,
    /// Waiting for a processor.
    pub queued: u64,
    /// Asleep outside of calls: waiting for pages of mapped files, or of memory.
    pub pages: u64,
    /// In calls on other files.
    pub other_files: u64,
    /// Waiting for what was not recorded: clients, timers, other programs.
    pub outside: u64,
}

impl Spent {
    /// Length of the way, ns.
    pub fn total(&self) -> u64 {
        let saved = add(add(self.storage, self.queued), self.pages);
        add(saved, self.stays())
    }

    /// What no storage can save, ns.
    fn stays(&self) -> u64 {
        add(add(self.processor, self.other_files), self.outside)
    }
}

/// A sum that a trace of others cannot make overflow.
fn add(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

/// A thread's way so far.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    spent: Spent,
    /// End of its last operation, ns.
    at: u64,
    /// It was seen: what came before is known.
    begun: bool,
    /// When it was last woken, and the way of the one who did.
    woken: (u64, Spent),
}

/// The critical path, found while operations go by.
#[derive(Debug, Default)]
pub struct Path {
    ways: Vec<Way>,
}

impl Path {
    fn way(&mut self, thread: u32) -> &mut Way {
        let at = thread as usize;
        // The reader bounds the number of threads, so this grows no further than that.
        if self.ways.len() <= at {
            self.ways.resize(at + 1, Way::default());
        }
        &mut self.ways[at]
    }

    /// Takes the next operation.
    pub fn take(&mut self, operation: &Operation) {
        // The gap belongs to whatever comes next, also to a wake inside a call that has not ended.
        let way = self.way(operation.thread);
        let before = before(way, operation);
        match operation.code {
            // A file that was open before takes no time.
            Code::Held => {}
            Code::Wake | Code::Fork => {
                let mut spent = before;
                let began = operation.start.max(way.at);
                spent.processor = add(spent.processor, operation.end().saturating_sub(began));
                let other = self.way(operation.result.try_into().unwrap_or_default());
                // The thread that sleeps takes this way over only when its wait ends, and only if this wake ended it.
                if operation.code == Code::Wake {
                    other.woken = (operation.end(), spent);
                } else {
                    *other = Way {
                        spent,
                        at: operation.end(),
                        begun: true,
                        woken: (0, Spent::default()),
                    };
                }
            }
            _ => {
                let mut spent = before;
                within(&mut spent, way, operation);
                way.spent = spent;
                way.at = way.at.max(operation.end());
                way.begun = true;
            }
        }
    }

    /// What the critical path is made of, by all operations so far.
    pub fn bound(&self) -> Bound {
        // What ended last is what the user waited for.
        let last = self.ways.iter().max_by_key(|way| way.at);
        Bound {
            spent: last.map_or(Spent::default(), |way| way.spent),
        }
    }
}

/// A thread's way up to the begin of an operation.
fn before(way: &Way, operation: &Operation) -> Spent {
    let mut spent = way.spent;
    let gap = operation.start.saturating_sub(way.at);
    if !way.begun {
        // A thread that was there before: what it waited in began before the recording.
        spent.outside = add(spent.outside, gap);
        return spent;
    }
    // Times of damaged traces may be longer than the gap that they stand in.
    let queued = operation.gap_queued.min(gap);
    let pages = operation.gap_blocked.min(gap - queued);
    spent.queued = add(spent.queued, queued);
    spent.pages = add(spent.pages, pages);
    spent.processor = add(spent.processor, gap - queued - pages);
    spent
}

/// Adds the time within an operation, or takes the way of the one who ended its wait.
fn within(spent: &mut Spent, way: &Way, operation: &Operation) {
    // Operations of a thread follow each other; of damaged ones each moment counts once.
    let length = operation.end().saturating_sub(operation.start.max(way.at));
    let (woken, by) = way.woken;
    // A wake from before the wait woke it from another one.
    let caused = operation.cause > 0 && woken >= operation.start && woken <= operation.end();
    if caused && !operation.code.is_storage() {
        *spent = by;
        // From the wake on it only lacked a processor.
        spent.queued = add(spent.queued, operation.end() - woken);
        return;
    }
    let queued = operation.queued.min(length);
    let blocked = operation.blocked.min(length - queued);
    let rest = length - queued - blocked;
    spent.queued = add(spent.queued, queued);
    match operation.code {
        // Computing inside of a call is the file system at work, which is chosen with the storage.
        code if code.is_storage() => spent.storage = add(spent.storage, blocked + rest),
        Code::OtherFile => spent.other_files = add(spent.other_files, blocked + rest),
        _ => {
            spent.outside = add(spent.outside, blocked);
            spent.processor = add(spent.processor, rest);
        }
    }
}

/// What the critical path is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Its times.
    pub spent: Spent,
}

impl Bound {
    /// Share of the critical path that is storage.
    pub fn storage_share(&self) -> f64 {
        share(self.spent.storage, self.spent.total())
    }

    /// Share of the critical path that waits for what was not recorded.
    pub fn outside_share(&self) -> f64 {
        share(self.spent.outside, self.spent.total())
    }

    /// No storage makes the application more than so many times as fast as when recorded; none: nothing but storage is
    /// on its path. Waits for pages and for processors may be storage's doing, so they count as if they were.
    pub fn at_most(&self) -> Option<f64> {
        let stays = self.spent.stays();
        (stays > 0).then(|| self.spent.total() as f64 / stays as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(code: Code, thread: u32, start: u64, duration: u64) -> Operation {
        Operation {
            duration,
            ..Operation::of(code, thread, start)
        }
    }

    fn other(code: Code, thread: u32, start: u64, duration: u64, of: i64) -> Operation {
        Operation {
            result: of,
            ..call(code, thread, start, duration)
        }
    }

    fn bound(operations: &[Operation]) -> Bound {
        let mut path = Path::default();
        operations.iter().for_each(|operation| path.take(operation));
        path.bound()
    }

    #[test]
    fn of_a_single_thread_storage_is_what_its_calls_take() {
        let mut second = call(Code::Fsync, 0, 60, 40);
        second.blocked = 30;
        second.gap_queued = 5;
        second.gap_blocked = 3;
        let found = bound(&[call(Code::Open, 0, 0, 20), second]);
        let expected = Spent {
            storage: 60,
            processor: 32,
            queued: 5,
            pages: 3,
            ..Spent::default()
        };
        assert_eq!(found.spent, expected);
        assert_eq!(found.at_most(), Some(100.0 / 32.0));
    }

    #[test]
    fn a_thread_that_waits_for_another_one_takes_its_way() {
        // Thread 0 forks thread 1 and waits for it; thread 1 writes, and wakes it.
        let mut wait = call(Code::Other, 0, 12, 90);
        wait.blocked = 90;
        wait.cause = 1;
        let found = bound(&[
            call(Code::Open, 0, 0, 10),
            other(Code::Fork, 0, 10, 2, 1),
            call(Code::Write, 1, 20, 70),
            other(Code::Wake, 1, 95, 5, 0),
            wait,
        ]);
        let expected = Spent {
            storage: 80,
            processor: 2 + 8 + 5 + 5,
            queued: 2,
            ..Spent::default()
        };
        assert_eq!(found.spent, expected);
        assert_eq!(found.spent.total(), 102);
    }

    #[test]
    fn storage_beside_the_critical_path_bounds_nothing() {
        // Thread 1 writes while thread 0 computes for longer.
        let found = bound(&[
            call(Code::Open, 0, 0, 10),
            other(Code::Fork, 0, 10, 2, 1),
            call(Code::Write, 1, 20, 70),
            call(Code::Close, 0, 200, 0),
        ]);
        assert_eq!(found.spent.storage, 10);
        assert_eq!(found.spent.total(), 200);
    }

    #[test]
    fn a_wait_that_nobody_ended_is_outside_and_never_storage() {
        let mut wait = call(Code::Other, 0, 10, 90);
        wait.blocked = 85;
        let found = bound(&[call(Code::Read, 0, 0, 10), wait]);
        assert_eq!((found.spent.outside, found.spent.processor), (85, 5));
        let at_most = found.at_most().unwrap();
        assert!((at_most - 100.0 / 90.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_but_storage_has_no_limit() {
        assert_eq!(bound(&[call(Code::Fsync, 0, 0, 10)]).at_most(), None);
        assert_eq!(bound(&[]).at_most(), None);
    }

    proptest! {
        /// A single thread's times add up to the time that went by, whatever its operations say of their parts.
        #[test]
        fn every_moment_counts_once(parts in proptest::collection::vec((0_usize..4, 0_u64..50, 0_u64..50, 0_u64..200), 1..50)) {
            let codes = [Code::Write, Code::Other, Code::OtherFile, Code::Exit];
            let mut at = 0;
            let mut operations = Vec::new();
            for (code, gap, duration, claimed) in parts {
                let mut one = call(codes[code], 0, at + gap, duration);
                (one.queued, one.blocked) = (claimed / 3, claimed / 2);
                (one.gap_queued, one.gap_blocked) = (claimed / 5, claimed / 4);
                at = one.end();
                operations.push(one);
            }
            prop_assert_eq!(bound(&operations).spent.total(), at);
        }
    }
}
