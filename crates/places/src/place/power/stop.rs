//! How a turn whose power is cut ends early.

use stackrace_run::run::{Broken, Turned};

/// The run stops, or nothing more can be recorded.
pub(super) enum Stop {
    /// The run can be resumed.
    Turned(Turned),
    /// The record takes no more.
    Broken(Broken),
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// The run stops, for this reason; it can be resumed.
pub(super) fn lost(why: impl std::fmt::Display) -> Stop {
    // As where a machine is lost for any other reason: what is on record stays.
    Stop::Turned(Turned::Lost(why.to_string()))
}
