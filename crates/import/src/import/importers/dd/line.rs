//! The lines of a report of dd, in the words of all of its implementations and of most languages.
//!
//! The words differ and the order does not: bytes, seconds, rate. The rate must be bytes over seconds,
//! so that a line whose words were taken for others is found out.

use stackrace_base::printed::text::{TextLine, bytes_of, cut};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Whole and partial records, as `64+0`.
pub(super) type Records = (u64, u64);

/// The last line of a report: bytes, time and rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub(super) bytes: u64,
    pub(super) seconds: PrintedFigure,
    /// B/s, from whichever statement of it has more digits.
    pub(super) rate: PrintedFigure,
    /// The line is one that only `status=progress` prints.
    pub(super) progress: bool,
}

impl Copied {
    /// Returns true if it may have been said under way to another.
    pub(super) fn within(&self, later: &Copied) -> bool {
        self.bytes <= later.bytes && self.seconds.value <= later.seconds.value
    }
}

/// The words of a report's last line.
pub(super) const RESULT: &str = "\"… bytes (…) copied, … s, … MB/s\"";
/// Stands in a line of progress of a BSD, `… bytes (…, …) transferred 2.002s, … MB/s`.
const UNDER_WAY: &str = ") transferred ";
/// Wording of BSDs and the oldest coreutils.
const TRANSFERRED: &str = " bytes transferred in ";

/// Reads `64+0 records in`, `64+0 Datensätze ein`, `记录了64+0 的读入`; `None` if the line is none of
/// these.
pub(super) fn records(line: TextLine<'_>) -> Option<Result<Records, ImportError>> {
    // A terminal shows the key that stopped it.
    let text = line.text.trim().trim_start_matches("^C");
    let english = [" records in", " records out"];
    if let Some(counts) = english.iter().find_map(|end| text.strip_suffix(end)) {
        let counts = counts.trim();
        let last = counts.rsplit([' ', ':', '\t']).next().unwrap_or_default();
        let expected = match last != counts && pair(last).is_some() {
            true => "records as 64+0, without the number of the line and without the file's name",
            false => "records as 64+0",
        };
        return Some(pair(counts).ok_or_else(|| line.refuse(expected)));
    }
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let (before, rest) = text.split_at(start);
    let counted = |c: char| c.is_ascii_digit() || c == '+';
    let end = rest.find(|c| !counted(c)).unwrap_or(rest.len());
    let (counts, after) = rest.split_at(end);
    // Words and nothing else stand around it: "3+4 = 7" is no such line.
    let words = |text: &str| {
        text.chars()
            .all(|c| c.is_alphabetic() || c == ' ' || c == '-')
    };
    let said = words(before) && words(after) && !after.trim().is_empty();
    (said && after.split(' ').count() <= 5).then_some(())?;
    pair(counts).map(Ok)
}

fn pair(word: &str) -> Option<Records> {
    let (whole, part) = word.split_once('+')?;
    let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    (plain(whole) && plain(part)).then_some(())?;
    Some((whole.parse().ok()?, part.parse().ok()?))
}

/// Returns true if a line ends with a rate and begins with an amount, as only reports do.
pub(super) fn is_result(line: TextLine<'_>) -> bool {
    let text = line.text.trim();
    let rate = ["/s", "/sec)", "/秒"].iter().any(|end| text.ends_with(end));
    // Its beginning may have been cut off.
    let english = text.contains("copied, ") && rate
        || text.contains(" copied, ")
        || text.contains(TRANSFERRED);
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    english || begins && rate && (text.contains(UNDER_WAY) || times(text))
}

/// Returns true if a line is the last one of a report in English, of which people copy no more than that.
pub(super) fn is_summary(line: TextLine<'_>) -> bool {
    let text = line.text.trim();
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    let of_gnu = text.contains(" bytes") && text.contains(" copied, ") && text.ends_with("/s");
    let of_bsd = text.contains(TRANSFERRED) && text.ends_with(" bytes/sec)");
    begins && (of_gnu || of_bsd)
}

/// A report of a run that was over before its clock moved on.
fn too_short(line: TextLine<'_>) -> ImportError {
    ImportError::at(
        line.index,
        format!(
            "\"{}\": dd took 0 s, too short for a rate",
            cut(line.text.trim())
        ),
        "let dd move more, as with a larger count=, so that it takes a second or longer",
    )
}

