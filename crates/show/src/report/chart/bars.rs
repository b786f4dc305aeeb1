//! Values as bars from zero, in their own unit, with the interval of each at the bar's end.

use maud::{Markup, html};

use super::axis::Axis;
use super::caption::Caption;
use super::drawing::{MARK, Plot, PlotName, SERIES_MAX, fit, marker, px};
use crate::report::figure;
use stackrace_judge::verdict::Interval;

/// Natural width.
const WIDTH: f64 = 360.0;
/// Height of a row: a line of text and the bar below it.
const ROW: f64 = 36.0;
/// Height of a group's heading.
const HEADING: f64 = 30.0;

/// Bars of one scale.
pub(in crate::report) struct BarGroup {
    /// Text above the bars.
    pub(in crate::report) heading: String,
    /// Unit of the values.
    pub(in crate::report) unit: String,
    /// Bars, top to bottom.
    pub(in crate::report) rows: Vec<BarRow>,
}

/// A bar with its label and its interval.
pub(in crate::report) struct BarRow {
    /// Name of the thing whose value it is.
    pub(in crate::report) label: String,
    /// Configuration by index: its colour.
    pub(in crate::report) configuration: usize,
    /// The value; `None` if it could not be had.
    pub(in crate::report) value: Option<Interval>,
}

/// The chart. Each group has a scale of its own, which begins at 0.
pub(in crate::report) fn bars(id: &str, title: &str, groups: &[BarGroup]) -> Plot {
    let mut top = 4.0;
    let mut placed: Vec<Markup> = Vec::new();
    for group in groups {
        placed.push(html! {
            text class="group" x="0" y=(px(top + 17.0)) {
                title { (group.heading) }
                (fit(&group.heading, WIDTH))
            }
        });
        top += HEADING;
        for row in &group.rows {
            let text = caption(row, &group.unit);
            let words = Caption::new(&row.label, &text, (MARK, WIDTH));
            placed.push(draw(row, &words, scale(group), top));
            top += ROW + words.more();
        }
    }
    let content = html! { @for part in &placed { (part) } };
    let said = groups.iter().map(|group| {
        let rows = group
            .rows
            .iter()
            .map(|row| format!("{} {}", row.label, caption(row, &group.unit)));
        format!(
            "{}: {}.",
            group.heading,
            rows.collect::<Vec<_>>().join("; ")
        )
    });
    let desc = said.collect::<Vec<_>>().join(" ");
    let desc = &desc;
    Plot::new(PlotName { id, title, desc }, (WIDTH, top + 4.0), content)
}

/// Axis from 0 to the end of the longest interval, as far as that is not beyond reason: an interval
/// that knows nothing must not squeeze the bars.
fn scale(group: &BarGroup) -> Axis {
    let values = || group.rows.iter().filter_map(|row| row.value);
    let longest = values()
        .map(|value| value.estimate)
        .filter(|v| v.is_finite());
    // Half as much again as the longest bar: enough for any interval that says something.
    let most = 1.5 * longest.fold(0.0, f64::max);
    let ends = values().flat_map(|value| {
        let high = value.high.is_finite().then(|| value.high.min(most));
        [value.estimate, high.unwrap_or(value.estimate)]
    });
    Axis::up_to(ends)
}

/// `240 MB/s [231, 250]`; without an interval the value alone.
fn caption(row: &BarRow, unit: &str) -> String {
    let Some(value) = row.value else {
        return figure::MISSING.to_owned();
    };
    let estimate = figure::value(unit, value.estimate);
    // Imported figures may have a mean without an interval.
    match value.low.is_finite() && value.high.is_finite() {
        true => format!("{estimate} {}", figure::range(unit, value)),
        false => estimate,
    }
}

fn draw(row: &BarRow, words: &Caption<'_>, axis: Axis, top: f64) -> Markup {
    let place = |value: f64| axis.place(value, 0.0, WIDTH - 2.0);
    let y = top + 23.0 + words.more();
    html! {
        g class={ "bar s" (row.configuration % SERIES_MAX) } data-configuration=(row.label) {
            title { (row.label) ": " (words.figure()) }
            (marker(row.configuration, 5.0, top + 8.0))
            (words.draw(top + 12.0))
            @if let Some(value) = row.value {
                // A value near 0 keeps a line that can be seen.
                rect class="value" x="0" y=(px(y - 5.0)) height="10" width=(px(place(value.estimate).max(1.0))) {}
                @if value.low.is_finite() && value.high.is_finite() {
                    line class="end" x1=(px(place(value.low))) x2=(px(place(value.high))) y1=(px(y)) y2=(px(y)) {}
                    @for end in [value.low, value.high] {
                        // An end beyond the scale has no tick: the line goes on.
                        @if axis.holds(end) {
                            line class="end" x1=(px(place(end))) x2=(px(place(end)))
                                y1=(px(y - 4.0)) y2=(px(y + 4.0)) {}
                        }
                    }
                }
            }
        }
    }
}
