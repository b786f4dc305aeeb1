//! What a drive holds after its power was cut, at any instant of what it was asked to do.
//!
//! The log of a run is enough to make the state after a cut at every instant, as often as wanted:
//! nothing has to be run again. Only the order of writes matters here, not their content: the answer
//! says which write each sector holds.

use crate::{Completion, Nanos, Operation, Request};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// The way in which a drive keeps what it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A volatile cache that flush and FUA empty, as the standards demand.
    Honest,
    /// A cache that survives: capacitors, a battery, or flash.
    Protected,
    /// A volatile cache whose drive acknowledges flush and FUA without obeying them.
    Lying,
    /// No write cache, or it is switched off: what is acknowledged is on the medium.
    Off,
}

/// The properties of a drive that matter when its power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerCut {
    /// The way in which it keeps what it has acknowledged.
    pub durability: Durability,
    /// Sectors a volatile cache holds at most: what was written earlier had to leave it.
    pub cache_sectors: u64,
    /// Sectors of 512 bytes in a physical sector, which is written whole or not at all: 1 or 8.
    pub physical_sectors: u32,
}

/// A write or flush with its instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// The request itself.
    pub request: Request,
    /// Instant of its submission.
    pub submitted: Nanos,
    /// Instant of its acknowledgement; `None` if it has not come yet.
    pub completed: Option<Nanos>,
}

/// Every write and flush of a drive, in the order they were submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteLog {
    entries: Vec<Logged>,
}

/// Sectors of one write that reached the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The write's place in the log.
    pub write: usize,
    /// First sector.
    pub first: u64,
    /// Sector behind the last one.
    pub end: u64,
}

/// The content of one sector after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The content from before the log begins.
    Before,
    /// The data of the write at this place of the log.
    Write(usize),
    /// The content cannot be read: its physical sector was being written.
    Damaged,
}

/// A drive's medium after a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// Writes that were kept; where several overlap, the last one holds.
    pub kept: Vec<Kept>,
    /// Sectors that cannot be read any more, though the write under way did not cover them:
    /// neighbours in a physical sector. `first..end`.
    pub damaged: Vec<(u64, u64)>,
}

impl Aftermath {
    /// The content of a sector.
    #[must_use]
    pub fn held(&self, sector: u64) -> Held {
        let inside = |first, end| (first..end).contains(&sector);
        if self.damaged.iter().any(|range| inside(range.0, range.1)) {
            return Held::Damaged;
        }
        let last = self
            .kept
            .iter()
            .rev()
            .find(|kept| inside(kept.first, kept.end));
        last.map_or(Held::Before, |kept| Held::Write(kept.write))
    }
}

impl WriteLog {
    /// A log that was kept before: entries in the order they were submitted.
    #[must_use]
    pub fn of(entries: Vec<Logged>) -> Self {
        Self { entries }
    }

    /// Everything submitted, in the order of submission.
    #[must_use]
    pub fn entries(&self) -> &[Logged] {
        &self.entries
    }

    /// Notes a request that was submitted at `now`; reads and discards change nothing and are left
    /// out.
    pub fn submit(&mut self, request: Request, now: Nanos) {
        if matches!(
            request.operation,
            Operation::Write { .. } | Operation::Flush
        ) {
            self.entries.push(Logged {
                request,
                submitted: now,
                completed: None,
            });
        }
    }

    /// Notes that the drive has acknowledged a request.
    pub fn complete(&mut self, completion: Completion) {
        // From the end: it is one of the last.
        let mut open = self.entries.iter_mut().rev();
        let found =
            open.find(|entry| entry.request.id == completion.id && entry.completed.is_none());
        if let Some(entry) = found {
            entry.completed = Some(completion.at);
        }
    }

