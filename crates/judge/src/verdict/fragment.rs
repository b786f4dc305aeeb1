//! What is said of one comparison, as a fragment. The vocabulary is fixed: see
//! `docs/methodology.md`.

use super::statement::{Coarseness, Interval, VerdictWord};
use stackrace_base::unit::{self, Rounded, decimals};

/// An interval whose ends differ by more than this factor says nothing that is worth a sentence.
const TELLS_MAX: f64 = 4.0;

/// Words of a comparison, as a fragment that follows "B is" or stands alone.
pub(super) fn fragment(word: VerdictWord, ratio: Option<Interval>, coarse: Coarseness) -> String {
    match word {
        VerdictWord::Better { at_least, at_most } => faster(at_least, at_most),
        VerdictWord::Worse { at_least, at_most } => slower(at_least, at_most),
        VerdictWord::NoDifference { larger_than } => {
            format!("no difference larger than {}", bound(larger_than))
        }
        VerdictWord::Probably { better } => {
            let word = if better { "faster" } else { "slower" };
            match ratio {
                Some(ratio) => format!("probably {word}: {} x", times(ratio.estimate)),
                None => format!("probably {word}"),
            }
        }
        VerdictWord::Undecided if coarse.undecidable => {
            format!("not to be decided: {}", known_to(coarse))
        }
        VerdictWord::Undecided => match ratio.filter(tells) {
            Some(ratio) => format!("undecided: {}", range(ratio)),
            None => "undecided".to_owned(),
        },
        VerdictWord::TooFew => "too few rounds for an interval".to_owned(),
        VerdictWord::Unpaired { runs, differs } => unpaired(runs, differs, ratio),
    }
}

/// Words of an interaction: how the effect there compares with the effect at the baseline.
pub(super) fn interaction(
    word: VerdictWord,
    ratio: Option<Interval>,
    coarse: Coarseness,
) -> String {
    match word {
        VerdictWord::Better { at_least, at_most } => {
            format!("{} larger there", span(at_least, at_most))
        }
        VerdictWord::Worse { at_least, at_most } => {
            format!("{} smaller there", span(at_least, at_most))
        }
        VerdictWord::NoDifference { larger_than } => {
            format!("the same there, within {}", bound(larger_than))
        }
        VerdictWord::Probably { better: true } => "probably larger there".to_owned(),
        VerdictWord::Probably { better: false } => "probably smaller there".to_owned(),
        VerdictWord::Undecided if coarse.undecidable => fragment(word, ratio, coarse),
        VerdictWord::Undecided => match ratio.filter(tells) {
            Some(ratio) => format!(
                "undecided: {} to {} times",
                times(ratio.low),
                times(ratio.high)
            ),
            None => "undecided".to_owned(),
        },
        // These words have no direction, so they are those of a main effect.
        VerdictWord::TooFew | VerdictWord::Unpaired { .. } => fragment(word, ratio, coarse),
    }
}

/// The largest difference there may be. No two figures are known to be equal: it is never 0.
pub(super) fn bound(larger_than: f64) -> String {
    /// The smallest share that has a digit of its own.
    const SHOWN_MIN: f64 = 0.0001;
    unit::percent_rounded(larger_than.max(SHOWN_MIN), Rounded::Up)
}

/// `the figures have 2 digits, and 1 in the last is 8.3 %`
pub(super) fn known_to(coarse: Coarseness) -> String {
    if !coarse.printed {
        let step = unit::percent(coarse.resolution);
        return format!(
            "one operation, or one tick of the clock, more or less is {step} of a trial"
        );
    }
    // The figure in its steps: 10 for 1.0, so that 1 in the last of two digits is 1 to 10 % of it.
    let steps = (2.0 + coarse.resolution) / (2.0 * coarse.resolution);
    let power = libm::log10(steps) + 1e-9;
    let digits = power.floor().clamp(0.0, 17.0) as usize + 1;
    let digits = unit::counted(digits, "digit");
    let step = unit::percent(1.0 / steps);
    format!("the figures have {digits}, and 1 in the last is {step}")
}

