//! A drive-managed SMR disk: overlapping tracks in bands, and a media cache in front of them.
//!
//! A band can only be written from its start. Writes go to the media cache, a log on the same
//! platters; a stream that begins at a band is written in place. Cleaning reads a band and what the
//! media cache holds of it, and writes the band anew: in idle time, or before a write when the media
//! cache is full. This is what Aghayev and Desnoyers found in such drives (*Skylight: A Window on
//! Shingled Disk Operation*, FAST 2015).

use crate::completions::Completions;
use crate::{Completion, Disk, Drive, Nanos, Operation, Request};
use std::collections::{BTreeMap, VecDeque};

/// The parameters that make a disk a drive-managed SMR disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmrParameters {
    /// Sectors of a band.
    pub band: u64,
    /// Sectors of the media cache; they are taken from the disk's first ones.
    pub media_cache: u64,
    /// Pieces the media cache's map holds at most.
    pub pieces: usize,
    /// Silence of the host before a band is cleaned.
    pub clean_after: Nanos,
}

/// The reason for which a disk cannot be an SMR disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a band and a media cache of at least one band are expected, both smaller than the disk")]
pub struct SmrError;

/// A modelled drive-managed SMR disk.
#[derive(Debug, Clone)]
pub struct Smr {
    disk: Disk,
    parameters: SmrParameters,
    /// Content of the media cache: first sector, behind the last, and the place in the cache.
    map: BTreeMap<u64, (u64, u64)>,
    /// Sectors in the map.
    held: u64,
    log_head: u64,
    /// Bands with something in the media cache, the oldest first.
    dirty: VecDeque<u64>,
    /// Band being cleaned, and whether it is being written already.
    cleaning: Option<(u64, bool)>,
    /// Work of the disk for each request: by place, so that none has to be searched for.
    jobs: Vec<Option<Job>>,
    open: usize,
    waiting: VecDeque<Request>,
    /// Sector behind the last write, if it belongs to a stream that began at a band.
    stream: Option<u64>,
    idle_since: Nanos,
    clock: Nanos,
    done: Completions,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    /// The host's request; `None` for cleaning.
    request: Option<u64>,
    parts: u32,
}

impl Smr {
    /// An SMR disk on the platters of `disk`, its media cache empty.
    ///
    /// # Errors
    /// When band or media cache do not fit the disk.
    pub fn new(disk: Disk, parameters: SmrParameters) -> Result<Self, SmrError> {
        let fits = parameters.band > 0
            && parameters.pieces > 0
            && parameters.band <= parameters.media_cache
            && parameters.media_cache < disk.sectors();
        if !fits {
            return Err(SmrError);
        }
        Ok(Self {
            disk,
            parameters,
            map: BTreeMap::new(),
            held: 0,
            log_head: 0,
            dirty: VecDeque::new(),
            cleaning: None,
            jobs: Vec::with_capacity(64),
            open: 0,
            waiting: VecDeque::new(),
            stream: None,
            idle_since: 0,
            clock: 0,
            done: Completions::with_capacity(64),
        })
    }

    /// Sectors that wait in the media cache to be written to their bands.
    #[must_use]
    pub fn cached_sectors(&self) -> u64 {
        self.held
    }

    fn job(&mut self, request: Option<u64>, parts: u32) -> u64 {
        self.open += 1;
        let job = Some(Job { request, parts });
        if let Some(free) = self.jobs.iter().position(Option::is_none) {
            self.jobs[free] = job;
            return free as u64;
        }
        self.jobs.push(job);
        self.jobs.len() as u64 - 1
    }

    fn part(&mut self, job: u64, operation: Operation, first: u64, sectors: u64) {
        let request = Request {
            id: job,
            operation,
            first,
            sectors: sectors as u32,
        };
        self.disk.submit(request, self.clock);
    }

