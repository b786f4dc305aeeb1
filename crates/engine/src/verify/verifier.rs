//! A worker's way to the files that stamps what it writes and checks what it reads.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::finding::{ContentMismatch, judge, truncated};
use super::ledger::ContentLedger;
use super::sector::{Label, Stamp, sectors, sectors_mut};
use super::slots::Slots;
use crate::content::SECTOR;
use crate::io::{IoDevice, IoFailure};
use crate::outcome::Op;
use crate::ring::{Ring, Wait};
use crate::shape::BlockStep;

/// The units an operation needs, and how many of them it has already.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    op: Option<Op>,
    first: usize,
    units: usize,
    taken: usize,
}

impl Claim {
    fn new(ledger: &ContentLedger, step: &BlockStep) -> Claim {
        let unit = ledger.unit_bytes();
        let first = ledger.units_of(step.target).start + (step.offset / unit as u64) as usize;
        Claim {
            op: Some(step.op),
            first,
            units: step.size as usize / unit,
            taken: 0,
        }
    }

    /// Takes what can be had, in ascending order. Returns whether it has everything.
    ///
    /// Taken units are kept while waiting for the rest: else a large operation would wait as long
    /// as small ones keep a part of it busy. There is no deadlock: an operation that holds a unit
    /// waits only for higher ones, and one that holds all its units completes without waiting.
    #[inline]
    fn advance(&mut self, ledger: &ContentLedger) -> bool {
        while self.taken < self.units && ledger.take(self.first + self.taken) {
            self.taken += 1;
        }
        self.taken == self.units
    }
}

/// A device or ring whose operations are verified.
pub(crate) struct Verified<'a, I> {
    inner: I,
    ledger: &'a ContentLedger,
    files: &'a [OwnedFd],
    /// Sum to which the bytes that were checked are added, in the end.
    total: &'a AtomicU64,
    checked: u64,
    /// Claim of the operation that is issued next, so far.
    pending: Claim,
    /// Claim of each operation under way.
    claims: Vec<Claim>,
}

impl<'a, I: Slots> Verified<'a, I> {
    pub(crate) fn new(
        inner: I,
        slots: usize,
        ledger: &'a ContentLedger,
        files: &'a [OwnedFd],
        total: &'a AtomicU64,
    ) -> Verified<'a, I> {
        Verified {
            inner,
            ledger,
            files,
            total,
            checked: 0,
            pending: Claim::default(),
            claims: vec![Claim::default(); slots],
        }
    }

    /// The I/O whose results are verified.
    #[cfg(test)]
    pub(super) fn inner(&self) -> &I {
        &self.inner
    }

    /// Takes the units of an operation and stamps what it writes.
    #[inline]
    fn ready(&mut self, slot: usize, step: &BlockStep) -> bool {
        if self.pending.op.is_none() {
            self.pending = Claim::new(self.ledger, step);
        }
        if !self.pending.advance(self.ledger) {
            return false;
        }
        self.claims[slot] = std::mem::take(&mut self.pending);
        if step.op == Op::Write {
            self.stamp(slot, step);
        }
        true
    }

    fn stamp(&mut self, slot: usize, step: &BlockStep) {
        let (ledger, first) = (self.ledger, self.claims[slot].first);
        let unit_bytes = ledger.unit_bytes();
        let buffer = self.inner.buffer(slot, step.size as usize);
        let mut label = Label {
            mark: ledger.mark(step.target),
            offset: step.offset,
            generation: 0,
        };
        for (unit, bytes) in (first..).zip(buffer.chunks_exact_mut(unit_bytes)) {
            label.generation = ledger.next(unit);
            for sector in sectors_mut(bytes) {
                ledger.stamp().write(sector, label);
                label.offset += SECTOR as u64;
            }
        }
    }

    /// Books a write or checks a read of which the first `moved` bytes were done, and gives its
    /// units back.
    #[inline]
    fn done(&mut self, slot: usize, step: &BlockStep, moved: u32) -> Result<(), ContentMismatch> {
        let claim = std::mem::take(&mut self.claims[slot]);
        let units = claim.first..claim.first + claim.units;
        let whole = moved as usize / self.ledger.unit_bytes();
        if step.op == Op::Write {
            for unit in units {
                if unit - claim.first < whole {
                    self.ledger.written(unit);
                } else {
                    self.ledger.half_written(unit);
                }
            }
            return Ok(());
        }
        let sound = self.check(slot, step, claim.first, moved);
        for unit in units {
            self.ledger.give_back(unit);
        }
        sound
    }

    fn check(
        &mut self,
        slot: usize,
        step: &BlockStep,
        first: usize,
        moved: u32,
    ) -> Result<(), ContentMismatch> {
        let ledger = self.ledger;
        let unit_bytes = ledger.unit_bytes();
        let buffer = self.inner.buffer(slot, moved as usize);
        let mut label = Label {
            mark: ledger.mark(step.target),
            offset: step.offset,
            generation: 0,
        };
        for (unit, bytes) in (first..).zip(buffer.chunks_exact(unit_bytes)) {
            let expected = ledger.expected(unit);
            if expected.is_known() {
                label.generation = expected.newest;
                for sector in sectors(bytes) {
                    if !Stamp::holds(sector, label) {
                        // Of an unsure unit an older sector is as right.
                        let begin = step.offset + (unit - first) as u64 * unit_bytes as u64;
                        judge(ledger, step.target, begin, bytes, expected)?;
                        break;
                    }
                    label.offset += SECTOR as u64;
                }
                // Only units with known content count as checked.
                self.checked += unit_bytes as u64;
            }
            label.offset = step.offset + (unit + 1 - first) as u64 * unit_bytes as u64;
        }
        if moved < step.size {
            return truncated(ledger, &self.files[step.target as usize], step, moved);
        }
        Ok(())
    }
}

/// An operation that has its units and never came back may have done anything.
impl<I> Drop for Verified<'_, I> {
    fn drop(&mut self) {
        self.total.fetch_add(self.checked, Ordering::Relaxed);
        for claim in self.claims.iter().chain([&self.pending]) {
            // An operation that waited for units was never issued.
            let issued = claim.taken == claim.units;
            for unit in claim.first..claim.first + claim.taken {
                if issued && claim.op == Some(Op::Write) {
                    self.ledger.half_written(unit);
                } else {
                    self.ledger.give_back(unit);
                }
            }
        }
    }
}

impl<I: IoDevice + Slots> IoDevice for Verified<'_, I> {
    const VERIFIES: bool = true;

    #[inline]
    fn prepare(&mut self, step: &BlockStep) -> bool {
        self.ready(0, step)
    }

    #[inline(always)]
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        self.inner.issue(step)
    }

    #[inline]
    fn check(&mut self, step: &BlockStep, moved: u32) -> Result<(), ContentMismatch> {
        self.done(0, step, moved)
    }

    #[inline]
    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        self.inner.sync(target)
    }
}

impl<I: Ring + Slots> Ring for Verified<'_, I> {
    const VERIFIES: bool = true;

    #[inline]
    fn prepare(&mut self, slot: usize, step: &BlockStep) -> bool {
        self.ready(slot, step)
    }

    #[inline]
    fn check(&mut self, slot: usize, step: &BlockStep, moved: u32) -> Result<(), ContentMismatch> {
        self.done(slot, step, moved)
    }

    #[inline(always)]
    fn push(&mut self, slot: usize, step: &BlockStep) -> bool {
        self.inner.push(slot, step)
    }

    #[inline]
    fn submit(&mut self, wait: Wait) -> Result<(), Errno> {
        self.inner.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<(usize, i32)> {
        self.inner.reap()
    }
}
