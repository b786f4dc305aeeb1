//! Sectors of a track at many places, and where their number changes.
//!
//! Within a track the angle at which reads end grows evenly with the sector. The slope is the time that
//! a sector takes to pass, whatever the rate of the bus.

use super::probe::{Bench, Probe, STEP, aligned, middle};
use super::turn::{PLACES, Turn};

/// Places whose tracks are measured at first, from the first sector to the last.
const FIRST_PLACES: u64 = 128;
/// Sectors over which the slope is measured, each time farther; a smaller track ends it.
const WINDOWS: [f64; 3] = [64.0, 512.0, 1e9];
/// Reads in a window, less one.
const READS: usize = 8;
/// Share of a track that a window covers at most: it then meets one end of a track at most.
const OF_A_TRACK: f64 = 0.8;
/// Tracks that differ by less than this share are of one zone, or by less than so many times the share of a
/// turn within which half of the reads end.
const SAME: f64 = 0.004;
const SAME_WITHIN: f64 = 5.0;
/// Rounds in which the places where the number changes are looked for, and places between two in each.
const CLOSER: usize = 3;
const BETWEEN: u64 = 3;

/// Sectors whose tracks hold equally many.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    pub(super) first: u64,
    pub(super) end: u64,
    /// Sectors of a track.
    pub(super) per_track: u32,
    /// Smallest and largest number found in it.
    pub(super) between: [f64; 2],
}

/// The zones of the drive as they were found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zones {
    pub(super) heads: u32,
    /// Set if the surfaces show: a cylinder ends otherwise than a track.
    pub(super) heads_seen: bool,
    pub(super) bands: Vec<Band>,
    /// Shares of a turn by which the tracks and the cylinders of each are skewed.
    pub(super) skews: Vec<[f64; 2]>,
    /// Cylinders of each.
    pub(super) cylinders: Vec<u32>,
}

impl Zones {
    /// Cylinders of the drive, whatever their zone.
    pub(super) fn all_cylinders(&self) -> u32 {
        self.cylinders.iter().sum()
    }

    /// Number of the zone of a sector.
    pub(super) fn at(&self, sector: u64) -> usize {
        let at = self.bands.partition_point(|band| band.end <= sector);
        at.min(self.bands.len() - 1)
    }

    /// Sectors of a track there.
    pub(super) fn per_track(&self, sector: u64) -> f64 {
        f64::from(self.bands[self.at(sector)].per_track)
    }

    /// The first sector of a cylinder, and how many it has.
    pub(super) fn cylinder(&self, cylinder: u32) -> (u64, u64) {
        let mut left = cylinder;
        for (band, cylinders) in self.bands.iter().zip(&self.cylinders) {
            if left < *cylinders {
                let each = (band.end - band.first) as f64 / f64::from(*cylinders);
                return (
                    band.first + (each * f64::from(left)).ceil() as u64,
                    each as u64,
                );
            }
            left -= cylinders;
        }
        let last = self.bands[self.bands.len() - 1].end;
        (last.saturating_sub(STEP), STEP)
    }
}

pub(super) fn bands<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
) -> Result<Vec<Band>, P::Error> {
    let room = bench.sectors - bench.sectors / 50;
    let first: Vec<u64> = (0..FIRST_PLACES)
        .map(|at| room / (FIRST_PLACES - 1) * at)
        .collect();
    let mut known = tracks_at(bench, turn, &first)?;
    let same = Same(SAME.max(SAME_WITHIN * turn.within / turn.time));
    for _ in 0..CLOSER {
        let changes = known
            .windows(2)
            .filter(|pair| !same.are(pair[0].1, pair[1].1))
            .map(|pair| (pair[0].0, pair[1].0));
        let closer: Vec<u64> = changes
            .flat_map(|(low, high)| {
                (1..=BETWEEN).map(move |at| low + (high - low) / (BETWEEN + 1) * at)
            })
            .collect();
        if closer.is_empty() {
            break;
        }
        known.extend(tracks_at(bench, turn, &closer)?);
        known.sort_by_key(|one| one.0);
    }
    Ok(joined(&known, bench.sectors, same))
}

/// Numbers that differ by less than this share are taken for one.
#[derive(Clone, Copy)]
struct Same(f64);

impl Same {
    fn are(self, one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < self.0
    }
}

/// Runs of places whose tracks hold equally many.
fn joined(known: &[(u64, f64)], sectors: u64, same: Same) -> Vec<Band> {
    let mut runs: Vec<Vec<(u64, f64)>> = Vec::new();
    for one in known {
        match runs.last_mut() {
            Some(run) if same.are(middle_of(run), one.1) => run.push(*one),
            _ => runs.push(vec![*one]),
        }
    }
    // A place alone lies across the end of a zone, or was misread; a zone has several, as more were looked
    // at where it begins. Of a drive of which most places are alone each counts.
    let many: usize = runs.iter().map(Vec::len).filter(|many| *many > 1).sum();
    let least = if many * 2 > known.len() { 2 } else { 1 };
    runs.retain(|run| run.len() >= least);
    let mut bands: Vec<Band> = Vec::new();
    let mut last = 0;
    for run in &runs {
        let per_track = middle_of(run);
        let between = run.iter().fold([f64::MAX, 0.0_f64], |[low, high], one| {
            [low.min(one.1), high.max(one.1)]
        });
        match bands.last_mut() {
            Some(band) if same.are(f64::from(band.per_track), per_track) => {}
            Some(band) => {
                band.end = aligned(last + (run[0].0 - last) / 2);
                let first = band.end;
                bands.push(new(first, per_track, between));
            }
            None => bands.push(new(0, per_track, between)),
        }
        last = run.last().map_or(last, |one| one.0);
    }
    if let Some(band) = bands.last_mut() {
        band.end = sectors;
    }
    bands
}

