//! Which request comes next: the generator that all threads share, without a lock.
//!
//! One word, changed by compare-and-swap, holds everything that decides about fsync: the requests
//! since the last cadence, whether anything was written since the last burst, and the progress of
//! the burst. So the order of requests is always one that sysbench, which holds a mutex, could have
//! produced.

use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::{SysbenchMode, SysbenchPlan, SysbenchVersion};
use crate::outcome::Op;
use stackrace_system::draw::Draw;

/// The next task of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SysbenchRequest {
    /// Reads or writes a part of a file.
    Move(SysbenchStep),
    /// Makes one file durable.
    Fsync {
        /// Its number.
        file: u32,
    },
}

/// A read or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SysbenchStep {
    pub(super) op: Op,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// No block is held.
const FREE: u64 = u64::MAX;
/// `drand48`'s multiplier, increment and modulus, and the state it has unless it is seeded (POSIX;
/// the C standard library of GNU begins with 0).
const LCG: (u64, u64, u64) = (0x5_deec_e66d, 0xb, (1 << 48) - 1);
const LCG_SEED: u64 = 0x330e;

/// The cadence of fsync in one word: 31 bits of requests since the last one, one that says whether
/// something was written since the last burst, 32 of files the burst has done.
#[derive(Clone, Copy)]
struct Cadence(u64);

impl Cadence {
    fn since(self) -> u64 {
        self.0 & 0x7fff_ffff
    }

    fn dirty(self) -> bool {
        self.0 >> 31 & 1 == 1
    }

    fn synced(self) -> u64 {
        self.0 >> 32
    }

    fn new(since: u64, dirty: bool, synced: u64) -> Cadence {
        Cadence(synced << 32 | u64::from(dirty) << 31 | since)
    }

    /// The next state, and the file to sync if one is due.
    fn next(self, writes: bool, every: u64, files: u64) -> (Cadence, Option<u32>) {
        if self.dirty() && self.since() == 0 {
            let synced = self.synced() + 1;
            let next = if synced == files {
                Cadence::new(0, false, 0)
            } else {
                Cadence::new(0, true, synced)
            };
            // Files are counted in 32 bits.
            return (next, Some(self.synced() as u32));
        }
        let since = (self.since() + 1) % every;
        (Cadence::new(since, self.dirty() || writes, 0), None)
    }
}

/// Hands out the requests of all threads, each once.
pub(super) struct RequestSource<'a> {
    plan: &'a SysbenchPlan,
    cadence: AtomicU64,
    /// Requests of sequential modes, and of version 0.4 the reads and writes, issued so far.
    cursor: AtomicU64,
    /// Events taken, where their number is limited.
    events: AtomicU64,
    /// Files synced at the end of version 0.4.
    closing: AtomicU64,
    /// Completed reads and writes, where the mix depends on them.
    reads: AtomicU64,
    writes: AtomicU64,
    /// State of the generator of version 0.4, one for all threads.
    lcg: AtomicU64,
    /// The block each thread works on, if content is validated.
    held: Vec<AtomicU64>,
}

