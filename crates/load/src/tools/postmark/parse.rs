//! Reading what PostMark printed.
//!
//! Everything but the reports is passed over: the banner, progress, prompts; the last
//! configuration shown is kept. Blanks do not count: a page or a mail turns tabs into spaces. What
//! was cut off at either end is left out; a report must have everything in between, and its numbers
//! must agree with each other as far as PostMark's rounding lets that be known, so that a damaged
//! text is refused and not believed.

use super::report::{PostmarkReport, RATES};
use stackrace_base::event::Fact;
use stackrace_base::printed::{ImportError, PrintedFigure, text};

/// The lines of a configuration, and the settings of a study they name.
const SHOWN: [(&str, &[&str]); 9] = [
    ("The base number of files is {}", &["number"]),
    ("Transactions: {}", &["transactions"]),
    (
        "Files range between {} and {} in size",
        &["size-low", "size-high"],
    ),
    ("Files are {} in size", &["size"]),
    ("{} subdirectories will be used", &["subdirectories"]),
    (
        "Block sizes are: read={}, write={}",
        &["read-block", "write-block"],
    ),
    (
        "Biases are: read/append={}, create/delete={}",
        &["bias-read", "bias-create"],
    ),
    ("{}sing Unix buffered file I/O", &["buffering"]),
    ("Random number generator seed is {}", &["seed"]),
];

/// The lines of a verbose report, in their order.
const REPORT: [&str; 12] = [
    "{} seconds total",
    "{} seconds of transactions ({} per second)",
    "{} created ({} per second)",
    "Creation alone: {} files ({} per second)",
    MIXED,
    "{} read ({} per second)",
    "{} appended ({} per second)",
    "{} deleted ({} per second)",
    "Deletion alone: {} files ({} per second)",
    MIXED,
    "{} read ({} per second)",
    "{} written ({} per second)",
];
const MIXED: &str = "Mixed with transactions: {} files ({} per second)";
/// Letters that a line of a configuration begins with, if it is long enough to be folded.
const SHORT: usize = 15;
/// Titles between the lines of a verbose report.
const TITLES: [&str; 3] = ["Time:", "Files:", "Data:"];

/// Every report of a text, with the configuration shown before it.
///
/// # Errors
/// There is none, or one lacks a line in the middle or contradicts itself.
pub fn parse(text: &str) -> Result<Vec<PostmarkReport>, ImportError> {
    let lines: Vec<&str> = text::lines(text).iter().map(|it| it.text.trim()).collect();
    let (mut reports, mut settings) = (Vec::new(), Vec::new());
    let mut out_of_files = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        let begins = at;
        // At the end, because the prompt stands before it: what was typed has no line break in the
        // output.
        if line.ends_with("Current configuration is:") {
            settings.clear();
        } else if let Some(shown) = shown(line) {
            settings.extend(shown);
        } else if is_broken(line) {
            return Err(misread(
                at,
                format!("\"{}\" is no whole line", text::cut(line)),
            ));
        } else if line.ends_with("out of files!") {
            out_of_files = Some(at);
        } else if TITLES.contains(&line) || of_report(line) {
            let mut verbose = Verbose {
                lines: &lines,
                at: at - 1,
            };
            reports.extend(verbose.read()?);
            at = verbose.at;
        } else if let Some(report) = terse(line) {
            reports.push(report.map_err(|what| misread(at, what))?);
        } else {
            continue;
        }
        if let Some(report) = reports.last_mut()
            && report.settings.is_empty()
        {
            report.settings.clone_from(&settings);
            if !is_of(report) {
                let what = "the transactions per second are not those of the configuration before them over their seconds";
                return Err(misread(begins, what.to_owned()).contradicting());
            }
        }
    }
    match (reports.is_empty(), out_of_files) {
        (false, _) => Ok(reports),
        (true, Some(line)) => Err(ImportError::at(
            line - 1,
            "the run ran out of files, and PostMark prints no report then",
            "give it more files or fewer transactions",
        )),
        (true, None) => Err(misread(
            lines.len().max(1),
            "there is no report of PostMark in it".to_owned(),
        )),
    }
}

