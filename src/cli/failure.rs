//! Exit codes of commands that end well and still have something to say.

pub(super) use stackrace_base::failure::{Failure, INTERRUPTED, THREADS};

/// Refused before anything was touched, or would be (`plan`).
pub(super) const REFUSED: u8 = 3;
/// This machine cannot do it.
pub(super) const UNABLE: u8 = 4;
/// A trial did not end, or ended with an error.
pub(super) const TRIAL_FAILED: u8 = 5;
/// Undecided (only with `--decide`, `gate`, and where something is required).
pub(super) const UNDECIDED: u8 = 6;
/// Shown to be worse than allowed (`gate`), or than required.
pub(super) const WORSE: u8 = 7;
