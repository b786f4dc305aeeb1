//! What was really measured: the processor, memory, the line, or too little time.

use super::figures::{BRIEF_S, CPU_BOUND, counts, cpu_bound, is_brief, spread};
use crate::published::card::Card;
use crate::published::table::{PublishedFigure, PublishedTable, PublishedValue, distinct};
use stackrace_base::unit;
use stackrace_stats::median;

/// Share of the line's rate from which on the line is what was measured.
const LINE_SHARE: f64 = 0.9;
/// Multiple of the seeks its disks did in the same run that is no work of disks.
const NO_SEEK: f64 = 10.0;
/// A figure of a processor may differ by this factor from the median of its peers.
const OUTLIER: f64 = 1.5;

/// Figures of the processor: at its limit, per character, or beyond what its clock can tell.
pub(super) fn cpu(_: &Card, table: &PublishedTable) -> Vec<String> {
    let bound = counts(table, cpu_bound);
    if bound.is_empty() {
        return Vec::new();
    }
    let mut texts = vec![format!(
        "the processor, not the storage, was the limit (%CP of {CPU_BOUND:.0} or more): {bound}"
    )];
    for metric in ["per-character output", "per-character input"] {
        let of: Vec<&PublishedFigure> = table
            .figures
            .iter()
            .filter(|f| f.metric.name == metric)
            .collect();
        // `all` is true of nothing.
        if of.iter().all(|figure| cpu_bound(figure)) && !of.is_empty() {
            let block = metric.replace("per-character", "block");
            texts.push(format!(
                "{metric} differs by a factor of {:.2} between configurations where {block} differs \
                 by {:.2}: it measures how fast the processor handles characters",
                spread(of.iter().filter_map(|f| f.value())),
                spread(
                    table
                        .figures
                        .iter()
                        .filter(|f| f.metric.name == block)
                        .filter_map(PublishedFigure::value)
                ),
            ));
        }
    }
    // More than one processor for one thread is impossible: such a reading shows the clock's grain.
    let over = table
        .figures
        .iter()
        .filter(|f| is_brief(f) && f.cpu_percent.is_some_and(|p| p > 100.0));
    let highest = over
        .clone()
        .filter_map(|f| f.cpu_percent)
        .fold(0.0, f64::max);
    if highest > 0.0 {
        texts.push(format!(
            "{} figures report more than 100 % of one processor (up to {highest:.0} %) for a \
             single thread: their phases are shorter than the clock of processor time can tell",
            over.count()
        ));
    }
    texts
}

/// Finds outliers: where the processor is the limit all configurations are alike; one that is not was disturbed.
pub(super) fn outlier(card: &Card, table: &PublishedTable) -> Vec<String> {
    let mut texts = Vec::new();
    for (workload, metric) in table.metrics() {
        let of: Vec<&PublishedFigure> = table.of_metric(workload, metric).collect();
        let values: Vec<f64> = of.iter().filter_map(|figure| figure.value()).collect();
        // Where one configuration is not at the processor's limit, storage may explain a
        // difference.
        let Some(middle) = median(&values).filter(|_| of.iter().all(|figure| cpu_bound(figure)))
        else {
            continue;
        };
        for figure in of {
            let Some(value) = figure.value() else {
                continue;
            };
            // In both directions: a configuration may also be the only one that was not disturbed.
            if (value / middle).max(middle / value) > OUTLIER {
                texts.push(format!(
                    "{metric} of {}: {} where the middle configuration has {}, with the processor as the limit in \
                     both: something else ran, and a single run cannot show it",
                    card.configuration(&figure.levels),
                    unit::operations_per_second(value),
                    unit::operations_per_second(middle)
                ));
            }
        }
    }
    texts
}

/// Says what `+++++` means where a table has it: the test was too short to give a rate.
pub(super) fn too_short(_: &Card, table: &PublishedTable) -> Vec<String> {
    let short = counts(table, |figure| figure.reading == PublishedValue::TooShort);
    if short.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "+++++ is not 0 and not fast: the phase was over in less than {BRIEF_S} s, too short for \
         a rate: {short}"
    )]
}

/// Rates over less time than bonnie++ usually accepts.
pub(super) fn brief(_: &Card, table: &PublishedTable) -> Vec<String> {
    let brief = counts(table, is_brief);
    let shortest = table
        .figures
        .iter()
        .filter(|figure| is_brief(figure))
        .filter_map(PublishedFigure::seconds)
        .reduce(f64::min);
    let Some(shortest) = shortest else {
        return Vec::new();
    };
    vec![format!(
        "rates over less than {BRIEF_S} s, where bonnie++ by default gives none (the shortest took \
         {}): {brief}",
        unit::time_ns(shortest * 1e9)
    )]
}

