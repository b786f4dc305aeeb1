//! Tables of what went on inside trials: phases, latencies, the series over time.

use super::table::ExportTable;
use super::trials::{ExportTrial, keys, of};
use stackrace_base::event::{OperationObservation, PhaseObservation, TimingObservation};
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Real, Text, Whole};
use stackrace_results::tables::{ColumnOf, DataTable, columns};

/// One row per trial and phase.
pub(super) const PHASES: ExportTable = ExportTable {
    name: "phases",
    summary: "one row per trial and phase",
    of: phases,
};

/// One row per trial, phase and kind of operation.
pub(super) const LATENCY: ExportTable = ExportTable {
    name: "latency",
    summary: "one row per trial, phase and kind of operation: counts and percentiles",
    of: latency,
};

/// One row per trial, phase and step of time.
pub(super) const SERIES: ExportTable = ExportTable {
    name: "series",
    summary: "one row per trial, phase and step of time",
    of: series,
};

/// A phase of a trial.
#[derive(Clone, Copy)]
struct Phase<'a> {
    trial: ExportTrial<'a>,
    /// Position in the trial, from 0.
    at: usize,
    seen: &'a PhaseObservation,
}

fn phases_of<'a>(trials: &[ExportTrial<'a>]) -> Vec<Phase<'a>> {
    let of_trial = |trial: &ExportTrial<'a>| {
        let trial = *trial;
        let phases = trial.seen.phases.iter().enumerate();
        phases.map(move |(at, seen)| Phase { trial, at, seen })
    };
    trials.iter().flat_map(of_trial).collect()
}

/// A table with the columns of the trial, those of the phase, and its own.
fn table<'a, R>(
    rows: &[R],
    phase: impl Fn(&R) -> Phase<'a>,
    own: &[(&str, ColumnOf<R>)],
) -> DataTable {
    let phases: Vec<Phase<'_>> = rows.iter().map(phase).collect();
    // The key columns are repeated in each row, so that no table has to be joined with another.
    let trials: Vec<ExportTrial<'_>> = phases.iter().map(|phase| phase.trial).collect();
    let mut table = keys(&trials);
    table.extend(columns(
        &phases,
        &[
            ("phase_position", Whole(|p| Some(p.at as u64))),
            ("phase", Text(|p| &p.seen.name)),
        ],
    ));
    table.extend(columns(rows, own));
    DataTable { columns: table }
}

fn phases(records: &[Record]) -> DataTable {
    fn sum(phase: &Phase<'_>, of: fn(&OperationObservation) -> u64) -> Option<u64> {
        // Each kind of operation has counts of its own; a phase of many kinds is their sum.
        Some(phase.seen.operations.iter().map(of).sum())
    }
    let rows = phases_of(&of(records));
    table(
        &rows,
        |phase| *phase,
        &[
            ("elapsed_ns", Whole(|p| Some(p.seen.elapsed_ns))),
            ("operations", Whole(|p| sum(p, |op| op.count))),
            ("bytes", Whole(|p| sum(p, |op| op.bytes))),
            // How it was measured, beside what was.
            ("engine", Text(|p| &p.seen.engine)),
            ("clock", Text(|p| &p.seen.clock)),
            (
                "depth_achieved",
                Real(|p| Some(p.seen.depth_achieved).filter(|depth| *depth > 0.0)),
            ),
            ("offered_per_s", Real(|p| p.seen.offered_per_s)),
            // What the generator owed, and how late it was: no storage causes that.
            ("unissued", Whole(|p| p.seen.unissued)),
            (
                "lateness_ns_p50",
                Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_p50)),
            ),
            (
                "lateness_ns_p99",
                Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_p99)),
            ),
            (
                "lateness_ns_max",
                Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_max)),
            ),
        ],
    )
}

fn latency(records: &[Record]) -> DataTable {
    type Row<'a> = (Phase<'a>, &'a OperationObservation);
    // In a closed loop the latency is the service time, and the column stays empty.
    fn service(row: &Row<'_>, of: fn(&TimingObservation) -> u64) -> Option<u64> {
        row.1.service.as_ref().map(of)
    }
    let rows: Vec<Row<'_>> = phases_of(&of(records))
        .into_iter()
        .flat_map(|phase| phase.seen.operations.iter().map(move |op| (phase, op)))
        .collect();
    table(
        &rows,
        |(phase, _)| *phase,
        &[
            ("operation", Text(|(_, op)| &op.op)),
            ("count", Whole(|(_, op)| Some(op.count))),
            ("bytes", Whole(|(_, op)| Some(op.bytes))),
            ("latency_ns_min", Whole(|(_, op)| Some(op.latency_ns_min))),
            ("latency_ns_mean", Real(|(_, op)| Some(op.latency_ns_mean))),
            ("latency_ns_p50", Whole(|(_, op)| Some(op.latency_ns_p50))),
            ("latency_ns_p95", Whole(|(_, op)| Some(op.latency_ns_p95))),
            ("latency_ns_p99", Whole(|(_, op)| Some(op.latency_ns_p99))),
            ("latency_ns_p999", Whole(|(_, op)| op.latency_ns_p999)),
            ("latency_ns_max", Whole(|(_, op)| Some(op.latency_ns_max))),
            (
                "service_ns_p50",
                Whole(|row| service(row, |timing| timing.ns_p50)),
            ),
            (
                "service_ns_p99",
                Whole(|row| service(row, |timing| timing.ns_p99)),
            ),
            (
                "service_ns_max",
                Whole(|row| service(row, |timing| timing.ns_max)),
            ),
        ],
    )
}

fn series(records: &[Record]) -> DataTable {
    let rows: Vec<(Phase<'_>, usize, (u64, u64))> = phases_of(&of(records))
        .into_iter()
        .flat_map(|phase| {
            let steps = phase.seen.series.iter().enumerate();
            // The position gives the time of the step: all steps of a phase are equally wide.
            steps.map(move |(at, step)| (phase, at, *step))
        })
        .collect();
    table(
        &rows,
        |row| row.0,
        &[
            (
                "offset_ns",
                Whole(|(p, at, _)| Some(p.seen.step_ns.saturating_mul(*at as u64))),
            ),
            // The last step ends with the phase.
            (
                "width_ns",
                Whole(|(p, at, _)| {
                    let offset = p.seen.step_ns.saturating_mul(*at as u64);
                    Some(p.seen.elapsed_ns.saturating_sub(offset).min(p.seen.step_ns))
                }),
            ),
            ("operations", Whole(|(_, _, (ops, _))| Some(*ops))),
            ("bytes", Whole(|(_, _, (_, bytes))| Some(*bytes))),
        ],
    )
}
