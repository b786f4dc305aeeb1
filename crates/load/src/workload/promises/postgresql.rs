//! Transactions of PostgreSQL: one row of fixed size is written in each.

use std::collections::HashSet;
use std::path::Path;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls, Statement};
use rustix::io::Errno;
use stackrace_base::event::FailureCause;
use stackrace_engine::promises::content::PromisedContent;
use stackrace_engine::promises::{Commit, CommitError};
use stackrace_engine::{OpError, PhaseOutcome};

use super::asked::{SERVED, Switches, object};
use crate::workload::kind::{WorkloadError, trouble, trouble_at};
use crate::workload::postgres_server::{PostgresServer, USER};

/// The database that every cluster has.
const NAME: &str = "postgres";

/// True: this program was built with a client for it.
pub(super) const THERE: bool = true;

/// Starts the server of a cluster that [`lay_out`] made, calls with what commits a row, and ends it.
///
/// # Errors
/// What PostgreSQL says; those of `work`.
pub(super) fn during(
    directory: &Path,
    _: &Switches,
    work: impl FnOnce(&mut Commit<'_>) -> Result<PhaseOutcome, OpError>,
) -> Result<PhaseOutcome, WorkloadError> {
    // Nothing was cut yet, so nothing is to be repaired.
    start(directory, &mut Vec::new())?;
    let mut open = Session::open(directory)?;
    let done = work(&mut |row, content| open.commit(row, content));
    drop(open);
    let ended = end(directory);
    let done = done.map_err(trouble)?;
    // Why an operation failed says more than that its server does not end.
    match done.error {
        Some(_) => Ok(done),
        None => ended.map(|()| done),
    }
}

/// A connection to a server that runs.
struct Session {
    client: Client,
    update: Statement,
}

impl Session {
    fn open(directory: &Path) -> Result<Self, WorkloadError> {
        let mut client = connect(directory)?;
        // Parsing it again each time would be measured as well.
        let update = client.prepare("UPDATE data SET content = $2 WHERE id = $1");
        let update = update.map_err(|error| refused(&error))?;
        Ok(Self { client, update })
    }

    /// Writes a row; it returns when PostgreSQL says that the transaction is committed.
    fn commit(&mut self, row: u32, content: &[u8]) -> Result<(), CommitError> {
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
                errno: errno(&error).unwrap_or(0),
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
) -> Result<(), WorkloadError> {
    // All of it is synced below, at once: waiting for each file would take minutes on a hard disk.
    let told = ["fsync=off".to_owned()];
    let server = server(directory, &told);
    let made = || -> Result<(), WorkloadError> {
        server.make()?;
        let lines = format!(
            "fsync = {}\nsynchronous_commit = {}\nfull_page_writes = {}\n",
            asked.fsync, asked.synchronous_commit, asked.full_page_writes
        );
        // In its own file, so that it is started with the same after a power cut.
        server.configure(&lines)?;
        server.start()?;
        let filled = fill(directory, rows, seed);
        // The shutdown writes everything back, and leaves nothing to be recovered inside the clock.
        let stopped = server.stop();
        filled.and(stopped)
    };
    made()?;
    let opened = std::fs::File::open(directory);
    opened
        .and_then(|file| Ok(stackrace_system::syncfs(file)?))
        .map_err(|error| trouble_at(directory, error).while_doing("sync the file system of"))
}

fn fill(directory: &Path, (rows, bytes): (u32, u32), seed: u64) -> Result<(), WorkloadError> {
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
            content.fill(&mut buffer, &object(SERVED, row), 0, 1);
            all.execute(&insert, &[&row.cast_signed(), &buffer])?;
        }
        all.commit()
    };
    filled().map_err(|error| refused(&error))
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
pub(super) fn start(directory: &Path, repair: &mut Vec<String>) -> Result<(), WorkloadError> {
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
        error.while_doing("its server does not start")
    })
}

/// Ends the server, if it runs.
///
/// # Errors
/// What pg_ctl says.
pub(super) fn end(directory: &Path) -> Result<(), WorkloadError> {
    server(directory, &[]).stop_if_left()
}

/// Reads all rows, as the server has them.
///
/// # Errors
/// What PostgreSQL says: the table is damaged.
pub(super) fn rows(directory: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    let mut client = connect(directory).map_err(|error| error.said)?;
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

fn connect(directory: &Path) -> Result<Client, WorkloadError> {
    let socket = server(directory, &[]).socket();
    // PostgreSQL writes `@` where the kernel has a zero byte (unix(7)).
    let socket = socket.replacen('@', "\0", 1);
    let mut config = Config::new();
    config.host_path(socket).user(USER).dbname(NAME);
    config.connect(NoTls).map_err(|error| refused(&error))
}

/// The number of the system that an error stands for: its own of a connection, or that of PostgreSQL's class;
/// `None` if it is PostgreSQL's alone.
fn errno(error: &postgres::Error) -> Option<i32> {
    let source = std::error::Error::source(error);
    let called = source.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    called
        .and_then(std::io::Error::raw_os_error)
        .or_else(|| of_class(error.code()?))
}

fn of_class(state: &SqlState) -> Option<i32> {
    let errno = match *state {
        SqlState::DISK_FULL => Errno::NOSPC,
        SqlState::IO_ERROR => Errno::IO,
        _ => return None,
    };
    Some(errno.raw_os_error())
}

/// The same as the trouble of a workload.
fn refused(error: &postgres::Error) -> WorkloadError {
    WorkloadError {
        cause: errno(error).map(FailureCause::Errno),
        ..trouble(said(error))
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
        for (state, number) in [("53100", Some(28)), ("58030", Some(5)), ("40P01", None)] {
            assert_eq!(of_class(&SqlState::from_code(state)), number);
        }
    }

    #[test]
    fn what_fails_while_a_server_is_laid_out_has_its_cause_as_a_value() {
        let asked = Switches {
            fsync: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
            full_page_writes: "on".to_owned(),
        };
        let base = tempfile::tempdir().unwrap();
        // A file where its directory is to be: no server of any kind is needed to fail.
        std::fs::write(base.path().join("data"), "").unwrap();
        let there = lay_out(base.path(), &asked, (1, 1), 1).unwrap_err();
        assert_eq!(there.cause, Some(FailureCause::Errno(17)), "{there}");
        let gone = base.path().join("gone");
        let away = lay_out(&gone, &asked, (1, 1), 1).unwrap_err();
        assert_eq!(away.cause, Some(FailureCause::Errno(2)), "{away}");
        // Nor does one listen there.
        let refused = Session::open(&gone).err().unwrap();
        assert_eq!(refused.cause, Some(FailureCause::Errno(111)), "{refused}");
    }
}
