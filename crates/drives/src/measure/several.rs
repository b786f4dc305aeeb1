//! Reads of several sizes, and several at once: what there is to see of a drive in which nothing turns.

use super::probe::{Bench, Probe, SMALL, STEP};
use crate::SECTOR;

/// Sectors of a read alone: 4 to 256 KiB.
const SIZES: [u32; 7] = [SMALL, 16, 32, 64, 128, 256, 512];
/// Reads of each size.
const ALONE: u64 = 64;
/// Numbers of small reads at once.
const DEPTHS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Reads at each of them, at least; and for each that is under way.
const READS: u64 = 256;
const READS_EACH: u64 = 8;
/// A stream: reads of 128 KiB, 32 at once.
const LARGE: u32 = 256;
const STREAM_DEPTH: u32 = 32;
const STREAM_READS: u64 = 256;

/// Times of reads alone, and rates of several at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Several {
    /// Time of a read alone by its sectors, ns.
    pub(super) alone: Vec<(u32, f64)>,
    /// Small reads a second by how many are under way.
    pub(super) at_once: Vec<(u32, f64)>,
    /// Rate of the stream, bytes per second.
    pub(super) stream: f64,
}

impl Several {
    /// Time of a small read alone, ns.
    pub(super) fn latency(&self) -> f64 {
        self.alone.first().map_or(1.0, |alone| alone.1)
    }

    /// Most small reads a second, however many are under way.
    pub(super) fn most(&self) -> f64 {
        let rates = self.at_once.iter().map(|(_, rate)| *rate);
        rates.fold(1e9 / self.latency(), f64::max)
    }

    /// Small reads a second with the most under way.
    fn last(&self) -> Option<(u32, f64)> {
        self.at_once.last().copied()
    }

    /// Returns true if more at once would have done more: the limit was not seen.
    pub(super) fn still_grows(&self) -> bool {
        self.last()
            .is_some_and(|(depth, rate)| rate > 0.9 * f64::from(depth) * 1e9 / self.latency())
    }

    fn figures(&self) -> impl Iterator<Item = f64> {
        let alone = self.alone.iter().map(|(_, time)| *time);
        let at_once = self.at_once.iter().map(|(_, rate)| *rate);
        alone.chain(at_once).chain([self.stream])
    }

    /// How far another drive's findings are from these: root mean square of how much larger the larger of two is.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let pairs = self.figures().zip(other.figures());
        let (mut sum, mut count) = (0.0, 0.0);
        for (own, others) in pairs {
            let apart = own.max(others) / own.min(others).max(1e-9) - 1.0;
            sum += apart * apart;
            count += 1.0;
        }
        (sum / f64::max(count, 1.0)).sqrt()
    }

    /// What was read, in words.
    pub(super) fn words(&self) -> String {
        let alone: Vec<String> = self
            .alone
            .iter()
            .map(|(_, time)| format!("{:.0}", time / 1e3))
            .collect();
        let at_once: Vec<String> = self
            .at_once
            .iter()
            .map(|(_, rate)| format!("{rate:.0}"))
            .collect();
        format!(
            "reads alone of 4 to 256 KiB: {} us; of 4 KiB, 2 to 128 at once: {} a second; 128 KiB, {STREAM_DEPTH} at once: {:.0} MB/s",
            alone.join(", "),
            at_once.join(", "),
            self.stream / 1e6
        )
    }
}

/// Mean of the middle half: late ones do not count.
pub(super) fn middle_half(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    // A median jumps between the times of one page and of two.
    let quarter = times.len() / 4;
    let half = &times[quarter..times.len() - quarter];
    half.iter().sum::<f64>() / half.len().max(1) as f64
}

/// Reads alone, at once, and as a stream.
pub(super) fn several<P: Probe>(bench: &mut Bench<'_, P>) -> Result<Several, P::Error> {
    let mut alone = Vec::new();
    for sectors in SIZES {
        let mut times = Vec::new();
        for _ in 0..ALONE {
            let first = bench.draw(bench.sectors - u64::from(sectors));
            times.push(bench.read(first, sectors)?.ns());
        }
        alone.push((sectors, middle_half(times).max(1.0)));
    }
    let mut at_once = Vec::new();
    // More under way needs more reads, or beginning and end would weigh more than what lies between.
    for depth in DEPTHS {
        let count = READS.max(u64::from(depth) * READS_EACH);
        let time = bench.anywhere(depth, count, SMALL)?;
        at_once.push((depth, count as f64 * 1e9 / (time.max(1)) as f64));
    }
    let first = bench.sectors / 3 / STEP * STEP;
    let length = u64::from(LARGE);
    let places: Vec<u64> = (0..STREAM_READS)
        .map(|number| (first + number * length).min(bench.sectors - length) / STEP * STEP)
        .collect();
    let time = bench.probe.at_once(STREAM_DEPTH, &places, LARGE)?;
    let bytes = (STREAM_READS * length * SECTOR) as f64;
    Ok(Several {
        alone,
        at_once,
        stream: bytes * 1e9 / (time.max(1)) as f64,
    })
}
