//! How the error of a study is shared by its comparisons.

use super::table::ObservationTable;

/// Error of one comparison of a family, over all looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// Over all workloads.
    pub(super) overall: f64,
    /// Share of one workload.
    pub(super) workload: f64,
    /// Within levels of another factor: not corrected for their number.
    pub(super) within: f64,
}

impl Shares {
    /// Shares of a study; `pairs`: the number of comparisons it asks for.
    pub(super) fn of(table: &ObservationTable<'_>, pairs: usize) -> Self {
        let decide = &table.evidence.head.decide;
        let error = decide.compared_error();
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
        let overall = decide.overall_share(table.workloads());
        Self {
            overall: error * overall / pairs,
            workload: error * (1.0 - overall) / pairs / table.workloads() as f64,
            within: error,
        }
    }
}
