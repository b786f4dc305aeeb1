//! In one go or in slices: the one place that decides how a workload is measured in a round.

use crate::study::Study;
use crate::workload::Slicing;

/// How the trials of a workload are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialKind {
    /// Each in one go.
    Whole,
    /// The configurations take turns of so many ns.
    Sliced(u64),
}

impl TrialKind {
    /// Whether a trial on record is of this kind.
    pub(super) fn is_of(self, sliced: bool) -> bool {
        matches!(self, Self::Sliced(_)) == sliced
    }
}

/// How a workload, by its index, is measured where the executor can measure in slices.
pub(super) fn trial_kind(study: &Study, workload: usize) -> TrialKind {
    match (study.slicing(workload), study.policy.slices) {
        (Slicing::Reads, Some(slices)) => TrialKind::Sliced(slices.ns),
        _ => TrialKind::Whole,
    }
}
