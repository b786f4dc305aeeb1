//! Rows of the index: what a line of a log becomes in its tables.
//!
//! Entering the same line twice changes nothing, so that rebuilding while a run goes on is harmless.

use rusqlite::{OptionalExtension, Transaction, params};

use super::super::read::Record;
use super::super::summary::RunSummary;
use stackrace_base::event::{Event, LogLine, Observation, RunStarted};
use stackrace_base::owned::FileState;

/// Every table, in an order in which they can be dropped.
pub(super) const TABLES: [&str; 12] = [
    "listed",
    "metrics",
    "operations",
    "devices",
    "checks",
    "trials",
    "workload_metrics",
    "workloads",
    "levels",
    "configurations",
    "environment",
    "runs",
];

/// Executes a statement, which is parsed once for all lines.
fn put(to: &Transaction<'_>, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
    to.prepare_cached(sql)?.execute(values)
}

pub(super) fn forget(to: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    for table in TABLES {
        put(to, &format!("DELETE FROM {table} WHERE run = ?1"), [run])?;
    }
    Ok(())
}

pub(super) fn note_all(to: &Transaction<'_>, record: &Record) -> rusqlite::Result<()> {
    let mut lines = record.lines.iter();
    lines.try_for_each(|line| note(to, &record.head, line))
}

/// Returns true if the rows of a run can be all that its log gives: a program that was killed, or could
/// not write the index, leaves fewer.
pub(super) fn has_rows(to: &Transaction<'_>, record: &Record) -> rusqlite::Result<bool> {
    let found: Option<(i64, i64, Option<String>)> = to
        .query_row(
            "SELECT (SELECT count(*) FROM trials WHERE run = ?1),
                 (SELECT count(*) FROM checks WHERE run = ?1), ended_at
             FROM runs WHERE run = ?1",
            [&record.head.run],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    let checks = record
        .events()
        .filter(|event| matches!(event, Event::Checked { .. }));
    let ended = record.ended().map(|ended| ended.at.to_owned());
    let counts = (position(record.trials().count()), position(checks.count()));
    Ok(found == Some((counts.0, counts.1, ended)))
}

/// Enters the summary of a run, without its tags: those are not in the log.
pub(super) fn list(
    to: &Transaction<'_>,
    state: &FileState,
    summary: &RunSummary,
) -> rusqlite::Result<()> {
    let untagged = RunSummary {
        tags: Vec::new(),
        ..summary.clone()
    };
    let text = serde_json::to_string(&untagged)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    put(
        to,
        "INSERT OR REPLACE INTO listed VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            summary.run,
            state.bytes.cast_signed(),
            state.modified_ns,
            state.changed_ns,
            state.inode.cast_signed(),
            text
        ],
    )
    .map(drop)
}

pub(super) fn note(
    to: &Transaction<'_>,
    head: &RunStarted,
    line: &LogLine,
) -> rusqlite::Result<()> {
    let run = &head.run;
    match &line.event {
        Event::RunStarted(head) => note_head(to, line, head),
        Event::RunResumed { .. } => put(to,
                // The run goes on, so what was its end is one no more.
                "UPDATE runs SET ended_at = NULL, ended_reason = NULL, ended_detail = NULL WHERE run = ?1",
                params![run],
            )
            .map(drop),
        Event::Trial(trial) => note_trial(to, head, trial),
        // Rounds end in order, so their number is their count.
        Event::RoundFinished { round, .. } => put(to,
                "UPDATE runs SET rounds_complete = max(rounds_complete, ?2) WHERE run = ?1",
                params![run, round],
            )
            .map(drop),
        Event::Checked {
            rounds,
            sentence,
            dropped,
            ..
        } => {
            put(to,
                "INSERT OR REPLACE INTO checks VALUES (?1, ?2, ?3)",
                params![run, rounds, sentence],
            )?;
            for &configuration in dropped {
                put(to,
                    "UPDATE configurations SET dropped_after = coalesce(dropped_after, ?3) WHERE run = ?1 AND configuration = ?2",
                    params![run, position(configuration), rounds],
                )?;
            }
            Ok(())
        }
        Event::RunEnded { reason, detail } => put(to,
                "UPDATE runs SET ended_at = ?2, ended_reason = ?3, ended_detail = ?4 WHERE run = ?1",
                params![run, line.at, reason, detail],
            )
            .map(drop),
        Event::Imported(_)
        | Event::RoundStarted { .. }
        | Event::StackSetUp { .. }
        | Event::StackTornDown { .. }
        | Event::Command(_)
        | Event::Promised(_)
        | Event::Cut(_)
        | Event::Warned { .. } => Ok(()),
    }
}