    /// The places of a range's sectors on the platters, as runs: first sector and number.
    fn places(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = first;
        std::iter::from_fn(move || {
            let (place, stop) = (at < end).then(|| self.place(at, end))?;
            let sectors = stop - at;
            at = stop;
            Some((place, sectors))
        })
    }

    /// The place of a sector, and the sector up to which those behind it follow there.
    fn place(&self, at: u64, end: u64) -> (u64, u64) {
        let piece = self.map.range(..=at).next_back();
        if let Some((begin, held)) = piece.filter(|(_, held)| at < held.0) {
            return (held.1 + at - begin, held.0.min(end));
        }
        let next = self.map.range(at..end).next();
        (self.home(at), next.map_or(end, |(begin, _)| *begin))
    }

    /// The place of a sector on the platters when it is not in the media cache.
    fn home(&self, sector: u64) -> u64 {
        self.parameters.media_cache + sector
    }

    /// Takes a range out of the media cache.
    fn forget(&mut self, first: u64, end: u64) {
        while let Some((&begin, &(stop, place))) = self.map.range(..end).next_back() {
            if stop <= first {
                break;
            }
            self.map.remove(&begin);
            self.held -= stop - begin;
            for (low, high) in [(begin, first.min(stop)), (end.max(begin), stop)] {
                if low < high {
                    self.map.insert(low, (high, place + low - begin));
                    self.held += high - low;
                }
            }
            if begin < first {
                break;
            }
        }
    }

    fn bands(&self, first: u64, end: u64) -> std::ops::RangeInclusive<u64> {
        first / self.parameters.band..=(end - 1) / self.parameters.band
    }

    /// Returns true if a write can begin: not into the band that is being cleaned, and not into a
    /// full media cache.
    fn fits(&self, request: &Request) -> bool {
        let end = request.first + u64::from(request.sectors);
        let cleaned = self
            .cleaning
            .is_some_and(|(band, _)| self.bands(request.first, end).contains(&band));
        let with = self.held + u64::from(request.sectors);
        let room = with <= self.parameters.media_cache && self.map.len() < self.parameters.pieces;
        // A write larger than the media cache passes when the media cache is empty.
        !cleaned && (room || self.streams(request) || self.held == 0)
    }

    fn streams(&self, request: &Request) -> bool {
        self.stream == Some(request.first) || request.first.is_multiple_of(self.parameters.band)
    }

    fn write(&mut self, request: Request) {
        let (first, sectors) = (request.first, u64::from(request.sectors));
        let end = first + sectors;
        let streams = self.streams(&request);
        self.stream = streams.then_some(end);
        self.forget(first, end);
        let job = self.job(Some(request.id), 1);
        if streams || sectors > self.parameters.media_cache {
            self.part(job, request.operation, self.home(first), sectors);
            return;
        }
        if self.log_head + sectors > self.parameters.media_cache {
            self.log_head = 0;
        }
        let place = self.log_head;
        self.log_head += sectors;
        self.map.insert(first, (end, place));
        self.held += sectors;
        for band in self.bands(first, end) {
            if !self.dirty.contains(&band) {
                self.dirty.push_back(band);
            }
        }
        self.part(job, request.operation, place, sectors);
    }

    /// Starts what can be started: waiting writes, or cleaning.
    fn work(&mut self) {
        while let Some(request) = self.waiting.front().copied() {
            if !self.fits(&request) {
                break;
            }
            self.waiting.pop_front();
            self.write(request);
        }
        let idle = self.open == 0 && self.clock >= self.idle_since + self.parameters.clean_after;
        if self.cleaning.is_none() && (idle || !self.waiting.is_empty()) {
            self.clean();
        }
    }

    /// Reads a band, and what the media cache holds of it.
    fn clean(&mut self) {
        let Some(band) = self.dirty.pop_front() else {
            return;
        };
        let (first, end) = self.range(band);
        let cached: Vec<(u64, u64)> = self
            .map
            .range(first.saturating_sub(self.parameters.band)..end)
            .filter(|(_, held)| held.0 > first)
            .map(|(begin, held)| (held.1, held.0 - begin))
            .collect();
        // Streams may have written over all of it meanwhile.
        if cached.is_empty() {
            return;
        }
        self.cleaning = Some((band, false));
        let job = self.job(None, cached.len() as u32 + 1);
        self.part(job, Operation::Read, self.home(first), end - first);
        for (place, sectors) in cached {
            self.part(job, Operation::Read, place, sectors);
        }
    }

