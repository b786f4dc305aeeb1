//! Figures as text: three digits, a unit, and the interval in the same unit.

use std::borrow::Cow;

use stackrace_base::event::{Better, MetricHead};
use stackrace_base::unit::{self, is_no_text, sign};
pub(super) use stackrace_base::unit::{counted, digits};
use stackrace_judge::verdict::Interval;

/// Sign shown where there is no value.
pub(super) const MISSING: &str = "–";

/// A value of a metric in the unit people use for it.
pub fn value(metric_unit: &str, value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    unit::of_metric(metric_unit, value)
}

/// An interval that tells no more than that there is a value.
const TOO_WIDE: &str = "[too wide]";
/// The same of a value whose ends differ by more than this factor.
const VALUE_WIDE: f64 = 1000.0;

/// The interval in brackets; its unit is left out where it is that of the estimate.
pub(super) fn range(metric_unit: &str, interval: Interval) -> String {
    // One value has no interval: empty brackets would look like one.
    if !interval.low.is_finite() && !interval.high.is_finite() {
        return MISSING.to_owned();
    }
    if interval.low > 0.0 && interval.high / interval.low > VALUE_WIDE {
        return TOO_WIDE.to_owned();
    }
    let texts = [interval.estimate, interval.low, interval.high].map(|end| value(metric_unit, end));
    let [estimate, low, high] = texts.each_ref().map(|text| split(text));
    // One unit where all three numbers have it; else each brings its own.
    if estimate.1 == low.1 && estimate.1 == high.1 {
        format!("[{}, {}]", low.0, high.0)
    } else {
        format!("[{}, {}]", texts[1], texts[2])
    }
}

fn split(text: &str) -> (&str, &str) {
    let at = text
        // The unit begins behind sign, digits, commas and point.
        .find(|c: char| !c.is_ascii_digit() && !".,-".contains(c))
        .unwrap_or(text.len());
    text.split_at(at)
}

/// A value for an axis: no zeros behind the point.
pub(super) fn tick(metric_unit: &str, value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = self::value(metric_unit, value);
    let (number, unit) = split(&text);
    // Zeros may go behind a point alone: 100 must not become 1.
    if !number.contains('.') {
        return text;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}{unit}")
}

/// A ratio; one that no storage has (the end of an interval that knows nothing) without its digits.
pub(super) fn ratio(value: f64) -> String {
    match value {
        r if !r.is_finite() => MISSING.to_owned(),
        r if r != 0.0 && !(0.0005..9999.5).contains(&r.abs()) => unit::far(r),
        r => digits(r),
    }
}

/// An interval that holds 1 and whose ends differ by more than this factor says nothing: numbers such
/// as `[0.03, 194]` would only puzzle.
const WIDE: f64 = 16.0;

/// The interval of a ratio; none where neither end is a number, in words where it excludes nothing.
pub(super) fn ratio_range(interval: Interval) -> String {
    if !interval.low.is_finite() && !interval.high.is_finite() {
        return MISSING.to_owned();
    }
    let holds_one = (interval.low..=interval.high).contains(&1.0);
    if holds_one && interval.high / interval.low > WIDE {
        return TOO_WIDE.to_owned();
    }
    let end = |end: f64| match holds_one {
        true => ratio(end),
        false => unit::not_one(end).unwrap_or_else(|| ratio(end)),
    };
    format!("[{}, {}]", end(interval.low), end(interval.high))
}

/// A ratio and its interval; each is marked where it is missing.
pub(super) fn ratio_texts(ratio: Option<Interval>) -> [String; 2] {
    ratio.map_or([MISSING; 2].map(str::to_owned), |interval| {
        [self::ratio(interval.estimate), ratio_range(interval)]
    })
}

/// `throughput, higher is better`.
pub(super) fn metric(head: &MetricHead) -> String {
    format!("{}, {}", head.name, better(head))
}

/// A metric of a workload with its direction, as a heading.
pub(super) fn metric_on(workload: &str, head: &MetricHead) -> String {
    format!("{}, {}", head.on(workload), better(head))
}

