//! Two treatments, one of them better by a known ratio: the rule that stops early, and a plan of
//! a fixed number of rounds beside it.

use stackrace_stats::two_sided_level;
use stackrace_stats::{Classification, FIRST_LOOK, Ratio, Statement, paired_ratio, state};

use crate::world::{CALM, Disturbance, Noise, World, share};

/// Promised probability of error of a study.
pub(crate) const ALPHA: f64 = 0.05;
/// Rounds a study does at most unless it says otherwise.
const ROUNDS_MAX: u32 = 30;

/// Where a study stopped, and with what.
pub(crate) struct StoppingRule {
    pub(crate) rounds: u32,
    pub(crate) ratio: Ratio,
    pub(crate) word: Classification,
}

/// Whether a word ends a study.
pub(crate) fn decides(word: Classification) -> bool {
    !matches!(
        word,
        Classification::Undecided | Classification::Probably { .. }
    )
}

/// The rule for a pair with a share of the error: stop after the first round that decides.
pub(crate) fn sequential_at(differences: &[f64], alpha: f64, margin: f64) -> StoppingRule {
    let mut looks = (FIRST_LOOK..=differences.len() as u32).map(|rounds| {
        let seen = &differences[..rounds as usize];
        let Statement { ratio, word } = state(seen, alpha, margin).expect("three or more rounds");
        StoppingRule {
            rounds,
            ratio,
            word,
        }
    });
    looks
        .find(|stop| decides(stop.word) || stop.rounds == differences.len() as u32)
        .expect("the last look always stops")
}

/// The rule for a pair alone.
pub(crate) fn sequential(differences: &[f64], margin: f64) -> StoppingRule {
    sequential_at(differences, ALPHA, margin)
}

/// Whether a word says that there is a difference.
pub(crate) fn claims(word: Classification) -> bool {
    matches!(
        word,
        Classification::Better { .. } | Classification::Worse { .. }
    )
}

/// A kind of machine: how trials of A and of B scatter, what happens to the session, and the
/// deviation of the difference of two trials of a round by themselves, on the log scale.
pub(crate) struct SimulatedMachine {
    pub(crate) name: &'static str,
    a: Noise,
    b: Noise,
    session: Disturbance,
    deviation: f64,
}

/// The machines that verdicts are tried on.
pub(crate) fn machines() -> Vec<SimulatedMachine> {
    let wandering = Disturbance {
        drift: 0.0,
        wander: 0.03,
        rho: 0.9,
    };
    let drifting = Disturbance {
        drift: 0.10,
        wander: 0.03,
        rho: 0.97,
    };
    let kinds = [
        ("normal", Noise::Normal, Noise::Normal, CALM),
        (
            "heavy tails (t, 3 degrees)",
            Noise::Heavy,
            Noise::Heavy,
            CALM,
        ),
        (
            "1 trial in 20 five times as far off",
            Noise::Contaminated,
            Noise::Contaminated,
            CALM,
        ),
        ("skewed (exponential)", Noise::Skewed, Noise::Skewed, CALM),
        ("skewed, B alone", Noise::Normal, Noise::Skewed, CALM),
        ("bimodal", Noise::Bimodal, Noise::Bimodal, CALM),
        ("bimodal, B alone", Noise::Normal, Noise::Bimodal, CALM),
        (
            "autocorrelated, 0.9",
            Noise::Normal,
            Noise::Normal,
            wandering,
        ),
        (
            "autocorrelated, 0.97, drift of 10 %",
            Noise::Normal,
            Noise::Normal,
            drifting,
        ),
        (
            "autocorrelated, 0.9, and skewed",
            Noise::Skewed,
            Noise::Skewed,
            wandering,
        ),
    ];
    let machine = |(name, a, b, session)| SimulatedMachine {
        name,
        a,
        b,
        session,
        deviation: 0.03,
    };
    kinds.into_iter().map(machine).collect()
}

/// A calm machine of normal noise.
pub(crate) fn calm(deviation: f64) -> SimulatedMachine {
    SimulatedMachine {
        name: "normal",
        a: Noise::Normal,
        b: Noise::Normal,
        session: CALM,
        deviation,
    }
}

impl SimulatedMachine {
    /// Log differences of complete rounds, each in random order, where B is better by `truth`.
    fn rounds(&self, world: &mut World, rounds: u32, truth: f64) -> Vec<f64> {
        let session = world.session(2 * rounds as usize, self.session);
        let own = self.deviation / std::f64::consts::SQRT_2;
        session
            .chunks_exact(2)
            .map(|trials| {
                let (at_a, at_b) = if world.uniform() < 0.5 {
                    (trials[0], trials[1])
                } else {
                    (trials[1], trials[0])
                };
                let a = at_a + own * world.draw(self.a);
                let b = at_b + own * world.draw(self.b);
                truth + b - a
            })
            .collect()
    }
}

