//! What writing shows of a drive in which nothing turns. It is written over as a whole.

use super::probe::{Bench, Part, SMALL, STEP, WriteProbe, Writes, aligned};
use super::several::{Several, middle_half, several};
use crate::{Nanos, SECTOR};

/// Small writes, each with a flush behind it; and those behind each part of the stream.
pub(super) const FLUSHED: u64 = 64;
const FLUSHED_BETWEEN: u64 = 8;
/// Sectors of a large write: 128 KiB.
const LARGE: u32 = 256;
/// Writes that are under way at once.
const DEPTH: u32 = 32;
/// Parts of the drive of which the rate is measured while it is filled.
const PARTS: u64 = 64;
/// Writes that are handed out together, at most: their places are a list.
const TOGETHER: u64 = 1 << 16;
/// A flush that takes less than so many small writes programs nothing.
const KEPT: f64 = 2.0;
/// The cache is used up where the rate falls to less than this share of the one before.
const FALLS: f64 = 0.85;
/// Sectors of the bursts, each after a rest: 256 KiB to 64 MiB.
const BURSTS: [u64; 5] = [512, 2048, 8192, 32_768, 131_072];
/// Time in which everything held in memory is programmed.
const REST: Nanos = 2_000_000_000;
/// Reads beside writes, and how many writes are under way meanwhile.
const READS_BESIDE: u64 = 512;
const WRITES_BESIDE: u32 = 4;
/// Share of reads beside writes that count: the latest met something else.
const COUNTED: f64 = 0.95;
/// Parts of small writes anywhere, and the share of the drive that each writes.
const WINDOWS: usize = 8;
const WINDOW: f64 = 0.05;

/// The findings of writing. Rates are bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WriteFindings {
    /// Time of a small write alone, and of the flush behind it, ns.
    pub(super) alone: f64,
    pub(super) flush: f64,
    /// Time of a flush behind a small write when the drive is full, ns.
    pub(super) flush_full: f64,
    /// The stream over the whole drive.
    pub(super) stream: Stream,
    /// Rate of a burst after a rest, by its bytes.
    pub(super) bursts: Vec<(u64, f64)>,
    /// Time of a small read beside writes, ns.
    pub(super) beside: f64,
    /// Rate of small writes anywhere, by how much of the drive was written before.
    pub(super) anywhere: Vec<f64>,
}

/// Rates of a stream of writes over a whole drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream {
    /// Rate at the beginning, and of the rest; the same where it never falls.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Share of the drive after which it falls, or flushes take longer; 0: never.
    pub(super) cliff: f64,
}

impl WriteFindings {
    /// Returns true if a flush has nothing to program: capacitors keep the buffer.
    pub(super) fn is_protected(&self) -> bool {
        self.flush < self.alone * KEPT
    }

    /// Each figure with the same one of another drive.
    fn pairs(&self, other: &Self) -> Vec<[f64; 2]> {
        let figures = |of: &Self| {
            let mut all = vec![of.alone, of.flush, of.flush_full];
            all.extend([of.stream.before, of.stream.after]);
            all.extend(of.bursts.iter().map(|(_, rate)| *rate));
            all.push(of.beside);
            all.extend(&of.anywhere);
            all
        };
        let (own, others) = (figures(self), figures(other));
        own.into_iter()
            .zip(others)
            .map(|(own, other)| [own, other])
            .collect()
    }

    /// How far another drive's findings are from these: root mean square of how much larger the larger of two is.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        apart(&self.pairs(other))
    }
}

/// Root mean square of how much larger the larger of two is.
pub(super) fn apart(pairs: &[[f64; 2]]) -> f64 {
    let squares = pairs.iter().map(|[own, other]| {
        let apart = own.max(*other) / own.min(*other).max(1e-9) - 1.0;
        apart * apart
    });
    (squares.sum::<f64>() / pairs.len().max(1) as f64).sqrt()
}

