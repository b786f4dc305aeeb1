//! A hard disk: zones, seeks, rotation, read-ahead, command queue and volatile write cache.
//!
//! The controller answers from its caches while the arm does something else; the arm does one thing
//! at a time. What the arm does next is decided when it becomes free: a read, a write that must be
//! durable, or destaging of the write cache.

mod answer;
mod cache;
mod geometry;
mod mechanism;
mod read_cache;
mod seek;
#[cfg(test)]
mod tests;

pub use cache::{BufferRules, Cache, Fetched, ReadAheadAfter, ReadAheadUntil, Written};
pub use geometry::{Geometry, GeometryError, Zone};
pub use seek::{SeekCurve, SeekError};

use crate::completions::Completions;
use crate::extents::Extents;
use crate::{Completion, Drive, Nanos, Operation, Request};
use geometry::Place;
use mechanism::Mechanism;
use read_cache::ReadCache;
use std::collections::VecDeque;

/// Sectors destaged in one movement at most: 1 MiB, about a track of a large disk.
const DESTAGE_MAX: u64 = 2048;

/// A queued request is served before one that is nearer by its age over this: after half a second,
/// before one that is 25 ms nearer.
const AGE_COUNTS: Nanos = 20;

/// Requests and ranges there is room for before anything is allocated again.
const ROOM: usize = 4096;

/// Time the controller needs for a command before the arm or a cache does its part, by what was
/// done before: firmware switches between reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overheads {
    /// A read that the cache answers, after a read and after a write.
    pub read_hit: [Nanos; 2],
    /// A read that needs the platter.
    pub read_miss: [Nanos; 2],
    /// A write that continues what is in the write cache.
    pub write_hit: [Nanos; 2],
    /// Any other write.
    pub write_miss: [Nanos; 2],
}

impl Overheads {
    /// The same for every command.
    #[must_use]
    pub const fn all(time: Nanos) -> Self {
        Self {
            read_hit: [time; 2],
            read_miss: [time; 2],
            write_hit: [time; 2],
            write_miss: [time; 2],
        }
    }
}

/// A modelled hard disk before it turns: every parameter, public and plain.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    /// Zones, surfaces and rotation.
    pub geometry: Geometry,
    /// Arm movement.
    pub seek: SeekCurve,
    /// Time to switch to another surface of the same cylinder.
    pub head_switch: Nanos,
    /// Time added to a movement of the arm before a write, nanoseconds.
    pub write_settle: i64,
    /// Time that a command takes to settle on the track on which the arm stands already.
    pub settle_again: Nanos,
    /// Controller times.
    pub overheads: Overheads,
    /// Time added when the data of a read and of a write have passed the head.
    pub completion: [Nanos; 2],
    /// Time the bus takes for one sector, reading and writing.
    pub bus_sector: [Nanos; 2],
    /// Buffer memory.
    pub cache: Cache,
    /// Commands the disk holds and may reorder; 1 means no queue.
    pub queue_depth: usize,
    /// Sectors of 512 bytes in one physical sector: 1, or 8 for 4 KiB. A write that covers one only
    /// in part costs a revolution to read the rest of it.
    pub physical_sectors: u32,
    /// Turn of the platter at instant 0, nanoseconds of a revolution: one of the accidents that
    /// differ between two runs.
    pub phase: Nanos,
}

