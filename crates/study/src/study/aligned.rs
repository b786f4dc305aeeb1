//! A workload whose metrics stand in the order of its head.
//!
//! What a workload can report may depend on its settings: without fsync there is no fsync latency.
//! A record has one list of metrics a workload, for all configurations; what a configuration does not
//! measure has no value there.

use stackrace_engine::PhaseOutcome;

use stackrace_base::event::MetricHead;
use stackrace_load::workload::{
    Cost, DataLayout, DataUse, Place, Slicing, Workload, WorkloadError,
};

/// Every metric of any configuration, in the order they first appear.
pub(super) fn union<'a>(lists: impl Iterator<Item = &'a [MetricHead]>) -> Vec<MetricHead> {
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
pub(super) fn bytes_first(heads: &mut [MetricHead]) {
    let by_operations = heads.first().is_some_and(|head| head.unit == "op/s");
    let bytes = heads.iter().position(|head| head.unit == "B/s");
    if let Some(bytes) = bytes.filter(|_| by_operations) {
        // Where block sizes differ, operations per second are no fair measure: half the size makes
        // twice as many of them.
        heads[..=bytes].rotate_right(1);
    }
}

/// The workload, reporting `heads`.
pub(super) fn aligned(workload: Box<dyn Workload>, heads: &[MetricHead]) -> Box<dyn Workload> {
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
    fn summary(&self) -> String {
        self.workload.summary()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        self.heads.clone()
    }

    fn cost(&self) -> Cost {
        self.workload.cost()
    }

    fn phases(&self) -> Vec<&'static str> {
        self.workload.phases()
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

    fn draws_sizes(&self) -> bool {
        self.workload.draws_sizes()
    }

    fn uses_data_before(&self) -> bool {
        self.workload.uses_data_before()
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

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.workload.prepare(place)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.workload.measure(phase, place)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        self.placed(&self.workload.evaluate(outcomes))
    }

    fn resolution(&self, outcomes: &[PhaseOutcome], _values: &[Option<f64>]) -> Vec<Option<f64>> {
        let values = self.workload.evaluate(outcomes);
        self.placed(&self.workload.resolution(outcomes, &values))
    }
}