/// Returns false if a report cannot be of the configuration that was shown before it.
fn is_of(report: &PostmarkReport) -> bool {
    let shown = Fact::value_of(&report.settings, "transactions").and_then(number::<f64>);
    let (rate, during) = (report.rates[0].value, report.transactions_s.value);
    // PostMark cuts off what is less than one a second. Where the text was cut off, there may be no rate.
    let near = |shown: f64| (shown / during - rate).abs() <= 1.0;
    rate == 0.0 || during == 0.0 || shown.is_none_or(near)
}

fn misread(line: usize, what: String) -> ImportError {
    ImportError::at(
        line - 1,
        what,
        "take the whole output of PostMark, unchanged",
    )
}

/// The settings a line of a configuration shows.
fn shown(line: &str) -> Option<Vec<Fact>> {
    let found = |(pattern, names): &(&str, &[&str])| {
        let values = fields(line, pattern)?;
        let is_value = |value: &&str| {
            let (first, rest) = value.split_once(' ').unwrap_or((value, "bytes"));
            let unit = ["bytes", "kilobytes", "megabytes"].contains(&rest);
            matches!(*value, "U" | "Not u") || number::<f64>(first).is_some() && unit
        };
        values.iter().all(is_value).then_some(())?;
        let facts = names.iter().zip(values).map(|(name, value)| {
            let value = match (*name, value) {
                ("buffering", "U") => "true",
                ("buffering", _) => "false",
                _ => value,
            };
            Fact::new(*name, value)
        });
        Some(facts.collect())
    };
    SHOWN.iter().find_map(found)
}

/// Returns true if a line begins as one of PostMark's does, and does not end so.
fn is_broken(line: &str) -> bool {
    let begins = SHOWN
        .iter()
        .filter_map(|(pattern, _)| pattern.split("{}").next());
    // Shorter ones are not folded, and may be anybody's words.
    let mut begins = begins.filter(|begin| begin.len() > SHORT);
    begins.any(|begin| line.starts_with(begin))
}

/// Returns true if a line is a part of one of a report.
fn has_figures(line: &str) -> bool {
    ["per second", "kilobytes", "megabytes", "second)"]
        .iter()
        .any(|words| line.contains(words))
}

/// Returns the words in the places of `{}`, if everything else is as in the pattern.
fn fields<'a>(line: &'a str, pattern: &str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split("{}");
    let mut rest = line.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() {
            rest.ends_with(piece).then(|| rest.len() - piece.len())?
        } else {
            rest.find(piece)?
        };
        found.push(&rest[..end]);
        rest = &rest[end + piece.len()..];
    }
    Some(found)
}

/// A number as PostMark prints one.
fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    let digits = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    (digits && !word.starts_with('.')).then(|| word.parse().ok())?
}

/// An amount of bytes in PostMark's words.
fn amount(words: &str) -> Option<PrintedFigure> {
    let (value, unit) = words.split_once(' ')?;
    let value = PrintedFigure::read(value)?;
    let scale = match unit {
        "megabytes" => 1_048_576.0,
        "kilobytes" => 1024.0,
        "bytes" if value.value == 0.0 => 1.0,
        _ => return None,
    };
    Some(value * scale)
}

/// Returns true if a line belongs to a verbose report.
fn of_report(line: &str) -> bool {
    (0..REPORT.len()).any(|at| words(line, at).is_some())
}

/// Returns true if a text has the lines that only a verbose report has, wherever it was cut off.
pub(super) fn has_report(text: &str) -> bool {
    let ours = |line: &str| {
        let line = line.trim();
        [1, 3, 8]
            .into_iter()
            .any(|place| words(line, place).is_some())
    };
    text.lines().any(ours)
}

/// The figures of a line, if it is that of this place in a report.
fn words(line: &str, place: usize) -> Option<Vec<&str>> {
    let found = fields(line, REPORT[place])?;
    // "read" stands twice in a report: of files, which are counted, and of data, which has a unit.
    let data = place >= 10;
    let fits = |word: &str| match data {
        true => amount(word).is_some(),
        false => number::<u64>(word).is_some(),
    };
    found.iter().all(|word| fits(word)).then_some(found)
}

