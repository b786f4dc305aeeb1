//! Latencies of all complete trials together: what the metrics of a workload leave out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hdrhistogram::Histogram;

use super::content::{TextRow, TextTable, configuration_name};
use super::figure::MISSING;
use stackrace_base::event::{Ended, histogram};
use stackrace_base::unit;
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// Histograms of all complete trials, merged: workload, phase and title (phase and kind of
/// operation), then configuration. Phases are kept apart: they do different things.
pub(super) type Merged = BTreeMap<(usize, usize, String), BTreeMap<usize, Histogram<u64>>>;

/// Adds up the histograms of a run.
pub(super) fn merged(record: &Record) -> Merged {
    let mut merged = Merged::new();
    for trial in record.trials().filter(|t| t.ended == Ended::Complete) {
        for (at, phase) in trial.phases.iter().enumerate() {
            for op in &phase.operations {
                // Phases of one workload may have the same operations: then the title needs both.
                let title = if trial.phases.len() > 1 {
                    format!("{}, {}", phase.name, op.op)
                } else {
                    op.op.clone()
                };
                let of = merged.entry((trial.workload, at, title)).or_default();
                let sum = match of.entry(trial.configuration) {
                    Entry::Occupied(sum) => Some(sum.into_mut()),
                    Entry::Vacant(place) => histogram::empty().map(|sum| place.insert(sum)),
                };
                // One that cannot be read is left out, as a trial without a histogram is.
                let _ = sum.and_then(|sum| histogram::add(&op.histogram, sum));
            }
        }
    }
    merged
}

/// A table for each workload and kind of operation: mean, deviation, percentiles, and where there is room also the
/// number of operations and the least.
pub(super) fn tables(record: &Record, verdict: &Verdict, wide: bool) -> Vec<TextTable> {
    let tables = merged(record).into_iter();
    let tables = tables.filter_map(|((workload, _, op), of)| {
        let head = record.head.workloads.get(workload)?;
        let rows = verdict.configurations.iter().filter_map(|row| {
            let histogram = of.get(&row.configuration).filter(|it| !it.is_empty())?;
            let cells = std::iter::once(configuration_name(row)).chain(cells(histogram, wide));
            Some(TextRow {
                configuration: Some(row.configuration),
                ..TextRow::of(cells.collect())
            })
        });
        let rows: Vec<TextRow> = rows.collect();
        let more: &[&str] = if wide { &["operations", "min"] } else { &[] };
        let names = ["mean", "sd", "p50", "p95", "p99", "p99.9", "max"];
        let names = ["configuration"].iter().chain(more).chain(&names);
        // A workload whose trials have no histograms has no table.
        (!rows.is_empty()).then(|| TextTable {
            title: format!("{}: latency of {op}, all rounds together", head.name),
            head: names.map(|name| (*name).to_owned()).collect(),
            rows,
            ..TextTable::default()
        })
    });
    tables.collect()
}

/// The figures of a row.
fn cells(histogram: &Histogram<u64>, wide: bool) -> impl Iterator<Item = String> {
    // Nanoseconds in the unit that suits each.
    let ns = |value: f64| unit::time_ns(value);
    let tail = |share: f64| {
        histogram::quantile(histogram, share).map_or(MISSING.to_owned(), |value| ns(value as f64))
    };
    // A terminal has no room for them.
    let more = match wide {
        true => vec![unit::count(histogram.len()), ns(histogram.min() as f64)],
        false => Vec::new(),
    };
    let rest = vec![
        ns(histogram.mean()),
        // One operation does not deviate.
        match histogram.len() {
            0 | 1 => MISSING.to_owned(),
            _ => ns(histogram.stdev()),
        },
        ns(histogram.value_at_quantile(0.50) as f64),
        tail(0.95),
        tail(0.99),
        tail(0.999),
        ns(histogram.max() as f64),
    ];
    more.into_iter().chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    #[test]
    fn every_operation_has_its_mean_deviation_and_percentiles() {
        let record = sample::record(&sample::small());
        let verdict = judge(&Evidence::of(&record));
        for wide in [false, true] {
            let tables = tables(&record, &verdict, wide);
            assert!(!tables.is_empty());
            for table in tables {
                assert!(
                    table
                        .rows
                        .iter()
                        .all(|row| row.cells.len() == table.head.len())
                );
                assert_eq!(table.head.contains(&"min".to_owned()), wide);
                assert!(
                    table.head.contains(&"p95".to_owned()) && table.head.contains(&"sd".to_owned())
                );
            }
        }
        let mut histogram = histogram::empty().unwrap();
        [1_000, 3_000]
            .into_iter()
            .for_each(|ns| histogram.record(ns).unwrap());
        let shown: Vec<String> = cells(&histogram, true).collect();
        assert_eq!(
            shown[..4],
            ["2", "1.00 µs", "2.00 µs", "1.00 µs"].map(str::to_owned)
        );
        let mut alone = histogram::empty().unwrap();
        alone.record(1_000).unwrap();
        assert_eq!(cells(&alone, false).nth(1).as_deref(), Some(MISSING));
        assert_eq!(
            shown[7], MISSING,
            "two operations have no 99.9th percentile"
        );
    }
}
