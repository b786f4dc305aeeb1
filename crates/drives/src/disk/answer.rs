//! When a disk answers next: the caller need not wake before.
//!
//! What the disk does by itself meanwhile (a seek begins, the write cache is destaged) is made up for at the
//! next call, in order of time. So the answers come at the same instants, with fewer calls.

use super::mechanism::Pass;
use super::{Disk, Movement, Queued};
use crate::{Nanos, Operation, Request};

impl Disk {
    /// Instant at which a request is answered whose first sector passed the head at `first` and
    /// whose last at `end`.
    pub(super) fn answered(&self, request: &Request, first: Nanos, end: Nanos) -> Nanos {
        match request.operation {
            // Sectors cross the bus while later ones are still being read.
            Operation::Read => self.passed(request, first, end) + self.completion[0],
            _ => end + self.completion[1],
        }
    }

    /// The next instant at which a request may be answered that no cache has answered yet, if
    /// nothing else is submitted. `None` if the arm has nothing to do for a request.
    pub(super) fn next_answer(&self) -> Option<Nanos> {
        let next = self.next?;
        // What waits goes on as soon as there is room.
        if !self.waiting.is_empty() {
            return Some(next);
        }
        if self.flushing.is_some() {
            let last = matches!(self.arm, Some(Movement::Destage { .. })) && self.dirty.is_empty();
            return Some(next + if last { self.flush_overhead() } else { 0 });
        }
        match &self.arm {
            Some(Movement::Serve {
                queued, first, end, ..
            }) => Some(self.answered(&queued.request, *first, *end)),
            // Only the write cache is destaged, or begins to be.
            _ if self.queue.is_empty() => None,
            _ => Some(self.foreseen(next).unwrap_or(next)),
        }
    }

    /// Returns true if a request is a read of sectors that the head may be reading on to by itself.
    pub(super) fn may_pass_anyway(&self, request: &Request) -> bool {
        request.operation == Operation::Read && self.reads.reads_on_near(request.first)
    }

    /// Instant at which the one request that waits for the arm will be answered, if the arm is free
    /// from `free` on. `None` if it is not known yet what comes first.
    fn foreseen(&self, free: Nanos) -> Option<Nanos> {
        let [queued] = &self.queue[..] else {
            return None;
        };
        let (request, begin) = (&queued.request, free.max(queued.ready));
        // The cache may have to be destaged first, and the head may just be reading these sectors.
        if self.nearly_full() || self.may_pass_anyway(request) {
            return None;
        }
        let from = match self.reads.stops_at(begin, &self.mechanism) {
            Some(reached) => self.mechanism.over(reached.saturating_sub(1)),
            None => self.mechanism.stands(),
        };
        let pass = self.pass(from, queued, begin);
        Some(self.answered(request, pass.first, pass.end))
    }

    /// The pass of the sectors of a request under the head, which begins at `now` from there.
    pub(super) fn pass(&self, from: (u32, u32), queued: &Queued, now: Nanos) -> Pass {
        let (request, place) = (&queued.request, &queued.place);
        let settled = from == place.over();
        let now = now + Nanos::from(settled) * self.settle_again;
        if request.operation == Operation::Read {
            return self
                .mechanism
                .pass_from(from, place, request.sectors, false, now);
        }
        self.write_pass(from, request.first, Self::end_of(request), now)
    }

