//! A published study as something to read: its figures, ratios, conclusions and remarks.

use serde_json::{Value, json};

use super::content::{TextRow, TextTable};
use super::figure;
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use super::styled::Styled;
use stackrace_judge::published::{
    Card, PublishedFigure, PublishedRatio, PublishedTable, PublishedValue, comparisons,
    conclusions, distinct, geometric_mean, remarks,
};
use stackrace_results::tables::{Column, ColumnOf, ColumnValues, DataTable, TableForm, columns};

/// Version of the JSON form; a field never changes its meaning.
const FORMAT: u32 = 1;
/// Columns of figures a table has at most: what 80 columns hold.
const COLUMNS_MAX: usize = 3;
/// Columns of a terminal that are left for a table of ratios, one column for the mean set aside.
const RATIOS_WIDTH: usize = 66;
/// Name of the row of means.
const MEAN: &str = "all metrics";

/// The forms a published study can be had in.
pub const FORMS: [&str; 4] = ["csv", "json", "markdown", "terminal"];

/// A published study in one of [`FORMS`].
///
/// # Errors
/// Data that ship are damaged: the line and what is wrong with it.
pub fn published(card: &Card, form: &str, screen: Screen) -> Result<Styled, String> {
    let table = PublishedTable::of(card)?;
    Ok(match form {
        "csv" => Styled::from(&*String::from_utf8_lossy(&comma_separated(card, &table)?)),
        "json" => {
            let mut text = format!("{:#}", machine_readable(card, &table));
            text.push('\n');
            Styled::from(&text)
        }
        _ => render(&sheet(card, &table), form, screen),
    })
}

fn sheet(card: &Card, table: &PublishedTable) -> Sheet {
    let mut parts: Vec<SheetPart> = Vec::new();
    let ratios = comparisons(card, table);
    let remarks = remarks(card, table);
    let conclusions = conclusions(card, table);
    // A list with nothing in it has no heading either.
    let mut list = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            parts.push(SheetPart::List(title.to_owned(), items));
        }
    };
    list(
        "What the authors say",
        card.words.iter().map(|w| (*w).to_owned()).collect(),
    );
    list(
        "What the figures say (a ratio above 1 is better)",
        conclusions,
    );
    list(
        "Remarks",
        remarks.into_iter().map(|remark| remark.text).collect(),
    );
    parts.extend(figures(card, table).into_iter().map(SheetPart::Table));
    parts.extend(
        ratio_tables(card, &ratios)
            .into_iter()
            .map(SheetPart::Table),
    );
    let lab = if card.counterpart.lab { " --lab" } else { "" };
    let mut studies = vec![format!(
        "stackrace run {}{lab}, at full size with --full",
        card.name
    )];
    let also = card.counterpart.also.iter();
    studies.extend(also.map(|name| format!("stackrace run {name}{lab}, another part of it")));
    studies.push(format!("What differs: {}", card.counterpart.stands_in));
    parts.push(SheetPart::List("To run it yourself".to_owned(), studies));
    Sheet {
        title: format!("{} ({})", card.title, card.year),
        lead: vec![card.question.to_owned()],
        facts: card
            .environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        parts,
    }
}

/// Tables of the figures: a load's metrics, a few at a time, every configuration.
fn figures(card: &Card, table: &PublishedTable) -> Vec<TextTable> {
    let metrics = table.metrics();
    let mut grids = Vec::new();
    for workload in table.workloads() {
        let of: Vec<&str> = metrics
            .iter()
            .filter(|(w, _)| *w == workload)
            .map(|(_, metric)| *metric)
            .collect();
        for some in of.chunks(COLUMNS_MAX) {
            grids.push(figures_of(card, table, workload, some));
        }
    }
    grids
}

fn figures_of(card: &Card, table: &PublishedTable, workload: &str, metrics: &[&str]) -> TextTable {
    let of = |figure: &&PublishedFigure| {
        figure.workload == workload && metrics.contains(&figure.metric.name.as_str())
    };
    let mut rows: Vec<TextRow> = Vec::new();
    let shown = || table.figures.iter().filter(of);
    for levels in distinct(shown().map(|figure| figure.levels.as_slice())) {
        let mut cells = vec![card.configuration(levels)];
        cells.extend(metrics.iter().map(|metric| {
            table
                .of_metric(workload, metric)
                .find(|figure| figure.levels == levels)
                .map_or(figure::MISSING.to_owned(), cell)
        }));
        rows.push(TextRow::of(cells));
    }
    let unit = |figure: &PublishedFigure| match figure.original.as_str() {
        "" => format!("{} computed from the bytes stated", figure.metric.name),
        "K/sec" => "published in K/sec, 1024 B each, with the per cent of one CPU".to_owned(),
        "MB/s" => "published in MB/s, taken as 10⁶ B".to_owned(),
        other => format!("published in {other}"),
    };
    let units = distinct(shown().map(unit)).join("; ");
    let units = format!("{}.", super::content::capital(&units));
    TextTable {
        title: workload.to_owned(),
        note: units,
        head: std::iter::once("configuration".to_owned())
            .chain(metrics.iter().map(|metric| (*metric).to_owned()))
            .collect(),
        text: Vec::new(),
        rows,
    }
}

