//! The table of verdicts: every comparison, judged now by the rules of this program.

use super::Kind;
use super::column::{Get, Table, columns};
use super::trials::better;
use crate::record::Record;
use crate::verdict::{self, Comparison, Evidence, State, Verdict, Word};

/// One row per comparison.
pub(super) const CONTRASTS: Kind = Kind {
    name: "comparisons",
    summary: "one row per comparison: ratio, interval, verdict",
    of: comparisons,
};

struct Row<'a> {
    record: &'a Record,
    verdict: &'a Verdict,
    comparison: &'a Comparison,
}

/// The word of the verdict, as in the JSON report.
fn word(word: Word) -> &'static str {
    match word {
        Word::Better { .. } => "better",
        Word::Worse { .. } => "worse",
        Word::NoDifference { .. } => "no-difference",
        Word::Undecided => "undecided",
        Word::TooFew => "too-few",
        Word::Unpaired { .. } => "unpaired",
    }
}

/// How far the question is answered, as in the JSON report.
pub(super) fn state(verdict: &Verdict) -> &'static str {
    match verdict.state {
        State::Decided => "decided",
        State::Undecided => "undecided",
        State::TooFew => "too-few",
        State::Unpaired => "unpaired",
    }
}

fn comparisons(records: &[Record]) -> Table {
    let judged: Vec<(&Record, Verdict)> = records
        .iter()
        .map(|record| (record, verdict::judge(&Evidence::of(record))))
        .collect();
    let rows: Vec<Row<'_>> = judged
        .iter()
        .flat_map(|(record, verdict)| {
            let comparisons = verdict.overall.iter().chain(&verdict.workloads);
            comparisons.map(move |comparison| Row {
                record,
                verdict,
                comparison,
            })
        })
        .collect();
    let of: &[(&str, Get<Row<'_>>)] = &[
        ("run", Get::Text(|r| &r.record.head.run)),
        ("study", Get::Text(|r| &r.record.head.study_name)),
        ("title", Get::Text(|r| &r.record.head.title)),
        ("baseline", Get::Text(|r| &r.comparison.a)),
        ("compared", Get::Text(|r| &r.comparison.b)),
        ("within", Get::Text(|r| &r.comparison.within)),
        ("workload", Get::Text(|r| &r.comparison.workload)),
        (
            "metric",
            Get::Text(|r| r.comparison.metric.as_ref().map_or("", |m| &m.name)),
        ),
        (
            "better",
            Get::Text(|r| r.comparison.metric.as_ref().map_or("", better)),
        ),
        (
            "ratio",
            Get::Real(|r| r.comparison.ratio.map(|i| i.estimate)),
        ),
        ("low", Get::Real(|r| r.comparison.ratio.map(|i| i.low))),
        ("high", Get::Real(|r| r.comparison.ratio.map(|i| i.high))),
        ("word", Get::Text(|r| word(r.comparison.word))),
        ("text", Get::Text(|r| &r.comparison.text)),
        (
            "rounds",
            Get::Whole(|r| Some(r.comparison.rounds.len() as u64)),
        ),
        ("look", Get::Whole(|r| r.verdict.look.map(Into::into))),
        ("confidence", Get::Real(|r| Some(r.verdict.confidence))),
        ("margin", Get::Real(|r| Some(r.verdict.margin))),
        ("state", Get::Text(|r| state(r.verdict))),
    ];
    Table {
        columns: columns(&rows, of),
    }
}
