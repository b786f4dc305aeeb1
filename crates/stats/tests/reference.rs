//! The basic estimators on data sets whose results are certified.
//!
//! NIST Statistical Reference Datasets, univariate summary statistics
//! (<https://www.itl.nist.gov/div898/strd/univ/homepage.html>, public domain): mean, standard
//! deviation with divisor n − 1, lag-1 autocorrelation. The data of `nist/` are those of the files
//! of the same name there.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its data has failed"
)]

use stackrace_stats::autocorrelation::lag_one;
use stackrace_stats::{mean, variance};

fn read(text: &str) -> Vec<f64> {
    let words = text.split_whitespace();
    words.map(|word| word.parse().unwrap()).collect()
}

/// The value in the middle, then 1,000 values alternately 0.1 below and above it.
fn alternating(centre: &str, below: &str, above: &str) -> Vec<f64> {
    read(&format!(
        "{centre} {}",
        format!("{below} {above} ").repeat(500)
    ))
}

/// The number of correct digits, as NIST counts them.
fn digits(got: f64, certified: f64) -> f64 {
    -((got - certified).abs() / certified.abs())
        .max(1e-16)
        .log10()
}

/// Holds a set to its certified mean, deviation and autocorrelation; `least` digits of the last
/// two: a deviation small beside the mean cannot have all of them in binary fractions.
#[track_caller]
fn check(values: &[f64], certified: [f64; 3], least: f64) {
    let [centre, deviation, correlation] = certified;
    let got = digits(mean(values), centre);
    assert!(got >= 14.0, "the mean has {got} digits");
    let got = digits(variance(values).sqrt(), deviation);
    assert!(got >= least, "the deviation has {got} digits");
    let got = digits(lag_one(values).unwrap(), correlation);
    assert!(got >= least - 1.0, "the autocorrelation has {got} digits");
}

#[test]
fn observed_data_of_nist_give_the_certified_figures() {
    let lew = read(include_str!("nist/lew.txt"));
    assert_eq!(lew.len(), 200);
    check(&lew, [-177.435, 277.332168044316, -0.307304800605679], 14.0);
    let lottery = read(include_str!("nist/lottery.txt"));
    assert_eq!(lottery.len(), 218);
    let certified = [518.958715596330, 291.699727470969, -0.120948622967393];
    check(&lottery, certified, 14.0);
    let mavro = read(include_str!("nist/mavro.txt"));
    assert_eq!(mavro.len(), 50);
    let certified = [2.001856, 0.000429123454003053, 0.937989183438248];
    check(&mavro, certified, 12.0);
    let michelso = read(include_str!("nist/michelso.txt"));
    assert_eq!(michelso.len(), 100);
    let certified = [299.8524, 0.0790105478190518, 0.535199668621283];
    check(&michelso, certified, 13.0);
}

#[test]
fn accuracy_data_of_nist_give_the_certified_figures() {
    let numacc1 = read("10000001 10000003 10000002");
    check(&numacc1, [10_000_002.0, 1.0, -0.5], 14.0);
    let numacc2 = alternating("1.2", "1.1", "1.3");
    check(&numacc2, [1.2, 0.1, -0.999], 14.0);
    let numacc3 = alternating("1000000.2", "1000000.1", "1000000.3");
    check(&numacc3, [1_000_000.2, 0.1, -0.999], 9.0);
    let numacc4 = alternating("10000000.2", "10000000.1", "10000000.3");
    check(&numacc4, [10_000_000.2, 0.1, -0.999], 8.0);
}