/// Ways to get figures that are less coarse.
pub(super) fn finer(coarse: Coarseness) -> &'static str {
    match coarse.printed {
        true => "let it do more work, or print more digits: a JSON output often has them",
        false => "make the trials longer",
    }
}

/// Returns true if an interval excludes enough to be written as words.
pub(super) fn tells(ratio: &Interval) -> bool {
    // With ends that are no numbers this is false.
    ratio.high / ratio.low <= TELLS_MAX
}

/// Words for results that were not made in turn: never that one is faster.
fn unpaired(runs: (usize, usize), differs: bool, ratio: Option<Interval>) -> String {
    match (ratio.filter(|ratio| ratio.low.is_finite()), runs) {
        (Some(ratio), _) if differs => format!("differs: {}, unpaired", range(ratio)),
        (Some(ratio), _) if tells(&ratio) => format!("{}, unpaired", range(ratio)),
        (Some(_), _) => "too far apart for a statement, unpaired".to_owned(),
        (None, (0, 0)) => "no workload is in both".to_owned(),
        (None, (1, 1)) => "one run each, so no interval".to_owned(),
        (None, (a, b)) => format!("{b} and {a} runs, too few for an interval"),
    }
}

/// `12-19 % faster`, or `3.1-4.2 times as fast` where per cents would be unreadable.
fn faster(at_least: f64, at_most: f64) -> String {
    if at_most >= 1.0 {
        // Ends that are the same when rounded are written once.
        let (low, high) = (times(1.0 + at_least), times(1.0 + at_most));
        return if low == high {
            format!("{low} times as fast")
        } else {
            format!("{low}-{high} times as fast")
        };
    }
    format!("{} faster", span(at_least, at_most))
}

fn slower(at_least: f64, at_most: f64) -> String {
    // Nothing is 100 % slower: what is left of its speed is cut off, not rounded away.
    let cut = |share: f64| match share {
        share if share >= 0.995 => (share * 1000.0).floor().min(999.0) / 1000.0,
        share => share,
    };
    let (at_least, at_most) = (cut(at_least), cut(at_most));
    let one_decimal = |share: f64| match share {
        share if share >= 0.995 => format!("{:.1} %", share * 100.0),
        share => unit::percent(share),
    };
    format!(
        "{} slower",
        between(one_decimal(at_least), one_decimal(at_most))
    )
}

fn span(low: f64, high: f64) -> String {
    between(unit::percent(low), unit::percent(high))
}

/// `12-19 %`; ends that are the same when rounded are written once.
fn between(low: String, high: String) -> String {
    if low == high {
        low
    } else {
        format!("{}-{high}", low.trim_end_matches(" %"))
    }
}

/// A ratio with three digits; one that no storage has, with one.
pub(super) fn times(ratio: f64) -> String {
    times_rounded(ratio, Rounded::Nearest)
}

/// The same of a bound.
pub(super) fn times_rounded(ratio: f64, rounded: Rounded) -> String {
    match ratio {
        r if !(0.001..9999.5).contains(&r) => unit::far_rounded(r, rounded),
        r if r >= 99.5 => decimals(r, 0, rounded),
        r if r >= 9.95 => decimals(r, 1, rounded),
        r if r >= 0.0995 => decimals(r, 2, rounded),
        r => decimals(r, 3, rounded),
    }
}

/// `between 3 % slower and 12 % faster`, `15-18 % slower`, or `between 0.02 and 4.1 times as fast`
/// where per cents would be unreadable.
pub(super) fn range(ratio: Interval) -> String {
    if ratio.low >= 1.0 {
        return faster(ratio.low - 1.0, ratio.high - 1.0);
    }
    if ratio.low < 0.5 || ratio.high > 2.0 {
        return format!(
            "between {} and {} times as fast",
            times(ratio.low),
            times(ratio.high)
        );
    }
    if ratio.high <= 1.0 {
        return slower(1.0 - ratio.high, 1.0 - ratio.low);
    }
    format!(
        "between {} slower and {} faster",
        unit::percent(1.0 - ratio.low),
        unit::percent(ratio.high - 1.0)
    )
}

