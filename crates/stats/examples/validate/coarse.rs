//! Two equal treatments whose figures are printed with few digits, and two that are not equal: how often
//! the verdict is wrong, with the resolution in its interval and without.

use stackrace_stats::{
    Classification, FIRST_LOOK, Statement, WithoutOrder, resolution, state_in_order,
};

use crate::pair::{ALPHA, claims, decides};
use crate::world::{World, share};

/// Rounds a study does at most.
const ROUNDS: usize = 20;
/// A margin below every step: what says "no difference" within it would be known better than it is.
const MARGIN_NONE: f64 = 0.001;
/// The usual margin.
const MARGIN: f64 = 0.05;

/// How a tool shortens what it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortened {
    /// 12.9 is 13.
    Rounded,
    /// 12.9 is 12.
    CutOff,
}

/// One row: figures of so many digits.
#[derive(Debug)]
pub(crate) struct CoarseRow {
    pub(crate) digits: i32,
    pub(crate) shortened: Shortened,
    /// Deviation of one trial, log scale.
    pub(crate) noise: f64,
    /// Studies of equals that claim a difference at any look.
    pub(crate) false_claims: f64,
    /// Studies of equals in which the interval of any round misses 1.
    pub(crate) missed: f64,
    /// Studies with a difference just beyond the margin that say there is none.
    pub(crate) false_none: f64,
    /// Studies of equals that claim anything at all if the digits are taken as exact: a difference, or
    /// "none" within a tenth of a per cent.
    pub(crate) taken_as_exact: f64,
    /// Studies of equals that end because the figures are too coarse, margin 5 %.
    pub(crate) too_coarse: f64,
    /// The narrowest interval of all, as a part of what the digits leave open. Never below 1.
    pub(crate) narrowest: f64,
}

/// Every row, `studies` behind each figure.
pub(crate) fn rows(seed: u64, studies: u32) -> Vec<CoarseRow> {
    let mut rows = Vec::new();
    for digits in 1..=3 {
        for shortened in [Shortened::Rounded, Shortened::CutOff] {
            for noise in [0.001, 0.01, 0.05] {
                let seed = seed + rows.len() as u64;
                rows.push(row(seed, studies, digits, shortened, noise));
            }
        }
    }
    rows
}

fn row(seed: u64, studies: u32, digits: i32, shortened: Shortened, noise: f64) -> CoarseRow {
    let mut world = World::new(seed);
    let mut counts = [0_u32; 5];
    let mut narrowest = f64::INFINITY;
    for _ in 0..studies {
        let tool = Tool {
            digits,
            shortened,
            // Any figure of so many digits, all equally often: 1.00 to 9.99 times a power of ten.
            truth: 10_f64.powf(world.uniform()),
        };
        let equal = tool.study(&mut world, noise, 0.0);
        let other = tool.study(&mut world, noise, 0.0501_f64.ln_1p());
        let [mut claimed, mut missed, mut none, mut exact, mut coarse] = [false; 5];
        for n in FIRST_LOOK as usize..=ROUNDS {
            let said = equal.said(n, MARGIN_NONE, true);
            claimed |= claims(said.word);
            missed |= said.ratio.low > 1.0 || said.ratio.high < 1.0;
            exact |= decides(equal.said(n, MARGIN_NONE, false).word);
            coarse |= equal.said(n, MARGIN, true).too_coarse;
            let word = other.said(n, MARGIN, true).word;
            none |= matches!(word, Classification::NoDifference { .. });
            let open = said.resolution;
            if open > 0.0 {
                let width = (said.ratio.high.ln() - said.ratio.low.ln()) / 2.0;
                narrowest = narrowest.min(width / open);
            }
        }
        for (count, found) in counts
            .iter_mut()
            .zip([claimed, missed, none, exact, coarse])
        {
            *count += u32::from(found);
        }
    }
    let [false_claims, missed, false_none, taken_as_exact, too_coarse] =
        counts.map(|count| share(count, studies));
    CoarseRow {
        digits,
        shortened,
        noise,
        false_claims,
        missed,
        false_none,
        taken_as_exact,
        too_coarse,
        narrowest,
    }
}

/// A tool that prints few digits.
struct Tool {
    digits: i32,
    shortened: Shortened,
    /// Between 1 and 10.
    truth: f64,
}

impl Tool {
    /// What it prints of a true figure, and the step of its last digit.
    fn printed(&self, figure: f64) -> (f64, f64) {
        let power = figure.log10().floor() as i32;
        let step = 10_f64.powi(power + 1 - self.digits);
        let steps = figure / step;
        let steps = match self.shortened {
            Shortened::Rounded => steps.round(),
            Shortened::CutOff => steps.floor(),
        };
        (steps * step, step)
    }

    fn study(&self, world: &mut World, noise: f64, difference: f64) -> Study {
        let mut study = Study {
            differences: Vec::new(),
            steps: Vec::new(),
            a_first: Vec::new(),
        };
        for round in 0..ROUNDS {
            let mut trial = |log: f64| {
                let figure = self.truth * (log + noise * world.normal()).exp();
                self.printed(figure)
            };
            let ((a, step_a), (b, step_b)) = (trial(0.0), trial(difference));
            let step = resolution::log_step(a, step_a).max(resolution::log_step(b, step_b));
            study.differences.push(b.ln() - a.ln());
            study.steps.push(step);
            study.a_first.push(round % 2 == 0);
        }
        study
    }
}

/// Rounds of a pair as they were printed.
struct Study {
    differences: Vec<f64>,
    /// What the digits leave open of each, log scale.
    steps: Vec<f64>,
    a_first: Vec<bool>,
}

impl Study {
    /// What the first `n` rounds say; `known`: how finely they were printed is taken into account.
    fn said(&self, n: usize, margin: f64, known: bool) -> Statement {
        let differences = &self.differences[..n];
        let without = WithoutOrder::of(differences, &self.a_first[..n]);
        let resolution = match known {
            true => stackrace_stats::mean(&self.steps[..n]),
            false => 0.0,
        };
        state_in_order(differences, without.as_ref(), resolution, ALPHA, margin)
            .expect("three or more rounds")
    }
}
