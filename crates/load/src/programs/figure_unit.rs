//! The unit that stands behind a printed figure, against the one that was said.
//!
//! Programs change the unit with the size of the figure: 950 ms, then 1.2 s. One run does not show that,
//! so the unit behind a figure has to be the one that was said, or one that stands in the pattern.

/// Words that multiply.
const MULTIPLIERS: [&str; 17] = [
    "hundred", "dozen", "thousand", "million", "billion", "trillion", "mio", "mrd", "mln", "mld",
    "mn", "bn", "tsd", "lakh", "crore", "milliard", "tausend",
];
/// Words of what is counted, a second or altogether.
const COUNTS: [&str; 11] = [
    "op", "ops", "io", "ios", "iop", "iops", "tps", "qps", "req", "reqs", "requests",
];
/// Blanks between a figure and its unit.
const BLANKS: [char; 4] = [' ', '\t', '\u{a0}', '\u{202f}'];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Time,
    Bytes,
    Bits,
    Count,
    /// Only a prefix: it may be of anything.
    Any,
}

/// A unit that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    of: Of,
    /// How many of them: `k`, `Mi`, `million`; of a time its unit; empty: one.
    times: String,
    /// The time in which so much is done; `s` also where none is said.
    per: &'static str,
}

/// The unit of time that a word stands for.
fn time(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().as_str() {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => "ns",
        "us" | "µs" | "μs" | "usec" | "usecs" | "µsec" | "microsecond" | "microseconds" => "us",
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" if word == "m" => "min",
        "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => return None,
    })
}

/// Bytes, bits and counts without a prefix, and whether a time stands in the word.
fn plain(word: &str) -> Option<Of> {
    match word {
        "B" | "Bps" => Some(Of::Bytes),
        "b" | "bps" => Some(Of::Bits),
        _ => match word.to_lowercase().as_str() {
            "byte" | "bytes" => Some(Of::Bytes),
            "bit" | "bits" => Some(Of::Bits),
            word => COUNTS.contains(&word).then_some(Of::Count),
        },
    }
}

impl Unit {
    fn read(word: &str) -> Option<Self> {
        let word = word.replace(" per ", "/");
        let (what, per) = match word.split_once('/') {
            Some((what, per)) => (what, Some(per.trim())),
            None => (word.as_str(), None),
        };
        let what = what.trim();
        let timed = per.and_then(time);
        let unit = |of, times: &str| Self {
            of,
            times: times.to_owned(),
            per: timed.unwrap_or("s"),
        };
        if let Some(time) = time(what) {
            return Some(unit(Of::Time, time));
        }
        if let Some(of) = plain(what) {
            return Some(unit(of, ""));
        }
        let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
        let lower = first.to_lowercase();
        let many = lower.strip_suffix('s').unwrap_or(&lower);
        if MULTIPLIERS.contains(&many) {
            return Some(unit(plain(rest.trim()).unwrap_or(Of::Any), many));
        }
        if let Some((times, rest)) = prefixed(what) {
            return Some(unit(rest, &times));
        }
        // Of anything else that is done in a time only the time is known.
        (timed.is_some() && !what.is_empty()).then(|| unit(Of::Count, ""))
    }

    /// Returns true if it can stand behind every figure: programs print another one only if it has a prefix.
    fn is_base(&self) -> bool {
        self.per == "s" && matches!((self.of, self.times.as_str()), (Of::Time, "s") | (_, ""))
    }

    /// Returns true if a figure with this behind it is one in a unit that was said.
    fn is(&self, said: &Self) -> bool {
        let same = self.of == said.of || self.of == Of::Any && said.of == Of::Count;
        same && self.times == said.times && self.per == said.per
    }
}

/// A prefix, and what it multiplies.
fn prefixed(word: &str) -> Option<(String, Of)> {
    let first = word.chars().next()?;
    let rest = &word[first.len_utf8()..];
    let (binary, rest) = match rest.strip_prefix('i') {
        // "Mi" and "MiB", and not "Mio/s" or "kios".
        Some(behind) if behind.is_empty() || is_data(behind) => ("i", behind),
        _ => ("", rest),
    };
    let of = match rest {
        "" => Some(Of::Any),
        rest => plain(rest),
    }?;
    let sign = match first {
        'k' | 'K' => "k",
        'M' => "M",
        'G' => "G",
        'T' => "T",
        'P' => "P",
        // Nothing is a thousandth of a byte.
        'm' if is_data(rest) => "M",
        'g' if is_data(rest) => "G",
        't' if is_data(rest) => "T",
        _ => return None,
    };
    Some((format!("{sign}{binary}"), of))
}

