//! What is kept of a record from check to check.

use std::sync::Arc;

use super::cells::Cells;
use super::evidence::{Evidence, out};
use super::look::Look;
use super::table::ObservationTable;
use stackrace_results::record::{Record, RecordSkim};

/// What was read of a record that grows. A check then reads what is new; what it says is the same as if it read all.
#[derive(Debug, Clone, Default)]
pub struct KeptEvidence {
    skim: RecordSkim,
    cells: Arc<Cells>,
}

impl KeptEvidence {
    /// The evidence that a record holds by now.
    pub fn of<'a>(&mut self, record: &'a Record) -> Evidence<'a> {
        self.skim.follow(&record.head.run, &record.lines);
        Evidence::skimmed(record, &self.skim)
    }

    /// Configurations that are measured no more, each with the number of complete rounds it took part in.
    pub fn dropped(&mut self, record: &Record) -> Vec<(usize, u32)> {
        self.skim.follow(&record.head.run, &record.lines);
        out(&self.skim.marks(&record.lines))
    }

    /// Makes every comparison that is asked of the evidence.
    pub fn look<'a>(&mut self, evidence: &'a Evidence<'a>) -> Look<'a> {
        Arc::make_mut(&mut self.cells).grow(evidence);
        Look::of(ObservationTable::of(evidence, Arc::clone(&self.cells)))
    }

    /// The workloads, by index, that further rounds should measure ([`Look::undecided_workloads`]).
    pub fn undecided_workloads(&mut self, record: &Record) -> Vec<usize> {
        let workloads = record.head.workloads.len();
        // Most runs measure all: no comparison is made for that.
        if Look::wants_all(&record.head) {
            return (0..workloads).collect();
        }
        let evidence = self.of(record);
        self.look(&evidence).undecided_workloads()
    }
}
