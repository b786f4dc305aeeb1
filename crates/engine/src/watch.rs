//! What a worker checks every ten milliseconds instead of at every operation.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{FastClock, Readings};
use crate::control::Control;
use crate::progress::Progress;
use crate::recorder::Recorder;
use stackrace_system::monotonic_ns;
use stackrace_system::sleep_ns;

/// Time between two checks whether to stop, ns.
const LOOK_NS: u64 = 10_000_000;
/// A sleep ends this long before its deadline; the worker spins for the rest, because a sleeping
/// thread wakes up late. The price of a precise start is up to this much processor time per
/// operation: a whole processor per thread from 20,000 operations per second and thread on. With
/// more threads than processors, workers do not spin: a spinning thread would take the processor
/// from a thread with work, and lower the rate.
const SPIN_NS: u64 = 50_000;

/// Time before its deadline at which a worker stops sleeping, if there are this many workers.
pub(crate) fn spin_ns(workers: u32) -> u64 {
    // Files of control groups are read for it, and it does not change: once is enough.
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let processors = *PROCESSORS
        .get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
    if workers as usize > processors {
        0
    } else {
        SPIN_NS
    }
}

/// The reason for which a worker issues no more operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The worker did its share, or time is up.
    Complete,
    /// [`Control::stop`] was set, or another worker failed.
    Stopped,
    /// One of its own operations failed.
    Failed,
    /// Its part is over, and the next phase waits (see [`crate::alternation`]): not an end.
    PartOver,
}

/// One worker's deadline, its progress report, and its signal to stop.
#[derive(Debug)]
pub(crate) struct PhaseWatch<'a> {
    time: Readings,
    control: &'a Control,
    /// Set by a worker that failed: the others stop too.
    halt: &'a AtomicBool,
    deadline_ns: u64,
    /// Spinning before a deadline, ns: see [`spin_ns`].
    spin_ns: u64,
    /// The earlier of the deadline and the next check: one comparison per operation.
    look_ns: u64,
    /// End of the part of a phase that alternates; never, for others.
    part_end_ns: u64,
    /// The number of that part.
    part: u64,
    /// Work that was done before it.
    before_part: Progress,
    reported: Progress,
}

