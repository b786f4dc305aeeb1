//! Tables of what went on inside trials: phases, latencies, the series over time.

use super::Kind;
use super::column::{Get, Table, columns};
use super::trials::{Trial, keys, of};
use crate::event::{OperationObservation, PhaseObservation, TimingObservation};
use crate::record::Record;

/// One row per trial and phase.
pub(super) const PHASES: Kind = Kind {
    name: "phases",
    summary: "one row per trial and phase",
    of: phases,
};

/// One row per trial, phase and kind of operation.
pub(super) const LATENCY: Kind = Kind {
    name: "latency",
    summary: "one row per trial, phase and kind of operation: counts and percentiles",
    of: latency,
};

/// One row per trial, phase and slice of time.
pub(super) const SERIES: Kind = Kind {
    name: "series",
    summary: "one row per trial, phase and slice of time",
    of: series,
};

/// A phase of a trial.
#[derive(Clone, Copy)]
struct Phase<'a> {
    trial: Trial<'a>,
    /// Position in the trial, from 0.
    at: usize,
    seen: &'a PhaseObservation,
}

fn phases_of<'a>(trials: &[Trial<'a>]) -> Vec<Phase<'a>> {
    let of_trial = |trial: &Trial<'a>| {
        let trial = *trial;
        let phases = trial.seen.phases.iter().enumerate();
        phases.map(move |(at, seen)| Phase { trial, at, seen })
    };
    trials.iter().flat_map(of_trial).collect()
}

/// A table with the columns of the trial, those of the phase, and its own.
fn table<'a, R>(rows: &[R], phase: impl Fn(&R) -> Phase<'a>, own: &[(&str, Get<R>)]) -> Table {
    let phases: Vec<Phase<'_>> = rows.iter().map(phase).collect();
    let trials: Vec<Trial<'_>> = phases.iter().map(|phase| phase.trial).collect();
    let mut table = keys(&trials);
    table.extend(columns(
        &phases,
        &[
            ("phase_position", Get::Whole(|p| Some(p.at as u64))),
            ("phase", Get::Text(|p| &p.seen.name)),
        ],
    ));
    table.extend(columns(rows, own));
    Table { columns: table }
}

fn phases(records: &[Record]) -> Table {
    fn sum(phase: &Phase<'_>, of: fn(&OperationObservation) -> u64) -> Option<u64> {
        Some(phase.seen.operations.iter().map(of).sum())
    }
    let rows = phases_of(&of(records));
    table(
        &rows,
        |phase| *phase,
        &[
            ("elapsed_ns", Get::Whole(|p| Some(p.seen.elapsed_ns))),
            ("operations", Get::Whole(|p| sum(p, |op| op.count))),
            ("bytes", Get::Whole(|p| sum(p, |op| op.bytes))),
            ("engine", Get::Text(|p| &p.seen.engine)),
            ("clock", Get::Text(|p| &p.seen.clock)),
            (
                "depth_achieved",
                Get::Real(|p| Some(p.seen.depth_achieved).filter(|depth| *depth > 0.0)),
            ),
            ("offered_per_s", Get::Real(|p| p.seen.offered_per_s)),
            ("unissued", Get::Whole(|p| p.seen.unissued)),
            (
                "lateness_ns_p50",
                Get::Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_p50)),
            ),
            (
                "lateness_ns_p99",
                Get::Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_p99)),
            ),
            (
                "lateness_ns_max",
                Get::Whole(|p| p.seen.lateness.as_ref().map(|late| late.ns_max)),
            ),
        ],
    )
}

fn latency(records: &[Record]) -> Table {
    type Row<'a> = (Phase<'a>, &'a OperationObservation);
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
            ("operation", Get::Text(|(_, op)| &op.op)),
            ("count", Get::Whole(|(_, op)| Some(op.count))),
            ("bytes", Get::Whole(|(_, op)| Some(op.bytes))),
            (
                "latency_ns_min",
                Get::Whole(|(_, op)| Some(op.latency_ns_min)),
            ),
            (
                "latency_ns_mean",
                Get::Real(|(_, op)| Some(op.latency_ns_mean)),
            ),
            (
                "latency_ns_p50",
                Get::Whole(|(_, op)| Some(op.latency_ns_p50)),
            ),
            (
                "latency_ns_p95",
                Get::Whole(|(_, op)| Some(op.latency_ns_p95)),
            ),
            (
                "latency_ns_p99",
                Get::Whole(|(_, op)| Some(op.latency_ns_p99)),
            ),
            ("latency_ns_p999", Get::Whole(|(_, op)| op.latency_ns_p999)),
            (
                "latency_ns_max",
                Get::Whole(|(_, op)| Some(op.latency_ns_max)),
            ),
            (
                "service_ns_p50",
                Get::Whole(|row| service(row, |timing| timing.ns_p50)),
            ),
            (
                "service_ns_p99",
                Get::Whole(|row| service(row, |timing| timing.ns_p99)),
            ),
            (
                "service_ns_max",
                Get::Whole(|row| service(row, |timing| timing.ns_max)),
            ),
        ],
    )
}

fn series(records: &[Record]) -> Table {
    let rows: Vec<(Phase<'_>, usize, (u64, u64))> = phases_of(&of(records))
        .into_iter()
        .flat_map(|phase| {
            let slices = phase.seen.series.iter().enumerate();
            slices.map(move |(at, slice)| (phase, at, *slice))
        })
        .collect();
    table(
        &rows,
        |row| row.0,
        &[
            (
                "offset_ns",
                Get::Whole(|(p, at, _)| Some(p.seen.slice_ns.saturating_mul(*at as u64))),
            ),
            // The last slice ends with the phase.
            (
                "width_ns",
                Get::Whole(|(p, at, _)| {
                    let offset = p.seen.slice_ns.saturating_mul(*at as u64);
                    Some(
                        p.seen
                            .elapsed_ns
                            .saturating_sub(offset)
                            .min(p.seen.slice_ns),
                    )
                }),
            ),
            ("operations", Get::Whole(|(_, _, (ops, _))| Some(*ops))),
            ("bytes", Get::Whole(|(_, _, (_, bytes))| Some(*bytes))),
        ],
    )
}
