//! Tables of trials: what each measured, what else is known of it, its block devices.

use super::table::ExportTable;
use stackrace_base::event::{ConfigurationHead, DeviceCounted, Observation, WorkloadHead};
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Flag, Made, Real, Text, Time, Whole};
use stackrace_results::tables::{Column, ColumnValues, DataTable, columns};

/// One row per trial and metric.
pub(super) const OBSERVATIONS: ExportTable = ExportTable {
    name: "observations",
    summary: "one row per trial and metric of its workload",
    of: observations,
};

/// One row per trial.
pub(super) const TRIALS: ExportTable = ExportTable {
    name: "trials",
    summary: "one row per trial: times, caches, CPU, pressure",
    of: trials,
};

/// One row per trial and device.
pub(super) const DEVICES: ExportTable = ExportTable {
    name: "devices",
    summary: "one row per trial and block device under its stack",
    of: devices,
};

/// A trial with what its indices stand for.
#[derive(Clone, Copy)]
pub(super) struct ExportTrial<'a> {
    record: &'a Record,
    /// Position in the log, from 0.
    at: usize,
    /// True if this program measured it: what another tool measured has only its figures, and the
    /// counters beside them mean nothing.
    own: bool,
    pub(super) seen: &'a Observation,
    configuration: &'a ConfigurationHead,
    workload: &'a WorkloadHead,
}

impl ExportTrial<'_> {
    /// A figure that only stackrace itself can have counted.
    pub(super) fn own<T>(&self, value: T) -> Option<T> {
        self.own.then_some(value)
    }
}

/// The trials of all runs, in order.
pub(super) fn of(records: &[Record]) -> Vec<ExportTrial<'_>> {
    let mut trials = Vec::new();
    for record in records {
        let own = !record.imported();
        for (at, seen) in record.trials().enumerate() {
            let configuration = record.head.configurations.get(seen.configuration);
            let workload = record.head.workloads.get(seen.workload);
            // A damaged log may name what its head lacks. A row without names would be of no use.
            if let (Some(configuration), Some(workload)) = (configuration, workload) {
                trials.push(ExportTrial {
                    record,
                    at,
                    own,
                    seen,
                    configuration,
                    workload,
                });
            }
        }
    }
    trials
}