fn better(head: &MetricHead) -> &'static str {
    match head.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    }
}

/// A text that commands no terminal and hides nothing, whatever names of files, machines or
/// configurations stand in it: what is no text is shown as signs, one for each. Line breaks and tabs
/// stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    match !is_simple(text) && text.contains(is_no_text) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(
            text.chars()
                .map(|letter| match is_no_text(letter) {
                    true => sign(letter),
                    false => letter,
                })
                .collect(),
        ),
    }
}

/// Text from the outside world on one line, as [`on_one_line`] has it, without blanks around it.
pub(super) fn plain(text: &str) -> String {
    on_one_line(text).trim().to_owned()
}

/// Text from the outside world on one line: what would break the line is a space, so that words stay apart, and
/// what is no text is a sign, as everywhere ([`harmless`]).
pub fn on_one_line(text: &str) -> String {
    const BREAKS: [char; 8] = [
        '\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    match is_simple(text) && !text.contains(['\n', '\t']) {
        true => text.to_owned(),
        false => harmless(&text.replace(BREAKS, " ")).into_owned(),
    }
}

/// Returns true if a text has only signs that are seen, of ASCII, in lines: nearly all texts, and known at once.
fn is_simple(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_beyond_reason_is_short() {
        let shown = [1.2345, 0.002, 2e-7, 1_066_247_021.0, f64::NAN].map(ratio);
        assert_eq!(
            shown,
            [
                "1.23",
                "0.002",
                "under a millionth",
                "over a million",
                MISSING
            ]
        );
    }

    #[test]
    fn an_interval_from_bytes_to_terabytes_is_shown_in_words() {
        let of = |low, high| Interval {
            estimate: 1e6,
            low,
            high,
        };
        assert_eq!(range("B/s", of(29.4, 150e12)), "[too wide]");
        assert_eq!(range("B/s", of(0.5e6, 2e6)), "[500 kB/s, 2.00 MB/s]");
    }

    #[test]
    fn an_interval_that_excludes_nothing_is_shown_in_words() {
        let shown = [
            (0.03, 194.0),
            (0.48, 2.18),
            (1.57, 41.2),
            // An end that reads as 1 would say that it holds 1.
            (0.894, 0.996),
            (0.894, 1.004),
            (f64::NAN, f64::NAN),
        ];
        let shown = shown.map(|(low, high)| {
            ratio_range(Interval {
                estimate: 2.56,
                low,
                high,
            })
        });
        assert_eq!(
            shown,
            [
                "[too wide]",
                "[0.48, 2.18]",
                "[1.57, 41.2]",
                "[0.89, 0.996]",
                "[0.89, 1.00]",
                MISSING
            ]
        );
    }

    #[test]
    fn an_interval_shares_the_unit_of_its_estimate() {
        let interval = Interval {
            estimate: 240e6,
            low: 231e6,
            high: 250.4e6,
        };
        assert_eq!(range("B/s", interval), "[231, 250]");
        let wide = Interval {
            high: 1.2e9,
            ..interval
        };
        assert_eq!(range("B/s", wide), "[231 MB/s, 1.20 GB/s]");
        let one_value = Interval {
            low: f64::NAN,
            high: f64::NAN,
            ..interval
        };
        assert_eq!(range("B/s", one_value), MISSING);
        assert_eq!(value("s", 0.0123), "12.3 ms");
        assert_eq!(tick("B/s", 200e6), "200 MB/s");
        assert_eq!(tick("ns", 1.5e6), "1.5 ms");
        assert_eq!(tick("op/s", 0.0), "0");
        assert_eq!(value("B/s", f64::NAN), MISSING);
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(
            plain("a\u{1b}[31m\nb\u{202e}\u{200b}c "),
            "a␛[31m b\u{fffd}\u{fffd}c"
        );
        assert_eq!(plain("a\r\nb\tc\u{2028}d\u{85}e"), "a  b c d e");
    }
}
