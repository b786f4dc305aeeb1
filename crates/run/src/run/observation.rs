//! What a phase measured, as it is recorded.

use stackrace_engine::{Op, OpOutcome, PhaseOutcome, ProgramWork, Timing};

use stackrace_base::event::histogram::{encoded, p999};
use stackrace_base::event::{
    Counted, Fact, Observation, OperationObservation, PhaseObservation, ReplayedCalls,
    ThreadOperation, TimingObservation, WorkDone,
};
use stackrace_load::workload::Workload;
use stackrace_machine::observe;

/// Adds a phase, by its index and outcome, to what is recorded of a trial, with what the system counted meanwhile.
pub fn note_phase(
    observation: &mut Observation,
    workload: &dyn Workload,
    (phase, outcome): (usize, &PhaseOutcome),
    counted: &Counted,
) {
    note_phase_of(
        observation,
        workload,
        (phase, outcome),
        (counted, read_bytes(outcome)),
    );
}

/// The same where the counters are also those of others, who read so many bytes with it.
pub(super) fn note_phase_of(
    observation: &mut Observation,
    workload: &dyn Workload,
    (phase, outcome): (usize, &PhaseOutcome),
    (counted, read_by_all): (&Counted, u64),
) {
    let mut counted = counted.clone();
    observe::asked_by_workload(&mut counted, read_by_all);
    if let Some(stopped) = &outcome.stopped {
        counted.paused_ns = Some(stopped.ns);
        counted.stopped.clone_from(&stopped.who);
    }
    observe::add(&mut observation.counted, &counted);
    observation.elapsed_ns += outcome.elapsed_ns;
    let (name, offered) = (workload.phases()[phase], workload.offered_per_s(phase));
    let observed = phase_observation(name, outcome, offered);
    observation.phases.push(observed);
}

/// A phase as it is recorded.
pub(super) fn phase_observation(
    name: &str,
    outcome: &PhaseOutcome,
    offered: Option<f64>,
) -> PhaseObservation {
    let engine = if outcome.engine_why.is_empty() {
        outcome.engine.to_owned()
    } else {
        format!("{}: {}", outcome.engine, outcome.engine_why)
    };
    PhaseObservation {
        name: name.to_owned(),
        elapsed_ns: outcome.elapsed_ns,
        cpu_user_ns: Some(outcome.cpu_user_ns),
        cpu_system_ns: Some(outcome.cpu_system_ns),
        engine,
        clock: if outcome.clock == "tsc" {
            format!(
                "tsc, {:.0} ppm off the monotonic clock",
                outcome.clock_error * 1e6
            )
        } else {
            outcome.clock.to_owned()
        },
        depth_achieved: outcome.depth_achieved,
        offered_per_s: offered,
        operations: outcome
            .ops
            .iter()
            // An operation that never happened has no latencies.
            .filter(|op| op.count > 0)
            .map(operation)
            .collect(),
        step_ns: outcome.slice_ns,
        series: outcome
            .series
            .iter()
            .map(|slice| (slice.ops, slice.bytes))
            .collect(),
        lateness: outcome.lateness.as_ref().map(timing),
        // Only an open loop has a schedule to fall behind.
        unissued: outcome.lateness.as_ref().map(|_| outcome.unissued),
        threads: outcome
            .threads
            .iter()
            .map(|thread| thread.ops.iter().map(thread_operation).collect())
            .collect(),
        told: outcome.told.clone(),
        work: outcome.work.as_ref().map(|work| Box::new(done(work))),
        replayed: outcome.replayed.as_ref().map(|results| ReplayedCalls {
            calls: results.calls,
            differing: results.differing,
        }),
    }
}

fn done(work: &ProgramWork) -> WorkDone {
    let facts = |of: &Vec<(String, String)>| {
        let facts = of.iter();
        facts.map(|(name, value)| Fact::new(name, value)).collect()
    };
    WorkDone {
        command: work.command.clone(),
        results: work.results.iter().map(facts).collect(),
    }
}

fn thread_operation(op: &OpOutcome) -> ThreadOperation {
    ThreadOperation {
        op: op.op.name().to_owned(),
        count: op.count,
        bytes: op.bytes,
        latency_ns_p50: op.latency.value_at_quantile(0.50),
        latency_ns_p99: op.latency.value_at_quantile(0.99),
        latency_ns_max: op.latency.max(),
    }
}

fn timing(timing: &Timing) -> TimingObservation {
    TimingObservation {
        ns_mean: timing.sum_ns as f64 / timing.histogram.len().max(1) as f64,
        ns_p50: timing.histogram.value_at_quantile(0.50),
        ns_p99: timing.histogram.value_at_quantile(0.99),
        ns_max: timing.histogram.max(),
        histogram: encoded(&timing.histogram),
    }
}

fn operation(op: &OpOutcome) -> OperationObservation {
    let at = |quantile: f64| op.latency.value_at_quantile(quantile);
    OperationObservation {
        op: op.op.name().to_owned(),
        count: op.count,
        bytes: op.bytes,
        latency_ns_min: op.latency.min(),
        latency_ns_mean: op.latency_sum_ns as f64 / op.count.max(1) as f64,
        latency_ns_p50: at(0.50),
        latency_ns_p95: at(0.95),
        latency_ns_p99: at(0.99),
        latency_ns_p999: p999(&op.latency),
        latency_ns_max: op.latency.max(),
        histogram: encoded(&op.latency),
        service: op.service.as_ref().map(timing),
    }
}

/// Bytes the workload read, by whatever call.
pub(super) fn read_bytes(outcome: &PhaseOutcome) -> u64 {
    let reads = |op: &&OpOutcome| matches!(op.op, Op::Read | Op::Open);
    outcome.ops.iter().filter(reads).map(|op| op.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_engine::Control;
    use stackrace_engine::spec::{Content, IoEngine, IoTarget, Pacing, Spec, Stop};

    /// An open loop of two threads, or a closed one of one, that does no I/O.
    fn observed(pacing: Pacing, threads: u32) -> serde_json::Value {
        let target = IoTarget {
            path: "none".into(),
            bytes: 1 << 20,
        };
        let spec = Spec {
            threads,
            pacing,
            content: Content::Zero,
            stop: Stop {
                ops: Some(100),
                time_ns: None,
            },
            engine: IoEngine::Null,
            ..Spec::reads(vec![target], 4096)
        };
        let outcome = stackrace_engine::run(&spec, &Control::default()).unwrap();
        let phase = phase_observation("measure", &outcome, None);
        let json = serde_json::to_value(&phase).unwrap();
        // What is written is what is read.
        let read: PhaseObservation = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
        json
    }

    #[test]
    fn an_open_loop_leaves_its_service_times_and_its_threads() {
        let open = observed(Pacing::Fixed(100_000.0), 2);
        assert!(open["operations"][0]["service"]["ns_p99"].is_u64());
        assert!(open["lateness"]["ns_max"].is_u64());
        assert_eq!(open["unissued"], 0);
        let counts: Vec<_> = (0..2)
            .map(|t| open["threads"][t][0]["count"].clone())
            .collect();
        assert_eq!(counts, [50, 50]);
    }

    /// A closed loop of one thread is recorded as it was before open loops were.
    #[test]
    fn a_closed_loop_has_no_lateness_and_no_service_times() {
        let closed = observed(Pacing::Closed { think_time_ns: 0 }, 1);
        for word in ["lateness", "unissued", "threads"] {
            assert!(closed.get(word).is_none(), "{word}");
        }
        assert!(closed["operations"][0].get("service").is_none());
    }
}
