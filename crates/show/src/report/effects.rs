//! The table of effects of a study of several factors, before it has a form.

use super::content::{self, TextRow, TextTable};
use super::figure;
use stackrace_judge::verdict::{EffectKind, EffectRow, EffectTable, Verdict};

/// Rows of a table on a page that has no room for all of them.
const ROWS_MAX: usize = 24;

/// A table for the overall figure and one for each workload, whole.
pub(super) fn tables(verdict: &Verdict) -> Vec<TextTable> {
    let all = verdict.effects.iter();
    all.map(|effects| table(verdict, effects, usize::MAX))
        .collect()
}

/// The first of them, in short.
pub(super) fn short(verdict: &Verdict) -> Option<TextTable> {
    let first = verdict.effects.first()?;
    Some(table(verdict, first, ROWS_MAX))
}

/// Scope of the effects of a table: `all workloads`, `browse: throughput`.
pub(super) fn place(effects: &EffectTable) -> String {
    match (&effects.metric, effects.workload.as_str()) {
        (_, "") => "all workloads".to_owned(),
        (Some(metric), workload) => metric.on(workload),
        (None, workload) => workload.to_owned(),
    }
}

fn table(verdict: &Verdict, effects: &EffectTable, rows_max: usize) -> TextTable {
    let shown: Vec<&EffectRow> = effects
        .rows
        .iter()
        .filter(|row| needed(row, &effects.rows))
        .collect();
    // A terminal has no room for all of them; the page has.
    let hidden = shown.len().saturating_sub(rows_max);
    let more = match hidden {
        0 => String::new(),
        n => format!(" {n} more rows are in the HTML report."),
    };
    TextTable {
        title: format!("Effects of the factors on {}", place(effects)),
        // The error is shared by all rows, those included that are not shown.
        note: format!(
            "A ratio above 1: better than the first level. All {} rows hold together.{more}",
            effects.rows.len()
        ),
        head: vec![
            "effect".to_owned(),
            "ratio".to_owned(),
            content::interval_name(verdict.confidence),
            "verdict".to_owned(),
        ],
        text: vec![3],
        rows: shown.into_iter().take(rows_max).map(row).collect(),
    }
}

/// Effects within levels say more than their mean only where they may not be the same.
fn needed(row: &EffectRow, all: &[EffectRow]) -> bool {
    let interacts = |other: &&EffectRow| {
        let (one, two) = (&other.factor, &other.other);
        let same =
            (*one == row.factor && *two == row.other) || (*two == row.factor && *one == row.other);
        other.kind == EffectKind::Interaction && same
    };
    let unlike = |other: &EffectRow| !other.word.is_tie();
    // Where an interaction is shown to be small, the main effect says what each level would.
    row.kind != EffectKind::Within || all.iter().filter(interacts).any(unlike)
}

fn row(effect: &EffectRow) -> TextRow {
    let place = match (effect.kind, effect.at.as_slice()) {
        (EffectKind::Within, [at]) => format!(", {} {at}", effect.other),
        (EffectKind::Interaction, [base, at]) => {
            format!(", {} {at} compared with {base}", effect.other)
        }
        _ => String::new(),
    };
    let (factor, a, b) = (&effect.factor, &effect.a, &effect.b);
    let [ratio, interval] = figure::ratio_texts(effect.ratio);
    TextRow::of(vec![
        format!("{factor} {b} against {a}{place}"),
        ratio,
        interval,
        effect.text.clone(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Observation;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    /// Block sizes on two file systems, where the second is 8 % faster at every size but the last
    /// four, where it is 60 %.
    fn verdict() -> Verdict {
        let mut record = sample::record(&sample::sweep());
        record.head.factors.truncate(2);
        let mut trials: Vec<Observation> = record.trials().cloned().collect();
        for trial in &mut trials {
            if trial.configuration >= 20 {
                for value in trial.metrics.iter_mut().flatten() {
                    *value *= 1.48;
                }
            }
        }
        let mut evidence = Evidence::of(&record);
        evidence.trials = trials.iter().collect();
        judge(&evidence)
    }

    #[test]
    fn a_long_table_is_cut_on_a_narrow_page_alone() {
        let verdict = verdict();
        let (whole, cut) = (&tables(&verdict)[0], short(&verdict).unwrap());
        // 1 + 11 main effects, 12 within, 11 interactions.
        assert_eq!(verdict.effects[0].rows.len(), 35);
        assert_eq!(whole.rows.len(), 35);
        assert_eq!(cut.rows.len(), ROWS_MAX);
        assert!(
            cut.note.ends_with("11 more rows are in the HTML report."),
            "{}",
            cut.note
        );
        assert!(!whole.note.contains("more rows"));
    }
}
