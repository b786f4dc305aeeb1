//! Results of separate runs: each run is one value, because what changes from one run to the next
//! (the machine's state, the layout, the hour) is the same for all rounds of a run.

use super::evidence::Evidence;
use super::fidelity;
use super::table::{ComparedFigure, ObservationTable};
use stackrace_base::event::RunStarted;
use stackrace_results::record::Record;

/// Runs on each side that a claim about separate runs needs.
pub(super) const RUNS_MIN: usize = 3;

/// One side of a comparison of stored results: a configuration, by index, of each of its runs.
pub(crate) type Side<'a> = [(&'a Record, usize)];

/// A workload and a metric by name; `None` for the overall figure.
pub(super) type NamedFigure<'a> = Option<(&'a str, &'a str)>;

/// A figure in each run of a side.
#[derive(Debug, Default)]
pub(super) struct RunLogs {
    /// Its logarithm, oriented so that larger is better.
    pub(super) logs: Vec<f64>,
    /// Fineness of the values: the width of a step on the log scale.
    pub(super) steps: Vec<f64>,
}

/// The figure of each run of a side that has it: the mean over the rounds of a run of ours. Each imported
/// result is a run of its tool.
pub(super) fn run_logs(side: &Side<'_>, named: NamedFigure<'_>) -> RunLogs {
    let mut runs = RunLogs::default();
    for (record, configuration) in side {
        let evidence = Evidence::of(record);
        let table = ObservationTable::new(&evidence);
        let Some(figure) = figure(&record.head, named) else {
            continue;
        };
        let value = |at: usize| {
            let log = table.ln(*configuration, figure, at)?;
            Some((log, table.log_step(*configuration, figure, at)))
        };
        let rounds = (0..table.rounds.len()).filter_map(value);
        let (rounds, steps): (Vec<f64>, Vec<f64>) = rounds.unzip();
        match record.imported() {
            // A run without the figure is no value: the mean of no rounds is not a number.
            true => {
                runs.logs.extend(rounds);
                runs.steps.extend(steps);
            }
            false if rounds.is_empty() => {}
            false => {
                runs.logs.push(stackrace_stats::mean(&rounds));
                runs.steps.push(stackrace_stats::mean(&steps));
            }
        }
    }
    runs
}

/// Returns true if the figure of a run of a side rests on a replay that is not like its application.
pub(super) fn is_unlike(side: &Side<'_>, named: NamedFigure<'_>) -> bool {
    let mut runs = side.iter();
    runs.any(|(record, _)| {
        let figure = figure(&record.head, named);
        figure.is_some_and(|figure| fidelity::is_unlike(&Evidence::of(record), figure))
    })
}

fn figure(head: &RunStarted, named: NamedFigure<'_>) -> Option<ComparedFigure> {
    let Some((workload, metric)) = named else {
        return Some(ComparedFigure::Overall);
    };
    let at = head.workloads.iter().position(|w| w.name == workload)?;
    let metrics = &head.workloads[at].metrics;
    let metric = metrics.iter().position(|m| m.name == metric)?;
    Some(ComparedFigure::Metric {
        workload: at,
        metric,
    })
}
