//! A load for programs: one JSON object. Times in ns, amounts in bytes; what was not measured is
//! null.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use stackrace_engine::{OpOutcome, PhaseEnd, PhaseOutcome, Timing};

use crate::commands::load::{LoadRequest, Loaded, LoadedPhase};
use stackrace_base::event::histogram::p999;
use stackrace_judge::audit::TrialAudit;

/// The object, with a line break at its end.
pub(super) fn render(
    request: &LoadRequest<'_>,
    loaded: &Loaded,
    audit: Option<&TrialAudit>,
) -> String {
    let phases = loaded.phases.iter().zip(&loaded.outcomes).enumerate();
    let phases: Vec<Value> = phases
        .map(|(number, (measured, outcome))| {
            phase(measured, outcome, request.workload.offered_per_s(number))
        })
        .collect();
    let metrics: Vec<Value> = loaded
        .metrics
        .iter()
        .map(|(head, value)| json!({ "name": head.name, "unit": head.unit, "value": value }))
        .collect();
    let object = json!({
        "workload": request.kind.name,
        "place": request.target.path().to_string_lossy(),
        "summary": request.summary(),
        "phases": phases,
        "metrics": metrics,
        "audit": audit.map(audited),
    });
    format!("{object:#}\n")
}

fn audited(audit: &TrialAudit) -> Value {
    let remarks = audit.remarks.iter().zip(&audit.sentences);
    let remarks: Vec<Value> = remarks
        .map(|((check, grade), sentence)| {
            json!({ "check": check, "grade": grade, "sentence": sentence })
        })
        .collect();
    json!({
        "limited_by": audit.limited_by,
        "limited_how": audit.limited_how,
        "remarks": remarks,
    })
}

fn phase(measured: &LoadedPhase, outcome: &PhaseOutcome, offered: Option<f64>) -> Value {
    let ops: Vec<Value> = outcome.ops.iter().map(op).collect();
    json!({
        "name": measured.name,
        "ended": ended(outcome.ended),
        "elapsed_ns": outcome.elapsed_ns,
        "cpu_ns": outcome.cpu_ns(),
        "cpu_user_ns": outcome.cpu_user_ns,
        "cpu_system_ns": outcome.cpu_system_ns,
        "engine": outcome.engine,
        "engine_why": outcome.engine_why,
        "depth_achieved": outcome.depth_achieved,
        "clock": outcome.clock,
        "ops": ops,
        "offered_per_s": offered,
        "lateness_ns": outcome.lateness.as_ref().map(timing),
        "unissued": outcome.unissued,
        "short": outcome.short,
        "verified_bytes": outcome.verified_bytes,
        "error": outcome.error.as_ref().map(ToString::to_string),
    })
}

fn ended(ended: PhaseEnd) -> &'static str {
    match ended {
        PhaseEnd::Complete => "complete",
        PhaseEnd::Stopped => "stopped",
        PhaseEnd::Failed => "failed",
    }
}

fn op(op: &OpOutcome) -> Value {
    json!({
        "op": op.op.name(),
        "count": op.count,
        "bytes": op.bytes,
        "latency_ns": figures(&op.latency, op.latency_sum_ns),
        "service_ns": op.service.as_ref().map(timing),
    })
}

fn timing(timing: &Timing) -> Value {
    figures(&timing.histogram, timing.sum_ns)
}

fn figures(histogram: &Histogram<u64>, sum_ns: u128) -> Value {
    let at = |quantile: f64| histogram.value_at_quantile(quantile);
    json!({
        // From the exact sum: the buckets of the histogram are 0.1 % wide.
        "mean": sum_ns as f64 / histogram.len().max(1) as f64,
        "p50": at(0.50),
        "p90": at(0.90),
        "p95": at(0.95),
        "p99": at(0.99),
        "p99.9": p999(histogram),
        "max": histogram.max(),
    })
}
