//! Amounts of bytes, times and shares: read as people write them, shown as people read them.
//!
//! IEC units (KiB = 1024 B) and SI units (kB = 1000 B) are spelled out. A bare `k` or `M` is 1024 or
//! 1024², as fio, dd, truncate and LVM take it. What is shown is always spelled out.

mod count;
mod far;
mod rounded;
mod whole;

pub use count::{count, counted};
pub use far::{far, far_rounded};
pub use rounded::{Rounded, decimals, not_one, percent, percent_rounded};
pub use stackrace_system::limit::InWords;
pub use stackrace_system::shown::{ShownName, ShownPath, is_no_name, is_no_text, sign, signs};
pub use whole::whole_time;

/// The reason for which a text is no amount, time or share. Shown, it is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{next}", if .next.is_empty() { "" } else { ": " })]
pub struct UnitError {
    /// The fault, one clause.
    pub what: String,
    /// Advice: what to write instead; empty if there is nothing helpful to say.
    pub next: String,
}

impl UnitError {
    fn new(what: String, next: impl Into<String>) -> Self {
        Self {
            what,
            next: next.into(),
        }
    }
}

/// Spellings of units of bytes, each with its bytes; without a unit, bytes are meant.
pub const BYTE_UNITS: &[(&[&str], f64)] = &[
    (&["", "B"], 1.0),
    (&["k", "K", "KiB"], 1024.0),
    (&["m", "M", "MiB"], 1024.0 * 1024.0),
    (&["g", "G", "GiB"], 1024.0 * 1024.0 * 1024.0),
    (&["t", "T", "TiB"], 1024.0 * 1024.0 * 1024.0 * 1024.0),
    (
        &["p", "P", "PiB"],
        1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0,
    ),
    (&["kB"], 1e3),
    (&["MB"], 1e6),
    (&["GB"], 1e9),
    (&["TB"], 1e12),
    (&["PB"], 1e15),
];
/// Spellings of units of time, each with its nanoseconds.
pub const TIME_UNITS: &[(&[&str], f64)] = &[
    (&["ns"], 1.0),
    (&["us", "µs"], 1e3),
    (&["ms"], 1e6),
    (&["s", "second", "seconds"], 1e9),
    (&["m", "min", "minute", "minutes"], 60e9),
    (&["h", "hour", "hours"], 3600e9),
    (&["d", "day", "days"], 86_400e9),
];

fn factor_of(units: &[(&[&str], f64)], word: &str) -> Option<f64> {
    let known = units.iter().find(|(words, _)| words.contains(&word))?;
    Some(known.1)
}

/// Parses an amount of bytes: `512`, `512 B`, `4 KiB`, `4k`, `1.5 GiB`, `900G`, `100 MB`.
///
/// # Errors
/// A sentence naming what is wrong and the spellings that exist.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let factor = factor_of(BYTE_UNITS, unit).ok_or_else(|| {
        UnitError::new(
            format!("\"{unit}\" is not a unit of bytes"),
            "write B, KiB, MiB, GiB, TiB, PiB (1024) or kB, MB, GB, TB, PB (1000)",
        )
    })?;
    let fraction = || UnitError::new(format!("\"{text}\" is not a whole number of bytes"), "");
    whole(number * factor).ok_or_else(fraction)
}

/// Parses a time: `500 ms`, `90 s`, `2 min`, `2 minutes`, `1.5 h`. Returns nanoseconds.
///
/// # Errors
/// A sentence naming what is wrong and the spellings that exist.
pub fn parse_time_ns(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let factor = factor_of(TIME_UNITS, unit).ok_or_else(|| match unit {
        "" => {
            let number = text.trim();
            UnitError::new(
                format!("\"{number}\" has no unit of time"),
                format!("write {number}s or {number}min"),
            )
        }
        other => UnitError::new(
            format!("\"{other}\" is not a unit of time"),
            "write ns, us, ms, s, min, h or d",
        ),
    })?;
    // Rounded, for a float holds many decimal fractions only nearly: 0.3 ms is 300,000.00000000006 ns.
    let too_long = || UnitError::new(format!("{text} is too long"), "write at most 104 d");
    whole((number * factor).round()).ok_or_else(too_long)
}

