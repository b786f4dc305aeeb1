//! The loop of a worker that keeps several operations outstanding.
//!
//! Each turn fills the free slots of the queue, submits the batch and waits in one system call, and
//! records everything that completed. The clock is read once per submitted batch and once per
//! completed batch. Operations of a batch share these times, so a latency includes the kernel's
//! time for the rest of the batch.
//!
//! Each turn waits for one completion, not for many, so that a device that completes one by one
//! gets its next request at once. Operations that complete during submission (reads from the page
//! cache) come back as one batch anyway. Waiting for more would save system calls but not keep the
//! queue full.
//!
//! The queue may take only part of a batch (the rest follows next turn), complete in any order, and
//! refuse for a while. All three are normal.

use std::collections::VecDeque;

use rustix::io::Errno;

use crate::block_worker::BlockWorker;
use crate::io::IoFailure;
use crate::outcome::Op;
use crate::pace::Pacer;
use crate::shape::BlockStep;
use crate::verify::ContentMismatch;
use crate::watch::Finish;
use stackrace_system::sleep_ns;

/// A queue that refuses (EAGAIN, EBUSY) this often in a row without completing anything fails the
/// phase. The pause between attempts is [`REFUSAL_PAUSE_NS`].
const REFUSALS_MAX: u32 = 10_000;
/// Pause after a refusal, ns.
const REFUSAL_PAUSE_NS: u64 = 1_000_000;
/// Time that an operation that touches bytes in use waits before it tries again, ns, unless
/// something completes sooner.
const HELD_PAUSE_NS: u64 = 100_000;

/// The time for which a submission may block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Blocks until at least one operation completed.
    One,
    /// Blocks until one completed, but no longer than this.
    AtMost(u64),
}

/// A queue of operations in the kernel.
pub(crate) trait Ring {
    /// Set if content is verified, as in [`crate::io::IoDevice::VERIFIES`].
    const VERIFIES: bool = false;

    /// Gets ready for the operation that is pushed next. Returns false if it has to wait, because
    /// an operation under way touches the same bytes.
    #[inline(always)]
    fn prepare(&mut self, _slot: usize, _step: &BlockStep) -> bool {
        true
    }
    /// Checks the content of a reaped operation.
    #[inline(always)]
    fn check(
        &mut self,
        _slot: usize,
        _step: &BlockStep,
        _moved: u32,
    ) -> Result<(), ContentMismatch> {
        Ok(())
    }
    /// Puts an operation into the batch to hand over; an [`Op::Fsync`] has neither offset nor size.
    /// No other operation may use `slot` until this one is reaped. Returns false if there is no
    /// room.
    fn push(&mut self, slot: usize, step: &BlockStep) -> bool;
    /// Submits the batch, possibly only its first part, and waits.
    fn submit(&mut self, wait: Wait) -> Result<(), Errno>;
    /// A slot whose operation completed, and the system's result: bytes, or an errno below 0.
    fn reap(&mut self) -> Option<(usize, i32)>;
}

/// A slot of the queue. Two per cache line: between two batches the kernel's copying evicts them
/// all from the nearest cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Slot {
    /// The operation under way.
    step: BlockStep,
    /// Its latency counts from here. For a free slot: when it became free.
    from_ns: u64,
}

/// The times that an open loop also keeps for the operation in a slot. In a closed loop an
/// operation begins when its latency begins, and is never late.
#[derive(Debug, Clone, Copy, Default)]
struct IssueTimes {
    begun_ns: u64,
    /// Delay of its issue, ns (see [`BlockWorker::issued`]).
    late_ns: u64,
}

/// Numbers of free slots, first in, first out.
#[derive(Debug)]
struct FreeSlots {
    numbers: Box<[u32]>,
    /// Number of slots that were ever taken and put; masking gives their index in `numbers`.
    taken: usize,
    put: usize,
}

