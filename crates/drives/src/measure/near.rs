//! Movements so short that it matters which track and cylinder a place is on.
//!
//! Where tracks end is not known. But two reads tell by their angles what lies between them: the end of a
//! track adds the skew of tracks, the end of a cylinder that of cylinders.

use super::buffer::Buffer;
use super::probe::{Bench, Probe, STEP, aligned};
use super::turn::Turn;
use super::zones::Zones;

/// Pairs of reads at most a few tracks apart.
const CLOSE: u64 = 480;
/// Pairs over each of the next distances, and the last of these.
const PAIRS: u64 = 96;
pub(super) const FARTHEST: u32 = 6;
/// Angles that differ by less than so many sectors are the same.
const SAME_SECTORS: f64 = 1.6;

/// Times of reads by what lay between them and the read before, ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Near {
    /// Nothing: the same track.
    pub(super) same: Vec<f64>,
    /// The end of a track.
    pub(super) switch: Vec<f64>,
    /// Ends of cylinders: one, two, and so on.
    pub(super) seeks: Vec<Vec<f64>>,
}

/// What lies between two reads: cylinders, and whether they are on other surfaces.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Between {
    cylinders: u32,
    tracks: u32,
}

pub(super) fn near<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    zones: &Zones,
    buffer: &Buffer,
) -> Result<Near, P::Error> {
    let mut near = Near {
        seeks: vec![Vec::new(); FARTHEST as usize + 2],
        ..Near::default()
    };
    for distance in 0..=FARTHEST {
        let pairs = if distance == 0 { CLOSE } else { PAIRS };
        for number in 0..pairs {
            let high = aligned(bench.draw(bench.sectors));
            let at = zones.at(high);
            let band = &zones.bands[at];
            let track = u64::from(band.per_track);
            let cylinder = track * u64::from(zones.heads);
            let apart = match distance {
                // Of a pair within a track the second waits nearly no time if it is nearly a track before.
                0 if number % 2 == 0 => track * 7 / 10 + bench.draw(track * 3 / 10),
                0 => track + bench.draw(track * 9 / 10),
                _ => u64::from(distance) * cylinder - track / 2 + bench.draw(track),
            };
            let Some(low) = high.checked_sub(apart).filter(|low| *low > band.first) else {
                continue;
            };
            let low = aligned(low);
            let first = bench.small(high)?;
            let second = bench.small(low)?;
            if !buffer.missed(first.ns()) || !buffer.missed(second.ns()) {
                continue;
            }
            let sector = turn.time / track as f64;
            let moved = first.end as f64 - second.end as f64 - (high - low) as f64 * sector;
            let angle = turn.phase(moved) / turn.time;
            let time = second.ns() - buffer.passes(turn, track as f64);
            match between(turn, zones, at, distance, angle) {
                Some(Between {
                    cylinders: 0,
                    tracks: 0,
                }) => near.same.push(time),
                Some(Between { cylinders: 0, .. }) => near.switch.push(time),
                Some(Between { cylinders, .. }) => {
                    if let Some(times) = near.seeks.get_mut(cylinders as usize - 1) {
                        times.push(time);
                    }
                }
                None => {}
            }
        }
    }
    Ok(near)
}

/// What adds this angle between places about so many cylinders apart; `None` if nothing does, or two
/// different things do.
fn between(turn: &Turn, zones: &Zones, at: usize, distance: u32, angle: f64) -> Option<Between> {
    let [track, cylinder] = zones.skews[at];
    let same = turn.spread(SAME_SECTORS, f64::from(zones.bands[at].per_track));
    let (heads, far) = (i64::from(zones.heads), i64::from(distance));
    // Ends of tracks within cylinders, and of cylinders.
    let close: &[(i64, i64)] = &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2)];
    let around: &[(i64, i64)] = &[(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (-1, 1), (1, -1)];
    let mut found: Option<Between> = None;
    for (tracks, cylinders) in if distance == 0 { close } else { around } {
        // A track that is a cylinder has no other surface.
        let (tracks, cylinders) = (tracks + far * (heads - 1), cylinders + far);
        if cylinders < 0 || heads == 1 && tracks != 0 || heads == 2 && distance == 0 && tracks > 1 {
            continue;
        }
        let expected = tracks as f64 * track + cylinders as f64 * cylinder;
        let off = (angle - expected).rem_euclid(1.0);
        if off.min(1.0 - off) > same {
            continue;
        }
        let one = Between {
            cylinders: cylinders as u32,
            tracks: u32::from(tracks != 0),
        };
        let alike = |other: Between| {
            other.cylinders == one.cylinders && (one.cylinders > 0 || other.tracks == one.tracks)
        };
        if found.is_some_and(|other| !alike(other)) {
            return None;
        }
        found = Some(one);
    }
    found
}

impl Buffer {
    /// Returns true if a small read that took so long needed the platter.
    pub(super) fn missed(&self, took: f64) -> bool {
        self.segments == 0 || took > self.hit + STEP as f64 * self.bus + self.longer
    }
}
