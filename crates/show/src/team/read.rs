//! Runs of the database, read for the pages: never more of them than was agreed, and by the same reader
//! as any log.

use stackrace_base::unit::ShownPath;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Error, Row};

use super::address::TeamAddress;
use super::connection::{connect, failed, is_known, version};
use super::limited::Allowance;
use stackrace_base::failure::Failure;
use stackrace_base::time::Clock;
use stackrace_base::unit;
use stackrace_results::record::{LogVersion, Now, Record, RecordError, RunSource, RunSummary};

/// Connections that pages share.
const CONNECTIONS: usize = 4;
/// Runs that are listed, the newest.
const RUNS_MAX: i64 = 10_000;
/// Bytes of a log that is read.
const LOG_MAX: usize = 256 << 20;
/// Time a list counts as the newest, ns: every open page asks for it once a second.
const FRESH_NS: u64 = 1_000_000_000;
/// Before each connection's first query: nothing is written through it, and no query hangs.
const SETTINGS: &str = "SET default_transaction_read_only = on; SET statement_timeout = '30s'";
/// Bytes that the answers on all connections may have together: one log of the largest size, and some.
const ANSWERS_MAX: u64 = LOG_MAX as u64 + (64 << 20);
/// A list of a run's names is read up to here.
const LIST: &str =
    "SELECT run, left(title, 2000), left(study_hash, 200), started_at, configurations[1:2000],
     workloads, rounds, trials, left(ended, 200), left(sentence, 8000), tags[1:200]
     FROM stackrace.runs ORDER BY started_at DESC NULLS LAST, run DESC LIMIT $1";

/// The runs that people pushed into a database, read over a few connections.
pub struct TeamRuns {
    address: TeamAddress,
    allowance: Allowance,
    clients: [Mutex<Option<Client>>; CONNECTIONS],
    next: AtomicUsize,
    list: Mutex<Option<(u64, Vec<Arc<RunSummary>>)>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for TeamRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the address itself: it holds the password.
        f.debug_tuple("TeamRuns")
            .field(&self.address.shown)
            .finish()
    }
}

impl TeamRuns {
    /// Connects, to read only.
    ///
    /// # Errors
    /// The server refuses, nothing was pushed there yet, or the tables are of another version.
    pub fn open(address: TeamAddress, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let allowance = Allowance::new(ANSWERS_MAX);
        let mut client = begun(&address, &allowance)?;
        let found = version(&mut client).map_err(|error| failed("read", &address, &error))?;
        let found = found.ok_or_else(|| {
            Failure::usage(format!("{} has no results of stackrace", address.shown))
                .next("push runs there first: stackrace push ADDRESS")
        })?;
        is_known(&address, found)?;
        let clients = std::array::from_fn(|_| Mutex::new(None));
        *clients[0].lock() = Some(client);
        Ok(Self {
            address,
            allowance,
            clients,
            next: AtomicUsize::new(0),
            list: Mutex::new(None),
            clock,
        })
    }

    /// `user@host:port/database`.
    pub fn shown(&self) -> &str {
        self.address.shown()
    }

    /// Asks over one of the connections, which is made where it is missing or was lost.
    fn ask<T>(&self, question: impl Fn(&mut Client) -> Result<T, Error>) -> Result<T, RecordError> {
        let free = self.clients.iter().find_map(Mutex::try_lock);
        // All are busy: in turn, so that no single one has all who wait.
        let at = self.next.fetch_add(1, Ordering::Relaxed) % CONNECTIONS;
        let mut place = free.unwrap_or_else(|| self.clients[at].lock());
        for again in [true, false] {
            let client = match place.as_mut().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => place.insert(begun(&self.address, &self.allowance).map_err(unread)?),
            };
            match question(client) {
                // The server was restarted, say: what was only read can be asked once more.
                Err(_) if again && client.is_closed() => {}
                answer => {
                    return answer.map_err(|error| unread(failed("read", &self.address, &error)));
                }
            }
        }
        Err(unread(Failure::unable(format!(
            "the connection to {} was lost twice",
            self.address.shown
        ))))
    }

    fn whole_log(&self, run: &str) -> Result<Vec<u8>, RecordError> {
        let refused = |what: String, next: &str| RecordError::Team {
            what: format!("run {run} in {}: {what}", self.address.shown),
            next: next.to_owned(),
        };
        let log = self.ask(|client| {
            let query =
                "SELECT number, line FROM stackrace.log_lines WHERE run = $1 ORDER BY number";
            let mut rows = client.query_raw(query, [run])?;
            let (mut log, mut number) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                // Checked while they arrive: the rest of what is too large is not asked for.
                let line: &[u8] = row.try_get(1)?;
                if row.try_get::<_, i64>(0)? != number {
                    return Ok(Err(number));
                }
                number += 1;
                if log.len() + line.len() > LOG_MAX {
                    return Ok(Ok(None));
                }
                log.extend_from_slice(line);
            }
            Ok(Ok(Some(log)))
        })?;
        match log {
            Ok(Some(log)) => Ok(log),
            Ok(None) => Err(refused(
                format!("its log is larger than {}", unit::bytes(LOG_MAX as u64)),
                "read it on the machine that measured it: stackrace report",
            )),
            Err(number) => Err(refused(
                format!("line {number} of its log is missing"),
                "the tables were changed by another program: remove the run's rows there, and push it again",
            )),
        }
    }
}

