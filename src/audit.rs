//! What was really measured: judgements on trials, each with its evidence.
//!
//! Wording is graded: a note says what the reader must know. Nothing is ever left out of a verdict
//! because of what is said here.

use crate::event::{Ended, Observation, RunStarted};
use crate::unit;

/// Above this share of prepared data in memory a start is not called cold.
const WARM_SHARE: f64 = 0.01;
/// Above this share of bytes read from the page cache a figure is not the disk's.
const CACHE_SHARE: f64 = 0.10;

/// Sentences about the run's trials, one for each workload concerned.
pub(crate) fn notes(head: &RunStarted, trials: &[&Observation]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, workload) in head.workloads.iter().enumerate() {
        let mine: Vec<&Observation> = trials
            .iter()
            .copied()
            .filter(|trial| trial.workload == index)
            .collect();
        notes.extend(warm(&workload.name, &mine));
        notes.extend(cached(&workload.name, &mine));
    }
    for trial in trials {
        if let Ended::Failed { error } = &trial.ended {
            let treatment = head
                .treatments
                .get(trial.treatment)
                .map_or("?", |t| t.name.as_str());
            let workload = head
                .workloads
                .get(trial.workload)
                .map_or("?", |w| w.name.as_str());
            notes.push(format!(
                "{treatment}, {workload}, round {}: failed: {error}",
                trial.round
            ));
        }
    }
    notes.extend(stolen(trials));
    notes
}

fn warm(workload: &str, trials: &[&Observation]) -> Option<String> {
    let dropped: Vec<&&Observation> = trials
        .iter()
        .filter(|trial| trial.settled.caches != "none")
        .collect();
    let warm = dropped
        .iter()
        .filter(
            |trial| match (trial.settled.resident_bytes, trial.settled.prepared_bytes) {
                (Some(resident), Some(prepared)) if prepared > 0 => {
                    resident as f64 > WARM_SHARE * prepared as f64
                }
                _ => false,
            },
        )
        .count();
    (warm > 0).then(|| {
        format!("{workload}: {warm} of {} trials did not start cold although caches were dropped: part of the data stayed in memory", dropped.len())
    })
}

fn cached(workload: &str, trials: &[&Observation]) -> Option<String> {
    // Sums of a log's numbers, which may be any: as floats they cannot overflow.
    let (mut hit, mut asked) = (0.0, 0.0);
    for trial in trials {
        let read = trial
            .phases
            .iter()
            .flat_map(|phase| &phase.operations)
            .filter(|op| op.op == "read" || op.op == "open")
            .map(|op| op.bytes as f64)
            .sum::<f64>();
        if let Some(bytes) = trial.counted.cache_hit_bytes
            && read > 0.0
        {
            hit += read.min(bytes as f64);
            asked += read;
        }
    }
    let share = hit / asked;
    (asked > 0.0 && share > CACHE_SHARE).then(|| {
        format!(
            "{workload}: {} of the bytes read came from the page cache, not from storage",
            unit::percent(share)
        )
    })
}

fn stolen(trials: &[&Observation]) -> Option<String> {
    let stolen = trials.iter().map(|trial| trial.counted.cpu_steal_ns as f64);
    let stolen: f64 = stolen.sum();
    let whole: f64 = trials
        .iter()
        .map(|trial| trial.elapsed_ns as f64 * f64::from(trial.counted.cpus.max(1)))
        .sum();
    let share = stolen / whole.max(1.0);
    (share > 0.01).then(|| {
        format!(
            "the hypervisor took {} of the processors' time away during trials",
            unit::percent(share)
        )
    })
}
