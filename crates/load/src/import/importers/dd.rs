//! `dd` of GNU coreutils: what it prints when it ends, any number of times in one text.
//!
//! `67108864 bytes (67 MB, 64 MiB) copied, 0.097739 s, 687 MB/s`: MB are 10⁶ bytes. The printed
//! rate has three digits. The importer computes bytes over seconds, and the printed rate must be
//! its rounded value. Other lines (commands, prompts) are skipped; lines of a BSD `dd` are
//! refused.

use stackrace_base::printed::text::{
    Figures, TextLine, agree, bytes_of, facts, lines, number, size,
};
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "dd",
    summary: "what dd of GNU coreutils prints when it ends",
    recognises: |text| text.contains(" records out"),
    read,
};

/// Whole and partial records, as `64+0`.
type Records = (u64, u64);

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let (mut taken, mut given): (Option<Records>, Option<Records>) = (None, None);
    let mut last = None;
    for line in lines(text) {
        last = Some(line);
        if let Some(records) = line.text.trim().strip_suffix(" records in") {
            taken = Some(counts(line, records)?);
            // A command that was killed leaves records in without records out; the next one begins
            // anew.
            given = None;
        } else if let Some(records) = line.text.trim().strip_suffix(" records out") {
            let before = taken.ok_or_else(|| line.refuse("a line \"… records in\" before it"))?;
            given = Some(counts(line, records)?);
            taken = Some(before);
        } else if line.text.contains(" copied, ") {
            // What `status=progress` prints has no records before it.
            if let (Some(taken), Some(given)) = (taken.take(), given.take()) {
                results.push(copied(line, taken, given)?);
            } else if taken.is_some() || !progress(text, line) {
                return Err(line.refuse("\"… records in\" and \"… records out\" before it"));
            }
        } else if line.text.contains("bytes transferred in") || line.text.contains(" records ") {
            return Err(line.refuse("a line of GNU dd: \"… bytes (…) copied, … s, … MB/s\""));
        }
    }
    match (taken, last) {
        (Some(_), Some(line)) => Err(line.refuse("\"… bytes (…) copied, … s, … MB/s\"")),
        _ => Ok(results),
    }
}

/// Whether a line was overwritten while dd ran.
fn progress(text: &str, line: TextLine<'_>) -> bool {
    let whole = text.split('\n').nth(line.index);
    whole.is_some_and(|whole| whole.trim_end_matches('\r').contains('\r'))
}

fn counts(line: TextLine<'_>, word: &str) -> Result<Records, ImportError> {
    let (whole, part) = word
        .split_once('+')
        .ok_or_else(|| line.refuse("records as 64+0"))?;
    Ok((line.whole(whole)?, line.whole(part)?))
}

fn copied(line: TextLine<'_>, taken: Records, given: Records) -> Result<Imported, ImportError> {
    let expected = "\"… bytes (…) copied, … s, … MB/s\"";
    let refuse = || line.refuse(expected);
    let (amount, rest) = line
        .text
        .trim()
        .split_once(" copied, ")
        .ok_or_else(refuse)?;
    let (elapsed, rate) = rest.split_once(" s, ").ok_or_else(refuse)?;
    let (bytes, shown) = amount.split_once(" byte").ok_or_else(refuse)?;
    let bytes = line.whole(bytes)?;
    check_shown(line, bytes, shown)?;
    let seconds = scientific(elapsed)
        .filter(|s| *s > 0.0)
        .ok_or_else(refuse)?;
    let (rate, unit) = rate.split_once(' ').ok_or_else(refuse)?;
    let unit = unit
        .strip_suffix("/s")
        .and_then(bytes_of)
        .ok_or_else(refuse)?;
    // The printed rate has three digits only; this one has those of the time.
    let throughput = bytes as f64 / seconds;
    if !agree(line.number(rate)? * unit, throughput) {
        return Err(line.contradicts("itself: bytes over seconds is another rate"));
    }
    let mut figures = Figures::default();
    figures.rate("throughput", "B/s", Some(throughput));
    figures.time("elapsed", "s", Some(seconds));
    let block = match given {
        // A partial record at the end says nothing of the block size that was asked for.
        (count, 0) if count > 0 && bytes.is_multiple_of(count) => Some(bytes / count),
        _ => None,
    };
    if block.is_none_or(|block| block == 0) && given.0 > 0 && bytes == 0 {
        return Err(line.contradicts("the records before it"));
    }
    let blocks = block.map_or(String::new(), |block| {
        format!(" in blocks of {}", size(block))
    });
    Ok(Imported {
        tool: "dd",
        version: None,
        label: None,
        workload: format!("dd {}{blocks}", size(bytes)),
        kind: "dd".to_owned(),
        settings: facts([
            ("records in", format!("{}+{}", taken.0, taken.1).as_str()),
            ("records out", format!("{}+{}", given.0, given.1).as_str()),
            ("bytes", bytes.to_string().as_str()),
        ]),
        environment: Vec::new(),
        metrics: figures.metrics,
        values: figures.values,
        notes: Vec::new(),
    })
}

/// `s (67 MB, 64 MiB)`: both are the bytes, rounded.
fn check_shown(line: TextLine<'_>, bytes: u64, shown: &str) -> Result<(), ImportError> {
    // "bytes", or "byte" where it was one.
    let shown = shown.trim_start_matches('s').trim();
    if shown.is_empty() {
        return Ok(());
    }
    let inner = shown
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.ok_or_else(|| line.refuse("the bytes in brackets, as (67 MB, 64 MiB)"))?;
    for part in inner.split(", ") {
        let amount = part
            .split_once(' ')
            .and_then(|(figure, unit)| Some(number(figure)? * bytes_of(unit)?));
        match amount {
            Some(amount) if agree(amount, bytes as f64) => {}
            Some(_) => return Err(line.contradicts("itself: the bytes in brackets are others")),
            None => return Err(line.refuse("the bytes in brackets, as (67 MB, 64 MiB)")),
        }
    }
    Ok(())
}

/// Seconds as dd prints them: `0.097739`, `8.5628e-05`.
fn scientific(word: &str) -> Option<f64> {
    match word.split_once("e-") {
        // dd prints times below 0.0001 s as 5.2e-05.
        Some((figure, power)) => {
            let power: i32 = power
                .parse()
                .ok()
                .filter(|power| (0..=12).contains(power))?;
            Some(number(figure)? * 10f64.powi(-power))
        }
        None => number(word),
    }
}
