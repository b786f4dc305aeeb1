//! A figure among other text: its value, how finely it is written, and whether it is a figure at all.
//!
//! A pattern may catch a part of a number, of a version or of a date, or leave out the prefix that makes
//! thousands of it. Each of these would be a wrong figure that looks right, so each is refused.

use std::ops::Range;

use super::figure_unit::{self, is_digit};
use stackrace_base::printed::PrintedFigure;
use stackrace_base::printed::text::cut;
use stackrace_base::unit::written_step;

/// Pattern of a number, which most people write.
const PATTERN: &str = "([0-9.]+)";
/// Advice where a version or an address was caught.
const NAMED: &str = "it looks like a version or a name: say in the pattern what stands before the figure, as in tps = ([0-9.]+)";

/// Advice where a part of a time was caught.
const TIME: &str =
    "a time of hours and minutes is no number: have it print seconds (time -p does), or JSON";

/// Points, and what stands between groups of three, in any language.
const MARKS: &str =
    ".,'\u{2018}\u{2019}\u{2bc}_\u{b7}\u{2d9}\u{66b}\u{66c}\u{a0}\u{2007}\u{2008}\u{2009}\u{202f}";

/// The figure at a place in a text, in `unit` as the user says; `fixed` is the pattern behind its group.
///
/// # Errors
/// It is none, or not the whole of it; a clause with what to do.
pub(super) fn found(
    text: &str,
    at: Range<usize>,
    fixed: &str,
    unit: &str,
) -> Result<PrintedFigure, String> {
    let word = text[at.clone()].trim();
    let shown = cut(word);
    let figure = written(word)?.ok_or_else(|| {
        let points = word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let next = match points {
            true => NAMED.to_owned(),
            false => {
                format!("let the group of the pattern catch digits and a point, as in {PATTERN}")
            }
        };
        format!("\"{shown}\" is no number: {next}")
    })?;
    let begin = at.start + (text[at.clone()].len() - text[at.clone()].trim_start().len());
    let (before, after) = (&text[..begin], &text[begin + word.len()..]);
    let grouped = in_blank_groups(before, word, after);
    if let Some(whole) = grouped.filter(|_| !fixed.starts_with([' ', '\\'])) {
        return Err(format!(
            "\"{}\" may be one number or several: have it print plain digits, or say in the pattern what follows",
            cut(&whole)
        ));
    }
    if let Some(whole) = figure_unit::in_compound_time(before, word, after) {
        return Err(format!(
            "\"{shown}\" is only a part of \"{}\": {TIME}",
            cut(&whole)
        ));
    }
    if let Some((whole, next)) = of_another_writing(before, word, after) {
        return Err(format!(
            "\"{shown}\" is only a part of \"{}\": {next}",
            cut(&whole)
        ));
    }
    if is_part(before, after) {
        let whole = around(before, word, after);
        return Err(format!(
            "\"{shown}\" is only a part of \"{}\": {}",
            cut(&whole),
            advice(&whole)
        ));
    }
    figure_unit::check((before, &shown, after), fixed, unit)?;
    Ok(figure)
}

/// The word that a number is a part of, with the colons of a time.
fn around(before: &str, word: &str, after: &str) -> String {
    // Some blanks part groups of three digits.
    let ends = |c: char| c.is_whitespace() && !MARKS.contains(c) || "=;()[]{}<>|\"".contains(c);
    let from = before.rfind(ends).map_or(0, |end| {
        end + before[end..].chars().next().map_or(1, char::len_utf8)
    });
    let to = after.find(ends).unwrap_or(after.len());
    let whole = format!("{}{word}{}", &before[from..], &after[..to]);
    let digits = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    // A name has a colon behind it, and a sentence one at its end.
    let named = whole
        .rsplit_once(':')
        .filter(|_| !whole.split(':').all(digits));
    let number = |part: &str| part.contains(word);
    match named {
        Some((_, behind)) if number(behind) => behind.to_owned(),
        Some((before, _)) => before.rsplit(':').next().unwrap_or(before).to_owned(),
        None => whole,
    }
}

