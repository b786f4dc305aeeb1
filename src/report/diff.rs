//! Two stored results side by side: what is known to differ around them first, then the figures.

use maud::Markup;

use super::content::{TextRow, TextTable, capital};
use super::figure::{self, MISSING};
use super::html;
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use crate::verdict::{Difference, Stored, WorkloadPair};

/// Metrics that only one side has are named up to so many.
const ONLY_MAX: usize = 12;

/// The page for a terminal.
pub(crate) fn diff(difference: &Difference, screen: Screen) -> String {
    render(&sheet(difference), "terminal", screen)
}

/// The page as HTML.
pub(crate) fn diff_html(difference: &Difference) -> Markup {
    html::sheet(&sheet(difference))
}

fn sheet(difference: &Difference) -> Sheet {
    let (a, b) = (&difference.a, &difference.b);
    let mut lead = vec![
        "Unpaired: results measured at different times, side by side. Any other change is in the ratios, and what is compared was not declared before, so there is no verdict.".to_owned(),
    ];
    if a.run == b.run && !a.imported {
        lead.push(format!(
            "Both are from one run, whose verdict pairs their rounds: stackrace report {}",
            a.run
        ));
    }
    let mut parts = Vec::new();
    let refused = refused(difference);
    if !refused.is_empty() {
        let title = match difference
            .workloads
            .iter()
            .all(|pair| pair.figures.is_empty())
        {
            true => "Not compared: the work or the machine differs",
            false => "The work or the machine differs",
        };
        parts.push(SheetPart::List(title.to_owned(), refused));
    }
    parts.push(environment(difference));
    let compared = difference
        .workloads
        .iter()
        .filter(|pair| !pair.figures.is_empty());
    parts.extend(compared.map(|pair| SheetPart::Table(figures(pair))));
    if difference.workloads.is_empty() {
        let why = "no metric of the same name and unit in a workload of the same kind";
        parts.push(SheetPart::List(
            "Nothing in common".to_owned(),
            vec![why.to_owned()],
        ));
    }
    parts.extend(
        [("A", a), ("B", b)]
            .into_iter()
            .filter_map(|(label, side)| only(label, side)),
    );
    if !difference.notes.is_empty() {
        parts.push(SheetPart::List(
            "Notes".to_owned(),
            difference.notes.clone(),
        ));
    }
    Sheet {
        title: format!("{} beside {}", b.configuration, a.configuration),
        lead,
        facts: [("A", a), ("B", b)]
            .map(|(label, side)| (label.to_owned(), origin(side)))
            .to_vec(),
        parts,
    }
}

/// Why something is not compared, or must not be taken for a comparison of storage.
pub(crate) fn refused(difference: &Difference) -> Vec<String> {
    let mut refused = difference.refused.clone();
    for pair in &difference.workloads {
        if !pair.other_work.is_empty() {
            let clauses = pair.other_work.join("; ");
            refused.push(format!("{} is other work: {clauses}", pair.b.0));
        }
    }
    refused
}

fn origin(side: &Stored) -> String {
    let imported = if side.imported { ", imported" } else { "" };
    let runs = match side.more_runs.as_slice() {
        [] => side.run.clone(),
        others => format!("{}, {}", side.run, others.join(", ")),
    };
    format!(
        "{} of {runs} ({}{imported})",
        side.configuration, side.title
    )
}

fn environment(difference: &Difference) -> SheetPart {
    let told = |value: &Option<String>| value.clone().unwrap_or_else(|| MISSING.to_owned());
    let rows = difference.environment.iter();
    let rows: Vec<TextRow> = rows
        .map(|(name, a, b)| TextRow::of(vec![name.clone(), told(a), told(b)]))
        .collect();
    let title = "Known differences around them".to_owned();
    if rows.is_empty() {
        return SheetPart::List(title, vec!["None on record.".to_owned()]);
    }
    SheetPart::Table(TextTable {
        title,
        note: format!("{MISSING} means not on record."),
        head: ["fact", "A", "B"].map(str::to_owned).to_vec(),
        text: vec![1, 2],
        rows,
    })
}

fn figures(pair: &WorkloadPair) -> TextTable {
    let rows = pair.figures.iter().map(|row| {
        let shown = |value| figure::value(&row.metric.unit, value);
        let word = match row.differs {
            true => "differs, unpaired",
            false => "unpaired",
        };
        TextRow::of(vec![
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
    TextTable {
        title: named,
        note: format!(
            "{summary} A ratio above 1: B is better. Intervals: Welch over runs, 95 % each, from three runs on each side."
        ),
        head: ["metric", "A", "B", "ratio", "interval", "runs", ""]
            .map(str::to_owned)
            .to_vec(),
        text: vec![6],
        rows: rows.collect(),
    }
}

/// What only one side has, named.
fn only(label: &str, side: &Stored) -> Option<SheetPart> {
    let mut names: Vec<String> = side.only.iter().take(ONLY_MAX).cloned().collect();
    if side.only.len() > ONLY_MAX {
        names.push(format!("and {} more", side.only.len() - ONLY_MAX));
    }
    (!names.is_empty()).then(|| SheetPart::List(format!("Only {label} has"), names))
}
