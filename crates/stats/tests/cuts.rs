//! Whole studies of power cuts, simulated: how often is any statement of any look wrong?

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stackrace_stats::{BrokenCuts, CUT_LOOKS, cut_difference_p, cut_look_level};

const ALPHA: f64 = 0.05;
const STUDIES: u32 = 4_000;

/// Cuts of one configuration, one after the other.
struct Cuts {
    random: Xoshiro256PlusPlus,
    share: f64,
    seen: BrokenCuts,
}

impl Cuts {
    fn new(seed: u64, share: f64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            share,
            seen: BrokenCuts { broken: 0, cuts: 0 },
        }
    }

    fn until(&mut self, cuts: u32) -> BrokenCuts {
        while self.seen.cuts < cuts {
            let draw = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            self.seen.broken += u32::from(draw < self.share);
            self.seen.cuts += 1;
        }
        self.seen
    }
}

/// The share of studies in which any look is wrong.
#[expect(
    clippy::print_stdout,
    reason = "with --nocapture the test shows how much of its error is used"
)]
fn wrong(name: &str, study: impl Fn(u64) -> bool) -> f64 {
    let wrong = (0..u64::from(STUDIES)).filter(|seed| study(*seed)).count();
    let share = wrong as f64 / f64::from(STUDIES);
    println!("{name}: {:.2} % of {STUDIES} studies", share * 100.0);
    share
}

#[test]
fn no_bound_of_any_look_is_wrong_more_often_than_allowed() {
    let level = cut_look_level(ALPHA);
    for share in [0.0, 0.002, 0.01, 0.03, 0.1, 0.3, 0.5, 0.9] {
        let name = format!(
            "upper bound, {:.1} % of cuts break a promise",
            share * 100.0
        );
        let error = wrong(&name, |seed| {
            let mut cuts = Cuts::new(seed, share);
            CUT_LOOKS
                .iter()
                .any(|look| cuts.until(*look).upper_bound(level).unwrap() < share)
        });
        assert!(error <= ALPHA, "{name}: {error}");
    }
}

#[test]
fn equal_configurations_are_told_apart_no_more_often_than_allowed() {
    let level = cut_look_level(ALPHA);
    for share in [0.01, 0.1, 0.5, 0.9] {
        let name = format!("difference of equals, {:.0} %", share * 100.0);
        let error = wrong(&name, |seed| {
            let mut one = Cuts::new(seed, share);
            let mut other = Cuts::new(!seed, share);
            CUT_LOOKS.iter().any(|look| {
                cut_difference_p(one.until(*look), other.until(*look)).unwrap() <= level
            })
        });
        assert!(error <= ALPHA, "{name}: {error}");
    }
}

/// A drive that ignores flushes breaks a promise in nearly every cut: the first look names it.
#[test]
fn a_liar_is_named_at_the_first_look() {
    let level = cut_look_level(ALPHA);
    let missed = wrong("a liar (95 % of cuts) missed at the first look", |seed| {
        let mut liar = Cuts::new(seed, 0.95);
        let mut honest = Cuts::new(!seed, 0.0);
        let first = CUT_LOOKS[0];
        cut_difference_p(liar.until(first), honest.until(first)).unwrap() > level
    });
    assert!(missed <= 0.01, "{missed}");
}
