//! Operations that are promised to survive a power cut, done as programs do them.
//!
//! Each operation is an idiom: the calls that a program makes until it believes its data safe. Its
//! latency is the time until it is acknowledged. Each leaves a line in a ledger: what was promised,
//! when it was begun, when it was acknowledged. So the same trial measures speed, and says what must
//! be there if the power goes at any instant of it. Its contents name their file, offset and
//! generation. Files at rest lie beside them: nothing touches them, and nothing may damage them.
//!
//! What each idiom is promised: docs/workloads/promises.md.

mod asked;
pub mod database;
#[cfg_attr(not(feature = "postgresql"), path = "promises/absent.rs")]
mod postgresql;
#[cfg_attr(not(feature = "sqlite"), path = "promises/absent.rs")]
mod sqlite;

use std::fmt::Display;
use std::ops::RangeInclusive;

use database::{ChosenDatabase, DatabaseKind};
use stackrace_engine::promises::{
    Acknowledged, Idiom, OPERATION_BYTES_MAX, OPERATIONS_MAX, PromiseRecord, PromisesPlan,
};
use stackrace_engine::{Op, PhaseOutcome};

use super::block::at_least_one;
use super::block::words::block_size;
use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{self, Figure, Latency};
use stackrace_base::event::{Better, LedgerLine, MetricHead, OperationKind, OperationsOf, Promise};
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_machine::host::Needs;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "promises",
    summary: "operations that must survive a power cut: fsync, rename, mail queue, transactions",
    source: "the manual pages of fsync, open and rename, and how mail servers, SQLite and PostgreSQL use them",
    settings: &[
        IDIOM.doc.required(),
        SettingDoc::count("operations", "1000", "Operations over all threads."),
        block_size("4 KiB"),
        SettingDoc::count(
            "objects",
            "64",
            "Blocks, files or rows that each thread works on; messages in its mail queue.",
        ),
        SettingDoc::count(
            "at-rest",
            "16",
            "Files of 64 KiB beside them that nothing touches.",
        ),
        SettingDoc::count("threads", "1", "Threads; a database has one."),
        SettingDoc::time(
            "think-time",
            "0 s",
            "Pause of a thread before each operation, not part of its latency.",
        ),
        database::SETTINGS[0],
        database::SETTINGS[1],
        database::SETTINGS[2],
        database::SETTINGS[3],
        database::SETTINGS[4],
    ],
    example: "promises = { idiom = \"append-fdatasync\", operations = 1000 }",
    parse: |settings| Ok(Box::new(Promises::parse(settings)?)),
    operations: OperationsOf::Promised,
    ..WorkloadKind::PLAIN
};

/// Meaning of each word: the idiom, what its operations are, what they are promised, and the
/// database that carries it out.
const IDIOM: ChoiceDoc<(Idiom, OperationKind, Promise, Option<DatabaseKind>)> = choice!(
    "idiom",
    [
        "overwrite-fsync" => (Idiom::OverwriteFsync, OperationKind::Overwrite, Promise::Fsync, None),
        "overwrite-dsync" => (Idiom::OverwriteDsync, OperationKind::Overwrite, Promise::Dsync, None),
        "append-fdatasync" => (Idiom::AppendFdatasync, OperationKind::Append, Promise::Fdatasync, None),
        "append" => (Idiom::AppendPlain, OperationKind::Append, Promise::None, None),
        "replace" => (Idiom::Replace, OperationKind::Replace, Promise::DirectorySync, None),
        "replace-no-dirsync" => (Idiom::ReplaceNoDirectorySync, OperationKind::Replace, Promise::Rename, None),
        "create" => (Idiom::Create, OperationKind::Create, Promise::DirectorySync, None),
        "create-no-dirsync" => (Idiom::CreateNoDirectorySync, OperationKind::Create, Promise::Fsync, None),
        "mail-queue" => (Idiom::MailQueue, OperationKind::Mail, Promise::DirectorySync, None),
        "sqlite" => of_database(DatabaseKind::Sqlite),
        "postgresql" => of_database(DatabaseKind::Postgresql),
    ],
    "",
    "What is done, until it is acknowledged.",
);

/// Meaning of the word of a database.
const fn of_database(kind: DatabaseKind) -> (Idiom, OperationKind, Promise, Option<DatabaseKind>) {
    (
        Idiom::Database,
        OperationKind::Transaction,
        Promise::Commit,
        Some(kind),
    )
}

