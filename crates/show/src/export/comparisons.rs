//! The table of verdicts: every comparison, judged now by the rules of this program.

use super::table::ExportTable;
use stackrace_judge::verdict::{self, Comparison, Evidence, Verdict};
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Real, Text, Whole};
use stackrace_results::tables::{ColumnOf, DataTable, columns};

/// One row per comparison.
pub(super) const COMPARISONS: ExportTable = ExportTable {
    name: "comparisons",
    summary: "one row per comparison: ratio, interval, verdict",
    of: comparisons,
};

struct Row<'a> {
    record: &'a Record,
    verdict: &'a Verdict,
    comparison: &'a Comparison,
}

fn comparisons(records: &[Record]) -> DataTable {
    // Judged first, because the rows borrow from the verdicts. A verdict is never read from the log:
    // the rules of this program hold for old runs, too.
    let judged: Vec<(&Record, Verdict)> = records
        .iter()
        .map(|record| (record, verdict::judge(&Evidence::of(record))))
        .collect();
    let rows: Vec<Row<'_>> = judged
        .iter()
        .flat_map(|(record, verdict)| {
            // The overall figure first: its workload is empty, and a filter on that column tells the
            // two apart.
            let comparisons = verdict.overall.iter().chain(&verdict.workloads);
            comparisons.map(move |comparison| Row {
                record,
                verdict,
                comparison,
            })
        })
        .collect();
    let of: &[(&str, ColumnOf<Row<'_>>)] = &[
        ("run", Text(|r| &r.record.head.run)),
        ("study", Text(|r| &r.record.head.study_name)),
        ("title", Text(|r| &r.record.head.title)),
        ("baseline", Text(|r| &r.comparison.a)),
        ("compared", Text(|r| &r.comparison.b)),
        ("within", Text(|r| &r.comparison.within)),
        ("workload", Text(|r| &r.comparison.workload)),
        (
            "metric",
            Text(|r| r.comparison.metric.as_ref().map_or("", |m| &m.name)),
        ),
        (
            "better",
            Text(|r| r.comparison.metric.as_ref().map_or("", |m| m.better.word())),
        ),
        ("ratio", Real(|r| r.comparison.ratio.map(|i| i.estimate))),
        ("low", Real(|r| r.comparison.ratio.map(|i| i.low))),
        ("high", Real(|r| r.comparison.ratio.map(|i| i.high))),
        ("resolution", Real(|r| Some(r.comparison.coarse.resolution))),
        ("word", Text(|r| r.comparison.word.name())),
        ("text", Text(|r| &r.comparison.text)),
        ("rounds", Whole(|r| Some(r.comparison.rounds.len() as u64))),
        (
            "checked_at",
            Whole(|r| r.verdict.checked_at.map(Into::into)),
        ),
        ("confidence", Real(|r| Some(r.verdict.confidence))),
        ("margin", Real(|r| Some(r.verdict.margin))),
        ("state", Text(|r| r.verdict.state.name())),
    ];
    DataTable {
        columns: columns(&rows, of),
    }
}
