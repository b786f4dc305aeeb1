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

/// Below this share of the offered load a figure is not that of the load asked for.
const ACHIEVED_SHARE: f64 = 0.99;

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
        notes.extend(behind(&workload.name, &mine));
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
    let mut hit = 0_u64;
    let mut asked = 0_u64;
    for trial in trials {
        let read = trial
            .phases
            .iter()
            .flat_map(|phase| &phase.operations)
            .filter(|op| op.op == "read" || op.op == "open")
            .map(|op| op.bytes)
            .sum::<u64>();
        if let Some(bytes) = trial.counted.cache_hit_bytes
            && read > 0
        {
            hit += bytes.min(read);
            asked += read;
        }
    }
    let share = hit as f64 / asked.max(1) as f64;
    (asked > 0 && share > CACHE_SHARE).then(|| {
        format!(
            "{workload}: {} of the bytes read came from the page cache, not from storage",
            unit::percent(share)
        )
    })
}

/// Trials whose storage did not keep up with an open loop, the worst of them in figures.
fn behind(workload: &str, trials: &[&Observation]) -> Option<String> {
    let worst_of = |trial: &&Observation| {
        let phases = trial.phases.iter().filter_map(|phase| {
            let ops = phase.operations.iter().filter(|op| op.op != "fsync");
            let count: u64 = ops.map(|op| op.count).sum();
            let achieved = count as f64 * 1e9 / phase.elapsed_ns.max(1) as f64;
            Some((phase.offered_per_s?, achieved))
        });
        phases.min_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))
    };
    let offered: Vec<(f64, f64)> = trials.iter().filter_map(worst_of).collect();
    let short = offered
        .iter()
        .filter(|(offered, achieved)| not_achieved(*offered, *achieved));
    let count = short.clone().count();
    let (asked, achieved) = short.min_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    Some(format!(
        "{workload}: {count} of {} trials did not keep up with the offered load: offered {}, achieved {} at worst; response times grow with the length of such a phase",
        offered.len(),
        unit::operations_per_second(*asked),
        unit::operations_per_second(*achieved)
    ))
}

/// Whether what was achieved is not the load that was offered, both in operations per second.
pub(crate) fn not_achieved(offered: f64, achieved: f64) -> bool {
    achieved < ACHIEVED_SHARE * offered
}

fn stolen(trials: &[&Observation]) -> Option<String> {
    let stolen: u64 = trials.iter().map(|trial| trial.counted.cpu_steal_ns).sum();
    let whole: u64 = trials
        .iter()
        .map(|trial| trial.elapsed_ns * u64::from(trial.counted.cpus.max(1)))
        .sum();
    let share = stolen as f64 / whole.max(1) as f64;
    (share > 0.01).then(|| {
        format!(
            "the hypervisor took {} of the processors' time away during trials",
            unit::percent(share)
        )
    })
}
