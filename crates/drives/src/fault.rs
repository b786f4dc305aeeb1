//! Declared faults of a drive: slow sectors, sectors that cannot be read, a drive that dies.

use crate::completions::Completions;
use crate::extents::Extents;
use crate::{Completion, Drive, DriveError, Nanos, Operation, Request};

/// A fault of a drive, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Requests that touch `first..end` take `longer`: the drive reads again until it succeeds.
    Slow {
        /// First sector.
        first: u64,
        /// Sector behind the last one.
        end: u64,
        /// Time added to each request.
        longer: Nanos,
    },
    /// Reads that touch `first..end` fail after `longer`. A write puts the sectors elsewhere, and
    /// they can be read again.
    Unreadable {
        /// First sector.
        first: u64,
        /// Sector behind the last one.
        end: u64,
        /// Time for which the drive tries.
        longer: Nanos,
    },
    /// The drive answers nothing from `at` on; what is outstanding fails after `longer`, the time
    /// until the host gives up.
    Dead {
        /// Instant of its death.
        at: Nanos,
        /// Time for which the host waits.
        longer: Nanos,
    },
}

/// A drive with faults. [`Drive::take_error`] says which completion is a failure.
#[derive(Debug, Clone)]
pub struct Faulty<D> {
    drive: D,
    slow: Vec<(u64, u64, Nanos)>,
    unreadable: Extents,
    tries: Nanos,
    dead: Option<(Nanos, Nanos)>,
    /// Requests given to the drive: what is added to each, and how it fails.
    open: Vec<(u64, Nanos, Option<DriveError>)>,
    errors: Vec<(u64, DriveError)>,
    done: Completions,
}

impl<D: Drive> Faulty<D> {
    /// A drive with these faults. Of several deaths the first one counts; where several
    /// unreadable ranges are given, each read tries for the longest of their times.
    pub fn new(drive: D, faults: &[Fault]) -> Self {
        let mut faulty = Self {
            drive,
            slow: Vec::new(),
            unreadable: Extents::default(),
            tries: 0,
            dead: None,
            open: Vec::with_capacity(64),
            errors: Vec::new(),
            done: Completions::with_capacity(64),
        };
        for fault in faults {
            match *fault {
                Fault::Slow { first, end, longer } => faulty.slow.push((first, end, longer)),
                Fault::Unreadable { first, end, longer } => {
                    faulty.unreadable.insert(first, end.max(first));
                    faulty.tries = faulty.tries.max(longer);
                }
                Fault::Dead { at, longer } => {
                    let earlier = faulty.dead.filter(|dead| dead.0 <= at);
                    faulty.dead = earlier.or(Some((at, longer)));
                }
            }
        }
        faulty
    }

    fn fail(&mut self, id: u64, error: DriveError, at: Nanos) {
        self.errors.push((id, error));
        self.done.add(id, at);
    }

    /// Moves what the drive has completed by `now` behind what its faults add.
    fn collect(&mut self, now: Nanos) {
        let alive = self.dead.map_or(now, |(at, _)| now.min(at));
        while let Some(completion) = self.drive.complete(alive) {
            let place = self.open.iter().position(|open| open.0 == completion.id);
            let Some((id, longer, error)) = place.map(|place| self.open.swap_remove(place)) else {
                continue;
            };
            match error {
                Some(error) => self.fail(id, error, completion.at + longer),
                None => self.done.add(id, completion.at + longer),
            }
        }
        if let Some((at, longer)) = self.dead.filter(|dead| dead.0 <= now) {
            for (id, ..) in std::mem::take(&mut self.open) {
                self.fail(id, DriveError::Gone, at + longer);
            }
        }
    }
}

