//! Laws that hold for all values: no unit, no name and no order of listing changes a verdict.

use proptest::prelude::*;
use stackrace_stats::changepoint::{CHANGE_MIN, segments};
use stackrace_stats::{
    Classification, Course, Ratio, Term, classify, detectable, effects, geometric_mean,
    hodges_lehmann, paired_ratio, rounds_to_decide, state, welch_ratio,
};

/// Values of one treatment: positive, over nine orders of magnitude.
fn values(n: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-10.0..10.0_f64).prop_map(f64::exp), n)
}

/// Two treatments over the same 2 to 14 rounds.
fn pair() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (2..15_usize).prop_flat_map(|n| (values(n), values(n)))
}

fn log_differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect()
}

fn close(x: &Ratio, y: &Ratio) -> bool {
    let near = |x: f64, y: f64| (x.ln() - y.ln()).abs() <= 1e-9 * (1.0 + x.ln().abs());
    near(x.estimate, y.estimate) && near(x.low, y.low) && near(x.high, y.high)
}

/// Every interval on offer, for one pair of treatments.
fn intervals(a: &[f64], b: &[f64], alpha: f64) -> Vec<Option<Ratio>> {
    let differences = log_differences(a, b);
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v.ln()).collect() };
    vec![
        paired_ratio(&differences, alpha),
        hodges_lehmann(&differences, alpha),
        welch_ratio(&logs(a), &logs(b), alpha),
    ]
}

fn all_close(x: &[Option<Ratio>], y: &[Option<Ratio>]) -> bool {
    x.iter().zip(y).all(|(x, y)| match (x, y) {
        (Some(x), Some(y)) => close(x, y),
        (None, None) => true,
        _ => false,
    })
}

