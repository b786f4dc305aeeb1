//! Results that are there twice: a text given under two names, a copy of a file, or one run saved in
//! two forms. They are one measurement and count once.

use super::Imported;
use super::source::ImportSource;

/// Significant digits in all figures together from which on no other run has them all by chance.
const DIGITS_MIN: u32 = 12;

/// Results that count, and what is to be said of the rest.
pub struct Repeated {
    /// For each source and each of its results, whether it counts.
    pub counts: Vec<Vec<bool>>,
    /// One sentence for each source that repeats others.
    pub warnings: Vec<String>,
}

/// Finds what repeats an earlier result.
pub fn find(sources: &[ImportSource]) -> Repeated {
    let mut found = Repeated {
        counts: Vec::new(),
        warnings: Vec::new(),
    };
    for (at, source) in sources.iter().enumerate() {
        let mut earlier = sources[..at].iter();
        if let Some(same) = earlier.find(|other| words(&other.text) == words(&source.text)) {
            let (own, other) = (named(source), named(same));
            let copy = match comparable(same, source) {
                true => is_telling(&source.text, &source.results),
                // The same moment is not measured twice.
                false => is_dated(&source.text),
            };
            if copy {
                found.counts.push(vec![false; source.results.len()]);
                found.warnings.push(format!(
                    "{own} repeats {}: the text is the same. It counts once, as {other}",
                    same.file
                ));
                continue;
            }
            let why = match comparable(same, source) {
                true => "it has so few digits that another run may print them too",
                false => "it was given as another configuration",
            };
            found.warnings.push(format!(
                "{own} has the same text as {other}. It counts, because {why}"
            ));
        }
        let (counts, of) = counts(&sources[..at], &found.counts, source);
        let repeated = counts.iter().filter(|counts| !**counts).count();
        if repeated > 0 {
            found.warnings.push(format!(
                "{}: {repeated} of {} results repeat every figure of {}. They count once",
                named(source),
                counts.len(),
                of.join(", ")
            ));
        }
        found.counts.push(counts);
    }
    found
}

/// Flags for each result of a source that counts, and the files that the others repeat.
fn counts<'a>(
    before: &'a [ImportSource],
    counted: &[Vec<bool>],
    source: &'a ImportSource,
) -> (Vec<bool>, Vec<&'a str>) {
    let mut known: Vec<(&str, &Imported)> = Vec::new();
    let before = before.iter().zip(counted);
    for (earlier, counts) in before.filter(|(earlier, _)| comparable(earlier, source)) {
        let results = earlier.results.iter().zip(counts);
        let counting = results.filter(|(_, counts)| **counts);
        known.extend(counting.map(|(result, _)| (earlier.file.as_str(), result)));
    }
    let (mut counts, mut of) = (Vec::new(), Vec::new());
    for result in &source.results {
        let same = known.iter().find(|(_, other)| same_run(other, result));
        counts.push(same.is_none());
        match same {
            Some((file, _)) if !of.contains(file) => of.push(*file),
            Some(_) => {}
            // A result may also be twice in one file.
            None => known.push((source.file.as_str(), result)),
        }
    }
    (counts, of)
}

/// Returns true unless a user gave both as different configurations: there, equal texts are two measurements.
fn comparable(a: &ImportSource, b: &ImportSource) -> bool {
    a.name == b.name || a.name.is_none() || b.name.is_none()
}

/// Returns true if no other run prints such a text: it has the time or the process of the run, or so many digits that
/// they do not agree by chance.
pub fn is_telling(text: &str, results: &[Imported]) -> bool {
    is_dated(text) || results.iter().map(digits).sum::<u32>() >= DIGITS_MIN
}

/// Returns true if a text has the moment or the process of its run.
fn is_dated(text: &str) -> bool {
    text.contains("pid=") || text.contains("\"timestamp") || text.lines().any(has_date)
}

/// Returns true for a line with a time of day and a year, as tools print when they began.
fn has_date(line: &str) -> bool {
    let words = || line.split(|c: char| !(c.is_ascii_digit() || c == ':'));
    let clock = |word: &str| word.len() == 8 && word.matches(':').count() == 2;
    words().any(clock) && words().any(|word| word.len() == 4 && word.starts_with("20"))
}

/// Significant digits in all figures of a result.
fn digits(result: &Imported) -> u32 {
    let figures = result.values.iter().flatten();
    let told = figures.filter(|figure| figure.step > 0.0 && figure.value >= figure.step);
    told.map(|figure| places(figure.value / figure.step)).sum()
}

/// Places of a number before its point.
fn places(mut number: f64) -> u32 {
    let mut places = 0;
    // A quotient of two decimal figures may lie just below a power of ten.
    while number >= 1.0 - 1e-9 {
        number /= 10.0;
        places += 1;
    }
    places
}

/// Returns true if two results are one run: the same work with the same figures, to the last digit.
fn same_run(a: &Imported, b: &Imported) -> bool {
    let work = |result: &'_ Imported| (result.kind.clone(), result.workload.clone());
    let commands = a.command.as_ref().zip(b.command.as_ref());
    digits(a) >= DIGITS_MIN
        && work(a) == work(b)
        && a.label == b.label
        && a.settings == b.settings
        && commands.is_none_or(|(one, other)| one == other)
        && a.metrics == b.metrics
        && values(a).eq(values(b))
}

/// The figures without their steps: of two forms of one output, one may print more digits.
fn values(result: &Imported) -> impl Iterator<Item = Option<f64>> {
    let figures = result.values.iter();
    figures.map(|figure| figure.map(|figure| figure.value))
}

/// A text without what an editor or a mail program changes: white space.
fn words(text: &str) -> impl PartialEq {
    // Line ends and spaces change when a text is copied from a terminal.
    text.split_whitespace().collect::<Vec<_>>()
}

fn named(source: &ImportSource) -> String {
    match &source.name {
        Some(name) => format!("{name} ({})", source.file),
        None => source.file.clone(),
    }
}