/// The columns that say which trial a row is of: the same in every table of trials, so that none
/// has to be joined with another. A factor has a column of its own, `level_` and its name.
pub(super) fn keys(trials: &[ExportTrial<'_>]) -> Vec<Column> {
    let mut before = columns(
        trials,
        &[
            ("run", Text(|t| &t.record.head.run)),
            ("study", Text(|t| &t.record.head.study_name)),
            ("title", Text(|t| &t.record.head.title)),
            ("trial", Whole(|t| Some(t.at as u64))),
            ("round", Whole(|t| Some(t.seen.round.into()))),
            ("position", Whole(|t| Some(t.seen.position as u64))),
            ("configuration", Text(|t| &t.configuration.name)),
        ],
    );
    let after = columns(
        trials,
        &[
            ("workload", Text(|t| &t.workload.name)),
            ("kind", Text(|t| &t.workload.kind)),
            ("ended", Text(|t| t.seen.ended.word())),
        ],
    );
    // Levels stand with the other keys, before what was measured.
    before.extend(levels(trials));
    before.extend(after);
    before
}

/// A column per factor of any of the runs, in the order first seen.
fn levels(trials: &[ExportTrial<'_>]) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for trial in trials {
        for name in &trial.record.head.factors {
            // Runs of several studies share a table: a factor that both have shares a column.
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let level = |trial: &ExportTrial<'_>, name: &str| {
        let mut factors = trial.record.head.factors.iter();
        let at = factors.position(|factor| factor == name)?;
        let level = trial.configuration.levels.get(at)?;
        // A configuration that a factor does not touch has an empty level, which is a missing one.
        (!level.is_empty()).then(|| level.clone())
    };
    names
        .into_iter()
        .map(|name| Column {
            name: format!("level_{name}"),
            values: ColumnValues::Text(trials.iter().map(|trial| level(trial, name)).collect()),
        })
        .collect()
}

fn observations(records: &[Record]) -> DataTable {
    let trials = of(records);
    let rows: Vec<(ExportTrial<'_>, usize)> = trials
        .iter()
        .flat_map(|trial| (0..trial.workload.metrics.len()).map(|metric| (*trial, metric)))
        .collect();
    let keyed: Vec<ExportTrial<'_>> = rows.iter().map(|(trial, _)| *trial).collect();
    let mut columns = keys(&keyed);
    columns.extend(stackrace_results::tables::columns(
        &rows,
        &[
            ("metric", Text(|(t, m)| &t.workload.metrics[*m].name)),
            ("unit", Text(|(t, m)| &t.workload.metrics[*m].unit)),
            (
                "better",
                Text(|(t, m)| t.workload.metrics[*m].better.word()),
            ),
            // The first metric is the one a verdict rests on.
            ("primary", Flag(|(_, m)| Some(*m == 0))),
            (
                "value",
                Real(|(t, m)| t.seen.metrics.get(*m).copied().flatten()),
            ),
            ("started_at", Time(|(t, _)| &t.seen.started_at)),
            ("elapsed_ns", Whole(|(t, _)| t.own(t.seen.elapsed_ns))),
        ],
    ));
    DataTable { columns }
}

fn trials(records: &[Record]) -> DataTable {
    let trials = of(records);
    let mut table = keys(&trials);
    table.extend(columns(
        &trials,
        &[
            ("error", Text(|t| t.seen.ended.error().unwrap_or_default())),
            ("started_at", Time(|t| &t.seen.started_at)),
            ("elapsed_ns", Whole(|t| t.own(t.seen.elapsed_ns))),
            (
                "slice_ns",
                Whole(|t| Some(t.seen.sliced.as_ref()?.slice_ns)),
            ),
            ("slices", Whole(|t| Some(t.seen.sliced.as_ref()?.slices))),
            ("prepare_ns", Whole(|t| t.own(t.seen.prepare_ns))),
            ("settle_ns", Whole(|t| t.own(t.seen.settle_ns))),
            (
                "precondition_ns",
                Whole(|t| Some(t.seen.preconditioned.as_ref()?.elapsed_ns)),
            ),
            (
                "precondition_passes",
                Whole(|t| Some(t.seen.preconditioned.as_ref()?.passes.len() as u64)),
            ),
            (
                "precondition_steady",
                Flag(|t| Some(t.seen.preconditioned.as_ref()?.steady)),
            ),
            ("caches", Text(|t| &t.seen.settled.caches)),
            ("remounted", Flag(|t| t.own(t.seen.settled.remounted))),
            ("resident_bytes", Whole(|t| t.seen.settled.resident_bytes)),
            ("prepared_bytes", Whole(|t| t.seen.settled.prepared_bytes)),
        ],
    ));
    table.extend(counted(&trials));
    table.extend(columns(
        &trials,
        &[("notes", Made(|t| t.seen.notes.join("; ")))],
    ));
    DataTable { columns: table }
}

/// Counters of the system meanwhile.
fn counted(trials: &[ExportTrial<'_>]) -> Vec<Column> {
    columns(
        trials,
        &[
            ("cpu_user_ns", Whole(|t| t.own(t.seen.counted.cpu_user_ns))),
            (
                "cpu_system_ns",
                Whole(|t| t.own(t.seen.counted.cpu_system_ns)),
            ),
            (
                "cpu_machine_busy_ns",
                Whole(|t| t.own(t.seen.counted.cpu_machine_busy_ns)),
            ),
            (
                "cpu_steal_ns",
                Whole(|t| t.own(t.seen.counted.cpu_steal_ns)),
            ),
            ("cpus", Whole(|t| t.own(t.seen.counted.cpus.into()))),
            (
                "asked_read_bytes",
                Whole(|t| t.own(t.seen.counted.asked_read_bytes)),
            ),
            (
                "fetched_bytes",
                Whole(|t| t.own(t.seen.counted.fetched_bytes)),
            ),
            ("sent_bytes", Whole(|t| t.own(t.seen.counted.sent_bytes))),
            ("cache_hit_bytes", Whole(|t| t.seen.counted.cache_hit_bytes)),
            ("pressure_cpu_ns", Whole(|t| t.seen.counted.pressure_cpu_ns)),
            ("pressure_io_ns", Whole(|t| t.seen.counted.pressure_io_ns)),
            (
                "pressure_memory_ns",
                Whole(|t| t.seen.counted.pressure_memory_ns),
            ),
        ],
    )
}

fn devices(records: &[Record]) -> DataTable {
    let trials = of(records);
    let rows: Vec<(ExportTrial<'_>, usize, &DeviceCounted)> = trials
        .iter()
        .flat_map(|trial| {
            let devices = trial.seen.counted.devices.iter().enumerate();
            devices.map(|(at, device)| (*trial, at, device))
        })
        .collect();
    let keyed: Vec<ExportTrial<'_>> = rows.iter().map(|row| row.0).collect();
    let mut table = keys(&keyed);
    table.extend(columns(
        &rows,
        &[
            // Devices are listed from the bottom of the stack up.
            ("height", Whole(|(_, at, _)| Some(*at as u64))),
            ("device", Text(|(_, _, device)| &device.device)),
            ("reads", Whole(|(_, _, device)| Some(device.reads))),
            (
                "read_bytes",
                Whole(|(_, _, device)| Some(device.read_bytes)),
            ),
            ("writes", Whole(|(_, _, device)| Some(device.writes))),
            (
                "written_bytes",
                Whole(|(_, _, device)| Some(device.written_bytes)),
            ),
            ("flushes", Whole(|(_, _, device)| device.flushes)),
            ("busy_ns", Whole(|(_, _, device)| Some(device.busy_ns))),
            (
                "weighted_ns",
                Whole(|(_, _, device)| Some(device.weighted_ns)),
            ),
        ],
    ));
    DataTable { columns: table }
}