/// A figure with its processor's share: `343 MB/s, 92 %`.
fn cell(figure: &PublishedFigure) -> String {
    let value = match figure.reading {
        PublishedValue::Value(value) => figure::value(&figure.metric.unit, value),
        // As bonnie++ prints what was over too soon to be timed.
        PublishedValue::TooShort => "+++++".to_owned(),
    };
    match figure.cpu_percent {
        Some(percent) => format!("{value}, {percent:.0} %"),
        None => value,
    }
}

/// A table per level that is compared with a baseline: a row a metric, a column per combination of
/// the other factors, as many as fit.
fn ratio_tables(card: &Card, all: &[PublishedRatio]) -> Vec<TextTable> {
    let mut grids = Vec::new();
    for (at, factor) in card.factors.iter().enumerate() {
        let of_factor: Vec<&PublishedRatio> = all.iter().filter(|c| c.factor == at).collect();
        for (b, a) in distinct(of_factor.iter().map(|c| (&c.b, &c.a))) {
            let of: Vec<&PublishedRatio> = of_factor
                .iter()
                .copied()
                .filter(|c| (&c.b, &c.a) == (b, a))
                .collect();
            // Columns and rows in the order of publication, so that both can be laid side by side.
            let columns = distinct(of.iter().map(|comparison| comparison.within.as_str()));
            let names = distinct(of.iter().map(|comparison| comparison.on()));
            let widest = names
                .iter()
                .map(|on| on.len())
                .max()
                .unwrap_or(0)
                .max(MEAN.len());
            for some in fitting(&columns, RATIOS_WIDTH.saturating_sub(widest)) {
                let title = format!("Ratios: {} {b} against {a}", factor.name);
                grids.push(ratio_table(
                    title,
                    &of,
                    some,
                    // The mean is over all columns, so only the last part has it.
                    columns.len() > 1 && some.ends_with(&columns[columns.len() - 1..]),
                ));
            }
        }
    }
    grids
}

/// The columns in groups whose headings fit a width, in order.
fn fitting<'a, 'b>(columns: &'a [&'b str], width: usize) -> Vec<&'a [&'b str]> {
    let mut groups = Vec::new();
    let (mut from, mut used) = (0, 0);
    for (at, column) in columns.iter().enumerate() {
        // Six characters for a figure, two between columns.
        let needed = column.chars().count().max(6) + 2;
        if at > from && used + needed > width {
            groups.push(&columns[from..at]);
            (from, used) = (at, 0);
        }
        used += needed;
    }
    groups.push(&columns[from..]);
    groups
}

fn ratio_table(
    title: String,
    of: &[&PublishedRatio],
    columns: &[&str],
    with_mean: bool,
) -> TextTable {
    let shown = |ratios: Vec<f64>| {
        geometric_mean(&ratios).map_or(figure::MISSING.to_owned(), figure::ratio)
    };
    // Of one metric and one column there is one ratio; its mean is itself.
    let row = |name: &str, holds: &dyn Fn(&PublishedRatio) -> bool| {
        let ratios = |column: Option<&str>| -> Vec<f64> {
            of.iter()
                .filter(|c| holds(c) && column.is_none_or(|column| c.within == column))
                .map(|c| c.ratio)
                .collect()
        };
        let mut cells = vec![name.to_owned()];
        cells.extend(columns.iter().map(|column| shown(ratios(Some(column)))));
        cells.extend(with_mean.then(|| shown(ratios(None))));
        TextRow::of(cells)
    };
    let names = distinct(
        of.iter()
            .filter(|c| columns.contains(&c.within.as_str()))
            .map(|c| c.on()),
    );
    let mut rows: Vec<TextRow> = names.iter().map(|on| row(on, &|c| c.on() == *on)).collect();
    rows.push(row(MEAN, &|_| true));
    let mean = with_mean.then(|| "mean".to_owned());
    TextTable {
        title,
        note: "Above 1 is better; in the last row and a last column, geometric means.".to_owned(),
        head: std::iter::once("metric".to_owned())
            .chain(columns.iter().map(|column| (*column).to_owned()))
            .chain(mean)
            .collect(),
        text: Vec::new(),
        rows,
    }
}