/// Files created, looked up and deleted faster than the same disks seek: memory did it.
pub(super) fn memory(_: &Card, table: &PublishedTable) -> Vec<String> {
    // Of the same run: the disks, and their number, differ between configurations.
    let seeks = |figure: &PublishedFigure| {
        table
            .figures
            .iter()
            .find(|f| f.metric.name == "random seeks" && f.levels == figure.levels)
            .and_then(PublishedFigure::value)
    };
    let times = |figure: &PublishedFigure| -> Option<f64> {
        let of_files = ["create", "stat", "delete"]
            .iter()
            .any(|word| figure.metric.name.ends_with(word));
        Some(figure.value().filter(|_| of_files)? / seeks(figure)?)
    };
    // A figure of files that far above the seeks of its disks cannot have waited for them.
    let cached: Vec<f64> = table
        .figures
        .iter()
        .filter_map(times)
        .filter(|times| *times > NO_SEEK)
        .collect();
    let mut texts = Vec::new();
    if let Some(least) = cached.iter().copied().reduce(f64::min) {
        texts.push(format!(
            "files were created, looked up or deleted {least:.0} to {:.0} times as often as the same \
             disks seek in the same run: this is memory, not disks: {}",
            cached.iter().copied().fold(0.0, f64::max),
            counts(table, |figure| times(figure).is_some_and(|times| times > NO_SEEK))
        ));
    }
    // The opposite end: close to the seek rate, each operation cost about one access.
    let slow: Vec<&PublishedFigure> = table
        .figures
        .iter()
        .filter(|figure| times(figure).is_some_and(|times| times < 3.0))
        .collect();
    if !slow.is_empty() {
        texts.push(format!(
            "{} figures of files are at {:.1} to {:.1} times the seeks of the same run: here every \
             operation went to a disk or over the network",
            slow.len(),
            slow.iter()
                .filter_map(|f| times(f))
                .fold(f64::INFINITY, f64::min),
            slow.iter().filter_map(|f| times(f)).fold(0.0, f64::max),
        ));
    }
    texts
}

/// Data that memory can hold a good part of.
pub(super) fn size(card: &Card, table: &PublishedTable) -> Vec<String> {
    let Some(memory) = card.stated.memory_bytes else {
        return Vec::new();
    };
    let stated = card
        .stated
        .bytes
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), *bytes));
    let measured = table
        .figures
        .iter()
        .filter_map(|figure| Some((figure.workload.clone(), figure.data_bytes?)));
    // What a load moved is said beside its figures, where there are any.
    // Without figures, the amounts that the authors state are all there is to check.
    let stated = stated.filter(|_| table.figures.is_empty());
    distinct(measured.chain(stated))
        .into_iter()
        // 1.9, not 2: a "2 GB" file on a machine of 1 GiB is meant to be twice the memory.
        .filter(|(_, bytes)| (*bytes as f64) < 1.9 * memory as f64)
        .map(|(workload, bytes)| {
            format!(
                "{workload}: {} of data, {:.2} times the memory of {}: memory can hold much of it, \
                 so that what is not read cold and written through is partly the cache's",
                unit::bytes(bytes),
                bytes as f64 / memory as f64,
                unit::bytes(memory)
            )
        })
        .collect()
}

/// Returns true if all of a load crosses the line: over DRBD only its writes do.
fn crosses(card: &Card, figure: &PublishedFigure) -> bool {
    figure.metric.unit == "B/s" && !card.factors.iter().any(|f| f.name == "drbd_protocol")
}

/// Rates at what the network carries, or above it.
pub(super) fn line(card: &Card, table: &PublishedTable) -> Vec<String> {
    let Some(line) = card.stated.line else {
        return Vec::new();
    };
    let share = |figure: &PublishedFigure| figure.value().unwrap_or(0.0) / line;
    let mut texts = Vec::new();
    let at_line = |figure: &PublishedFigure| {
        crosses(card, figure) && (LINE_SHARE..=1.0).contains(&share(figure))
    };
    if table.figures.iter().any(at_line) {
        texts.push(format!(
            "at {:.0} % or more of what the line carries ({}), so that the line was measured and \
             storage may be faster: {}",
            LINE_SHARE * 100.0,
            unit::bytes_per_second(line),
            counts(table, at_line)
        ));
    }
    let above = |figure: &PublishedFigure| crosses(card, figure) && share(figure) > 1.0;
    if table.figures.iter().any(above) {
        texts.push(format!(
            "faster than the line ({}), so that it did not cross it; the client's cache answered: {}",
            unit::bytes_per_second(line),
            counts(table, above)
        ));
    }
    texts
}

/// Replicated writes slower than both the line and the same disks alone.
pub(super) fn below_line(card: &Card, table: &PublishedTable) -> Vec<String> {
    let (Some(line), Some(at)) = (
        card.stated.line,
        card.factors
            .iter()
            .position(|factor| factor.name == "drbd_protocol"),
    ) else {
        return Vec::new();
    };
    let best = |replicated: bool| {
        table
            .figures
            .iter()
            .filter(|f| f.metric.name == "block output" && (f.levels[at] != "none") == replicated)
            .filter_map(PublishedFigure::value)
            .reduce(f64::max)
    };
    let (Some(alone), Some(mirrored)) = (best(false), best(true)) else {
        return Vec::new();
    };
    if mirrored > 0.7 * line.min(alone) {
        return Vec::new();
    }
    vec![format!(
        "the fastest replicated block output, {}, is {:.0} % of the line and {:.0} % of the disks \
         alone: neither was the limit, so waiting (a flush, a round trip) was",
        unit::bytes_per_second(mirrored),
        mirrored / line * 100.0,
        mirrored / alone * 100.0
    )]
}