#[test]
fn what_no_number_can_hold_is_the_same_both_ways() {
    // Three rounds so far apart that the interval exceeds the largest number.
    let differences = [-9.05, 16.36, 0.0];
    let opposite = differences.map(|difference| -difference);
    let forth = state(&differences, 0.001, 0.01).unwrap();
    let back = state(&opposite, 0.001, 0.01).unwrap();
    assert!(close(&forth.ratio, &back.ratio.inverse()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_interval_encloses_its_estimate((a, b) in pair(), alpha in 0.0005..0.5_f64) {
        for ratio in intervals(&a, &b, alpha).into_iter().flatten() {
            prop_assert!(0.0 < ratio.low && ratio.low <= ratio.estimate);
            prop_assert!(ratio.estimate <= ratio.high && ratio.high.is_finite());
        }
    }

    /// MiB or bytes, seconds or minutes: the unit cancels in a ratio.
    #[test]
    fn the_unit_changes_no_ratio((a, b) in pair(), unit in 1e-6..1e6_f64) {
        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v * unit).collect() };
        let before = intervals(&a, &b, 0.05);
        let after = intervals(&scaled(&a), &scaled(&b), 0.05);
        prop_assert!(all_close(&before, &after));
        let mean = geometric_mean(&a, 0.05).unwrap();
        let moved = Ratio {
            estimate: mean.estimate * unit,
            low: mean.low * unit,
            high: mean.high * unit,
        };
        prop_assert!(close(&moved, &geometric_mean(&scaled(&a), 0.05).unwrap()));
    }

    #[test]
    fn exchanging_the_treatments_inverts_the_interval((a, b) in pair()) {
        let forth = intervals(&a, &b, 0.05);
        let back: Vec<_> = intervals(&b, &a, 0.05).iter().map(|r| r.map(|r| r.inverse())).collect();
        prop_assert!(all_close(&forth, &back));
    }

    #[test]
    fn the_order_of_rounds_changes_nothing(
        (rounds, shuffled) in pair().prop_flat_map(|(a, b)| {
            let rounds: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
            (Just(rounds.clone()), Just(rounds).prop_shuffle())
        })
    ) {
        let (a, b): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
        let (c, d): (Vec<_>, Vec<_>) = shuffled.into_iter().unzip();
        prop_assert!(all_close(&intervals(&a, &b, 0.05), &intervals(&c, &d, 0.05)));
    }

    /// The larger the error that is allowed, the narrower the interval.
    #[test]
    fn more_certainty_is_never_narrower((a, b) in pair(), alpha in 0.001..0.2_f64) {
        let (sure, less_sure) = (intervals(&a, &b, alpha), intervals(&a, &b, 2.0 * alpha));
        for (sure, less_sure) in sure.iter().zip(&less_sure) {
            let (Some(sure), Some(less_sure)) = (sure, less_sure) else { continue };
            prop_assert!(sure.low <= less_sure.low && less_sure.high <= sure.high);
        }
    }

    /// Word for word: better becomes worse, the others stay, the numbers agree with the ends.
    #[test]
    fn exchanging_the_treatments_exchanges_the_word(
        low in 0.8..1.2_f64, width in 1.0..1.2_f64, margin in 0.0..0.2_f64
    ) {
        let ratio = Ratio { estimate: low, low, high: low * width };
        match (classify(&ratio, margin), classify(&ratio.inverse(), margin)) {
            (Classification::Better { at_least, at_most }, Classification::Worse { .. }) => {
                prop_assert!(0.0 < at_least && at_least <= at_most);
            }
            (Classification::Worse { at_least, at_most }, Classification::Better { .. }) => {
                prop_assert!(0.0 < at_least && at_least <= at_most && at_most < 1.0);
            }
            (Classification::NoDifference { larger_than }, Classification::NoDifference { .. }) => {
                prop_assert!(larger_than <= margin + 1e-12);
            }
            (Classification::Undecided, Classification::Undecided) => {}
            (forth, back) => prop_assert!(false, "{:?} but {:?} the other way", forth, back),
        }
    }

    /// The word and the interval turn round together, and neither depends on the order of rounds.
    #[test]
    fn exchanging_the_treatments_exchanges_the_statement(
        (a, b) in pair(), alpha in 0.001..0.5_f64, margin in 0.01..0.2_f64
    ) {
        let forth = state(&log_differences(&a, &b), alpha, margin);
        let back = state(&log_differences(&b, &a), alpha, margin);
        prop_assert_eq!(forth.is_some(), a.len() >= 3);
        if let (Some(forth), Some(back)) = (forth, back) {
            prop_assert!(close(&forth.ratio, &back.ratio.inverse()));
            match (forth.word, back.word) {
                (Classification::Better { .. }, Classification::Worse { .. })
                | (Classification::Worse { .. }, Classification::Better { .. })
                | (Classification::NoDifference { .. }, Classification::NoDifference { .. })
                | (Classification::Undecided, Classification::Undecided) => {}
                (Classification::Probably { better: x }, Classification::Probably { better: y }) => {
                    prop_assert!(x != y);
                }
                (forth, back) => prop_assert!(false, "{:?} but {:?} the other way", forth, back),
            }
        }
    }

    /// More noise never needs fewer rounds, and a decision always lies ahead of what there is.
    #[test]
    fn a_projection_lies_ahead_and_grows_with_the_noise(
        (a, b) in pair(), margin in 0.01..0.1_f64
    ) {
        let differences: Vec<f64> = log_differences(&a, &b).iter().map(|z| z / 40.0).collect();
        let centre = differences.iter().sum::<f64>() / differences.len() as f64;
        let louder: Vec<f64> = differences.iter().map(|z| centre + 1.5 * (z - centre)).collect();
        let rounds = |values: &[f64]| rounds_to_decide(values, 0.0, 0.05, margin).unwrap_or(u32::MAX);
        prop_assert!(rounds(&differences) as usize > differences.len());
        prop_assert!(rounds(&differences) <= rounds(&louder));
    }
}

fn amounts() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..1e9_f64, 0..200)
}