impl<D: Drive> Drive for Faulty<D> {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        self.collect(now);
        if let Some((_, longer)) = self.dead.filter(|dead| dead.0 <= now) {
            return self.fail(request.id, DriveError::Gone, now + longer);
        }
        let (first, end) = (request.first, request.first + u64::from(request.sectors));
        let slow = self
            .slow
            .iter()
            .filter(|slow| slow.0 < end && first < slow.1);
        let mut longer: Nanos = slow.map(|slow| slow.2).sum();
        let mut error = None;
        match request.operation {
            Operation::Read if self.unreadable.touches(first, end) => {
                longer += self.tries;
                error = Some(DriveError::Unreadable);
            }
            Operation::Write { .. } => self.unreadable.remove(first, end),
            _ => {}
        }
        self.open.push((request.id, longer, error));
        self.drive.submit(request, now);
    }

    fn next_event(&self) -> Option<Nanos> {
        let dead = self
            .dead
            .map(|dead| dead.0)
            .filter(|_| !self.open.is_empty());
        let drive = self
            .drive
            .next_event()
            .filter(|at| dead.is_none_or(|dead| *at <= dead));
        // A drive that died has no events of its own any more.
        let drive = drive.filter(|_| !self.open.is_empty() || self.dead.is_none());
        [drive, dead, self.done.next()].into_iter().flatten().min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.collect(now);
        self.done.take_due(now)
    }

    fn take_error(&mut self, id: u64) -> Option<DriveError> {
        let place = self.errors.iter().position(|error| error.0 == id)?;
        Some(self.errors.swap_remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Volume, VolumeParameters};

    const MS: Nanos = 1_000_000;

    /// A drive that answers each request after a millisecond.
    fn drive() -> Volume {
        Volume::new(VolumeParameters {
            sectors: 1 << 20,
            latency: [MS; 2],
            iops: 1e6,
            burst_iops: 1e6,
            credit: 0.0,
            rate: 1e12,
            request_bytes: 1 << 20,
        })
        .unwrap()
    }

    /// Completion and error of each request, all submitted at 0.
    fn run(
        faults: &[Fault],
        requests: &[(Operation, u64)],
    ) -> Vec<(u64, Nanos, Option<DriveError>)> {
        let mut drive = Faulty::new(drive(), faults);
        for (&(operation, first), id) in requests.iter().zip(0..) {
            drive.submit(
                Request {
                    id,
                    operation,
                    first,
                    sectors: 8,
                },
                0,
            );
        }
        let mut done = Vec::new();
        while let Some(at) = drive.next_event() {
            while let Some(completion) = drive.complete(at) {
                done.push((
                    completion.id,
                    completion.at / MS,
                    drive.take_error(completion.id),
                ));
            }
        }
        done.sort_unstable_by_key(|done| done.0);
        done
    }

    const READ: Operation = Operation::Read;
    const WRITE: Operation = Operation::Write { durable: false };

    #[test]
    fn requests_to_slow_sectors_take_longer_and_others_do_not() {
        let slow = Fault::Slow {
            first: 100,
            end: 101,
            longer: 30 * MS,
        };
        let done = run(&[slow], &[(READ, 0), (READ, 96), (READ, 104)]);
        assert_eq!(done, [(0, 1, None), (1, 31, None), (2, 1, None)]);
    }

    #[test]
    fn an_unreadable_sector_fails_its_reads_until_it_is_written() {
        let bad = Fault::Unreadable {
            first: 100,
            end: 101,
            longer: 7000 * MS,
        };
        let done = run(&[bad], &[(READ, 96), (WRITE, 96), (READ, 96)]);
        let error = Some(DriveError::Unreadable);
        assert_eq!(done, [(0, 7001, error), (1, 1, None), (2, 1, None)]);
    }

    #[test]
    fn a_drive_that_died_fails_what_is_outstanding_and_what_comes_later() {
        let dead = Fault::Dead {
            at: MS / 2,
            longer: 10 * MS,
        };
        let done = run(&[dead], &[(READ, 0), (WRITE, 8)]);
        let gone = Some(DriveError::Gone);
        assert_eq!(done, [(0, 10, gone), (1, 10, gone)]);
        let mut drive = Faulty::new(
            drive(),
            &[Fault::Dead {
                at: 5 * MS,
                longer: MS,
            }],
        );
        drive.submit(
            Request {
                id: 1,
                operation: READ,
                first: 0,
                sectors: 8,
            },
            0,
        );
        assert!(drive.complete(5 * MS).is_some());
        assert_eq!(drive.take_error(1), None);
        drive.submit(
            Request {
                id: 2,
                operation: READ,
                first: 0,
                sectors: 8,
            },
            6 * MS,
        );
        assert_eq!(drive.next_event(), Some(7 * MS));
        assert!(drive.complete(7 * MS).is_some());
        assert_eq!(drive.take_error(2), gone);
        assert_eq!(drive.next_event(), None);
    }
}
