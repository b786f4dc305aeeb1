//! Every figure for a spreadsheet: one row per trial and metric, in base units.
//!
//! Missing is empty, never 0. Amounts are bytes, times seconds. A column `level_<factor>` per factor
//! follows the configuration's name. What exported tables have too (`docs/formats/export.md`) is called
//! as there; what they have in nanoseconds (`_ns`) is in seconds (`_s`).

use super::audited;
use super::form::{ReportForm, ReportOptions};
use stackrace_base::event::{
    ConfigurationHead, DeviceCounted, MetricHead, Observation, WorkloadHead,
};
use stackrace_judge::audit::{LimitedBy, TrialAudit};
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Made, Real, Text, Whole};
use stackrace_results::tables::{Column, ColumnValues, DataTable, TableForm, columns};

/// The form for spreadsheets.
pub(super) const CSV: ReportForm = ReportForm {
    name: "csv",
    summary: "one row per trial and metric",
    extension: "csv",
    render,
};

fn render(record: &Record, _: &Verdict, _: &ReportOptions) -> Vec<u8> {
    // Writing to memory cannot fail, and every row has a cell for every column.
    TableForm::Csv.render(&table(record)).unwrap_or_default()
}

/// One metric of one trial.
struct CsvRow<'a> {
    record: &'a Record,
    trial: &'a Observation,
    configuration: &'a ConfigurationHead,
    workload: &'a WorkloadHead,
    metric: &'a MetricHead,
    value: Option<f64>,
    audit: Option<&'a TrialAudit>,
    /// Another tool measured it: whatever only stackrace counts is missing.
    imported: bool,
}

impl CsvRow<'_> {
    /// A figure that only stackrace itself can have counted.
    fn own<T>(&self, value: T) -> Option<T> {
        (!self.imported).then_some(value)
    }

    /// Nanoseconds as seconds.
    fn seconds(&self, ns: u64) -> Option<f64> {
        self.own(ns as f64 / 1e9)
    }

    /// The first device is the one the file system lies on; those below it would count the same
    /// bytes again.
    fn device(&self) -> Option<&DeviceCounted> {
        self.own(self.trial.counted.devices.first()?)
    }
}

fn table(record: &Record) -> DataTable {
    let audit = audited::audit(record);
    let head = &record.head;
    // Once for each trial and not for each row: an audit goes through all of the trial's counters.
    let audits: Vec<_> = record
        .trials()
        .map(|trial| (trial, audit.trial(head, trial)))
        .collect();
    let mut rows: Vec<CsvRow<'_>> = Vec::new();
    for (trial, audit) in &audits {
        // A log is read from a file: an index in it may point nowhere.
        let (Some(configuration), Some(workload)) = (
            head.configurations.get(trial.configuration),
            head.workloads.get(trial.workload),
        ) else {
            continue;
        };
        let metrics = workload.metrics.iter().enumerate();
        rows.extend(metrics.map(|(at, metric)| CsvRow {
            record,
            trial,
            configuration,
            workload,
            metric,
            value: trial.metrics.get(at).copied().flatten(),
            audit: audit.as_ref(),
            imported: record.imported(),
        }));
    }
    let mut all = names(&rows);
    all.extend(head.factors.iter().enumerate().map(|(at, factor)| {
        let level = |row: &CsvRow<'_>| row.configuration.levels.get(at).cloned();
        Column {
            name: format!("level_{factor}"),
            values: ColumnValues::Text(rows.iter().map(level).collect()),
        }
    }));
    all.extend(figures(&rows));
    // Counters of an imported trial were never taken: empty, since 0 would be a figure.
    all.extend(counted(&rows));
    all.extend(observed(&rows));
    DataTable { columns: all }
}

