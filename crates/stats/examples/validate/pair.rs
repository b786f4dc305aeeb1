//! Two treatments, one of them better by a known ratio: the rule that stops early, and a plan of
//! a fixed number of rounds beside it.

use stackrace_stats::{
    Classification, FIRST_LOOK, Ratio, Statement, WithoutOrder, classify, paired_ratio,
    rounds_to_decide, state_in_order,
};

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

/// Rounds of a pair.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Log differences.
    pub(crate) differences: Vec<f64>,
    /// Whether A came first in each; empty: nothing is known of the order.
    pub(crate) a_first: Vec<bool>,
}

impl Rounds {
    /// What the first `rounds` of them say.
    fn said(&self, rounds: u32, alpha: f64, margin: f64) -> Statement {
        let seen = rounds as usize;
        let differences = &self.differences[..seen];
        let order = self.a_first.get(..seen);
        let without = order.and_then(|order| WithoutOrder::of(differences, order));
        state_in_order(differences, without.as_ref(), 0.0, alpha, margin)
            .expect("three or more rounds")
    }

    fn extend(&mut self, more: Self) {
        self.differences.extend(more.differences);
        self.a_first.extend(more.a_first);
    }
}

/// The rule for a pair with a share of the error: stop after the first round that decides.
fn sequential_at(rounds: &Rounds, alpha: f64, margin: f64) -> StoppingRule {
    let last = rounds.differences.len() as u32;
    let mut looks = (FIRST_LOOK..=last).map(|n| {
        let Statement { ratio, word, .. } = rounds.said(n, alpha, margin);
        StoppingRule {
            rounds: n,
            ratio,
            word,
        }
    });
    looks
        .find(|stop| decides(stop.word) || stop.rounds == last)
        .expect("the last look always stops")
}

/// The rule for a pair alone.
pub(crate) fn in_order(rounds: &Rounds, margin: f64) -> StoppingRule {
    sequential_at(rounds, ALPHA, margin)
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
    /// How much noisier B is than A.
    louder: f64,
    /// What the second trial of a round loses to what the first one left behind, on the log scale.
    carried: f64,
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
        louder: 1.0,
        carried: 0.0,
    };
    kinds.into_iter().map(machine).chain(unequal()).collect()
}

/// Machines that do not treat both alike.
fn unequal() -> [SimulatedMachine; 3] {
    [
        SimulatedMachine {
            name: "B three times as noisy",
            louder: 3.0,
            ..calm(0.03)
        },
        SimulatedMachine {
            name: "B three times as noisy, and skewed",
            b: Noise::Skewed,
            louder: 3.0,
            ..calm(0.03)
        },
        SimulatedMachine {
            name: "the second of a round is 5 % slower (carry-over)",
            carried: 0.05,
            ..calm(0.03)
        },
    ]
}

/// A calm machine of normal noise.
pub(crate) fn calm(deviation: f64) -> SimulatedMachine {
    SimulatedMachine {
        name: "normal",
        a: Noise::Normal,
        b: Noise::Normal,
        session: CALM,
        deviation,
        louder: 1.0,
        carried: 0.0,
    }
}