fn is_data(word: &str) -> bool {
    matches!(plain(word), Some(Of::Bytes | Of::Bits))
}

/// The letters behind a figure, `MB/s` or `MB per second`; empty if there are none.
fn behind(after: &str) -> &str {
    let letters = after.trim_start_matches(BLANKS);
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_alphabetic());
        end.unwrap_or(text.len())
    };
    let mut end = word(letters);
    for joint in ["/", " per "] {
        if let Some(rest) = letters[end..].strip_prefix(joint)
            && end > 0
            && word(rest) > 0
        {
            end += joint.len() + word(rest);
            break;
        }
    }
    // "rate 5 s=3": the letters are the name of the next figure.
    let next = letters[end..].chars().next();
    let name = next.is_some_and(|c| c == '=' || c == '_' || c.is_ascii_digit());
    match letters.len() < after.len() && name {
        true => "",
        false => &letters[..end],
    }
}

/// Refuses a figure whose unit is not the one that was said, or may be another one in the next run.
/// `before` and `after` are the text around it, `fixed` is the pattern behind its group.
///
/// # Errors
/// What stands there, and what to do; a clause.
pub(super) fn check(
    (before, shown, after): (&str, &str, &str),
    fixed: &str,
    said: &str,
) -> Result<(), String> {
    let said = said.trim();
    let word = behind(after);
    let wanted = Unit::read(said);
    let Some(unit) = Unit::read(word) else {
        return match wanted.filter(|wanted| has_to_stand(wanted, before, said)) {
            Some(wanted) => Err(missing(shown, said, &wanted)),
            None => Ok(()),
        };
    };
    // A program that writes "mb/s" may be told apart from one that writes "MB/s" by nothing else.
    let spelled = word == said || word.len() > 1 && word.eq_ignore_ascii_case(said);
    let fits = match &wanted {
        Some(wanted) => unit.is(wanted),
        None if said.is_empty() => unit.is_base(),
        None => unit.is_base() && unit.of == Of::Count,
    };
    if spelled || fits || is_fixed(fixed, word, &unit) {
        return Ok(());
    }
    let always = always(word, &unit, said, wanted.as_ref());
    Err(match said {
        "" => format!(
            "\"{shown}\" is followed by \"{word}\", which changes what it means, and programs print another one when the figure grows: have it print plain digits or JSON, or if it always prints {word}, {always}"
        ),
        said => format!(
            "\"{shown}\" is followed by \"{word}\", and the unit was said to be {said}: programs print another one when the figure grows: have it print plain digits or JSON, or if it always prints {word}, {always}"
        ),
    })
}

/// Whether the unit that was said stands behind a figure; `None` if it makes no difference: the unit has no prefix, or
/// the pattern has it.
pub(super) fn stands(after: &str, fixed: &str, said: &str) -> Option<bool> {
    let said = said.trim();
    let plain = Unit::read(said).is_some_and(|wanted| wanted.is_base());
    if said.is_empty() || plain || says(&fixed.replace("\\/", "/"), said) {
        return None;
    }
    let word = behind(after);
    Some(word.eq_ignore_ascii_case(said) || Unit::read(word).is_some())
}

/// Returns true if the prefix of a unit that was said has to stand behind each figure: it is printed where
/// the figure is large ("10.9k", "950"), unless the text says elsewhere what it counts in.
fn has_to_stand(wanted: &Unit, before: &str, said: &str) -> bool {
    let stands = |(at, _): (usize, &str)| {
        let last = before[..at].trim_end().chars().next_back();
        !is_digit(last) && !last.is_some_and(char::is_alphabetic)
    };
    let headed = wanted.of == Of::Count && before.match_indices(said).any(stands);
    matches!(wanted.of, Of::Count | Of::Any) && !wanted.times.is_empty() && !headed
}

fn missing(shown: &str, said: &str, wanted: &Unit) -> String {
    let times = &wanted.times;
    format!(
        "\"{shown}\" has no \"{times}\" behind it, and the unit was said to be {said}: programs print {times} only where the figure is large: have it print plain digits or JSON, and say a unit without {times}"
    )
}

