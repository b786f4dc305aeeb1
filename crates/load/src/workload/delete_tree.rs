//! A tree of files deleted, as `rm -rf` does it.
//!
//! Directories are read, files unlinked, directories removed bottom up; the deletion is made
//! durable inside the clock unless switched off (rm itself never waits for that).

use stackrace_engine::files::AtEnd;
use stackrace_engine::tree;
use stackrace_engine::{Op, PhaseOutcome};

use super::copy_file::{SYNC_AT_END, at_end, durable};
use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{Figure, Latency};
use super::tree::{FROM, HELD, INVENTED, Source};
use stackrace_base::setting::{OverShell, SettingDoc};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "delete-tree",
    summary: "a tree of files deleted",
    source: "rm -rf of coreutils 9.1 as traced on Linux",
    settings: &SettingDoc::joined::<11>(&[&INVENTED, &[FROM, SYNC_AT_END], &HELD]),
    example: "delete-tree = { files = 2000 }",
    mergeable: true,
    over_shell: OverShell::Nearest("command = { run = \"tar xf …\" }"),
    parse: |settings| {
        Ok(Box::new(DeleteTree {
            source: Source::parse(settings)?,
            at_end: at_end(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
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

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![
            Figure::elapsed(),
            // Both kinds of entry: a tree of many directories would look slow by its files alone.
            Figure::rate("entries", &[Op::Unlink, Op::Rmdir]),
            Figure::latency(Op::Unlink, Latency::P99),
        ];
        figures.extend(Figure::cpu());
        figures
    }

    fn draws_sizes(&self) -> bool {
        self.source.is_drawn()
    }

    fn cost(&self) -> Cost {
        self.source.cost()
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["delete tree"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.source.build(place).map(drop)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        tree::delete_tree(
            &place.directory.join("source"),
            self.at_end,
            SLICE_NS,
            place.control,
        )
        .map_err(trouble)
    }
}
