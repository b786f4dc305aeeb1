//! Transactions of SQLite: one row of fixed size is written in each.

use stackrace_base::unit::ShownPath;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};
use stackrace_engine::promises::content::PromisedContent;
use stackrace_engine::promises::{Commit, CommitError};
use stackrace_engine::{OpError, PhaseOutcome};

use super::asked::{Durability, FILE, object};
use crate::workload::kind::{WorkloadError, trouble, trouble_at};
use crate::workload::sqlite_error;

/// True: this program was built with it.
pub(super) const THERE: bool = true;

/// Opens the database that [`lay_out`] made, calls with what commits a row, and closes it.
///
/// # Errors
/// What SQLite says, with its file; those of `work`.
pub(super) fn during(
    directory: &Path,
    durability: &Durability,
    work: impl FnOnce(&mut Commit<'_>) -> Result<PhaseOutcome, OpError>,
) -> Result<PhaseOutcome, WorkloadError> {
    let open = Session::open(directory, durability)?;
    work(&mut |row, content| open.commit(row, content)).map_err(trouble)
}

/// A connection to a database that exists.
struct Session(Connection);

impl Session {
    fn open(directory: &Path, durability: &Durability) -> Result<Self, WorkloadError> {
        let path = directory.join(FILE);
        let failed = |error| refused_at(&path, error);
        let connection = connect(&path).map_err(failed)?;
        set(&connection, durability).map_err(failed)?;
        Ok(Self(connection))
    }

    /// Writes a row; it returns when SQLite says that the transaction is committed.
    fn commit(&self, row: u32, content: &[u8]) -> Result<(), CommitError> {
        // A statement of its own is a transaction of its own.
        // Parsing it again each time would be measured as well.
        self.0
            .prepare_cached("UPDATE data SET content = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![row, content]))
            .map(drop)
            .map_err(|error| CommitError {
                errno: sqlite_error::errno(&error).unwrap_or(0),
                said: error.to_string(),
            })
    }
}

/// What SQLite says of a file.
fn refused_at(path: &Path, error: rusqlite::Error) -> WorkloadError {
    let refused = sqlite_error::refused(error);
    WorkloadError {
        said: format!("{}: {}", path.shown(), refused.said),
        ..refused
    }
}

/// Makes the database with all rows in their first generation, and closes it.
///
/// # Errors
/// What SQLite says, with its file.
pub(super) fn lay_out(
    directory: &Path,
    durability: &Durability,
    (rows, bytes): (u32, u32),
    seed: u64,
) -> Result<(), WorkloadError> {
    let path = directory.join(FILE);
    let made = || -> rusqlite::Result<()> {
        let mut connection = Connection::open(&path)?;
        set(&connection, durability)?;
        connection.execute_batch(
            "CREATE TABLE data (id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT;",
        )?;
        // The same content as the engine makes for later generations of these rows.
        let content = PromisedContent::new(seed);
        let mut buffer = vec![0; bytes as usize];
        let all = connection.transaction()?;
        for row in 0..rows {
            content.fill(&mut buffer, &object(FILE, row), 0, 1);
            all.execute("INSERT INTO data VALUES (?1, ?2)", params![row, buffer])?;
        }
        all.commit()?;
        // A log that is only in its own file would be replayed inside the clock.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        connection.close().map_err(|(_, error)| error)
    };
    made().map_err(|error| refused_at(&path, error))?;
    let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
    let directory_synced = std::fs::File::open(directory).and_then(|file| file.sync_all());
    synced
        .and(directory_synced)
        .map_err(|error| trouble_at(&path, error))
}

/// Reads all rows, as SQLite finds them after it recovered the database.
///
/// # Errors
/// What SQLite says: the file is no database, or is damaged.
pub(super) fn rows(directory: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    let read = || -> rusqlite::Result<Vec<(u32, Vec<u8>)>> {
        let connection = connect(&directory.join(FILE))?;
        let whole: String =
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        // Rows of a damaged database may still be readable, and be wrong.
        if whole != "ok" {
            return Err(rusqlite::Error::InvalidParameterName(whole));
        }
        let mut all = connection.prepare("SELECT id, content FROM data")?;
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    read().map_err(|error| match error {
        rusqlite::Error::InvalidParameterName(what) => what,
        error => error.to_string(),
    })
}

/// Returns true if a directory has its file.
pub(super) fn exists(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

/// Does nothing: a library has no server.
pub(super) fn start(_: &Path, _: &mut Vec<String>) -> Result<(), WorkloadError> {
    Ok(())
}

/// Does nothing: a library has no server.
pub(super) fn end(_: &Path) -> Result<(), WorkloadError> {
    Ok(())
}

/// An existing database: a missing one must not be made, and then be found empty.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

fn set(connection: &Connection, durability: &Durability) -> rusqlite::Result<()> {
    // The answer is the mode in force.
    let mode: String =
        connection
            .pragma_update_and_check(None, "journal_mode", &durability.journal, |row| row.get(0))?;
    if mode != durability.journal {
        let what = format!("journal mode {} was refused: {mode}", durability.journal);
        return Err(rusqlite::Error::InvalidParameterName(what));
    }
    connection.pragma_update(None, "synchronous", &durability.synchronous)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failed_transaction_is_a_value() {
        let directory = tempfile::tempdir().unwrap();
        let durability = Durability {
            journal: "wal".to_owned(),
            synchronous: "off".to_owned(),
        };
        lay_out(directory.path(), &durability, (3, 512), 7).unwrap();
        let open = Session::open(directory.path(), &durability).unwrap();
        open.commit(1, &[1; 512]).unwrap();
        // No page more than there are: what a full disk says.
        open.0.pragma_update(None, "max_page_count", 1).unwrap();
        let full = open.commit(1, &vec![1; 1 << 20]).unwrap_err();
        assert_eq!(full.errno, 28, "{full}");
        let nowhere = directory.path().join("nowhere");
        let said = lay_out(&nowhere, &durability, (3, 512), 7).unwrap_err();
        assert!(said.to_string().contains("nowhere"), "{said}");
    }

    #[test]
    fn a_database_that_is_missing_or_damaged_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        rows(directory.path()).unwrap_err();
        assert!(!path.exists(), "looking for it made it");
        let durability = Durability {
            journal: "wal".to_owned(),
            synchronous: "normal".to_owned(),
        };
        lay_out(directory.path(), &durability, (300, 512), 7).unwrap();
        assert_eq!(rows(directory.path()).unwrap().len(), 300);
        // The middle of the file: pages of the table.
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
        rows(directory.path()).unwrap_err();
    }
}