/// A connection that only reads.
fn begun(address: &TeamAddress, allowance: &Allowance) -> Result<Client, Failure> {
    let mut client = connect(address, allowance.clone())?;
    let set = client.batch_execute(SETTINGS);
    set.map_err(|error| failed("read", address, &error))?;
    Ok(client)
}

fn unread(failure: Failure) -> RecordError {
    let (what, next) = failure.into_parts();
    RecordError::Team { what, next }
}

/// One run of the list.
fn summary(row: &Row) -> Result<RunSummary, Error> {
    let count = |at: usize| -> Result<usize, Error> {
        Ok(usize::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
    };
    // As a log has it: RFC 3339 in UTC.
    let started = row.try_get::<_, Option<jiff::Timestamp>>(3)?;
    let run: String = row.try_get(0)?;
    // It becomes a part of addresses: what no store would have made is shown and not linked.
    let odd = !Record::fits_id(&run);
    Ok(RunSummary {
        run,
        title: row.try_get(1)?,
        study_hash: row.try_get(2)?,
        started_at: started.map_or_else(String::new, |at| at.to_string()),
        configurations: row.try_get(4)?,
        workloads: count(5)?,
        rounds: count(6)?,
        trials: count(7)?,
        ended: row.try_get(8)?,
        sentence: row.try_get(9)?,
        tags: row.try_get(10)?,
        unreadable: odd.then(|| "this is not the id of a run".to_owned()),
    })
}

impl RunSource for TeamRuns {
    fn summaries(&self) -> Result<Vec<Arc<RunSummary>>, RecordError> {
        let now_ns = self.clock.now_ns();
        // Held while it is asked: those who wait find the new list here.
        let mut list = self.list.lock();
        if let Some((at_ns, list)) = &*list
            && now_ns.saturating_sub(*at_ns) < FRESH_NS
        {
            return Ok(list.clone());
        }
        let found = self.ask(|client| {
            let rows = client.query(LIST, &[&RUNS_MAX])?;
            // The newest are asked for, so that they are what is cut off last; lists begin with the oldest.
            let rows = rows.iter().rev().map(|row| summary(row).map(Arc::new));
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        *list = Some((now_ns, found.clone()));
        Ok(found)
    }

    fn holds(&self, run: &str) -> bool {
        Record::fits_id(run) && self.version(run).is_some()
    }

    fn version(&self, run: &str) -> Option<LogVersion> {
        let row = self.ask(|client| {
            let query = "SELECT bytes, lines FROM stackrace.runs WHERE run = $1";
            let row = client.query_opt(query, &[&run])?;
            row.map(|row| Ok((row.try_get::<_, i64>(0)?, row.try_get::<_, i64>(1)?)))
                .transpose()
        });
        let (bytes, lines) = row.ok()??;
        Some((u64::try_from(bytes).ok()?, lines.into()))
    }

    fn read(&self, run: &str) -> Result<Record, RecordError> {
        let log = self.whole_log(run)?;
        // No file: where the log is, for messages.
        let place = PathBuf::from(format!("{} run {run}", self.address.shown));
        let record = Record::parse(&log, &place)?;
        match record.head.run == run {
            true => Ok(record),
            false => Err(RecordError::Team {
                what: format!(
                    "{} is the log of another run: \"{}\"",
                    place.shown(),
                    record.head.run.escape_debug()
                ),
                next: "push the run again from where it was measured, into a new database"
                    .to_owned(),
            }),
        }
    }

    fn goes_on(&self, _: &str) -> Option<bool> {
        None
    }

    fn now(&self, _: &str) -> Option<Now> {
        None
    }

    fn shared(&self) -> bool {
        true
    }
}
