//! Transactions of PostgreSQL: one row of fixed size is written in each.

use stackrace_base::unit::ShownPath;
use std::collections::HashSet;
use std::path::Path;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls, Statement};
use rustix::io::Errno;
use stackrace_engine::promises::CommitError;
use stackrace_engine::promises::content::PromisedContent;

use crate::workload::postgres_server::{PostgresServer, USER};

/// The database that every cluster has.
const NAME: &str = "postgres";

/// Switches that PostgreSQL is asked for, `on` or `off` each.
#[derive(Debug, Clone)]
pub(super) struct Switches {
    /// Switch by which the server ever waits for the disk.
    pub(super) fsync: String,
    /// Switch by which a commit waits until its log is on the disk.
    pub(super) synchronous_commit: String,
    /// Switch by which pages are logged whole after a checkpoint.
    pub(super) full_page_writes: String,
}

/// Checks that this program has a client for PostgreSQL.
///
/// # Errors
/// It was built without.
pub(super) fn available() -> Result<(), String> {
    Ok(())
}

/// Returns the ledger's name of a row.
pub(super) fn object(row: u32) -> String {
    format!("postgresql#{row}")
}

/// A connection to a server that runs.
pub(super) struct PostgresSession {
    client: Client,
    update: Statement,
}

impl PostgresSession {
    /// Connects to the server of a directory.
    ///
    /// # Errors
    /// What PostgreSQL says.
    pub(super) fn open(directory: &Path) -> Result<Self, String> {
        let mut client = connect(directory)?;
        // Parsing it again each time would be measured as well.
        let update = client.prepare("UPDATE data SET content = $2 WHERE id = $1");
        let update = update.map_err(|error| said(&error))?;
        Ok(Self { client, update })
    }

    /// Writes a row; it returns when PostgreSQL says that the transaction is committed.
    pub(super) fn commit(&mut self, row: u32, content: &[u8]) -> Result<(), CommitError> {
        // A statement of its own is a transaction of its own.
        let number = row.cast_signed();
        match self.client.execute(&self.update, &[&number, &content]) {
            Ok(1) => Ok(()),
            Ok(_) => Err(CommitError {
                said: format!("PostgreSQL has no row {row}"),
                errno: 0,
            }),
            Err(error) => Err(CommitError {
                said: said(&error),
                errno: errno(error.code()),
            }),
        }
    }
}

/// Makes a cluster with all rows in their first generation, and stops its server.
///
/// # Errors
/// What PostgreSQL or the system says.
pub(super) fn lay_out(
    directory: &Path,
    asked: &Switches,
    rows: (u32, u32),
    seed: u64,
) -> Result<(), String> {
    // All of it is synced below, at once: waiting for each file would take minutes on a hard disk.
    let told = ["fsync=off".to_owned()];
    let server = server(directory, &told);
    let made = || -> Result<(), String> {
        server.make().map_err(|error| error.to_string())?;
        let lines = format!(
            "fsync = {}\nsynchronous_commit = {}\nfull_page_writes = {}\n",
            asked.fsync, asked.synchronous_commit, asked.full_page_writes
        );
        // In its own file, so that it is started with the same after a power cut.
        server
            .configure(&lines)
            .map_err(|error| error.to_string())?;
        server.start().map_err(|error| error.to_string())?;
        let filled = fill(directory, rows, seed);
        // The shutdown writes everything back, and leaves nothing to be recovered inside the clock.
        let stopped = server.stop().map_err(|error| error.to_string());
        filled.and(stopped)
    };
    made()?;
    let opened = std::fs::File::open(directory);
    opened
        .and_then(|file| Ok(stackrace_engine::system::syncfs(file)?))
        .map_err(|error| format!("sync the file system of {}: {error}", directory.shown()))
}