#[derive(Debug)]
struct Promises {
    word: &'static str,
    idiom: Idiom,
    kind: OperationKind,
    promise: Promise,
    operations: u64,
    bytes: u32,
    objects: u32,
    at_rest: u32,
    threads: u32,
    think_time_ns: u64,
    database: Option<ChosenDatabase>,
}

impl Promises {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let chosen = settings.choice(IDIOM)?;
        let (idiom, kind, promise, database) = chosen;
        let word = IDIOM.word(chosen);
        let threads = at_least_one(settings, "threads")?;
        let database = ChosenDatabase::parse(settings, database, word)?;
        Ok(Self {
            idiom,
            kind,
            promise,
            operations: within(settings, "operations", 1..=OPERATIONS_MAX)?,
            bytes: operation_bytes(settings)?,
            // Each is a file in some idioms: more take hours to lay out.
            objects: within(settings, "objects", 1..=1_000_000)?,
            at_rest: within(settings, "at-rest", 0..=100_000)?,
            threads,
            think_time_ns: settings.time_ns("think-time")?,
            database,
            word,
        })
    }

    fn plan(&self, place: &Place<'_>) -> PromisesPlan {
        PromisesPlan {
            root: place.directory.to_owned(),
            idiom: self.idiom,
            operations: self.operations,
            threads: self.threads,
            bytes: self.bytes,
            objects: self.objects,
            at_rest: self.at_rest,
            think_time_ns: self.think_time_ns,
            seed: place.seed,
        }
    }

    /// Makes one line of the ledger.
    fn line(&self, record: &PromiseRecord, number: u64, laid_out: bool) -> LedgerLine {
        // What was laid out was synced with its directory before the clock started.
        let (kind, promise) = match record.op {
            _ if laid_out => (OperationKind::AtRest, Promise::DirectorySync),
            Op::Unlink => (OperationKind::Remove, Promise::None),
            _ => (self.kind, self.promise),
        };
        LedgerLine {
            number,
            worker: record.worker,
            kind,
            object: record.object.clone(),
            offset: record.offset,
            bytes: record.bytes,
            generation: record.generation,
            promise,
            begun_ns: record.begun_ns,
            acknowledged_ns: record.acknowledged_ns,
        }
    }
}

/// A count within limits, with the nearest that can be.
fn within<T>(settings: &Settings, name: &str, limits: RangeInclusive<T>) -> Result<T, Refusal>
where
    T: TryFrom<u64> + PartialOrd + Display + Into<u64> + Copy,
{
    let (low, high) = ((*limits.start()).into(), (*limits.end()).into());
    let count = settings.count(name)?;
    settings
        .within(name, count, limits)
        .map_err(|refusal| Refusal {
            help: format!("the nearest is {}", count.clamp(low, high)),
            ..refusal
        })
}

/// Bytes of one operation: whole sectors, because each says what it is.
fn operation_bytes(settings: &Settings) -> Result<u32, Refusal> {
    let bytes = settings.bytes("block-size")?;
    let limit = u64::from(OPERATION_BYTES_MAX);
    if bytes.is_multiple_of(512) && (1..=limit).contains(&bytes) {
        return Ok(bytes as u32);
    }
    // Rounded up: an operation that is asked for is never made smaller.
    let nearest = bytes.div_ceil(512).clamp(1, limit / 512) * 512;
    Err(settings.refuse(
        "block-size",
        "block-size must be a multiple of 512 B, at most 1 MiB: each 512 bytes say what they are",
        format!("the nearest is {}", unit::bytes(nearest)),
    ))
}

/// Kind of the operations that a sender waits for.
const ACKNOWLEDGED: &str = "acknowledged";

impl Workload for Promises {
    fn operations_most(&self, op: &str) -> Option<u64> {
        (op == ACKNOWLEDGED).then_some(self.operations)
    }

    fn summary(&self) -> String {
        let database = self.database.as_ref().map(ChosenDatabase::summary);
        let database = database.map_or(String::new(), |database| format!(", {database}"));
        format!(
            "{} operations {} of {} on {} objects, {}{database}; promised: {}",
            unit::count(self.operations),
            self.word,
            unit::bytes(u64::from(self.bytes)),
            unit::count(self.objects.into()),
            unit::counted(self.threads as usize, "thread"),
            self.promise.word(),
        )
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let op = self.idiom.op();
        // Removals of a mail queue are no operations that a sender waits for.
        let rate = move |outcome: &PhaseOutcome| {
            let done = metric::of(outcome, op)?.count;
            metric::per_second(done, outcome.elapsed_ns)
        };
        let latency = |which| {
            let head = metric::named_latency_head(ACKNOWLEDGED, which);
            Figure::of(head, move |outcome| metric::latency(outcome, op, which))
        };
        vec![
            Figure::of(MetricHead::new("operations", "op/s", Better::Higher), rate),
            latency(Latency::P50),
            latency(Latency::P99),
            Figure::elapsed(),
        ]
    }