fn note_head(to: &Transaction<'_>, line: &LogLine, head: &RunStarted) -> rusqlite::Result<()> {
    let run = &head.run;
    let entered = put(
        to,
        "INSERT OR IGNORE INTO runs (run, format, stackrace, title, study_name, study_hash,
             command, seed, comparison, margin, confidence, rounds_max, time_max_ns, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        params![
            run,
            head.format,
            head.stackrace,
            head.title,
            head.study_name,
            head.study_hash,
            head.command.join(" "),
            // As text: a seed may exceed what an INTEGER of SQLite holds.
            head.seed.to_string(),
            head.decide.comparison,
            head.decide.margin,
            head.decide.confidence,
            head.decide.rounds_max,
            whole(head.decide.time_max_ns),
            line.at
        ],
    )?;
    // The run is there already, with its configurations; a rebuild meets it again.
    if entered == 0 {
        return Ok(());
    }
    for (at, fact) in head.environment.iter().enumerate() {
        put(
            to,
            "INSERT INTO environment VALUES (?1, ?2, ?3, ?4)",
            params![run, position(at), fact.name, fact.value],
        )?;
    }
    for (at, configuration) in head.configurations.iter().enumerate() {
        put(
            to,
            "INSERT INTO configurations VALUES (?1, ?2, ?3, NULL)",
            params![run, position(at), configuration.name],
        )?;
        for (factor, level) in head.factors.iter().zip(&configuration.levels) {
            put(
                to,
                // A study may give two factors one name only by hand-made logs: the last one counts
                // then.
                "INSERT OR REPLACE INTO levels VALUES (?1, ?2, ?3, ?4)",
                params![run, position(at), factor, level],
            )?;
        }
    }
    note_workloads(to, head)
}

fn note_workloads(to: &Transaction<'_>, head: &RunStarted) -> rusqlite::Result<()> {
    let run = &head.run;
    for (at, workload) in head.workloads.iter().enumerate() {
        put(
            to,
            "INSERT INTO workloads VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                run,
                position(at),
                workload.name,
                workload.kind,
                workload.summary,
                workload.weight
            ],
        )?;
        for (metric, head) in workload.metrics.iter().enumerate() {
            put(
                to,
                "INSERT INTO workload_metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    run,
                    position(at),
                    position(metric),
                    head.name,
                    head.unit,
                    head.better.word()
                ],
            )?;
        }
    }
    Ok(())
}

fn note_trial(
    to: &Transaction<'_>,
    head: &RunStarted,
    trial: &Observation,
) -> rusqlite::Result<()> {
    let run = &head.run;
    let number: i64 = to
        .prepare_cached(
            // Trials have no number in the log. Their position follows from the order of the lines.
            "SELECT coalesce(max(trial), 0) + 1 FROM trials WHERE run = ?1",
        )?
        .query_row(params![run], |row| row.get(0))?;
    // The same line twice: its round, position and workload are taken, and so are its rows.
    if insert_trial(to, run, number, trial)? == 0 {
        return Ok(());
    }
    // Most rows are of this table: their words come from the head, not from another table.
    let metrics = head.workloads.get(trial.workload);
    let metrics = metrics.map_or(&[][..], |workload| &workload.metrics);
    for (at, (value, metric)) in trial.metrics.iter().zip(metrics).enumerate() {
        put(
            to,
            "INSERT INTO metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![run, number, position(at), metric.name, metric.unit, value],
        )?;
    }
    note_operations(to, (run, number), trial)?;
    for (at, device) in trial.counted.devices.iter().enumerate() {
        put(
            to,
            "INSERT INTO devices VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                run,
                number,
                position(at),
                device.device,
                whole(device.reads),
                whole(device.read_bytes),
                whole(device.writes),
                whole(device.written_bytes),
                device.flushes.map(whole),
                whole(device.busy_ns),
                whole(device.weighted_ns)
            ],
        )?;
    }
    Ok(())
}

fn note_operations(
    to: &Transaction<'_>,
    (run, number): (&str, i64),
    trial: &Observation,
) -> rusqlite::Result<()> {
    for (phase_at, phase) in trial.phases.iter().enumerate() {
        for (at, op) in phase.operations.iter().enumerate() {
            put(
                to,
                "INSERT INTO operations VALUES
                     (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
                params![
                    run,
                    number,
                    position(phase_at),
                    position(at),
                    phase.name,
                    op.op,
                    whole(op.count),
                    whole(op.bytes),
                    whole(op.latency_ns_min),
                    op.latency_ns_mean,
                    whole(op.latency_ns_p50),
                    whole(op.latency_ns_p95),
                    whole(op.latency_ns_p99),
                    op.latency_ns_p999.map(whole),
                    whole(op.latency_ns_max)
                ],
            )?;
        }
    }
    Ok(())
}

fn insert_trial(
    to: &Transaction<'_>,
    run: &str,
    number: i64,
    trial: &Observation,
) -> rusqlite::Result<usize> {
    let counted = &trial.counted;
    put(
        to,
        "INSERT OR IGNORE INTO trials VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
              ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)",
        params![
            run,
            number,
            trial.round,
            position(trial.position),
            position(trial.configuration),
            position(trial.workload),
            trial.ended.word(),
            trial.ended.error(),
            trial.started_at,
            whole(trial.prepare_ns),
            whole(trial.settle_ns),
            whole(trial.elapsed_ns),
            trial.settled.caches,
            trial.settled.remounted,
            trial.settled.resident_bytes.map(whole),
            trial.settled.prepared_bytes.map(whole),
            whole(counted.cpu_user_ns),
            whole(counted.cpu_system_ns),
            whole(counted.cpu_machine_busy_ns),
            whole(counted.cpu_steal_ns),
            counted.cpus,
            whole(counted.asked_read_bytes),
            whole(counted.fetched_bytes),
            whole(counted.sent_bytes),
            counted.cache_hit_bytes.map(whole),
            counted.pressure_cpu_ns.map(whole),
            counted.pressure_io_ns.map(whole),
            counted.pressure_memory_ns.map(whole),
            trial.notes.join("\n")
        ],
    )
}

/// SQLite's whole numbers are signed; what does not fit is shown as the largest.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn position(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
