//! What a check is.

use super::judgement::CheckFinding;
use super::reading::TrialReading;

/// One check of a trial.
#[derive(Debug)]
pub struct AuditCheck {
    /// Its name, as a heading of a column.
    pub name: &'static str,
    /// The question it answers.
    pub question: &'static str,
    /// True if it looks for what limits the rate, not for what spoils a figure.
    pub limits: bool,
    /// Its rank among all checks, 1 the first; no two share one. Where a trial has several limits,
    /// the check of the lowest rank names it; notes and columns follow the same order.
    pub(super) priority: u8,
    /// Judges one trial; `None` if its counters are missing, or it does not apply.
    pub(super) judge: fn(&TrialReading<'_>) -> Option<CheckFinding>,
}