impl SimulatedMachine {
    /// Complete rounds, in balanced order, where B is better by `truth`.
    fn rounds(&self, world: &mut World, rounds: u32, truth: f64) -> Rounds {
        let session = world.session(2 * rounds as usize, self.session);
        let own = self.deviation / std::f64::consts::SQRT_2;
        let mut a_was_first: Option<bool> = None;
        let mut all = Rounds::default();
        for trials in session.chunks_exact(2) {
            let (first, second) = (trials[0], trials[1] - self.carried);
            // Of two rounds, each configuration is first in one; which one, is drawn.
            let a_first = match a_was_first.take() {
                Some(before) => !before,
                None => *a_was_first.insert(world.uniform() < 0.5),
            };
            let (at_a, at_b) = if a_first {
                (first, second)
            } else {
                (second, first)
            };
            let a = at_a + own * world.draw(self.a);
            let b = at_b + self.louder * own * world.draw(self.b);
            all.differences.push(truth + b - a);
            all.a_first.push(a_first);
        }
        all
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
    /// "No difference larger than 5 %" where there is one of 5 %.
    pub(crate) false_none: f64,
}

/// The promises on every machine.
pub(crate) fn promises(seed: u64, studies: u32) -> Vec<Promise> {
    let missed = |rounds: &Rounds, truth: f64| {
        // Without a margin, the interval is the two-sided one.
        (FIRST_LOOK..=ROUNDS_MAX).any(|n| outside(&rounds.said(n, ALPHA, 0.0).ratio, truth))
    };
    let ten = f64::ln(1.10);
    let of = |(at, machine): (usize, SimulatedMachine)| {
        let mut world = World::new(seed + at as u64);
        let (mut false_claims, mut missed_ten, mut at_stop, mut none_at_margin) = (0, 0, 0, 0);
        for _ in 0..studies {
            let none = machine.rounds(&mut world, ROUNDS_MAX, 0.0);
            // The least margin: nothing but a false claim stops early, which is the worst case.
            false_claims += u32::from(claims(in_order(&none, 0.001).word));
            let some = machine.rounds(&mut world, ROUNDS_MAX, ten);
            missed_ten += u32::from(missed(&some, ten));
            at_stop += u32::from(outside(&in_order(&some, 0.05).ratio, ten));
            // Just beyond the margin; what is called different before is not asked any more.
            let margin = machine.rounds(&mut world, ROUNDS_MAX, f64::ln(1.0501));
            let word = in_order(&margin, 0.05).word;
            none_at_margin += u32::from(matches!(word, Classification::NoDifference { .. }));
        }
        Promise {
            machine: machine.name,
            false_claims: share(false_claims, studies),
            missed_ten: share(missed_ten, studies),
            missed_at_stop: share(at_stop, studies),
            false_none: share(none_at_margin, studies),
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
                let all = machine.rounds(&mut world, ROUNDS_MAX, truth);
                let stop = in_order(&all, margin);
                found += u32::from(matches!(stop.word, Classification::Better { .. }));
                none += u32::from(matches!(stop.word, Classification::NoDifference { .. }));
                rounds += stop.rounds;
                fixed += u32::from(plainly_found(&all.differences));
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
        let hits =
            (0..studies).filter(|_| plainly_found(&machine.rounds(world, n, truth).differences));
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

/// Rounds until a question is decided.
pub(crate) struct Decided {
    /// Deviation of the log difference of a round.
    pub(crate) deviation: f64,
    /// How much slower the second of a round is, on the log scale.
    pub(crate) carried: f64,
    /// True ratio.
    pub(crate) ratio: f64,
    /// Mean rounds, 20 where 20 do not decide, and shares decided by 12 and by 20.
    pub(crate) rounds: f64,
    pub(crate) by_12: f64,
    pub(crate) by_20: f64,
    /// Mean rounds and share decided by 12 of five planned looks that share the error equally, with
    /// one interval for both questions: the rule before this one.
    pub(crate) five_looks: (f64, f64),
}

/// How soon the rule decides with a margin of 5 %.
pub(crate) fn decisions(seed: u64, studies: u32) -> Vec<Decided> {
    let mut rows = Vec::new();
    let machines = [
        (0.03, 0.0),
        (0.10, 0.0),
        (0.20, 0.0),
        (0.03, 0.05),
        (0.03, 0.20),
    ];
    for (deviation, carried) in machines {
        for ratio in [1.0_f64, 1.03, 1.05, 1.10, 1.20] {
            let mut world = World::new(seed + rows.len() as u64);
            let machine = SimulatedMachine {
                carried,
                ..calm(deviation)
            };
            let (mut rounds, mut by_12, mut by_20, mut old_rounds, mut old_by_12) = (0, 0, 0, 0, 0);
            for _ in 0..studies {
                let all = machine.rounds(&mut world, 20, ratio.ln());
                let stop = in_order(&all, 0.05);
                let old = five_looks(&all.differences, 0.05);
                rounds += stop.rounds;
                by_12 += u32::from(decides(stop.word) && stop.rounds <= 12);
                by_20 += u32::from(decides(stop.word));
                old_rounds += old.unwrap_or(20);
                old_by_12 += u32::from(old.is_some_and(|n| n <= 12));
            }
            let mean = |rounds: u32| f64::from(rounds) / f64::from(studies);
            rows.push(Decided {
                deviation,
                carried,
                ratio,
                rounds: mean(rounds),
                by_12: share(by_12, studies),
                by_20: share(by_20, studies),
                five_looks: (mean(old_rounds), share(old_by_12, studies)),
            });
        }
    }
    rows
}

/// The rounds after which five planned looks decide, if they do.
fn five_looks(differences: &[f64], margin: f64) -> Option<u32> {
    [3_u32, 5, 8, 12, 20].into_iter().find(|&n| {
        let ratio = paired_ratio(&differences[..n as usize], ALPHA / 5.0).expect("three or more");
        classify(&ratio, margin) != Classification::Undecided
    })
}

/// What became of the projections of studies that were undecided.
pub(crate) struct Projected {
    /// Rounds after which they were made.
    pub(crate) after: u32,
    /// Deviation of the log difference of a round, and the true ratio.
    pub(crate) deviation: f64,
    pub(crate) ratio: f64,
    /// Studies still undecided after these rounds, and those of them that could not tell yet.
    pub(crate) undecided: u32,
    pub(crate) not_told: u32,
    /// Projections that came true: decided within the rounds that were said to be enough.
    pub(crate) came_true: u32,
    /// The median of the further rounds.
    pub(crate) median: u32,
}

/// Projections after 5 and 10 rounds, with a margin of 5 %.
pub(crate) fn projections(seed: u64, studies: u32) -> Vec<Projected> {
    let mut rows = Vec::new();
    for after in [5_u32, 10] {
        for deviation in [0.03, 0.10, 0.20] {
            for ratio in [1.0_f64, 1.03, 1.10, 1.20] {
                let mut world = World::new(seed + rows.len() as u64);
                rows.push(projected(&mut world, studies, after, (deviation, ratio)));
            }
        }
    }
    rows
}

fn projected(
    world: &mut World,
    studies: u32,
    after: u32,
    (deviation, ratio): (f64, f64),
) -> Projected {
    let machine = calm(deviation);
    let (mut undecided, mut not_told, mut came_true) = (0, 0, 0);
    let mut further: Vec<u32> = Vec::new();
    for _ in 0..studies {
        let mut all = machine.rounds(world, after, ratio.ln());
        if decides(in_order(&all, 0.05).word) {
            continue;
        }
        undecided += 1;
        let Some(total) = rounds_to_decide(&all.differences, 0.0, ALPHA, 0.05) else {
            not_told += 1;
            continue;
        };
        further.push(total - after);
        while (all.differences.len() as u32) < total {
            all.extend(machine.rounds(world, 2, ratio.ln()));
            let said = all.said(all.differences.len() as u32, ALPHA, 0.05);
            if decides(said.word) {
                came_true += 1;
                break;
            }
        }
    }
    further.sort_unstable();
    Projected {
        after,
        deviation,
        ratio,
        undecided,
        not_told,
        came_true,
        median: further.get(further.len() / 2).copied().unwrap_or(0),
    }
}
