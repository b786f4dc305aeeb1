//! A RAID controller: an array of drives behind a cache that a battery protects.
//!
//! Writes are acknowledged from the cache while it has room, and reach the drives later, merged and
//! in order of their sectors. A write to RAID 5 that does not fill a stripe first reads what it
//! needs to compute the parity.

mod layout;
#[cfg(test)]
mod tests;

pub use layout::ArrayLayout;

use crate::completions::Completions;
use crate::extents::Extents;
use crate::{Completion, Drive, Nanos, Operation, Request};
use layout::{Array, Piece};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Requests there is room for before anything is allocated again.
const ROOM: usize = 4096;

/// Runs of dirty sectors written to the drives at once.
const DESTAGES: usize = 8;

/// The controller switches the drives' own volatile caches off: only its own is protected.
const WRITE: Operation = Operation::Write { durable: true };

/// Every parameter of a controller, public and plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerParameters {
    /// Layout of the data on the drives.
    pub layout: ArrayLayout,
    /// Sectors on one drive before the next is taken.
    pub chunk: u64,
    /// Sectors of protected write cache; 0: every write waits for the drives.
    pub write_sectors: u64,
    /// Time of the controller for a command.
    pub overhead: Nanos,
    /// Time of the host interface for one sector.
    pub bus_sector: Nanos,
}

/// The reason for which a controller is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    /// Too few drives for the layout, or an odd number of them in a mirror.
    #[error("{layout:?} needs {needed}, there are {drives} drives")]
    Drives {
        /// The layout asked for.
        layout: ArrayLayout,
        /// Number of drives it needs, in words.
        needed: &'static str,
        /// Drives given.
        drives: usize,
    },
    /// The chunk is empty or larger than a drive.
    #[error("a chunk of {0} sectors does not fit the drives")]
    Chunk(u64),
}

/// A modelled RAID controller over drives of one kind.
#[derive(Debug, Clone)]
pub struct Controller<D> {
    drives: Vec<D>,
    array: Array,
    parameters: ControllerParameters,
    sectors: u64,
    /// Acknowledged, not yet sent to the drives.
    dirty: Extents,
    /// Jobs under way: what the drives do for one request of the host, or for one destage.
    jobs: Vec<Option<Job>>,
    destages: usize,
    /// Sectors being destaged.
    destaging: u64,
    elevator: u64,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<Request>,
    /// Requests each drive has not completed.
    outstanding: Vec<u32>,
    /// Instant at which each drive wants to be asked next. Only what it is told changes that, and
    /// to work it out for all drives at each event would be most of the model's time.
    next: Vec<Option<Nanos>>,
    bus_free: Nanos,
    /// Requests that are completed, not yet handed out.
    done: Completions,
    clock: Nanos,
}

/// A piece of work that the drives do together.
#[derive(Debug, Clone)]
struct Job {
    /// The host's request; `None` for a destage.
    request: Option<Request>,
    sectors: u64,
    /// Requests of drives that have not completed.
    open: u32,
    /// Writes that follow when the reads for their parity have completed.
    then: Parts,
}

/// Drive, first sector and sectors of the requests that a job makes; those of a small write allocate
/// nothing.
type Parts = SmallVec<[(usize, u64, u32); 4]>;

impl<D: Drive> Controller<D> {
    /// A controller over `drives`, which are of one size.
    ///
    /// # Errors
    /// When the layout cannot be made of that many drives.
    pub fn new(drives: Vec<D>, parameters: ControllerParameters) -> Result<Self, ControllerError> {
        let count = drives.len();
        let (enough, needed) = match parameters.layout {
            ArrayLayout::Stripe => (count >= 1, "at least one"),
            ArrayLayout::Mirror => (count >= 2 && count.is_multiple_of(2), "an even number"),
            ArrayLayout::Parity => (count >= 3, "at least three"),
        };
        if !enough {
            return Err(ControllerError::Drives {
                layout: parameters.layout,
                needed,
                drives: count,
            });
        }
        // Larger drives give no more than the smallest, as in real arrays.
        let smallest = drives.iter().map(Drive::sectors).min().unwrap_or(0);
        let Some(chunks) = smallest
            .checked_div(parameters.chunk)
            .filter(|chunks| *chunks > 0)
        else {
            return Err(ControllerError::Chunk(parameters.chunk));
        };
        let array = Array {
            layout: parameters.layout,
            drives: count,
            chunk: parameters.chunk,
        };
        Ok(Self {
            sectors: chunks * parameters.chunk * array.data_drives(),
            array,
            parameters,
            dirty: Extents::default(),
            jobs: Vec::with_capacity(ROOM),
            destages: 0,
            destaging: 0,
            elevator: 0,
            waiting: VecDeque::with_capacity(ROOM),
            outstanding: vec![0; count],
            next: drives.iter().map(Drive::next_event).collect(),
            bus_free: 0,
            done: Completions::with_capacity(ROOM),
            clock: 0,
            drives,
        })
    }

