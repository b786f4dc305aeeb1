//! A disk's read cache: a few segments, each holding one run of sectors.

use super::cache::{BufferRules, Cache, Fetched, ReadAheadAfter, ReadAheadUntil};
use super::mechanism::Mechanism;
use crate::Nanos;

/// Segments, and the one that reading ahead still fills.
#[derive(Debug, Clone)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    /// Most segments, and sectors in each.
    segments_max: usize,
    segment_sectors: u64,
    /// Sectors read ahead of the last one asked for.
    ahead: u64,
    rules: BufferRules,
    /// Sector behind the last read that needed the platter.
    last_end: u64,
    reading_on: Option<ReadingOn>,
    /// Instant until which the head reads on what was promised to a request.
    promised: Nanos,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    end: u64,
    used: u64,
}

/// The arm stays where it is, and what passes the head goes into a segment.
#[derive(Debug, Clone, Copy)]
struct ReadingOn {
    segment: usize,
    from: u64,
    limit: u64,
    since: Nanos,
}

impl ReadCache {
    pub(super) fn new(cache: Cache) -> Self {
        Self {
            segments: Vec::with_capacity(cache.segments),
            segments_max: cache.segments,
            segment_sectors: cache.segment_sectors,
            ahead: cache.read_ahead,
            rules: cache.rules,
            last_end: 0,
            reading_on: None,
            promised: 0,
            uses: 0,
        }
    }

    /// Instant until which the head must stay where it is, because of what [`Self::available`] said.
    pub(super) fn promised(&self) -> Nanos {
        self.promised
    }

    /// Instant at which the last of `first..end` is in the cache: at once where it is already,
    /// later where reading ahead is about to get there, if that may be `later`. `None` means a
    /// miss.
    pub(super) fn available(
        &mut self,
        first: u64,
        end: u64,
        later: bool,
        now: Nanos,
        mechanism: &Mechanism,
    ) -> Option<Nanos> {
        self.catch_up(now, mechanism);
        let reading = self.reading_on;
        let at = self.segments.iter().enumerate().position(|(at, segment)| {
            let coming = reading.filter(|reading| reading.segment == at);
            let coming = coming.filter(|_| later);
            let reach = coming.map_or(segment.end, |reading| reading.limit.max(segment.end));
            // A request longer than what is read ahead is read on to its end.
            segment.first <= first && first <= reach && (end <= segment.end || coming.is_some())
        })?;
        self.uses += 1;
        self.segments[at].used = self.uses;
        let segment = self.segments[at];
        if self.rules.fetched == Fetched::Dropped {
            // The last sector stays in place as the end that a sequence continues.
            let fetched = &mut self.segments[at];
            fetched.first = fetched.first.max(end.min(fetched.end));
        }
        let at_once = end <= segment.end;
        let Some(reading) = reading.filter(|reading| reading.segment == at) else {
            return at_once.then_some(now);
        };
        let mut reading = reading;
        if segment.end >= reading.limit {
            // It had stopped with its segment full, and the platter turned on meanwhile.
            reading.since = now;
        }
        // What the host fetches makes room: reading may go on by as much.
        reading.limit = reading.limit.max(self.limit(end, segment.first, mechanism));
        self.reading_on = Some(reading);
        if at_once {
            return Some(now);
        }
        let arm = mechanism.over(reading.from.saturating_sub(1));
        let from = mechanism.geometry.place(reading.from);
        let sectors = (end - reading.from) as u32;
        let pass = mechanism.pass_from(arm, &from, sectors, false, reading.since);
        self.promised = self.promised.max(pass.end);
        Some(pass.end)
    }

    /// Notes that `first..end` was read from the platter, done at `now`: it fills a segment, and
    /// reading goes on behind it.
    ///
    /// Of the sectors before `first`, `passing` have passed the head, too.
    pub(super) fn fill(
        &mut self,
        first: u64,
        end: u64,
        passing: u64,
        now: Nanos,
        mechanism: &Mechanism,
    ) {
        if self.segments_max == 0 {
            return;
        }
        let begin = match (self.rules.fetched, self.rules.passing) {
            (Fetched::Dropped, _) => end,
            (_, true) => first - passing,
            (_, false) => first,
        };
        let at = self.keep(begin, first, end);
        let continues = std::mem::replace(&mut self.last_end, end) == first;
        if self.rules.after == ReadAheadAfter::Sequence && !continues {
            self.reading_on = None;
            return;
        }
        self.reading_on = Some(ReadingOn {
            segment: at,
            from: end,
            limit: self.limit(end, first, mechanism),
            since: now,
        });
    }

