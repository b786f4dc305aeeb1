//! What the buffer keeps and reads ahead: by which reads it answers, and which need the platter.

use super::probe::{Bench, Probe, SMALL, STEP, middle};
use super::survey::Survey;
use super::turn::Turn;
use super::zones::Zones;
use crate::disk::{BufferRules, Fetched, ReadAheadAfter, ReadAheadUntil};
use crate::{Nanos, SECTOR};

/// Time in which any drive has read ahead as far as it does.
const LONG: Nanos = 400_000_000;
/// Time in which it has begun to, and not filled its buffer yet.
const SHORT: Nanos = 3_000_000;
/// About two turns: a few sectors have been read ahead.
const BRIEF: Nanos = 25_000_000;
/// Most sectors that are looked for: 32 MiB.
const MOST: u64 = 1 << 16;
/// Most segments that are looked for.
const MOST_SEGMENTS: u64 = 256;
/// Reads by which a yes or no is told.
const VOTES: u64 = 12;
/// A limit of reading ahead shows where fewer than this share of places have half of the most.
const SHOWS: f64 = 0.85;
/// Of a sample of places so many must answer from the buffer: one alone may be luck of the angle.
const SOME: u64 = 2;
const SOME_OF: u64 = 8;
/// A read that takes this much longer than the usual one from the buffer needed the platter, ns; or so many
/// times as much as the shorter half of those differ, at most this share of a turn.
const LONGER: f64 = 60_000.0;
const SPREADS: f64 = 4.0;
const OF_A_TURN: f64 = 0.05;

/// The buffer for reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Buffer {
    /// Time of a read that it answers, without its data, ns.
    pub(super) hit: f64,
    /// A read that takes this much longer was none, ns.
    pub(super) longer: f64,
    /// Middle half of what such a read of 4 KiB takes, ns.
    pub(super) hits: [f64; 2],
    /// Time of a sector on the bus, ns.
    pub(super) bus: f64,
    /// Largest read by which the bus was timed, sectors; 0: it was not.
    pub(super) bus_by: u32,
    /// Segments; 0: nothing that was read is kept.
    pub(super) segments: usize,
    pub(super) segment: u64,
    pub(super) ahead: u64,
    pub(super) rules: BufferRules,
    /// Share of reads that were answered from what was read ahead of a single one.
    pub(super) after_one: f64,
    /// Share that found sectors before those asked for.
    pub(super) before: f64,
    /// Time added when the data have passed the head, ns.
    pub(super) completion: f64,
}

impl Buffer {
    /// From the head over the first sector of a small read to its answer, in a track of that many, ns.
    pub(super) fn passes(&self, turn: &Turn, per_track: f64) -> f64 {
        let (sector, small) = (turn.time / per_track, f64::from(SMALL));
        let sent = (sector + small * self.bus).max(small * sector + self.bus);
        sent + self.completion
    }
}

/// What is asked of fresh places.
struct Asked<'a, 'b, P: Probe> {
    bench: &'a mut Bench<'b, P>,
    /// A read of 4 KiB that the buffer answers takes less, ns.
    quick: f64,
}

impl<P: Probe> Asked<'_, '_, P> {
    /// A place that was not read yet, with room behind it.
    fn fresh(&mut self) -> u64 {
        let room = self.bench.sectors.saturating_sub(3 * MOST).max(1);
        let place = self.bench.draw(room);
        place / STEP * STEP + MOST
    }

    /// Two reads in sequence: any drive that reads ahead does so behind them.
    fn sequence(&mut self) -> Result<u64, P::Error> {
        let first = self.fresh();
        self.bench.small(first)?;
        self.bench.small(first + STEP)?;
        Ok(first)
    }

    fn hit(&mut self, first: u64) -> Result<bool, P::Error> {
        Ok(self.bench.small(first)?.ns() < self.quick)
    }

    /// Share of fresh places at which `ask` says yes.
    fn share(
        &mut self,
        of: u64,
        ask: impl Fn(&mut Self) -> Result<bool, P::Error>,
    ) -> Result<f64, P::Error> {
        let mut yes = 0;
        for _ in 0..of {
            yes += u64::from(ask(self)?);
        }
        Ok(yes as f64 / of as f64)
    }