    /// The sectors of a band; the last one may be shorter.
    fn range(&self, band: u64) -> (u64, u64) {
        let first = band * self.parameters.band;
        (first, (first + self.parameters.band).min(self.sectors()))
    }

    fn part_done(&mut self, number: usize) {
        let Some(job) = self.jobs.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        job.parts -= 1;
        if job.parts > 0 {
            return;
        }
        let request = job.request;
        self.jobs[number] = None;
        self.open -= 1;
        if let Some(id) = request {
            self.done.add(id, self.clock);
            self.idle_since = self.clock;
        } else if let Some((band, written)) = self.cleaning {
            let (first, end) = self.range(band);
            if written {
                self.cleaning = None;
                self.forget(first, end);
            } else {
                self.cleaning = Some((band, true));
                let job = self.job(None, 1);
                self.part(
                    job,
                    Operation::Write { durable: true },
                    self.home(first),
                    end - first,
                );
            }
        }
    }

    /// Instant at which cleaning begins by itself.
    fn idle_event(&self) -> Option<Nanos> {
        let waits = self.open == 0 && self.cleaning.is_none() && !self.dirty.is_empty();
        waits.then_some((self.idle_since + self.parameters.clean_after).max(self.clock))
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(at) = [self.disk.next_event(), self.idle_event()]
            .into_iter()
            .flatten()
            .min()
        {
            if at > now {
                break;
            }
            self.clock = self.clock.max(at);
            while let Some(done) = self.disk.complete(self.clock) {
                self.part_done(done.id as usize);
            }
            self.work();
        }
        self.clock = self.clock.max(now);
    }
}

impl Drive for Smr {
    fn sectors(&self) -> u64 {
        self.disk.sectors() - self.parameters.media_cache
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        self.advance(now);
        // A request beyond the last sector counts as one for the last sectors (see `Drive::submit`).
        let sectors = u64::from(request.sectors).min(self.sectors());
        let first = request.first.min(self.sectors() - sectors);
        let request = Request {
            first,
            sectors: sectors as u32,
            ..request
        };
        match request.operation {
            Operation::Write { .. } if sectors > 0 => self.waiting.push_back(request),
            Operation::Read if sectors > 0 => {
                let end = first + sectors;
                let places = self.places(first, end).count();
                let job = self.job(Some(request.id), places as u32);
                let mut at = first;
                while at < end {
                    let (place, stop) = self.place(at, end);
                    self.part(job, Operation::Read, place, stop - at);
                    at = stop;
                }
            }
            operation => {
                if operation == Operation::Discard {
                    self.forget(first, first + sectors);
                }
                let job = self.job(Some(request.id), 1);
                self.part(job, operation, self.home(first), sectors);
            }
        }
        self.work();
    }