/// Returns true if a line has an amount, a time of one word and its unit, and a rate; rates of requests are of others.
fn times(text: &str) -> bool {
    parts(text).is_some_and(|(_, time, _)| {
        let unit = time.split_once(' ').map(|(_, unit)| unit);
        unit.is_some_and(|unit| !unit.contains(' ') && unit != "iops")
    })
}

/// Bytes with what stands in brackets behind them, the time, and the rate.
fn parts(text: &str) -> Option<(String, String, String)> {
    // Chinese and Japanese have commas of their own.
    let text = text
        .replace(['，', '、'], ", ")
        .replace('（', " (")
        .replace('）', ")");
    // From the end: a decimal comma has no blank behind it.
    let mut parts = text.rsplitn(3, ", ");
    let (rate, time, amount) = (parts.next()?, parts.next()?, parts.next()?);
    Some((
        amount.to_owned(),
        time.trim().to_owned(),
        rate.trim().to_owned(),
    ))
}

/// A report in a language whose order of words is not known.
pub(super) fn foreign(line: TextLine<'_>) -> ImportError {
    ImportError {
        next: "run it with LC_ALL=C: dd then prints \"… bytes (…) copied, … s, … MB/s\", with a point in its numbers".to_owned(),
        ..line.refuse(RESULT)
    }
}

/// `… bytes (…) copied, … s, … MB/s`, or `… bytes transferred in … secs (… bytes/sec)`.
pub(super) fn copied(line: TextLine<'_>) -> Result<Copied, ImportError> {
    let text = line.text.trim();
    if let Some((bytes, rest)) = text.split_once(TRANSFERRED) {
        return transferred(line, bytes, rest);
    }
    if let Some((amount, rest)) = text.split_once(UNDER_WAY) {
        return under_way(line, amount, rest);
    }
    let refuse = || foreign(line);
    let (amount, time, rate) = parts(text).ok_or_else(refuse)?;
    let end = amount.find(|c: char| !c.is_ascii_digit());
    let (bytes, words) = amount.split_at(end.unwrap_or(amount.len()));
    let mut behind = words.chars();
    let mark = behind.next().is_some_and(|c| !c.is_ascii_alphanumeric());
    if mark && behind.next().is_some_and(|c| c.is_ascii_digit()) {
        return Err(ImportError {
            next:
                "write the bytes without marks between their digits; dd prints none with LC_ALL=C"
                    .to_owned(),
            ..line.refuse(RESULT)
        });
    }
    let bytes = line.whole(bytes)?;
    let (figure, unit) = time.split_once(' ').ok_or_else(refuse)?;
    // One word for seconds, in any language: a digit would be another number.
    if unit.is_empty() || unit.contains(|c: char| c.is_ascii_digit() || c == ' ') {
        return Err(refuse());
    }
    let seconds = decimal(figure).ok_or_else(refuse)?;
    if seconds.value == 0.0 {
        return Err(too_short(line));
    }
    // GNU's dd prints six digits and leaves out zeros at their end: "10 s" are 10.0000 of them.
    // Toybox has no B in its brackets.
    let seconds = match words.contains("B)") {
        true => seconds.of_digits(6),
        false => seconds,
    };
    shown(line, bytes, words)?;
    // The printed rate has three digits only; this one has those of the time.
    let computed = over(bytes, seconds).ok_or_else(refuse)?;
    let printed = figure_of(rate.trim_end_matches("/s").trim_end_matches("/秒"));
    if !is_of(printed.ok_or_else(refuse)?, computed.value) {
        return Err(line.contradicts("itself: bytes over seconds is another rate"));
    }
    Ok(Copied {
        bytes,
        seconds,
        rate: computed,
        progress: false,
    })
}

/// Reads a line of progress of a BSD; its brackets are left as they are.
fn under_way(line: TextLine<'_>, amount: &str, rest: &str) -> Result<Copied, ImportError> {
    let refuse = || line.refuse("\"… bytes (…) transferred …s, … MB/s\"");
    let (bytes, words) = amount.split_once(" bytes ").ok_or_else(refuse)?;
    let bytes = line.whole(bytes)?;
    let (time, rate) = rest.split_once("s, ").ok_or_else(refuse)?;
    let seconds = decimal(time).ok_or_else(refuse)?;
    shown(line, bytes, &format!("{words})"))?;
    let rate = figure_of(rate.trim_end_matches("/s")).ok_or_else(refuse)?;
    Ok(Copied {
        bytes,
        seconds,
        rate,
        progress: true,
    })
}