/// Writes over the whole drive, and measures what that takes; reads it when it is full.
pub(super) fn written<P: WriteProbe>(
    bench: &mut Bench<'_, P>,
) -> Result<(Several, WriteFindings), P::Error> {
    bench.probe.begins(Part::Flushes);
    let [alone, flush] = flushes(bench, FLUSHED)?;
    bench.probe.begins(Part::Filling);
    let stream = filling(bench)?;
    let [_, flush_full] = flushes(bench, FLUSHED)?;
    // Now: flash answers at once what was never written, and what was written anywhere lies in pieces.
    bench.probe.pause(REST);
    bench.probe.begins(Part::Several);
    let several = several(bench)?;
    bench.probe.begins(Part::Bursts);
    let bursts = bursts(bench)?;
    bench.probe.begins(Part::Beside);
    let beside = beside(bench)?;
    bench.probe.begins(Part::Overwriting);
    let anywhere = anywhere(bench)?;
    let written = WriteFindings {
        alone,
        flush,
        flush_full,
        stream,
        bursts,
        beside,
        anywhere,
    };
    Ok((several, written))
}

/// Time of a small write alone, and of a flush behind it, ns.
pub(super) fn flushes<P: WriteProbe>(
    bench: &mut Bench<'_, P>,
    count: u64,
) -> Result<[f64; 2], P::Error> {
    let (mut alone, mut flush) = (Vec::new(), Vec::new());
    // What is still held in memory is none of theirs.
    bench.probe.flush()?;
    for _ in 0..count {
        let first = aligned(bench.draw(bench.sectors - STEP));
        alone.push(bench.probe.write(first, SMALL)?.ns());
        flush.push(bench.probe.flush()?.ns());
    }
    Ok([alone, flush].map(|times| middle_half(times).max(1.0)))
}

/// Rate of large writes from a sector up to another one.
pub(super) fn row<P: WriteProbe>(
    bench: &mut Bench<'_, P>,
    from: u64,
    to: u64,
) -> Result<f64, P::Error> {
    let length = u64::from(LARGE);
    let (mut time, mut at) = (0, from / length * length);
    let begin = at;
    while at + length <= to {
        let count = ((to - at) / length).min(TOGETHER);
        let places: Vec<u64> = (0..count).map(|number| at + number * length).collect();
        time += bench.probe.write_at_once(DEPTH, &places, LARGE)?;
        at += count * length;
    }
    Ok(((at - begin) * SECTOR) as f64 * 1e9 / time.max(1) as f64)
}

fn filling<P: WriteProbe>(bench: &mut Bench<'_, P>) -> Result<Stream, P::Error> {
    let sectors = bench.sectors;
    let (mut rates, mut flushed) = (Vec::new(), Vec::new());
    for part in 0..PARTS {
        bench.probe.goes_on(part as f64 / PARTS as f64);
        let [from, to] = [part, part + 1].map(|part| sectors / PARTS * part);
        rates.push(row(bench, from, to)?);
        let [_, flush] = flushes(bench, FLUSHED_BETWEEN)?;
        flushed.push(1e9 / flush);
    }
    // What the parts left over: reads find data everywhere.
    row(bench, sectors / PARTS * PARTS, sectors)?;
    let stream = Stream::of(&rates);
    // Where the interface limits the stream, flushes alone show that the cache is used up.
    let between = Stream::of(&flushed).cliff;
    let cliff = match (stream.cliff > 0.0, between > 0.0) {
        (true, _) => stream.cliff,
        // They are timed at the end of each part: it ended somewhere in the one before them.
        (false, true) => between + 0.5 / PARTS as f64,
        (false, false) => 0.0,
    };
    Ok(Stream { cliff, ..stream })
}

impl Stream {
    /// Where rates fall most, and the middle rates before and behind.
    fn of(rates: &[f64]) -> Self {
        let middle = |rates: &[f64]| {
            let mut rates = rates.to_vec();
            super::probe::middle(&mut rates)
        };
        let all = middle(rates);
        let never = Self {
            before: all,
            after: all,
            cliff: 0.0,
        };
        // How far all rates are from the two middles that a place makes of them.
        let spread = |place: usize| -> f64 {
            let (before, after) = rates.split_at(place);
            let of = |rates: &[f64]| {
                let middle = middle(rates).max(1.0);
                rates
                    .iter()
                    .map(|rate| (rate.max(1.0) / middle - 1.0).powi(2))
                    .sum::<f64>()
            };
            of(before) + of(after)
        };
        let places = 1..rates.len();
        let Some(place) = places.min_by(|one, other| spread(*one).total_cmp(&spread(*other)))
        else {
            return never;
        };
        let [before, after] = [middle(&rates[..place]), middle(&rates[place..])];
        if after >= before * FALLS {
            return never;
        }
        // The part in which it falls has some of both: as much of each as its rate says.
        let inside =
            |rate: f64| ((1.0 / rate - 1.0 / after) / (1.0 / before - 1.0 / after)).clamp(0.0, 1.0);
        let own = [place - 1, place].map(|part| inside(rates[part].max(1.0)));
        let parts = (place - 1) as f64 + own[0] + own[1];
        Self {
            before,
            after,
            cliff: parts / rates.len() as f64,
        }
    }
}