/// Nanoseconds of something that lasts, as [`parse_time_ns`]: more than none.
///
/// # Errors
/// As [`parse_time_ns`]; the time is 0.
pub fn parse_lasting_ns(text: &str) -> Result<u64, UnitError> {
    match parse_time_ns(text)? {
        0 => Err(UnitError::new(
            "nothing can be measured in no time".to_owned(),
            "write it like \"10 s\"",
        )),
        ns => Ok(ns),
    }
}

/// Parses a share: `5 %` or `0.05`.
///
/// # Errors
/// A sentence naming what is wrong.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text)?;
    match unit {
        "%" => Ok(number / 100.0),
        "" => Ok(number),
        other => Err(UnitError::new(
            format!("\"{other}\" is not a share"),
            "write 5 % or 0.05",
        )),
    }
}

/// Parses amounts of bytes with their weights: `4 KiB:70, 64 KiB:30`. The weights are whole numbers
/// of at least 1 and mean shares of their sum; an amount alone weighs 1.
///
/// # Errors
/// A sentence naming what is wrong and how it is written.
pub fn parse_weights(text: &str) -> Result<Vec<(u64, u32)>, UnitError> {
    let mut weights: Vec<(u64, u32)> = Vec::new();
    for part in text.split(',') {
        let (amount, weight) = match part.split_once(':') {
            // What is not a number gets the weight that is refused below, with the same advice.
            Some((amount, weight)) => (amount, weight.trim().parse().unwrap_or(0)),
            None => (part, 1),
        };
        let amount = parse_bytes(amount)?;
        if weight == 0 {
            return Err(UnitError::new(
                format!("\"{}\" has no weight of at least 1", part.trim()),
                "write it like 4 KiB:70, 64 KiB:30",
            ));
        }
        if weights.iter().any(|(known, _)| *known == amount) {
            return Err(UnitError::new(
                format!("{} appears twice", bytes(amount)),
                "write each size once, with one weight",
            ));
        }
        weights.push((amount, weight));
    }
    Ok(weights)
}

fn split(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let negative = text.strip_prefix('-');
    if negative.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) {
        return Err(UnitError::new(
            format!("\"{text}\" is below zero"),
            "write it without the minus",
        ));
    }
    let Ok(number) = text[..digits].parse::<f64>() else {
        return Err(UnitError::new(
            format!("\"{text}\" does not begin with a number"),
            "",
        ));
    };
    // Hundreds of digits parse as infinity, which no comparison below would catch.
    if !number.is_finite() {
        return Err(UnitError::new(format!("\"{text}\" is too large"), ""));
    }
    Ok((number, text[digits..].trim()))
}

fn whole(value: f64) -> Option<u64> {
    // 2^53: above it a float no longer holds every whole number.
    (value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value))
        .then_some(value as u64)
}

/// Bytes in IEC units, at most one decimal: `4 KiB`, `1.5 GiB`.
pub fn bytes(value: u64) -> String {
    scaled(
        value as f64,
        1024.0,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
    )
}