/// Columns before the levels.
fn names(rows: &[CsvRow<'_>]) -> Vec<Column> {
    columns(
        rows,
        &[
            ("run", Text(|r| &r.record.head.run)),
            ("round", Whole(|r| Some(r.trial.round.into()))),
            ("position", Whole(|r| Some(r.trial.position as u64))),
            ("configuration", Text(|r| &r.configuration.name)),
        ],
    )
}

/// Columns of the figures.
fn figures(rows: &[CsvRow<'_>]) -> Vec<Column> {
    columns(
        rows,
        &[
            ("workload", Text(|r| &r.workload.name)),
            ("metric", Text(|r| &r.metric.name)),
            ("unit", Text(|r| &r.metric.unit)),
            ("better", Text(|r| r.metric.better.word())),
            ("value", Real(|r| r.value)),
            ("ended", Text(|r| r.trial.ended.word())),
            ("error", Text(|r| r.trial.ended.error().unwrap_or_default())),
            ("started_at", Text(|r| &r.trial.started_at)),
        ],
    )
}

/// Times and processor time, which only stackrace counts.
fn counted(rows: &[CsvRow<'_>]) -> Vec<Column> {
    columns(
        rows,
        &[
            ("elapsed_s", Real(|r| r.seconds(r.trial.elapsed_ns))),
            (
                "slice_s",
                Real(|r| r.seconds(r.trial.sliced.as_ref()?.slice_ns)),
            ),
            ("slices", Whole(|r| r.own(r.trial.sliced.as_ref()?.slices))),
            ("prepare_s", Real(|r| r.seconds(r.trial.prepare_ns))),
            ("settle_s", Real(|r| r.seconds(r.trial.settle_ns))),
            (
                "caches",
                Text(|r| r.own(&*r.trial.settled.caches).unwrap_or_default()),
            ),
            (
                "resident_bytes",
                Whole(|r| r.own(r.trial.settled.resident_bytes?)),
            ),
            (
                "cpu_user_s",
                Real(|r| r.seconds(r.trial.counted.cpu_user_ns)),
            ),
            (
                "cpu_system_s",
                Real(|r| r.seconds(r.trial.counted.cpu_system_ns)),
            ),
            (
                "cpu_machine_busy_s",
                Real(|r| r.seconds(r.trial.counted.cpu_machine_busy_ns)),
            ),
            (
                "cpu_steal_s",
                Real(|r| r.seconds(r.trial.counted.cpu_steal_ns)),
            ),
        ],
    )
}

/// Columns of the device's and the system's work during a trial, and of the audit's words on it.
fn observed(rows: &[CsvRow<'_>]) -> Vec<Column> {
    columns(
        rows,
        &[
            (
                "device",
                Text(|r| r.device().map_or("", |device| &device.device)),
            ),
            ("device_read_bytes", Whole(|r| Some(r.device()?.read_bytes))),
            (
                "device_written_bytes",
                Whole(|r| Some(r.device()?.written_bytes)),
            ),
            ("device_read_requests", Whole(|r| Some(r.device()?.reads))),
            ("device_write_requests", Whole(|r| Some(r.device()?.writes))),
            (
                "cache_hit_bytes",
                Whole(|r| r.own(r.trial.counted.cache_hit_bytes?)),
            ),
            (
                "pressure_cpu_s",
                Real(|r| r.seconds(r.trial.counted.pressure_cpu_ns?)),
            ),
            (
                "pressure_io_s",
                Real(|r| r.seconds(r.trial.counted.pressure_io_ns?)),
            ),
            (
                "pressure_memory_s",
                Real(|r| r.seconds(r.trial.counted.pressure_memory_ns?)),
            ),
            (
                "limited_by",
                Text(|r| {
                    r.audit
                        .and_then(|audit| audit.limited_by)
                        .map_or("", LimitedBy::words)
                }),
            ),
            ("remarks", Made(remarks)),
            ("notes", Made(|r| r.trial.notes.join("; "))),
        ],
    )
}

/// `page cache: not as asked; heat: note`.
fn remarks(row: &CsvRow<'_>) -> String {
    let remarks = row.audit.iter().flat_map(|audit| &audit.remarks);
    let words = remarks.map(|(check, grade)| format!("{check}: {}", grade.word()));
    words.collect::<Vec<_>>().join("; ")
}
