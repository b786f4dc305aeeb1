//! Which step waits for which: of the users of a thing, those that change it keep their place.
//!
//! A thing is a name, an open file, a wake. A step that changes it comes after all that touched it before, and a step
//! that uses it after the last change before it (the rule of ROOT: Weiss et al., SOSP 2013). Steps come in the order in
//! which they ended, and each waits for earlier ones alone: no circle is possible, whatever a trace says.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Places to sleep at: enough that few threads share one.
const PLACES: usize = 256;
/// Most touches that are compared with each other one by one.
const FEW: usize = 16;
/// Most waits of a replay: real ones have a dozen for each call, and all are in memory.
const WAITS_MAX: usize = 256 << 20;
/// Longest sleep until a thread looks whether the phase goes on.
const LOOK: Duration = Duration::from_millis(50);

/// How a step touches a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The thing, by any number that no other one has.
    pub thing: u64,
    /// It is another thing afterwards: made, removed, moved.
    pub changes: bool,
}

/// What is known of a thing while steps are added.
#[derive(Debug)]
struct Thing {
    number: u32,
    touched: u32,
    /// Touches up to the last change.
    changed: u32,
    thread: u32,
    shared: bool,
}

/// A thing that a step waits for: so many touches must be done.
#[derive(Debug, Clone, Copy)]
struct Wait {
    cell: u32,
    done: u32,
}

/// Finds out what each step waits for.
#[derive(Debug, Default)]
pub struct OrderBuilder {
    things: HashMap<u64, Thing>,
    /// Threads' steps as ranges of `waits`.
    threads: Vec<Vec<Range<u32>>>,
    waits: Vec<Wait>,
}

impl OrderBuilder {
    /// Adds the next step of a thread. Every step is added, in the order in which they ended.
    pub fn step(&mut self, thread: u32, touches: &[Touch]) {
        let at = thread as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Vec::new);
        }
        let first = self.waits.len();
        let touches = match self.is_full() {
            true => &[],
            false => touches,
        };
        let mut seen = HashSet::new();
        for (place, touch) in touches.iter().enumerate() {
            // Twice in one step (`rename` to itself) would wait for itself.
            let twice = match touches.len() <= FEW {
                true => touches[..place]
                    .iter()
                    .any(|other| other.thing == touch.thing),
                // A name far below may touch hundreds.
                false => !seen.insert(touch.thing),
            };
            if twice {
                continue;
            }
            // Numbers are given in the order of first touch, so that the order does not hang on the hash.
            let number = self.things.len() as u32;
            let thing = self.things.entry(touch.thing).or_insert(Thing {
                number,
                touched: 0,
                changed: 0,
                thread,
                shared: false,
            });
            thing.shared |= thing.thread != thread;
            // A change waits for every earlier touch, a use for the last change alone: uses may overtake each other.
            let done = match touch.changes {
                true => thing.touched,
                false => thing.changed,
            };
            self.waits.push(Wait {
                cell: thing.number,
                done,
            });
            thing.touched += 1;
            if touch.changes {
                thing.changed = thing.touched;
            }
        }
        self.threads[at].push(first as u32..self.waits.len() as u32);
    }

    /// Returns true if there are more waits than a replay has: what is added then waits for nothing.
    pub fn is_full(&self) -> bool {
        self.waits.len() >= WAITS_MAX
    }

    /// The order, without things that one thread has to itself.
    pub fn build(self) -> ReplayOrder {
        // A thread keeps its own order by itself: only what several threads touch costs a look.
        let mut shared = vec![u32::MAX; self.things.len()];
        let mut cells = 0;
        for thing in self.things.values().filter(|thing| thing.shared) {
            shared[thing.number as usize] = cells;
            cells += 1;
        }
        let mut waits = Vec::new();
        let threads = self.threads.into_iter().map(|steps| {
            let kept = steps.into_iter().map(|step| {
                let first = waits.len() as u32;
                let all = &self.waits[step.start as usize..step.end as usize];
                let known = all.iter().map(|wait| Wait {
                    cell: shared[wait.cell as usize],
                    ..*wait
                });
                waits.extend(known.filter(|wait| wait.cell != u32::MAX));
                first..waits.len() as u32
            });
            kept.collect()
        });
        ReplayOrder {
            threads: threads.collect(),
            waits,
            cells,
        }
    }
}

/// What each step waits for, and what waits for it.
#[derive(Debug)]
pub struct ReplayOrder {
    threads: Vec<Vec<Range<u32>>>,
    waits: Vec<Wait>,
    cells: u32,
}

