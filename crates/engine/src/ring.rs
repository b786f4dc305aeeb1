//! The loop of a worker that keeps several operations outstanding.
//!
//! Each turn fills the free places of the queue, hands the batch over and waits in one system
//! call, and books everything that completed. The clock is read once per batch handed over and
//! once per batch that came back: operations of a batch share these times, so a latency includes
//! the time the kernel spent on the rest of its batch.
//!
//! Each turn waits for one completion, not for many: a device that answers one by one gets its next
//! request at once, and what completes while it is handed over (reads from the page cache) comes
//! back as one batch anyway. Waiting for more would save system calls at the price of a queue that
//! is not kept full.
//!
//! The queue may take only part of a batch (the rest is handed over next turn), complete in any
//! order, and refuse for a while: all three are ordinary turns of the loop.

use std::collections::VecDeque;

use rustix::io::Errno;

use crate::io::Fault;
use crate::outcome::Op;
use crate::pace::Pace;
use crate::pacing::sleep_ns;
use crate::shape::Step;
use crate::watch::Finish;
use crate::worker::Worker;

/// A queue that keeps refusing (EAGAIN, EBUSY) without completing anything is given up after so
/// many attempts of [`REFUSAL_PAUSE_NS`].
const REFUSALS_MAX: u32 = 10_000;
/// Pause after a refusal, ns.
const REFUSAL_PAUSE_NS: u64 = 1_000_000;

/// How long handing over may block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until at least one operation completed.
    One,
    /// Until one completed, but no longer than this.
    AtMost(u64),
}

/// A queue of operations in the kernel.
pub(crate) trait Ring {
    /// Puts an operation into the batch to hand over; an [`Op::Fsync`] has neither offset nor size.
    /// Nothing else may use `slot` until it was reaped. Returns false if there is no room.
    fn push(&mut self, slot: usize, step: &Step) -> bool;
    /// Hands the batch over, possibly only its first part, and waits.
    fn submit(&mut self, wait: Wait) -> Result<(), Errno>;
    /// A slot whose operation completed, and the system's result: bytes, or an errno below 0.
    fn reap(&mut self) -> Option<(usize, i32)>;
}

/// A place of the queue.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The operation under way.
    step: Step,
    /// Its latency counts from here; of a free place, since when it may be used again.
    from_ns: u64,
    begun_ns: u64,
}

/// Numbers of places, first in, first out; never more than there are places.
#[derive(Debug)]
struct Free {
    numbers: Box<[u32]>,
    /// How many were ever taken and put; their places in `numbers` follow by masking.
    taken: usize,
    put: usize,
}

impl Free {
    fn new(depth: usize) -> Free {
        let room = depth.next_power_of_two();
        Free {
            numbers: (0..room as u32).collect(),
            taken: 0,
            put: depth,
        }
    }

    #[inline(always)]
    fn first(&self) -> Option<usize> {
        let mask = self.numbers.len() - 1;
        (self.taken != self.put).then(|| self.numbers[self.taken & mask] as usize)
    }

    #[inline(always)]
    fn take_first(&mut self) {
        self.taken += 1;
    }

    #[inline(always)]
    fn put(&mut self, number: usize) {
        let mask = self.numbers.len() - 1;
        self.numbers[self.put & mask] = number as u32;
        self.put += 1;
    }
}

/// All places of a queue. Allocated whole before the clock starts.
#[derive(Debug)]
pub(crate) struct Flight {
    slots: Vec<Slot>,
    /// Places not in use, in the order they became free.
    free: Free,
    /// Files to sync before anything else is issued.
    syncs: VecDeque<u32>,
    outstanding: usize,
}

impl Flight {
    pub(crate) fn new(depth: usize, targets: usize) -> Flight {
        let step = Step {
            op: Op::Read,
            target: 0,
            size: 0,
            offset: 0,
        };
        let slot = Slot {
            step,
            from_ns: 0,
            begun_ns: 0,
        };
        Flight {
            slots: vec![slot; depth],
            free: Free::new(depth),
            // Each dirty file once, and each completion of one batch may add another one.
            syncs: VecDeque::with_capacity(targets + depth),
            outstanding: 0,
        }
    }

    /// Issues at the first free place, of which there is one.
    #[inline(always)]
    fn issue<R: Ring>(&mut self, ring: &mut R, index: usize, slot: Slot) -> bool {
        self.free.take_first();
        self.slots[index] = slot;
        self.outstanding += 1;
        ring.push(index, &slot.step)
    }
}

