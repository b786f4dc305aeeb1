//! Runs entered into the database: each in one transaction, any number of times.

use postgres::types::Type;
use postgres::{Client, Error, Transaction};

use super::address::TeamAddress;
use super::connection::{connect, failed, is_known, version};
use super::fill::{enter, without_nul};
use super::limited::Allowance;
use super::{SCHEMA, TABLES};
use crate::export;
use stackrace_base::failure::Failure;
use stackrace_results::record::{Record, RunSummary};

/// Number of the lock that is held while the tables are made: two may push into a new database at once. Any number does
/// that no other program is likely to use.
const MAKING: i64 = 0x7374_6163_6b72;
/// Bytes that an answer of the server may have: pushing asks for single rows.
const ANSWER_MAX: u64 = 1 << 20;
/// Tables of the export that are kept beside the lines, and whether they have levels of factors.
pub(super) const KEPT: [(&str, bool); 3] = [
    ("environment", false),
    ("trials", true),
    ("observations", true),
];

/// A run as it is read from a store, before it is entered.
pub struct PushedRun<'a> {
    /// Whole lines of its log, as they are in the file.
    pub log: &'a [u8],
    /// The same, understood.
    pub record: &'a Record,
    /// Summary of the run in a list.
    pub summary: &'a RunSummary,
}

/// Outcome of pushing a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushing {
    /// The run was not there; so many lines were entered.
    Entered(usize),
    /// The run was there in part; so many lines were added.
    Added(usize),
    /// All of it was there; only its tags were entered.
    Tags,
    /// All of it was there.
    Nothing,
}

/// A database that is written to.
pub struct TeamWriter {
    client: Client,
    address: TeamAddress,
}

impl TeamWriter {
    /// Connects, and makes the tables where there are none.
    ///
    /// # Errors
    /// The server refuses, or the tables are of another version. Nothing is changed then.
    pub fn open(address: TeamAddress) -> Result<Self, Failure> {
        let mut client = connect(&address, Allowance::new(ANSWER_MAX))?;
        let found =
            ready(&mut client).map_err(|error| failed("make the tables in", &address, &error))?;
        is_known(&address, found)?;
        Ok(Self { client, address })
    }

    /// Enters what is not there yet of a run, in one transaction.
    ///
    /// # Errors
    /// Nothing of it was entered, unless the connection broke at the very end: then pushing again
    /// finds it there.
    pub fn push(&mut self, run: &PushedRun<'_>) -> Result<Pushing, Failure> {
        let id = &run.record.head.run;
        let cannot = |error: &Error| failed(&format!("enter run {id} into"), &self.address, error);
        let mut work = self.client.transaction().map_err(|error| cannot(&error))?;
        let there = Standing::of(&mut work, run).map_err(|error| cannot(&error))?;
        let done = match there {
            Standing::Other => {
                return Err(Failure::refused(format!(
                    "{} has another run of the id {id}: its lines differ from those of your log",
                    self.address.shown
                ))
                .next(
                    "nothing of yours was entered; compare the two with: stackrace serve --from ADDRESS",
                ));
            }
            Standing::Whole => match entered_tags(&mut work, run) {
                Ok(0) => Ok(Pushing::Nothing),
                Ok(_) => Ok(Pushing::Tags),
                Err(error) => Err(error),
            },
            Standing::Until { lines, bytes } => lengthen(&mut work, run, lines, bytes),
        };
        let done = done.map_err(|error| cannot(&error))?;
        work.commit().map_err(|error| cannot(&error))?;
        Ok(done)
    }
}

/// Makes the tables where there are none; the version of those that are there.
fn ready(client: &mut Client) -> Result<i32, Error> {
    if let Some(version) = version(client)? {
        return Ok(version);
    }
    let mut work = client.transaction()?;
    work.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING])?;
    // Another one may have made them while this one waited.
    if let Some(version) = version(&mut work)? {
        return Ok(version);
    }
    // All or none: what a kill interrupts here leaves the database as it was.
    work.batch_execute(TABLES)?;
    work.execute(
        "INSERT INTO stackrace.schema_version VALUES ($1)",
        &[&SCHEMA],
    )?;
    work.commit()?;
    Ok(SCHEMA)
}

/// Part of a run that is in the database.
enum Standing {
    /// The first lines of the log; none of them: a new run.
    Until { lines: i64, bytes: usize },
    /// All of it, or more than this log has: it was pushed again while this one was read.
    Whole,
    /// Lines that this log does not have.
    Other,
}

