//! The state of one worker, and the loop for one operation at a time.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use crate::io::sync::sync_file;
use crate::io::{IoDevice, IoFailure};
use crate::outcome::Op;
use crate::pace::Pacer;
use crate::recorder::Recorder;
use crate::shape::{BlockStep, OpSequence};
use crate::spec::{Durability, Fresh, Spec};
use crate::target::freshen;
use crate::verify::ContentMismatch;
use crate::watch::{Finish, PhaseWatch};
use stackrace_system::sleep_ns;

/// Pause before an operation on bytes in use tries again, ns.
const HELD_PAUSE_NS: u64 = 10_000;

/// The files to fsync, and the times for it.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// Writes between two fsyncs; `None` means no fsync.
    every: Option<NonZeroU64>,
    /// The fsync counts into the latency of the write it follows.
    in_write: bool,
    until: u64,
    /// Files written since their last fsync, in the order of their first write.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
}

impl Cadence {
    pub(crate) fn new(durability: Durability, targets: usize) -> Cadence {
        let every = durability.fsync_every;
        // Room for all of them now: nothing is allocated later.
        let (dirty, is_dirty) = match every {
            Some(_) => (Vec::with_capacity(targets), vec![false; targets]),
            None => (Vec::new(), Vec::new()),
        };
        Cadence {
            every,
            in_write: durability.fsync_in_write,
            until: every.map_or(0, NonZeroU64::get),
            dirty,
            is_dirty,
        }
    }

    /// Notes a completed write. Returns whether to sync the dirty files now.
    #[inline(always)]
    pub(crate) fn wrote(&mut self, target: u32) -> bool {
        let Some(every) = self.every else {
            return false;
        };
        // A flag for each file: the list would have to be searched with every write.
        let is_dirty = &mut self.is_dirty[target as usize];
        if !*is_dirty {
            *is_dirty = true;
            self.dirty.push(target);
        }
        self.until -= 1;
        if self.until > 0 {
            return false;
        }
        self.until = every.get();
        true
    }

    /// The next dirty file, until none is left.
    #[inline]
    pub(crate) fn take_dirty(&mut self) -> Option<u32> {
        let target = self.dirty.pop()?;
        self.is_dirty[target as usize] = false;
        Some(target)
    }
}

/// The operation that failed, before its path is looked up.
#[derive(Debug, Clone)]
pub(crate) struct FailedOp {
    pub(crate) op: Op,
    pub(crate) target: u32,
    pub(crate) offset: Option<u64>,
    pub(crate) fault: IoFailure,
    /// Finding of the verification; empty: see `fault`.
    pub(crate) finding: String,
    pub(crate) at_ns: u64,
}

/// All that a worker needs for another pass over the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextPass<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) files: &'a [OwnedFd],
    pub(crate) fresh: Fresh,
    /// Operations of this worker in one pass, at least 1.
    pub(crate) ops: u64,
}

/// All state that a worker changes while it runs. No other thread touches it.
#[derive(Debug)]
pub(crate) struct BlockWorker<'a> {
    pub(crate) shape: OpSequence,
    pub(crate) recorder: Recorder,
    pub(crate) watch: PhaseWatch<'a>,
    pub(crate) cadence: Cadence,
    /// Operations still to issue in this pass.
    pub(crate) left: u64,
    /// Operations of the passes after it.
    pub(crate) later: u64,
    /// The means for another pass; `None` if there is only one.
    pub(crate) again: Option<NextPass<'a>>,
    /// Sum of the times operations were outstanding, ns.
    pub(crate) outstanding_ns: u64,
    pub(crate) finish: Finish,
    pub(crate) failure: Option<FailedOp>,
}

