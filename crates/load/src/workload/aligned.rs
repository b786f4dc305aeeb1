//! A workload whose metrics stand in the order of its head.
//!
//! What a workload can report may depend on its settings: without fsync there is no fsync latency.
//! A record has one list of metrics a workload, for all configurations; what a configuration does not
//! measure has no value there.

use std::path::{Path, PathBuf};

use stackrace_engine::PhaseOutcome;
use stackrace_engine::promises::Acknowledged;

use stackrace_base::event::{LedgerLine, MetricHead, RecordedApplication};
use stackrace_machine::host::{Host, Needs};

use super::kept::{DataLayout, DataUse};
use super::kind::{Cost, OwnFindings, Place, Slicing, Workload, WorkloadError};
use super::metric::Figure;

/// Every metric of any configuration, in the order they first appear.
pub fn union<'a>(lists: impl Iterator<Item = &'a [MetricHead]>) -> Vec<MetricHead> {
    let mut union: Vec<MetricHead> = Vec::new();
    for head in lists.flatten() {
        if !union.contains(head) {
            union.push(head.clone());
        }
    }
    union
}

/// Judges by bytes what would be judged by operations, where one does more in one configuration than in
/// another: twice as many of half the size are no gain.
pub fn bytes_first(heads: &mut [MetricHead]) {
    let by_operations = heads.first().is_some_and(|head| head.unit == "op/s");
    let bytes = heads.iter().position(|head| head.unit == "B/s");
    if let Some(bytes) = bytes.filter(|_| by_operations) {
        // Where block sizes differ, operations per second are no fair measure: half the size makes
        // twice as many of them.
        heads[..=bytes].rotate_right(1);
    }
}

/// The workload, reporting `heads`.
pub fn aligned(workload: Box<dyn Workload>, heads: &[MetricHead]) -> Box<dyn Workload> {
    let own = workload.metrics();
    // Most workloads report the same everywhere: they are not wrapped.
    if own == heads {
        return workload;
    }
    let places = heads
        .iter()
        .map(|head| own.iter().position(|other| other == head))
        .collect();
    Box::new(Aligned {
        workload,
        heads: heads.to_vec(),
        places,
    })
}

struct Aligned {
    workload: Box<dyn Workload>,
    heads: Vec<MetricHead>,
    /// Place of each head in the workload's own list.
    places: Vec<Option<usize>>,
}

impl Aligned {
    /// Returns a figure for each head where there is one, from the workload's own figures.
    fn placed(&self, own: &[Option<f64>]) -> Vec<Option<f64>> {
        let places = self.places.iter();
        places
            .map(|place| own.get((*place)?).copied().flatten())
            .collect()
    }
}

impl Workload for Aligned {
    fn metrics(&self) -> Vec<MetricHead> {
        self.heads.clone()
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        self.placed(&self.workload.evaluate(outcomes))
    }

    fn resolution(&self, outcomes: &[PhaseOutcome], _values: &[Option<f64>]) -> Vec<Option<f64>> {
        let values = self.workload.evaluate(outcomes);
        self.placed(&self.workload.resolution(outcomes, &values))
    }

    // Everything else is the workload's own. All of it: a default of the trait in the place of what the workload
    // says would run a command that was not allowed, or leave a server behind.

    fn figures(&self) -> Vec<Figure<'_>> {
        self.workload.figures()
    }

    fn summary(&self) -> String {
        self.workload.summary()
    }

    fn cost(&self) -> Cost {
        self.workload.cost()
    }

    fn phases(&self) -> Vec<&'static str> {
        self.workload.phases()
    }

    fn needs(&self) -> Needs {
        self.workload.needs()
    }

    fn commands(&self) -> Vec<String> {
        self.workload.commands()
    }

    fn warm(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.workload.warm(place)
    }

    fn reads(&self) -> Vec<PathBuf> {
        self.workload.reads()
    }

    fn refused_on(&self, host: &dyn Host) -> Option<String> {
        self.workload.refused_on(host)
    }

    fn recorded(&self) -> Option<RecordedApplication> {
        self.workload.recorded()
    }

    fn home(&self) -> Option<&str> {
        self.workload.home()
    }

    fn settles(&self, phase: usize) -> bool {
        self.workload.settles(phase)
    }

    fn wants_bare(&self) -> bool {
        self.workload.wants_bare()
    }

    fn data_use(&self) -> DataUse {
        self.workload.data_use()
    }

    fn data_layout(&self) -> Option<DataLayout> {
        self.workload.data_layout()
    }

    fn uses_data_before(&self) -> bool {
        self.workload.uses_data_before()
    }

    fn draws_sizes(&self) -> bool {
        self.workload.draws_sizes()
    }

    fn slicing(&self) -> Slicing {
        self.workload.slicing()
    }

    fn operations_most(&self, op: &str) -> Option<u64> {
        self.workload.operations_most(op)
    }

    fn offered_per_s(&self, phase: usize) -> Option<f64> {
        self.workload.offered_per_s(phase)
    }

    fn on_existing(&self) -> Result<(), WorkloadError> {
        self.workload.on_existing()
    }

    fn summary_on_existing(&self) -> String {
        self.workload.summary_on_existing()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.workload.prepare(place)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.workload.measure(phase, place)
    }

    fn measure_told(
        &self,
        phase: usize,
        place: &Place<'_>,
        told: &dyn Acknowledged,
    ) -> Result<PhaseOutcome, WorkloadError> {
        self.workload.measure_told(phase, place, told)
    }

    fn planned(&self, place: &Place<'_>) -> Vec<LedgerLine> {
        self.workload.planned(place)
    }

    fn promised(&self, place: &Place<'_>, outcome: &PhaseOutcome) -> Vec<LedgerLine> {
        self.workload.promised(place, outcome)
    }

    fn found_after_cut(&self, directory: &Path) -> Result<Option<OwnFindings>, WorkloadError> {
        self.workload.found_after_cut(directory)
    }

    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.workload.finish(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Names of the functions that stand one level deep in a block of a source.
    fn functions<'a>(source: &'a str, block: &str) -> BTreeSet<&'a str> {
        let (_, rest) = source.split_once(block).unwrap();
        let (inside, _) = rest.split_once("\n}").unwrap();
        let lines = inside
            .lines()
            .filter_map(|line| line.strip_prefix("    fn "));
        lines.filter_map(|line| line.split('(').next()).collect()
    }

    #[test]
    fn all_that_a_workload_says_is_passed_on() {
        let all = functions(include_str!("kind.rs"), "pub trait Workload: Send + Sync {");
        assert!(all.len() > 20, "{all:?}");
        let passed_on = functions(include_str!("aligned.rs"), "impl Workload for Aligned {");
        assert_eq!(all, passed_on);
    }
}