    fn transfer(&mut self, sectors: u32, from: Nanos) -> Nanos {
        let begin = from.max(self.bus_free);
        self.bus_free = begin + u64::from(sectors) * self.parameters.bus_sector;
        self.bus_free
    }

    /// Everything the drives and the controller do by themselves up to `now`, in order of time.
    fn advance(&mut self, now: Nanos) {
        loop {
            let events = self.next.iter().enumerate();
            let next = events
                .filter_map(|(drive, at)| Some(((*at)?, drive)))
                // In order of time over all drives: what one completes may start work on another.
                .filter(|(at, _)| *at <= now)
                .min();
            let Some((at, drive)) = next else { break };
            // Never back: a drive may have been due earlier than it was asked.
            self.clock = self.clock.max(at);
            while let Some(done) = self.drives[drive].complete(at) {
                self.outstanding[drive] -= 1;
                self.part_done(done.id as usize);
            }
            self.next[drive] = self.drives[drive].next_event();
            self.work();
        }
        self.clock = self.clock.max(now);
    }

    fn part_done(&mut self, number: usize) {
        // Jobs are named by their place, so that none has to be searched for.
        let Some(job) = self.jobs.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        job.open -= 1;
        if job.open > 0 {
            return;
        }
        // Reads for parity come first; the writes that need them follow as the second half of the
        // job.
        if job.then.is_empty() {
            let (request, sectors) = (job.request, job.sectors);
            self.jobs[number] = None;
            self.job_done(request, sectors);
        } else {
            let writes = std::mem::take(&mut job.then);
            job.open = writes.len() as u32;
            self.parts(number, WRITE, writes);
        }
    }

    fn job_done(&mut self, request: Option<Request>, sectors: u64) {
        match request {
            None => {
                self.destages -= 1;
                self.destaging -= sectors;
            }
            Some(request) if request.operation == Operation::Read => {
                // Only reads carry data to the host; data of writes came with the request.
                let sent = self.transfer(request.sectors, self.clock);
                self.done.add(request.id, sent);
            }
            Some(request) => self.done.add(request.id, self.clock),
        }
    }

    /// Takes waiting writes into the cache and sends dirty runs to the drives.
    fn work(&mut self) {
        while let Some(request) = self.waiting.front().copied() {
            // In the order of arrival: a small write does not pass a large one that waits.
            if !self.has_room(&request) {
                break;
            }
            self.waiting.pop_front();
            self.cache(&request);
        }
        while self.destages < DESTAGES && !self.dirty.is_empty() {
            self.destage();
        }
    }

    fn has_room(&self, request: &Request) -> bool {
        let held = self.dirty.sectors() + self.destaging;
        // A write larger than the whole cache passes when the cache is empty, or it would wait for
        // ever.
        held == 0 || held + u64::from(request.sectors) <= self.parameters.write_sectors
    }

    fn cache(&mut self, request: &Request) {
        let end = request.first + u64::from(request.sectors);
        self.dirty.insert(request.first, end);
        let received = self.transfer(request.sectors, self.clock + self.parameters.overhead);
        self.done.add(request.id, received);
    }

    /// Writes the next run upward from the last one: at most one stripe, so that a full stripe of
    /// RAID 5 is written without reading.
    fn destage(&mut self) {
        let Some((first, end)) = self.dirty.next_from(self.elevator) else {
            return;
        };
        let stripe = self.array.chunk * self.array.data_drives();
        // Not across a stripe: the rest begins the next one, which may then be full.
        let end = end.min((first / stripe + 1) * stripe);
        self.elevator = end;
        // From now on a new write to these sectors is dirty again, and destaged again.
        self.dirty.remove(first, end);
        self.destages += 1;
        self.destaging += end - first;
        self.write(None, first, (end - first) as u32);
    }