proptest! {
    /// Segments cover the trial without gaps, and neighbours differ by what counts as a change.
    #[test]
    fn segments_are_a_cut_of_the_whole(values in amounts()) {
        if let Some(found) = segments(&values) {
            prop_assert_eq!(found[0].start, 0);
            prop_assert_eq!(found[found.len() - 1].end, values.len());
            for pair in found.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
                let change = (pair[1].level / pair[0].level).ln().abs();
                prop_assert!(change >= CHANGE_MIN.ln() - 1e-9, "{}", change);
            }
        }
    }

    /// The unit of the amounts changes nothing but levels and means.
    #[test]
    fn a_course_does_not_depend_on_the_unit(values in amounts()) {
        let scaled: Vec<f64> = values.iter().map(|value| 1024.0 * value).collect();
        let (here, there) = (Course::of(&values), Course::of(&scaled));
        prop_assert_eq!(here.is_some(), there.is_some());
        if let (Some(here), Some(there)) = (here, there) {
            prop_assert_eq!(here.warm_up, there.warm_up);
            prop_assert_eq!(here.steady(), there.steady());
            prop_assert_eq!(here.segments.len(), there.segments.len());
            prop_assert!(here.warm_up.is_none_or(|begin| begin.values <= values.len() / 2));
            prop_assert!(here.effective.is_none_or(|n| (1.0..=values.len() as f64).contains(&n)));
        }
    }

    /// What all treatments of a round share is in no effect, and swapping two treatments' levels
    /// of a factor of two turns its main effect round.
    #[test]
    fn effects_are_blind_to_rounds_and_turn_with_their_sides(
        values in prop::collection::vec(prop::collection::vec(-3.0..3.0_f64, 4), 4),
        shared in prop::collection::vec(-9.0..9.0_f64, 4),
    ) {
        let treatments: Vec<Vec<usize>> = (0..4).map(|at| vec![at / 2, at % 2]).collect();
        let turned: Vec<Vec<usize>> = (0..4).map(|at| vec![1 - at / 2, at % 2]).collect();
        let shifted: Vec<Vec<f64>> = values
            .iter()
            .map(|lane| lane.iter().zip(&shared).map(|(value, shift)| value + shift).collect())
            .collect();
        for (effect, other) in effects(&treatments).iter().zip(effects(&turned)) {
            for ((_, plain), (_, moved)) in effect.rounds(&values).iter().zip(effect.rounds(&shifted)) {
                prop_assert!((plain - moved).abs() < 1e-9);
            }
            if effect.term == (Term::Main { factor: 0, level: 1 }) {
                for ((_, one), (_, two)) in effect.rounds(&values).iter().zip(other.rounds(&values)) {
                    prop_assert!((one + two).abs() < 1e-9);
                }
            }
        }
    }
}

#[test]
fn projections_have_limits() {
    assert_eq!(rounds_to_decide(&[0.1, 0.1], 0.0, 0.05, 0.05), None);
    assert_eq!(
        rounds_to_decide(&[0.1, 0.1, f64::NAN], 0.0, 0.05, 0.05),
        None
    );
    assert_eq!(rounds_to_decide(&[0.1, 0.1, 0.1], 0.0, 0.05, 0.05), Some(4));
    assert_eq!(detectable(0.03, 1, 0.05), None);
    assert_eq!(detectable(f64::NAN, 5, 0.05), None);
    assert_eq!(detectable(-0.1, 5, 0.05), None);
    assert_eq!(detectable(0.0, 5, 0.05), Some(1.0));
}

/// methodology: with s = 3 % and five looks, half-widths of 17, 6.2, 3.7, 2.7 and 1.9 %.
#[test]
fn the_detectable_difference_shrinks_as_documented() {
    let documented = [(3, 5.73), (5, 2.06), (8, 1.24), (12, 0.90), (20, 0.64)];
    for (n, multiple) in documented {
        let ratio = detectable(0.03, n, 0.01).unwrap();
        assert!(
            (ratio.ln() / 0.03 - multiple).abs() < 0.0051,
            "{n}: {ratio}"
        );
    }
}