/// Returns true if a pattern takes nothing else than this unit.
fn is_fixed(fixed: &str, word: &str, unit: &Unit) -> bool {
    let what = word.split(['/', ' ']).next().unwrap_or(word);
    let fixed = fixed.replace("\\/", "/");
    says(&fixed, word) || unit.per == "s" && says(&fixed, what)
}

/// How to say that a program always prints this unit.
fn always(word: &str, unit: &Unit, said: &str, wanted: Option<&Unit>) -> String {
    let pattern = format!("in the pattern, as in ([0-9.]+) ?{word}");
    match (unit.of, wanted) {
        (Of::Any, Some(wanted)) if wanted.of == Of::Count && wanted.times.is_empty() => {
            format!("say so with --unit {word}{said}, or {pattern}")
        }
        // Of "950" behind "10.9M" only the pattern tells that it is no MB.
        (Of::Any, Some(_)) => format!("say so {pattern}"),
        _ if word.contains(' ') => format!("say so with --unit \"{word}\", or {pattern}"),
        _ => format!("say so with --unit {word}, or {pattern}"),
    }
}

/// Returns true if a figure is a part of a time of several units: `1 min 2 secs`, `2h 5 min`.
pub(super) fn in_compound_time(before: &str, word: &str, after: &str) -> Option<String> {
    const SIZES: [&str; 7] = ["ns", "us", "ms", "s", "min", "h", "d"];
    let size = |word: &str| {
        let time = time(word)?;
        SIZES.iter().position(|one| *one == time)
    };
    let own = behind(after);
    let joint = |text: &str| {
        let text = text.trim_matches(BLANKS);
        text.is_empty() || text == "," || text == "and"
    };
    // The larger part before it is a whole number: "2h", "1 hour and".
    let larger = || {
        let end = before
            .trim_end_matches(BLANKS)
            .trim_end_matches("and")
            .trim_end_matches([' ', ',']);
        let letters = end.trim_end_matches(char::is_alphabetic);
        let number = letters.trim_end_matches(BLANKS);
        let digits = number.trim_end_matches(|c: char| c.is_ascii_digit());
        let whole = digits.len() < number.len() && !digits.ends_with(['.', ',']);
        let glued = letters.len() == number.len();
        let of = size(&end[letters.len()..]).filter(|of| whole && *of >= 3)?;
        let fits = match size(own) {
            Some(own) => own < of,
            None => glued && own.is_empty() && end.len() < before.len(),
        };
        fits.then(|| format!("{}{word}{}", &before[digits.len()..], unit_of(after, own)))
    };
    let smaller = || {
        let of = size(own).filter(|of| *of >= 3 && !word.contains('.'))?;
        let rest = &after[unit_of(after, own).len()..];
        let at = rest.find(|c: char| c.is_ascii_digit())?;
        let number = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let next = behind(number);
        let fits = joint(&rest[..at]) && size(next).is_some_and(|next| next < of);
        let end = after.len() - number.len() + unit_of(number, next).len();
        fits.then(|| format!("{word}{}", &after[..end]))
    };
    larger().or_else(smaller)
}

/// A unit with the blank before it.
fn unit_of<'a>(after: &'a str, unit: &str) -> &'a str {
    let blanks = after.len() - after.trim_start_matches(BLANKS).len();
    match unit {
        "" => "",
        unit => &after[..blanks + unit.len()],
    }
}

/// Returns true if a pattern, from behind its group on, takes nothing else than these letters there.
fn says(fixed: &str, letters: &str) -> bool {
    const BLANKS: [&str; 7] = [" ", "\\s", "\\t", "\\ ", "+", "*", "?"];
    let mut rest = fixed;
    while let Some(on) = BLANKS.iter().find_map(|blank| rest.strip_prefix(blank)) {
        rest = on;
    }
    // "ms?" takes the "m" of minutes as well; "secs?" one unit in two forms.
    let end = rest.find(|c: char| !c.is_alphabetic() && c != '/');
    let (word, next) = rest.split_at(end.unwrap_or(rest.len()));
    let open = next.starts_with(['?', '*', '{']) && !(word.len() > 3 && word.ends_with('s'));
    word.starts_with(letters) && !open && !fixed.contains('|')
}

pub(super) fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}
