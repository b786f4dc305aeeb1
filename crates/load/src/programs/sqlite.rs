//! SQLite: transactions on a table, one connection, with the SQLite that is part of this program.
//!
//! Each transaction updates one row at random and adds one to a second table, then commits. What a
//! commit waits for is the question: `journal-mode` and `synchronous` are SQLite's own words. SQLite
//! makes the calls itself; nothing of it goes through the engine. The clock stops when the connection is
//! closed, with what is left in a write-ahead log carried over.

use std::path::PathBuf;

use hdrhistogram::Histogram;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rusqlite::{Connection, params};
use stackrace_engine::{LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN, PhaseEnd, PhaseOutcome};

use crate::workload::metric::{self, Latency};
use crate::workload::sqlite_error::refused;
use crate::workload::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "sqlite",
    summary: "SQLite: transactions of one connection, by journal mode and synchronous",
    source: "SQLite itself, which is part of this program; PRAGMA journal_mode and synchronous",
    settings: &[
        SettingDoc::count(
            "transactions",
            "1000",
            "Transactions, each an update and an insert.",
        ),
        SettingDoc::count("rows", "20000", "Rows of the table that is updated."),
        SettingDoc::bytes("row-size", "200 B", "Text of a row."),
        SettingDoc::choice(
            "journal-mode",
            &["delete", "truncate", "persist", "wal", "off"],
            "wal",
            "How SQLite can take a transaction back.",
        ),
        SettingDoc::choice(
            "synchronous",
            &["off", "normal", "full", "extra"],
            "full",
            "When SQLite waits for the storage.",
        ),
    ],
    example: "sqlite = { transactions = 500, journal-mode = \"wal\" }",
    parse: |settings| Ok(Box::new(Sqlite::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct Sqlite {
    transactions: u64,
    rows: u64,
    row_bytes: u64,
    journal: String,
    synchronous: String,
}

impl Sqlite {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let count = |name| settings.count_within(name, 1..=100_000_000);
        Ok(Self {
            transactions: count("transactions")?,
            rows: count("rows")?,
            row_bytes: settings.within("row-size", settings.bytes("row-size")?, 1..=1 << 20)?,
            journal: settings.text("journal-mode")?,
            synchronous: settings.text("synchronous")?,
        })
    }

    fn open(&self, place: &Place<'_>) -> Result<Connection, WorkloadError> {
        // Anew for each trial: the modes hold for a connection, and its cache starts empty.
        let connection = Connection::open(file(place)).map_err(refused)?;
        let set = |name: &str, value: &str| {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
            let answer = connection.query_row(&format!("PRAGMA {name} = {value}"), [], read);
            match answer {
                // Some pragmas answer with what they are now, others with nothing.
                Ok(_) | Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
                Err(error) => Err(WorkloadError {
                    said: format!("PRAGMA {name} = {value}: {error}"),
                    ..refused(error)
                }),
            }
        };
        set("journal_mode", &self.journal)?;
        set("synchronous", &self.synchronous)?;
        let mode: String = connection
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .map_err(refused)?;
        // SQLite keeps the mode it had where a file system cannot do another one: no other question
        // may be answered in its place.
        match mode == self.journal {
            true => Ok(connection),
            false => Err(trouble(format!(
                "SQLite cannot use journal_mode = {} here, and uses {mode}",
                self.journal
            ))),
        }
    }
}

fn file(place: &Place<'_>) -> PathBuf {
    place.directory.join("database")
}

/// A text of so many bytes.
fn text(draw: &mut Xoshiro256PlusPlus, bytes: u64) -> String {
    let mut text = String::new();
    while (text.len() as u64) < bytes {
        text.push_str(&format!("{:016x}", draw.next_u64()));
    }
    text.truncate(usize::try_from(bytes).unwrap_or(text.len()));
    text
}

/// Kind of its operations.
const TRANSACTION: &str = "transaction";

impl Workload for Sqlite {
    fn operations_most(&self, op: &str) -> Option<u64> {
        (op == TRANSACTION).then_some(self.transactions)
    }

    fn summary(&self) -> String {
        format!(
            "SQLite: {} transactions on {} rows of {}, journal_mode = {}, synchronous = {}",
            unit::count(self.transactions),
            unit::count(self.rows),
            unit::bytes(self.row_bytes),
            self.journal,
            self.synchronous
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let latency = |which| metric::named_latency_head(TRANSACTION, which);
        let mut heads = vec![MetricHead::new("transactions", "op/s", Better::Higher)];
        heads.extend([Latency::P50, Latency::P99].map(latency));
        heads
    }

    fn cost(&self) -> Cost {
        let data = self.rows * (self.row_bytes + 20);
        let logged = self.transactions * (self.row_bytes + 40);
        Cost {
            prepare_bytes: data,
            // A commit writes whole pages, of 4 KiB, and most modes write them twice.
            measured_bytes: Some(self.transactions * 3 * 2 * 4096),
            disk_bytes: (data + logged) * 2 + self.transactions.min(4000) * 3 * 4096 + (1 << 20),
            measured_ns: None,
            files: 1,
            working_set_bytes: data,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["transactions"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let mut connection = self.open(place)?;
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(place.seed);
        let filled = (|| {
            let all = connection.transaction()?;
            // One transaction for all: filling is not what is measured.
            all.execute_batch(
                "CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT, times INTEGER);
                 CREATE TABLE log (id INTEGER PRIMARY KEY, item INTEGER, text TEXT);",
            )?;
            {
                let mut insert = all.prepare("INSERT INTO item VALUES (?1, ?2, 0)")?;
                for row in 0..self.rows {
                    // The trial ends as one that was stopped; nothing that was filled in is kept.
                    if row % 1024 == 0 && place.control.stopped() {
                        return Ok(());
                    }
                    insert.execute(params![row as i64, text(&mut draw, self.row_bytes)])?;
                }
            }
            all.commit()
        })();
        filled.map_err(refused)?;
        connection.close().map_err(|(_, error)| refused(error))
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let mut connection = self.open(place)?;
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(place.seed ^ 1);
        let bounds = (LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS);
        let mut latencies =
            Histogram::<u64>::new_with_bounds(bounds.0, bounds.1, bounds.2).map_err(trouble)?;
        let began = SystemClock.now_ns();
        let mut before = began;
        for _ in 0..self.transactions {
            if place.control.stopped() {
                let outcome = PhaseOutcome::of_program("SQLite", String::new(), 0, SLICE_NS);
                let ended = PhaseEnd::Stopped;
                return Ok(PhaseOutcome { ended, ..outcome });
            }
            let item = (draw.next_u64() % self.rows) as i64;
            let words = text(&mut draw, self.row_bytes);
            let done = (|| {
                let one = connection.transaction()?;
                // Parsed once: the processor is not the question.
                one.prepare_cached("UPDATE item SET text = ?2, times = times + 1 WHERE id = ?1")?
                    .execute(params![item, words])?;
                one.prepare_cached("INSERT INTO log (item, text) VALUES (?1, ?2)")?
                    .execute(params![item, words])?;
                one.commit()
            })();
            done.map_err(refused)?;
            // From commit to commit: what lies between two transactions is theirs.
            let now = SystemClock.now_ns();
            latencies.saturating_record(now.saturating_sub(before));
            before = now;
        }
        // The last connection carries a write-ahead log over into the database.
        connection.close().map_err(|(_, error)| refused(error))?;
        let elapsed_ns = SystemClock.now_ns().saturating_sub(began);
        let rate = metric::per_second(self.transactions, elapsed_ns);
        let latency = |which| Some(metric::figure(&latencies, 0, which));
        let why = format!("version {}", rusqlite::version());
        Ok(PhaseOutcome {
            reported: vec![rate, latency(Latency::P50), latency(Latency::P99)],
            ..PhaseOutcome::of_program("SQLite", why, elapsed_ns, SLICE_NS)
        })
    }
}
