//! Whether the numbers of a log are those of one run: a line that was changed by hand contradicts others.
//!
//! A log is no proof: who writes all of it anew can write what he likes. What is looked for here is what a changed
//! figure, a line put in or a line taken out leaves behind.

use stackrace_base::event::histogram::decoded;
use stackrace_base::event::{
    Ended, MetricHead, Observation, OperationObservation, PhaseObservation, WorkloadHead,
};
use stackrace_base::unit;
use stackrace_results::record::Record;

/// Share by which a figure may differ from what it follows from: it is computed in floating point.
const SAME: f64 = 1e-6;

/// Looks whether the numbers of a log fit each other.
///
/// # Errors
/// They do not; a clause that says which.
pub(super) fn fits(record: &Record) -> Result<(), String> {
    let head = &record.head;
    // With another study, the same figures would answer another question.
    if hash(&head.study) != head.study_hash {
        return Err("the text of its study has another hash than the log says".to_owned());
    }
    // What was cut before the log was published has no text any more.
    let imported = record.origins().filter(|text| !text.text.is_empty());
    for text in imported {
        if hash(&text.text) != text.hash {
            return Err(
                "a text that it was imported from has another hash than the log says".to_owned(),
            );
        }
    }
    // Each round says at its end how many trials it had.
    if let Some(altered) = record.altered_rounds().first() {
        return Err(altered.to_string());
    }
    for trial in record.trials() {
        let place = |why: String| {
            let (round, configuration) = (trial.round, trial.configuration);
            format!(
                "round {round}, configuration {configuration}, workload {}: {why}",
                trial.workload
            )
        };
        let workload = head.workloads.get(trial.workload);
        match workload {
            Some(workload) if trial.configuration < head.configurations.len() => {
                trial_fits(trial, workload).map_err(place)?;
            }
            _ => return Err(place("it is not in the study".to_owned())),
        }
    }
    Ok(())
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn trial_fits(trial: &Observation, workload: &WorkloadHead) -> Result<(), String> {
    let no_figure = |value: &&f64| !value.is_finite() || value.is_sign_negative();
    if let Some(value) = trial.metrics.iter().flatten().find(no_figure) {
        return Err(format!("{value} is no figure"));
    }
    if trial.metrics.len() > workload.metrics.len() {
        return Err("it has more figures than its workload has metrics".to_owned());
    }
    let operations = trial.phases.iter().flat_map(|phase| &phase.operations);
    operations.into_iter().try_for_each(operation_fits)?;
    // Figures of several phases, turns or clients are put together in ways of their own.
    let [phase] = trial.phases.as_slice() else {
        return Ok(());
    };
    let alone = trial.clients.is_none() && trial.others.is_empty() && trial.beside.is_none();
    if trial.ended != Ended::Complete || trial.sliced.is_some() || !alone || workload.is_printed() {
        return Ok(());
    }
    let figures = workload.metrics.iter().zip(&trial.metrics);
    for (metric, value) in figures {
        if let (Some(value), Some(follows)) = (*value, follows(metric, phase))
            && (value - follows).abs() > SAME * follows.abs()
        {
            let shown = |value| unit::of_metric(&metric.unit, value);
            return Err(format!(
                "its {} is {}, and what was counted gives {}",
                metric.name,
                shown(value),
                shown(follows)
            ));
        }
    }
    Ok(())
}

/// Looks whether the counts of a kind of operation are those of its histogram.
fn operation_fits(op: &OperationObservation) -> Result<(), String> {
    // Results of other tools have none.
    let Some(histogram) = decoded(&op.histogram) else {
        return Ok(());
    };
    let median = histogram.value_at_quantile(0.5);
    let p99 = histogram.value_at_quantile(0.99);
    match (op.count, op.latency_ns_p50, op.latency_ns_p99) == (histogram.len(), median, p99) {
        true => Ok(()),
        false => Err(format!(
            "the count or a latency of \"{}\" is not that of its own histogram",
            op.op.escape_debug()
        )),
    }
}

/// The value of a metric that follows from what a phase counted; `None` if that is not known.
fn follows(metric: &MetricHead, phase: &PhaseObservation) -> Option<f64> {
    let per_second =
        |amount: u64| (phase.elapsed_ns > 0).then(|| amount as f64 * 1e9 / phase.elapsed_ns as f64);
    let bytes = phase.operations.iter().map(|op| op.bytes).sum::<u64>();
    if (metric.name.as_str(), metric.unit.as_str()) == ("throughput", "B/s") && bytes > 0 {
        return per_second(bytes);
    }
    // Each kind has its latencies under its own name.
    let named = |op: &OperationObservation, which: &str| {
        metric.name == format!("{} latency {which}", op.op)
    };
    let mut operations = phase.operations.iter();
    operations.find_map(|op| {
        if named(op, "p50") {
            return Some(op.latency_ns_p50 as f64);
        }
        named(op, "p99").then_some(op.latency_ns_p99 as f64)
    })
}
