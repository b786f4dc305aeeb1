//! The SQLite index: derived from the logs, for people who query.
//!
//! It is written after a line is in the log, never before, and the run reads nothing back from it.
//! So a run goes on if its index fails. Noting the same line twice changes nothing, so that
//! rebuilding while a run goes on is harmless. WAL lets any SQLite client read meanwhile.

mod rows;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use self::rows::{TABLES, forget, has_rows, list, note, note_all};
use super::error::RecordError;
use super::read::Record;
use super::summary::{IndexedRun, RunSummary, summary};
use stackrace_base::event::{LogLine, RunStarted};
use stackrace_base::owned::{FileState, OwnDir};

/// Version of the schema, `PRAGMA user_version`. See `docs/formats/index.md`.
pub(super) const SCHEMA: i32 = 4;
/// Name of the index in the store's directory.
pub(super) const INDEX: &str = "stackrace.db";
/// Longest wait for another writer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Statements that are kept parsed: all of them.
const STATEMENTS: usize = 64;
/// Memory for pages otherwise, KiB: SQLite's own default.
const MEMORY_KIB: i64 = 2 << 10;
/// Memory for pages of a rebuild, KiB, taken as it is needed. With less, pages that are not full yet go to the disk
/// again and again: 47 times each for 5000 runs.
const REBUILD_MEMORY_KIB: i64 = 256 << 10;
/// Reason for which something was not mended in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unhealed {
    /// Another process writes, or the system refuses: the next one that lists runs tries again.
    Later,
    /// The file itself is damaged, so it must be made anew.
    Damaged,
}

impl From<rusqlite::Error> for Unhealed {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Self::Damaged
            }
            _ => Self::Later,
        }
    }
}

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
    pub(super) fn rebuild<R: Iterator<Item = IndexedRun>>(
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

    /// Enters one line of the log of the run with this head. Lines that say nothing the index keeps are passed over.
    ///
    /// # Errors
    /// The line is then not in the index; the log has it, and a rebuild will enter it.
    pub fn note(&mut self, head: &RunStarted, line: &LogLine) -> Result<(), RecordError> {
        let mut enter = || {
            let transaction = self
                .connection
                // Locked from its beginning: a transaction that first reads and then writes fails if
                // another process wrote in between.
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            note(&transaction, head, line)?;
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
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            forget(&transaction, run)?;
            transaction.commit()
        };
        take_out().map_err(|error| failed("write", &error))
    }

    /// Summaries of the runs, each with the state of the log it was made of.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(super) fn listed(&self) -> Result<HashMap<String, (FileState, RunSummary)>, RecordError> {
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.connection.prepare("SELECT * FROM listed")?;
            let rows = statement.query_map([], |row| {
                let state = FileState {
                    bytes: row.get::<_, i64>(1)?.cast_unsigned(),
                    modified_ns: row.get(2)?,
                    changed_ns: row.get(3)?,
                    inode: row.get::<_, i64>(4)?.cast_unsigned(),
                };
                // One that cannot be read is made again of its log.
                let summary = serde_json::from_str(row.get_ref(5)?.as_str()?).ok();
                Ok((row.get(0)?, summary.map(|summary| (state, summary))))
            })?;
            let mut listed = HashMap::new();
            for row in rows {
                if let (run, Some(entry)) = row? {
                    listed.insert(run, entry);
                }
            }
            Ok(listed)
        };
        read().map_err(|error| failed("read", &error))
    }

    /// Keeps the summary of a log in this state, which no program writes, and makes the rows of its run
    /// anew where they cannot be those of the log. `changed`: another state of it was listed.
    ///
    /// # Errors
    /// Nothing is entered then.
    pub(super) fn heal(
        &mut self,
        record: &Record,
        state: &FileState,
        summary: &RunSummary,
        changed: bool,
    ) -> Result<(), Unhealed> {
        // Who lists runs does not wait for a writer: the next one heals as well.
        self.connection.busy_timeout(Duration::ZERO)?;
        let run = &record.head.run;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        if changed || !has_rows(&transaction, record)? {
            forget(&transaction, run)?;
            note_all(&transaction, record)?;
        }
        list(&transaction, state, summary)?;
        Ok(transaction.commit()?)
    }

    /// Takes out the runs that are not among these.
    ///
    /// # Errors
    /// They are still there; the next one that lists runs tries again.
    pub(super) fn forget_others(&mut self, runs: &HashSet<&str>) -> Result<(), Unhealed> {
        let mut gone: HashSet<String> = HashSet::new();
        {
            let all = "SELECT run FROM runs UNION ALL SELECT run FROM listed";
            let mut statement = self.connection.prepare(all)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let run = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
                if !runs.contains(run) {
                    gone.insert(run.to_owned());
                }
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.connection.busy_timeout(Duration::ZERO)?;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for run in &gone {
            forget(&transaction, run)?;
        }
        Ok(transaction.commit()?)
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
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
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
    runs: impl Iterator<Item = IndexedRun>,
) -> rusqlite::Result<()> {
    // A negative number is one of KiB.
    connection.pragma_update(None, "cache_size", -REBUILD_MEMORY_KIB)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // In one transaction: a client that reads meanwhile sees all of the old rows or all of the new.
    transaction.execute_batch("DROP VIEW IF EXISTS results")?;
    for table in TABLES {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    for (record, state) in runs {
        note_all(&transaction, &record)?;
        if let Some(state) = &state {
            list(&transaction, state, &summary(&record))?;
        }
    }
    transaction.commit()?;
    // A run keeps its index open for days.
    connection.pragma_update(None, "cache_size", -MEMORY_KIB)
}
