//! Two stored results side by side: the figures first, then what is known to differ around them.

use maud::{Markup, html};
use stackrace_base::event::again;

use super::chart::{BarGroup, BarRow, ForestGroup, ForestRow, SERIES_MAX, bars, forest};
use super::content::{TextRow, TextTable, capital};
use super::figure::{self, MISSING};
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use super::styled::Styled;
use stackrace_judge::verdict::{Difference, Interval, Stored, WorkloadPair};

/// Metrics that only one side has are named up to so many.
const ONLY_MAX: usize = 12;

/// The page for a terminal.
pub fn diff(difference: &Difference, screen: Screen) -> Styled {
    render(&sheet(difference), "terminal", screen)
}

/// The page as HTML: the results drawn, then all the terminal says.
pub fn diff_html(difference: &Difference) -> Markup {
    super::html::sheet(&sheet(difference), &drawn(difference))
}

/// The first metric of each workload: both values as bars, and their ratio.
fn drawn(difference: &Difference) -> Markup {
    let pairs = || {
        difference
            .workloads
            .iter()
            .filter(|pair| !pair.figures.is_empty())
    };
    // What must not be taken for a comparison of storage gets no picture of one.
    if pairs().count() == 0 || !refused(difference).is_empty() {
        return html! {};
    }
    let (a, b) = (&difference.a, &difference.b);
    // Two names, two colours: the indices are of two runs and may be the same.
    let clash = a.configuration != b.configuration && a.index % SERIES_MAX == b.index % SERIES_MAX;
    let sides = [("A", a, a.index), ("B", b, b.index + usize::from(clash))];
    let values: Vec<BarGroup> = pairs().filter_map(|pair| values(pair, sides)).collect();
    let ratios: Vec<ForestGroup> = pairs().map(|pair| ratios(pair, sides[1].2)).collect();
    html! {
        div class="hero" {
            figure {
                figcaption { "Means of the two." }
                (bars("values", "Means of the two", &values))
            }
            figure {
                figcaption { "Ratios with their intervals (Welch, 95 % each). Above 1: B is better." }
                (forest("forest", "Ratios with their intervals", 0.0, &ratios))
            }
        }
    }
}

fn values(pair: &WorkloadPair, sides: [(&str, &Stored, usize); 2]) -> Option<BarGroup> {
    let first = pair.figures.first()?;
    let rows = sides.into_iter().zip([first.a, first.b]);
    let rows = rows.map(|((side, stored, configuration), estimate)| BarRow {
        label: format!("{side}: {}", stored.configuration),
        configuration,
        // Only the interval of the ratio says whether the two differ.
        value: Some(Interval {
            estimate,
            low: f64::NAN,
            high: f64::NAN,
        }),
    });
    Some(BarGroup {
        heading: figure::metric_on(&pair.a.0, &first.metric),
        unit: first.metric.unit.clone(),
        rows: rows.collect(),
    })
}

fn ratios(pair: &WorkloadPair, configuration: usize) -> ForestGroup {
    // The table below has every metric.
    let rows = pair.figures.iter().take(1).map(|row| ForestRow {
        label: figure::metric(&row.metric),
        configuration: Some(configuration),
        ratio: Some(row.ratio),
        text: word(row.differs).to_owned(),
        word: "unpaired",
    });
    ForestGroup {
        heading: pair.a.0.clone(),
        rows: rows.collect(),
    }
}

/// Word for a ratio.
fn word(differs: bool) -> &'static str {
    match differs {
        true => "differs, unpaired",
        false => "unpaired",
    }
}

fn sheet(difference: &Difference) -> Sheet {
    let (a, b) = (&difference.a, &difference.b);
    let mut lead = vec![
        "Unpaired: results measured at different times, side by side. Any other change is in the ratios, and what is compared was not declared before, so there is no verdict.".to_owned(),
    ];
    // Imported configurations of one record are no pairs either.
    if a.run == b.run && !a.imported {
        lead.push(format!(
            "Both are from one run, whose verdict pairs their rounds: {}",
            again(&["report", &a.run])
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
    let compared = difference
        .workloads
        .iter()
        .filter(|pair| !pair.figures.is_empty());
    parts.extend(compared.map(|pair| SheetPart::Table(figures(pair))));
    // Metrics of one name in other units have no ratio, so they are nothing in common.
    if difference.workloads.is_empty() {
        let why = "no metric of the same name and unit in a workload of the same kind";
        parts.push(SheetPart::List(
            "Nothing in common".to_owned(),
            vec![why.to_owned()],
        ));
    }
    parts.push(environment(difference));
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

/// Reasons something is not compared, or must not be taken for a comparison of storage.
pub fn refused(difference: &Difference) -> Vec<String> {
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
        TextRow::of(vec![
            row.metric.name.clone(),
            shown(row.a),
            shown(row.b),
            figure::ratio(row.ratio.estimate),
            figure::ratio_range(row.ratio),
            format!("{}, {}", row.results.0, row.results.1),
            word(row.differs).to_owned(),
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

/// Figures only one side has, named.
fn only(label: &str, side: &Stored) -> Option<SheetPart> {
    let mut names: Vec<String> = side.only.iter().take(ONLY_MAX).cloned().collect();
    if side.only.len() > ONLY_MAX {
        names.push(format!("and {} more", side.only.len() - ONLY_MAX));
    }
    (!names.is_empty()).then(|| SheetPart::List(format!("Only {label} has"), names))
}