/// Keeps the queue full until the worker's share is done, its time is over, or somebody says stop;
/// then lets what is outstanding complete. Returns whether it did: if not, the kernel may still be
/// using the buffers.
#[must_use]
pub(crate) fn drive_ring<R: Ring, P: Pace>(
    worker: &mut Worker<'_>,
    ring: &mut R,
    pace: &mut P,
    flight: &mut Flight,
) -> bool {
    let mut ending = false;
    let mut refusals = 0;
    let mut now_ns = worker.watch.now_ns();
    loop {
        let due_ns = fill(worker, ring, pace, flight, now_ns, ending);
        if flight.outstanding == 0 {
            let Some(due_ns) = due_ns else {
                return true;
            };
            match worker.watch.wait_until(due_ns, &worker.recorder) {
                Ok(waited_ns) => now_ns = waited_ns,
                Err(finish) => (worker.finish, ending) = (finish, true),
            }
            continue;
        }
        let wait = due_ns.map_or(Wait::One, |due_ns| {
            Wait::AtMost(worker.watch.may_block_ns(now_ns, due_ns))
        });
        match ring.submit(wait) {
            Ok(()) => refusals = 0,
            Err(Errno::AGAIN | Errno::BUSY) if refusals < REFUSALS_MAX => {
                refusals += 1;
                sleep_ns(REFUSAL_PAUSE_NS);
            }
            Err(errno) => {
                let step = flight.slots[0].step;
                worker.fail(step.op, step.target, None, errno.into());
                return false;
            }
        }
        now_ns = worker.watch.now_ns();
        while let Some((index, result)) = ring.reap() {
            refusals = 0;
            complete(worker, pace, flight, index, result, now_ns);
        }
        if !ending && let Some(finish) = worker.watch.ended(now_ns, &worker.recorder) {
            ending = true;
            if worker.finish != Finish::Failed {
                worker.finish = finish;
            }
        }
        ending |= worker.finish == Finish::Failed;
        now_ns = worker.watch.now_ns();
    }
}

/// Issues what may be issued now. Returns when the next operation is due, if a place waits for it.
#[inline(always)]
fn fill<R: Ring, P: Pace>(
    worker: &mut Worker<'_>,
    ring: &mut R,
    pace: &mut P,
    flight: &mut Flight,
    now_ns: u64,
    ending: bool,
) -> Option<u64> {
    if worker.finish != Finish::Complete {
        return None;
    }
    while let Some(index) = flight.free.first() {
        if let Some(target) = flight.syncs.pop_front() {
            let step = Step {
                op: Op::Fsync,
                target,
                size: 0,
                offset: 0,
            };
            let slot = Slot {
                step,
                from_ns: now_ns,
                begun_ns: now_ns,
            };
            if !flight.issue(ring, index, slot) {
                worker.fail(Op::Fsync, target, None, Fault::NOT_TAKEN);
            }
            continue;
        }
        if ending || worker.left == 0 {
            return None;
        }
        let due_ns = pace.due_ns(flight.slots[index].from_ns);
        if due_ns > now_ns {
            return Some(due_ns);
        }
        let step = worker.shape.step();
        pace.taken(&mut worker.shape);
        worker.left -= 1;
        let from_ns = if P::FROM_INTENDED { due_ns } else { now_ns };
        let slot = Slot {
            step,
            from_ns,
            begun_ns: now_ns,
        };
        if !flight.issue(ring, index, slot) {
            worker.fail(step.op, step.target, Some(step.offset), Fault::NOT_TAKEN);
            return None;
        }
    }
    None
}

/// Books one completion and frees its place.
#[inline(always)]
fn complete<P: Pace>(
    worker: &mut Worker<'_>,
    pace: &P,
    flight: &mut Flight,
    index: usize,
    result: i32,
    now_ns: u64,
) {
    let Slot {
        step,
        from_ns,
        begun_ns,
    } = flight.slots[index];
    flight.outstanding -= 1;
    flight.slots[index].from_ns = pace.ready_ns(now_ns);
    flight.free.put(index);
    let offset = (step.op != Op::Fsync).then_some(step.offset);
    match u32::try_from(result) {
        Err(_) => {
            let fault = Fault {
                errno: result.saturating_neg(),
                detail: "",
            };
            worker.fail(step.op, step.target, offset, fault);
        }
        Ok(_) if step.op == Op::Fsync => worker.completed(&step, begun_ns, begun_ns, now_ns, 0),
        Ok(0) if step.op == Op::Read => {
            worker.fail(step.op, step.target, offset, Fault::END_OF_FILE);
        }
        Ok(0) => worker.fail(step.op, step.target, offset, Fault::NOTHING_WRITTEN),
        Ok(moved) => {
            worker.completed(&step, from_ns, begun_ns, now_ns, moved);
            if step.op == Op::Write && worker.cadence.wrote(step.target) {
                while let Some(target) = worker.cadence.take_dirty() {
                    flight.syncs.push_back(target);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
