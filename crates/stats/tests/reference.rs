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

/// A set, its length, mean, deviation and autocorrelation, and the digits the last two must have:
/// a deviation small beside the mean cannot have all of them in binary fractions.
type Set = (&'static str, Vec<f64>, usize, f64, f64, f64, f64);

#[test]
fn nist_univariate() {
    let sets: [Set; 8] = [
        (
            "Lew",
            read(include_str!("nist/lew.txt")),
            200,
            -177.435,
            277.332168044316,
            -0.307304800605679,
            14.0,
        ),
        (
            "Lottery",
            read(include_str!("nist/lottery.txt")),
            218,
            518.958715596330,
            291.699727470969,
            -0.120948622967393,
            14.0,
        ),
        (
            "Mavro",
            read(include_str!("nist/mavro.txt")),
            50,
            2.001856,
            0.000429123454003053,
            0.937989183438248,
            12.0,
        ),
        (
            "Michelso",
            read(include_str!("nist/michelso.txt")),
            100,
            299.8524,
            0.0790105478190518,
            0.535199668621283,
            13.0,
        ),
        (
            "NumAcc1",
            read("10000001 10000003 10000002"),
            3,
            10_000_002.0,
            1.0,
            -0.5,
            14.0,
        ),
        (
            "NumAcc2",
            alternating("1.2", "1.1", "1.3"),
            1001,
            1.2,
            0.1,
            -0.999,
            14.0,
        ),
        (
            "NumAcc3",
            alternating("1000000.2", "1000000.1", "1000000.3"),
            1001,
            1_000_000.2,
            0.1,
            -0.999,
            9.0,
        ),
        (
            "NumAcc4",
            alternating("10000000.2", "10000000.1", "10000000.3"),
            1001,
            10_000_000.2,
            0.1,
            -0.999,
            8.0,
        ),
    ];
    for (name, values, n, centre, deviation, correlation, least) in sets {
        assert_eq!(values.len(), n, "{name}");
        let got = digits(mean(&values), centre);
        assert!(got >= 14.0, "{name}: mean has {got} digits");
        let got = digits(variance(&values).sqrt(), deviation);
        assert!(got >= least, "{name}: deviation has {got} digits");
        let got = digits(lag_one(&values).unwrap(), correlation);
        assert!(
            got >= least - 1.0,
            "{name}: autocorrelation has {got} digits"
        );
    }
}
