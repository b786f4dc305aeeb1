//! A table coloured by its figures, where a study varies two amounts: queue depth by block size.

use maud::{Markup, html};

use super::sweep::{Along, along_of};
use crate::report::figure;
use stackrace_judge::verdict::{ConfigurationRow, Verdict};
use stackrace_results::record::Record;

/// Shades of a cell, the last the darkest: those of the style sheet.
const SHADES: f64 = 9.0;

/// A map for each workload; empty unless exactly two factors vary, both of them amounts.
pub(super) fn heat(record: &Record, verdict: &Verdict) -> Markup {
    let [first, second] = record.head.factors.as_slice() else {
        return html! {};
    };
    let (Some(down), Some(across)) = (along_of(verdict, 0, 2), along_of(verdict, 1, 2)) else {
        return html! {};
    };
    // By amount: levels may stand in any order in the study.
    let places = |factor: usize, along: Along| {
        let rows = verdict.configurations.iter();
        let mut all: Vec<u64> = rows.filter_map(|row| place(row, factor, along)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (rows, columns) = (places(0, down), places(1, across));
    html! {
        @for (workload, head) in record.head.workloads.iter().enumerate() {
            @if let Some(metric) = head.metrics.first() {
                @let value = |row: u64, column: u64| {
                    let mut all = verdict.configurations.iter();
                    let one = all.find(|it| place(it, 0, down) == Some(row) && place(it, 1, across) == Some(column));
                    one.and_then(|one| value_of(one, workload))
                };
                @let all: Vec<f64> = rows.iter().flat_map(|row| columns.iter().filter_map(|it| value(*row, *it))).collect();
                h3 { (head.name) ": " (figure::metric(metric)) " by " (first) " and " (second) }
                div class="scroll" {
                    table class="heat" {
                        thead { tr {
                            th class="text" { (first) " \\ " (second) }
                            @for column in &columns { th class="figure" { ((across.label)(*column as f64)) } }
                        } }
                        tbody {
                            @for row in &rows {
                                tr {
                                    th class="text" { ((down.label)(*row as f64)) }
                                    @for column in &columns { (cell(value(*row, *column), &all, &metric.unit)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(value: Option<f64>, all: &[f64], unit: &str) -> Markup {
    match value {
        None => html! { td class="figure" { (figure::MISSING) } },
        Some(value) => html! {
            td class={ "figure heat" (shade(value, all)) } { (figure::value(unit, value)) }
        },
    }
}

/// Shade of a value among all, from 0: by ratios, as figures of depths and sizes span powers of ten.
fn shade(value: f64, all: &[f64]) -> u32 {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    let span = libm::log(most / least);
    // Equal figures, or none above 0, have no order.
    if !(span.is_finite() && span > 0.0 && value > 0.0) {
        return 0;
    }
    // On the log scale, where twice as much is one step wherever it begins.
    let share = libm::log(value / least) / span;
    (share.clamp(0.0, 1.0) * SHADES).round() as u32
}

fn place(row: &ConfigurationRow, factor: usize, along: Along) -> Option<u64> {
    (along.place)(row.levels.get(factor)?)
}

// The first metric alone: a map of each would be a page of its own.
fn value_of(row: &ConfigurationRow, workload: usize) -> Option<f64> {
    let mut cells = row.cells.iter();
    let cell = cells.find(|cell| cell.workload == workload && cell.primary)?;
    cell.value.map(|value| value.estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    #[test]
    fn the_least_is_the_palest_and_the_most_the_darkest() {
        let all = [1.0, 10.0, 100.0];
        assert_eq!(all.map(|value| shade(value, &all)), [0, 5, 9]);
        assert_eq!(shade(1.0, &[1.0, 1.0]), 0);
        assert_eq!(shade(0.0, &[0.0, 2.0]), 0);
    }

    #[test]
    fn depth_by_block_size_is_a_map_and_other_factors_are_none() {
        let mut record = sample::record(&sample::small());
        let mut verdict = judge(&Evidence::of(&record));
        assert!(heat(&record, &verdict).0.is_empty());
        record.head.factors = vec!["depth".to_owned(), "block-size".to_owned()];
        let template = verdict.configurations[0].clone();
        let levels = [
            ["1", "4 KiB"],
            ["1", "64 KiB"],
            ["8", "4 KiB"],
            ["8", "64 KiB"],
        ];
        let rows = levels.map(|levels| ConfigurationRow {
            levels: levels.map(str::to_owned).to_vec(),
            ..template.clone()
        });
        verdict.configurations = rows.to_vec();
        let map = heat(&record, &verdict).0;
        assert!(map.contains("by depth and block-size"), "{map}");
        assert_eq!(
            map.matches("<td").count(),
            4 * record.head.workloads.len(),
            "{map}"
        );
    }
}