/// A verbose report under its reader's finger.
struct Verbose<'a> {
    lines: &'a [&'a str],
    /// Lines read so far.
    at: usize,
}

/// The lines of a report that a text has: number of the line, from 1, and its figures.
type Found<'a> = [Option<(usize, Vec<&'a str>)>; REPORT.len()];

impl<'a> Verbose<'a> {
    /// Reads the report; `None` if nothing of it is left.
    fn read(&mut self) -> Result<Option<PostmarkReport>, ImportError> {
        let found = self.collect()?;
        // Seconds alone are no result.
        let any = found.iter().skip(1).any(Option::is_some);
        any.then(|| Figures { found }.report()).transpose()
    }

    /// The lines of this report; those of others between them are passed over.
    fn collect(&mut self) -> Result<Found<'a>, ImportError> {
        let mut found: Found<'a> = Default::default();
        // The place of the line that must come next; none: any, as the beginning may be cut off.
        let mut next = None;
        while let Some(line) = self.lines.get(self.at).copied() {
            if line == TITLES[0] && next.is_some_and(|next| next > 0) {
                break;
            }
            self.at += 1;
            if line == TITLES[0] {
                next = Some(0);
            }
            let place = (next.unwrap_or(0)..REPORT.len()).find(|at| words(line, *at).is_some());
            match (place, next) {
                // Of creation or of deletion: without the lines before it there is no telling.
                (Some(_), None) if fields(line, MIXED).is_some() => {}
                // Whatever line comes first may be the first that was not cut off.
                (Some(place), expected) if expected.is_none_or(|expected| expected == place) => {
                    found[place] = words(line, place).map(|words| (self.at, words));
                    next = Some(place + 1);
                }
                (Some(_), Some(missing)) => {
                    let what = format!("\"{}\" is missing before this line", REPORT[missing]);
                    return Err(misread(self.at, what));
                }
                (None, _) if of_report(line) => {
                    let what = "this line stands twice in one report".to_owned();
                    return Err(misread(self.at, what));
                }
                // The end of a text may be cut off in the middle of a line.
                (None, Some(at))
                    if (1..REPORT.len()).contains(&at)
                        && self.at < self.lines.len()
                        && has_figures(line) =>
                {
                    let what = format!("\"{}\" is no whole line", text::cut(line));
                    return Err(misread(self.at, what));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The figures of a report, as far as they are there.
struct Figures<'a> {
    found: Found<'a>,
}

impl Figures<'_> {
    fn wrong(&self, place: usize, what: &str) -> ImportError {
        let line = self.found[place].as_ref().map_or(1, |(line, _)| *line);
        misread(line, what.to_owned())
    }

    /// A whole number of a line.
    fn whole(&self, place: usize, word: usize) -> Option<u64> {
        number(self.found[place].as_ref()?.1.get(word)?)
    }

    /// A line of one count over known seconds gives its exact rate; without the seconds the rate is
    /// what is printed.
    fn over(&self, place: usize, seconds: Option<u64>) -> Result<PrintedFigure, ImportError> {
        let (Some(count), Some(rate)) = (self.whole(place, 0), self.whole(place, 1)) else {
            return Ok(PrintedFigure::default());
        };
        match seconds {
            None => Ok(PrintedFigure::whole(rate)),
            // Integers, as PostMark divides them; the quotient has the decimals it cut off.
            Some(seconds) if rate == count / seconds => Ok(per_second(count as f64, seconds)),
            Some(_) => Err(self.wrong(place, "the rate is not the count over the seconds")),
        }
    }

    /// A line of one count over unknown seconds: the rate is what is printed.
    fn alone(&self, place: usize, total: Option<u64>) -> Result<PrintedFigure, ImportError> {
        let (Some(count), Some(rate)) = (self.whole(place, 0), self.whole(place, 1)) else {
            return Ok(PrintedFigure::default());
        };
        if total.is_some_and(|total| !divides(count, rate, total)) {
            return Err(self.wrong(place, "the rate fits no whole seconds"));
        }
        // Whole seconds, although they are not printed: as many as the count takes at this rate.
        let seconds = count.checked_div(rate).unwrap_or(1).max(1);
        let tick = rate as f64 / seconds as f64;
        Ok(PrintedFigure::whole(rate).no_finer_than(tick))
    }

    /// A line of bytes: the rate.
    fn moved(&self, place: usize, total: Option<u64>) -> Result<PrintedFigure, ImportError> {
        let Some((_, words)) = &self.found[place] else {
            return Ok(PrintedFigure::default());
        };
        let amounts = (amount(words[0]), words.get(1).and_then(|word| amount(word)));
        let (Some(bytes), Some(rate)) = amounts else {
            return Err(self.wrong(place, "an amount of data cannot be read"));
        };
        let Some(total) = total else {
            return Ok(rate);
        };
        // Single precision adds a ten-millionth or so.
        let tolerance = rate.step / 2.0 + bytes.step / 2.0 / total as f64 + 1e-6 * rate.value;
        let computed = bytes.per(PrintedFigure::whole(total)).unwrap_or(rate);
        if (computed.value - rate.value).abs() > tolerance {
            return Err(self.wrong(place, "the rate is not the data over the seconds"));
        }
        Ok(computed)
    }

    /// Refuses counts that cannot be true together.
    fn agree(&self, during: Option<u64>) -> Result<(), ImportError> {
        let count = |place| self.whole(place, 0);
        let sum = |one, other| Some(count(one)?.checked_add(count(other)?));
        if let (Some(parts), Some(created)) = (sum(3, 4), count(2))
            && parts != Some(created)
        {
            let what = "files created alone and mixed are not those created";
            return Err(self.wrong(4, what));
        }
        // PostMark 1.51 prints the files created, which differs where an operation failed.
        if let (Some(parts), Some(deleted)) = (sum(8, 9), count(7))
            && parts != Some(deleted)
            && count(2).is_some_and(|created| created != deleted)
        {
            let what = "files deleted alone and mixed are not those deleted";
            return Err(self.wrong(9, what));
        }
        let Some((rate, during)) = self.whole(1, 1).zip(during) else {
            return Ok(());
        };
        // The rate was cut off: the true one lies below the next whole number.
        let most = rate.saturating_add(1).saturating_mul(during);
        // A transaction reads or appends, and it creates or deletes: at most one of each.
        for (one, other) in [(5, 6), (4, 9)] {
            if sum(one, other).is_some_and(|sum| sum.is_none_or(|sum| sum >= most)) {
                return Err(self.wrong(1, "there are more operations than transactions"));
            }
        }
        Ok(())
    }

    fn report(&self) -> Result<PostmarkReport, ImportError> {
        let (total, during) = (self.whole(0, 0), self.whole(1, 0));
        // PostMark says 1 where it was less. A time that was cut off contradicts nothing.
        let most = total.unwrap_or(u64::MAX);
        if most == 0 || during.is_some_and(|during| !(1..=most).contains(&during)) {
            return Err(self.wrong(1, "the seconds make no sense"));
        }
        self.agree(during)?;
        Ok(PostmarkReport {
            elapsed_s: PrintedFigure::whole(total.unwrap_or(0)),
            transactions_s: PrintedFigure::whole(during.unwrap_or(0)),
            rates: [
                ticked(
                    PrintedFigure::whole(self.whole(1, 1).unwrap_or(0)),
                    during.unwrap_or(1),
                ),
                self.over(2, total)?,
                self.alone(3, total)?,
                self.over(4, during)?,
                self.over(5, during)?,
                self.over(6, during)?,
                self.over(7, total)?,
                self.alone(8, total)?,
                self.over(9, during)?,
                self.moved(10, total)?,
                self.moved(11, total)?,
            ],
            settings: Vec::new(),
            cut_off: self.found.iter().any(Option::is_none),
        })
    }
}

/// Rate of so many in whole seconds, as differences of a clock that tells no parts of them.
fn per_second(count: f64, seconds: u64) -> PrintedFigure {
    let rate = PrintedFigure::exact(count).per(PrintedFigure::whole(seconds));
    rate.unwrap_or_default()
}

/// A rate, known no better than the whole seconds that it rests on.
fn ticked(rate: PrintedFigure, seconds: u64) -> PrintedFigure {
    rate.no_finer_than(rate.value / seconds.max(1) as f64)
}

/// Returns true if a count over some whole seconds, at most so many, gives this rate.
fn divides(count: u64, rate: u64, seconds_max: u64) -> bool {
    // The longest time that gives at least this rate, if any gives exactly this one.
    match count.checked_div(rate) {
        None => count < seconds_max,
        Some(seconds) => {
            let seconds = seconds.min(seconds_max);
            seconds > 0 && count / seconds == rate
        }
    }
}

/// Reads a terse report; `None` if the line is something else.
fn terse(line: &str) -> Option<Result<PostmarkReport, String>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() != 2 + RATES.len() {
        return None;
    }
    let times: Option<Vec<u64>> = words[..2].iter().map(|word| number(word)).collect();
    let rates: Option<Vec<PrintedFigure>> = words[2..].iter().map(|word| rate(word)).collect();
    let (times, rates) = (times?, rates?);
    Some(terse_report(times[0], times[1], &rates))
}

/// A rate with two decimals.
fn rate(word: &str) -> Option<PrintedFigure> {
    let (_, decimals) = word.split_once('.')?;
    (decimals.len() == 2).then(|| PrintedFigure::read(word))?
}

fn terse_report(
    total: u64,
    during: u64,
    printed: &[PrintedFigure],
) -> Result<PostmarkReport, String> {
    if total == 0 || !(1..=total).contains(&during) {
        return Err("the seconds make no sense".to_owned());
    }
    let printed: [PrintedFigure; RATES.len()] =
        printed.try_into().map_err(|_| "rates are missing")?;
    let rates = printed.map(|rate| rate.value);
    let [
        transactions,
        created,
        alone,
        mixed,
        read,
        appended,
        deleted,
        _,
        _,
        _,
        _,
    ] = rates;
    let deleted_mixed = rates[8];
    let (total_s, during_s) = (total as f64, during as f64);
    for (rate, seconds) in [
        (transactions, during_s),
        (created, total_s),
        (mixed, during_s),
        (read, during_s),
        (appended, during_s),
        (deleted, total_s),
        (deleted_mixed, during_s),
    ] {
        if !is_count(rate * seconds, tolerance(rate, seconds)) {
            return Err(format!("{rate:.2} per second is no whole number of files"));
        }
    }
    let slack = tolerance(created, total_s) + tolerance(mixed, during_s);
    let first = created * total_s - mixed * during_s;
    // The whole seconds that come nearest: the creation took some, and no more than all.
    let seconds = (first / alone).round().clamp(1.0, total_s);
    let close = (first / seconds - alone).abs() <= slack + tolerance(alone, 1.0);
    if !close {
        return Err("files created alone and mixed are not those created".to_owned());
    }
    let most = transactions * during_s + tolerance(transactions, during_s);
    let slack = 2.0 * tolerance(transactions, during_s);
    if (read + appended) * during_s > most + slack
        || (mixed + deleted_mixed) * during_s > most + slack
    {
        return Err("there are more operations than transactions".to_owned());
    }
    Ok(PostmarkReport {
        elapsed_s: PrintedFigure::whole(total),
        transactions_s: PrintedFigure::whole(during),
        rates: on_clock(printed, total, during, seconds as u64),
        settings: Vec::new(),
        cut_off: false,
    })
}

/// Rates, each known no better than the whole seconds that it rests on: of the whole run, of its transactions,
/// of creating the first files.
fn on_clock(
    printed: [PrintedFigure; RATES.len()],
    total: u64,
    during: u64,
    creating: u64,
) -> [PrintedFigure; RATES.len()] {
    std::array::from_fn(|at| {
        let seconds = match RATES[at].0 {
            "files created alone" => creating,
            // Of deletion the seconds are not told: at most all of them.
            "files created" | "files deleted" | "files deleted alone" | "read" | "written" => total,
            _ => during,
        };
        ticked(printed[at], seconds)
    })
}

/// Returns how far two decimals and single precision may take a rate times seconds from a whole
/// number.
fn tolerance(rate: f64, seconds: f64) -> f64 {
    (0.005 + rate * 1e-6) * seconds + 1e-9
}

fn is_count(value: f64, tolerance: f64) -> bool {
    (value - value.round()).abs() <= tolerance
}
