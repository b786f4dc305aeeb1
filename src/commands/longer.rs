//! Advice where trials have too few operations: no further round makes them longer, another run does.

use crate::commands::compare::COMPARE;
use crate::sizes::shape::{Shape, without};
use stackrace_base::event::{Ended, NamedQuantile, Observation, shell};
use stackrace_judge::verdict::{Enough, RequiredRow, Verdict};
use stackrace_results::record::Record;

/// Operations are fewer in one trial than in another.
const TO_SPARE: f64 = 1.25;
/// Options of `check` and `compare` that say how long trials last, or that a time excludes: those with a value, and
/// those without.
const LENGTHS: [&str; 3] = ["--time", "--size", "--like"];
const WITHOUT_TIME: [&str; 2] = ["--quick", "--until-decided"];

/// What makes an answer whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NextStep {
    /// What to do before the command, or with it, in words; empty if nothing.
    pub(crate) before: String,
    /// The command that makes it whole.
    pub(crate) command: String,
}

impl NextStep {
    /// A command, with what is to be done before it.
    pub(crate) fn new(before: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            before: before.into(),
            command: command.into(),
        }
    }
}

/// The command that begins anew with trials that are long enough; `None` if they are, or more rounds are to come first.
pub(crate) fn advice(record: &Record, verdict: &Verdict) -> Option<NextStep> {
    let short = |row: &&RequiredRow| row.enough == Enough::Open && row.is_too_short();
    let short: Vec<&RequiredRow> = verdict.required.iter().filter(short).collect();
    if short.is_empty() || !verdict.settled {
        return None;
    }
    let head = &record.head;
    let lacking = short.iter().filter_map(|row| seconds(record, row));
    let time = match head.study_name == COMPARE {
        true => Shape::time_required(lacking.fold(0.0, f64::max), workloads(record)),
        false => None,
    };
    Some(match time {
        Some(time) => {
            let mut command = without(&head.command, &LENGTHS, &WITHOUT_TIME);
            command.extend(["--time".to_owned(), format!("{}s", time.ceil())]);
            NextStep::new("begin anew with longer trials", shell(&command))
        }
        None if head.study_name == COMPARE => {
            let study = shell(&[&head.command[..], &["--print-study".to_owned()]].concat());
            NextStep::new("let the trials of its study last longer", study)
        }
        None => NextStep::new(
            "let the trials of the study last longer, then begin anew",
            shell(&head.command),
        ),
    })
}

/// Seconds that a trial must last for what is required.
fn seconds(record: &Record, row: &RequiredRow) -> Option<f64> {
    let mut heads = record.head.workloads.iter();
    let workload = heads.position(|it| it.name == row.workload)?;
    let measured = |trial: &&Observation| {
        (trial.workload, trial.configuration) == (workload, row.configuration)
            && trial.ended == Ended::Complete
    };
    let lasted = record.trials().filter(measured).map(|trial| {
        let phases = trial.phases.iter().map(|phase| phase.elapsed_ns);
        phases.sum::<u64>() as f64 / 1e9
    });
    let lasted = lasted.fold(0.0, f64::max);
    let times = match (row.operations, row.phase_ns) {
        (_, Some(ns)) => 1e9 / ns as f64,
        (Some(operations), _) => {
            NamedQuantile::of(&row.metric.name)?.needed as f64 / operations as f64
        }
        (None, None) => return None,
    };
    Some(lasted * times * TO_SPARE)
}

/// Workloads of which something is required, which share the time.
fn workloads(record: &Record) -> usize {
    let required = record.head.decide.required.iter();
    let mut all: Vec<usize> = required.map(|it| it.workload).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{BoundSide, Requirement};
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    #[test]
    fn trials_of_too_few_operations_are_advised_to_last_longer() {
        let shape = sample::SampleShape {
            configurations: vec![("d".into(), vec!["d".into()])],
            comparison: None,
            ..sample::small()
        };
        let mut record = sample::record(&shape);
        let said = |record: &Record| advice(record, &judge(&Evidence::of(record)));
        // A trial has 4000 reads: enough for p99, too few for p99.9.
        record.head.workloads[1].metrics[3].name = "read latency p99".to_owned();
        record.head.decide.required = vec![Requirement {
            workload: 1,
            metric: 3,
            limit: BoundSide::AtMost,
            bound: 1e18,
        }];
        assert_eq!(said(&record), None);
        record.head.workloads[1].metrics[3].name = "read latency p99.9".to_owned();
        let any = said(&record).unwrap();
        assert!(any.before.ends_with("then begin anew"), "{any:?}");
        record.head.study_name = COMPARE.to_owned();
        record.head.command = ["stackrace", "check", "d", "--time", "1s"]
            .map(str::to_owned)
            .into();
        let checked = said(&record).unwrap();
        let own = checked.command == "stackrace check d --time 1s --print-study";
        let longer = checked.command.starts_with("stackrace check d --time ")
            && checked.before.ends_with(" longer trials");
        assert!(own || longer, "{checked:?}");
    }

    #[test]
    fn the_command_says_its_time_once() {
        let command = [
            "stackrace",
            "check",
            "d",
            "--time",
            "9s",
            "--size=1MiB",
            "--quick",
            "--like",
            "last",
            "--quiet",
        ];
        let left = without(&command.map(str::to_owned), &LENGTHS, &WITHOUT_TIME);
        assert_eq!(left, ["stackrace", "check", "d", "--quiet"]);
        // As long as trials would last with this time.
        assert_eq!(Shape::time_required(8.0, 2), Some(180.0));
        assert_eq!(Shape::time_required(31.0, 1), None);
    }
}
