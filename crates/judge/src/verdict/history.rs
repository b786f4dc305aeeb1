//! The runs of one study over time: each configuration's primary metrics, and where they changed.
//!
//! The runs were not measured in turn, so each run is one value, however well its rounds agree. A
//! change is marked at a run if Welch's interval of the ratio between the three runs before it and
//! the three from it on excludes 1 (95 % for each change on its own).

use super::answer::Verdict;
use super::separate::RUNS_MIN;
use super::statement::Interval;
use super::unpaired;
use stackrace_base::event::MetricHead;
use stackrace_results::record::Record;

/// One configuration on the primary metric of one workload, over the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryLine {
    /// Name of the workload.
    pub workload: String,
    /// Its primary metric.
    pub metric: MetricHead,
    /// Name of the configuration.
    pub configuration: String,
    /// A point for each run that has it, oldest first.
    pub points: Vec<HistoryPoint>,
}

/// A figure of one run, in a series over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPoint {
    /// The run, by its place among those given, from 0.
    pub run: usize,
    /// Geometric mean with its own interval.
    pub value: Interval,
    /// Number of results it rests on.
    pub results: usize,
    /// This run and the next ones against those before; `None` if there are too few of the same work.
    pub change: Option<HistoryChange>,
}

/// Figures of some runs against those of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryChange {
    /// The later over the earlier, oriented so that above 1 the later is better.
    pub ratio: Interval,
    /// The interval excludes a ratio of 1.
    pub differs: bool,
}

/// Runs on each side that are set against each other around a point.
const WINDOW: usize = RUNS_MIN;

/// One run's results, for the changes.
struct RunResults {
    /// The work of the workload: runs that did something else are not set against each other.
    work: String,
    /// A logarithm for each run there is (an imported one may hold several), oriented up.
    logs: Vec<f64>,
    /// Fineness of the values: the mean width of a step, log scale.
    log_step: f64,
}

/// Every course through runs given oldest first, workloads and configurations in the order they appear.
pub fn history(runs: &[(&Record, &Verdict)]) -> Vec<HistoryLine> {
    let mut courses: Vec<HistoryLine> = Vec::new();
    let mut results: Vec<Vec<RunResults>> = Vec::new();
    for (run, (record, verdict)) in runs.iter().enumerate() {
        for (at, workload) in record.head.workloads.iter().enumerate() {
            for row in &verdict.configurations {
                let cell = row
                    .cells
                    .iter()
                    .find(|cell| cell.workload == at && cell.primary);
                let Some((cell, value)) = cell.and_then(|cell| Some((cell, cell.value?))) else {
                    continue;
                };
                // By name: another version of the study may list workloads and configurations in
                // another order.
                let known = courses.iter().position(|course| {
                    (&course.workload, &course.metric, &course.configuration)
                        == (&workload.name, &cell.metric, &row.name)
                });
                let place = known.unwrap_or_else(|| {
                    courses.push(HistoryLine {
                        workload: workload.name.clone(),
                        metric: cell.metric.clone(),
                        configuration: row.name.clone(),
                        points: Vec::new(),
                    });
                    results.push(Vec::new());
                    courses.len() - 1
                });
                let rounds = cell.rounds.iter();
                let logs: Vec<f64> = rounds
                    .map(|(_, v)| cell.metric.better.oriented_ln(*v))
                    .collect();
                courses[place].points.push(HistoryPoint {
                    run,
                    value,
                    results: logs.len(),
                    change: None,
                });
                results[place].push(RunResults {
                    log_step: cell.log_step,
                    work: format!("{} {}", workload.kind, workload.work()),
                    // What was special about a run is in all of its rounds, so they are one value.
                    // An imported record holds several runs of its tool.
                    logs: match record.imported() {
                        true => logs,
                        false => vec![stackrace_stats::mean(&logs)],
                    },
                });
            }
        }
    }
    for (course, results) in courses.iter_mut().zip(&results) {
        for (at, point) in course.points.iter_mut().enumerate() {
            point.change = change(results, at);
        }
    }
    // One workload after the other, whichever run had which first.
    let order: Vec<String> = courses
        .iter()
        .map(|course| course.workload.clone())
        .collect();
    courses.sort_by_key(|course| order.iter().position(|name| *name == course.workload));
    courses
}

/// The runs from this place on against those before it; `None` if they are too few, or did other work.
fn change(results: &[RunResults], at: usize) -> Option<HistoryChange> {
    // Near either end there are too few runs on one side, and `get` finds none.
    let before = results.get(at.checked_sub(WINDOW)?..at)?;
    let after = results.get(at..at + WINDOW)?;
    let mut all = before.iter().chain(after);
    if !all.all(|run| run.work == before[0].work) {
        return None;
    }
    let logs = |runs: &[RunResults]| -> Vec<f64> {
        runs.iter().flat_map(|run| run.logs.clone()).collect()
    };
    let steps = |runs: &[RunResults]| -> Vec<f64> { runs.iter().map(|run| run.log_step).collect() };
    let resolution = unpaired::coarser(&steps(before), &steps(after));
    let ratio = unpaired::ratio(&logs(before), &logs(after), resolution)?;
    Some(HistoryChange {
        ratio,
        differs: unpaired::differs(Some(ratio)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Evidence, judge};
    use stackrace_base::event::Event;
    use stackrace_results::record::sample;

    /// The made-up run with every throughput of one configuration multiplied.
    fn run(factor: f64) -> Record {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            if let Event::Trial(trial) = &mut line.event
                && trial.configuration == 1
                && let Some(Some(value)) = trial.metrics.first_mut()
            {
                *value *= factor;
            }
        }
        record
    }

    fn changed(records: &[Record], configuration: &str) -> Vec<Vec<usize>> {
        let verdicts: Vec<Verdict> = records.iter().map(|r| judge(&Evidence::of(r))).collect();
        let runs: Vec<_> = records.iter().zip(&verdicts).collect();
        let courses = history(&runs);
        assert_eq!(courses.len(), 6, "three workloads, two configurations");
        let mine = courses
            .iter()
            .filter(|course| course.configuration == configuration);
        mine.map(|course| {
            let points = course.points.iter();
            let changed = points.filter(|point| point.change.is_some_and(|change| change.differs));
            changed.map(|point| point.run).collect()
        })
        .collect()
    }

    #[test]
    fn a_change_is_marked_where_it_happened_and_nowhere_else() {
        let factors = [1.0, 1.02, 0.99, 0.5, 0.51, 0.495];
        let records = factors.map(run);
        assert_eq!(changed(&records, "xfs"), [[3], [3], [3]]);
        assert_eq!(changed(&records, "ext4"), [[0; 0], [0; 0], [0; 0]]);
    }

    /// Rounds of a run agree far better than runs do: two runs that differ are no change.
    #[test]
    fn fewer_than_three_runs_on_a_side_and_other_work_mark_no_change() {
        let few = [1.0, 1.02, 0.5, 0.51].map(run);
        assert_eq!(changed(&few, "xfs"), [[0; 0], [0; 0], [0; 0]]);
        let mut other = [1.0, 1.02, 0.99, 0.5, 0.51, 0.495].map(run);
        for record in &mut other[3..] {
            record.head.workloads[0].summary = "half as much".to_owned();
        }
        assert_eq!(changed(&other, "xfs"), [vec![], vec![3], vec![3]]);
    }
}