/// Every figure, a line each, in base units.
fn comma_separated(card: &Card, table: &PublishedTable) -> Result<Vec<u8>, String> {
    let rows = table.figures.as_slice();
    let study = |_: &PublishedFigure| Some(card.name.to_owned());
    let mut all = vec![Column {
        name: "study".to_owned(),
        values: ColumnValues::Text(rows.iter().map(study).collect()),
    }];
    all.extend(columns(
        rows,
        &[("workload", ColumnOf::Text(|f| &f.workload))],
    ));
    all.extend(card.factors.iter().enumerate().map(|(at, factor)| {
        let level = |figure: &PublishedFigure| figure.levels.get(at).cloned();
        Column {
            name: format!("level_{}", factor.name),
            values: ColumnValues::Text(rows.iter().map(level).collect()),
        }
    }));
    all.extend(columns(
        rows,
        &[
            ("metric", ColumnOf::Text(|f| &f.metric.name)),
            ("unit", ColumnOf::Text(|f| &f.metric.unit)),
            ("better", ColumnOf::Text(|f| f.metric.better.word())),
            ("value", ColumnOf::Real(PublishedFigure::value)),
            (
                "too_short",
                ColumnOf::Flag(|f| Some(f.reading == PublishedValue::TooShort)),
            ),
            ("cpu_percent", ColumnOf::Real(|f| f.cpu_percent)),
            ("published_unit", ColumnOf::Text(|f| &f.original)),
        ],
    ));
    TableForm::Csv.render(&DataTable { columns: all })
}

fn machine_readable(card: &Card, table: &PublishedTable) -> Value {
    let figures = table.figures.iter().map(|figure| {
        json!({
            "workload": figure.workload,
            "metric": figure.metric,
            "levels": levels(card, &figure.levels),
            "value": figure.value(),
            "too_short": figure.reading == PublishedValue::TooShort,
            "cpu_percent": figure.cpu_percent,
            // Figures that were computed here were published in no unit.
            "published_unit": (!figure.derived()).then_some(&figure.original),
        })
    });
    let ratios = comparisons(card, table).into_iter().map(|comparison| {
        json!({
            "factor": card.factors[comparison.factor].name,
            "a": comparison.a,
            "b": comparison.b,
            "within": comparison.within,
            "workload": comparison.workload,
            "metric": comparison.metric,
            "ratio": comparison.ratio,
        })
    });
    let remarks = remarks(card, table).into_iter();
    json!({
        "published_format": FORMAT,
        "name": card.name,
        "title": card.title,
        "year": card.year,
        "question": card.question,
        "environment": card.environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
        "words": card.words,
        "figures": figures.collect::<Vec<_>>(),
        "ratios": ratios.collect::<Vec<_>>(),
        "conclusions": conclusions(card, table),
        "remarks": remarks.map(|r| json!({ "check": r.check, "text": r.text })).collect::<Vec<_>>(),
        "stands_in": card.counterpart.stands_in,
    })
}

fn levels(card: &Card, levels: &[String]) -> Value {
    let named = card.factors.iter().zip(levels);
    Value::Object(
        named
            .filter(|(_, level)| !level.is_empty())
            .map(|(factor, level)| (factor.name.to_owned(), Value::String(level.clone())))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::published::ALL;

    fn text(card: &Card, form: &str) -> String {
        published(card, form, Screen::default()).unwrap().plain()
    }

    #[test]
    fn texts_of_published_studies_are_as_reviewed() {
        for card in ALL {
            insta::assert_snapshot!(format!("published-{}", card.name), text(card, "terminal"));
        }
        insta::assert_snapshot!("published-markdown", text(&ALL[4], "markdown"));
    }

    #[test]
    fn a_terminal_of_eighty_columns_is_enough() {
        for card in ALL {
            for line in text(card, "terminal").lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", card.name);
            }
        }
    }

    #[test]
    fn programs_get_every_figure_and_ratio() {
        for card in ALL {
            let table = PublishedTable::of(card).unwrap();
            let lines: Vec<String> = text(card, "csv").lines().map(str::to_owned).collect();
            assert_eq!(lines.len(), table.figures.len() + 1);
            let columns = lines[0].split(',').count();
            assert_eq!(columns, 9 + card.factors.len());
            assert!(lines.iter().all(|line| line.split(',').count() == columns));
            let json: Value = serde_json::from_str(&text(card, "json")).unwrap();
            assert_eq!(
                json["figures"].as_array().unwrap().len(),
                table.figures.len()
            );
            assert_eq!(
                json["ratios"].as_array().unwrap().len(),
                comparisons(card, &table).len()
            );
            assert_eq!(json["published_format"], FORMAT);
        }
    }

    /// Every ratio that is computed is in some table of the page.
    #[test]
    fn no_ratio_is_left_out() {
        for card in ALL {
            let all = comparisons(card, &PublishedTable::of(card).unwrap());
            let shown: usize = ratio_tables(card, &all)
                .iter()
                .map(|grid| {
                    let means = usize::from(grid.head.last().is_some_and(|name| name == "mean"));
                    let rows = &grid.rows[..grid.rows.len() - 1];
                    let cells = rows
                        .iter()
                        .flat_map(|row| &row.cells[1..row.cells.len() - means]);
                    cells.filter(|cell| *cell != figure::MISSING).count()
                })
                .sum();
            assert_eq!(shown, all.len(), "{}", card.name);
        }
    }
}
