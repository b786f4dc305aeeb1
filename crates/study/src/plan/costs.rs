//! What each workload costs in each configuration.

use crate::study::Study;
use stackrace_load::workload::Cost;

/// Cost of each workload in each configuration.
pub(super) struct Costs(pub(super) Vec<Vec<Cost>>);

impl Costs {
    pub(super) fn of(study: &Study) -> Self {
        Self(
            study
                .configurations
                .iter()
                .map(|configuration| configuration.costs().collect())
                .collect(),
        )
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Cost> {
        self.0.iter().flatten()
    }

    /// Returns the costs of one workload in every configuration.
    pub(super) fn of_workload(&self, workload: usize) -> impl Iterator<Item = &Cost> {
        self.0.iter().filter_map(move |costs| costs.get(workload))
    }
}