    /// Writes that this drive promised to keep when it is cut at `at`, were it honest: acknowledged
    /// durable writes, and those acknowledged before an acknowledged flush was submitted.
    pub fn promised(&self, at: Nanos) -> impl Iterator<Item = usize> + '_ {
        let done = move |entry: &Logged| entry.completed.is_some_and(|done| done <= at);
        let flushes = self
            .entries
            .iter()
            .filter(move |entry| entry.request.operation == Operation::Flush && done(entry));
        let last = flushes.map(|flush| flush.submitted).max();
        self.writes().filter_map(move |(number, entry)| {
            let durable = entry.request.operation == Operation::Write { durable: true };
            let flushed = last.is_some_and(|last| entry.completed.is_some_and(|done| done <= last));
            (done(entry) && (durable || flushed)).then_some(number)
        })
    }

    fn writes(&self) -> impl DoubleEndedIterator<Item = (usize, &Logged)> {
        let all = self.entries.iter().enumerate();
        all.filter(|(_, entry)| entry.request.operation != Operation::Flush)
    }

    /// The medium when the power is cut at `at`. What may or may not be kept is drawn from the
    /// seed: the same seed gives the same answer.
    #[must_use]
    pub fn cut(&self, drive: &PowerCut, at: Nanos, seed: u64) -> Aftermath {
        let mut chance = Chance::new(seed, at);
        let safe = self.safe(drive, at);
        // One share for the whole cut, so that some cuts lose nearly all and others nearly nothing.
        let share = chance.share();
        let begun = self.writes().filter(|(_, entry)| entry.submitted < at);
        let mut after = Aftermath::default();
        let mut torn = Vec::new();
        for (number, entry) in begun {
            let request = &entry.request;
            let whole = Kept {
                write: number,
                first: request.first,
                end: request.first + u64::from(request.sectors),
            };
            if safe[number] {
                after.kept.push(whole);
                continue;
            }
            match chance.fate(share) {
                Fate::Whole => after.kept.push(whole),
                Fate::Nothing => torn.push(number),
                Fate::Part => {
                    torn.push(number);
                    let sectors = u64::from(drive.physical_sectors.max(1));
                    after.kept.extend(chance.parts(whole, sectors, share));
                }
            }
        }
        after.damaged = self.damage(drive, &torn, &mut chance);
        after
    }

    /// Marks the entries that are on the medium, or will be by the drive's own reserve.
    fn safe(&self, drive: &PowerCut, at: Nanos) -> Vec<bool> {
        let mut safe = vec![false; self.entries.len()];
        let done = |entry: &Logged| entry.completed.is_some_and(|done| done <= at);
        match drive.durability {
            Durability::Protected | Durability::Off => {
                for (number, entry) in self.writes() {
                    safe[number] = done(entry);
                }
                return safe;
            }
            Durability::Honest => {
                for number in self.promised(at) {
                    safe[number] = true;
                }
            }
            Durability::Lying => {}
        }
        // What was acknowledged so long ago that the cache had to make room for what came later.
        let mut later = 0;
        for (number, entry) in self.writes().rev().filter(|(_, entry)| done(entry)) {
            safe[number] |= later >= drive.cache_sectors;
            later += u64::from(entry.request.sectors);
        }
        safe
    }

    /// The physical sector that the head was writing: where a write covers it only in part, the
    /// drive had read the rest of it and was writing it again.
    fn damage(&self, drive: &PowerCut, torn: &[usize], chance: &mut Chance) -> Vec<(u64, u64)> {
        let physical = u64::from(drive.physical_sectors.max(1));
        if torn.is_empty() || drive.durability == Durability::Protected {
            return Vec::new();
        }
        // One head writes one place.
        let request = &self.entries[torn[chance.below(torn.len() as u64) as usize]].request;
        let (first, end) = (request.first, request.first + u64::from(request.sectors));
        let edges = [
            (first - first % physical, first),
            (end, end.next_multiple_of(physical)),
        ];
        let edge = edges[chance.below(2) as usize];
        (edge.0 < edge.1).then_some(edge).into_iter().collect()
    }
}