    /// The largest number to which `ask` says yes at some places, at most `most`; 0: none.
    fn largest(
        &mut self,
        unit: u64,
        most: u64,
        ask: impl Fn(&mut Self, u64) -> Result<bool, P::Error>,
    ) -> Result<u64, P::Error> {
        let any = |asked: &mut Self, number| -> Result<bool, P::Error> {
            let mut yes = 0;
            for number_of in 0..SOME_OF {
                yes += u64::from(ask(asked, number * unit)?);
                if yes >= SOME || yes + (SOME_OF - number_of - 1) < SOME {
                    break;
                }
            }
            Ok(yes >= SOME)
        };
        let (mut low, mut high) = (0, 1);
        while high * unit <= most && any(self, high)? {
            (low, high) = (high, high * 2);
        }
        if high * unit > most {
            return Ok(low * unit);
        }
        while high - low > 1 {
            let between = low + (high - low) / 2;
            match any(self, between)? {
                true => low = between,
                false => high = between,
            }
        }
        Ok(low * unit)
    }
}

pub(super) fn buffer<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    zones: &Zones,
    survey: &Survey,
) -> Result<Buffer, P::Error> {
    let mut asked = Asked { bench, quick: 0.0 };
    // The shortest of reads behind a sequence come from the buffer, if any does.
    let mut times = Vec::new();
    for _ in 0..VOTES * 2 {
        let first = asked.sequence()?;
        asked.bench.probe.pause(LONG);
        times.push(asked.bench.small(first + 2 * STEP)?.ns());
    }
    let shortest = middle(&mut times[..]).min(survey.small.middle * 1e6);
    let hits = [times[times.len() / 4], times[times.len() * 3 / 4]];
    let differ = SPREADS * (times[times.len() / 2] - times[times.len() / 10]);
    let longer = LONGER.max(differ.min(turn.time * OF_A_TURN));
    let shown = times.iter().filter(|time| **time < shortest + longer);
    let answered = shown.count() as f64 > 0.6 * times.len() as f64;
    // Nothing from a platter comes in a small part of a turn, again and again.
    if !answered || shortest > turn.time * 0.4 {
        return Ok(without(survey));
    }
    asked.quick = shortest + longer;
    let (bus, bus_by) = bus(&mut asked, shortest, longer)?;
    let hit = (shortest - f64::from(SMALL) * bus).max(0.0);
    let after_one = asked.share(VOTES, |asked| {
        let first = asked.fresh();
        asked.bench.small(first)?;
        asked.bench.probe.pause(BRIEF);
        asked.hit(first + STEP)
    })?;
    let before = asked.share(VOTES, |asked| {
        let first = asked.fresh();
        asked.bench.small(first)?;
        asked.hit(first - STEP)
    })?;
    let mut found = Buffer {
        hit,
        longer,
        hits,
        bus,
        bus_by,
        segments: 1,
        segment: 0,
        ahead: 0,
        rules: BufferRules {
            after: match after_one > 0.5 {
                true => ReadAheadAfter::Any,
                false => ReadAheadAfter::Sequence,
            },
            passing: before > 0.5,
            ..BufferRules::default()
        },
        after_one,
        before,
        completion: 0.0,
    };
    room(&mut asked, zones, &mut found)?;
    found.segments = segments(&mut asked)?;
    found.completion = completion(&mut asked, turn, zones, &found)?;
    Ok(found)
}

/// A drive of which no read came from a buffer.
fn without(survey: &Survey) -> Buffer {
    Buffer {
        hit: survey.small.middle * 1e6 / 10.0,
        longer: LONGER,
        hits: [0.0; 2],
        bus: SECTOR as f64 * 1e3 / 600.0,
        bus_by: 0,
        segments: 0,
        segment: 0,
        ahead: 0,
        rules: BufferRules::default(),
        after_one: 0.0,
        before: 0.0,
        completion: 0.0,
    }
}