/// Amounts with their weights, as [`parse_weights`] reads them; one amount alone without.
pub fn weights(weights: &[(u32, u32)]) -> String {
    match weights {
        [(amount, _)] => bytes(u64::from(*amount)),
        several => several
            .iter()
            .map(|(amount, weight)| format!("{}:{weight}", bytes(u64::from(*amount))))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// A rate of bytes in SI units, three digits: `1.23 GB/s`.
pub fn bytes_per_second(value: f64) -> String {
    three_digits(value, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"])
}

/// Bytes in SI units, three digits, as rates are: `1.23 GB`.
pub fn si_bytes(value: f64) -> String {
    three_digits(value, &["B", "kB", "MB", "GB", "TB"])
}

/// The speed of a network line in bits, as cards are sold: `1 Gbit/s`, of 125,000,000 B/s.
pub fn bits_per_s(bytes_per_s: f64) -> String {
    let (value, unit) = match bytes_per_s * 8.0 {
        bits if bits >= 1e9 => (bits / 1e9, "Gbit/s"),
        bits => (bits / 1e6, "Mbit/s"),
    };
    // One decimal at most, and none that says nothing.
    format!("{} {unit}", (value * 10.0).round() / 10.0)
}

/// A rate of operations, three digits: `12.3 k/s`.
pub fn operations_per_second(value: f64) -> String {
    three_digits(value, &["/s", "k/s", "M/s", "G/s"])
}

/// A time, three digits: `1.23 ms`.
pub fn time_ns(value: f64) -> String {
    // From here on three digits would show "60.0 s", which people read as a minute.
    if value >= 59.95e9 {
        return long_time(value / 1e9);
    }
    three_digits(value, &["ns", "µs", "ms", "s"])
}

/// A value of a metric, finite, in the unit people use for it.
pub fn of_metric(metric_unit: &str, value: f64) -> String {
    match metric_unit {
        "B/s" => bytes_per_second(value),
        "op/s" => operations_per_second(value),
        "s" => time_ns(value * 1e9),
        "ns" => time_ns(value),
        "%" => percent(value / 100.0),
        "B" => bytes(value.max(0.0).round() as u64),
        "" => digits(value),
        other => format!("{} {other}", digits(value)),
    }
}

/// Parses a value of a metric, in the unit of the metric, as people write it: `10 ms`, `117 MB/s`, `1 Gbit/s`, `8000 /s`.
///
/// # Errors
/// The unit is none of this metric, or the value is 0.
pub fn parse_of_metric(metric_unit: &str, text: &str) -> Result<f64, UnitError> {
    let (number, word) = split(text)?;
    let example = match metric_unit {
        "ns" | "s" => "10 ms",
        "B/s" => "100 MB/s",
        "op/s" => "8000 /s",
        "%" => "5 %",
        "B" => "4 KiB",
        _ => "10",
    };
    let unfit = || UnitError {
        what: match metric_unit {
            "" => format!("\"{}\" has a unit, and this metric has none", text.trim()),
            unit => format!("\"{}\" is no value in {unit}", text.trim()),
        },
        next: format!("write it like \"{example}\""),
    };
    let value = match metric_unit {
        "ns" => parse_time_ns(text).ok().map(|ns| ns as f64),
        "s" => parse_time_ns(text).ok().map(|ns| ns as f64 / 1e9),
        "B/s" => bytes_per_second_of(number, word),
        "op/s" => match word {
            "/s" | "op/s" | "ops/s" | "IOPS" => Some(number),
            "k/s" => Some(number * 1e3),
            "M/s" => Some(number * 1e6),
            _ => None,
        },
        // Without its sign, 95 may be a share of 95 or one of 0.95.
        "%" => (word == "%").then_some(number),
        "B" => parse_bytes(text).ok().map(|bytes| bytes as f64),
        other => (word.is_empty() || word == other).then_some(number),
    };
    match value.ok_or_else(unfit)? {
        value if value > 0.0 => Ok(value),
        _ => Err(UnitError::new(
            format!(
                "\"{}\" bounds nothing: a figure is always above 0",
                text.trim()
            ),
            "",
        )),
    }
}

/// A rate in bytes or bits; `None` if it is in neither.
fn bytes_per_second_of(number: f64, word: &str) -> Option<f64> {
    let bits = match word {
        "kbit/s" => Some(1e3),
        "Mbit/s" => Some(1e6),
        "Gbit/s" => Some(1e9),
        _ => None,
    };
    if let Some(bits) = bits {
        return Some(number * bits / 8.0);
    }
    let unit = word.strip_suffix("/s")?.trim();
    // Without a unit they are operations.
    if unit.is_empty() {
        return None;
    }
    let one = parse_bytes(&format!("1 {unit}")).ok()?;
    Some(number * one as f64)
}

/// A plain number of three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        // Limits where rounding adds a digit: 99.95 is shown as 100 and not as 100.0.
        v if v == 0.0 || v >= 99.95 => count::with_decimals(value, 0),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A time of minutes and hours: `2 min 05 s`, `3 h 10 min`.
pub fn long_time(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Words as in a sentence: `a, b and c`.
pub fn listed<T: AsRef<str>>(words: &[T]) -> String {
    joined(words, ", ", " and")
}

/// Names as in a sentence: `a, b and c`. Names with commas of their own: `a, x; b, y; and c, z`.
pub fn listed_names<T: AsRef<str>>(names: &[T]) -> String {
    // The name of a configuration has a comma between its levels: where it ends must be seen.
    match names.iter().any(|name| name.as_ref().contains(", ")) {
        true => joined(names, "; ", "; and"),
        false => listed(names),
    }
}

fn joined<T: AsRef<str>>(words: &[T], between: &str, before_last: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [others @ .., last] if !others.is_empty() => {
            format!("{}{before_last} {last}", others.join(between))
        }
        _ => words.concat(),
    }
}

/// The step of the last digit of a number in plain digits, which may have a sign, a point and a power of ten: 1 of
/// `95`, 0.01 of `1.50`, 10⁻⁶ of `8.5e-05`; `None` if it is no such number.
pub fn written_step(word: &str) -> Option<f64> {
    let word = word.trim();
    let word = word.strip_prefix(['-', '+']).unwrap_or(word);
    let (figure, power) = match word.split_once(['e', 'E']) {
        Some((figure, power)) => (figure, power.parse::<i32>().ok()?),
        None => (word, 0),
    };
    let (whole, part) = figure.split_once('.').unwrap_or((figure, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(part) || whole.is_empty() && part.is_empty() {
        return None;
    }
    let decimals = i32::try_from(part.len()).ok()?;
    Some(10f64.powi(power.checked_sub(decimals)?))
}

/// The step of the last digit that a value needs, where nothing is told of how it was written. Whole
/// numbers have steps of 1, however many zeros they end in.
pub fn step_of(value: f64) -> f64 {
    // The shortest digits that give this value; of one that was computed these are 15 and more.
    written_step(&value.to_string()).unwrap_or(0.0)
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut index = 0;
    // One decimal would show the next unit's beginning as "1024.0".
    while (value * 10.0).round() / 10.0 >= base && index + 1 < units.len() {
        value /= base;
        index += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", units[index])
    } else {
        format!("{value:.1} {}", units[index])
    }
}

fn three_digits(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut index = 0;
    // 999.5 and more would be rounded to four digits.
    while value >= 999.5 && index + 1 < units.len() {
        value /= 1000.0;
        index += 1;
    }
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        0.0 => 0,
        _ => 2,
    };
    let unit = units[index];
    // "12 /s" would read as a division.
    let space = if unit.starts_with('/') { "" } else { " " };
    format!("{value:.digits$}{space}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_with_commas_shows_where_each_ends() {
        assert_eq!(listed_names(&["ext4"]), "ext4");
        assert_eq!(listed_names(&["ext4", "xfs", "f2fs"]), "ext4, xfs and f2fs");
        assert_eq!(
            listed_names(&["ext4, 4 KiB", "xfs, 4 KiB", "xfs, 8 KiB"]),
            "ext4, 4 KiB; xfs, 4 KiB; and xfs, 8 KiB"
        );
    }

    #[test]
    fn bytes_are_read_as_written() {
        assert_eq!(parse_bytes("4 KiB"), Ok(4096));
        assert_eq!(parse_bytes("4KiB"), Ok(4096));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("100 MB"), Ok(100_000_000));
        assert_eq!(parse_bytes("512"), Ok(512));
        assert_eq!(parse_bytes("4k"), Ok(4096));
        assert_eq!(parse_bytes("900G"), Ok(900 << 30));
        assert!(parse_bytes("4 kib").unwrap_err().next.contains("KiB"));
        assert_eq!(
            parse_time_ns("10").unwrap_err().to_string(),
            "\"10\" has no unit of time: write 10s or 10min"
        );
        assert!(parse_bytes("0.3 B").is_err());
        assert!(parse_bytes("KiB").is_err());
    }

    #[test]
    fn times_and_shares_are_read_as_written() {
        assert_eq!(parse_time_ns("500 ms"), Ok(500_000_000));
        assert_eq!(parse_time_ns("1.5 h"), Ok(5_400_000_000_000));
        assert_eq!(parse_time_ns("10 seconds"), Ok(10_000_000_000));
        assert_eq!(parse_time_ns("2 minutes"), parse_time_ns("120 s"));
        assert!(parse_time_ns("3").is_err());
        assert_eq!(parse_time_ns("104 d"), Ok(104 * 86_400_000_000_000));
        for long in ["107 d", "105 days", "2600 h", "1000000000 d"] {
            let refused = parse_time_ns(long).unwrap_err().to_string();
            assert!(refused.contains("at most 104 d"), "{long}: {refused}");
        }
        assert_eq!(parse_share("5 %"), Ok(0.05));
        assert_eq!(parse_share("0.05"), Ok(0.05));
    }

    #[test]
    fn weights_are_read_as_written() {
        assert_eq!(
            parse_weights("4 KiB:70, 64 KiB:30"),
            Ok(vec![(4096, 70), (65536, 30)])
        );
        assert_eq!(parse_weights(" 4KiB "), Ok(vec![(4096, 1)]));
        for (wrong, word) in [
            ("4 KiB:0", "weight of at least 1"),
            ("4 KiB:-3", "weight of at least 1"),
            ("4 KiB:70 %", "weight of at least 1"),
            ("4 KiB:99999999999", "weight of at least 1"),
            ("4 KiB:1, 4096:2", "4 KiB appears twice"),
            ("4q:1", "KiB"),
            ("-4 KiB", "below zero: write it without the minus"),
            ("", "does not begin with a number"),
            ("4 KiB:1,", "does not begin with a number"),
        ] {
            let error = parse_weights(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

    proptest::proptest! {
        /// Weights are read as they were written, with any blanks.
        #[test]
        fn weights_survive_being_written(
            sizes in proptest::collection::btree_map(1u32..1 << 20, 1u32.., 1..9),
            blank in "[ ]{0,2}",
        ) {
            let expected: Vec<(u64, u32)> =
                sizes.iter().map(|(size, weight)| (u64::from(*size) * 512, *weight)).collect();
            let text: Vec<String> = expected
                .iter()
                .map(|(size, weight)| format!("{blank}{size}{blank}B:{blank}{weight}{blank}"))
                .collect();
            proptest::prop_assert_eq!(parse_weights(&text.join(",")), Ok(expected));
        }

        /// Any text is either read or refused: nothing panics.
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            if let Ok(weights) = parse_weights(&text) {
                proptest::prop_assert!(weights.iter().all(|(_, weight)| *weight > 0));
            }
        }
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(1_610_612_736), "1.5 GiB");
        assert_eq!(bytes_per_second(1_234_000_000.0), "1.23 GB/s");
        assert_eq!(operations_per_second(12_345.0), "12.3 k/s");
        assert_eq!(time_ns(999.7), "1.00 µs");
        assert_eq!(time_ns(125e9), "2 min 05 s");
        assert_eq!(percent(0.034), "3.4 %");
    }

    #[test]
    fn a_step_is_that_of_the_last_digit() {
        let steps = [
            ("95", 1.0),
            ("1.50", 0.01),
            ("10.0", 0.1),
            (" -3.25 ", 0.01),
            ("8.5e-05", 1e-6),
            ("2e3", 1e3),
            (".5", 0.1),
        ];
        for (word, wanted) in steps {
            let found = written_step(word).unwrap();
            assert!((found / wanted - 1.0).abs() < 1e-12, "{word}: {found}");
        }
        for word in [
            "",
            ".",
            "1.2.3",
            "nan",
            "inf",
            "1,2",
            "1e",
            "1e99999999999",
            "0x10",
        ] {
            assert_eq!(written_step(word), None, "{word}");
        }
    }

    #[test]
    fn a_value_that_was_computed_has_next_to_no_step() {
        assert_eq!(step_of(2000.0), 1.0);
        assert_eq!(step_of(1.5), 0.1);
        assert!(step_of(2.0 / 3.0) < 1e-14);
        assert_eq!(step_of(f64::NAN), 0.0);
    }
}
