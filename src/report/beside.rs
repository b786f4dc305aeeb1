//! Two stored results side by side, for a terminal of 80 columns.

use super::content::{Row, Table, capital};
use super::figure::{self, MISSING};
use super::terminal::Page;
use crate::verdict::{Beside, Difference, Pair};

/// Metrics that only one side has are named up to so many.
const ONLY_MAX: usize = 12;

/// The whole page: what is known to differ around the figures first, then the figures.
pub(crate) fn beside(difference: &Difference, colour: bool) -> String {
    let mut page = Page::new(80, colour);
    let (a, b) = (&difference.a, &difference.b);
    for (label, side) in [("A", a), ("B", b)] {
        let origin = if side.imported { ", imported" } else { "" };
        let text = format!(
            "{} of {} ({}{origin})",
            side.treatment, side.run, side.title
        );
        page.labelled(label, "1", &text);
    }
    let note = "Unpaired: what was measured at different times is set side by side. Whatever else changed is in the ratios, and no verdict follows.";
    page.labelled("", "", note);
    if a.run == b.run && !a.imported {
        let note = format!(
            "Both are of one run, whose own verdict pairs their rounds: stackrace report {}",
            a.run
        );
        page.labelled("", "", &note);
    }
    page.table(&environment(difference));
    for pair in &difference.workloads {
        page.table(&figures(pair));
    }
    if difference.workloads.is_empty() {
        page.heading("Nothing in common");
        page.item("no metric of the same name and unit in a workload of the same kind");
    }
    for (label, side) in [("A", a), ("B", b)] {
        only(&mut page, label, side);
    }
    if !difference.notes.is_empty() {
        page.heading("Notes");
        difference.notes.iter().for_each(|note| page.item(note));
    }
    page.into_text()
}

fn environment(difference: &Difference) -> Table {
    let told = |value: &Option<String>| value.clone().unwrap_or_else(|| MISSING.to_owned());
    let rows = difference.environment.iter();
    let rows: Vec<Row> = rows
        .map(|(name, a, b)| Row::of(vec![name.clone(), told(a), told(b)]))
        .collect();
    Table {
        title: "What is known to differ around them".to_owned(),
        note: if rows.is_empty() {
            "Nothing that is on record.".to_owned()
        } else {
            format!("{MISSING} where it is not on record.")
        },
        head: ["fact", "A", "B"].map(str::to_owned).to_vec(),
        text: vec![1, 2],
        rows,
    }
}

fn figures(pair: &Pair) -> Table {
    let rows = pair.figures.iter().map(|row| {
        let shown = |value| figure::value(&row.metric.unit, value);
        let word = match row.differs {
            true => "differs, unpaired",
            false => "unpaired",
        };
        Row::of(vec![
            row.metric.name.clone(),
            shown(row.a),
            shown(row.b),
            figure::ratio(row.ratio.estimate),
            figure::ratio_range(row.ratio),
            format!("{}, {}", row.results.0, row.results.1),
            word.to_owned(),
        ])
    });
    let (a, b) = (&pair.a, &pair.b);
    let named = if a.0 == b.0 {
        a.0.clone()
    } else {
        format!("A: {}; B: {}", a.0, b.0)
    };
    let summary = if a.1 == b.1 {
        format!("{}.", capital(&a.1))
    } else {
        format!("A: {}. B: {}.", capital(&a.1), capital(&b.1))
    };
    Table {
        title: named,
        note: format!("{summary} A ratio above 1: B is better. Intervals: Welch, 95 % each."),
        head: ["metric", "A", "B", "ratio", "interval", "runs", ""]
            .map(str::to_owned)
            .to_vec(),
        text: vec![6],
        rows: rows.collect(),
    }
}

fn only(page: &mut Page, label: &str, side: &Beside) {
    if side.only.is_empty() {
        return;
    }
    page.heading(&format!("Only {label} has"));
    for name in side.only.iter().take(ONLY_MAX) {
        page.item(name);
    }
    if side.only.len() > ONLY_MAX {
        page.item(&format!("and {} more", side.only.len() - ONLY_MAX));
    }
}