    fn next_event(&self) -> Option<Nanos> {
        let events = [self.disk.next_event(), self.idle_event(), self.done.next()];
        events.into_iter().flatten().min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now);
        self.done.take_due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CARDS, Card};
    use proptest::prelude::*;

    const SECOND: Nanos = 1_000_000_000;
    const WRITE: Operation = Operation::Write { durable: false };

    fn smr(media_cache: u64) -> Smr {
        let card = CARDS.iter().find_map(|text| match Card::parse(text) {
            Ok(Card::Disk(card)) => Some(card),
            _ => None,
        });
        let disk = card.unwrap().disk(0).unwrap();
        let parameters = SmrParameters {
            band: 8192,
            media_cache,
            pieces: 10_000,
            clean_after: SECOND,
        };
        Smr::new(disk, parameters).unwrap()
    }

    /// Time of `count` writes of 4 KiB, one at a time, at places `step` sectors apart.
    fn writes(drive: &mut Smr, now: &mut Nanos, count: u64, step: u64) -> Nanos {
        let begin = *now;
        for id in 0..count {
            let first = (id + 1) * step % (1 << 28) / 8 * 8;
            drive.submit(
                Request {
                    id,
                    operation: WRITE,
                    first,
                    sectors: 8,
                },
                *now,
            );
            while drive.complete(*now).is_none() {
                *now = drive.next_event().unwrap();
            }
        }
        *now - begin
    }

    #[test]
    fn scattered_writes_are_fast_until_the_media_cache_is_full() {
        let (mut drive, mut now) = (smr(16_384), 0);
        let early = writes(&mut drive, &mut now, 1000, 7_919_111);
        // The disk's own cache hides the first seconds: what follows pays for a band each.
        writes(&mut drive, &mut now, 6000, 7_919_111);
        let late = writes(&mut drive, &mut now, 1000, 6_700_417);
        assert!(late > early * 5, "{early} and {late}");
    }

    #[test]
    fn a_stream_that_begins_at_a_band_needs_no_media_cache() {
        let (mut drive, mut now) = (smr(16_384), 0);
        let stream = (0..5000).map(|id| Request {
            id,
            operation: WRITE,
            first: id * 8,
            sectors: 8,
        });
        for request in stream {
            drive.submit(request, now);
            while drive.complete(now).is_none() {
                now = drive.next_event().unwrap();
            }
        }
        assert_eq!(drive.cached_sectors(), 0);
    }

    #[test]
    fn the_media_cache_is_cleaned_when_the_host_is_silent() {
        let (mut drive, mut now) = (smr(1 << 20), 0);
        writes(&mut drive, &mut now, 50, 7_919_111);
        assert!(drive.cached_sectors() > 0);
        assert_eq!(drive.complete(now + SECOND / 2), None);
        assert_eq!(drive.cached_sectors(), 400);
        while let Some(at) = drive.next_event().filter(|at| *at < now + 200 * SECOND) {
            assert_eq!(drive.complete(at), None);
        }
        assert_eq!(drive.cached_sectors(), 0);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let disk = smr(16_384).disk;
        for (band, media_cache) in [(0, 100), (100, 50), (8, u64::MAX)] {
            let parameters = SmrParameters {
                band,
                media_cache,
                pieces: 1,
                clean_after: 1,
            };
            assert!(Smr::new(disk.clone(), parameters).is_err());
        }
    }

    proptest! {
        #[test]
        fn every_request_completes_once_and_each_sector_lies_in_one_place(
            requests in prop::collection::vec((0..5, 0_u64..40_000, 1_u32..600, 0_u64..SECOND), 1..80),
        ) {
            let mut drive = smr(16_384);
            let (mut now, mut done) = (0, 0);
            for (&(kind, first, sectors, pause), id) in requests.iter().zip(0..) {
                now += pause;
                let operation = match kind {
                    0 => Operation::Read,
                    1 => Operation::Discard,
                    2 => Operation::Flush,
                    _ => WRITE,
                };
                drive.submit(Request { id, operation, first, sectors }, now);
                while drive.complete(now).is_some() {
                    done += 1;
                }
                let ends: Vec<_> = drive.map.iter().map(|(first, held)| (*first, held.0)).collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                let held: u64 = ends.iter().map(|piece| piece.1 - piece.0).sum();
                prop_assert_eq!(held, drive.cached_sectors());
                let placed: u64 = drive.places(0, 50_000).map(|place| place.1).sum();
                prop_assert_eq!(placed, 50_000);
            }
            while let Some(at) = drive.next_event() {
                while drive.complete(at).is_some() {
                    done += 1;
                }
            }
            prop_assert_eq!(done, requests.len());
            prop_assert_eq!(drive.cached_sectors(), 0);
        }
    }
}