impl FreeSlots {
    fn new(depth: usize) -> FreeSlots {
        let room = depth.next_power_of_two();
        FreeSlots {
            // A power of two, so that a mask replaces the division.
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

/// Operations of one batch that began together. They also end together, so they are recorded at
/// once.
#[derive(Debug, Default)]
struct CompletionBatch {
    /// Their kind; `None` if there are none.
    op: Option<Op>,
    from_ns: u64,
    begun_ns: u64,
    count: u64,
    bytes: u64,
}

impl CompletionBatch {
    /// Adds a completed operation. One of another kind or time than those before begins a new batch;
    /// those before are recorded.
    #[inline(always)]
    fn add<P: Pacer>(
        &mut self,
        worker: &mut BlockWorker<'_>,
        op: Op,
        (from_ns, begun_ns): (u64, u64),
        moved: u32,
        now_ns: u64,
    ) {
        if !self.takes(op, from_ns, begun_ns) {
            self.book::<P>(worker, now_ns);
            *self = CompletionBatch {
                op: Some(op),
                from_ns,
                begun_ns,
                count: 0,
                bytes: 0,
            };
        }
        self.count += 1;
        self.bytes += u64::from(moved);
    }

    #[inline(always)]
    fn takes(&self, op: Op, from_ns: u64, begun_ns: u64) -> bool {
        self.op == Some(op) && self.from_ns == from_ns && self.begun_ns == begun_ns
    }

    #[inline(always)]
    fn book<P: Pacer>(&self, worker: &mut BlockWorker<'_>, now_ns: u64) {
        let Some(op) = self.op else {
            return;
        };
        let service_ns = now_ns - self.begun_ns;
        let recorder = &mut worker.recorder;
        recorder.record_alike(op, self.from_ns, now_ns, self.count, self.bytes);
        if P::FROM_INTENDED {
            (0..self.count).for_each(|_| recorder.served(op, service_ns));
        }
        worker.outstanding_ns += service_ns * self.count;
    }
}

/// All slots of a queue, allocated before the clock starts.
#[derive(Debug)]
pub(crate) struct InFlight {
    slots: Vec<Slot>,
    /// One per slot; not written in a closed loop.
    issued: Vec<IssueTimes>,
    /// Free slots, in the order they became free.
    free: FreeSlots,
    /// Files to sync before anything else is issued.
    syncs: VecDeque<u32>,
    /// Operations in the kernel or waiting to be checked.
    outstanding: usize,
    /// Operations recorded but not yet checked, and when their slots become free.
    unchecked: VecDeque<(usize, u32, u64)>,
    /// The operation that waits until its bytes are free, and when it was due.
    held: Option<(BlockStep, u64)>,
}

impl InFlight {
    pub(crate) fn new(depth: usize, targets: usize) -> InFlight {
        let step = BlockStep {
            op: Op::Read,
            target: 0,
            size: 0,
            offset: 0,
        };
        InFlight {
            slots: vec![Slot { step, from_ns: 0 }; depth],
            issued: vec![IssueTimes::default(); depth],
            free: FreeSlots::new(depth),
            // Each dirty file once, plus one for each completion of a batch.
            syncs: VecDeque::with_capacity(targets + depth),
            outstanding: 0,
            unchecked: VecDeque::with_capacity(depth),
            held: None,
        }
    }

    /// Issues an operation in the first free slot; there must be one.
    #[inline(always)]
    fn issue<R: Ring, P: Pacer>(
        &mut self,
        ring: &mut R,
        index: usize,
        slot: Slot,
        issued: IssueTimes,
    ) -> bool {
        self.free.take_first();
        self.slots[index] = slot;
        if P::FROM_INTENDED {
            self.issued[index] = issued;
        }
        self.outstanding += 1;
        ring.push(index, &slot.step)
    }

    /// Time for which the next submission may block; `due_ns` is the issue of the next operation.
    #[inline(always)]
    fn wait<R: Ring>(&self, worker: &BlockWorker<'_>, now_ns: u64, due_ns: Option<u64>) -> Wait {
        match due_ns {
            // Does not block: only sees what completed before the next content check.
            _ if R::VERIFIES && !self.unchecked.is_empty() => Wait::AtMost(0),
            Some(due_ns) => Wait::AtMost(worker.watch.may_block_ns(now_ns, due_ns)),
            None => Wait::One,
        }
    }

    /// Frees the slot of a finished operation, from `ready_ns` on.
    #[inline(always)]
    fn release(&mut self, index: usize, ready_ns: u64) {
        self.outstanding -= 1;
        self.slots[index].from_ns = ready_ns;
        self.free.put(index);
    }
}

/// Keeps the queue full until the worker's share is done, time is up, or the phase is stopped; then
/// lets outstanding operations complete. Returns whether they did: if not, the kernel may still use
/// the buffers.
#[must_use]
pub(crate) fn drive_ring<R: Ring, P: Pacer>(
    worker: &mut BlockWorker<'_>,
    ring: &mut R,
    pace: &mut P,
    flight: &mut InFlight,
) -> bool {
    let (mut ending, mut part_over) = (false, false);
    let mut refusals = 0;
    let mut now_ns = worker.watch.now_ns();
    loop {
        let due_ns = fill(worker, ring, pace, flight, now_ns, ending || part_over);
        if flight.outstanding == 0 {
            match idle(worker, flight, due_ns, part_over && !ending) {
                Idle::Over => return true,
                Idle::Fill(waited_ns) => now_ns = waited_ns,
                Idle::NextPart => (now_ns, part_over) = (worker.watch.now_ns(), false),
                Idle::End(Finish::PartOver) => part_over = true,
                Idle::End(finish) => (worker.finish, ending) = (finish, true),
            }
            continue;
        }
        match ring.submit(flight.wait::<R>(worker, now_ns, due_ns)) {
            Ok(()) => refusals = 0,
            // The kernel lacks memory for requests (EAGAIN) or the completion queue is full
            // (EBUSY): both pass.
            Err(Errno::AGAIN | Errno::BUSY) if refusals < REFUSALS_MAX => {
                refusals += 1;
                sleep_ns(REFUSAL_PAUSE_NS);
            }
            Err(errno) => {
                // The ring failed, not one operation: any of them serves to name the file.
                let step = flight.slots[0].step;
                worker.fail(step.op, step.target, None, errno.into());
                return false;
            }
        }
        now_ns = worker.watch.now_ns();
        let mut alike = CompletionBatch::default();
        while let Some((index, result)) = ring.reap() {
            refusals = 0;
            complete::<R, P>(
                worker,
                ring,
                pace,
                flight,
                &mut alike,
                (index, result),
                now_ns,
            );
        }
        alike.book::<P>(worker, now_ns);
        if R::VERIFIES {
            check_next(worker, ring, flight);
        }
        // Read again: recording took time, and the next batch begins now.
        now_ns = worker.watch.now_ns();
        if !ending && let Some(finish) = worker.watch.ended(now_ns, &worker.recorder) {
            if finish == Finish::PartOver {
                part_over = true;
            } else {
                ending = true;
                // A failure must not be overwritten by the end of time.
                if worker.finish != Finish::Failed {
                    worker.finish = finish;
                }
            }
        }
        ending |= worker.finish == Finish::Failed;
    }
}

/// The next step of a worker that has nothing outstanding.
enum Idle {
    /// The worker does nothing more: it is done.
    Over,
    /// The worker issues what is due at this time, ns.
    Fill(u64),
    /// The worker goes on: the other phases had their parts.
    NextPart,
    /// The worker ends for this reason.
    End(Finish),
}

/// Waits for the operation that is due next, or ends the worker's part and waits for its next one.
#[cold]
fn idle(
    worker: &mut BlockWorker<'_>,
    flight: &mut InFlight,
    due_ns: Option<u64>,
    part_over: bool,
) -> Idle {
    if part_over && worker.finish == Finish::Complete && worker.left > 0 {
        // What was written in this part is not left for the next phase to wait for.
        while let Some(target) = worker.cadence.take_dirty() {
            flight.syncs.push_back(target);
        }
        if !flight.syncs.is_empty() {
            return Idle::Fill(worker.watch.now_ns());
        }
        return match worker.watch.next_part(&worker.recorder) {
            None => Idle::NextPart,
            Some(finish) => Idle::End(finish),
        };
    }
    let Some(due_ns) = due_ns else {
        return Idle::Over;
    };
    match worker.watch.wait_until(due_ns, &worker.recorder) {
        Ok(now_ns) => Idle::Fill(now_ns),
        Err(finish) => Idle::End(finish),
    }
}

/// Issues all operations that are due. Returns when the next one is due, if a slot waits for it.
///
/// With verification it issues one operation per turn: preparing more would delay noticing
/// completions.
#[inline(always)]
fn fill<R: Ring, P: Pacer>(
    worker: &mut BlockWorker<'_>,
    ring: &mut R,
    pace: &mut P,
    flight: &mut InFlight,
    now_ns: u64,
    ending: bool,
) -> Option<u64> {
    if worker.finish != Finish::Complete {
        return None;
    }
    while let Some(index) = flight.free.first() {
        if let Some(target) = flight.syncs.pop_front() {
            issue_fsync::<R, P>(worker, ring, flight, (index, target), now_ns);
            if R::VERIFIES {
                return Some(now_ns);
            }
            continue;
        }
        if ending {
            return None;
        }
        let ready_ns = flight.slots[index].from_ns;
        let held = if R::VERIFIES {
            flight.held.take()
        } else {
            None
        };
        let (step, due_ns) = match held {
            Some(held) => held,
            None => match next(worker, pace, ready_ns, now_ns) {
                Ok(next) => next,
                Err(due_ns) => return due_ns,
            },
        };
        let mut now_ns = now_ns;
        if R::VERIFIES {
            if !ring.prepare(index, &step) {
                flight.held = Some((step, due_ns));
                return Some(now_ns.saturating_add(HELD_PAUSE_NS));
            }
            now_ns = worker.watch.now_ns();
        }
        let late_ns = worker.issued::<P>(due_ns, ready_ns, now_ns);
        let from_ns = if P::FROM_INTENDED { due_ns } else { now_ns };
        let slot = Slot { step, from_ns };
        let issued = IssueTimes {
            begun_ns: now_ns,
            late_ns,
        };
        if !flight.issue::<R, P>(ring, index, slot, issued) {
            worker.fail(
                step.op,
                step.target,
                Some(step.offset),
                IoFailure::NOT_TAKEN,
            );
            return None;
        }
        if R::VERIFIES {
            return flight.free.first().map(|_| now_ns);
        }
    }
    None
}

/// Issues the fsync of a file in a free slot.
#[inline(always)]
fn issue_fsync<R: Ring, P: Pacer>(
    worker: &mut BlockWorker<'_>,
    ring: &mut R,
    flight: &mut InFlight,
    (index, target): (usize, u32),
    now_ns: u64,
) {
    let step = BlockStep {
        op: Op::Fsync,
        target,
        size: 0,
        offset: 0,
    };
    let slot = Slot {
        step,
        from_ns: now_ns,
    };
    let issued = IssueTimes {
        begun_ns: now_ns,
        late_ns: 0,
    };
    if !flight.issue::<R, P>(ring, index, slot, issued) {
        worker.fail(Op::Fsync, target, None, IoFailure::NOT_TAKEN);
    }
}

/// The next operation and when it was due, for a slot free since `ready_ns`. If none is due now:
/// when one will be, if ever.
#[inline(always)]
fn next<P: Pacer>(
    worker: &mut BlockWorker<'_>,
    pace: &mut P,
    ready_ns: u64,
    now_ns: u64,
) -> Result<(BlockStep, u64), Option<u64>> {
    if worker.left == 0 {
        return Err(None);
    }
    let due_ns = pace.due_ns(ready_ns);
    if due_ns > now_ns {
        return Err(Some(due_ns));
    }
    let step = worker.shape.step();
    pace.taken();
    worker.left -= 1;
    Ok((step, due_ns))
}

/// Records one completion, and frees its slot unless its content must be checked first.
#[inline(always)]
fn complete<R: Ring, P: Pacer>(
    worker: &mut BlockWorker<'_>,
    ring: &mut R,
    pace: &P,
    flight: &mut InFlight,
    alike: &mut CompletionBatch,
    (index, result): (usize, i32),
    now_ns: u64,
) {
    let Slot { step, from_ns } = flight.slots[index];
    let IssueTimes { begun_ns, late_ns } = if P::FROM_INTENDED {
        flight.issued[index]
    } else {
        IssueTimes {
            begun_ns: from_ns,
            late_ns: 0,
        }
    };
    let ready_ns = pace.ready_ns(now_ns - late_ns);
    match u32::try_from(result) {
        // Its buffer must stay untouched until the content is checked, so the slot stays taken.
        Ok(moved @ 1..) if R::VERIFIES && step.op != Op::Fsync => {
            flight.unchecked.push_back((index, moved, ready_ns));
        }
        _ => flight.release(index, ready_ns),
    }
    let offset = (step.op != Op::Fsync).then_some(step.offset);
    match u32::try_from(result) {
        Err(_) => {
            let fault = IoFailure {
                // A completion carries the errno as a negative number.
                errno: result.saturating_neg(),
                detail: "",
            };
            worker.fail(step.op, step.target, offset, fault);
        }
        Ok(_) if step.op == Op::Fsync => {
            worker.completed::<P>(&step, begun_ns, begun_ns, now_ns, 0)
        }
        Ok(0) if step.op == Op::Read => {
            if R::VERIFIES
                && let Err(finding) = ring.check(index, &step, 0)
            {
                return worker.found(&step, finding);
            }
            worker.fail(step.op, step.target, offset, IoFailure::END_OF_FILE);
        }
        Ok(0) => worker.fail(step.op, step.target, offset, IoFailure::NOTHING_WRITTEN),
        Ok(moved) => {
            alike.add::<P>(worker, step.op, (from_ns, begun_ns), moved, now_ns);
            if moved < step.size {
                worker.recorder.short();
            }
            if step.op == Op::Write && worker.cadence.wrote(step.target) {
                while let Some(target) = worker.cadence.take_dirty() {
                    flight.syncs.push_back(target);
                }
            }
        }
    }
}

/// Checks the content of one operation and frees its slot. Only one per turn, so that completions
/// are noticed in between.
#[inline]
fn check_next<R: Ring>(worker: &mut BlockWorker<'_>, ring: &mut R, flight: &mut InFlight) {
    let Some((index, moved, ready_ns)) = flight.unchecked.pop_front() else {
        return;
    };
    let step = flight.slots[index].step;
    flight.release(index, ready_ns);
    if let Err(finding) = ring.check(index, &step, moved) {
        worker.found(&step, finding);
    }
}

#[cfg(test)]
mod tests;
