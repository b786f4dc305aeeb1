//! A study of two factors whose effects are known: does the whole table hold at once?

use stackrace_stats::{FIRST_LOOK, Term, effects};

use crate::pair::ALPHA;
use crate::world::{Disturbance, World, share};

/// Rounds of each study.
const ROUNDS: u32 = 12;
/// Deviation of one trial.
const NOISE: f64 = 0.02;

/// What comes of the table of a study; shares.
pub(crate) struct FactorialTable {
    pub(crate) name: &'static str,
    /// Rows of the table.
    pub(crate) rows: usize,
    /// Studies in which any row at any look misses the truth.
    pub(crate) missed_any: f64,
    /// Rows at the last look that miss it.
    pub(crate) missed_row: f64,
    /// Studies that find the interaction at the last look.
    pub(crate) interaction_found: f64,
}

/// Two by four treatments; `truth` is the logarithm of each by (first, second) level.
fn table(
    name: &'static str,
    seed: u64,
    studies: u32,
    truth: impl Fn(usize, usize) -> f64,
) -> FactorialTable {
    let treatments: Vec<Vec<usize>> = (0..8).map(|at| vec![at / 4, at % 4]).collect();
    let found = effects(&treatments);
    let alpha = ALPHA / found.len() as f64;
    let session = Disturbance {
        drift: 0.10,
        wander: 0.03,
        rho: 0.9,
    };
    let exact: Vec<Vec<f64>> = treatments
        .iter()
        .map(|at| vec![truth(at[0], at[1])])
        .collect();
    let mut world = World::new(seed);
    let (mut any, mut missed, mut interaction) = (0, 0, 0);
    for _ in 0..studies {
        let values = study(&mut world, session, &exact);
        let mut study_missed = false;
        for effect in &found {
            let right = effect.rounds(&exact)[0].1;
            for look in FIRST_LOOK..=ROUNDS {
                let seen: Vec<Vec<f64>> =
                    values.iter().map(|v| v[..look as usize].to_vec()).collect();
                // Without a margin every interval is two-sided.
                let ratio = effect
                    .state(&seen, &[], alpha, 0.0)
                    .expect("three or more")
                    .ratio;
                let outside = right < ratio.low.ln() || ratio.high.ln() < right;
                study_missed |= outside;
                if look == ROUNDS {
                    missed += u32::from(outside);
                    let last = Term::Interaction {
                        factor: 0,
                        level: 1,
                        other: 1,
                        at: 3,
                    };
                    interaction += u32::from(effect.term == last && ratio.excludes_one());
                }
            }
        }
        any += u32::from(study_missed);
    }
    FactorialTable {
        name,
        rows: found.len(),
        missed_any: share(any, studies),
        missed_row: share(missed, studies * found.len() as u32),
        interaction_found: share(interaction, studies),
    }
}

/// Values `[treatment][round]` of a study in rounds of random order.
fn study(world: &mut World, session: Disturbance, exact: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let k = exact.len();
    let session = world.session(k * ROUNDS as usize, session);
    let mut values = vec![Vec::new(); k];
    for round in session.chunks_exact(k) {
        let mut order: Vec<usize> = (0..k).collect();
        for at in (1..k).rev() {
            order.swap(at, (world.uniform() * (at + 1) as f64) as usize);
        }
        for (disturbance, treatment) in round.iter().zip(order) {
            values[treatment].push(exact[treatment][0] + disturbance + NOISE * world.normal());
        }
    }
    values
}

/// The tables of studies with nothing to find, with two main effects, and with one that is there
/// on one level of the other factor alone.
pub(crate) fn tables(seed: u64, studies: u32) -> Vec<FactorialTable> {
    vec![
        table("no factor matters", seed, studies, |_, _| 0.0),
        table("both matter, by themselves", seed + 1, studies, |a, b| {
            0.1 * a as f64 - 0.05 * b as f64
        }),
        table(
            "the first by 20 %, at the last level of the second alone",
            seed + 2,
            studies,
            |a, b| {
                if a == 1 && b == 3 {
                    f64::ln(1.20)
                } else {
                    0.03 * b as f64
                }
            },
        ),
    ]
}
