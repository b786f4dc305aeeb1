//! A solid-state drive: dies on channels, a page mapping, garbage collection, and a write buffer.
//!
//! Each die does one thing at a time, so its timeline is the instant at which it becomes free. A
//! request is laid onto those timelines as it comes; when it completes is known at once.

mod flash;
mod parameters;
#[cfg(test)]
mod tests;

use crate::completions::Completions;
use crate::{Completion, Drive, Nanos, Operation, Request, SECTOR};
use flash::Flash;
pub use parameters::{MAPPING_UNIT, SsdError, SsdParameters};
use std::collections::VecDeque;

/// Sectors in a mapping unit.
const UNIT_SECTORS: u64 = MAPPING_UNIT / SECTOR;

/// Requests there is room for before anything is allocated again.
const ROOM: usize = 4096;

/// A modelled solid-state drive.
#[derive(Debug, Clone)]
pub struct Ssd {
    parameters: SsdParameters,
    flash: Flash,
    /// Units written into the buffer, in order, not yet given to a die.
    filling: VecDeque<u32>,
    /// Units on their way to flash, with the instant at which each page is programmed; sorted.
    draining: VecDeque<(Nanos, u32)>,
    /// Units in `draining`.
    in_flight: u64,
    bus_free: Nanos,
    /// Requests that are completed, not yet handed out.
    done: Completions,
}

impl Ssd {
    /// A drive that has been erased: nothing is mapped.
    ///
    /// # Errors
    /// When the parameters leave no room for data, or none for garbage collection.
    pub fn new(parameters: SsdParameters) -> Result<Self, SsdError> {
        Ok(Self {
            flash: Flash::new(&parameters)?,
            parameters,
            filling: VecDeque::with_capacity(ROOM),
            draining: VecDeque::with_capacity(ROOM),
            in_flight: 0,
            bus_free: 0,
            done: Completions::with_capacity(ROOM),
        })
    }

    /// The same drive, filled with data long ago: reads find them in flash.
    #[must_use]
    pub fn holding_data(mut self) -> Self {
        self.flash.fill();
        self
    }

    /// Bytes programmed for each byte the host wrote, since the drive was new; `None` before the
    /// first write.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        self.flash.write_amplification()
    }

    fn units(&self, request: &Request) -> std::ops::Range<u32> {
        let last = self.parameters.sectors.div_ceil(UNIT_SECTORS);
        let end = request.first + u64::from(request.sectors);
        // A request beyond the end counts as one for the last sectors (see `Drive::submit`).
        let first = (request.first / UNIT_SECTORS).min(last);
        let end = end.div_ceil(UNIT_SECTORS).min(last);
        first as u32..end as u32
    }

    /// Sends or receives `sectors` over the host interface, one request at a time.
    fn transfer(&mut self, sectors: u32, from: Nanos) -> Nanos {
        // One after the other: commands of several requests share one line.
        let begin = from.max(self.bus_free);
        let parameters = &self.parameters;
        let sectors = u64::from(sectors) * parameters.bus_sector;
        self.bus_free = begin + parameters.bus_command + sectors;
        self.bus_free
    }

    fn read(&mut self, request: &Request, now: Nanos) -> Nanos {
        let ready = now + self.parameters.overhead;
        // What is still in the buffer needs no flash.
        let buffered = &self.filling;
        let units = self.units(request);
        let units = units.filter(|unit| !buffered.contains(unit));
        // All dies begin at once; the request is ready when the slowest of them is.
        let last = self.flash.read(units, ready);
        self.transfer(request.sectors, last)
    }

    fn write(&mut self, request: &Request, durable: bool, now: Nanos) -> Nanos {
        let received = self.transfer(request.sectors, now + self.parameters.overhead);
        let units = self.units(request);
        // A write of part of a unit needs the rest of it.
        let whole = request.first.is_multiple_of(UNIT_SECTORS)
            && u64::from(request.sectors).is_multiple_of(UNIT_SECTORS);
        let mut at = received;
        if !whole {
            // Only the first and the last unit can be partly covered.
            let ends = [units.start, units.end.saturating_sub(1)];
            at = at.max(self.flash.read(ends.into_iter(), received));
        }
        for unit in units {
            // A full buffer holds up the host: writes then go at the speed of the flash.
            at = self.room(at);
            self.filling.push_back(unit);
            self.program_full_pages(at);
        }
        // With capacitors the buffer itself counts as stable storage.
        if durable && !self.parameters.protected {
            at = at.max(self.program_all(at));
        }
        at
    }

    /// Instant at which the buffer has room for one more unit, at `now` or later.
    fn room(&mut self, now: Nanos) -> Nanos {
        // At least one page, or a drive without a buffer could never program one.
        let capacity = (self.parameters.buffer / MAPPING_UNIT).max(self.flash.page_units());
        let mut at = now;
        self.drained(at);
        while self.filling.len() as u64 + self.in_flight >= capacity {
            let Some((until, _)) = self.draining.front().copied() else {
                break;
            };
            at = at.max(until);
            self.drained(at);
        }
        at
    }

    fn drained(&mut self, now: Nanos) {
        while let Some((_, units)) = self.draining.front().filter(|page| page.0 <= now) {
            self.in_flight -= u64::from(*units);
            self.draining.pop_front();
        }
    }

    fn program_full_pages(&mut self, now: Nanos) {
        while self.filling.len() as u64 >= self.flash.page_units() {
            self.program_page(now);
        }
    }

    /// Programs everything buffered, the last page only partly filled; returns when all of it is
    /// in flash.
    fn program_all(&mut self, now: Nanos) -> Nanos {
        while !self.filling.is_empty() {
            self.program_page(now);
        }
        self.draining.back().map_or(now, |page| page.0.max(now))
    }

    fn program_page(&mut self, now: Nanos) {
        let units = self.filling.len().min(self.flash.page_units() as usize);
        let end = self.flash.program(self.filling.drain(..units), now);
        self.in_flight += units as u64;
        // Dies differ in how busy they are, so pages do not end in the order they began.
        let place = self.draining.partition_point(|page| page.0 <= end);
        self.draining.insert(place, (end, units as u32));
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        let ready = now + self.parameters.overhead;
        if self.parameters.protected {
            ready
        } else {
            self.program_all(ready)
        }
    }

    fn discard(&mut self, request: &Request, now: Nanos) -> Nanos {
        // Units that the range covers only in part keep their data.
        let first = request.first.div_ceil(UNIT_SECTORS) as u32;
        let end = ((request.first + u64::from(request.sectors)) / UNIT_SECTORS) as u32;
        self.filling.retain(|unit| !(first..end).contains(unit));
        for unit in first..end.min(self.units(request).end) {
            self.flash.unmap(unit);
        }
        now + self.parameters.overhead
    }
}

impl Drive for Ssd {
    fn sectors(&self) -> u64 {
        self.parameters.sectors
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        let at = match request.operation {
            Operation::Read => self.read(&request, now),
            Operation::Write { durable } => self.write(&request, durable, now),
            Operation::Flush => self.flush(now),
            Operation::Discard => self.discard(&request, now),
        };
        self.done.add(request.id, at);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.done.next()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.done.take_due(now)
    }
}
