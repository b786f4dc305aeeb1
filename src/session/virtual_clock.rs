//! The clock of a run in virtual time: which runs have one, and where it goes on.

use std::sync::Arc;

use crate::event::Fact;
use crate::record::Record;
use crate::time::GivenClock;

/// Name of the fact that says a run was made in the lab, and how its value begins in virtual time.
pub(super) const LAB: &str = "lab";
pub(super) const CLOCK: &str = "virtual time";

/// When the clock of every run begins.
const EPOCH: &str = "2026-01-01T00:00:00Z";

/// The clock of a new run; none: there is no such time of day.
pub(super) fn begin() -> Option<Arc<GivenClock>> {
    GivenClock::at(EPOCH).map(Arc::new)
}

/// Whether a run was made in virtual time.
pub(crate) fn made(record: &Record) -> bool {
    Fact::value_of(&record.head.environment, LAB).is_some_and(|made| made.starts_with(CLOCK))
}

/// The clock of a run in virtual time, as it stood when the run stopped; none: it had another.
pub(super) fn of(record: &Record) -> Option<Arc<GivenClock>> {
    // The last line is the last moment of the run's own time.
    let last = record.lines.last().filter(|_| made(record))?;
    GivenClock::at(&last.at).map(Arc::new)
}
