//! Operations that are promised something: each is noted with its instants, and says what it is.
//!
//! An operation is acknowledged when the last call of its idiom returned: the `fsync` after a
//! write, the `fsync` of the directory after a rename. A [`PromiseRecord`] has both instants on the
//! monotonic clock, so that a reader who knows when the power went knows what had to survive. Each
//! 512 bytes of content name their object, offset and generation ([`content`]).
//!
//! Each thread has objects of its own, so that the generation of a place is known without a lock.
//! Noting an operation and making its content are not part of any latency.

pub mod content;
mod job;
mod lay;
mod plan;
mod sequence;
mod told;

use rustix::io::Errno;

use crate::control::Control;
pub use crate::outcome::PromiseRecord;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, PhaseOptions, Worker, WorkerPool, alone, refusal};
use content::PromisedContent;
use job::PromisedWork;
use lay::Handles;
pub use plan::{Idiom, OPERATION_BYTES_MAX, OPERATIONS_MAX, PromisesPlan};
use sequence::ObjectDraw;
use stackrace_system::monotonic_ns;
pub use told::Acknowledged;

/// Writes a row of a database with its new content, and returns when the transaction is committed.
pub type Commit<'a> = dyn FnMut(u32, &[u8]) -> Result<(), CommitError> + 'a;

/// Reason why a database did not commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{said}")]
pub struct CommitError {
    /// What it says.
    pub said: String,
    /// Error of the system that it stands for (raw errno); 0 if it tells none.
    pub errno: i32,
}

impl PromisesPlan {
    /// Runs the phase on what [`PromisesPlan::lay_out`] made. Its ledger is
    /// [`PhaseOutcome::promised`], in the order in which operations were begun; `told` hears of each
    /// at once.
    ///
    /// # Errors
    /// The plan makes no sense, what was laid out is missing, or memory is short. A failed
    /// operation is in [`PhaseOutcome::error`] instead.
    pub fn run(
        &self,
        slice_ns: u64,
        control: &Control,
        told: Option<&dyn Acknowledged>,
    ) -> Result<PhaseOutcome, OpError> {
        self.check()?;
        if self.idiom == Idiom::Database {
            return Err(self.refused("a database does its transactions itself"));
        }
        let handles = Handles::open(self)?;
        let content = PromisedContent::new(self.seed);
        let mut ledgers: Vec<Vec<PromiseRecord>> = Vec::new();
        for thread in 0..self.threads {
            let mut ledger = Vec::new();
            // Twice: a mail queue removes as many as it takes.
            let lines = 2 * self.share(thread) as usize;
            ledger
                .try_reserve_exact(lines)
                .map_err(|_| self.refused(format!("no memory for a ledger of {lines} lines")))?;
            ledgers.push(ledger);
        }
        let parts = (0..).zip(ledgers.iter_mut()).collect();
        let ops = [self.idiom.op(), Op::Unlink];
        let workers = WorkerPool {
            watch: PhaseOptions {
                slice_ns,
                control,
                ops: &ops,
            },
            why: "plain calls, one after the other, as programs make them".to_owned(),
            root: &self.root,
            keep: Some(handles.all()),
        };
        let work = |(thread, ledger): (u32, &mut Vec<PromiseRecord>), worker: &mut Worker<'_>| {
            PromisedWork {
                plan: self,
                handles: &handles,
                content: &content,
                thread,
                ledger,
                told,
            }
            .run(worker)
        };
        // SAFETY: the work uses the handles, the descriptors of `keep`, and what it opens.
        let outcome = unsafe { workers.together(parts, work, None) }?;
        Ok(PhaseOutcome {
            promised: in_order(ledgers),
            ..outcome
        })
    }

    /// Runs the phase against a database: `commit` writes a row and returns when the database says
    /// that the transaction is committed. It gets the row, from 0, and its new content.
    ///
    /// # Errors
    /// The plan makes no sense. What `commit` says is in [`PhaseOutcome::error`].
    pub fn run_transactions(
        &self,
        slice_ns: u64,
        control: &Control,
        name: impl Fn(u32) -> String,
        commit: &mut Commit<'_>,
        told: Option<&dyn Acknowledged>,
    ) -> Result<PhaseOutcome, OpError> {
        self.check()?;
        let content = PromisedContent::new(self.seed);
        let mut drawn = ObjectDraw::new(self, 0);
        let mut records = Vec::new();
        let mut buffer = vec![0; self.bytes as usize];
        let watch = PhaseOptions {
            slice_ns,
            control,
            ops: &[Op::Write],
        };
        let why = "transactions of a database, one after the other".to_owned();
        let outcome = alone(watch, why, |worker| {
            for _ in 0..self.operations {
                worker.proceed()?;
                stackrace_system::sleep_ns(self.think_time_ns);
                let (row, generation) = drawn.next();
                let object = name(row);
                content.fill(&mut buffer, &object, 0, generation);
                if let Some(told) = told {
                    told.begins(0);
                }
                let begun_ns = monotonic_ns();
                let done = worker.time(Op::Write, || {
                    commit(row, &buffer).map(|()| u64::from(self.bytes))
                });
                let record = PromiseRecord {
                    worker: 0,
                    op: Op::Write,
                    object,
                    offset: 0,
                    bytes: u64::from(self.bytes),
                    generation,
                    begun_ns,
                    acknowledged_ns: done.is_ok().then(monotonic_ns),
                };
                if let Some(told) = told {
                    told.ended(&record);
                }
                records.push(record);
                done.map_err(|CommitError { said, errno }| {
                    let failed = refusal(Op::Write, &self.root, Errno::IO, said);
                    Halt::from(OpError { errno, ..failed })
                })?;
            }
            Ok(())
        });
        Ok(PhaseOutcome {
            promised: records,
            ..outcome
        })
    }
}

/// The ledgers of all threads as one, in the order in which operations were begun.
fn in_order(ledgers: Vec<Vec<PromiseRecord>>) -> Vec<PromiseRecord> {
    let mut all: Vec<PromiseRecord> = ledgers.into_iter().flatten().collect();
    // Stable: operations of one thread stay in their order, even at one instant.
    all.sort_by_key(|record| record.begun_ns);
    all
}

#[cfg(test)]
#[path = "promises/tests.rs"]
mod tests;
