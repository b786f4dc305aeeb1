//! Reading what PostMark printed.
//!
//! Everything but the reports is passed over: the banner, progress, prompts; the last
//! configuration shown is kept. A report must be whole, and its numbers must agree with each
//! other as far as PostMark's rounding lets that be known, so that a damaged text is refused and
//! not believed.

use super::report::{PostmarkReport, RATES};
use crate::event::Fact;
use crate::printed::ImportError;

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

/// Every report of a text, with the configuration shown before it.
///
/// # Errors
/// There is none, or one is cut short or contradicts itself.
pub(crate) fn parse(text: &str) -> Result<Vec<PostmarkReport>, ImportError> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut reports, mut settings) = (Vec::new(), Vec::new());
    let mut out_of_files = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if line.ends_with("Current configuration is:") {
            settings.clear();
        } else if let Some(shown) = shown(line) {
            settings.extend(shown);
        } else if line.ends_with("out of files!") {
            out_of_files = Some(at);
        } else if line == "Time:" {
            let mut verbose = Verbose { lines: &lines, at };
            reports.push(verbose.read()?);
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
        }
    }
    match (reports.is_empty(), out_of_files) {
        (false, _) => Ok(reports),
        (true, Some(line)) => Err(ImportError {
            line,
            what: "the run ran out of files, and PostMark prints no report then".to_owned(),
            next: "give it more files or fewer transactions".to_owned(),
        }),
        (true, None) => Err(misread(
            lines.len().max(1),
            "there is no report of PostMark in it".to_owned(),
        )),
    }
}

fn misread(line: usize, what: String) -> ImportError {
    ImportError {
        line,
        what,
        next: "take the whole output of PostMark, unchanged".to_owned(),
    }
}

/// The settings a line of a configuration shows.
fn shown(line: &str) -> Option<Vec<Fact>> {
    let found = |(pattern, names): &(&str, &[&str])| {
        let values = fields(line, pattern)?;
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

/// What stands in the places of `{}`, if everything else is as in the pattern.
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

/// An amount of bytes in PostMark's words, and half a unit of its last digit.
fn amount(words: &str) -> Option<(f64, f64)> {
    let (value, unit) = words.split_once(' ')?;
    let value: f64 = number(value)?;
    let scale = match unit {
        "megabytes" => 1_048_576.0,
        "kilobytes" => 1024.0,
        "bytes" if value == 0.0 => 1.0,
        _ => return None,
    };
    Some((value * scale, 0.005 * scale))
}

/// A verbose report under its reader's finger.
struct Verbose<'a> {
    lines: &'a [&'a str],
    /// Lines read.
    at: usize,
}

/// A count and its rate, as one line has them.
struct Counted {
    count: u64,
    rate: u64,
    /// Line, from 1.
    line: usize,
}

