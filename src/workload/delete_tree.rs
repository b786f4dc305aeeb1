//! A tree of files deleted, as `rm -rf` does it.
//!
//! Directories are read, files unlinked, directories removed bottom up; the deletion is made
//! durable inside the clock unless switched off (rm itself never waits for that).

use stackrace_engine::files::AtEnd;
use stackrace_engine::tree;
use stackrace_engine::{Op, Outcome};

use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::copy_file::{SYNC_AT_END, at_end, durable};
use super::metric::{self, Latency};
use super::tree::{
    DIRECTORIES, FILES, FROM, PROFILE, SCALE, SIZE_MAX, SIZE_MEDIAN, SIZE_SPREAD, Source,
};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::{Better, MetricHead};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "delete-tree",
    summary: "a tree of files deleted",
    source: "rm -rf of coreutils 9.1 as traced on Linux",
    settings: &[
        FILES,
        DIRECTORIES,
        SIZE_MEDIAN,
        SIZE_SPREAD,
        SIZE_MAX,
        PROFILE,
        SCALE,
        FROM,
        SYNC_AT_END,
        CONTENT,
        COMPRESS_RATIO,
    ],
    example: "delete-tree = { files = 2000 }",
    parse: |settings| {
        Ok(Box::new(DeleteTree {
            source: Source::parse(settings)?,
            at_end: at_end(settings)?,
        }))
    },
};

#[derive(Debug)]
struct DeleteTree {
    source: Source,
    at_end: AtEnd,
}

impl Workload for DeleteTree {
    fn summary(&self) -> String {
        format!("delete {}{}", self.source.words(), durable(self.at_end))
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![
            metric::elapsed_head(),
            metric::head("entries", "op/s", Better::Higher),
            metric::latency_head(Op::Unlink, Latency::P99),
        ];
        heads.extend(metric::cpu_heads());
        heads
    }

    fn cost(&self) -> Cost {
        self.source.cost()
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["delete tree"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        self.source.build(place).map(drop)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        tree::delete_tree(
            &place.directory.join("source"),
            self.at_end,
            SLICE_NS,
            place.control,
        )
        .map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; 5];
        };
        let mut values = vec![
            metric::elapsed(outcome),
            metric::operations_of(outcome, &[Op::Unlink, Op::Rmdir]),
            metric::latency(outcome, Op::Unlink, Latency::P99),
        ];
        values.extend(metric::cpu(outcome));
        values
    }
}
