//! Whole studies, simulated: how many of the promises ("about 4 more rounds") come true?

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stackrace_stats::{
    Classification, Statement, rounds_to_decide, rounds_to_narrow, state, widest,
};

const ALPHA: f64 = 0.05;
const MARGIN: f64 = 0.05;
const STUDIES: u64 = 1_500;
/// The share of promises that must come true.
const SURE: f64 = 0.8;

/// A study: what is true of the pair, and the rounds so far.
struct Simulated {
    random: Xoshiro256PlusPlus,
    truth: f64,
    deviation: f64,
    logs: Vec<f64>,
}

impl Simulated {
    /// A pair as pairs usually are, on a machine that is quiet (1 %) or loud (40 %).
    fn new(seed: u64, rounds: usize) -> Self {
        let mut new = Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            truth: 0.0,
            deviation: 0.0,
            logs: Vec::new(),
        };
        new.truth = 0.1 * new.normal();
        new.deviation = 0.01 * 40.0_f64.powf(new.share());
        new.until(rounds);
        new
    }

    fn share(&mut self) -> f64 {
        // In (0, 1]: its logarithm is finite.
        ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let length = (-2.0 * self.share().ln()).sqrt();
        length * (std::f64::consts::TAU * self.share()).cos()
    }

    fn until(&mut self, rounds: usize) {
        while self.logs.len() < rounds {
            let log = self.truth + self.deviation * self.normal();
            self.logs.push(log);
        }
    }

    fn said(&self) -> Option<Statement> {
        state(&self.logs, ALPHA, MARGIN)
    }

    fn decided(&self) -> bool {
        let said = self.said();
        said.is_some_and(|said| said.word != Classification::Undecided)
    }

    fn narrow(&self) -> bool {
        let ratio = self.said().map(|said| said.ratio);
        ratio.is_some_and(|ratio| ratio.high / ratio.low <= widest(ratio.estimate))
    }
}

/// Promises made after so many rounds, and those that came true by the round that was promised.
#[expect(
    clippy::print_stdout,
    reason = "with --nocapture the test shows how many promises come true"
)]
fn kept(
    name: &str,
    after: usize,
    promise: impl Fn(&Simulated) -> Option<u32>,
    true_now: impl Fn(&Simulated) -> bool,
) -> f64 {
    let (mut made, mut kept) = (0, 0);
    for seed in 0..STUDIES {
        let mut study = Simulated::new(seed, after);
        if true_now(&study) {
            continue;
        }
        let Some(total) = promise(&study) else {
            continue;
        };
        made += 1;
        // A run looks after each round and ends with the first that says so.
        let mut rounds = after + 1..=total as usize;
        kept += u32::from(rounds.any(|rounds| {
            study.until(rounds);
            true_now(&study)
        }));
    }
    let share = f64::from(kept) / f64::from(made);
    println!("{name} after {after} rounds: {kept} of {made} came true");
    assert!(made >= 100, "{name}: {made} promises say little");
    share
}

#[test]
fn promised_decisions_come_true() {
    for after in [3, 5] {
        let promise = |study: &Simulated| rounds_to_decide(&study.logs, 0.0, ALPHA, MARGIN);
        let share = kept("decision", after, promise, Simulated::decided);
        assert!(share >= SURE, "{share} after {after}");
    }
}

#[test]
fn promised_sizes_come_true() {
    for after in [3, 5, 8] {
        let promise = |study: &Simulated| {
            let estimate = study.said()?.ratio.estimate;
            rounds_to_narrow(&study.logs, 0.0, ALPHA, widest(estimate))
        };
        let share = kept("size", after, promise, Simulated::narrow);
        assert!(share >= SURE, "{share} after {after}");
    }
}