impl BlockWorker<'_> {
    /// Keeps the first failure and tells all workers to stop.
    #[cold]
    pub(crate) fn fail(&mut self, op: Op, target: u32, offset: Option<u64>, fault: IoFailure) {
        self.keep(op, target, offset, fault, String::new());
    }

    /// A read returned wrong content.
    #[cold]
    pub(crate) fn found(&mut self, step: &BlockStep, finding: ContentMismatch) {
        let ContentMismatch { offset, detail } = finding;
        self.keep(step.op, step.target, Some(offset), IoFailure::WRONG, detail);
    }

    #[cold]
    fn keep(
        &mut self,
        op: Op,
        target: u32,
        offset: Option<u64>,
        fault: IoFailure,
        finding: String,
    ) {
        self.finish = Finish::Failed;
        // The first failure is the cause; later ones are often its effects.
        if self.failure.is_none() {
            let at_ns = self.watch.now_ns();
            self.failure = Some(FailedOp {
                op,
                target,
                offset,
                fault,
                finding,
                at_ns,
            });
        }
        self.watch.halt();
    }

    /// Begins another pass if this one is complete and another one follows: the data are made fresh
    /// then. Returns true if it does.
    #[cold]
    pub(crate) fn next_pass(&mut self) -> bool {
        let complete = self.left == 0 && self.finish == Finish::Complete;
        if !complete || self.later == 0 || self.watch.now_ns() >= self.watch.deadline_ns() {
            return false;
        }
        let Some(NextPass {
            spec,
            files,
            fresh,
            ops,
        }) = self.again
        else {
            return false;
        };
        // Dropped pages of what was only read need no sync.
        if fresh == Fresh::Anew && !self.sync_pass(spec, files) {
            return false;
        }
        let freshened = self.watch.outside(|| freshen(spec, files, fresh));
        if let Err((target, errno)) = freshened {
            self.fail(Op::Write, target, Some(0), errno.into());
            return false;
        }
        self.left = ops.min(self.later);
        self.later -= self.left;
        true
    }

    /// Makes durable what a pass wrote, in the phase's time: emptying the file would spare the
    /// storage that work.
    fn sync_pass(&mut self, spec: &Spec, files: &[OwnedFd]) -> bool {
        if !spec.durability.fsync_at_end {
            return true;
        }
        for (target, file) in (0..).zip(files) {
            let begun_ns = self.watch.now_ns();
            if let Err(errno) = sync_file(file, spec.durability.data_only) {
                self.fail(Op::Fsync, target, None, errno.into());
                return false;
            }
            let now_ns = self.watch.now_ns();
            self.recorder.record(Op::Fsync, begun_ns, now_ns, 0);
            self.outstanding_ns += now_ns - begun_ns;
        }
        true
    }

    /// A verified read met the end of the file too early.
    #[cold]
    fn ended_early<D: IoDevice>(&mut self, device: &mut D, step: &BlockStep) {
        match device.check(step, 0) {
            Err(finding) => self.found(step, finding),
            Ok(()) => self.fail(
                step.op,
                step.target,
                Some(step.offset),
                IoFailure::END_OF_FILE,
            ),
        }
    }

    /// Waits until a verified operation may be issued. Returns the time, or why it never will.
    #[inline(never)]
    fn prepare<D: IoDevice>(&mut self, device: &mut D, step: &BlockStep) -> Result<u64, Finish> {
        loop {
            let is_ready = device.prepare(step);
            let now_ns = self.watch.now_ns();
            if is_ready {
                return Ok(now_ns);
            }
            // An operation that is taken already ends before its part does.
            match self.watch.ended(now_ns, &self.recorder) {
                None | Some(Finish::PartOver) => sleep_ns(HELD_PAUSE_NS),
                Some(finish) => return Err(finish),
            }
        }
    }

    /// Records an operation that is over, and syncs what was written if that is due. Returns the
    /// time, or `None` if a sync failed.
    #[inline(always)]
    fn done<D: IoDevice, P: Pacer>(
        &mut self,
        device: &mut D,
        step: &BlockStep,
        (from_ns, begun_ns): (u64, u64),
        over_ns: u64,
        moved: u32,
    ) -> Option<u64> {
        // Without fsyncs neither condition costs anything: the operation's kind is needed anyway.
        let syncs = step.op == Op::Write && self.cadence.wrote(step.target);
        let joint = syncs && self.cadence.in_write;
        if !joint {
            self.completed::<P>(step, from_ns, begun_ns, over_ns, moved);
        }
        if !syncs {
            return Some(over_ns);
        }
        let synced_ns = self.sync_dirty(device, over_ns)?;
        if joint {
            // `sync_dirty` has added the time of the fsync already.
            self.outstanding_ns -= synced_ns - over_ns;
            self.completed::<P>(step, from_ns, begun_ns, synced_ns, moved);
        }
        Some(synced_ns)
    }

    /// Syncs every dirty file. Returns the time, or `None` on failure.
    #[inline(never)]
    fn sync_dirty<D: IoDevice>(&mut self, device: &mut D, mut last_ns: u64) -> Option<u64> {
        while let Some(target) = self.cadence.take_dirty() {
            if let Err(fault) = device.sync(target) {
                self.fail(Op::Fsync, target, None, fault);
                return None;
            }
            let now_ns = self.watch.now_ns();
            self.recorder.record(Op::Fsync, last_ns, now_ns, 0);
            self.outstanding_ns += now_ns - last_ns;
            last_ns = now_ns;
        }
        Some(last_ns)
    }

    /// Whether the worker goes on: at the end of its part after the others had theirs. What it
    /// wrote in the part is synced first, if it syncs at all.
    #[cold]
    #[inline(never)]
    fn goes_on<D: IoDevice>(&mut self, device: &mut D, finish: Finish) -> bool {
        if finish != Finish::PartOver {
            self.finish = finish;
            return false;
        }
        let now_ns = self.watch.now_ns();
        if self.sync_dirty(device, now_ns).is_none() {
            return false;
        }
        match self.watch.next_part(&self.recorder) {
            None => true,
            Some(finish) => {
                self.finish = finish;
                false
            }
        }
    }

    /// Records how late an operation of an open loop is, compared with a generator that is never
    /// late, and returns it. Its slot in the queue becomes free that much too late, so operations
    /// behind it count as late as well.
    #[inline(always)]
    pub(crate) fn issued<P: Pacer>(&mut self, due_ns: u64, ready_ns: u64, now_ns: u64) -> u64 {
        if !P::FROM_INTENDED {
            return 0;
        }
        // A slot that is not free is no delay of the generator.
        let late_ns = now_ns - due_ns.max(ready_ns);
        self.recorder.late(late_ns);
        late_ns
    }

    /// Records a completed operation.
    #[inline(always)]
    pub(crate) fn completed<P: Pacer>(
        &mut self,
        step: &BlockStep,
        from_ns: u64,
        begun_ns: u64,
        now_ns: u64,
        moved: u32,
    ) {
        self.recorder
            .record(step.op, from_ns, now_ns, u64::from(moved));
        if P::FROM_INTENDED {
            self.recorder.served(step.op, now_ns - begun_ns);
        }
        self.outstanding_ns += now_ns - begun_ns;
        // Counted and not repeated: what it moved is what its latency is of.
        if moved < step.size {
            self.recorder.short();
        }
    }
}

