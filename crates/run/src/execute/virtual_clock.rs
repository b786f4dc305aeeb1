//! The clock of a run in virtual time: which runs have one, and where it goes on.

use std::sync::Arc;

use stackrace_base::time::GivenClock;
use stackrace_results::record::Record;

/// Time at which the clock of every run begins.
const EPOCH: &str = "2026-01-01T00:00:00Z";

/// Returns the clock of a new run; `None` if there is no such time of day.
pub fn begin() -> Option<Arc<GivenClock>> {
    GivenClock::at(EPOCH).map(Arc::new)
}

/// Returns true if a run was made in virtual time.
pub fn made(record: &Record) -> bool {
    record.head.place().in_virtual_time()
}

/// Returns the clock of a run in virtual time, as it stood when the run stopped; `None` if it had another.
pub fn of(record: &Record) -> Option<Arc<GivenClock>> {
    // The last line is the last moment of the run's own time.
    let last = record.lines.last().filter(|_| made(record))?;
    GivenClock::at(&last.at).map(Arc::new)
}