    fn number(&mut self, job: Job) -> usize {
        if let Some(free) = self.jobs.iter().position(Option::is_none) {
            self.jobs[free] = Some(job);
            return free;
        }
        self.jobs.push(Some(job));
        self.jobs.len() - 1
    }

    fn write(&mut self, request: Option<Request>, first: u64, sectors: u32) {
        let pieces: SmallVec<[Piece; 4]> = self.array.pieces(first, sectors).collect();
        let (mut writes, mut reads) = (Parts::new(), Parts::new());
        for piece in &pieces {
            writes.push((piece.drive, piece.first, piece.sectors));
            if self.array.layout == ArrayLayout::Mirror {
                // Mirrors are pairs of neighbours.
                writes.push((piece.drive + 1, piece.first, piece.sectors));
            }
        }
        for stripe in pieces.chunk_by(|one, other| one.stripe == other.stripe) {
            let Some(parity) = stripe[0].parity else {
                continue;
            };
            // One request for all parity of the stripe, also for the sectors between two pieces.
            let low = stripe.iter().map(|piece| piece.first).min().unwrap_or(0);
            let ends = stripe
                .iter()
                .map(|piece| piece.first + u64::from(piece.sectors));
            let span = (ends.max().unwrap_or(low) - low) as u32;
            writes.push((parity, low, span));
            let written: u64 = stripe.iter().map(|piece| u64::from(piece.sectors)).sum();
            // A full stripe needs nothing old: its parity follows from the new data alone.
            if written < self.array.chunk * self.array.data_drives() {
                // Old data and old parity: new parity is their difference to the new data.
                reads.extend(
                    stripe
                        .iter()
                        .map(|piece| (piece.drive, piece.first, piece.sectors)),
                );
                reads.push((parity, low, span));
            }
        }
        // Where nothing old is needed, the writes come at once.
        let (operation, at_once, then) = match reads.is_empty() {
            true => (WRITE, writes, Parts::new()),
            false => (Operation::Read, reads, writes),
        };
        let number = self.number(Job {
            request,
            sectors: u64::from(sectors),
            open: at_once.len() as u32,
            then,
        });
        self.parts(number, operation, at_once);
    }

    fn parts(&mut self, number: usize, operation: Operation, parts: Parts) {
        for (drive, first, sectors) in parts {
            self.part(number, drive, operation, first, sectors);
        }
    }

    fn part(
        &mut self,
        number: usize,
        drive: usize,
        operation: Operation,
        first: u64,
        sectors: u32,
    ) {
        let request = Request {
            id: number as u64,
            operation,
            first,
            sectors,
        };
        self.outstanding[drive] += 1;
        self.drives[drive].submit(request, self.clock);
        self.next[drive] = self.drives[drive].next_event();
    }

    fn read(&mut self, request: Request) {
        let end = request.first + u64::from(request.sectors);
        if self.dirty.covers(request.first, end) {
            let sent = self.transfer(request.sectors, self.clock + self.parameters.overhead);
            self.done.add(request.id, sent);
            return;
        }
        let pieces = || self.array.pieces(request.first, request.sectors);
        let open = pieces().count() as u32;
        let pieces = pieces();
        let number = self.number(Job {
            request: Some(request),
            sectors: u64::from(request.sectors),
            open,
            then: Parts::new(),
        });
        for piece in pieces {
            // Of a mirror, the drive with less to do reads.
            let other = piece.drive + 1;
            let drive = if self.array.layout == ArrayLayout::Mirror
                && self.outstanding[other] < self.outstanding[piece.drive]
            {
                other
            } else {
                piece.drive
            };
            self.part(number, drive, Operation::Read, piece.first, piece.sectors);
        }
    }
}

impl<D: Drive> Drive for Controller<D> {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        self.advance(now);
        match request.operation {
            Operation::Read => self.read(request),
            Operation::Write { .. } if self.parameters.write_sectors > 0 => {
                // The battery makes the cache durable.
                self.waiting.push_back(request);
            }
            Operation::Write { .. } => {
                let received = self.clock + self.parameters.overhead;
                self.transfer(request.sectors, received);
                self.write(Some(request), request.first, request.sectors);
            }
            Operation::Flush | Operation::Discard => {
                self.done
                    .add(request.id, self.clock + self.parameters.overhead);
            }
        }
        self.work();
    }

    fn next_event(&self) -> Option<Nanos> {
        let drives = self.next.iter().copied().flatten();
        drives.chain(self.done.next()).min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now);
        self.done.take_due(now)
    }
}