    /// Puts `begin..end` into a segment, of which `first..end` was asked for; returns its number.
    fn keep(&mut self, begin: u64, first: u64, end: u64) -> usize {
        self.uses += 1;
        let segment = Segment {
            first: begin.max(end.saturating_sub(self.segment_sectors)),
            end,
            used: self.uses,
        };
        let at = self.free(first, end);
        if at == self.segments.len() {
            self.segments.push(segment);
        } else {
            self.segments[at] = segment;
        }
        at
    }

    /// Notes that `first..end` was written to the platter and stays in the buffer.
    pub(super) fn keep_written(&mut self, first: u64, end: u64) {
        if self.segments_max > 0 {
            self.keep(first, first, end);
        }
    }

    /// The sector before which reading ahead stops that begins at `end`, in a segment that begins at `first`.
    fn limit(&self, end: u64, first: u64, mechanism: &Mechanism) -> u64 {
        let room = match self.rules.fetched {
            Fetched::Kept => (first + self.segment_sectors).saturating_sub(end),
            Fetched::Overwritten | Fetched::Dropped => self.segment_sectors,
        };
        let full = end + self.ahead.min(room);
        match self.rules.until {
            ReadAheadUntil::Full => full,
            ReadAheadUntil::Track => full.min(mechanism.geometry.track_end(end)),
            ReadAheadUntil::Cylinder => full.min(mechanism.geometry.cylinder_end(end)),
        }
    }

    /// The segment to take for `first..end`: one that it continues, a new one, or that used longest
    /// ago.
    fn free(&self, first: u64, end: u64) -> usize {
        let same = self
            .segments
            .iter()
            .position(|segment| segment.first <= end && first <= segment.end);
        if let Some(at) = same {
            return at;
        }
        if self.segments.len() < self.segments_max {
            return self.segments.len();
        }
        let oldest = self.segments.iter().enumerate().min_by_key(|at| at.1.used);
        oldest.map_or(0, |(at, _)| at)
    }

    /// Returns true if a read from `first` on may be among what the head reads on: seldom, so that
    /// the segments need not be looked through.
    pub(super) fn reads_on_near(&self, first: u64) -> bool {
        self.reading_on.is_some_and(|reading| {
            first <= reading.limit && first + self.segment_sectors >= reading.from
        })
    }

    /// The sector that reading ahead has come to; `None` if the head does not read on.
    pub(super) fn reached(&mut self, now: Nanos, mechanism: &Mechanism) -> Option<u64> {
        self.catch_up(now, mechanism);
        self.reading_on.map(|reading| reading.from)
    }

    /// The sector that [`Self::stop`] will return at `now`, if nothing else happens before.
    pub(super) fn stops_at(&self, now: Nanos, mechanism: &Mechanism) -> Option<u64> {
        let ReadingOn {
            segment,
            from,
            limit,
            since,
        } = self.reading_on?;
        let (reached, _) = mechanism.read_on(from, limit, since, now);
        Some(reached.max(self.segments[segment].end))
    }

    /// Ends reading ahead, because the arm is needed. Returns the sector it had reached.
    pub(super) fn stop(&mut self, now: Nanos, mechanism: &Mechanism) -> Option<u64> {
        self.catch_up(now, mechanism);
        let reading = self.reading_on.take()?;
        Some(self.segments[reading.segment].end)
    }

    fn catch_up(&mut self, now: Nanos, mechanism: &Mechanism) {
        let Some(reading) = &mut self.reading_on else {
            return;
        };
        let (reached, since) = mechanism.read_on(reading.from, reading.limit, reading.since, now);
        (reading.from, reading.since) = (reached, since);
        let segment = &mut self.segments[reading.segment];
        if reached > segment.end {
            segment.end = reached;
            segment.first = segment
                .first
                .max(reached.saturating_sub(self.segment_sectors));
        }
    }

    /// Drops what a write has made out of date.
    pub(super) fn invalidate(&mut self, first: u64, end: u64) {
        let reading = self.reading_on.map(|reading| reading.segment);
        for (at, segment) in self.segments.iter_mut().enumerate() {
            if segment.first < end && first < segment.end {
                (segment.first, segment.end) = (segment.end, segment.end);
                if reading == Some(at) {
                    self.reading_on = None;
                }
            }
        }
    }
}
