//! A modelled drive in the place of a real one.

use super::probe::{Part, Probe, SMALL, Span, WriteProbe, Writes};
use crate::{Card, CardError, Drive, Nanos, Operation, Request, scattered};

/// Size of an SSD with the blocks of a card, bytes.
pub(super) const WHOLE_BYTES: u64 = 4 << 30;

/// What a real machine adds to the time of a read, at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noise {
    /// Each read begins and ends later by up to this, ns.
    pub jitter: Nanos,
    /// One read in so many takes [`Self::longer`] more; 0: none.
    pub one_in: u64,
    /// How much more, ns.
    pub longer: Nanos,
    /// Someone else reads, too: one of so many reads finds another one in the drive; 0: none.
    pub others: u64,
    /// Time until a drive that stood still answers for the first time, ns.
    pub begins: Nanos,
}

/// A modelled drive that is read, and written over, in virtual time.
pub struct Modelled {
    drive: Box<dyn Drive>,
    now: Nanos,
    noise: Noise,
    /// Requests so far.
    pub reads: u64,
    /// Writes among them.
    pub written: u64,
    begun: Vec<(Part, Nanos)>,
}

impl Modelled {
    /// The drive of a card; an SSD has `capacity` bytes, and holds data.
    ///
    /// # Errors
    /// When values of the card contradict each other.
    pub fn new(card: &Card, capacity: u64, noise: Noise) -> Result<Self, CardError> {
        Ok(Self {
            drive: card.drive_with_data(0, capacity)?,
            now: 0,
            noise,
            reads: 0,
            written: 0,
            begun: Vec::new(),
        })
    }

    /// The same with nothing in it: an SSD of which everything was discarded.
    ///
    /// # Errors
    /// When values of the card contradict each other.
    pub fn empty(card: &Card, capacity: u64) -> Result<Self, CardError> {
        let drive = card.drive(0, capacity)?;
        let full = Self::new(card, capacity, Noise::default())?;
        Ok(Self { drive, ..full })
    }

    /// Instant of virtual time: how long everything took so far.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The parts that were measured, and how long each took.
    #[must_use]
    pub fn parts(&self) -> Vec<(Part, Nanos)> {
        let ends = self.begun.iter().skip(1).map(|begun| begun.1);
        let ends = ends.chain([self.now]);
        let times = self.begun.iter().zip(ends);
        times.map(|((part, at), end)| (*part, end - at)).collect()
    }

    fn drawn(&self, salt: u64, most: Nanos) -> Nanos {
        match most {
            0 => 0,
            _ => scattered(self.reads * 4 + salt) % (most + 1),
        }
    }

    /// Hands a request to the drive now; returns its number.
    fn submit(&mut self, operation: Operation, first: u64, sectors: u32) -> u64 {
        self.reads += 1;
        self.written += u64::from(operation != Operation::Read);
        let id = self.reads;
        let request = Request {
            id,
            operation,
            first,
            sectors,
        };
        self.drive.submit(request, self.now);
        id
    }

    /// Goes on to the next instant at which something completes; what did. Nothing if nothing is under way.
    fn go_on(&mut self) -> Vec<u64> {
        // A model that has an outstanding request has a next event.
        let Some(next) = self.drive.next_event() else {
            return Vec::new();
        };
        self.now = self.now.max(next);
        let done = std::iter::from_fn(|| self.drive.complete(self.now));
        done.map(|done| done.id).collect()
    }

    /// One request alone, and when it was under way.
    fn alone(&mut self, operation: Operation, first: u64, sectors: u32) -> Span {
        let begin = self.now;
        let id = self.submit(operation, first, sectors);
        while self.drive.next_event().is_some() && !self.go_on().contains(&id) {}
        let end = self.now;
        Span { begin, end }
    }

    fn all(&mut self, operation: Operation, depth: u32, places: &[u64], sectors: u32) -> Nanos {
        let begin = self.now;
        let mut open = 0;
        let mut places = places.iter().peekable();
        while open > 0 || places.peek().is_some() {
            for first in places.by_ref().take((depth - open) as usize) {
                self.submit(operation, *first, sectors);
                open += 1;
            }
            let done = self.go_on();
            if done.is_empty() && self.drive.next_event().is_none() {
                break;
            }
            open -= done.len() as u32;
        }
        self.now - begin
    }
}

/// Writes that the drive may hold in memory.
const WRITE: Operation = Operation::Write { durable: false };

impl WriteProbe for Modelled {
    fn write(&mut self, first: u64, sectors: u32) -> Result<Span, Self::Error> {
        Ok(self.alone(WRITE, first, sectors))
    }

    fn flush(&mut self) -> Result<Span, Self::Error> {
        Ok(self.alone(Operation::Flush, 0, 0))
    }

    fn write_at_once(
        &mut self,
        depth: u32,
        places: &[u64],
        sectors: u32,
    ) -> Result<Nanos, Self::Error> {
        Ok(self.all(WRITE, depth, places, sectors))
    }

    fn goes_on(&mut self, _share: f64) {}

    fn read_beside(
        &mut self,
        reads: &[u64],
        writes: &Writes<'_>,
    ) -> Result<Vec<Nanos>, Self::Error> {
        let mut places = writes.places.iter().cycle();
        for first in places.by_ref().take(writes.depth as usize) {
            self.submit(WRITE, *first, writes.sectors);
        }
        let mut times = Vec::new();
        for first in reads {
            let begin = self.now;
            let read = self.submit(Operation::Read, *first, SMALL);
            let mut is_read = false;
            while !is_read && self.drive.next_event().is_some() {
                for done in self.go_on() {
                    if done == read {
                        is_read = true;
                    } else if let Some(first) = places.next() {
                        self.submit(WRITE, *first, writes.sectors);
                    }
                }
            }
            times.push(self.now - begin);
        }
        while self.drive.next_event().is_some() {
            self.go_on();
        }
        Ok(times)
    }
}

impl Probe for Modelled {
    type Error = std::convert::Infallible;

    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn read(&mut self, first: u64, sectors: u32) -> Result<Span, Self::Error> {
        self.reads += 1;
        let begin = self.now;
        self.now += self.drawn(0, self.noise.jitter);
        let request = Request {
            id: self.reads,
            operation: Operation::Read,
            first,
            sectors,
        };
        if self.noise.begins > 0 && self.reads == 1 {
            self.now += self.noise.begins;
        }
        if self.noise.others > 0 && self.drawn(3, self.noise.others - 1) == 0 {
            let other = Request {
                id: 0,
                first: scattered(self.reads ^ 0x6f74) % (self.drive.sectors() - 64),
                ..request
            };
            self.drive.submit(other, self.now);
        }
        self.drive.submit(request, self.now);
        // A model that has an outstanding request has a next event.
        while let Some(next) = self.drive.next_event() {
            self.now = self.now.max(next);
            let done = std::iter::from_fn(|| self.drive.complete(self.now));
            if done.into_iter().any(|done| done.id == request.id) {
                break;
            }
        }
        self.now += self.drawn(1, self.noise.jitter);
        if self.noise.one_in > 0 && self.drawn(2, self.noise.one_in - 1) == 0 {
            self.now += self.noise.longer;
        }
        let end = self.now;
        Ok(Span { begin, end })
    }

    fn at_once(&mut self, depth: u32, places: &[u64], sectors: u32) -> Result<Nanos, Self::Error> {
        Ok(self.all(Operation::Read, depth, places, sectors))
    }

    fn pause(&mut self, time: Nanos) {
        self.now += time;
    }

    fn begins(&mut self, part: Part) {
        self.begun.push((part, self.now));
    }
}