    fn cost(&self) -> Cost {
        let bytes = u64::from(self.bytes);
        // Each thread has objects of its own.
        let objects = u64::from(self.objects) * u64::from(self.threads);
        let rest = u64::from(self.at_rest) * (64 << 10);
        let written = self.operations * bytes;
        let (laid, made) = match self.idiom.op() {
            Op::Append => (0, 0),
            Op::Create => (0, self.operations),
            _ => (objects * bytes, objects),
        };
        let overhead = self.database.as_ref();
        let overhead = overhead.map(|database| database.overhead(self.operations, bytes));
        let (around, parts) = overhead.unwrap_or_default();
        // A small file takes a block of 4 KiB, and its name some more.
        let files = made + u64::from(self.at_rest) + parts;
        Cost {
            prepare_bytes: laid + rest,
            measured_bytes: Some(written),
            disk_bytes: (laid + rest + written + files * 8192 + around).max(1 << 20),
            measured_ns: None,
            files,
            working_set_bytes: laid.max(written),
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["operations"]
    }

    fn needs(&self) -> Needs {
        self.database
            .as_ref()
            .map(ChosenDatabase::needs)
            .unwrap_or_default()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.plan(place).lay_out().map_err(trouble)?;
        match &self.database {
            Some(database) => {
                database.lay_out(place.directory, (self.objects, self.bytes), place.seed)
            }
            None => Ok(()),
        }
    }

    fn measure(&self, _: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.operations(place, None)
    }

    fn measure_told(
        &self,
        _: usize,
        place: &Place<'_>,
        told: &dyn Acknowledged,
    ) -> Result<PhaseOutcome, WorkloadError> {
        self.operations(place, Some(told))
    }

    fn planned(&self, place: &Place<'_>) -> Vec<LedgerLine> {
        let database = self.database.as_ref().map(ChosenDatabase::kind);
        // Without a database there are no rows to be named.
        let row = |row| database.map_or_else(String::new, |kind| kind.object(row));
        self.lines(place, &self.plan(place).planned(row))
    }

    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let kind = self.database.as_ref().map(ChosenDatabase::kind);
        kind.map_or(Ok(()), |kind| kind.end(place.directory))
            .map_err(trouble)
    }

    fn promised(&self, place: &Place<'_>, outcome: &PhaseOutcome) -> Vec<LedgerLine> {
        self.lines(place, &outcome.promised)
    }
}

impl Promises {
    /// Does all operations; `told` hears of each at once.
    fn operations(
        &self,
        place: &Place<'_>,
        told: Option<&dyn Acknowledged>,
    ) -> Result<PhaseOutcome, WorkloadError> {
        let plan = self.plan(place);
        let Some(database) = &self.database else {
            return plan.run(SLICE_NS, place.control, told).map_err(trouble);
        };
        let name = |row| database.kind().object(row);
        // Opened before the clock starts, as a server has it open.
        database.during(place.directory, |commit| {
            plan.run_transactions(SLICE_NS, place.control, name, commit, told)
        })
    }

    /// The ledger: what lay there before, then these operations.
    fn lines(&self, place: &Place<'_>, operations: &[PromiseRecord]) -> Vec<LedgerLine> {
        let mut laid_out = self.plan(place).laid_out();
        if let Some(database) = &self.database {
            // The database is no file of the plan: it lays out its rows itself.
            let rows = (0..self.objects).map(|row| PromiseRecord {
                worker: 0,
                op: Op::Write,
                object: database.kind().object(row),
                offset: 0,
                bytes: u64::from(self.bytes),
                generation: 1,
                begun_ns: 0,
                acknowledged_ns: Some(0),
            });
            laid_out.extend(rows);
        }
        let rest = laid_out.iter().map(|record| (record, true));
        let done = operations.iter().map(|record| (record, false));
        (0..)
            .zip(rest.chain(done))
            .map(|(number, (record, laid_out))| self.line(record, number, laid_out))
            .collect()
    }
}