    /// The pass that puts `first..end` on the platter: all of it at once, as none of it is known to
    /// be before. Where an edge covers a physical sector only in part, the rest of it is read
    /// first, and written one revolution later.
    pub(super) fn write_pass(&self, from: (u32, u32), first: u64, end: u64, now: Nanos) -> Pass {
        let physical = u64::from(self.physical_sectors);
        let (low, high) = (first - first % physical, end.next_multiple_of(physical));
        let (place, sectors) = (self.mechanism.geometry.place(low), (high - low) as u32);
        let pass = self.mechanism.pass_from(from, &place, sectors, true, now);
        let rewritten = (low, high) != (first, end);
        let done = pass.end + Nanos::from(rewritten) * self.mechanism.geometry.revolution();
        let over = match high == end {
            true => pass.over,
            false => self.mechanism.over(end.saturating_sub(1)),
        };
        Pass {
            first: done,
            end: done,
            over,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Card, Completion, Drive, Nanos, Operation, Request};
    use proptest::prelude::*;

    /// Instants at which a drive is woken that does not say when it wants to be.
    const STEP: Nanos = 50_000;

    /// Returns the answers of a shipped drive, and the number of times it was woken: at
    /// `next_event` alone, or also each [`STEP`].
    fn answers(
        model: &str,
        requests: &[(Nanos, Request)],
        stepped: bool,
    ) -> (Vec<Completion>, usize) {
        let mut drive = Card::shipped(model).unwrap().drive(0, 0).unwrap();
        let (mut done, mut woken, mut now) = (Vec::new(), 0, 0);
        let mut coming = requests.iter().peekable();
        while done.len() < requests.len() {
            let arrives = coming.peek().map(|request| request.0);
            let step = stepped.then_some(now + STEP);
            let next = [drive.next_event(), arrives, step];
            now = now.max(next.into_iter().flatten().min().unwrap());
            woken += 1;
            done.extend(std::iter::from_fn(|| drive.complete(now)));
            while let Some(request) = coming.next_if(|request| request.0 <= now) {
                drive.submit(request.1, now);
            }
        }
        (done, woken)
    }

    fn operations() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => Just(Operation::Read),
            4 => Just(Operation::Write { durable: false }),
            2 => Just(Operation::Write { durable: true }),
            1 => Just(Operation::Flush),
        ]
    }

    fn requests() -> impl Strategy<Value = Vec<(Nanos, Request)>> {
        // All at once, one soon after the other, or with pauses; here and there, or one behind another.
        let gap = prop_oneof![Just(0), 0_u64..2_000_000, 0_u64..40_000_000];
        let place = prop_oneof![Just(None), (0_u64..1 << 27).prop_map(Some)];
        let one = (gap, operations(), place, 1_u32..64);
        proptest::collection::vec(one, 1..60).prop_map(|all| {
            let (mut at, mut behind) = (0, 0);
            let made = all.into_iter().zip(0..);
            let made = made.map(|((gap, operation, place, eights), id)| {
                at += gap;
                let (first, sectors) = (place.map_or(behind, |place| place * 8), eights * 8);
                behind = first + u64::from(sectors);
                let request = Request {
                    id,
                    operation,
                    first,
                    sectors,
                };
                (at, request)
            });
            made.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_drive_that_is_woken_only_when_it_wants_to_be_answers_at_the_same_instants(
            requests in requests()
        ) {
            for model in ["seagate-st3000dm001", "seagate-st8000as0002", "hp-p400"] {
                let (alone, _) = answers(model, &requests, false);
                let (stepped, _) = answers(model, &requests, true);
                prop_assert_eq!(alone, stepped, "{}", model);
            }
        }
    }

    #[test]
    fn a_flush_behind_reads_that_the_head_passes_anyway_is_answered() {
        let asked = |id, operation| {
            let request = Request {
                id,
                operation,
                first: id * 8,
                sectors: 8,
            };
            (0, request)
        };
        let requests = [Operation::Read, Operation::Read, Operation::Flush];
        let requests: Vec<_> = (0..)
            .zip(requests)
            .map(|(id, operation)| asked(id, operation))
            .collect();
        let (done, _) = answers("seagate-st3000dm001", &requests, false);
        assert_eq!(done.len(), 3);
    }

    #[test]
    fn a_disk_is_woken_when_a_request_comes_and_when_it_is_answered_alone() {
        let asked = |id, operation, first| {
            let request = Request {
                id,
                operation,
                first,
                sectors: 8,
            };
            (id * 100_000_000, request)
        };
        let place = |id: u64| (id + 1) * 7_919_111 * 8;
        let reads = (0..100).map(|id| asked(id, Operation::Read, place(id)));
        let written = (0..50).flat_map(|pair| {
            let write = Operation::Write { durable: false };
            let written = asked(2 * pair, write, place(pair));
            [written, asked(2 * pair + 1, Operation::Flush, 0)]
        });
        for requests in [reads.collect::<Vec<_>>(), written.collect()] {
            let (_, woken) = answers("seagate-st3000dm001", &requests, false);
            assert_eq!(woken, 2 * requests.len());
        }
    }
}