/// Time of a sector on the bus: reads from the buffer of more and more sectors.
fn bus<P: Probe>(
    asked: &mut Asked<'_, '_, P>,
    shortest: f64,
    longer: f64,
) -> Result<(f64, u32), P::Error> {
    let mut points = vec![(f64::from(SMALL), shortest)];
    let mut sectors = SMALL;
    let mut slope = 0.0;
    while sectors < 2048 {
        // Not twice as many: what is read ahead may be little.
        sectors = (sectors * 3 / 2).next_multiple_of(SMALL);
        let mut times = Vec::new();
        for _ in 0..VOTES {
            let first = asked.sequence()?;
            asked.bench.probe.pause(LONG);
            times.push(asked.bench.read(first + 2 * STEP, sectors)?.ns());
        }
        // Not the middle: where a track ends, less may have been read ahead.
        times.sort_by(f64::total_cmp);
        let time = times[times.len() / 4];
        let more = f64::from(sectors - SMALL);
        // A read that needs the platter for some of it takes much longer all at once.
        let expected = match points.len() {
            1 => 3.0 * shortest + longer,
            _ => slope * more * 1.2 + shortest + longer / 2.0,
        };
        if time > expected {
            break;
        }
        slope = ((time - shortest) / more).max(0.0);
        points.push((f64::from(sectors), time));
    }
    let (last, _) = points[points.len() - 1];
    // From the middle of all slopes between far points.
    let mut slopes = Vec::new();
    for one in &points {
        for other in points.iter().filter(|other| other.0 >= one.0 + last / 2.0) {
            slopes.push((other.1 - one.1) / (other.0 - one.0));
        }
    }
    if slopes.is_empty() {
        return Ok((SECTOR as f64 * 1e3 / 600.0, 0));
    }
    // No interface of a disk carries more than 10 GB/s.
    Ok((middle(&mut slopes).max(51.2), last as u32))
}

/// How far the drive reads ahead, what it keeps, and how much a segment holds.
fn room<P: Probe>(
    asked: &mut Asked<'_, '_, P>,
    zones: &Zones,
    found: &mut Buffer,
) -> Result<(), P::Error> {
    // Sectors behind the second read that are there after a while.
    let ahead_of = |asked: &mut Asked<'_, '_, P>, second: u32| {
        asked.largest(STEP, MOST, move |asked, ahead| {
            let first = asked.fresh();
            asked.bench.small(first)?;
            asked.bench.read(first + STEP, second)?;
            asked.bench.probe.pause(LONG);
            asked.hit(first + u64::from(second) + ahead)
        })
    };
    let ahead = ahead_of(asked, SMALL)?;
    found.rules.until = until(asked, zones, ahead)?;
    found.ahead = match found.rules.until {
        ReadAheadUntil::Full => ahead,
        // Those of the longest track are not seen, as few places have them.
        ReadAheadUntil::Track => longest(zones),
        ReadAheadUntil::Cylinder => longest(zones) * u64::from(zones.heads),
    };
    let dropped = asked.share(VOTES, |asked| {
        let first = asked.sequence()?;
        asked.bench.probe.pause(SHORT);
        asked.hit(first + STEP)
    })? < 0.5;
    if dropped {
        (found.rules.fetched, found.segment) = (Fetched::Dropped, found.ahead);
        return Ok(());
    }
    // A second read as long as all that is read ahead: where it is kept, it takes that room.
    let second = ahead.clamp(STEP, 4096) / STEP * STEP;
    let less = ahead_of(asked, second as u32)?;
    if found.rules.until == ReadAheadUntil::Full && less + STEP * 2 < ahead.min(second + less) {
        found.rules.fetched = Fetched::Kept;
        found.segment = second + STEP + less;
        // The segment is the limit where no other is seen.
        if ahead + 3 * STEP >= found.segment {
            found.ahead = found.segment;
        }
        return Ok(());
    }
    // How much is still there of a run of reads, when as much as possible has been read ahead.
    let behind = asked.largest(STEP, MOST / 4, |asked, run| {
        let first = asked.fresh();
        let mut at = first;
        while at < first + run {
            let sectors = (first + run - at).min(64);
            asked.bench.read(at, sectors as u32)?;
            at += sectors;
        }
        asked.bench.probe.pause(LONG);
        asked.hit(first)
    })?;
    found.segment = found.ahead + behind;
    Ok(())
}

