//! Syncs that several threads shared: how many an application makes then follows from how fast the storage is.
//!
//! While one thread makes its data durable, others wait for it; once they are woken they go on without a sync of their
//! own, as it was made for them (group commit). On slower storage more of them would wait, and on faster storage each
//! would make its own. A replay makes the recorded ones.

use std::collections::HashSet;

use super::call::{Class, Code};
use super::facts::share;
use super::operation::Operation;

/// A sync that has ended: its number, its thread, and when.
#[derive(Debug, Clone, Copy)]
struct Ended {
    number: u64,
    thread: u32,
    at: u64,
}

/// A thread while its operations go by.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    /// Its last sync, as long as it did not wait since.
    synced: Option<Ended>,
    /// The sync behind which it was last woken.
    woken: Option<Ended>,
    /// The sync that it waited for, until it is known whether it makes one of its own.
    waited: Option<Ended>,
}

/// Shared syncs, found while operations go by.
#[derive(Debug, Default)]
pub struct Joined {
    threads: Vec<Thread>,
    syncs: u64,
    syncing: HashSet<u32>,
    /// For each sync that was waited for its number, and who did.
    waiters: Vec<(u64, u32)>,
}

/// How many syncs there were, and how many of them several threads shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedSyncs {
    /// Calls that made data durable, shared or not.
    pub syncs: u64,
    /// Those that were made for several threads at once.
    pub shared: u64,
}

impl SharedSyncs {
    /// Share of the syncs that were made for several threads at once.
    pub fn share(&self) -> f64 {
        share(self.shared, self.syncs)
    }
}

impl Joined {
    fn thread(&mut self, thread: u32) -> &mut Thread {
        let at = thread as usize;
        // The reader bounds the number of threads, so this grows no further than that.
        if self.threads.len() <= at {
            self.threads.resize(at + 1, Thread::default());
        }
        &mut self.threads[at]
    }

    /// Takes the next operation.
    pub fn take(&mut self, operation: &Operation) {
        let number = operation.thread;
        match operation.code {
            // A database that writes through memory commits so.
            code if code.class() == Class::Sync || code == Code::SyncMap => {
                self.syncs += 1;
                self.syncing.insert(number);
                let ended = Ended {
                    number: self.syncs,
                    thread: number,
                    at: operation.end(),
                };
                // It makes its own: what it waited for was a turn.
                *self.thread(number) = Thread {
                    synced: Some(ended),
                    ..Thread::default()
                };
            }
            Code::Wake => {
                let synced = self.thread(number).synced;
                let woken = operation.result.try_into().unwrap_or_default();
                self.thread(woken).woken = synced;
            }
            Code::Other if operation.blocked > 0 => self.wait(operation),
            Code::Exit => self.went_on(number),
            _ => {}
        }
    }

    /// A thread waited: for the end of another one's sync, or for anything else.
    fn wait(&mut self, operation: &Operation) {
        self.went_on(operation.thread);
        let thread = self.thread(operation.thread);
        let woken = thread.woken.take();
        thread.synced = None;
        // One that began to wait later waits for something else.
        thread.waited = woken
            .filter(|ended| operation.cause > 0 && operation.start < ended.at)
            .filter(|ended| ended.thread != operation.thread);
    }

    /// A thread does something else without having made a sync: the one that it waited for was made for it, too.
    fn went_on(&mut self, number: u32) {
        if let Some(waited) = self.thread(number).waited.take() {
            self.waiters.push((waited.number, number));
        }
    }

    /// What was found so far.
    pub fn found(&self) -> SharedSyncs {
        let mut waiters = self.waiters.clone();
        waiters.sort_unstable();
        let shared = waiters.chunk_by(|one, other| one.0 == other.0);
        // Where locks are handed on, one is woken who is next, and one client who waits for the answer: what is shared
        // is told to several of a kind.
        let shared = shared.filter(|of| {
            let making = of.iter().filter(|(_, who)| self.syncing.contains(who));
            let making = making.count();
            making > 1 || of.len() - making > 1
        });
        SharedSyncs {
            syncs: self.syncs,
            shared: shared.count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(code: Code, thread: u32, start: u64, duration: u64) -> Operation {
        Operation {
            duration,
            ..Operation::of(code, thread, start)
        }
    }

    fn wake(thread: u32, when: u64, other: i64) -> Operation {
        Operation {
            result: other,
            ..at(Code::Wake, thread, when, 0)
        }
    }

    fn wait(thread: u32, start: u64, end: u64) -> Operation {
        Operation {
            blocked: end - start,
            cause: 1,
            ..at(Code::Other, thread, start, end - start)
        }
    }

    fn shared(operations: &[Operation]) -> u64 {
        let mut joined = Joined::default();
        operations
            .iter()
            .for_each(|operation| joined.take(operation));
        joined.found().shared
    }

    /// Thread 0 makes a sync while 1 waits for it; then this follows.
    fn beside(after: &[Operation]) -> Vec<Operation> {
        let mut all = vec![
            at(Code::Fdatasync, 0, 10, 90),
            wake(0, 101, 1),
            wait(1, 20, 103),
        ];
        all.extend(after);
        all
    }

    #[test]
    fn a_sync_that_others_waited_for_and_did_not_make_again_is_shared() {
        // Two that never make one: another one makes them for all.
        let second = [wake(0, 102, 2), wait(2, 30, 104)];
        let on = [wait(1, 150, 200), at(Code::Exit, 2, 150, 0)];
        let two = beside(&[second, on].concat());
        assert_eq!(shared(&two), 1);
        // Through memory it is the same.
        let mut memory = two.clone();
        memory[0].code = Code::SyncMap;
        assert_eq!(shared(&memory), 1);
        // Two that make their own ones another time.
        let own = [1, 2].map(|thread| at(Code::Fdatasync, thread, 300, 50));
        assert_eq!(shared(&[&two[..], &own].concat()), 1);
        // One of each kind: the next one, and a client.
        assert_eq!(shared(&[&two[..], &own[..1]].concat()), 0);
    }

    #[test]
    fn a_turn_an_answer_and_a_later_wait_are_no_shared_sync() {
        // It waited for its turn, and then makes its own.
        assert_eq!(
            shared(&beside(&[
                at(Code::Fdatasync, 1, 110, 50),
                wait(1, 200, 300)
            ])),
            0
        );
        // A client that waits for its answer, alone.
        assert_eq!(shared(&beside(&[wait(1, 150, 200)])), 0);
        // Thread 1 waits for what came after the sync.
        let own = at(Code::Fdatasync, 1, 300, 50);
        let later = [
            at(Code::Fdatasync, 0, 10, 90),
            wake(0, 120, 1),
            wait(1, 110, 121),
            wait(1, 150, 200),
            own,
        ];
        assert_eq!(shared(&later), 0);
        // Thread 0 waited itself in between: what it wakes afterwards is about that.
        let waited = [
            at(Code::Fdatasync, 0, 10, 90),
            wait(0, 101, 110),
            wake(0, 111, 1),
            wait(1, 20, 112),
            wait(1, 150, 200),
            own,
        ];
        assert_eq!(shared(&waited), 0);
    }
}