impl<'a> RequestSource<'a> {
    pub(super) fn new(plan: &'a SysbenchPlan) -> RequestSource<'a> {
        let held = if plan.validate { plan.threads } else { 0 };
        RequestSource {
            plan,
            cadence: AtomicU64::new(0),
            cursor: AtomicU64::new(0),
            events: AtomicU64::new(0),
            closing: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            // Seeded as `srand48` does, where a seed was asked for.
            lcg: AtomicU64::new(match plan.seed {
                0 => 0,
                seed => (seed & 0xffff_ffff) << 16 | LCG_SEED,
            }),
            held: (0..held).map(|_| AtomicU64::new(FREE)).collect(),
        }
    }

    /// The next request of a thread; `None` if all is done.
    #[inline]
    pub(super) fn next(&self, thread: usize, draw: &mut Draw) -> Option<SysbenchRequest> {
        match (self.plan.version, self.plan.mode.sequential()) {
            (SysbenchVersion::V1_0, sequential) => {
                let limit = self.plan.events;
                // Counts past the limit by one per thread, which does no harm.
                if limit > 0 && self.events.fetch_add(1, Ordering::Relaxed) >= limit {
                    return None;
                }
                let op = self.op();
                Some(match self.burst(op) {
                    Some(file) => SysbenchRequest::Fsync { file },
                    None if sequential => {
                        let number = self.cursor.fetch_add(1, Ordering::Relaxed);
                        SysbenchRequest::Move(self.sequential(op, number % self.pass()))
                    }
                    None => SysbenchRequest::Move(self.random(op, thread, || draw.unit())),
                })
            }
            (SysbenchVersion::V0_4, true) => self.single_pass(),
            (SysbenchVersion::V0_4, false) => self.random_0_4(thread),
        }
    }

    /// A read or write completed.
    #[inline]
    pub(super) fn completed(&self, op: Op) {
        if self.plan.mode == SysbenchMode::RandomBoth {
            let counter = if op == Op::Read {
                &self.reads
            } else {
                &self.writes
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A thread works on no block any more.
    #[inline]
    pub(super) fn release(&self, thread: usize) {
        if let Some(held) = self.held.get(thread) {
            held.store(FREE, Ordering::Release);
        }
    }

    /// Version 0.4 passes over the files once, whatever the number of requests, and then syncs
    /// each.
    fn single_pass(&self) -> Option<SysbenchRequest> {
        let number = self.cursor.fetch_add(1, Ordering::Relaxed);
        match number.checked_sub(self.pass()) {
            None => Some(SysbenchRequest::Move(self.sequential(self.op(), number))),
            Some(_) => self.close_0_4(),
        }
    }

    fn random_0_4(&self, thread: usize) -> Option<SysbenchRequest> {
        let limit = match self.plan.events {
            0 => u64::MAX,
            limit => limit,
        };
        if self.cursor.load(Ordering::Relaxed) >= limit {
            return self.close_0_4();
        }
        let op = self.op();
        if let Some(file) = self.burst(op) {
            return Some(SysbenchRequest::Fsync { file });
        }
        if self.cursor.fetch_add(1, Ordering::Relaxed) >= limit {
            return self.close_0_4();
        }
        Some(SysbenchRequest::Move(
            self.random(op, thread, || self.lrand48()),
        ))
    }

    /// One fsync of each file, as a request of the next free thread.
    fn close_0_4(&self) -> Option<SysbenchRequest> {
        let plan = self.plan;
        let asked = plan.mode.writes() && plan.fsync_at_end && !plan.fsync_each;
        let file = self.closing.fetch_add(1, Ordering::Relaxed);
        (asked && file < u64::from(plan.files))
            .then_some(SysbenchRequest::Fsync { file: file as u32 })
    }

    /// Chooses to read or to write: reads while completed reads over completed writes, one more of
    /// each, is below the ratio.
    #[inline]
    fn op(&self) -> Op {
        match self.plan.mode {
            SysbenchMode::SeqRead | SysbenchMode::RandomRead => Op::Read,
            SysbenchMode::SeqWrite | SysbenchMode::SeqRewrite | SysbenchMode::RandomWrite => {
                Op::Write
            }
            SysbenchMode::RandomBoth => {
                let reads = self.reads.load(Ordering::Relaxed) + 1;
                let writes = self.writes.load(Ordering::Relaxed) + 1;
                if reads as f64 / (writes as f64) < self.plan.ratio {
                    Op::Read
                } else {
                    Op::Write
                }
            }
        }
    }

    /// The file to sync, if the cadence says it is time; if not, a request of `op` is counted.
    #[inline]
    fn burst(&self, op: Op) -> Option<u32> {
        let plan = self.plan;
        let every = u64::from(plan.cadence());
        if every == 0 || !plan.mode.writes() {
            return None;
        }
        let files = u64::from(plan.files);
        let mut seen = self.cadence.load(Ordering::Relaxed);
        loop {
            let (next, file) = Cadence(seen).next(op == Op::Write, every, files);
            match self.cadence.compare_exchange_weak(
                seen,
                next.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return file,
                Err(now) => seen = now,
            }
        }
    }

    /// Requests of one pass over all files.
    fn pass(&self) -> u64 {
        self.plan.requests_of_file() * u64::from(self.plan.files)
    }

    fn sequential(&self, op: Op, number: u64) -> SysbenchStep {
        let each = self.plan.requests_of_file();
        let offset = number % each * u64::from(self.plan.request_bytes());
        let left = self.plan.file_bytes() - offset;
        SysbenchStep {
            op,
            file: (number / each) as u32,
            offset,
            bytes: left.min(u64::from(self.plan.request_bytes())) as u32,
        }
    }

    #[inline]
    fn random(&self, op: Op, thread: usize, mut unit: impl FnMut() -> f64) -> SysbenchStep {
        let (block, file_bytes) = (u64::from(self.plan.block_size), self.plan.file_bytes());
        let total = file_bytes * u64::from(self.plan.files);
        loop {
            let position = (unit() * self.plan.total_bytes as f64) as u64;
            let position = position - position % block;
            // If the total is no multiple of the file size, the rest belongs to no file.
            if position >= total || !self.hold(thread, position) {
                continue;
            }
            let offset = position % file_bytes;
            // Version 0.4 works on whole blocks: preparation makes them whole.
            let bytes = block.min(self.plan.reach() - offset);
            return SysbenchStep {
                op,
                file: (position / file_bytes) as u32,
                offset,
                bytes: bytes as u32,
            };
        }
    }

    /// Announces the block, and returns true if no other thread works on it. Each thread announces
    /// its block before it checks the others, so two threads that want the same block see each
    /// other.
    fn hold(&self, thread: usize, position: u64) -> bool {
        let Some(own) = self.held.get(thread) else {
            return true;
        };
        // A store before a load of other words: only SeqCst keeps that order.
        own.store(position, Ordering::SeqCst);
        let others = self.held.iter().enumerate();
        let taken = others
            .filter(|(other, _)| *other != thread)
            .any(|(_, held)| held.load(Ordering::SeqCst) == position);
        if taken {
            own.store(FREE, Ordering::SeqCst);
        }
        !taken
    }

    /// A number in [0, 1) with 30 bits, from the C standard library's generator.
    fn lrand48(&self) -> f64 {
        let step = |state: u64| Some(state.wrapping_mul(LCG.0).wrapping_add(LCG.1) & LCG.2);
        let before = self
            .lcg
            .try_update(Ordering::Relaxed, Ordering::Relaxed, step)
            .unwrap_or_else(|state| state);
        let drawn = step(before).unwrap_or(before) >> 17;
        (drawn % 0x3fff_ffff) as f64 / f64::from(0x3fff_ffff)
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