impl Verbose<'_> {
    fn next(&mut self, pattern: &str) -> Result<Vec<&str>, ImportError> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        line.and_then(|line| fields(line, pattern))
            .ok_or_else(|| misread(self.at, format!("\"{}\" was expected", pattern.trim())))
    }

    fn wrong(&self, what: &str) -> ImportError {
        misread(self.at, what.to_owned())
    }

    /// A line of one count with its rate.
    fn counted(&mut self, pattern: &str) -> Result<Counted, ImportError> {
        let found = self.next(pattern)?;
        let numbers = (number(found[0]), found.get(1).and_then(|word| number(word)));
        let (Some(count), Some(rate)) = numbers else {
            return Err(self.wrong("a number cannot be read"));
        };
        let line = self.at;
        Ok(Counted { count, rate, line })
    }

    /// A line of one count over known seconds: its exact rate.
    fn over(&mut self, pattern: &str, seconds: u64) -> Result<(u64, f64), ImportError> {
        let counted = self.counted(pattern)?;
        if counted.rate != counted.count / seconds {
            return Err(self.wrong("the rate is not the count over the seconds"));
        }
        Ok((counted.count, counted.count as f64 / seconds as f64))
    }

    /// A line of one count over unknown seconds: the rate is what is printed.
    fn alone(&mut self, pattern: &str, total: u64) -> Result<(u64, f64), ImportError> {
        let counted = self.counted(pattern)?;
        if !divides(counted.count, counted.rate, total) {
            return Err(self.wrong("the rate fits no whole seconds"));
        }
        Ok((counted.count, counted.rate as f64))
    }

    /// A line of bytes: the rate.
    fn moved(&mut self, pattern: &str, total: u64) -> Result<f64, ImportError> {
        let found = self.next(pattern)?;
        let amounts = (amount(found[0]), found.get(1).and_then(|word| amount(word)));
        let (Some((bytes, half)), Some((rate, half_rate))) = amounts else {
            return Err(self.wrong("an amount of data cannot be read"));
        };
        let total = total as f64;
        // Single precision adds a ten-millionth or so.
        let tolerance = half_rate + half / total + 1e-6 * rate;
        if (bytes / total - rate).abs() > tolerance {
            return Err(self.wrong("the rate is not the data over the seconds"));
        }
        Ok(bytes / total)
    }

    fn read(&mut self) -> Result<PostmarkReport, ImportError> {
        let total: Option<u64> = number(self.next("\t{} seconds total")?[0]);
        let transactions = self.counted("\t{} seconds of transactions ({} per second)")?;
        let during = transactions.count;
        let total = match total {
            Some(total) if (1..=total).contains(&during) => total,
            _ => return Err(self.wrong("the seconds make no sense")),
        };
        self.next("")?;
        self.next("Files:")?;
        let created = self.over("\t{} created ({} per second)", total)?;
        let alone = "\t\tCreation alone: {} files ({} per second)";
        let created_alone = self.alone(alone, total)?;
        let mixed = "\t\tMixed with transactions: {} files ({} per second)";
        let created_mixed = self.over(mixed, during)?;
        if created_alone.0.checked_add(created_mixed.0) != Some(created.0) {
            return Err(self.wrong("files created alone and mixed are not those created"));
        }
        let read = self.over("\t{} read ({} per second)", during)?;
        let appended = self.over("\t{} appended ({} per second)", during)?;
        let deleted = self.over("\t{} deleted ({} per second)", total)?;
        let alone = "\t\tDeletion alone: {} files ({} per second)";
        let deleted_alone = self.alone(alone, total)?;
        let deleted_mixed = self.over(mixed, during)?;
        // PostMark 1.51 prints the files created, which differs where an operation failed.
        let sum = deleted_alone.0.checked_add(deleted_mixed.0);
        if sum != Some(deleted.0) && created.0 != deleted.0 {
            return Err(self.wrong("files deleted alone and mixed are not those deleted"));
        }
        let most = (transactions.rate.saturating_add(1)).saturating_mul(during);
        let each = [(read.0, appended.0), (created_mixed.0, deleted_mixed.0)];
        if each.iter().any(|(a, b)| a.saturating_add(*b) >= most) {
            let what = "there are more operations than transactions".to_owned();
            return Err(misread(transactions.line, what));
        }
        self.next("")?;
        self.next("Data:")?;
        let bytes_read = self.moved("\t{} read ({} per second)", total)?;
        let bytes_written = self.moved("\t{} written ({} per second)", total)?;
        Ok(PostmarkReport {
            elapsed_s: total as f64,
            transactions_s: during as f64,
            rates: [
                transactions.rate as f64,
                created.1,
                created_alone.1,
                created_mixed.1,
                read.1,
                appended.1,
                deleted.1,
                deleted_alone.1,
                deleted_mixed.1,
                bytes_read,
                bytes_written,
            ],
            settings: Vec::new(),
        })
    }
}

/// Whether a count over some whole seconds, at most so many, gives this rate.
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

/// A terse report; none: the line is something else.
fn terse(line: &str) -> Option<Result<PostmarkReport, String>> {
    let words: Vec<&str> = line.split(' ').collect();
    if words.len() != 2 + RATES.len() {
        return None;
    }
    let times: Option<Vec<u64>> = words[..2].iter().map(|word| number(word)).collect();
    let rates: Option<Vec<f64>> = words[2..].iter().map(|word| rate(word)).collect();
    let (times, rates) = (times?, rates?);
    Some(terse_report(times[0], times[1], &rates))
}

/// A rate with two decimals.
fn rate(word: &str) -> Option<f64> {
    let (_, decimals) = word.split_once('.')?;
    (decimals.len() == 2).then(|| number(word))?
}

fn terse_report(total: u64, during: u64, rates: &[f64]) -> Result<PostmarkReport, String> {
    if total == 0 || !(1..=total).contains(&during) {
        return Err("the seconds make no sense".to_owned());
    }
    let rates: [f64; RATES.len()] = rates.try_into().map_err(|_| "rates are missing")?;
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
        elapsed_s: total_s,
        transactions_s: during_s,
        rates,
        settings: Vec::new(),
    })
}

/// How far two decimals and single precision may take a rate times seconds from a whole number.
fn tolerance(rate: f64, seconds: f64) -> f64 {
    (0.005 + rate * 1e-6) * seconds + 1e-9
}

fn is_count(value: f64, tolerance: f64) -> bool {
    (value - value.round()).abs() <= tolerance
}
