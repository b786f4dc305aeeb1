//! A drive whose cache is of another kind than its card's: protected, lying, or switched off.

use crate::completions::Completions;
use crate::power::Durability;
use crate::{Completion, Drive, DriveError, Nanos, Operation, Request};

/// A drive with a cache of a kind.
#[derive(Debug, Clone)]
pub struct Caching<D> {
    drive: D,
    kind: Durability,
    /// Flushes that are answered without asking the drive.
    answered: Completions,
}

impl<D: Drive> Caching<D> {
    /// A drive that keeps what it acknowledges in this way.
    pub fn new(drive: D, kind: Durability) -> Self {
        Self {
            drive,
            kind,
            answered: Completions::with_capacity(64),
        }
    }

    /// The operation that the drive is really asked for; `None` means no operation.
    fn asked(&self, operation: Operation) -> Option<Operation> {
        match (self.kind, operation) {
            (Durability::Honest, as_it_is) => Some(as_it_is),
            // Without a cache there is nothing to be flushed, and every write goes to the medium.
            (_, Operation::Flush) => None,
            (Durability::Off, Operation::Write { .. }) => Some(Operation::Write { durable: true }),
            // A cache that survives need not be emptied; a liar does not empty it either.
            (_, Operation::Write { .. }) => Some(Operation::Write { durable: false }),
            (_, other) => Some(other),
        }
    }
}

impl<D: Drive> Drive for Caching<D> {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        match self.asked(request.operation) {
            Some(operation) => {
                let request = Request {
                    operation,
                    ..request
                };
                self.drive.submit(request, now);
            }
            None => self.answered.add(request.id, now),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let events = [self.answered.next(), self.drive.next_event()];
        events.into_iter().flatten().min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.answered
            .take_due(now)
            .or_else(|| self.drive.complete(now))
    }

    fn take_error(&mut self, id: u64) -> Option<DriveError> {
        self.drive.take_error(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Card;

    /// Time of a write and a flush after it together, ns.
    fn time(kind: Durability) -> Nanos {
        let card = Card::shipped("seagate-st3000dm001").unwrap();
        let mut drive = Caching::new(card.drive(0, 0).unwrap(), kind);
        let mut now = 0;
        let asked = [Operation::Write { durable: false }, Operation::Flush];
        for (id, operation) in (0..).zip(asked) {
            let request = Request {
                id,
                operation,
                first: 1 << 20,
                sectors: 8,
            };
            drive.submit(request, now);
            loop {
                now = now.max(drive.next_event().unwrap());
                if let Some(done) = drive.complete(now) {
                    assert_eq!(done.id, id);
                    break;
                }
            }
        }
        now
    }

    #[test]
    fn only_who_obeys_a_flush_or_has_no_cache_waits_for_the_medium() {
        let [honest, protected, lying, off] = [
            Durability::Honest,
            Durability::Protected,
            Durability::Lying,
            Durability::Off,
        ]
        .map(time);
        // A turn of the platter takes 8.3 ms: the medium is milliseconds away, the cache is not.
        assert!(honest > 1_000_000 && off > 1_000_000, "{honest} {off}");
        assert!(
            protected < 500_000 && lying == protected,
            "{protected} {lying}"
        );
    }
}
