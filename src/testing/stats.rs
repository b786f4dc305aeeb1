//! The statistics, on any numbers.

use stackrace_stats::{
    Classification, Ratio, classify, detectable, geometric_mean, hodges_lehmann, mean, median,
    paired_ratio, rounds_to_decide, state, t_quantile, two_sided_level, variance, welch_ratio,
};

use super::input::Input;

/// Every function returns a number in its range, or none, for any floats.
pub fn stats(data: &[u8]) {
    let mut input = Input::new(data);
    let alpha = match input.below(4) {
        0 => input.f64(),
        _ => f64::from(input.u8()) / 256.0,
    };
    let margin = f64::from(input.u8()) / 100.0;
    let rounds_max = input.up_to_bits(20) as u32;
    let (a, b) = (numbers(&mut input), numbers(&mut input));
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    for ratio in [
        paired_ratio(&a, alpha),
        welch_ratio(&a, &b, alpha),
        geometric_mean(&a, alpha),
        hodges_lehmann(&a, alpha),
    ]
    .into_iter()
    .flatten()
    {
        assert!(finite(&a) && alpha > 0.0 && alpha < 1.0);
        sound(&ratio);
        spoken(classify(&ratio, margin));
    }
    let middle = median(&a);
    assert!(middle.is_none_or(|middle| !middle.is_nan()) || !finite(&a));
    let spread = variance(&a);
    assert!(spread.is_nan() || spread >= 0.0);
    mean(&a);
    assert!(rounds_to_decide(&a, 0.0, alpha, margin).is_none_or(|rounds| rounds >= 1));
    if let Some(ratio) = detectable(input.f64(), rounds_max, alpha) {
        assert!(ratio >= 1.0);
    }
    t_quantile(input.f64(), input.f64());
    if let Some(said) = state(&a, alpha, margin) {
        sound(&said.ratio);
        spoken(said.word);
    }
    if alpha > 0.0 && alpha < 1.0 {
        share(two_sided_level(alpha, rounds_max.max(1)));
    }
}

/// Mostly values as runs have them, sometimes any float.
fn numbers(input: &mut Input<'_>) -> Vec<f64> {
    match input.below(4) {
        0 => input.floats(12),
        _ => (0..input.below(13))
            .map(|_| f64::from(input.u8()) / 64.0 - 2.0)
            .collect(),
    }
}

fn sound(ratio: &Ratio) {
    assert!(
        ratio.low <= ratio.estimate && ratio.estimate <= ratio.high,
        "{ratio:?}"
    );
    assert!(ratio.low >= 0.0 && ratio.high.is_finite(), "{ratio:?}");
}

fn spoken(word: Classification) {
    match word {
        Classification::Better { at_least, at_most }
        | Classification::Worse { at_least, at_most } => {
            assert!(
                0.0 <= at_least && at_least <= at_most,
                "{at_least} {at_most}"
            );
        }
        Classification::NoDifference { larger_than } => assert!(larger_than >= 0.0),
        Classification::Probably { .. } | Classification::Undecided => {}
    }
}

fn share(p: f64) {
    assert!((0.0..=1.0).contains(&p), "{p}");
}
