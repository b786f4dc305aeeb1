//! Every figure for a spreadsheet: one row per trial and metric, in base units.
//!
//! RFC 4180 with line breaks of one character. Missing is empty, never 0. Amounts are bytes, times
//! seconds. A column `level:<factor>` per factor follows the configuration's name.

use super::{Options, Report, audited};
use crate::audit::{Audit, LimitedBy, TrialAudit};
use crate::event::{Ended, Observation};
use crate::record::Record;
use crate::verdict::Verdict;

/// The form for spreadsheets.
pub(super) struct Csv;

/// Columns before the levels.
const BEFORE: [&str; 5] = [
    "run",
    "round",
    "position",
    "configuration",
    "configuration_name",
];
/// Columns after the levels.
const AFTER: [&str; 30] = [
    "workload",
    "workload_name",
    "metric",
    "unit",
    "better",
    "value",
    "ended",
    "error",
    "started_at",
    "elapsed_s",
    "prepare_s",
    "settle_s",
    "caches",
    "resident_bytes",
    "cpu_user_s",
    "cpu_system_s",
    "cpu_machine_busy_s",
    "cpu_steal_s",
    "device",
    "device_read_bytes",
    "device_written_bytes",
    "device_read_requests",
    "device_write_requests",
    "cache_hit_bytes",
    "pressure_cpu_s",
    "pressure_io_s",
    "pressure_memory_s",
    "limited_by",
    "remarks",
    "notes",
];

impl Report for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn summary(&self) -> &'static str {
        "one row per trial and metric"
    }

    fn ending(&self) -> &'static str {
        "csv"
    }

    fn render(&self, record: &Record, _: &Verdict, _: &Options) -> Vec<u8> {
        let mut text = String::new();
        let levels = record
            .head
            .factors
            .iter()
            .map(|factor| format!("level:{factor}"));
        line(
            &mut text,
            BEFORE
                .iter()
                .map(|&name| name.to_owned())
                .chain(levels)
                .chain(AFTER.iter().map(|&name| name.to_owned())),
        );
        let audit = audited::audit(record);
        for trial in record.trials() {
            rows(&mut text, record, &audit, trial);
        }
        text.into_bytes()
    }
}

fn rows(text: &mut String, record: &Record, audit: &Audit, trial: &Observation) {
    let head = &record.head;
    let (Some(configuration), Some(workload)) = (
        head.configurations.get(trial.configuration),
        head.workloads.get(trial.workload),
    ) else {
        return;
    };
    let levels =
        (0..head.factors.len()).map(|at| configuration.levels.get(at).cloned().unwrap_or_default());
    let before: Vec<String> = [
        head.run.clone(),
        trial.round.to_string(),
        trial.position.to_string(),
        trial.configuration.to_string(),
        configuration.name.clone(),
    ]
    .into_iter()
    .chain(levels)
    .chain([trial.workload.to_string(), workload.name.clone()])
    .collect();
    let mut after = after_value(trial, audit.trial(head, trial));
    if record.imported() {
        // Between the start and the notes there is only what stackrace would have counted itself.
        let counted = 3..after.len() - 1;
        after[counted].fill(String::new());
    }
    for (at, metric) in workload.metrics.iter().enumerate() {
        let value = trial.metrics.get(at).copied().flatten();
        let better = match metric.better {
            crate::event::Better::Higher => "higher",
            crate::event::Better::Lower => "lower",
        };
        let figures = [
            metric.name.clone(),
            metric.unit.clone(),
            better.to_owned(),
            optional(value),
        ];
        line(
            text,
            before
                .iter()
                .cloned()
                .chain(figures)
                .chain(after.iter().cloned()),
        );
    }
}

/// What does not depend on the metric.
fn after_value(trial: &Observation, audit: Option<TrialAudit>) -> Vec<String> {
    let (ended, error) = match &trial.ended {
        Ended::Complete => ("complete", ""),
        Ended::Interrupted => ("interrupted", ""),
        Ended::Failed { error } => ("failed", error.as_str()),
    };
    let counted = &trial.counted;
    // The first device is the one the file system lies on; those below it would count the same
    // bytes again.
    let device = counted.devices.first();
    let limited_by = audit.as_ref().and_then(|audit| audit.limited_by);
    let limited_by = limited_by.map_or("", LimitedBy::words);
    let remarks = audit.iter().flat_map(|audit| &audit.remarks);
    let remarks: Vec<String> = remarks
        .map(|(check, grade)| format!("{check}: {}", grade.word()))
        .collect();
    vec![
        ended.to_owned(),
        error.to_owned(),
        trial.started_at.clone(),
        seconds(trial.elapsed_ns),
        seconds(trial.prepare_ns),
        seconds(trial.settle_ns),
        trial.settled.caches.clone(),
        optional(trial.settled.resident_bytes),
        seconds(counted.cpu_user_ns),
        seconds(counted.cpu_system_ns),
        seconds(counted.cpu_machine_busy_ns),
        seconds(counted.cpu_steal_ns),
        device.map_or(String::new(), |device| device.device.clone()),
        optional(device.map(|device| device.read_bytes)),
        optional(device.map(|device| device.written_bytes)),
        optional(device.map(|device| device.reads)),
        optional(device.map(|device| device.writes)),
        optional(counted.cache_hit_bytes),
        counted.pressure_cpu_ns.map_or(String::new(), seconds),
        counted.pressure_io_ns.map_or(String::new(), seconds),
        counted.pressure_memory_ns.map_or(String::new(), seconds),
        limited_by.to_owned(),
        remarks.join("; "),
        trial.notes.join("; "),
    ]
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Nanoseconds as seconds, exact.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// One row.
pub(super) fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&cell);
        }
    }
    text.push('\n');
}