impl<'a> PhaseWatch<'a> {
    pub(crate) fn new(
        clock: FastClock,
        control: &'a Control,
        halt: &'a AtomicBool,
        deadline_ns: Option<u64>,
        spin_ns: u64,
    ) -> PhaseWatch<'a> {
        let deadline_ns = deadline_ns.unwrap_or(u64::MAX);
        PhaseWatch {
            time: Readings::new(clock),
            control,
            halt,
            deadline_ns,
            spin_ns,
            look_ns: 0,
            part_end_ns: u64::MAX,
            part: 0,
            before_part: Progress::default(),
            reported: Progress::default(),
        }
    }

    /// Nanoseconds since the phase began, never less than before.
    #[inline(always)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        self.time.now_ns()
    }

    /// End of the phase's time; never, if it has none.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Readings that were before the one preceding them.
    pub(crate) fn back(&self) -> u64 {
        self.time.back
    }

    /// Returns the reason if the worker has to end. Costs one comparison, but for one call in ten
    /// milliseconds.
    #[inline(always)]
    pub(crate) fn ended(&mut self, now_ns: u64, recorder: &Recorder) -> Option<Finish> {
        if now_ns < self.look_ns {
            return None;
        }
        self.look(now_ns, recorder)
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, now_ns: u64, recorder: &Recorder) -> Option<Finish> {
        self.report(recorder);
        // The deadline itself is a check, so that no operation starts after it.
        let end_ns = self.deadline_ns.min(self.part_end_ns);
        self.look_ns = end_ns.min(now_ns.saturating_add(LOOK_NS));
        if self.is_stopped() {
            return Some(Finish::Stopped);
        }
        if now_ns >= self.deadline_ns {
            return Some(Finish::Complete);
        }
        (now_ns >= self.part_end_ns).then_some(Finish::PartOver)
    }

    fn is_stopped(&self) -> bool {
        self.control.stopped() || self.halt.load(Ordering::Relaxed)
    }

    /// Waits for the first part of a phase that alternates.
    pub(crate) fn first_part(&mut self) -> Option<Finish> {
        let seat = self.control.seat.as_ref()?;
        let Some(times) = seat.begin(self.part, || self.is_stopped()) else {
            return Some(Finish::Stopped);
        };
        self.time.set(times.now_ns);
        (self.part, self.part_end_ns) = (times.part, times.end_ns);
        self.look_ns = 0;
        None
    }

    /// Ends this worker's part, with nothing of it under way, and waits for the next one. The time
    /// until then does not pass. Returns why there is none.
    #[cold]
    pub(crate) fn next_part(&mut self, recorder: &Recorder) -> Option<Finish> {
        let done = self.since_part(recorder);
        self.control.seat.as_ref()?.finish_part(done);
        self.first_part()
    }

    /// Does something outside the phase's time.
    #[cold]
    pub(crate) fn outside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let now_ns = self.now_ns();
        let begun_ns = monotonic_ns();
        let done = work();
        if let Some(seat) = &self.control.seat {
            seat.exclude(monotonic_ns().saturating_sub(begun_ns));
        }
        self.time.set(now_ns);
        done
    }

    /// Ends this worker: the others of its phase do not wait for it.
    pub(crate) fn retire(&mut self, recorder: &Recorder) {
        let done = self.since_part(recorder);
        if let Some(seat) = &self.control.seat {
            seat.retire(done);
        }
    }

    /// Work of this worker since its part began.
    fn since_part(&mut self, recorder: &Recorder) -> Progress {
        let done = recorder.progress();
        done.since(std::mem::replace(&mut self.before_part, done))
    }

    /// Adds the work done since the last report to the public counters.
    pub(crate) fn report(&mut self, recorder: &Recorder) {
        let done = recorder.progress();
        // Only the difference is added: all workers share the counters.
        let more = done.since(std::mem::replace(&mut self.reported, done));
        self.control.ops.fetch_add(more.ops, Ordering::Relaxed);
        self.control.bytes.fetch_add(more.bytes, Ordering::Relaxed);
    }

    /// Tells the other workers to stop.
    pub(crate) fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Time for which a wait from `now_ns` until `due_ns` may block without missing a check or
    /// waking up late; 0: do not block.
    pub(crate) fn may_block_ns(&self, now_ns: u64, due_ns: u64) -> u64 {
        let until_due = due_ns.saturating_sub(now_ns).saturating_sub(self.spin_ns);
        until_due.min(LOOK_NS)
    }

    /// Waits until `due_ns` or longer. Returns the time, or why the wait ended early.
    pub(crate) fn wait_until(&mut self, due_ns: u64, recorder: &Recorder) -> Result<u64, Finish> {
        loop {
            let now_ns = self.now_ns();
            if let Some(finish) = self.ended(now_ns, recorder) {
                return Err(finish);
            }
            if now_ns >= due_ns {
                return Ok(now_ns);
            }
            // The spin time is added to the deadline because `may_block_ns` takes it off again: a
            // sleep may last until the deadline, which needs no precision.
            let until = due_ns.min(self.deadline_ns.saturating_add(self.spin_ns));
            match self.may_block_ns(now_ns, until) {
                0 => std::hint::spin_loop(),
                ns => sleep_ns(ns),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_do_not_spin_when_threads_share_processors() {
        assert_eq!((spin_ns(1), spin_ns(u32::MAX)), (SPIN_NS, 0));
        let (control, halt) = (Control::default(), AtomicBool::new(false));
        let block = |spin_ns| {
            let watch = PhaseWatch::new(FastClock::calibrated(), &control, &halt, None, spin_ns);
            watch.may_block_ns(1_000, 101_000)
        };
        assert_eq!((block(SPIN_NS), block(0)), (50_000, 100_000));
    }
}
