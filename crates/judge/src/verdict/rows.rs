//! The table of configurations, and what the reader must know beside it.

use super::enough::RequiredRow;
use super::statement::{Comparison, ConfigurationRow, Interval, MetricCell};
use super::table::{ComparedFigure, ObservationTable};
use super::{slices, unpaired};

/// Confidence of the interval of a figure, whatever confidence the study asks for: it describes one configuration and is
/// no claim.
const CELL_CONFIDENCE: f64 = 0.95;

/// Metrics whose figures are wanted: working them out takes most of the time of a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellsOf {
    /// The primary metric of each workload.
    Primary,
    /// All metrics.
    All,
}

/// Every configuration with its figures on the primary metrics; best first where a ranking is asked.
pub(super) fn rows(
    table: &ObservationTable<'_>,
    overall: &[Comparison],
    ranked: bool,
) -> Vec<ConfigurationRow> {
    let head = table.evidence.head;
    let failed = table.evidence.failed();
    let mut rows: Vec<ConfigurationRow> = (0..table.configurations())
        .map(|t| ConfigurationRow {
            configuration: t,
            name: head.configurations[t].name.clone(),
            levels: head.configurations[t].levels.clone(),
            dropped_after: table
                .evidence
                .dropped
                .iter()
                .find(|(dropped, _)| *dropped == t)
                .map(|(_, n)| *n),
            // Without a ranking none is beaten: it leaves because it was answered, or failed.
            answered: !table.live(t)
                && !table.evidence.ranks()
                && failed.iter().all(|failure| failure.configuration != t),
            overall: overall
                .iter()
                .find(|c| c.b == head.configurations[t].name)
                .and_then(|c| c.ratio.or_else(|| c.so_far())),
            baseline: false,
            lacking: None,
            cells: cells(table, t, CellsOf::Primary),
        })
        .collect();
    // Imported results without a metric in common have no baseline to be relative to.
    let compared = !table.evidence.imported || overall.iter().any(|c| c.ratio.is_some());
    let base = overall.first().filter(|_| compared).map(|c| c.a.clone());
    // A baseline that never finished its work is no measure of anything, not even of itself.
    let measured = |row: &ConfigurationRow| {
        let mut rounds = 0..table.rounds.len();
        table.evidence.imported
            || rounds.any(|at| table.overall_ln(row.configuration, at).is_some())
    };
    for row in rows.iter_mut().filter(|row| measured(row)) {
        if Some(&row.name) != base.as_ref() {
            let mut compared = overall.iter().filter(|one| one.b == row.name);
            row.lacking = compared.find_map(|one| one.lacking);
            continue;
        }
        row.baseline = true;
        row.overall = Some(Interval {
            estimate: 1.0,
            low: 1.0,
            high: 1.0,
        });
    }
    if ranked && rows.len() > 1 {
        // One without a figure comes last.
        let figure = |row: &ConfigurationRow| row.overall.map_or(0.0, |overall| overall.estimate);
        rows.sort_by(|x, y| figure(y).total_cmp(&figure(x)));
    }
    rows
}

/// Adds the figures on all other metrics.
pub(super) fn complete(
    table: &ObservationTable<'_>,
    rows: &mut [ConfigurationRow],
    required: &[RequiredRow],
) {
    for row in rows.iter_mut() {
        row.cells = cells(table, row.configuration, CellsOf::All);
    }
    as_judged(table, rows, required);
}

/// Gives each figure of which something is required the interval that this was judged by: with another one beside it, a
/// reader would have to choose.
pub(super) fn as_judged(
    table: &ObservationTable<'_>,
    rows: &mut [ConfigurationRow],
    required: &[RequiredRow],
) {
    // A study may ask for less than the 95 % that stand above these intervals.
    if table.evidence.head.decide.confidence < CELL_CONFIDENCE {
        return;
    }
    for row in rows {
        for cell in &mut row.cells {
            let judged = required.iter().find(|it| {
                (it.configuration, &it.workload, &it.metric.name)
                    == (row.configuration, &cell.workload_name, &cell.metric.name)
            });
            // Before the first look there is none.
            cell.value = judged.and_then(|it| it.value).or(cell.value);
        }
    }
}

fn cells(table: &ObservationTable<'_>, configuration: usize, of: CellsOf) -> Vec<MetricCell> {
    let head = table.evidence.head;
    let mut cells = Vec::new();
    for (w, workload) in head.workloads.iter().enumerate() {
        let metrics = match of {
            CellsOf::Primary => 1,
            CellsOf::All => workload.metrics.len(),
        };
        for (m, metric) in workload.metrics.iter().take(metrics).enumerate() {
            let figure = ComparedFigure::Metric {
                workload: w,
                metric: m,
            };
            let most = table.rounds.len();
            let (mut rounds, mut logs, mut steps) = (
                Vec::with_capacity(most),
                Vec::with_capacity(most),
                Vec::with_capacity(most),
            );
            for (at, round) in table.rounds.iter().enumerate() {
                let Some(value) = table.value(configuration, w, m, at) else {
                    continue;
                };
                rounds.push((*round, value));
                // As they were worked out for the comparisons.
                logs.extend(
                    table
                        .ln(configuration, figure, at)
                        .map(|ln| metric.better.oriented(ln)),
                );
                steps.push(table.log_step(configuration, figure, at));
            }
            let log_step = unpaired::coarser(&steps, &[]);
            let value = stackrace_stats::paired_ratio(&logs, 1.0 - CELL_CONFIDENCE)
                .map(|mean| Interval::from(mean.widened(log_step)))
                .or_else(|| {
                    // One round: the figure stands without an interval.
                    rounds.first().map(|(_, value)| Interval {
                        estimate: *value,
                        low: f64::NAN,
                        high: f64::NAN,
                    })
                });
            cells.push(MetricCell {
                workload: w,
                workload_name: workload.name.clone(),
                metric: metric.clone(),
                primary: m == 0,
                value,
                rounds,
                log_step,
            });
        }
    }
    cells
}

/// Notes on what spoils or limits the figures.
pub(super) fn notes(table: &ObservationTable<'_>) -> Vec<String> {
    if table.evidence.imported {
        return unpaired::notes(table.evidence);
    }
    let mut notes = table.evidence.tried_again();
    notes.extend(crate::audit::notes(
        table.evidence.head,
        &table.evidence.trials,
        &table.evidence.set_ups,
    ));
    notes.extend(slices::notes(table.evidence));
    // A workload that no configuration was measured on in a round was left out on purpose.
    let asked = |at: usize, w: usize| {
        let round = table.rounds[at];
        let mut trials = table.evidence.trials.iter();
        trials.any(|trial| trial.round == round && trial.workload == w)
    };
    let lacks = |t: usize, at: usize| {
        let mut workloads = 0..table.workloads();
        workloads.any(|w| {
            let counts = at >= table.evidence.rounds_before(w);
            counts && table.value(t, w, 0, at).is_none() && asked(at, w)
        })
    };
    let missing = (0..table.configurations())
        .flat_map(|t| (0..table.rounds_of(t)).map(move |at| (t, at)))
        .filter(|(t, at)| lacks(*t, *at))
        .count();
    // Without weights there is no overall comparison that could lack it.
    if missing > 0 && table.evidence.head.workloads.iter().any(|w| w.weight > 0.0) {
        notes.push(format!("a finished round lacks a complete trial {missing} times: it is left out of that configuration's overall comparison"));
    }
    notes
}
