//! The table that answers the question where no comparison does: what is required, or the figures themselves.

use super::content::{TextRow, TextTable, configuration_name, interval_name, workload};
use super::figure;
use stackrace_base::event::WorkloadHead;
use stackrace_base::unit;
use stackrace_judge::verdict::{RequiredRow, Verdict};

/// Every requirement of every configuration with its figure; `None` if nothing is required.
pub(super) fn required(verdict: &Verdict) -> Option<TextTable> {
    let head = ["configuration", "figure", "value"].map(str::to_owned);
    let last = ["required", "answer"].map(str::to_owned);
    let interval = std::iter::once(interval_name(verdict.confidence));
    (!verdict.required.is_empty()).then(|| TextTable {
        title: "Required".to_owned(),
        note: String::new(),
        head: head.into_iter().chain(interval).chain(last).collect(),
        text: vec![1, 4, 5],
        rows: verdict.required.iter().map(row).collect(),
    })
}

fn row(required: &RequiredRow) -> TextRow {
    let unit = required.metric.unit.as_str();
    let bound = unit::of_metric(unit, required.bound);
    let [value, interval] = required.value.map_or_else(
        || [figure::MISSING, figure::MISSING].map(str::to_owned),
        |found| {
            [
                figure::value(unit, found.estimate),
                figure::range(unit, found),
            ]
        },
    );
    TextRow::of(vec![
        required.name.clone(),
        required.metric.on(&required.workload),
        value,
        interval,
        format!("{} {bound}", required.limit.words()),
        required.enough.words().to_owned(),
    ])
}

/// What stands in for a comparison where there is none: the figures of the only workload, or those of the only
/// configuration on every workload.
pub(super) fn figures(verdict: &Verdict, heads: &[WorkloadHead]) -> Option<TextTable> {
    let one = |(at, head)| workload(verdict, at, head);
    let mut tables = heads.iter().enumerate().map(one);
    let first = tables.next()?;
    let [only] = &verdict.configurations[..] else {
        return Some(first);
    };
    if heads.len() == 1 {
        return Some(first);
    }
    let mut all = TextTable {
        title: configuration_name(only),
        note: String::new(),
        ..first
    };
    all.head[0] = "workload".to_owned();
    all.rows.extend(tables.flat_map(|table| table.rows));
    for (row, head) in all.rows.iter_mut().zip(heads) {
        row.cells[0].clone_from(&head.name);
    }
    Some(all)
}
