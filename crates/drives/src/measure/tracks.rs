//! Skews and surfaces: reads that go down by a track each.

use super::probe::{Bench, Probe, STEP, aligned, middle};
use super::turn::Turn;
use super::zones::{Band, Zones};

/// Tracks that a chain of reads goes down.
const TRACKS: u64 = 72;
/// Chains in each zone.
const CHAINS: u64 = 2;
/// Jumps that differ by less than so many sectors are alike.
const ALIKE_SECTORS: f64 = 1.2;
/// Jumps of one kind are at least so many of all in a chain.
const OFTEN: f64 = 0.02;
/// Share of the ends of cylinders that lie as many tracks apart as most, or twice as many and so on.
const REGULAR: f64 = 0.6;

pub(super) fn tracks<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    bands: Vec<Band>,
) -> Result<Zones, P::Error> {
    let mut each = Vec::new();
    for band in &bands {
        let mut chains = Vec::new();
        for chain in 0..CHAINS {
            chains.push(jumps(bench, turn, band, chain)?);
        }
        let alike = Alike(turn.spread(ALIKE_SECTORS, f64::from(band.per_track)));
        each.push(Jumps::of(&chains, alike));
    }
    let mut periods: Vec<f64> = each.iter().filter_map(|jumps| jumps.period).collect();
    let heads_seen = periods.len() * 2 > each.len();
    let heads = match heads_seen {
        true => middle(&mut periods).round().max(1.0) as u32,
        // Tracks and cylinders end alike: each track is as good as a cylinder.
        false => 1,
    };
    let mut skews = Vec::new();
    let mut cylinders = Vec::new();
    for (band, jumps) in bands.iter().zip(&each) {
        let far = jumps.cylinder.filter(|_| heads_seen);
        skews.push([jumps.track, far.unwrap_or(jumps.track)]);
        let each = u64::from(band.per_track) * u64::from(heads);
        cylinders.push((band.end - band.first).div_ceil(each).max(1) as u32);
    }
    Ok(Zones {
        heads,
        heads_seen,
        bands,
        skews,
        cylinders,
    })
}

/// Jumps of the angle from a track to the next, shares of a turn; from the last track down.
fn jumps<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    band: &Band,
    chain: u64,
) -> Result<Vec<f64>, P::Error> {
    let per_track = u64::from(band.per_track);
    let sector = turn.time / f64::from(band.per_track);
    let length = TRACKS * per_track;
    let room = (band.end - band.first).saturating_sub(length + 4 * per_track);
    let top = band.first + room / (CHAINS + 1) * (chain + 1) + length + chain * per_track / 3;
    let mut angles = Vec::new();
    for track in 0..TRACKS {
        let at = aligned(top.saturating_sub(track * per_track).max(STEP));
        let span = bench.small(at)?;
        let before = top as f64 - at as f64 - (track * per_track) as f64;
        angles.push(span.end as f64 + before * sector);
    }
    // Upwards, as the sectors are counted.
    let pairs = angles.windows(2);
    Ok(pairs
        .map(|pair| turn.phase(pair[0] - pair[1]) / turn.time)
        .collect())
}

/// The skews of a zone, shares of a turn, and the tracks of a cylinder.
struct Jumps {
    track: f64,
    cylinder: Option<f64>,
    period: Option<f64>,
}

impl Jumps {
    fn of(chains: &[Vec<f64>], alike: Alike) -> Self {
        let mut all: Vec<f64> = chains.iter().flatten().copied().collect();
        let track = alike.commonest(&all).unwrap_or(0.0);
        let count = all.len() as f64;
        all.retain(|jump| !alike.are(*jump, track));
        let cylinder = alike.commonest(&all).filter(|found| {
            let often = all.iter().filter(|jump| alike.are(**jump, *found)).count();
            often as f64 >= (count * OFTEN).max(3.0)
        });
        let Some(found) = cylinder else {
            return Self {
                track,
                cylinder: None,
                period: None,
            };
        };
        let mut gaps = Vec::new();
        for chain in chains {
            let ends = (0..chain.len()).filter(|at| alike.are(chain[*at], found));
            let ends: Vec<usize> = ends.collect();
            gaps.extend(ends.windows(2).map(|pair| pair[1] - pair[0]));
        }
        let often = |gap: &usize| gaps.iter().filter(|other| *other == gap).count();
        let period = gaps.iter().copied().max_by_key(often).unwrap_or(1);
        // Cylinders end after equally many tracks; what comes here and there is noise.
        let regular = gaps.iter().filter(|gap| *gap % period == 0).count();
        if period < 2 || (regular as f64) < REGULAR * gaps.len() as f64 {
            return Self {
                track,
                cylinder: None,
                period: None,
            };
        }
        let period = Some(period as f64);
        // With two surfaces both come equally often: a track is what is skewed less.
        match period {
            Some(period) if period < 2.5 && found < track => Self {
                track: found,
                cylinder: Some(track),
                period: Some(period),
            },
            _ => Self {
                track,
                cylinder,
                period,
            },
        }
    }
}

/// Shares of a turn that differ by less than this are taken for one.
#[derive(Clone, Copy)]
struct Alike(f64);

impl Alike {
    fn are(self, one: f64, other: f64) -> bool {
        let apart = (one - other).rem_euclid(1.0);
        apart.min(1.0 - apart) < self.0
    }

    /// The value that most of the others are like: the mean of those.
    fn commonest(self, values: &[f64]) -> Option<f64> {
        let like = |value: f64| values.iter().filter(move |other| self.are(**other, value));
        let best = values
            .iter()
            .max_by_key(|value| like(**value).count())
            .copied()?;
        let near: Vec<f64> = values
            .iter()
            .copied()
            .filter(|other| (other - best).abs() < self.0)
            .collect();
        Some(near.iter().sum::<f64>() / near.len() as f64)
    }
}
