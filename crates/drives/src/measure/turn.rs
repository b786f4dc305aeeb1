//! The turn of the platter: between two reads of one sector lie whole turns.

use super::probe::{Bench, Probe, middle};
use std::f64::consts::TAU;

/// Places, each read once in a round, so that no buffer still holds one when it is read again. A prime:
/// any stride visits all.
pub(super) const PLACES: u64 = 97;
/// Rounds: thousands of turns in all.
const ROUNDS: u64 = 16;
/// Turns looked for, ns: 30,000 to 2,000 a minute.
const SHORTEST: f64 = 2e6;
const LONGEST: f64 = 30e6;
/// Ends of reads agree with a turn from this mean of their unit vectors on: 1 if all fall on one angle.
const AGREES: f64 = 0.6;

/// Angles differ by this share of a turn, or so many times that within which half of the reads end.
const SPREAD: f64 = 0.01;
const SPREADS: f64 = 4.0;

/// A turn of the platter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    /// Its time, ns.
    pub(super) time: f64,
    /// Whole turns between the first and the last read.
    pub(super) turns: f64,
    /// Ends of half of the reads lie within so much of the angle, ns.
    pub(super) within: f64,
}

impl Turn {
    /// A time less whole turns.
    pub(super) fn phase(&self, time: f64) -> f64 {
        time.rem_euclid(self.time)
    }

    /// Share of a turn by which angles differ that are the same, in tracks of so many sectors: where spares
    /// lie between, tracks differ by one.
    pub(super) fn spread(&self, sectors: f64, per_track: f64) -> f64 {
        let late = SPREADS * self.within / self.time;
        SPREAD.max(sectors / per_track).max(late)
    }

    /// A time less whole turns, from minus a half to a half of one.
    pub(super) fn nearest(&self, time: f64) -> f64 {
        let phase = self.phase(time);
        match phase > self.time / 2.0 {
            true => phase - self.time,
            false => phase,
        }
    }
}

/// `None` if no turn explains the times.
pub(super) fn turn<P: Probe>(bench: &mut Bench<'_, P>) -> Result<Option<Turn>, P::Error> {
    let apart = bench.sectors / PLACES;
    let mut ends = vec![Vec::new(); PLACES as usize];
    for round in 0..ROUNDS {
        // In another order each time: in the same one everything repeats, and any share of the round
        // would pass for a turn.
        for number in 0..PLACES {
            let place = (number * (round * 5 + 3) + round * round) % PLACES;
            let span = bench.small(place * apart + 8192)?;
            ends[place as usize].push(span.end as f64);
        }
    }
    let near: Vec<f64> = ends.iter().flat_map(|ends| gaps(ends, 1)).collect();
    let Some(coarse) = coarse(&near) else {
        return Ok(None);
    };
    let mut turn = Turn {
        time: coarse,
        turns: 0.0,
        within: 0.0,
    };
    for rounds in [1, 2, 4, 8, ROUNDS as usize - 1] {
        let gaps: Vec<f64> = ends.iter().flat_map(|ends| gaps(ends, rounds)).collect();
        turn = refined(turn, &gaps);
    }
    Ok(Some(turn))
}

fn gaps(ends: &[f64], rounds: usize) -> impl Iterator<Item = f64> {
    ends.iter()
        .zip(ends.iter().skip(rounds))
        .map(|(one, other)| other - one)
}

fn agreement(gaps: &[f64], turn: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for gap in gaps {
        let (sin, cos) = (TAU * (gap / turn)).sin_cos();
        (x, y) = (x + cos, y + sin);
    }
    f64::hypot(x, y) / gaps.len() as f64
}

/// The longest turn that the gaps agree with: they agree with a half of it, too.
fn coarse(gaps: &[f64]) -> Option<f64> {
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    // A few of the gaps tell where to look, all of them whether it is so.
    let few: Vec<f64> = gaps.iter().step_by(8).copied().collect();
    let mut turn = LONGEST;
    while turn > SHORTEST {
        // The longest gap moves by a tenth of a turn from one to the next.
        let step = turn * (0.1 * turn / longest).min(0.01);
        if agreement(&few, turn) > AGREES - 0.1 {
            let around = (-20..=20).map(|at| turn + step * f64::from(at) / 8.0);
            let best = around
                .map(|turn| (agreement(gaps, turn), turn))
                .max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((_, turn)) = best.filter(|best| best.0 > AGREES) {
                return Some(turn);
            }
        }
        turn -= step;
    }
    None
}

/// The turn by which these gaps are whole numbers of turns.
fn refined(turn: Turn, gaps: &[f64]) -> Turn {
    let errors: Vec<(f64, f64)> = gaps
        .iter()
        .map(|gap| ((gap / turn.time).round(), turn.nearest(*gap)))
        .collect();
    // Each by itself, so that a read that came late counts no more than another one.
    let mut each: Vec<f64> = errors
        .iter()
        .map(|(turns, error)| error / turns.max(1.0))
        .collect();
    let time = turn.time + middle(&mut each);
    let mut off: Vec<f64> = errors
        .iter()
        .map(|(turns, error)| (error - (time - turn.time) * turns).abs())
        .collect();
    let turns = errors.iter().map(|one| one.0).fold(0.0, f64::max);
    Turn {
        time,
        turns,
        within: middle(&mut off),
    }
}