/// What to do about a pattern that catches a part of a word.
fn advice(whole: &str) -> String {
    let digit = is_digit;
    let any = |signs: &[char]| {
        whole.match_indices(signs).any(|(at, sign)| {
            digit(whole[..at].chars().next_back()) && digit(whole[at + sign.len()..].chars().next())
        })
    };
    let begins = whole.chars().next();
    if any(&[':', 'h', 'm']) {
        return TIME.to_owned();
    }
    if matches!(begins, Some('-' | '+' | '\u{2212}')) {
        return "a figure with a sign has no ratio to another: name one that is above 0".to_owned();
    }
    if any(&['e', 'E']) || whole.contains("e-") || whole.contains("e+") {
        return "let the group catch the power of ten as well, as in ([0-9.]+e[-+]?[0-9]+)"
            .to_owned();
    }
    let points = whole.matches('.').count();
    let letters = whole.contains(|c: char| c.is_ascii_alphabetic());
    if points > 1 || letters && whole.contains('-') || matches!(begins, Some('v' | 'V')) {
        return NAMED.to_owned();
    }
    if any(&[',', '\'', '_']) || whole.contains(|c: char| !c.is_ascii() && MARKS.contains(c)) {
        return "have it print plain digits (LC_ALL=C), or let the group catch all of it, as in ([0-9,.]+)".to_owned();
    }
    format!(
        "let the group catch all of it, as in {PATTERN}, and say in the pattern what stands before it"
    )
}

/// A number to base 16 or with a power of ten that is no `e`: all of it, and what to do.
fn of_another_writing(before: &str, word: &str, after: &str) -> Option<(String, &'static str)> {
    let hex = |c: char| c.is_ascii_hexdigit();
    let x = ['x', 'X'];
    let behind = after.strip_prefix(x).filter(|_| word == "0");
    let inside = before.trim_end_matches(hex);
    let inside = inside
        .strip_suffix(x)
        .and_then(|rest| rest.strip_suffix('0'));
    let inside = inside.filter(|rest| !is_digit(rest.chars().next_back()));
    if behind.is_some_and(|rest| rest.starts_with(hex)) || inside.is_some() {
        let next = "a number to base 16 is not read: have it print plain digits, or JSON";
        return Some((around(before, word, after), next));
    }
    // 9.505x10^2, 9.505 × 10³
    let sign = after
        .trim_start()
        .strip_prefix(['x', 'X', '\u{d7}', '*', '\u{b7}', '\u{22c5}'])?;
    let power = sign.trim_start().strip_prefix("10")?;
    let raised = power.starts_with(['^', '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{207b}'])
        || power.starts_with("**")
        || power.starts_with(|c| ('\u{2074}'..='\u{2079}').contains(&c));
    let end = power.find(char::is_whitespace).unwrap_or(power.len());
    let whole = format!("{word}{}", &after[..after.len() - power.len() + end]);
    let next = "a power of ten is read only as in 9.5e2: have it print plain digits, or JSON";
    raised.then_some((whole, next))
}

