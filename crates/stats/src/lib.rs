//! The statistics of a comparison: numbers in, numbers out.
//!
//! Nothing here reads a file, a clock or a source of randomness. Every function is a fixed
//! mapping from the values of a study to a statement about them, so the same record always
//! yields the same verdict, and the promise behind a verdict ("wrong in at most 5 % of
//! studies") is tested by simulating whole studies in `tests/simulate`.
//!
//! The unit of evidence is the *round*: each treatment was tried once in it, in random order,
//! so that whatever drifts over a session hits all of them alike and cancels in the difference
//! of two treatments of the same round. Values enter as natural logarithms, which turns ratios
//! into differences; results leave as ratios. The steps inside a trial are never replicates:
//! they describe the trial, and decide nothing between treatments.
//!
//! | module | question |
//! |---|---|
//! | [`interval`] | what is the ratio of two treatments, and how sure is that? |
//! | [`resolution`] | how finely is a figure known at all? |
//! | [`rank`] | does that answer hang on a few extreme rounds? |
//! | [`looks`] | how can every round be a look, with one probability of error for all? |
//! | [`cuts`] | how often does a power cut break a promise, and is that more often than elsewhere? |
//! | [`crossover`] | what does it matter who comes first in a round? |
//! | [`equivalence`] | which word does a comparison earn, and how far is an undecided one? |
//! | [`narrow`] | when is its size known well enough, and how far is that? |
//! | [`mod@effects`] | what does each factor do, and does it do so everywhere? |
//! | [`autocorrelation`] | how much do the steps of one trial say? |
//! | [`steady`] | has a trial, or a device, come to rest? |
//! | [`changepoint`] | did a trial change midway, and where? |
//! | [`course`] | all that about one trial |
#![forbid(unsafe_code)]

pub mod autocorrelation;
pub mod changepoint;
pub mod course;
pub mod crossover;
pub mod cuts;
pub mod effects;
pub mod equivalence;
pub mod interval;
mod levels;
pub mod looks;
pub mod narrow;
pub mod rank;
pub mod resolution;
pub mod steady;

pub use course::Course;
pub use crossover::WithoutOrder;
pub use cuts::{BrokenCuts, CUT_LOOKS, cut_difference_p, cut_look_level, cut_looks};
pub use effects::{FactorEffect, Term, effects};
pub use equivalence::{
    Classification, Statement, classify, detectable, rounds_to_decide, rounds_to_exclude, state,
    state_in_order,
};
pub use interval::{
    Ratio, geometric_mean, mean, median, paired_ratio, t_quantile, variance, welch_ratio,
};
pub use looks::{FIRST_LOOK, one_sided_level, two_sided_level};
pub use narrow::{rounds_to_narrow, widest};
pub use rank::hodges_lehmann;
pub use steady::{PASSES_MAX, RANGE_MAX, SLOPE_MAX, SteadyWindow, WINDOW, steady_after};

#[cfg(test)]
mod tests {
    use libm::{exp, expm1 as exp_m1, log as ln, pow};

    /// Of 20,000 values each: every bit counts, because the same record gives the same figures everywhere.
    #[test]
    fn every_bit_is_the_same_on_every_processor() {
        let mut sums = [0u64; 4];
        for at in 1..20_000u32 {
            let x = f64::from(at) / 1024.0;
            let values = [ln(x), exp(x), pow(x, 0.7), exp_m1(x)];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = sum.rotate_left(5) ^ value.to_bits();
            }
        }
        // Those of `f64` give other values on a Nehalem than on processors with fused multiply-add.
        assert_eq!(
            sums,
            [
                0xaf08_7bbf_156e_a8a8,
                0x95d8_f18c_7afc_08f5,
                0x4e1b_1369_5a5c_b02e,
                0x2189_39ed_c421_b66d,
            ]
        );
    }
}