/// A sentence about comparisons begins with a capital, unless it begins with a name: the case of a name is
/// part of it.
pub(super) fn capital(text: &str, names: &[&str]) -> String {
    let named = names.iter().any(|name| text.starts_with(name));
    let mut chars = text.chars();
    match chars.next().filter(|_| !named) {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval {
            estimate: (low * high).sqrt(),
            low,
            high,
        }
    }

    #[test]
    fn a_range_on_one_side_is_one_span() {
        assert_eq!(range(interval(0.82, 0.85)), "15-18 % slower");
        // Never 100 %: something is left of its speed.
        assert_eq!(slower(0.9651, 0.9973), "97-99.7 % slower");
        assert_eq!(slower(0.9992, 0.99999), "99.9 % slower");
        assert_eq!(range(interval(1.03, 1.09)), "3.0-9.0 % faster");
        assert_eq!(
            range(interval(0.97, 1.12)),
            "between 3.0 % slower and 12 % faster"
        );
    }

    #[test]
    fn an_interval_that_excludes_nothing_is_not_written() {
        let exact = Coarseness::default();
        let undecided =
            |low, high| fragment(VerdictWord::Undecided, Some(interval(low, high)), exact);
        assert_eq!(undecided(0.05, 17.0), "undecided");
        assert_eq!(
            undecided(0.9, 1.2),
            "undecided: between 10 % slower and 20 % faster"
        );
        let probably = VerdictWord::Probably { better: true };
        assert_eq!(
            fragment(probably, Some(interval(0.92, 2.01)), exact),
            "probably faster: 1.36 x"
        );
    }

    #[test]
    fn figures_that_are_too_coarse_are_said_to_be_and_none_is_known_to_be_equal() {
        let coarse = Coarseness {
            resolution: 0.087,
            undecidable: true,
            printed: true,
        };
        let said = |coarse| fragment(VerdictWord::Undecided, Some(interval(0.9, 1.1)), coarse);
        let words = "not to be decided: the figures have 2 digits, and 1 in the last is 8.3 %";
        assert_eq!(said(coarse), words);
        let own = Coarseness {
            printed: false,
            ..coarse
        };
        assert!(said(own).contains("one operation"), "{}", said(own));
        let one = Coarseness {
            resolution: 2.0,
            ..coarse
        };
        assert!(
            said(one).contains("1 digit, and 1 in the last is 100 %"),
            "{}",
            said(one)
        );
        // 1.0 in steps of 0.1, and 0.9, whose first digit is its last.
        for (value, digits) in [
            (1.0, "2 digits, and 1 in the last is 10 %"),
            (9.9, "2 digits, and 1 in the last is 1.0 %"),
            (0.5, "1 digit, and 1 in the last is 20 %"),
        ] {
            let width = stackrace_stats::resolution::log_step(value, 0.1);
            let words = known_to(Coarseness::known_to(width, true));
            assert!(words.contains(digits), "{value}: {words}");
        }
        assert_eq!(unpaired((0, 0), false, None), "no workload is in both");
        let none = VerdictWord::NoDifference { larger_than: 0.0 };
        assert_eq!(
            fragment(none, Some(interval(1.0, 1.0)), Coarseness::default()),
            "no difference larger than 0.01 %"
        );
        // As it is shown, it still holds.
        let two = VerdictWord::NoDifference {
            larger_than: 0.0201,
        };
        assert_eq!(
            fragment(two, Some(interval(0.98, 1.0201)), Coarseness::default()),
            "no difference larger than 2.1 %"
        );
    }

    #[test]
    fn a_name_at_the_beginning_of_a_sentence_keeps_its_case() {
        let names = ["no fsync", "fsync every write"];
        let said = "no fsync is 2.74 x as fast as fsync every write";
        assert_eq!(capital(said, &names), said);
        let said = "no difference larger than 3 % between a and b";
        assert!(capital(said, &["a", "b"]).starts_with("No difference"));
        assert!(capital(said, &names).starts_with("No difference"));
    }
}