/// Where reading ahead ends: up to the end of a track or cylinder, only some places have half of the most.
fn until<P: Probe>(
    asked: &mut Asked<'_, '_, P>,
    zones: &Zones,
    ahead: u64,
) -> Result<ReadAheadUntil, P::Error> {
    let half = (ahead / 2).max(STEP) / STEP * STEP;
    let mut fits = Vec::new();
    let mut there = 0.0;
    let many = 4 * VOTES;
    for _ in 0..many {
        let first = asked.sequence()?;
        asked.bench.probe.pause(LONG);
        there += f64::from(u8::from(asked.hit(first + STEP + half)?));
        let track = zones.per_track(first);
        let within = |room: f64| (1.0 - half as f64 / room).max(0.0);
        fits.push([within(track), within(track * f64::from(zones.heads))]);
    }
    let there = there / many as f64;
    let [track, cylinder] =
        [0, 1].map(|at| fits.iter().map(|fit: &[f64; 2]| fit[at]).sum::<f64>() / many as f64);
    let ends = [
        (1.0, ReadAheadUntil::Full),
        (track, ReadAheadUntil::Track),
        (cylinder, ReadAheadUntil::Cylinder),
    ];
    // A few late reads must not pass for a limit that hardly a place would show.
    let nearest = ends
        .into_iter()
        .filter(|(share, until)| *until == ReadAheadUntil::Full || *share < SHOWS)
        .min_by(|a, b| (a.0 - there).abs().total_cmp(&(b.0 - there).abs()));
    Ok(nearest.map_or(ReadAheadUntil::Full, |one| one.1))
}

/// Sectors of the longest track.
fn longest(zones: &Zones) -> u64 {
    let tracks = zones.bands.iter().map(|band| u64::from(band.per_track));
    tracks.max().unwrap_or(STEP)
}

/// Segments: so many other places may be read before the first is forgotten.
fn segments<P: Probe>(asked: &mut Asked<'_, '_, P>) -> Result<usize, P::Error> {
    let others = asked.largest(1, MOST_SEGMENTS, |asked, others| {
        let first = asked.sequence()?;
        asked.bench.probe.pause(BRIEF);
        for _ in 0..others {
            asked.sequence()?;
            asked.bench.probe.pause(BRIEF);
        }
        asked.hit(first + 2 * STEP)
    })?;
    Ok(others as usize + 1)
}

/// Time between the last sector of a read and its answer: what a stream takes less than its sectors
/// need to pass.
fn completion<P: Probe>(
    asked: &mut Asked<'_, '_, P>,
    turn: &Turn,
    zones: &Zones,
    found: &Buffer,
) -> Result<f64, P::Error> {
    let mut less = Vec::new();
    for _ in 0..VOTES * 4 {
        let first = asked.fresh();
        let track = zones.per_track(first);
        let sector = turn.time / track;
        let mut next = first + STEP;
        asked.bench.small(first)?;
        if found.rules.after == ReadAheadAfter::Sequence {
            asked.bench.small(next)?;
            next += STEP;
        }
        let sectors = ((track / 4.0) as u64 / STEP * STEP).clamp(STEP, 512);
        let took = asked.bench.read(next, sectors as u32)?.ns();
        let passes = sectors as f64 * sector;
        if found.hit + sectors as f64 * found.bus < passes * 0.8 {
            less.push(passes - took);
        }
    }
    less.sort_by(f64::total_cmp);
    // Where a track ends between, it takes longer: that is no answer.
    let found = less.get(less.len() * 2 / 3).copied().unwrap_or(0.0);
    Ok(match found > 15_000.0 {
        true => found,
        false => 0.0,
    })
}