/// What a pattern has behind its first group; empty if it has none.
pub(super) fn behind_group(pattern: &str) -> &str {
    // Groups that are open, each with whether it is the first that catches.
    let (mut open, mut any) = (Vec::new(), false);
    let (mut escaped, mut class) = (false, false);
    for (at, c) in pattern.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            _ if class => {}
            '(' => {
                let rest = &pattern[at + 1..];
                let catches =
                    !rest.starts_with('?') || rest.starts_with("?<") || rest.starts_with("?P<");
                open.push(catches && !any);
                any |= catches;
            }
            ')' if open.pop() == Some(true) => return &pattern[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Reads a number as programs print it, `1,234.5` too; `None` if it is no number.
///
/// # Errors
/// It can be read in two ways; a clause with what to do.
pub(super) fn written(word: &str) -> Result<Option<PrintedFigure>, String> {
    let word = word.trim();
    let commas = word.matches(',').count();
    // Only whole groups of three; and one group alone may be decimals, which have a comma elsewhere.
    let grouped = commas > 0 && groups_of_three(word);
    let open = commas == 1 && (!word.contains('.') || !grouped);
    if open && word.split([',', '.']).all(plain) {
        return Err(format!(
            "the comma of \"{}\" may stand for thousands or for a point: run it with LC_ALL=C, or have it print plain digits",
            cut(word)
        ));
    }
    let digits = match grouped {
        true => word.replace(',', ""),
        false => word.to_owned(),
    };
    // `parse` alone also takes "nan", "inf" and "infinity".
    let step = written_step(&digits);
    let value = digits.parse().ok();
    Ok(value
        .zip(step)
        .map(|(value, step)| PrintedFigure { value, step }))
}

fn plain(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for `1,234,567` or `1,234.5`.
fn groups_of_three(word: &str) -> bool {
    let (whole, decimals) = word.split_once('.').unwrap_or((word, ""));
    if decimals.contains(',') {
        return false;
    }
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len())
        && plain(first)
        && groups.all(|group| group.len() == 3 && plain(group))
}

/// The number with what stands around it, if all of that may be one: `1 234 567.8`. Columns of other widths are none.
fn in_blank_groups(before: &str, word: &str, after: &str) -> Option<String> {
    let token = |text: &str| {
        let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
        plain(whole).then_some(whole.len())
    };
    // Only what one blank parts.
    let left: Vec<&str> = before
        .strip_suffix(' ')
        .map_or(Vec::new(), |text| text.rsplit(' ').collect());
    let right: Vec<&str> = after
        .strip_prefix(' ')
        .map_or(Vec::new(), |text| text.split([' ', '\n', '\r']).collect());
    let own = |text: &str| {
        let name = |c: char| "=:;([{|\"\n\t".contains(c);
        text.rsplit(name).next().map_or("", |end| end).to_owned()
    };
    let mut groups: Vec<String> = Vec::new();
    for text in left {
        let end = own(text);
        if token(&end).is_none() {
            break;
        }
        let begins = end.len() < text.len();
        groups.insert(0, end);
        if begins {
            break;
        }
    }
    groups.push(word.to_owned());
    let numbers = right.into_iter().take_while(|text| token(text).is_some());
    groups.extend(numbers.map(str::to_owned));
    let (first, others) = groups.split_first()?;
    let fits = token(first).is_some_and(|digits| digits <= 3)
        && !others.is_empty()
        && others.iter().all(|group| token(group) == Some(3))
        && groups
            .iter()
            .rev()
            .skip(1)
            .all(|group| !group.contains('.'));
    fits.then(|| groups.join(" "))
}

/// Returns true if the text around a number belongs to it: more digits, a sign, a power of ten, the `v`
/// of a version, minutes or hours (`1m2.5s`, `1:02.5`).
fn is_part(before: &str, after: &str) -> bool {
    let digit = is_digit;
    // Points, and what stands between groups of three.
    let mark = |c: Option<char>| c.is_some_and(|c| MARKS.contains(c));
    let (mut back, mut on) = (before.chars().rev(), after.chars());
    let (last, last_but_one) = (back.next(), back.next());
    let (first, second) = (on.next(), on.next());
    let goes_on_before = digit(last)
        || mark(last) && digit(last_but_one)
        || matches!(last, Some('-' | '+' | '\u{2212}'))
        || matches!(last, Some('v' | 'V')) && !last_but_one.is_some_and(char::is_alphabetic);
    let exponent =
        matches!(first, Some('e' | 'E')) && (digit(second) || matches!(second, Some('-' | '+')));
    let time = |c: Option<char>| matches!(c, Some(':' | 'h' | 'm'));
    // "p99:5" is a name and its figure; "1:02.5" is one time.
    let word = before.trim_end_matches([':', 'h', 'm']);
    let own = word.rsplit(char::is_whitespace).next().unwrap_or_default();
    let goes_on_before = goes_on_before
        || time(last)
            && !own.is_empty()
            && own.chars().all(|c| c.is_ascii_digit() || ":hm".contains(c));
    let goes_on = time(first) && digit(second);
    goes_on_before || goes_on || digit(first) || mark(first) && digit(second) || exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(text: &str, number: &str, unit: &str) -> Result<PrintedFigure, String> {
        let at = text.find(number).unwrap();
        found(text, at..at + number.len(), "", unit)
    }

    #[test]
    fn a_unit_that_a_pattern_fixes_is_no_other_in_another_run() {
        let of = |pattern: &str| {
            let text = "rate: 999 KiB/s";
            found(text, 6..9, behind_group(pattern), "").is_ok()
        };
        for fixed in [
            "rate: ([0-9.]+) KiB/s",
            r"rate:\s+([0-9.]+)\s*KiB",
            r"(?:rate|speed): ([(0-9.]+) KiB/s \(mean\)",
            "(?P<rate>[0-9.]+) KiB/s",
        ] {
            assert!(of(fixed), "{fixed}");
        }
        for open in [
            "rate: ([0-9.]+)",
            "rate: ([0-9.]+) .*",
            "rate: ([0-9.]+) [KM]iB/s",
            "rate: ([0-9.]+) KiB/s|rate: ([0-9.]+) MiB/s",
            "[0-9.]+",
        ] {
            assert!(!of(open), "{open}");
        }
        assert!(caught("rate: 999 KiB/s", "999", "KiB/s").is_ok());
        assert!(caught("lat 850 us", "850", "us").is_ok());
        for plain in [
            "took 5 s",
            "5 % busy",
            "5 files",
            "p99:5",
            "3 of 5",
            "5  100",
            "5 12 100",
            "5 100 99",
            "5 100.5 100",
        ] {
            assert!(caught(plain, "5", "").is_ok(), "{plain}");
        }
    }

    #[test]
    fn a_number_is_known_to_its_last_digit() {
        for (text, number, value, step) in [
            ("rate=2 MB/s", "2", 2.0, 1.0),
            ("took 1.50 s", "1.50", 1.5, 0.01),
            ("rate = 1,234.5 MB/s", "1,234.5", 1234.5, 0.1),
            ("1,234,567 ops", "1,234,567", 1_234_567.0, 1.0),
            ("8.5e-05 s", "8.5e-05", 8.5e-5, 1e-6),
            ("IOPS1234.", "1234", 1234.0, 1.0),
            ("(95)", " 95 ".trim(), 95.0, 1.0),
        ] {
            let unit = if text.contains("MB/s") { "MB/s" } else { "" };
            let found = caught(text, number, unit).unwrap();
            assert!((found.value / value - 1.0).abs() < 1e-12, "{text}");
            assert!((found.step / step - 1.0).abs() < 1e-9, "{text}");
        }
        assert!(
            caught("IOPS=10.9k,", "10.9", "kIOPS").is_ok(),
            "the user says so"
        );
    }

    #[test]
    fn what_is_no_whole_number_is_refused_with_what_to_do() {
        for (text, number, expected) in [
            ("rate=2.93 MB/s", "2", "only a part of \"2.93\""),
            ("rate=1,234 MB/s", "1", "only a part of \"1,234\""),
            ("sysbench 1.0.20 (using", "1.0", "only a part of \"1.0.20\""),
            ("fio-3.33", "3.33", "only a part of \"fio-3.33\""),
            ("v1.2 rate", "1.2", "only a part of \"v1.2\""),
            ("gain: -3", "3", "only a part of \"-3\""),
            ("1.5e+06 op/s", "1.5", "only a part of \"1.5e+06\""),
            ("IOPS=10.9k,", "10.9", "followed by \"k\""),
            ("12MiB/s", "12", "followed by \"MiB/s\""),
            ("12 MiB/s", "12", "followed by \"MiB/s\""),
            ("1.2 GBytes/sec", "1.2", "followed by \"GBytes/sec\""),
            ("lat 850 us", "850", "followed by \"us\""),
            ("lat 850 µs", "850", "followed by \"µs\""),
            ("took 1.02 min", "1.02", "followed by \"min\""),
            ("real 1m2.5s", "1", "only a part of \"1m2.5s\""),
            ("real 1m2.5s", "2.5", "only a part of \"1m2.5s\""),
            ("took 1:02.5", "1", "only a part of \"1:02.5\""),
            ("took 1:02.5", "02.5", "only a part of \"1:02.5\""),
            ("took: 1:02:03", "02", "only a part of \"1:02:03\""),
            ("t 1:05.3", "1", "print seconds"),
            ("t 1m5.3s", "5.3", "print seconds"),
            ("gain: -3", "3", "has no ratio"),
            ("1.5e+06 op/s", "1.5", "([0-9.]+e[-+]?[0-9]+)"),
            ("8e-05 op/s", "8", "([0-9.]+e[-+]?[0-9]+)"),
            ("sysbench 1.0.20 (using", "1.0", "what stands before"),
            ("fio-3.33", "3.33", "what stands before"),
            ("rate=1,234 MB/s", "1", "([0-9,.]+)"),
            ("rate 1'234", "1", "LC_ALL=C"),
            ("rate 1'234", "1", "only a part of"),
            ("rate 1\u{202f}234", "234", "only a part of"),
            ("rate 1\u{b7}234", "1", "only a part of"),
            ("rate 1'234 op/s", "1", "only a part of \"1'234\""),
            ("gain: \u{2212}3", "3", "only a part of"),
            ("rate=1 234 op/s", "1", "\"1 234\" may be one number"),
            ("rate=1 234 op/s", "234", "\"1 234\" may be one number"),
            ("rate: 12 345 678.9", "345", "\"12 345 678.9\" may be"),
            ("rate 1.234,5", "1.234,5", "LC_ALL=C"),
            ("rate 1,234", "1,234", "LC_ALL=C"),
            ("3,5 s", "3,5", "LC_ALL=C"),
            ("1,23,4", "1,23,4", "is no number"),
            ("rate: nan", "nan", "is no number"),
            ("rate: inf", "inf", "is no number"),
            ("rate: infinity", "infinity", "is no number"),
            ("2 MB/s", "2 MB/s", "is no number"),
            ("1.2.3", "1.2.3", "is no number"),
        ] {
            let error = caught(text, number, "").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Who wrote ([0-9.]+) is told something else than to write it.
    #[test]
    fn the_pattern_that_was_written_is_no_advice() {
        for (text, number) in [
            ("t 1:05.3", "1"),
            ("t 1:05.3", "05.3"),
            ("real 1m2.5s", "2.5"),
            ("1.5e+06 op/s", "1.5"),
            ("gain: -3", "3"),
            ("rate 1'234", "234"),
            ("rate=1,234 MB/s", "1"),
            ("sysbench 1.0.20x", "1.0.20"),
            ("v1.2 rate", "1.2"),
            ("from 10.0.0.1: 5", "10.0.0.1"),
            ("wait...", "..."),
        ] {
            let Err(error) = caught(text, number, "") else {
                continue;
            };
            assert!(!error.contains("as in ([0-9.]+)"), "{text}: {error}");
            let part = format!("\"{number}\" is only a part of \"{number}\"");
            assert!(!error.contains(&part), "{text}: {error}");
        }
    }
}