fn fill(directory: &Path, (rows, bytes): (u32, u32), seed: u64) -> Result<(), String> {
    let mut client = connect(directory)?;
    let mut filled = || -> Result<(), postgres::Error> {
        client
            .batch_execute("CREATE TABLE data (id integer PRIMARY KEY, content bytea NOT NULL)")?;
        // The same content as the engine makes for later generations of these rows.
        let content = PromisedContent::new(seed);
        let mut buffer = vec![0; bytes as usize];
        let mut all = client.transaction()?;
        let insert = all.prepare("INSERT INTO data VALUES ($1, $2)")?;
        for row in 0..rows {
            content.fill(&mut buffer, &object(row), 0, 1);
            all.execute(&insert, &[&row.cast_signed(), &buffer])?;
        }
        all.commit()
    };
    filled().map_err(|error| said(&error))
}

/// Returns true if a directory has a cluster.
pub(super) fn exists(directory: &Path) -> bool {
    server(directory, &[]).exists()
}

/// Starts the server; it has recovered itself and answers when this returns. Where it refuses because its
/// lock file is empty, that is removed and it is started once more: what that needed, as typed.
///
/// # Errors
/// It does not start: what pg_ctl says, and the end of its log.
pub(super) fn start(directory: &Path, repair: &mut Vec<String>) -> Result<(), String> {
    let server = server(directory, &[]);
    let mut started = server.start();
    // Only where it refuses: a server that starts needs no operator.
    if started.is_err()
        && let Ok(Some(removed)) = server.remove_unreadable_lock()
    {
        repair.push(removed);
        started = server.start();
    }
    started.map(drop).map_err(|error| {
        // One that is only slow would be in the way of the next one.
        let _ = server.stop_if_left();
        format!("its server does not start: {error}")
    })
}

/// Ends the server, if it runs.
///
/// # Errors
/// What pg_ctl says.
pub(super) fn end(directory: &Path) -> Result<(), String> {
    let server = server(directory, &[]);
    server.stop_if_left().map_err(|error| error.to_string())
}

/// Reads all rows, as the server has them.
///
/// # Errors
/// What PostgreSQL says: the table is damaged.
pub(super) fn rows(directory: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    let mut client = connect(directory)?;
    let found = client.query("SELECT id, content FROM data", &[]);
    let found = found.map_err(|error| said(&error))?;
    let mut known = HashSet::new();
    let mut rows = Vec::new();
    for row in found {
        let read = |error: postgres::Error| said(&error);
        let id: i32 = row.try_get(0).map_err(read)?;
        // An old version that has come to life again beside the new one: either may be read.
        if !known.insert(id) {
            return Err(format!("row {id} is there twice"));
        }
        rows.push((id.cast_unsigned(), row.try_get(1).map_err(read)?));
    }
    Ok(rows)
}

fn server<'a>(directory: &'a Path, told: &'a [String]) -> PostgresServer<'a> {
    PostgresServer {
        directory,
        told,
        // Each of these takes seconds; the phase itself looks for Ctrl-C.
        stopped: &|| false,
    }
}

fn connect(directory: &Path) -> Result<Client, String> {
    let socket = server(directory, &[]).socket();
    // PostgreSQL writes `@` where the kernel has a zero byte (unix(7)).
    let socket = socket.replacen('@', "\0", 1);
    let mut config = Config::new();
    config.host_path(socket).user(USER).dbname(NAME);
    config.connect(NoTls).map_err(|error| said(&error))
}

/// Number of the system that a class of PostgreSQL's stands for; 0 if it is its own.
fn errno(state: Option<&SqlState>) -> i32 {
    match state {
        Some(state) if *state == SqlState::DISK_FULL => Errno::NOSPC.raw_os_error(),
        Some(state) if *state == SqlState::IO_ERROR => Errno::IO.raw_os_error(),
        _ => 0,
    }
}

/// An error of the client with its cause, which its own text leaves out.
fn said(error: &postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let cause = std::error::Error::source(error);
    cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_under_a_server_is_told_as_the_system_tells_it() {
        for (state, number) in [("53100", 28), ("58030", 5), ("40P01", 0)] {
            assert_eq!(errno(Some(&SqlState::from_code(state))), number);
        }
        assert_eq!(errno(None), 0);
    }
}