/// Does one operation after the other until the worker's share is done, time is up, or the phase is
/// stopped.
///
/// Without pacing the clock is read once per operation: the end of one is the start of the next. So
/// about ten nanoseconds of our own book-keeping are part of each latency.
pub(crate) fn drive<D: IoDevice, P: Pacer>(
    worker: &mut BlockWorker<'_>,
    device: &mut D,
    pace: &mut P,
) {
    let mut last_ns = worker.watch.now_ns();
    let mut ready_ns = 0;
    while worker.left > 0 {
        let due_ns = pace.due_ns(ready_ns);
        let begun_ns = if due_ns <= last_ns {
            last_ns
        } else {
            match worker.watch.wait_until(due_ns, &worker.recorder) {
                Ok(now_ns) => now_ns,
                Err(finish) => {
                    if !worker.goes_on(device, finish) {
                        return;
                    }
                    last_ns = worker.watch.now_ns();
                    continue;
                }
            }
        };
        let step = worker.shape.step();
        pace.taken();
        worker.left -= 1;
        let begun_ns = if D::VERIFIES {
            match worker.prepare(device, &step) {
                Ok(now_ns) => now_ns,
                Err(finish) => {
                    worker.finish = finish;
                    return;
                }
            }
        } else {
            begun_ns
        };
        let late_ns = worker.issued::<P>(due_ns, ready_ns, begun_ns);
        let moved = match device.issue(&step) {
            Ok(moved) => moved,
            Err(IoFailure::END_OF_FILE) if D::VERIFIES => return worker.ended_early(device, &step),
            Err(fault) => return worker.fail(step.op, step.target, Some(step.offset), fault),
        };
        last_ns = worker.watch.now_ns();
        let from_ns = if P::FROM_INTENDED { due_ns } else { begun_ns };
        match worker.done::<D, P>(device, &step, (from_ns, begun_ns), last_ns, moved) {
            Some(now_ns) => last_ns = now_ns,
            None => return,
        }
        // A generator that is never late would have freed this slot `late_ns` earlier.
        ready_ns = pace.ready_ns(last_ns - late_ns);
        if D::VERIFIES {
            if let Err(finding) = device.check(&step, moved) {
                return worker.found(&step, finding);
            }
            last_ns = worker.watch.now_ns();
        }
        if let Some(finish) = worker.watch.ended(last_ns, &worker.recorder) {
            if !worker.goes_on(device, finish) {
                return;
            }
            last_ns = worker.watch.now_ns();
        }
    }
}

#[cfg(test)]
#[path = "block_worker_tests.rs"]
pub(crate) mod tests;