fn new(first: u64, per_track: f64, between: [f64; 2]) -> Band {
    Band {
        first,
        end: first,
        per_track: per_track.round().max(1.0) as u32,
        between,
    }
}

fn middle_of(run: &[(u64, f64)]) -> f64 {
    let mut values: Vec<f64> = run.iter().map(|one| one.1).collect();
    middle(&mut values)
}

/// Sectors of a track at each of these places.
fn tracks_at<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    places: &[u64],
) -> Result<Vec<(u64, f64)>, P::Error> {
    // Enough reads lie between two of one place that no buffer still holds the first.
    let mut all = places.to_vec();
    while (all.len() as u64) < PLACES {
        let filler = bench.draw(bench.sectors - bench.sectors / 50);
        all.push(filler);
    }
    let mut slopes = vec![0.0; all.len()];
    for (level, window) in WINDOWS.into_iter().enumerate() {
        let windows: Vec<f64> = slopes
            .iter()
            .map(|slope| {
                let track = if *slope > 0.0 { turn.time / slope } else { 1e9 };
                window.min(track * OF_A_TRACK).clamp(2.0 * 8.0, 1e5)
            })
            .collect();
        let mut seen = vec![Vec::new(); all.len()];
        for read in (0..=READS).rev() {
            for (at, place) in all.iter().enumerate() {
                let offset = aligned((windows[at] / READS as f64 * read as f64) as u64);
                // Each level on tracks of its own.
                let first = aligned(*place) + level as u64 * 4096 + offset;
                let span = bench.small(first)?;
                seen[at].push((offset as f64, turn.phase(span.end as f64)));
            }
        }
        for (slope, seen) in slopes.iter_mut().zip(&seen) {
            *slope = fitted(turn, seen, (level > 0).then_some(*slope));
        }
    }
    let found = all.iter().zip(&slopes).filter(|found| *found.1 > 0.0);
    Ok(found
        .map(|(place, slope)| (*place, turn.time / slope))
        .take(places.len())
        .collect())
}

/// Time of a sector: the slope of angles over sectors, which may jump once, where a track ends.
fn fitted(turn: &Turn, seen: &[(f64, f64)], known: Option<f64>) -> f64 {
    let mut ordered = seen.to_vec();
    ordered.sort_by(|one, other| one.0.total_cmp(&other.0));
    ordered.dedup_by(|one, other| one.0 == other.0);
    let mut steps: Vec<f64> = ordered
        .windows(2)
        .map(|pair| turn.phase(pair[1].1 - pair[0].1 + turn.time / 16.0) - turn.time / 16.0)
        .zip(ordered.windows(2))
        .map(|(angle, pair)| angle / (pair[1].0 - pair[0].0))
        .collect();
    let slope = known.unwrap_or_else(|| middle(&mut steps));
    let Some(origin) = ordered.first().copied() else {
        return 0.0;
    };
    // What is left of each angle when the slope that is known so far is taken away.
    let left: Vec<(f64, f64)> = ordered
        .iter()
        .map(|(sector, angle)| {
            let expected = (sector - origin.0) * slope;
            (*sector, turn.nearest(angle - origin.1 - expected))
        })
        .collect();
    // One of the reads may have come late: without each, the best is taken.
    let without = (0..=left.len()).map(|out| {
        let mut kept = left.clone();
        if out < kept.len() {
            kept.remove(out);
        }
        best_with_one_jump(&kept)
    });
    let all: Vec<(f64, f64)> = without.collect();
    let whole = all.last().copied().unwrap_or((0.0, 0.0));
    let best = all.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
    // Leaving one out always helps a little: it has to help much.
    let best = best.filter(|best| best.0 * 20.0 < whole.0 && whole.0 > 1e-6 * turn.time.powi(2));
    slope + best.unwrap_or(whole).1
}

/// Squares of what is left by the best line with one jump, and its slope.
fn best_with_one_jump(points: &[(f64, f64)]) -> (f64, f64) {
    let splits = (0..points.len()).map(|split| line(&points[..split], &points[split..]));
    splits
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((f64::MAX, 0.0))
}

/// Two lines of one slope: the squares that they leave, and the slope.
fn line(one: &[(f64, f64)], other: &[(f64, f64)]) -> (f64, f64) {
    let mut centred = Vec::with_capacity(one.len() + other.len());
    for part in [one, other] {
        let count = part.len().max(1) as f64;
        let x = part.iter().map(|point| point.0).sum::<f64>() / count;
        let y = part.iter().map(|point| point.1).sum::<f64>() / count;
        centred.extend(part.iter().map(|point| (point.0 - x, point.1 - y)));
    }
    let xx: f64 = centred.iter().map(|point| point.0 * point.0).sum();
    let xy: f64 = centred.iter().map(|point| point.0 * point.1).sum();
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let squares = centred
        .iter()
        .map(|point| (point.1 - slope * point.0).powi(2))
        .sum();
    (squares, slope)
}
