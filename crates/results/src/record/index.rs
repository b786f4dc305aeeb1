//! The SQLite index: derived from the logs, for people who query.
//!
//! It is written after a line is in the log, never before, and the run reads nothing back from it.
//! So a run goes on if its index fails. Noting the same line twice changes nothing, so that
//! rebuilding while a run goes on is harmless. WAL lets any SQLite client read meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, params};

use super::error::RecordError;
use super::read::Record;
use stackrace_base::event::{Event, LogLine, Observation, RunStarted};
use stackrace_base::owned::OwnDir;

/// Version of the schema, `PRAGMA user_version`. See `docs/formats/index.md`.
pub(super) const SCHEMA: i32 = 2;
/// Name of the index in the store's directory.
pub(super) const INDEX: &str = "stackrace.db";
/// Longest wait for another writer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Every table, in an order in which they can be dropped.
const TABLES: [&str; 11] = [
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

/// The index of a store, open for writing.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
}

impl Index {
    /// Opens the index below `store`. Returns `None` if it is missing, damaged or of an older
    /// schema and must be rebuilt.
    pub(super) fn open(store: &Path) -> Result<Option<Self>, RecordError> {
        let store = OwnDir::open(store)?;
        // None: the caller makes one of all logs, where an empty one would lack the older runs.
        if !store.has(INDEX) {
            return Ok(None);
        }
        let path = own(&store)?;
        // A damaged index never keeps a run from being recorded: the log is what counts.
        let Ok(connection) = connect(&path) else {
            return Ok(None);
        };
        match version(&connection) {
            Ok(SCHEMA) => Ok(Some(Self { connection })),
            // To write into tables of an unknown layout could destroy what the newer version keeps
            // there.
            Ok(newer) if newer > SCHEMA => Err(RecordError::Index {
                tried: "use",
                why: format!(
                    "its schema is version {newer}, written by a newer stackrace; this one reads {SCHEMA}"
                ),
            }),
            Err(error) if busy(&error) => Err(failed("open", &error)),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Makes the index below `store` anew from records: in place, in one transaction, where the
    /// file is sound (readers see the old content, then the new), else in a new file.
    pub(super) fn rebuild<R: Iterator<Item = Record>>(
        store: &Path,
        records: impl Fn() -> R,
    ) -> Result<Self, RecordError> {
        let store = OwnDir::open(store)?;
        let path = own(&store)?;
        let anew = || {
            remove(&store)?;
            connect(&own(&store)?).map_err(|error| failed("create", &error))
        };
        let mut connection = match connect(&path) {
            // The tables of an older schema have other names: they would stay behind.
            Ok(connection) if version(&connection).is_ok_and(|v| v > 0 && v < SCHEMA) => {
                drop(connection);
                anew()?
            }
            Ok(connection) => connection,
            Err(error) if busy(&error) => return Err(failed("open", &error)),
            Err(_) => anew()?,
        };
        match fill(&mut connection, records()) {
            Ok(()) => Ok(Self { connection }),
            Err(error) if busy(&error) => Err(failed("rebuild", &error)),
            // Pages inside may be damaged although it could be opened: nothing in it is needed.
            Err(_) => {
                drop(connection);
                let mut connection = anew()?;
                fill(&mut connection, records()).map_err(|error| failed("rebuild", &error))?;
                Ok(Self { connection })
            }
        }
    }

    /// Enters one line of a run's log. Lines that say nothing the index keeps are passed over.
    ///
    /// # Errors
    /// The line is then not in the index; the log has it, and a rebuild will enter it.
    pub fn note(&mut self, run: &str, line: &LogLine) -> Result<(), RecordError> {
        let mut enter = || {
            let transaction = self
                .connection
                // Locked from its beginning: a transaction that first reads and then writes fails if
                // another process wrote in between.
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            note(&transaction, run, line)?;
            transaction.commit()
        };
        enter().map_err(|error| failed("write", &error))
    }

    /// Takes a run out of every table.
    ///
    /// # Errors
    /// It is then still there; a rebuild without its log takes it out.
    pub(super) fn forget(&mut self, run: &str) -> Result<(), RecordError> {
        let mut take_out = || {
            let transaction = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for table in TABLES {
                transaction.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run])?;
            }
            transaction.commit()
        };
        take_out().map_err(|error| failed("write", &error))
    }

    /// Every row of every table as text, in a fixed order.
    #[cfg(test)]
    pub(super) fn dump(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for table in TABLES {
            let mut statement = self
                .connection
                .prepare(&format!("SELECT * FROM {table}"))
                .unwrap();
            let columns = statement.column_count();
            let mut found = statement.query([]).unwrap();
            while let Some(row) = found.next().unwrap() {
                let values: Vec<String> = (0..columns)
                    .map(|at| format!("{:?}", row.get_ref(at).unwrap()))
                    .collect();
                rows.push(format!("{table}: {}", values.join(" | ")));
            }
        }
        rows.sort();
        rows
    }
}