/// What a machine does to the promises; shares of studies.
pub(crate) struct Promise {
    pub(crate) machine: &'static str,
    /// Claim a difference where there is none, at any look.
    pub(crate) false_claims: f64,
    /// Any of the intervals at the looks misses a difference of 10 %. (Of no difference this is the
    /// same as a false claim.)
    pub(crate) missed_ten: f64,
    /// The interval at the stop misses it, of a difference of 10 %.
    pub(crate) missed_at_stop: f64,
}

/// The promises on every machine.
pub(crate) fn promises(seed: u64, studies: u32) -> Vec<Promise> {
    let missed = |differences: &[f64], truth: f64| {
        (FIRST_LOOK..=ROUNDS_MAX).any(|n| {
            let seen = &differences[..n as usize];
            let ratio = paired_ratio(seen, two_sided_level(ALPHA, n)).expect("three or more");
            outside(&ratio, truth)
        })
    };
    let ten = f64::ln(1.10);
    let of = |(at, machine): (usize, SimulatedMachine)| {
        let mut world = World::new(seed + at as u64);
        let (mut false_claims, mut missed_ten, mut at_stop) = (0, 0, 0);
        for _ in 0..studies {
            let none = machine.rounds(&mut world, ROUNDS_MAX, 0.0);
            // The least margin: nothing but a false claim stops early, which is the worst case.
            false_claims += u32::from(claims(sequential(&none, 0.001).word));
            let some = machine.rounds(&mut world, ROUNDS_MAX, ten);
            missed_ten += u32::from(missed(&some, ten));
            at_stop += u32::from(outside(&sequential(&some, 0.05).ratio, ten));
        }
        Promise {
            machine: machine.name,
            false_claims: share(false_claims, studies),
            missed_ten: share(missed_ten, studies),
            missed_at_stop: share(at_stop, studies),
        }
    };
    machines().into_iter().enumerate().map(of).collect()
}

fn outside(ratio: &Ratio, truth: f64) -> bool {
    truth < ratio.low.ln() || ratio.high.ln() < truth
}

/// What a study finds of a difference, and what it takes.
pub(crate) struct Power {
    /// Deviation of the log difference of a round.
    pub(crate) deviation: f64,
    /// True difference, 0.05 is 5 %.
    pub(crate) difference: f64,
    /// Studies that stop early: shares that find it, and that call it none.
    pub(crate) found: f64,
    pub(crate) called_none: f64,
    /// Their mean rounds.
    pub(crate) rounds: f64,
    /// Share that 30 rounds and one plain interval find.
    pub(crate) fixed_found: f64,
    /// Rounds that a plain interval needs to find it nine times of ten; none: more than 1,000.
    pub(crate) fixed_rounds: Option<u32>,
}

/// Power of the rule with a margin, for each noise and difference.
pub(crate) fn powers(seed: u64, studies: u32, margin: f64) -> Vec<Power> {
    let mut rows = Vec::new();
    for deviation in [0.03, 0.10] {
        for difference in [0.02, 0.05, 0.10, 0.50] {
            let mut world = World::new(seed + rows.len() as u64);
            let machine = calm(deviation);
            let truth = f64::ln_1p(difference);
            let (mut found, mut none, mut rounds, mut fixed) = (0, 0, 0, 0);
            for _ in 0..studies {
                let differences = machine.rounds(&mut world, ROUNDS_MAX, truth);
                let stop = sequential(&differences, margin);
                found += u32::from(matches!(stop.word, Classification::Better { .. }));
                none += u32::from(matches!(stop.word, Classification::NoDifference { .. }));
                rounds += stop.rounds;
                fixed += u32::from(plainly_found(&differences));
            }
            rows.push(Power {
                deviation,
                difference,
                found: share(found, studies),
                called_none: share(none, studies),
                rounds: f64::from(rounds) / f64::from(studies),
                fixed_found: share(fixed, studies),
                fixed_rounds: fixed_rounds(&mut world, &machine, truth, studies),
            });
        }
    }
    rows
}

fn plainly_found(differences: &[f64]) -> bool {
    paired_ratio(differences, ALPHA).is_some_and(|ratio| ratio.low > 1.0)
}

/// The least number of rounds with which nine of ten studies find `truth`.
fn fixed_rounds(
    world: &mut World,
    machine: &SimulatedMachine,
    truth: f64,
    studies: u32,
) -> Option<u32> {
    let mut power = |n: u32| {
        let hits = (0..studies).filter(|_| plainly_found(&machine.rounds(world, n, truth)));
        share(hits.count() as u32, studies)
    };
    let (mut first, mut last) = (2_u32, 1_024_u32);
    while first < last {
        let middle = first.midpoint(last);
        if power(middle) >= 0.9 {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    (first < 1_024).then_some(first)
}