enum Fate {
    Whole,
    Nothing,
    Part,
}

/// Chance that follows from a seed.
struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn new(seed: u64, at: Nanos) -> Self {
        // Two cuts of one seed at different instants must not be alike.
        let mixed = seed ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// A share from 0 to less than 1.
    fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count.max(1)
    }

    fn fate(&mut self, share: f64) -> Fate {
        // One write in eight is torn: most are shorter than what the head writes in one go.
        if self.below(8) == 0 {
            Fate::Part
        } else if self.share() < share {
            Fate::Whole
        } else {
            Fate::Nothing
        }
    }

    /// Some of a write's physical sectors, any of them: a drive writes from where its head arrives.
    fn parts(&mut self, whole: Kept, physical: u64, share: f64) -> Vec<Kept> {
        let mut parts = Vec::new();
        let mut at = whole.first;
        while at < whole.end {
            let next = ((at / physical + 1) * physical).min(whole.end);
            if self.share() < share {
                parts.push(Kept {
                    first: at,
                    end: next,
                    ..whole
                });
            }
            at = next;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Operation = Operation::Write { durable: false };
    const DURABLE: Operation = Operation::Write { durable: true };

    /// Operations one after the other, each submitted at 10 x its number and done 5 later.
    fn log(operations: &[(Operation, u64, u32)]) -> WriteLog {
        let mut log = WriteLog::default();
        for (&(operation, first, sectors), id) in operations.iter().zip(0..) {
            let request = Request {
                id,
                operation,
                first,
                sectors,
            };
            log.submit(request, id * 10);
            log.complete(Completion {
                id,
                at: id * 10 + 5,
            });
        }
        log
    }

    fn drive(durability: Durability) -> PowerCut {
        PowerCut {
            durability,
            cache_sectors: 1 << 20,
            physical_sectors: 1,
        }
    }

    /// Number of cuts at `at`, of 400, after which a sector holds what `expected` says.
    fn count(log: &WriteLog, drive: &PowerCut, at: Nanos, sector: u64, expected: Held) -> usize {
        let cuts = (0..400).map(|seed| log.cut(drive, at, seed));
        cuts.filter(|after| after.held(sector) == expected).count()
    }

    #[test]
    fn an_honest_drive_keeps_what_was_flushed_and_may_lose_what_was_not() {
        let log = log(&[
            (WRITE, 0, 1),
            (Operation::Flush, 0, 0),
            (WRITE, 8, 1),
            (DURABLE, 16, 1),
        ]);
        let drive = drive(Durability::Honest);
        assert_eq!(count(&log, &drive, 100, 0, Held::Write(0)), 400);
        assert_eq!(count(&log, &drive, 100, 16, Held::Write(3)), 400);
        let kept = count(&log, &drive, 100, 8, Held::Write(2));
        assert!((50..350).contains(&kept), "{kept}");
        // Before the flush is acknowledged nothing is promised.
        assert!(count(&log, &drive, 12, 0, Held::Before) > 50);
    }

    #[test]
    fn a_flush_does_not_cover_a_write_that_was_acknowledged_after_it_came() {
        let mut log = WriteLog::default();
        let request = |id, operation, first| Request {
            id,
            operation,
            first,
            sectors: 1,
        };
        log.submit(request(1, WRITE, 0), 0);
        log.submit(request(2, Operation::Flush, 0), 1);
        log.complete(Completion { id: 1, at: 2 });
        log.complete(Completion { id: 2, at: 3 });
        assert_eq!(log.promised(10).count(), 0);
        assert!(count(&log, &drive(Durability::Honest), 10, 0, Held::Before) > 50);
    }

    #[test]
    fn a_protected_cache_and_one_switched_off_keep_all_that_was_acknowledged() {
        let log = log(&[(WRITE, 0, 1), (WRITE, 8, 1)]);
        for durability in [Durability::Protected, Durability::Off] {
            let drive = drive(durability);
            assert_eq!(count(&log, &drive, 100, 8, Held::Write(1)), 400);
            // Under way: not acknowledged, so it may be lost.
            assert!(count(&log, &drive, 12, 8, Held::Before) > 50);
            // Not begun: not there.
            assert_eq!(count(&log, &drive, 10, 8, Held::Before), 400);
        }
    }

    #[test]
    fn a_lying_drive_loses_what_was_flushed_but_not_what_left_its_cache() {
        let log = log(&[(WRITE, 0, 1), (WRITE, 8, 1), (Operation::Flush, 0, 0)]);
        let mut liar = drive(Durability::Lying);
        assert_eq!(log.promised(100).count(), 2);
        assert!(count(&log, &liar, 100, 0, Held::Before) > 50);
        liar.cache_sectors = 1;
        assert_eq!(count(&log, &liar, 100, 0, Held::Write(0)), 400);
        assert!(count(&log, &liar, 100, 8, Held::Before) > 50);
    }

    #[test]
    fn a_later_write_may_survive_an_earlier_one() {
        let twice = log(&[(WRITE, 0, 1), (WRITE, 0, 1)]);
        let log = log(&[(WRITE, 0, 1), (WRITE, 8, 1)]);
        let drive = drive(Durability::Honest);
        let reordered = (0..400)
            .map(|seed| log.cut(&drive, 100, seed))
            .filter(|after| after.held(0) == Held::Before && after.held(8) == Held::Write(1));
        assert!(reordered.count() > 20);
        // What was written twice holds the first, the second, or neither.
        for held in [Held::Before, Held::Write(0), Held::Write(1)] {
            assert!(count(&twice, &drive, 100, 0, held) > 20, "{held:?}");
        }
    }

    #[test]
    fn a_write_is_torn_between_physical_sectors_only() {
        let log = log(&[(WRITE, 0, 64)]);
        for physical in [1, 8] {
            let drive = PowerCut {
                physical_sectors: physical,
                ..drive(Durability::Honest)
            };
            let mut torn = 0;
            for seed in 0..400 {
                let after = log.cut(&drive, 100, seed);
                let kept = |sector: u64| after.held(sector) == Held::Write(0);
                torn += u32::from((1..64).any(|sector| kept(sector) != kept(0)));
                let pieces = (0..64).step_by(physical as usize);
                for first in pieces {
                    let same = |sector| kept(sector) == kept(first);
                    assert!(
                        (first..first + u64::from(physical)).all(same),
                        "seed {seed}"
                    );
                }
            }
            assert!(torn > 10, "{torn}");
        }
    }

    #[test]
    fn neighbours_are_damaged_only_in_a_physical_sector_that_is_written_in_part() {
        let drive = PowerCut {
            physical_sectors: 8,
            ..drive(Durability::Honest)
        };
        let damaged = |first, sectors| {
            let log = log(&[(WRITE, first, sectors)]);
            let cuts = (0..400).map(|seed| log.cut(&drive, 100, seed));
            let damaged: Vec<_> = cuts.flat_map(|after| after.damaged).collect();
            damaged
        };
        assert_eq!(damaged(8, 16), []);
        let part = damaged(10, 2);
        assert!(part.len() > 50);
        assert!(
            part.iter()
                .all(|range| *range == (8, 10) || *range == (12, 16)),
            "{part:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_state_and_another_instant_another() {
        let operations: Vec<_> = (0..50).map(|at| (WRITE, at * 8, 8)).collect();
        let log = log(&operations);
        let drive = drive(Durability::Honest);
        assert_eq!(log.cut(&drive, 1000, 7), log.cut(&drive, 1000, 7));
        assert_ne!(log.cut(&drive, 1000, 7), log.cut(&drive, 1001, 7));
    }
}
