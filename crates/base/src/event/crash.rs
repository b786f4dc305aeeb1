//! What was promised, what a power cut took, and how a machine came back.
//!
//! A ledger has one line for each operation: what it was promised, when it was begun and when it was
//! acknowledged. It is kept outside of what is cut. After a cut, a checker compares what is there
//! with the ledger. Instants are ns on the monotonic clock of the machine that did the operation.

use serde::{Deserialize, Serialize};

/// Promise of an operation when it was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Nothing: it is in the page cache, or a transaction that may be lost by its settings.
    None,
    /// `fsync` of the file: its content. A new file may still be without its name.
    Fsync,
    /// `fdatasync` of the file: its content, and the size needed to read it.
    Fdatasync,
    /// Written with `O_DSYNC`: as after `fdatasync`.
    Dsync,
    /// `fsync` of the file and then of its directory: content and name.
    DirectorySync,
    /// `fsync` of the file, then `rename` over the old one: all of the old or all of the new.
    Rename,
    /// A database said that the transaction is committed.
    Commit,
    /// A file was closed on a network file system.
    Close,
}

impl Promise {
    /// The word as it is written in the log and in every table.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Dsync => "O_DSYNC",
            Self::DirectorySync => "fsync of file and directory",
            Self::Rename => "fsync and rename",
            Self::Commit => "commit",
            Self::Close => "close",
        }
    }
}

/// Kinds of operations that a trial promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// Laid out and synced before the clock started; nothing touches it afterwards.
    AtRest,
    /// Part of a file was written over.
    Overwrite,
    /// A record was added at the end of a file.
    Append,
    /// A file was replaced by a new one of the same name.
    Replace,
    /// A new file was made.
    Create,
    /// A message was taken into the queue of a mail server.
    Mail,
    /// A file was removed: from its beginning on, the file may be missing.
    Remove,
    /// A transaction of a database wrote a row.
    Transaction,
}

/// One operation, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Number of the operation, in the order in which they were begun; data at rest come first.
    pub number: u64,
    /// Thread that did it, from 0.
    pub worker: u32,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// File, relative to the directory of the trial; of a database: its file or its name, `#` and the row.
    // One text for files and rows: what is lost is named as a person would look for it.
    pub object: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Amount it wrote, bytes.
    pub bytes: u64,
    /// Generation of what it wrote, from 1: each write of the same place has a higher one.
    pub generation: u32,
    /// Promise given to it.
    pub promise: Promise,
    /// Time when it was begun, ns.
    pub begun_ns: u64,
    /// Time when it was acknowledged, ns; `None` if it was not.
    // Operations in flight stay in the ledger: the old and the new are both right after a cut.
    pub acknowledged_ns: Option<u64>,
}

/// The ledger of one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promised {
    /// Round, from 1.
    pub round: u32,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// Seed the contents follow from: it tells the files of this trial from all others.
    pub seed: u64,
    /// Directory of the trial, which is cut.
    pub directory: String,
    /// Every operation.
    pub lines: Vec<LedgerLine>,
}

/// Number of lines of a ledger that make one piece: about 2.5 MiB.
pub const LEDGER_LINES: usize = 10_000;

impl Promised {
    /// The same ledger in pieces, each of which fits into one message and one record; `None` if it has no line.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Self> {
        self.lines.chunks(LEDGER_LINES).map(|lines| Self {
            directory: self.directory.clone(),
            lines: lines.to_vec(),
            ..*self
        })
    }
}

/// Ways a promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The content is not there: no file, a file that ends before it, or zeros.
    Lost,
    /// Part of it is there.
    Torn,
    /// Older content is there, whole.
    Stale,
    /// The content of another place is there.
    Misplaced,
    /// The content of another place is there, and that place has what belongs here.
    Swapped,
    /// Data at rest, which nothing had touched, are damaged.
    Collateral,
}

impl Loss {
    /// All kinds, in the order of every table.
    pub const ALL: [Self; 6] = [
        Self::Lost,
        Self::Torn,
        Self::Stale,
        Self::Misplaced,
        Self::Swapped,
        Self::Collateral,
    ];

    /// The word as it is written in the log and in every table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Stale => "stale",
            Self::Misplaced => "misplaced",
            Self::Swapped => "swapped",
            Self::Collateral => "collateral",
        }
    }
}

/// A promise that a cut broke, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossLine {
    /// The operation and its promise.
    pub ledger: LedgerLine,
    /// Way it was broken.
    pub loss: Loss,
    /// True if an operation that was begun after its acknowledgement survived.
    // A flag beside the kind: a lost operation stays a lost one for its reader.
    pub reordered: bool,
    /// Finding, in plain words.
    pub found: String,
}

