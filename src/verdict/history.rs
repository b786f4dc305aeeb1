//! The runs of one study over time: each configuration's primary metrics, and where they changed.
//!
//! Neighbouring runs were not made in turn, so a change is what two stored results side by side can
//! say, no more: Welch's interval of their ratio, 95 % for each change on its own, excludes 1.

use super::answer::Verdict;
use super::statement::Interval;
use super::unpaired;
use crate::event::MetricHead;
use crate::record::Record;

/// One configuration on the primary metric of one workload, over the runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryLine {
    /// Name of the workload.
    pub(crate) workload: String,
    /// Its primary metric.
    pub(crate) metric: MetricHead,
    /// Name of the configuration.
    pub(crate) configuration: String,
    /// A point for each run that has it, oldest first.
    pub(crate) points: Vec<HistoryPoint>,
}

/// One run's figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryPoint {
    /// The run, by its place among those given, from 0.
    pub(crate) run: usize,
    /// Geometric mean with its own interval.
    pub(crate) value: Interval,
    /// How many results it rests on.
    pub(crate) results: usize,
    /// Against the point before; none: this is the first.
    pub(crate) change: Option<HistoryChange>,
}

/// A figure against the one of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HistoryChange {
    /// This over the earlier, oriented so that above 1 this is better; its ends are not numbers
    /// where no interval can be given.
    pub(crate) ratio: Interval,
    /// The interval excludes a ratio of 1.
    pub(crate) differs: bool,
}

/// Every course through runs given oldest first, workloads and configurations in the order they appear.
pub(crate) fn history(runs: &[(&Record, &Verdict)]) -> Vec<HistoryLine> {
    let mut courses: Vec<HistoryLine> = Vec::new();
    // Each course's last results, for the change to the next.
    let mut last: Vec<Vec<f64>> = Vec::new();
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
                    last.push(Vec::new());
                    courses.len() - 1
                });
                let results: Vec<f64> = cell.rounds.iter().map(|(_, value)| *value).collect();
                let figure = unpaired::figure(&cell.metric, &last[place], &results);
                courses[place].points.push(HistoryPoint {
                    run,
                    value,
                    results: results.len(),
                    change: figure.map(|figure| HistoryChange {
                        ratio: figure.ratio,
                        differs: figure.differs,
                    }),
                });
                last[place] = results;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::record::sample;
    use crate::verdict::{Evidence, judge};

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

    #[test]
    fn a_change_is_marked_where_it_happened_and_nowhere_else() {
        let records = [run(1.0), run(1.0), run(0.5), run(0.5)];
        let verdicts: Vec<Verdict> = records.iter().map(|r| judge(&Evidence::of(r))).collect();
        let runs: Vec<_> = records.iter().zip(&verdicts).collect();
        let courses = history(&runs);
        assert_eq!(courses.len(), 6, "three workloads, two configurations");
        for course in &courses {
            let changed: Vec<usize> = course
                .points
                .iter()
                .filter(|point| point.change.is_some_and(|change| change.differs))
                .map(|point| point.run)
                .collect();
            let expected: &[usize] = if course.configuration == "xfs" {
                &[2]
            } else {
                &[]
            };
            assert_eq!(
                changed, expected,
                "{} {}",
                course.workload, course.configuration
            );
            assert_eq!(course.points[0].change, None);
        }
        let halved = courses
            .iter()
            .find(|course| course.configuration == "xfs")
            .unwrap();
        let ratio = halved.points[2].change.unwrap().ratio.estimate;
        assert!((ratio - 0.5).abs() < 1e-9, "{ratio}");
    }
}