impl Standing {
    /// Looks, and keeps others from entering the run until the transaction ends.
    fn of(work: &mut Transaction<'_>, run: &PushedRun<'_>) -> Result<Self, Error> {
        let head = &run.record.head;
        // Waits where another one is entering the same run.
        work.execute(
            "INSERT INTO stackrace.runs (run, lines, bytes, log_hash, format, stackrace, title, study,
                 study_hash, configurations, workloads, rounds, trials, tags)
             VALUES ($1, 0, 0, '', 0, '', '', '', '', '{}', 0, 0, 0, '{}') ON CONFLICT (run) DO NOTHING",
            &[&head.run],
        )?;
        let row = work.query_one(
            "SELECT lines, bytes, log_hash FROM stackrace.runs WHERE run = $1 FOR UPDATE",
            &[&head.run],
        )?;
        let (lines, bytes, hash) = (
            row.try_get(0)?,
            row.try_get::<_, i64>(1)?,
            row.try_get::<_, String>(2)?,
        );
        // Just made, by this transaction: no other one sees it yet.
        if lines == 0 {
            return Ok(Self::Until { lines: 0, bytes: 0 });
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(match run.log.get(..bytes) {
            Some(known) if hash_of(known) != hash => Self::Other,
            Some(known) if known.len() == run.log.len() => Self::Whole,
            Some(_) => Self::Until { lines, bytes },
            // It has more. The first of it must still be what this log says.
            None => match begins_with(work, run)? {
                true => Self::Whole,
                false => Self::Other,
            },
        })
    }
}

/// Returns true if the lines that are there begin with those of the log.
fn begins_with(work: &mut Transaction<'_>, run: &PushedRun<'_>) -> Result<bool, Error> {
    for (number, line) in (0_i64..).zip(lines(run.log)) {
        let same = work.query_opt(
            "SELECT 1 FROM stackrace.log_lines WHERE run = $1 AND number = $2 AND line = $3",
            &[&run.record.head.run, &number, &line],
        )?;
        if same.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the lines behind those that are there, and makes the rows anew that follow from them.
fn lengthen(
    work: &mut Transaction<'_>,
    run: &PushedRun<'_>,
    known: i64,
    bytes: usize,
) -> Result<Pushing, Error> {
    let id = &run.record.head.run;
    let copy = work.copy_in("COPY stackrace.log_lines (run, number, line) FROM STDIN BINARY")?;
    let types = [Type::TEXT, Type::INT8, Type::BYTEA];
    let mut writer = postgres::binary_copy::BinaryCopyInWriter::new(copy, &types);
    let mut count = known;
    for line in lines(&run.log[bytes..]) {
        writer.write(&[id, &count, &line])?;
        count += 1;
    }
    // Until here the server has only taken them in; this is where it may refuse.
    writer.finish()?;
    let records = std::slice::from_ref(run.record);
    for (name, has_levels) in KEPT {
        // Anew, not added to: a row may change with a later line.
        if known > 0 {
            work.execute(
                &format!("DELETE FROM stackrace.{name} WHERE run = $1"),
                &[id],
            )?;
        }
        if let Some(table) = export::ALL.iter().find(|table| table.name == name) {
            enter(work, name, (table.of)(records), has_levels)?;
        }
    }
    describe(work, run, count)?;
    entered_tags(work, run)?;
    let added = usize::try_from(count - known).unwrap_or(0);
    Ok(match known {
        0 => Pushing::Entered(added),
        _ => Pushing::Added(added),
    })
}

/// Writes the row of the run in the list of runs.
fn describe(work: &mut Transaction<'_>, run: &PushedRun<'_>, lines: i64) -> Result<(), Error> {
    let (head, summary) = (&run.record.head, run.summary);
    let ended = run.record.ended();
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let text = |text: &str| {
        let mut text = text.to_owned();
        without_nul(&mut text);
        text
    };
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let configurations: Vec<String> = summary
        .configurations
        .iter()
        .map(|name| text(name))
        .collect();
    work.execute(
        "UPDATE stackrace.runs SET lines = $2, bytes = $3, log_hash = $4, format = $5, stackrace = $6,
             title = $7, study = $8, study_hash = $9, started_at = $10, ended_at = $11, ended = $12,
             configurations = $13, workloads = $14, rounds = $15, trials = $16, sentence = $17,
             pushed_at = now(), pushed_by = current_user
         WHERE run = $1",
        &[
            &head.run,
            &lines,
            &count(run.log.len()),
            &hash_of(run.log),
            &i32::try_from(head.format).unwrap_or(i32::MAX),
            &text(&head.stackrace),
            &text(&head.title),
            &text(&head.study_name),
            &text(&head.study_hash),
            &time(run.record.started_at()),
            &ended.and_then(|ended| time(ended.at)),
            &ended.map(|ended| text(ended.reason)),
            &configurations,
            &count(summary.workloads),
            &count(summary.rounds),
            &count(summary.trials),
            &summary.sentence.as_deref().map(text),
        ],
    )
    .map(drop)
}

/// Enters the tags where they differ; how many rows were changed.
fn entered_tags(work: &mut Transaction<'_>, run: &PushedRun<'_>) -> Result<u64, Error> {
    work.execute(
        "UPDATE stackrace.runs SET tags = $2 WHERE run = $1 AND tags <> $2",
        &[&run.record.head.run, &run.summary.tags],
    )
}

/// The lines, each with its line break.
fn lines(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    log.split_inclusive(|&byte| byte == b'\n')
}

pub(super) fn hash_of(log: &[u8]) -> String {
    blake3::hash(log).to_hex().to_string()
}
