//! In one go or in slices: the one place that decides how a workload is measured in a round.

use stackrace_stats::FIRST_LOOK;

use stackrace_base::event::FactFigure;
use stackrace_load::workload::Slicing;
use stackrace_results::record::Record;
use stackrace_study::study::Study;

/// Way in which the trials of a workload are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialKind {
    /// Trials that are measured in one go each.
    Whole,
    /// Trials whose configurations take turns of so many ns.
    Sliced(u64),
}

impl TrialKind {
    /// Returns true if a trial on record is of this kind.
    pub(super) fn is_of(self, sliced: bool) -> bool {
        matches!(self, Self::Sliced(_)) == sliced
    }
}

/// The limit of a control group because of which reads are measured in one go although nothing in the
/// study says so: what hands out I/O in portions makes slices noisier than trials in one go.
pub(super) fn io_limit<'a>(study: &Study, record: &'a Record) -> Option<&'a str> {
    let chosen = study.policy.slices.is_none_or(|slices| slices.writes);
    let mut facts = record.head.environment.iter();
    let limit = facts.find(|fact| fact.figure == Some(FactFigure::IoLimit));
    limit.map(|fact| fact.value.as_str()).filter(|_| !chosen)
}

/// Returns how a workload, by its index, is measured in a round, in this order, where the executor can measure in
/// slices.
pub(super) fn trial_kinds(
    study: &Study,
    record: &Record,
    workload: usize,
    round: u32,
) -> Vec<TrialKind> {
    let Some(slices) = study.policy.slices else {
        return vec![TrialKind::Whole];
    };
    // Slices that ended do so for the rest of the run, also for reads.
    let sliced = TrialKind::Sliced(slices.ns);
    let mut ended = record.slices_ended();
    match study.slicing(workload) {
        Slicing::Never => vec![TrialKind::Whole],
        _ if io_limit(study, record).is_some() => vec![TrialKind::Whole],
        _ if ended.any(|(_, ended)| ended.workload == workload) => vec![TrialKind::Whole],
        Slicing::Writes if round <= FIRST_LOOK => {
            let mut both = vec![TrialKind::Whole, sliced];
            // Neither kind always finds what the other one left.
            both.rotate_left((round % 2) as usize);
            both
        }
        Slicing::Writes | Slicing::Reads => vec![sliced],
    }
}
