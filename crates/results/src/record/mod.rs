//! What happened, kept: an append-only log per run, and an index for people who query.
//!
//! The log is the truth: one directory per run, one JSON object a line, each finished trial on
//! the disk before the next begins (`docs/formats/log.md`). The SQLite index beside it is derived
//! (`docs/formats/index.md`): it can be thrown away and rebuilt, and a failing index never fails a
//! run. This is the only room that writes results and the only one that speaks SQL.

mod error;
#[cfg_attr(not(feature = "sqlite"), path = "no_index.rs")]
mod index;
mod listed;
mod log;
mod losses;
mod now;
mod read;
mod skim;
mod source;
mod store;
mod summary;
mod tags;

pub use error::RecordError;
pub use index::Index;
pub use log::Log;
pub use losses::RecordedLoss;
pub use now::{Now, NowFile};
pub use read::{AlteredRound, Record};
pub use skim::{RecordSkim, RunMarks};
pub use source::{RunSource, StoredRuns};
pub use store::{LogVersion, Store, run_id};
pub use summary::RunSummary;

#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(any(test, feature = "testing"))]
pub use testing::{sample, sample_cuts};
#[cfg(test)]
mod tests;