pub(super) fn bursts<P: WriteProbe>(bench: &mut Bench<'_, P>) -> Result<Vec<(u64, f64)>, P::Error> {
    let mut at = bench.sectors / 2;
    let mut rates = Vec::new();
    for sectors in BURSTS {
        // A flush has it program at once what it would keep.
        bench.probe.flush()?;
        bench.probe.pause(REST);
        rates.push((sectors * SECTOR, row(bench, at, at + sectors)?));
        at += sectors;
    }
    Ok(rates)
}

/// Mean time of a small read beside large writes, ns.
pub(super) fn beside<P: WriteProbe>(bench: &mut Bench<'_, P>) -> Result<f64, P::Error> {
    // Writes in the first half, reads in the second: nothing that is read is still in memory.
    let half = bench.sectors / 2;
    let length = u64::from(LARGE);
    let count = (half / length).min(TOGETHER);
    let places: Vec<u64> = (0..count).map(|number| number * length).collect();
    let reads: Vec<u64> = (0..READS_BESIDE)
        .map(|_| aligned(half + bench.draw(half - STEP)))
        .collect();
    let writes = Writes {
        depth: WRITES_BESIDE,
        places: &places,
        sectors: LARGE,
    };
    let mut times = bench.probe.read_beside(&reads, &writes)?;
    times.sort_unstable();
    times.truncate((times.len() as f64 * COUNTED).ceil() as usize);
    let sum: Nanos = times.iter().sum();
    Ok((sum as f64 / times.len().max(1) as f64).max(1.0))
}

/// Rates of small writes anywhere, in parts of [`WINDOW`] of the drive.
pub(super) fn anywhere<P: WriteProbe>(bench: &mut Bench<'_, P>) -> Result<Vec<f64>, P::Error> {
    let writes = (bench.sectors as f64 * WINDOW) as u64 / STEP;
    let room = bench.sectors - STEP;
    let mut rates = Vec::new();
    for window in 0..WINDOWS {
        let (mut left, mut time) = (writes, 0);
        while left > 0 {
            let done = window as f64 + 1.0 - left as f64 / writes as f64;
            bench.probe.goes_on(done / WINDOWS as f64);
            let count = left.min(TOGETHER);
            let places: Vec<u64> = (0..count).map(|_| aligned(bench.draw(room))).collect();
            time += bench.probe.write_at_once(DEPTH, &places, SMALL)?;
            left -= count;
        }
        rates.push((writes * STEP * SECTOR) as f64 * 1e9 / time.max(1) as f64);
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cliff_is_found_where_it_is_also_inside_of_a_part() {
        let at = |cliff: f64| {
            let rates: Vec<f64> = (0..64)
                .map(|part| {
                    let fast = (cliff * 64.0 - f64::from(part)).clamp(0.0, 1.0);
                    1.0 / (fast / 500.0 + (1.0 - fast) / 100.0)
                })
                .collect();
            Stream::of(&rates).cliff
        };
        for cliff in [0.02, 0.04, 0.1, 0.25, 0.333, 0.5, 0.95] {
            assert!((at(cliff) - cliff).abs() < 0.002, "{cliff}: {}", at(cliff));
        }
        assert_eq!((at(0.0), at(1.0)), (0.0, 0.0));
    }

    #[test]
    fn rates_that_waver_have_no_cliff() {
        let rates: Vec<f64> = (0..64)
            .map(|part| 100.0 + f64::from(part * 7 % 10))
            .collect();
        let stream = Stream::of(&rates);
        assert_eq!((stream.cliff, stream.before), (0.0, stream.after));
    }
}