fn failed(tried: &'static str, error: &rusqlite::Error) -> RecordError {
    RecordError::Index {
        tried,
        why: error.to_string(),
    }
}

fn busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            // Root may work in a store of its own below a directory that others can write to.
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(PATIENCE)?;
    // Readers go on reading while a run writes.
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Derived data: consistent after a power cut is enough, the last rows may be missing.
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The files SQLite makes, by what follows the name of the first.
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Path of the index, if all its files are regular and the user's own. The index is made where it
/// is missing, for the user alone: SQLite gives its other files the same mode.
fn own(store: &OwnDir) -> Result<PathBuf, RecordError> {
    for suffix in FILES {
        let name = format!("{INDEX}{suffix}");
        match store.read_to_obey(&name) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            // Made here with our rights and mode, before SQLite would make it with its own.
            Err(_) if suffix.is_empty() => drop(store.create(&name)?),
            _ => {}
        }
    }
    Ok(store.path().join(INDEX))
}

fn remove(store: &OwnDir) -> Result<(), RecordError> {
    for suffix in FILES {
        store.remove_file(format!("{INDEX}{suffix}"))?;
    }
    Ok(())
}

fn fill(
    connection: &mut Connection,
    records: impl Iterator<Item = Record>,
) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // In one transaction: a client that reads meanwhile sees all of the old rows or all of the new.
    transaction.execute_batch("DROP VIEW IF EXISTS results")?;
    for table in TABLES {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    for record in records {
        for line in &record.lines {
            note(&transaction, &record.head.run, line)?;
        }
    }
    transaction.commit()
}

fn note(to: &Transaction<'_>, run: &str, line: &LogLine) -> rusqlite::Result<()> {
    match &line.event {
        Event::RunStarted(head) => note_head(to, line, head),
        Event::RunResumed { .. } => to
            .execute(
                // The run goes on, so what was its end is one no more.
                "UPDATE runs SET ended_at = NULL, ended_reason = NULL, ended_detail = NULL WHERE run = ?1",
                params![run],
            )
            .map(drop),
        Event::Trial(trial) => note_trial(to, run, trial),
        // Rounds end in order, so their number is their count.
        Event::RoundFinished { round, .. } => to
            .execute(
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
            to.execute(
                "INSERT OR REPLACE INTO checks VALUES (?1, ?2, ?3)",
                params![run, rounds, sentence],
            )?;
            for &configuration in dropped {
                to.execute(
                    "UPDATE configurations SET dropped_after = coalesce(dropped_after, ?3) WHERE run = ?1 AND configuration = ?2",
                    params![run, position(configuration), rounds],
                )?;
            }
            Ok(())
        }
        Event::RunEnded { reason, detail } => to
            .execute(
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
    let entered = to.execute(
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
        to.execute(
            "INSERT INTO environment VALUES (?1, ?2, ?3, ?4)",
            params![run, position(at), fact.name, fact.value],
        )?;
    }
    for (at, configuration) in head.configurations.iter().enumerate() {
        to.execute(
            "INSERT INTO configurations VALUES (?1, ?2, ?3, NULL)",
            params![run, position(at), configuration.name],
        )?;
        for (factor, level) in head.factors.iter().zip(&configuration.levels) {
            to.execute(
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
        to.execute(
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
            to.execute(
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

fn note_trial(to: &Transaction<'_>, run: &str, trial: &Observation) -> rusqlite::Result<()> {
    let number: i64 = to.query_row(
        // Trials have no number in the log. Their position follows from the order of the lines.
        "SELECT coalesce(max(trial), 0) + 1 FROM trials WHERE run = ?1",
        params![run],
        |row| row.get(0),
    )?;
    // The same line twice: its round, position and workload are taken, and so are its rows.
    if insert_trial(to, run, number, trial)? == 0 {
        return Ok(());
    }
    for (at, value) in trial.metrics.iter().enumerate() {
        to.execute(
            "INSERT INTO metrics SELECT run, ?2, metric, name, unit, ?5 FROM workload_metrics
             WHERE run = ?1 AND workload = ?3 AND metric = ?4",
            params![run, number, position(trial.workload), position(at), value],
        )?;
    }
    for (phase_at, phase) in trial.phases.iter().enumerate() {
        for (at, op) in phase.operations.iter().enumerate() {
            to.execute(
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
    for (at, device) in trial.counted.devices.iter().enumerate() {
        to.execute(
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

fn insert_trial(
    to: &Transaction<'_>,
    run: &str,
    number: i64,
    trial: &Observation,
) -> rusqlite::Result<usize> {
    let counted = &trial.counted;
    to.execute(
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