/// A modelled hard disk.
#[derive(Debug, Clone)]
pub struct Disk {
    mechanism: Mechanism,
    settle_again: Nanos,
    overheads: Overheads,
    completion: [Nanos; 2],
    bus_sector: [Nanos; 2],
    cache: Cache,
    queue_depth: usize,
    physical_sectors: u32,
    reads: ReadCache,
    /// Sectors that are written, acknowledged, not yet on the platter.
    dirty: Extents,
    /// Range that is being written to the platter now.
    destaging: Option<(u64, u64)>,
    /// Requests that need the arm.
    queue: Vec<Queued>,
    /// Requests that have arrived and cannot be looked at yet: the queue is full, the write cache
    /// is full, or a flush is under way.
    waiting: VecDeque<Request>,
    flushing: Option<(u64, Nanos)>,
    arm: Option<Movement>,
    /// Instant since which the arm has had nothing to do.
    idle_since: Nanos,
    /// Place that the last run was destaged to.
    elevator: u64,
    /// The head has just come from there: what follows can be written without losing a revolution.
    behind_elevator: bool,
    bus_free: Nanos,
    last_was_write: bool,
    /// Requests that are completed, not yet handed out.
    done: Completions,
    clock: Nanos,
    /// Next change of the disk's own state, worked out once after each change.
    next: Option<Nanos>,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    request: Request,
    /// Instant at which it came into the queue: the drive knows nothing of the time before.
    arrived: Nanos,
    /// Instant at which the controller has understood it.
    ready: Nanos,
    /// Place of its beginning; worked out once, since each choice looks at all that are queued.
    place: Place,
}

/// The present work of the arm.
#[derive(Debug, Clone, Copy)]
enum Movement {
    Serve {
        queued: Queued,
        first: Nanos,
        end: Nanos,
        /// Sectors before those of a read that pass the head first.
        passing: u64,
    },
    Destage {
        end: Nanos,
    },
}

impl Movement {
    fn end(&self) -> Nanos {
        let (Self::Serve { end, .. } | Self::Destage { end }) = self;
        *end
    }
}

impl Disk {
    /// A disk that stands at cylinder 0 with empty caches.
    #[must_use]
    pub fn new(parameters: DiskParameters) -> Self {
        let DiskParameters { cache, .. } = parameters;
        Self {
            mechanism: Mechanism {
                geometry: parameters.geometry,
                seek: parameters.seek,
                head_switch: parameters.head_switch,
                write_settle: parameters.write_settle,
                phase: parameters.phase,
                cylinder: 0,
                head: 0,
            },
            settle_again: parameters.settle_again,
            overheads: parameters.overheads,
            completion: parameters.completion,
            bus_sector: parameters.bus_sector,
            cache,
            queue_depth: parameters.queue_depth.max(1),
            physical_sectors: parameters.physical_sectors.max(1),
            reads: ReadCache::new(cache),
            dirty: Extents::default(),
            destaging: None,
            queue: Vec::with_capacity(ROOM),
            waiting: VecDeque::with_capacity(ROOM),
            flushing: None,
            arm: None,
            idle_since: 0,
            elevator: 0,
            behind_elevator: false,
            bus_free: 0,
            last_was_write: false,
            done: Completions::with_capacity(ROOM),
            clock: 0,
            next: None,
        }
    }

    /// Sectors acknowledged but not yet on the platter: what a power cut would take.
    #[must_use]
    pub fn dirty_sectors(&self) -> u64 {
        let under_way = self.destaging.map_or(0, |(first, end)| end - first);
        self.dirty.sectors() + under_way
    }

    fn end_of(request: &Request) -> u64 {
        request.first + u64::from(request.sectors)
    }

    fn overhead(&self, times: [Nanos; 2]) -> Nanos {
        // The table has one time after a read and one after a write.
        times[usize::from(self.last_was_write)]
    }

    /// Instant at which the data of a request will have passed the bus, which is free for one
    /// request at a time.
    fn passed(&self, request: &Request, from: Nanos, not_before: Nanos) -> Nanos {
        let sector = self.bus_sector[usize::from(request.operation != Operation::Read)];
        let begin = from.max(self.bus_free);
        // A bus faster than the platter waits for the last sector.
        (begin + u64::from(request.sectors) * sector).max(not_before + sector)
    }

    /// Sends or receives the data of a request; returns when the last has passed.
    fn transfer(&mut self, request: &Request, from: Nanos, not_before: Nanos) -> Nanos {
        self.bus_free = self.passed(request, from, not_before);
        self.bus_free
    }