/// Numbers of promises broken in each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCounts {
    /// [`Loss::Lost`].
    pub lost: u64,
    /// [`Loss::Torn`].
    pub torn: u64,
    /// [`Loss::Stale`].
    pub stale: u64,
    /// [`Loss::Misplaced`].
    pub misplaced: u64,
    /// [`Loss::Swapped`].
    pub swapped: u64,
    /// [`Loss::Collateral`].
    pub collateral: u64,
    /// Number of these after which a later operation survived.
    pub reordered: u64,
}

impl LossCounts {
    /// Number of promises that were broken in this way.
    pub fn of(&self, loss: Loss) -> u64 {
        match loss {
            Loss::Lost => self.lost,
            Loss::Torn => self.torn,
            Loss::Stale => self.stale,
            Loss::Misplaced => self.misplaced,
            Loss::Swapped => self.swapped,
            Loss::Collateral => self.collateral,
        }
    }

    /// Counts one more broken promise.
    pub fn add(&mut self, loss: Loss, reordered: bool) {
        let count = match loss {
            Loss::Lost => &mut self.lost,
            Loss::Torn => &mut self.torn,
            Loss::Stale => &mut self.stale,
            Loss::Misplaced => &mut self.misplaced,
            Loss::Swapped => &mut self.swapped,
            Loss::Collateral => &mut self.collateral,
        };
        *count += 1;
        self.reordered += u64::from(reordered);
    }

    /// Adds those of another cut.
    pub fn merge(&mut self, other: &Self) {
        self.lost += other.lost;
        self.torn += other.torn;
        self.stale += other.stale;
        self.misplaced += other.misplaced;
        self.swapped += other.swapped;
        self.collateral += other.collateral;
        self.reordered += other.reordered;
    }

    /// Number of promises that were broken, in all ways together.
    pub fn all(&self) -> u64 {
        Loss::ALL.into_iter().map(|loss| self.of(loss)).sum()
    }
}

/// Number of broken promises of one cut that are kept with all details, the first ones; all are counted.
pub const LOSSES_KEPT: usize = 100;

/// Findings of a checker after a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedPromises {
    /// Operations that had a promise, and were acknowledged when the power went.
    pub promised: u64,
    /// Promises that were broken.
    pub counts: LossCounts,
    /// The first [`LOSSES_KEPT`] of them.
    // A stack that loses everything would fill the log with one cut.
    pub losses: Vec<LossLine>,
    /// Operations without a promise that were done when the power went and are not there.
    pub unpromised_lost: u64,
    /// Age of the oldest of those, ns before the cut.
    pub unpromised_ns: u64,
    /// Acknowledged operations whose promise was broken, data at rest not counted.
    pub rpo_operations: u64,
    /// Time from the acknowledgement of the first of them to the cut, ns: work of that time is lost.
    pub rpo_ns: u64,
}

/// Recovery of a machine after a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// True if the stack could be set up and mounted at all, with or without repair.
    pub mounted: bool,
    /// True if it came back only by a decision or a command of an operator.
    pub needed_operator: bool,
    /// The commands of repair that were needed, as typed.
    pub repair: Vec<String>,
    /// Time from the first command to the mounted file system, or to the answering server of a database, ns.
    pub mount_ns: u64,
    /// Message of the system where it could not be mounted, or the server of a database did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Verbatim: it is what an administrator would search for.
    pub refused: Option<String>,
}

/// One cut, and what was found afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Round, from 1.
    pub round: u32,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// Number of the cut within the configuration, from 1.
    pub number: u32,
    /// Seed the drives drew from: the same seed and instant give the same crash image.
    pub seed: u64,
    /// Time, ns, on the clock of the ledger.
    pub at_ns: u64,
    /// Stratum the instant was drawn from: `anywhere`, `flush`, `journal commit` …
    pub stratum: String,
    /// Thing that was cut: `all machines`, `this machine`, `the line`, or the name of a real machine.
    pub of: String,
    /// Recovery after it.
    pub recovery: Recovery,
    /// Findings; `None` if it could not be mounted.
    // Not an empty finding: that would read as a promise that was looked for and kept.
    pub found: Option<CheckedPromises>,
}

impl Cut {
    /// Returns true if anything that was promised is gone: a file system that cannot be mounted keeps none.
    pub fn broke_a_promise(&self) -> bool {
        self.found
            .as_ref()
            .is_none_or(|found| found.counts.all() > 0)
    }
}
