//! The table of power cuts: what each of them took.

use super::table::ExportTable;
use stackrace_base::event::{CheckedPromises, Cut, Event};
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Flag, Made, Text, Whole};
use stackrace_results::tables::{ColumnOf, DataTable, columns};

/// One row per cut.
pub(super) const CUTS: ExportTable = ExportTable {
    name: "cuts",
    summary: "one row per power cut: how it came back, which promises were broken",
    of: cuts,
};

struct CutOfRun<'a> {
    record: &'a Record,
    cut: &'a Cut,
}

impl CutOfRun<'_> {
    /// A number of findings; `None` if nothing could be mounted, so nothing was looked for.
    fn number(&self, number: fn(&CheckedPromises) -> u64) -> Option<u64> {
        self.cut.found.as_ref().map(number)
    }
}

fn cuts(records: &[Record]) -> DataTable {
    let rows: Vec<CutOfRun<'_>> = records.iter().flat_map(of_run).collect();
    // Two lists, because one would be longer than a screen.
    let mut of = about();
    of.extend(found());
    DataTable {
        columns: columns(&rows, &of),
    }
}

/// The cuts of one run, in the order of its log.
fn of_run(record: &Record) -> impl Iterator<Item = CutOfRun<'_>> {
    record
        .lines
        .iter()
        .filter_map(move |line| match &line.event {
            Event::Cut(cut) => Some(CutOfRun { record, cut }),
            _ => None,
        })
}

type CutColumn<'a> = (&'static str, ColumnOf<CutOfRun<'a>>);

/// Columns on the cut itself and how it came back.
fn about<'a>() -> Vec<CutColumn<'a>> {
    vec![
        ("run", Text(|r| &r.record.head.run)),
        ("study", Text(|r| &r.record.head.study_name)),
        (
            "configuration",
            // A log of others may name one that its head does not have.
            Made(|r| {
                let all = &r.record.head.configurations;
                all.get(r.cut.configuration)
                    .map_or(String::new(), |head| head.name.clone())
            }),
        ),
        (
            "workload",
            Made(|r| {
                let all = &r.record.head.workloads;
                all.get(r.cut.workload)
                    .map_or(String::new(), |head| head.name.clone())
            }),
        ),
        ("round", Whole(|r| Some(r.cut.round.into()))),
        ("cut", Whole(|r| Some(r.cut.number.into()))),
        // Text: it may exceed what a signed number of 64 bits holds.
        ("seed", Made(|r| r.cut.seed.to_string())),
        ("at_ns", Whole(|r| Some(r.cut.at_ns))),
        // Readers group by these two: a cut in a flush is harder than one anywhere.
        ("stratum", Text(|r| &r.cut.stratum)),
        ("of", Text(|r| &r.cut.of)),
        ("mounted", Flag(|r| Some(r.cut.recovery.mounted))),
        (
            "needed_operator",
            Flag(|r| Some(r.cut.recovery.needed_operator)),
        ),
        // As typed, so that they can be tried by hand.
        ("repair", Made(|r| r.cut.recovery.repair.join("; "))),
        ("mount_ns", Whole(|r| Some(r.cut.recovery.mount_ns))),
        // True also where nothing could be mounted, and the counts are empty.
        ("broken", Flag(|r| Some(r.cut.broke_a_promise()))),
    ]
}

/// Columns of the findings.
fn found<'a>() -> Vec<CutColumn<'a>> {
    vec![
        // Missing, not 0, where nothing could be mounted: it was never looked for.
        ("promised", Whole(|r| r.number(|f| f.promised))),
        ("lost", Whole(|r| r.number(|f| f.counts.lost))),
        ("torn", Whole(|r| r.number(|f| f.counts.torn))),
        ("stale", Whole(|r| r.number(|f| f.counts.stale))),
        ("misplaced", Whole(|r| r.number(|f| f.counts.misplaced))),
        ("swapped", Whole(|r| r.number(|f| f.counts.swapped))),
        ("collateral", Whole(|r| r.number(|f| f.counts.collateral))),
        ("reordered", Whole(|r| r.number(|f| f.counts.reordered))),
        // What is at rest was no work of the trial: it is not counted here.
        ("rpo_operations", Whole(|r| r.number(|f| f.rpo_operations))),
        ("rpo_ns", Whole(|r| r.number(|f| f.rpo_ns))),
        (
            "unpromised_lost",
            Whole(|r| r.number(|f| f.unpromised_lost)),
        ),
        ("unpromised_ns", Whole(|r| r.number(|f| f.unpromised_ns))),
    ]
}
