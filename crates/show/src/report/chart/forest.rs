//! Ratios with their intervals, one below the other, and the margin as a band behind them.

use maud::{Markup, html};

use super::axis::{Axis, Scale};
use super::caption::Caption;
use super::drawing::{
    FONT, LegendEntry, MARK, Plot, PlotName, SERIES_MAX, ems, fit, marker, px, ticks_below,
};
use crate::report::figure;
use stackrace_judge::verdict::Interval;

/// Natural width.
const WIDTH: f64 = 360.0;
/// Room left and right of the axis.
const SIDE: f64 = 8.0;
/// Height of a row: a line of text and the interval below it.
const ROW: f64 = 40.0;
/// Height of the line of text in a row.
const TEXT: f64 = 19.0;
/// Height of a group's heading.
const HEADING: f64 = 26.0;
/// Room for the axis below.
const FOOT: f64 = 44.0;

/// Rows that belong together.
pub(in crate::report) struct ForestGroup {
    /// Heading; empty if none.
    pub(in crate::report) heading: String,
    /// Rows, top to bottom.
    pub(in crate::report) rows: Vec<ForestRow>,
}

/// A ratio with its interval, in a line of the plot.
pub(in crate::report) struct ForestRow {
    /// Name of the comparison.
    pub(in crate::report) label: String,
    /// Configuration, by index, whose value is above the line of the ratio: its colour. `None` if
    /// no single one.
    pub(in crate::report) configuration: Option<usize>,
    /// The ratio; `None` if it could not be had.
    pub(in crate::report) ratio: Option<Interval>,
    /// The verdict on it.
    pub(in crate::report) text: String,
    /// Class of the verdict: its name, as [`stackrace_judge::verdict`] has it.
    pub(in crate::report) word: &'static str,
}

/// The chart. `margin` is the share below which a difference does not matter.
pub(in crate::report) fn forest(
    id: &str,
    title: &str,
    margin: f64,
    groups: &[ForestGroup],
) -> Plot {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    // The band reaches from 1/(1+m) to 1+m: it must look the same from either side.
    let band = [1.0 / (1.0 + margin), 1.0 + margin];
    let ends = rows().filter_map(|row| row.ratio).flat_map(|ratio| {
        // An interval that knows nothing must not squeeze the others: it leaves the drawing. One
        // that is not there (imported figures) takes no room.
        let near = |end: f64| match end.is_nan() {
            true => ratio.estimate,
            false => end.max(ratio.estimate / 10.0).min(ratio.estimate * 10.0),
        };
        [near(ratio.low), near(ratio.high), ratio.estimate]
    });
    let axis = Axis::over(
        Scale::Log10,
        ends.chain([1.0 / (1.0 + 1.6 * margin), 1.0 + 1.6 * margin]),
    )
    .widened(0.04);
    let place = |value: f64| axis.place(value, SIDE, WIDTH - SIDE);
    let (placed, bottom) = lay_out(groups);
    let content = html! {
        @for (top, item) in placed {
            @match item {
                Item::Heading(heading) => {
                    text class="group" x=(px(SIDE)) y=(px(top + 17.0)) {
                        title { (heading) }
                        (fit(heading, WIDTH - 2.0 * SIDE))
                    }
                }
                Item::TextRow(row) => {
                    // Behind an interval alone: text, above it or in its place, stays clear.
                    @if row.ratio.is_some() {
                        @let top = top + words(row, &figures(row)).more();
                        rect class="band" x=(px(place(band[0]))) y=(px(top + TEXT)) height=(px(ROW - TEXT))
                            width=(px(place(band[1]) - place(band[0]))) {}
                        line class="one" x1=(px(place(1.0))) x2=(px(place(1.0)))
                            y1=(px(top + TEXT)) y2=(px(top + ROW)) {}
                    }
                    (draw(row, axis, top))
                }
            }
        }
        (foot(axis, bottom))
    };
    let desc = rows()
        .map(|row| match row.ratio {
            Some(ratio) => format!(
                "{}: {} {}, {}.",
                row.label,
                figure::ratio(ratio.estimate),
                figure::ratio_range(ratio),
                row.text
            ),
            None => format!("{}: {}.", row.label, row.text),
        })
        .collect::<Vec<_>>()
        .join(" ");
    let desc = &desc;
    Plot::new(
        PlotName { id, title, desc },
        (WIDTH, bottom + FOOT),
        content,
    )
}