    /// Everything the disk does by itself up to `now`, in order of time.
    fn advance(&mut self, now: Nanos) {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.clock = self.clock.max(next);
            if self.arm.is_some_and(|arm| arm.end() <= self.clock) {
                self.arrive();
            }
            self.go_on();
        }
        self.clock = self.clock.max(now);
    }

    /// Gives the arm something to do, and works out when to look again.
    fn go_on(&mut self) {
        self.start(self.clock);
        self.next = self.internal_event();
    }

    /// The next change of the disk's own state.
    fn internal_event(&self) -> Option<Nanos> {
        // While the arm moves nothing else changes the state: new commands come through `submit`.
        if let Some(arm) = self.arm {
            return Some(arm.end());
        }
        let ready = self.queue.iter().map(|queued| queued.ready).min();
        // The write cache is destaged in idle time only while no command waits for the arm.
        let idle = self.queue.is_empty() && !self.dirty.is_empty();
        let idle = idle.then_some(self.idle_since + self.cache.destage_after);
        let next = [ready, idle].into_iter().flatten().min();
        // A command may have been ready while the arm was still busy.
        let promised = self.reads.promised();
        let next = next.map(|at| at.max(self.clock).max(promised));
        // Destaging may wait for the head, too.
        let destage = (promised > self.clock && !self.dirty.is_empty()).then_some(promised);
        [next, destage].into_iter().flatten().min()
    }

    /// The arm has done what it was doing.
    fn arrive(&mut self) {
        match self.arm.take() {
            Some(Movement::Serve {
                queued,
                first,
                end,
                passing,
            }) => self.served(queued.request, first, end, passing),
            Some(Movement::Destage { .. }) => {
                let written = self.destaging.take();
                if let Some((first, end)) = written
                    && self.cache.rules.written == Written::Kept
                {
                    self.reads.keep_written(first, end);
                }
                self.behind_elevator = true;
            }
            None => {}
        }
        // Destaging counts as work, too: the next idle period begins after it.
        self.idle_since = self.clock;
        self.admit();
    }

    fn served(&mut self, request: Request, first: Nanos, end: Nanos, passing: u64) {
        self.done
            .add(request.id, self.answered(&request, first, end));
        if request.operation == Operation::Read {
            self.transfer(&request, first, end);
            let behind = Self::end_of(&request);
            self.reads
                .fill(request.first, behind, passing, end, &self.mechanism);
        }
    }

    /// Takes waiting requests as far as there is room for them.
    fn admit(&mut self) {
        while let Some(request) = self.waiting.front().copied() {
            // In order: firmware does not look behind a command that it cannot accept.
            if !self.fits(&request) {
                break;
            }
            self.waiting.pop_front();
            self.take(request);
        }
        self.end_flush();
    }

    fn fits(&self, request: &Request) -> bool {
        if self.flushing.is_some() {
            return false;
        }
        match request.operation {
            // Flush is no queued command: everything before it completes first.
            Operation::Flush => self.queue.is_empty() && self.arm_serves().is_none(),
            Operation::Write { durable: false } if self.cache.write_sectors > 0 => {
                let with = self.dirty_sectors() + u64::from(request.sectors);
                // A write larger than the cache passes when the cache is empty.
                with <= self.cache.write_sectors || self.dirty_sectors() == 0
            }
            _ => self.queue.len() + usize::from(self.arm_serves().is_some()) < self.queue_depth,
        }
    }

    fn arm_serves(&self) -> Option<&Queued> {
        match &self.arm {
            Some(Movement::Serve { queued, .. }) => Some(queued),
            _ => None,
        }
    }

    fn take(&mut self, request: Request) {
        let now = self.clock;
        match request.operation {
            Operation::Flush => {
                self.flushing = Some((request.id, now));
            }
            Operation::Read => self.take_read(request, now),
            // A disk overwrites in place: there is nothing to free.
            Operation::Discard => {
                let ready = now + self.overhead(self.overheads.write_hit);
                self.done.add(request.id, ready);
            }
            Operation::Write { durable } => self.take_write(request, durable, now),
        }
        self.last_was_write = matches!(request.operation, Operation::Write { .. });
    }

    fn take_read(&mut self, request: Request, now: Nanos) {
        let (first, end) = (request.first, Self::end_of(&request));
        // From the write cache only if all of it is there: a part would still need the platter.
        let under_way = self
            .destaging
            .is_some_and(|range| range.0 <= first && end <= range.1);
        let written = self.cache.rules.written != Written::NotRead
            && (under_way || self.dirty.covers(first, end));
        let cached = if written {
            Some(now)
        // The platter is older than what was written, and so is what was read from it.
        } else if self.dirty.touches(first, end) {
            None
        } else {
            // Where others wait for the arm, it is not kept from them.
            let later = self.queue.is_empty();
            self.reads
                .available(first, end, later, now, &self.mechanism)
        };
        if let Some(at) = cached {
            let ready = now + self.overhead(self.overheads.read_hit);
            let sent = self.transfer(&request, ready, at);
            self.done.add(request.id, sent);
        } else {
            let ready = now + self.overhead(self.overheads.read_miss);
            self.enqueue(request, now, ready);
        }
    }

    fn enqueue(&mut self, request: Request, arrived: Nanos, ready: Nanos) {
        self.queue.push(Queued {
            request,
            arrived,
            ready,
            place: self.mechanism.geometry.place(request.first),
        });
    }

    fn take_write(&mut self, request: Request, durable: bool, now: Nanos) {
        let (first, end) = (request.first, Self::end_of(&request));
        // What was read ahead is old from now on, also where the write itself is cached.
        self.reads.invalidate(first, end);
        if durable || self.cache.write_sectors == 0 {
            self.dirty.remove(first, end);
            let ready = now + self.overhead(self.overheads.write_miss);
            // The arm moves while the data still arrive; what is behind it is later than both.
            self.transfer(&request, ready, ready);
            self.enqueue(request, now, ready);
            return;
        }
        // Firmware recognises a sequential stream, and acknowledges its writes sooner.
        let continued = self.dirty.insert(first, end);
        let times = if continued {
            self.overheads.write_hit
        } else {
            self.overheads.write_miss
        };
        let ready = now + self.overhead(times);
        let received = self.transfer(&request, ready, ready);
        self.done.add(request.id, received);
    }

    /// A flush completes when nothing acknowledged is left in the volatile cache.
    fn end_flush(&mut self) {
        if let Some((id, since)) = self.flushing
            && self.dirty_sectors() == 0
        {
            self.flushing = None;
            self.done
                .add(id, self.clock.max(since) + self.flush_overhead());
            self.admit();
        }
    }

    /// Time of a flush besides what it waits for.
    fn flush_overhead(&self) -> Nanos {
        self.overhead(self.overheads.write_hit)
    }

    /// Gives the arm something to do, if it is free and there is something.
    fn start(&mut self, now: Nanos) {
        // The head may still be reading on for a request that was told so.
        if self.arm.is_some() || self.reads.promised() > now {
            return;
        }
        self.end_flush();
        let must = self.nearly_full() || !self.dirty.is_empty() && self.flushing.is_some();
        let blocked = !self.dirty.is_empty() && !self.waiting.is_empty();
        let idle = !self.dirty.is_empty() && now >= self.idle_since + self.cache.destage_after;
        // A run is written to its end: to wait until the cache is nearly full again would cost a
        // revolution for each piece, and halve the rate of a stream.
        let on = std::mem::take(&mut self.behind_elevator)
            && self.dirty.covers(self.elevator, self.elevator + 1);
        // A flush, or a cache that is nearly full, comes before commands; other destaging after
        // them.
        if must {
            self.destage(now);
            return;
        }
        // Where the arm stands matters only to a choice.
        if self.queue.len() > 1
            && let Some(reached) = self.reads.reached(now, &self.mechanism)
        {
            self.mechanism.move_to(reached.saturating_sub(1));
        }
        while let Some(at) = self.choose(now) {
            let queued = self.queue.swap_remove(at);
            if !self.read_meanwhile(&queued, now) {
                self.serve(queued, now);
                return;
            }
            // There is room for what waits, and no movement of the arm will end that tells it so.
            self.admit();
            if self.reads.promised() > now {
                return;
            }
        }
        if self.queue.is_empty() && (blocked || idle || on) {
            self.destage(now);
        }
    }

    /// Returns true from 90 % on: a cache that is quite full would stop the host.
    fn nearly_full(&self) -> bool {
        !self.dirty.is_empty() && self.dirty.sectors() * 10 >= self.cache.write_sectors * 9
    }

    /// Answers a read that came as a miss from what the head has read on since; whether it could.
    fn read_meanwhile(&mut self, queued: &Queued, now: Nanos) -> bool {
        let request = queued.request;
        let (first, end) = (request.first, Self::end_of(&request));
        if !self.may_pass_anyway(&request) || self.dirty.touches(first, end) {
            return false;
        }
        let at = self.reads.available(first, end, true, now, &self.mechanism);
        let Some(at) = at else {
            return false;
        };
        let sent = self.transfer(&request, now, at);
        self.done.add(request.id, sent);
        true
    }

    /// The queued request to serve next: that with the shortest positioning time, or one that has
    /// waited too long.
    fn choose(&self, now: Nanos) -> Option<usize> {
        let ready = || {
            let all = self.queue.iter().enumerate();
            all.filter(|(_, queued)| queued.ready <= now)
        };
        if let [only] = self.queue[..] {
            return (only.ready <= now).then_some(0);
        }
        // Shortest positioning first alone may pass over a far request for ever, and a limit of age
        // turns a busy disk into one that serves in order: its requests are all old.
        let score = |queued: &Queued| {
            let write = queued.request.operation != Operation::Read;
            let near = self.mechanism.position(&queued.place, write, now);
            let age = now.saturating_sub(queued.arrived);
            (near as i64 - (age / AGE_COUNTS) as i64, queued.arrived)
        };
        let in_order = |queued: &Queued| (0, queued.arrived);
        let best = ready().min_by_key(|(_, queued)| {
            if self.queue_depth == 1 {
                in_order(queued)
            } else {
                score(queued)
            }
        });
        best.map(|(at, _)| at)
    }

    fn serve(&mut self, queued: Queued, now: Nanos) {
        // The head reads on behind the last request until it is needed elsewhere.
        self.leave_read_ahead(now);
        let from = self.mechanism.stands();
        let passing = match self.cache.rules.passing {
            true => self.mechanism.passing(from, &queued.place, now),
            false => 0,
        };
        let pass = self.pass(from, &queued, now);
        self.mechanism.stand(pass.over);
        self.arm = Some(Movement::Serve {
            queued,
            first: pass.first,
            end: pass.end,
            passing,
        });
    }

    /// Writes one run of what is dirty, the next upward from where the last one ended.
    fn destage(&mut self, now: Nanos) {
        let Some((first, end)) = self.dirty.next_from(self.elevator) else {
            return;
        };
        self.leave_read_ahead(now);
        // In pieces, so that a command that arrives meanwhile waits for one piece only.
        let end = end.min(first + DESTAGE_MAX);
        self.elevator = end;
        self.dirty.remove(first, end);
        self.destaging = Some((first, end));
        let pass = self.write_pass(self.mechanism.stands(), first, end, now);
        self.mechanism.stand(pass.over);
        self.arm = Some(Movement::Destage { end: pass.end });
    }

    fn leave_read_ahead(&mut self, now: Nanos) {
        if let Some(reached) = self.reads.stop(now, &self.mechanism) {
            self.mechanism.move_to(reached.saturating_sub(1));
        }
    }
}

impl Drive for Disk {
    fn sectors(&self) -> u64 {
        self.mechanism.geometry.sectors()
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        self.advance(now);
        self.waiting.push_back(request);
        self.admit();
        self.go_on();
    }

    fn next_event(&self) -> Option<Nanos> {
        [self.done.next(), self.next_answer()]
            .into_iter()
            .flatten()
            .min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now);
        self.done.take_due(now)
    }
}
