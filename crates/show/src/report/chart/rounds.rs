//! Every round's value of each configuration, one configuration below the other; a line joins the values
//! of one round, so that what moved all configurations alike can be told from what moved one.

use maud::{Markup, html};

use super::axis::Axis;
use super::caption::Caption;
use super::drawing::{FONT, MARK, Plot, PlotName, SERIES_MAX, ems, marker, px, ticks_below};
use crate::report::figure;
use stackrace_judge::verdict::Interval;

/// Natural width.
const WIDTH: f64 = 360.0;
/// Room left and right of the axis.
const SIDE: f64 = 8.0;
/// Height of a row: a line of text and the values below it.
const ROW: f64 = 44.0;
/// Room for the axis below.
const FOOT: f64 = 30.0;

/// A configuration with its values in all rounds.
pub(in crate::report) struct RoundsRow {
    /// Its name.
    pub(in crate::report) label: String,
    /// Index of the configuration: its colour.
    pub(in crate::report) configuration: usize,
    /// Mean with its own interval.
    pub(in crate::report) mean: Option<Interval>,
    /// Value in each round, with the round's number and where its trial is shown; empty if nowhere.
    pub(in crate::report) rounds: Vec<(u32, f64, String)>,
}

/// The chart; `unit` is that of the metric.
pub(in crate::report) fn rounds(id: &str, title: &str, unit: &str, rows: &[RoundsRow]) -> Plot {
    let axis = Axis::over_positive(rows.iter().flat_map(|row| {
        // The axis passes over ends that are not numbers.
        let ends = row.mean.map_or([f64::NAN; 2], |mean| [mean.low, mean.high]);
        row.rounds.iter().map(|(_, value, _)| *value).chain(ends)
    }))
    .widened(0.04);
    let place = |value: f64| axis.place(value, SIDE, WIDTH - SIDE);
    let captions: Vec<String> = rows.iter().map(|row| caption(row, unit)).collect();
    let words: Vec<Caption<'_>> = rows
        .iter()
        .zip(&captions)
        .map(|(row, text)| Caption::new(&row.label, text, (SIDE + MARK, WIDTH - SIDE)))
        .collect();
    let mut bottom = 8.0;
    let mut middles = Vec::new();
    for words in &words {
        bottom += ROW + words.more();
        // Above the lower edge of its row, below the words.
        middles.push(bottom - 18.0);
    }
    let middle = |row: usize| middles[row];
    let ticks = axis.ticks(
        WIDTH - 2.0 * SIDE,
        &|value| figure::tick(unit, value),
        &|label| ems(label) * FONT + 14.0,
    );
    let ticks: Vec<(f64, String)> = ticks
        .into_iter()
        .map(|(value, label)| (place(value), label))
        .collect();
    let drawn = |links: bool| {
        html! {
            @for tick in ticks_below(ticks.clone(), WIDTH) {
                line class="grid" x1=(px(tick.x)) x2=(px(tick.x)) y1="2" y2=(px(bottom)) {}
                text class="tick" text-anchor=(tick.anchor) x=(px(tick.x)) y=(px(bottom + 17.0)) { (tick.label) }
            }
            @for path in joined(rows, &place, &middle) { path class="join" d=(path) {} }
            @for (at, row) in rows.iter().enumerate() {
                (draw(row, (axis, unit), &words[at], middle(at), links))
            }
            line class="axis" x1=(px(SIDE)) x2=(px(WIDTH - SIDE)) y1=(px(bottom)) y2=(px(bottom)) {}
        }
    };
    let desc = rows
        .iter()
        .map(|row| format!("{}: {}.", row.label, caption(row, unit)))
        .collect::<Vec<_>>()
        .join(" ");
    let desc = &desc;
    let size = (WIDTH, bottom + FOOT);
    Plot::new(PlotName { id, title, desc }, size, drawn(true)).linked(drawn(false))
}

fn caption(row: &RoundsRow, unit: &str) -> String {
    row.mean.map_or(figure::MISSING.to_owned(), |mean| {
        format!(
            "{} {}",
            figure::value(unit, mean.estimate),
            figure::range(unit, mean)
        )
    })
}

fn draw(
    row: &RoundsRow,
    (axis, unit): (Axis, &str),
    words: &Caption<'_>,
    y: f64,
    links: bool,
) -> Markup {
    let place = |value: f64| axis.place(value, SIDE, WIDTH - SIDE);
    let first = y - 15.0 - words.more();
    html! {
        g class={ "row s" (row.configuration % SERIES_MAX) } data-configuration=(row.label) {
            title { (row.label) ": " (caption(row, unit)) }
            (marker(row.configuration, SIDE + 5.0, first - 4.0))
            (words.draw(first))
            @if let Some(mean) = row.mean {
                rect class="mean" x=(px(place(mean.low))) y=(px(y - 6.0)) height="12"
                    width=(px((place(mean.high) - place(mean.low)).max(1.0))) {}
                line class="whisker" x1=(px(place(mean.estimate))) x2=(px(place(mean.estimate)))
                    y1=(px(y - 8.0)) y2=(px(y + 8.0)) {}
            }
            @for (round, value, href) in &row.rounds {
                @let mark = html! {
                    title { "round " (round) ": " (figure::value(unit, *value)) }
                    (marker(row.configuration, place(*value), y))
                    // A cross is thin: what is around it can be clicked, too.
                    circle class="hit" cx=(px(place(*value))) cy=(px(y)) r="6" {}
                };
                // A hundred stops would bar a keyboard's way: the table of trials leads there too.
                @if href.is_empty() || !links { g { (mark) } } @else { a href=(href) tabindex="-1" { (mark) } }
            }
        }
    }
}

/// One path per round, broken where a configuration has no value in it.
fn joined(
    rows: &[RoundsRow],
    place: &dyn Fn(f64) -> f64,
    middle: &dyn Fn(usize) -> f64,
) -> Vec<String> {
    let mut numbers: Vec<u32> = rows
        .iter()
        .flat_map(|row| row.rounds.iter().map(|(round, _, _)| *round))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
        .into_iter()
        .filter_map(|number| {
            // Only neighbours are joined: a line past a configuration without this round would
            // suggest a value there.
            let mut path = String::new();
            let mut drawn = false;
            let mut pen_down = false;
            for (at, row) in rows.iter().enumerate() {
                let value = row.rounds.iter().find(|(round, _, _)| *round == number);
                if let Some((_, value, _)) = value {
                    path.push(if pen_down { 'L' } else { 'M' });
                    path.push_str(&format!("{} {}", px(place(*value)), px(middle(at))));
                    drawn |= pen_down;
                }
                pen_down = value.is_some();
            }
            drawn.then_some(path)
        })
        .collect()
}