fn transferred(line: TextLine<'_>, bytes: &str, rest: &str) -> Result<Copied, ImportError> {
    let expected = "\"… bytes transferred in … secs (… bytes/sec)\"";
    let refuse = || line.refuse(expected);
    let (time, rate) = rest.split_once(" (").ok_or_else(refuse)?;
    let time = ["secs", "seconds", "sec", "second"]
        .iter()
        .find_map(|unit| time.strip_suffix(unit))
        .ok_or_else(refuse)?
        .trim();
    let seconds = decimal(time).ok_or_else(refuse)?;
    if seconds.value == 0.0 {
        return Err(too_short(line));
    }
    let bytes = line.whole(bytes)?;
    let rate = rate.strip_suffix(" bytes/sec)").ok_or_else(refuse)?;
    let rate = line.number(rate)?;
    let computed = over(bytes, seconds).ok_or_else(refuse)?.value;
    // Few digits of a short time leave the quotient wide open.
    let close = (computed - rate.value).abs() <= 0.051 * computed.max(rate.value);
    if !close {
        return Err(line.contradicts("itself: bytes over seconds is another rate"));
    }
    // The rate is whole bytes and has more digits than the time.
    Ok(Copied {
        bytes,
        seconds,
        rate,
        progress: false,
    })
}

/// The rate of bytes, which are exact, over a time; `None` if no time passed.
fn over(bytes: u64, seconds: PrintedFigure) -> Option<PrintedFigure> {
    PrintedFigure::exact(bytes as f64).per(seconds)
}

/// Returns true if a figure as it is shown may be this one, rounded or cut off.
fn is_of(shown: PrintedFigure, value: f64) -> bool {
    // Tools and people round in their own ways; another unit or leading digit is found out.
    (shown.value - value).abs() <= shown.step.max(0.051 * value)
}

/// Reads `67 MB`, `1.0 GiB`, `1.0GB` of busybox, `0.9 G` of toybox, `1,1 GB`.
fn figure_of(word: &str) -> Option<PrintedFigure> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))?;
    let (figure, unit) = word.split_at(end);
    let plain = unit.trim();
    let letters = "KMGTPEkB";
    let scale = match plain {
        // Busybox has no blank, and its units are of 1024.
        _ if !unit.starts_with(' ') && plain.len() == 2 => bytes_of(&format!(
            "{}iB",
            plain.strip_suffix('B')?.to_ascii_uppercase()
        ))?,
        _ if plain.ends_with('B') => bytes_of(plain)?,
        // Toybox writes the letter alone, and means 1024 by it.
        _ if plain.len() == 1 && letters.contains(plain) => {
            bytes_of(&format!("{}iB", plain.to_ascii_uppercase()))?
        }
        _ => return None,
    };
    Some(decimal(figure)? * scale)
}

/// Checks `s (67 MB, 64 MiB) copied`: what stands in brackets is the bytes, rounded.
fn shown(line: TextLine<'_>, bytes: u64, words: &str) -> Result<(), ImportError> {
    let Some((_, inner)) = words.split_once('(') else {
        return Ok(());
    };
    let expected = "the bytes in brackets, as (67 MB, 64 MiB)";
    let (inner, _) = inner.split_once(')').ok_or_else(|| line.refuse(expected))?;
    for part in inner.split(", ") {
        match figure_of(part) {
            Some(amount) if is_of(amount, bytes as f64) => {}
            Some(_) => return Err(line.contradicts("itself: the bytes in brackets are others")),
            None => return Err(line.refuse(expected)),
        }
    }
    Ok(())
}

/// A number as dd prints it: `0.097739`, `0,097739` where the language has a comma, `8.5628e-05`.
/// It never groups digits, so that one comma is a decimal one.
fn decimal(word: &str) -> Option<PrintedFigure> {
    let pointed = match (word.matches(',').count(), word.contains('.')) {
        (0, _) => word.to_owned(),
        (1, false) => word.replace(',', "."),
        _ => return None,
    };
    match pointed.split_once("e-") {
        // dd prints times below 0.0001 s as 5.2e-05.
        Some((figure, power)) => {
            let power: i32 = power
                .parse()
                .ok()
                .filter(|power| (0..=12).contains(power))?;
            Some(PrintedFigure::read(figure)? * 10f64.powi(-power))
        }
        None => PrintedFigure::read(&pointed),
    }
}
