//! The lines of latencies in fio's normal output: extremes and mean, and the rows of percentiles.

use super::latencies::{PercentilesOf, Spread};
use super::rates::{Digits, count};
use super::results::{JobResult, ResultLatency};
use stackrace_base::printed::text::TextLine;
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Reads `lat (usec): min=546, max=6878, avg=633.69, stdev=441.77`.
pub(super) fn times(line: TextLine<'_>, text: &str, digits: Digits) -> Result<Spread, ImportError> {
    let refuse = || line.refuse("lat (usec): min=…, max=…, avg=…, stdev=…");
    let (_, rest) = text.split_once('(').ok_or_else(refuse)?;
    let (unit, rest) = rest.split_once("):").ok_or_else(refuse)?;
    let unit = unit_ns(unit).ok_or_else(refuse)?;
    let mut found = [None; 4];
    for (at, part) in rest.split(',').enumerate() {
        let names = ["min", "max", "avg", "stdev"];
        let name = *names.get(at).ok_or_else(refuse)?;
        let value = part
            .trim()
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='));
        // The mean is printed in another way than the extremes.
        let digits = if at < 2 { digits } else { Digits::Shown };
        let stated = value.and_then(|word| count(word.trim(), digits));
        found[at] = Some(stated.ok_or_else(refuse)? * unit);
    }
    let [Some(least), Some(largest), Some(mean), Some(_)] = found else {
        return Err(refuse());
    };
    let spread = Spread {
        least,
        mean,
        largest,
    };
    match spread.is_sound() {
        true => Ok(spread),
        false => Err(line.contradicts("itself: the mean is not between min and max")),
    }
}

/// Reads `clat percentiles (usec):`.
pub(super) fn percentile_head(text: &str) -> Option<(&str, &str)> {
    let (what, rest) = text.split_once(" percentiles (")?;
    // Behind figures it is another line, put to this one wrongly.
    (!what.contains('=')).then_some(())?;
    Some((what, rest.trim_end().strip_suffix("):")?))
}

/// Reads `|  1.00th=[  553],  5.00th=[  553], …`.
pub(super) fn percentile_row(
    line: TextLine<'_>,
    job: &mut JobResult,
    row: &str,
) -> Result<(), ImportError> {
    let pending = |latency: &&mut ResultLatency| -> bool {
        latency
            .percentiles
            .first()
            .is_some_and(|(at, _)| at.is_nan())
    };
    let of_sync = job.sync.as_mut().filter(|latency| pending(latency));
    let latency = match of_sync {
        Some(latency) => latency,
        None => {
            let last = job
                .directions
                .last_mut()
                .map(|direction| &mut direction.latency);
            match last.filter(pending) {
                Some(latency) => latency,
                // Rows of what is passed over (submission latencies).
                None => return Ok(()),
            }
        }
    };
    let unit = latency.percentiles[0].1;
    for part in row.split("],") {
        let part = part.trim().trim_end_matches(']').trim();
        if part.is_empty() {
            continue;
        }
        let pair = part.split_once("th=[").and_then(|(at, value)| {
            let read = |word: &str| PrintedFigure::read(word.trim());
            Some((read(at)?.value, read(value)?.value * unit))
        });
        let pair = pair.ok_or_else(|| line.refuse("percentiles as 1.00th=[  553]"))?;
        if latency
            .percentiles
            .last()
            .is_some_and(|last| last.0 >= pair.0 || last.1 > pair.1 && !last.0.is_nan())
        {
            return Err(line.contradicts("the percentiles before it: they only rise"));
        }
        let of = match latency.of {
            PercentilesOf::Whole => latency.whole,
            PercentilesOf::Completion => latency.completion,
        };
        if of.is_some_and(|of| !of.has(pair.1, unit)) {
            return Err(line.contradicts("the min and max before it: percentiles lie between them"));
        }
        latency.percentiles.push(pair);
    }
    Ok(())
}

/// Returns the ns of a unit of time.
pub(super) fn unit_ns(unit: &str) -> Option<f64> {
    match unit.trim() {
        "nsec" => Some(1.0),
        "usec" => Some(1e3),
        "msec" => Some(1e6),
        "sec" => Some(1e9),
        _ => None,
    }
}