enum Item<'a> {
    Heading(&'a str),
    TextRow(&'a ForestRow),
}

/// Positions of everything, from above, and of the end of the rows.
fn lay_out(groups: &[ForestGroup]) -> (Vec<(f64, Item<'_>)>, f64) {
    let mut top = 6.0;
    let mut placed = Vec::new();
    for group in groups {
        if !group.heading.is_empty() {
            placed.push((top, Item::Heading(&group.heading)));
            top += HEADING;
        }
        for row in &group.rows {
            placed.push((top, Item::TextRow(row)));
            top += ROW + words(row, &figures(row)).more();
        }
    }
    (placed, top)
}

/// `1.18 (1.02 to 1.31)`; empty if there is no ratio.
fn figures(row: &ForestRow) -> String {
    row.ratio.map_or(String::new(), |ratio| {
        format!(
            "{} {}",
            figure::ratio(ratio.estimate),
            figure::ratio_range(ratio)
        )
    })
}

fn words<'a>(row: &ForestRow, figures: &'a str) -> Caption<'a> {
    let indent = row.configuration.map_or(0.0, |_| MARK);
    Caption::new(&row.label, figures, (SIDE + indent, WIDTH - SIDE))
}

fn draw(row: &ForestRow, axis: Axis, top: f64) -> Markup {
    let place = |value: f64| axis.place(value, SIDE, WIDTH - SIDE);
    let text = figures(row);
    let words = words(row, &text);
    let y = top + 28.0 + words.more();
    html! {
        g class={ "row " (row.word) (series(row.configuration)) } {
            title { (row.label) ": " (text) " " (row.text) }
            @if let Some(at) = row.configuration { (marker(at, SIDE + 5.0, top + 10.0)) }
            (words.draw(top + 14.0))
            @if let Some(ratio) = row.ratio {
                // Imported ratios may have no interval.
                @if !ratio.low.is_nan() && !ratio.high.is_nan() {
                    line class="whisker" x1=(px(place(ratio.low))) x2=(px(place(ratio.high)))
                        y1=(px(y)) y2=(px(y)) {}
                }
                @for end in [ratio.low, ratio.high] {
                    // An end beyond the axis has no bar: the line goes on.
                    @if axis.holds(end) {
                        line class="whisker" x1=(px(place(end))) x2=(px(place(end)))
                            y1=(px(y - 5.0)) y2=(px(y + 5.0)) {}
                    }
                }
                (mark(row.word, place(ratio.estimate), y))
            } @else {
                text class="faint" x=(px(SIDE)) y=(px(y + 4.0)) { (fit(&row.text, WIDTH - 2.0 * SIDE)) }
            }
        }
    }
}

/// The class of a configuration's colour.
fn series(configuration: Option<usize>) -> String {
    configuration.map_or(String::new(), |at| format!(" s{}", at % SERIES_MAX))
}

/// The estimate: its shape says the verdict, its colour the configuration.
fn mark(word: &str, x: f64, y: f64) -> Markup {
    let d = match word {
        "better" => format!("M{} {}l-5 -6v12z", px(x + 6.0), px(y)),
        "worse" => format!("M{} {}l5 -6v12z", px(x - 6.0), px(y)),
        "probably" => format!("M{} {}l6 6l-6 6l-6 -6z", px(x), px(y - 6.0)),
        "no-difference" => format!("M{} {}h10v10h-10z", px(x - 5.0), px(y - 5.0)),
        _ => {
            return html! { circle class="estimate open" cx=(px(x)) cy=(px(y)) r="5" {} };
        }
    };
    // Probable is no claim, so it is an outline as undecided is.
    let open = word == "probably";
    html! { path class={ "estimate" @if open { " open" } } d=(d) {} }
}

/// The shape of a verdict, for a legend.
pub(in crate::report) fn verdict_entry(word: &str, words: &str) -> LegendEntry {
    LegendEntry {
        class: "row".to_owned(),
        side: 14.0,
        sign: mark(word, 7.0, 7.0),
        words: words.to_owned(),
    }
}

fn foot(axis: Axis, bottom: f64) -> Markup {
    let place = |value: f64| axis.place(value, SIDE, WIDTH - SIDE);
    let ticks = axis.ticks(
        WIDTH - 2.0 * SIDE,
        // Multiples of a step have digits such as 1.1500000000000001.
        &|value| format!("{}", (value * 1e4).round() / 1e4),
        &|label| ems(label) * FONT + 14.0,
    );
    let ticks = ticks
        .into_iter()
        .map(|(value, label)| (place(value), label))
        .collect();
    html! {
        line class="axis" x1=(px(SIDE)) x2=(px(WIDTH - SIDE)) y1=(px(bottom)) y2=(px(bottom)) {}
        @for tick in ticks_below(ticks, WIDTH) {
            line class="axis" x1=(px(tick.x)) x2=(px(tick.x)) y1=(px(bottom)) y2=(px(bottom + 4.0)) {}
            text class="tick" text-anchor=(tick.anchor) x=(px(tick.x)) y=(px(bottom + 17.0)) { (tick.label) }
        }
        text class="faint" x=(px(SIDE)) y=(px(bottom + 36.0)) { "← worse" }
        text class="faint" text-anchor="end" x=(px(WIDTH - SIDE)) y=(px(bottom + 36.0)) { "better →" }
        text class="faint" text-anchor="middle" x=(px(WIDTH / 2.0)) y=(px(bottom + 36.0)) {
            "ratio"
        }
    }
}