impl ReplayOrder {
    /// Number of threads that have steps.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }
}

/// The order of a replay that goes on.
#[derive(Debug)]
pub(super) struct Going<'a> {
    order: &'a ReplayOrder,
    done: Vec<AtomicU32>,
    sleepers: Vec<(Mutex<()>, Condvar, AtomicU32)>,
}

impl<'a> Going<'a> {
    pub(super) fn of(order: &'a ReplayOrder) -> Self {
        let place = |_| (Mutex::new(()), Condvar::new(), AtomicU32::new(0));
        Self {
            order,
            done: (0..order.cells).map(|_| AtomicU32::new(0)).collect(),
            sleepers: (0..PLACES).map(place).collect(),
        }
    }

    fn waits(&self, thread: usize, step: usize) -> &'a [Wait] {
        let range = &self.order.threads[thread][step];
        &self.order.waits[range.start as usize..range.end as usize]
    }

    /// Waits until a step may begin; an error of `proceed`, which is asked now and then, ends the wait.
    pub(super) fn wait<E>(
        &self,
        (thread, step): (usize, usize),
        proceed: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        for wait in self.waits(thread, step) {
            let done = &self.done[wait.cell as usize];
            if done.load(Ordering::SeqCst) >= wait.done {
                continue;
            }
            let (lock, woken, asleep) = &self.sleepers[wait.cell as usize % PLACES];
            asleep.fetch_add(1, Ordering::SeqCst);
            let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            let mut result = Ok(());
            while done.load(Ordering::SeqCst) < wait.done && result.is_ok() {
                // With a limit: the phase may end while the step that is waited for never comes.
                let slept = woken.wait_timeout(held, LOOK);
                held = slept.unwrap_or_else(PoisonError::into_inner).0;
                result = proceed();
            }
            drop(held);
            asleep.fetch_sub(1, Ordering::SeqCst);
            result?;
        }
        Ok(())
    }

    /// A step is done.
    pub(super) fn complete(&self, (thread, step): (usize, usize)) {
        for wait in self.waits(thread, step) {
            self.done[wait.cell as usize].fetch_add(1, Ordering::SeqCst);
            let (lock, woken, asleep) = &self.sleepers[wait.cell as usize % PLACES];
            // A thread that sleeps said so before it looked, and looks again under the lock.
            if asleep.load(Ordering::SeqCst) > 0 {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                woken.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn touch(thing: u64, changes: bool) -> Touch {
        Touch { thing, changes }
    }

    #[test]
    fn a_thing_of_one_thread_is_waited_for_by_none() {
        let mut builder = OrderBuilder::default();
        builder.step(0, &[touch(7, true)]);
        builder.step(0, &[touch(7, false), touch(8, true)]);
        builder.step(1, &[touch(8, false)]);
        let order = builder.build();
        assert_eq!((order.cells, order.waits.len()), (1, 2));
        let going = Going::of(&order);
        assert_eq!(going.wait((1, 0), || Err(())), Err(()), "8 is not made yet");
        going.complete((0, 1));
        assert_eq!(going.wait((1, 0), || Err(())), Ok(()));
    }

    #[test]
    fn what_a_step_touches_twice_counts_once_however_much_it_touches() {
        let mut builder = OrderBuilder::default();
        let many: Vec<Touch> = (0..200).map(|thing| touch(thing % 100, true)).collect();
        builder.step(0, &many);
        builder.step(1, &many);
        let order = builder.build();
        assert_eq!((order.cells, order.waits.len()), (100, 200));
        let going = Going::of(&order);
        going.complete((0, 0));
        assert_eq!(going.wait((1, 0), || Err(())), Ok(()));
    }

    proptest! {
        /// In the order that they were recorded in, no step has to wait, whatever they touch.
        #[test]
        fn the_recorded_order_is_one_that_may_be(steps in proptest::collection::vec((0_u32..4, proptest::collection::vec((0_u64..5, any::<bool>()), 0..4)), 0..60)) {
            let mut builder = OrderBuilder::default();
            for (thread, touches) in &steps {
                let touches: Vec<Touch> = touches.iter().map(|(thing, changes)| touch(*thing, *changes)).collect();
                builder.step(*thread, &touches);
            }
            let order = builder.build();
            let going = Going::of(&order);
            let mut at = [0; 4];
            for (thread, _) in &steps {
                let place = (*thread as usize, at[*thread as usize]);
                prop_assert_eq!(going.wait(place, || Err(())), Ok(()));
                going.complete(place);
                at[*thread as usize] += 1;
            }
        }
    }
}
