//! File systems that are filled or aged differently: full and old ones are slower.

use super::difference::{RunReading, Unlike};
use stackrace_base::event::FactFigure;
use stackrace_base::unit;

/// Fill levels that differ by more than this share of the space are named.
const FILL_SHARE: f64 = 0.20;
/// Ages that differ by more than this are named, days.
const AGE_DAYS: f64 = 30.0;
const DAY_SECONDS: f64 = 86_400.0;

pub(super) fn fill(run: &RunReading<'_>) -> Vec<Unlike> {
    let used = run.each(|at| match run.set_ups.place(at, "space used")?.figure {
        Some(FactFigure::Used { bytes, of }) => Some(bytes as f64 / of as f64),
        _ => None,
    });
    let found = widest(&used, FILL_SHARE).map(|(low, high)| Unlike {
        check: "fill level",
        sentence: format!(
            "filled differently: the file system of {} is {} full, that of {} {}; a full one has less room to place data well",
            run.name(high.0),
            unit::percent(high.1),
            run.name(low.0),
            unit::percent(low.1)
        ),
    });
    found.into_iter().collect()
}

pub(super) fn age(run: &RunReading<'_>) -> Vec<Unlike> {
    let made = run.each(
        |at| match run.set_ups.place(at, "file system made")?.figure {
            Some(FactFigure::SecondsSince1970(seconds)) => Some(seconds as f64 / DAY_SECONDS),
            _ => None,
        },
    );
    let found = widest(&made, AGE_DAYS).map(|(old, new)| Unlike {
        check: "age",
        sentence: format!(
            "of different age: the file system of {} was made {:.0} days before that of {}; an older one may be fragmented",
            run.name(old.0),
            new.1 - old.1,
            run.name(new.0)
        ),
    });
    found.into_iter().collect()
}

/// The configurations with the least and the most, where these differ by more than this.
fn widest(values: &[(usize, f64)], more_than: f64) -> Option<((usize, f64), (usize, f64))> {
    let by_value = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    let (low, high) = (
        values.iter().min_by(by_value)?,
        values.iter().max_by(by_value)?,
    );
    (high.1 - low.1 > more_than).then_some((*low, *high))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;

    #[test]
    fn a_fifth_of_the_space_and_a_month_may_differ() {
        let found = |name: &str, a: &str, b: &str, judge: fn(&RunReading<'_>) -> Vec<Unlike>| {
            Run::of(|at| vec![(name, [a, b][at])]).read(judge)
        };
        let used = |a, b| found("space used", a, b, fill);
        assert_eq!(used("10.0 % of 1 GiB", "30.0 % of 1 GiB"), []);
        let full = used("10.0 % of 1 GiB", "85.0 % of 1 GiB");
        assert!(
            full[0]
                .sentence
                .contains("xfs is 85 % full, that of ext4 10 %"),
            "{full:?}"
        );
        let made = |a, b| found("file system made", a, b, age);
        assert_eq!(made("1000000 s since 1970", "3000000 s since 1970"), []);
        let old = made("1000000 s since 1970", "9640000 s since 1970");
        assert!(
            old[0]
                .sentence
                .contains("of ext4 was made 100 days before that of xfs"),
            "{old:?}"
        );
    }
}
