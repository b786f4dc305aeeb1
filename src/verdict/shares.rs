//! How the error of a study is shared by its comparisons.

use super::table::ObservationTable;
use crate::event::Until;

/// Error of the overall comparisons, of the whole error of a study that stops when they are decided.
const OVERALL: f64 = 0.8;

/// Error of one comparison of a family, over all looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// Over all workloads.
    pub(super) overall: f64,
    /// On one workload.
    pub(super) workload: f64,
    /// Within levels of another factor: not corrected for their number.
    pub(super) within: f64,
}

impl Shares {
    /// Those of a study; `pairs`: how many comparisons it asks for.
    pub(super) fn of(table: &ObservationTable<'_>, pairs: usize) -> Self {
        let decide = &table.evidence.head.decide;
        let error = 1.0 - decide.confidence;
        let k = table.configurations();
        // Which one is best the data decide, so every pair could have been asked.
        let pairs = if table.evidence.ranks() {
            k * (k - 1) / 2
        } else {
            pairs.max(1)
        } as f64;
        if table.workloads() == 1 {
            return Self {
                overall: error / pairs,
                workload: error / pairs,
                within: error,
            };
        }
        let overall = overall_share(decide.until, table.workloads());
        Self {
            overall: error * overall / pairs,
            workload: error * (1.0 - overall) / pairs / table.workloads() as f64,
            within: error,
        }
    }
}

/// The share of the error that the overall comparisons have; the rest is for single workloads.
pub(crate) fn overall_share(until: Until, workloads: usize) -> f64 {
    match until {
        _ if workloads < 2 => 1.0,
        Until::Overall => OVERALL,
        Until::Each | Until::Never => 0.5,
    }
}
