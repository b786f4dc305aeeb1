//! Made-up trials for the tests of checks: one second, one thread, a loop device on a disk.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, Grade};
use super::reading::TrialReading;
use stackrace_base::event::Settled;
use stackrace_base::event::{
    Counted, DeviceCounted, Ended, Observation, OperationObservation, OperationsOf,
    PhaseObservation,
};

/// A device that did nothing.
pub(super) fn device(name: &str) -> DeviceCounted {
    DeviceCounted {
        device: name.to_owned(),
        flushes: Some(0),
        ..DeviceCounted::default()
    }
}

/// A number of operations of a kind, each of so many bytes.
pub(crate) fn operation(op: &str, count: u64, bytes: u64) -> OperationObservation {
    OperationObservation {
        op: op.to_owned(),
        count,
        bytes: count * bytes,
        latency_ns_min: 1000,
        latency_ns_mean: 100_000.0,
        latency_ns_p50: 100_000,
        latency_ns_p95: 200_000,
        latency_ns_p99: 300_000,
        latency_ns_p999: None,
        latency_ns_max: 400_000,
        histogram: String::new(),
        service: None,
    }
}

/// One second in which nothing happened.
pub(crate) fn trial() -> Observation {
    let phase = serde_json::json!({
        "name": "measure", "elapsed_ns": 1_000_000_000u64, "engine": "sync", "clock": "tsc",
        "depth_achieved": 1.0, "operations": [], "step_ns": 100_000_000, "series": [],
    });
    let phase: PhaseObservation = serde_json::from_value(phase).unwrap();
    Observation {
        settled: Settled {
            caches: "drop_caches".to_owned(),
            ..Settled::default()
        },
        elapsed_ns: 1_000_000_000,
        counted: Counted {
            cpus: 2,
            devices: vec![device("loop0"), device("vda")],
            ..Counted::default()
        },
        phases: vec![phase],
        ..Observation::unmeasured(Ended::Complete)
    }
}

/// A trial on a machine nothing is known of.
pub(super) fn reading(trial: &Observation) -> TrialReading<'_> {
    TrialReading {
        trial,
        whose: OperationsOf::Itself,
        level: true,
        limits: &[],
        memory_bytes: None,
        processors_allowed: None,
    }
}

/// Finding of a check in a trial.
pub(super) fn found(check: &AuditCheck, trial: &Observation) -> Option<CheckFinding> {
    (check.judge)(&reading(trial))
}

/// The grade alone.
pub(super) fn grade(check: &AuditCheck, trial: &Observation) -> Option<Grade> {
    found(check, trial).map(|finding| finding.grade)
}
