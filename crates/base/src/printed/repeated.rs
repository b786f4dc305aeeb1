//! Results that are there twice: a text given under two names, a copy of a file, or one run saved in
//! two forms. They are one measurement and count once.

use super::Imported;
use super::source::ImportSource;

/// Two results that agree in so many figures, and in all they have, are of one run: separate runs
/// differ in some digit.
const FIGURES_MIN: usize = 3;

/// One figure of so many steps does not come twice by chance either: six digits, as dd prints of a time.
const STEPS_MIN: f64 = 1e5;

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
            found.counts.push(vec![false; source.results.len()]);
            found.warnings.push(format!(
                "{} repeats {}: the text is the same. It counts once, as {}",
                named(source),
                same.file,
                named(same)
            ));
            continue;
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
    for (earlier, counts) in before.iter().zip(counted) {
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

/// Returns true if the figures of a result are so many, or one of them so fine, that no other run has them all.
fn is_telling(result: &Imported) -> bool {
    // One or two figures may agree by chance, above all where a tool prints few digits.
    let mut figures = result.values.iter().flatten();
    figures.clone().count() >= FIGURES_MIN
        || figures.any(|figure| figure.step > 0.0 && figure.value >= STEPS_MIN * figure.step)
}

/// Returns true if two results are one run: the same work with the same figures, to the last digit.
fn same_run(a: &Imported, b: &Imported) -> bool {
    let work = |result: &'_ Imported| (result.kind.clone(), result.workload.clone());
    is_telling(a)
        && work(a) == work(b)
        && a.label == b.label
        && a.settings == b.settings
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
