//! Movements of the arm.
//!
//! A read waits for the platter after each movement, for anything up to a turn. So of many reads over one
//! distance the times fill one turn: their shortest and their longest both tell the time of the movement.

use super::buffer::Buffer;
use super::near::{self, near};
use super::probe::{Bench, Probe, STEP, aligned, middle};
use super::turn::Turn;
use super::zones::Zones;

/// Reads over each distance.
const READS: u64 = 96;
/// Reads by which a movement is told at least.
const ENOUGH: usize = 20;
/// Distances beyond this part of the stroke lie evenly, before it each is so much farther than the last.
const EVEN: u32 = 32;
const FARTHER: f64 = 1.3;
/// Share of a turn by which a read may be longer than the shortest and a turn.
const SPARE: f64 = 0.02;
/// Share of a turn to which the time onto the same track must be known.
const KNOWN: f64 = 0.05;

/// The movements: times from the command to the head over the track, with the time of the command, ns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arm {
    /// Distance in cylinders, and time.
    pub(super) seeks: Vec<(u32, f64)>,
    /// Half of the distances are known to so much, ns.
    pub(super) within: f64,
    /// To another surface; `None` where surfaces do not show.
    pub(super) switch: Option<f64>,
    /// Onto the same track again, at least and at most; `None` where reads do not show it.
    pub(super) again: Option<[f64; 2]>,
    /// Share of all reads that took longer than they can.
    pub(super) disturbed: f64,
}

/// What times over one distance tell.
struct Edge {
    time: f64,
    /// Difference between what the shortest and what the longest tell.
    apart: f64,
    /// Reads that took longer than they can.
    longer: usize,
}

/// The beginning of the turn that these times fill.
fn edge(turn: &Turn, times: &[f64]) -> Edge {
    let shortest = times.iter().copied().fold(f64::MAX, f64::min);
    let most = shortest + turn.time * (1.0 + SPARE);
    let longest = times
        .iter()
        .copied()
        .filter(|time| *time <= most)
        .fold(shortest, f64::max);
    Edge {
        time: (shortest + longest - turn.time) / 2.0,
        apart: (turn.time - (longest - shortest)).abs(),
        longer: times.iter().filter(|time| **time > most).count(),
    }
}

pub(super) fn arm<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    zones: &Zones,
    buffer: &Buffer,
) -> Result<Arm, P::Error> {
    let cylinders = zones.all_cylinders();
    let near = near(bench, turn, zones, buffer)?;
    let (mut seeks, mut apart) = (Vec::new(), Vec::new());
    let (mut longer, mut all) = (0, 0);
    let mut told = |distance: u32, times: &[f64]| {
        if times.len() < ENOUGH {
            return;
        }
        let found = edge(turn, times);
        seeks.push((distance, found.time));
        apart.push(found.apart);
        longer += found.longer;
        all += times.len();
    };
    for (distance, times) in (1..).zip(&near.seeks) {
        told(distance, times);
    }
    let known = near.seeks.iter().filter(|times| times.len() >= ENOUGH);
    let known = known.count() as u32;
    // Where angles did not tell what lies between, the nearest distances are as good as their places.
    let nearest = (1..=near::FARTHEST + 1).filter(|_| known == 0);
    let nearest = nearest.filter(|distance| *distance < cylinders);
    for distance in nearest.chain(distances(cylinders)) {
        let mut times = Vec::new();
        for _ in 0..READS {
            times.extend(over(bench, turn, zones, buffer, distance)?);
        }
        told(distance, &times);
    }
    let enough = |times: &[f64]| (times.len() >= ENOUGH).then(|| edge(turn, times).time.max(0.0));
    Ok(Arm {
        seeks: rising(seeks),
        within: middle(&mut apart),
        switch: enough(&near.switch).filter(|_| zones.heads_seen),
        again: again(turn, &near.same),
        disturbed: longer as f64 / f64::from(all.max(1) as u32),
    })
}

/// The time onto the same track again, at least and at most: the longest that lost a turn, and the
/// shortest that did not.
fn again(turn: &Turn, times: &[f64]) -> Option<[f64; 2]> {
    let lost = times.iter().map(|time| time - turn.time);
    let least = lost
        .filter(|time| *time < turn.time * SPARE * 10.0)
        .fold(0.0, f64::max);
    let most = times.iter().copied().fold(f64::MAX, f64::min);
    (times.len() >= ENOUGH && most - least < turn.time * KNOWN && most >= least)
        .then_some([least, most])
}

fn distances(cylinders: u32) -> Vec<u32> {
    // Some cylinders to begin at are left over: no buffer may hold them.
    let farthest = (cylinders - cylinders / 100).saturating_sub(2).max(1);
    let even = (farthest / EVEN).max(1);
    let mut distances: Vec<u32> = Vec::new();
    let mut distance = 1.0_f64;
    while (distance as u32) < even {
        distances.push(distance as u32);
        distance = (distance * FARTHER).max(distance + 1.0);
    }
    distances.extend(
        (1..=EVEN).map(|at| (f64::from(farthest) / f64::from(EVEN) * f64::from(at)) as u32),
    );
    distances.retain(|distance| (near::FARTHEST + 2..cylinders).contains(distance));
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// Time from a command to the head over the track, that far from the read before it, with the wait for
/// the platter. `None`: it came from the buffer.
fn over<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: &Turn,
    zones: &Zones,
    buffer: &Buffer,
    distance: u32,
) -> Result<Option<f64>, P::Error> {
    let from = bench.draw(u64::from(zones.all_cylinders() - distance)) as u32;
    let mut ends = [from, from + distance];
    // Reading ahead goes up: what is near is sought downwards.
    let near = zones.cylinder(from).1 * u64::from(distance) < 1 << 17;
    if near || bench.draw(2) == 0 {
        ends.reverse();
    }
    let mut places = [0; 2];
    for (place, end) in places.iter_mut().zip(ends) {
        let (first, sectors) = zones.cylinder(end);
        *place = aligned(first + bench.draw(sectors) + STEP - 1);
    }
    let first = bench.small(places[0])?.ns();
    let took = bench.small(places[1])?.ns();
    let passes = buffer.passes(turn, zones.per_track(places[1]));
    // The arm stays where it is if the first came from the buffer.
    let both = buffer.missed(first) && buffer.missed(took);
    Ok(both.then_some(took - passes))
}

/// Times that never fall as the distance grows: runs that do are taken together.
fn rising(seeks: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let mut runs: Vec<(Vec<u32>, f64)> = Vec::new();
    for (distance, time) in seeks {
        runs.push((vec![distance], time));
        while let [.., before, last] = &runs[..] {
            if before.1 <= last.1 {
                break;
            }
            let (a, b) = (before.0.len() as f64, last.0.len() as f64);
            let time = (before.1 * a + last.1 * b) / (a + b);
            let mut distances = before.0.clone();
            distances.extend(&last.0);
            runs.truncate(runs.len() - 2);
            runs.push((distances, time));
        }
    }
    runs.into_iter()
        .flat_map(|(distances, time)| distances.into_iter().map(move |at| (at, time)))
        .collect()
}
