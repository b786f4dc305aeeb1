//! The first look at a drive: its rates, the time of a command, and whether something may turn.

use super::probe::{Bench, Probe, SMALL, STEP};
use crate::{Nanos, SECTOR};

/// Sectors of a large read: 1 MiB.
const LARGE: u32 = 2048;
/// Places at which the rate is measured.
pub(super) const PLACES: u64 = 9;
/// Large reads timed at each.
const LARGE_READS: u64 = 16;
/// Small reads anywhere.
const ANYWHERE: u64 = 128;
/// Where random reads differ by less than this nothing turns: a turn of the fastest platter takes longer, ns.
const SHORTEST_TURN: f64 = 1_500_000.0;

/// The findings of the first look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Survey {
    /// MB/s at places from the first to the last.
    pub(super) rates: Vec<f64>,
    /// Small reads in sequence.
    pub(super) small: Sample,
    /// Small reads anywhere.
    pub(super) anywhere: Sample,
    pub(super) first_read: Nanos,
}

/// Middle and middle half of repeated times, ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) middle: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Sample {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (times.len() as f64 * share) as usize;
            let place = place.min(times.len().saturating_sub(1));
            times.get(place).copied().unwrap_or(0.0) / 1e6
        };
        Self {
            middle: at(0.5),
            low: at(0.25),
            high: at(0.75),
        }
    }
}

impl Survey {
    /// Returns true if random reads differ as much as those that wait for a platter.
    pub(super) fn may_turn(&self) -> bool {
        (self.anywhere.high - self.anywhere.low) * 1e6 * 2.0 > SHORTEST_TURN
    }
}

pub(super) fn survey<P: Probe>(bench: &mut Bench<'_, P>) -> Result<Survey, P::Error> {
    let sectors = bench.sectors;
    // A drive that stood still begins to turn: what that takes belongs to nothing else.
    let first_read = bench.small(sectors / 3)?.took();
    let mut rates = Vec::new();
    for place in 0..PLACES {
        let last = sectors - (LARGE_READS + 2) * u64::from(LARGE);
        let first = last / (PLACES - 1) * place / STEP * STEP;
        let mut times = Vec::new();
        for number in 0..LARGE_READS + 1 {
            let took = bench.read(first + number * u64::from(LARGE), LARGE)?;
            // The first one seeks.
            if number > 0 {
                times.push(took.ns());
            }
        }
        let all: f64 = times.iter().sum();
        let bytes = (LARGE_READS * u64::from(LARGE) * SECTOR) as f64;
        rates.push(bytes * 1e3 / all.max(1.0));
    }
    let first = sectors / 2 / STEP * STEP;
    let mut small = Vec::new();
    for number in 0..64 {
        let took = bench.small(first + number * STEP)?;
        if number > 0 {
            small.push(took.ns());
        }
    }
    let mut anywhere = Vec::new();
    for _ in 0..ANYWHERE {
        let first = bench.draw(sectors - u64::from(SMALL));
        anywhere.push(bench.small(first)?.ns());
    }
    Ok(Survey {
        rates,
        small: Sample::of(small),
        anywhere: Sample::of(anywhere),
        first_read,
    })
}
