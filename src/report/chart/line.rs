//! Lines over an axis: block sizes, latencies, time.

use maud::{Markup, html};

use super::axis::Axis;
use super::drawing::{FONT, SERIES_MAX, anchor, ems, fit, marker, px, svg};

/// Natural width.
const WIDTH: f64 = 480.0;
/// Natural height.
const HEIGHT: f64 = 270.0;
/// Room above the lines, for the name of the vertical axis.
const TOP: f64 = 22.0;
/// Room right of the lines.
const RIGHT: f64 = 14.0;
/// Room below the lines.
const BOTTOM: f64 = 40.0;

/// One line.
pub(in crate::report) struct ChartLine {
    /// Its name, shown in the legend.
    pub(in crate::report) label: String,
    /// Points, left to right.
    pub(in crate::report) points: Vec<(f64, f64)>,
    /// Interval at a point: x, low, high.
    pub(in crate::report) band: Vec<(f64, f64, f64)>,
    /// Points are measured ones and are marked; else only some are, to tell the line.
    pub(in crate::report) marked: bool,
    /// Where it changes, on the horizontal axis, and in words: an upright with a label.
    pub(in crate::report) change: Option<(f64, String)>,
}

/// What is drawn.
pub(in crate::report) struct LineChart<'a> {
    /// Unique in the page.
    pub(in crate::report) id: String,
    /// For those who do not see it.
    pub(in crate::report) title: String,
    /// What it shows, in a sentence.
    pub(in crate::report) desc: String,
    /// Horizontal axis.
    pub(in crate::report) x: Axis,
    /// Its name.
    pub(in crate::report) x_name: String,
    /// Label of a value on it.
    pub(in crate::report) x_label: &'a dyn Fn(f64) -> String,
    /// Vertical axis.
    pub(in crate::report) y: Axis,
    /// Its name.
    pub(in crate::report) y_name: String,
    /// Label of a value on it.
    pub(in crate::report) y_label: &'a dyn Fn(f64) -> String,
    /// At most [`SERIES_MAX`] lines; further ones are not drawn.
    pub(in crate::report) lines: Vec<ChartLine>,
    /// Values that cannot be exceeded, with their names: dashed lines across.
    pub(in crate::report) limits: Vec<(f64, String)>,
    /// Points with a ring around them.
    pub(in crate::report) rings: Vec<(f64, f64)>,
}

/// The chart.
pub(in crate::report) fn line(chart: &LineChart<'_>) -> Markup {
    let floor = HEIGHT - BOTTOM;
    let y_ticks = chart.y.ticks(floor - TOP, chart.y_label, &|_| FONT + 10.0);
    let left = 12.0
        + y_ticks
            .iter()
            .map(|(_, label)| ems(label) * FONT)
            .fold(0.0, f64::max);
    let x_ticks = chart
        .x
        .ticks(WIDTH - RIGHT - left, chart.x_label, &|label| {
            ems(label) * FONT + 12.0
        });
    let x = |value: f64| chart.x.place(value, left, WIDTH - RIGHT);
    let y = |value: f64| chart.y.place(value, floor, TOP);
    let content = html! {
        @for (value, label) in &y_ticks {
            line class="grid" x1=(px(left)) x2=(px(WIDTH - RIGHT)) y1=(px(y(*value))) y2=(px(y(*value))) {}
            text class="tick" text-anchor="end" x=(px(left - 6.0)) y=(px(y(*value) + 4.0)) { (label) }
        }
        @for (value, label) in &x_ticks {
            line class="grid" x1=(px(x(*value))) x2=(px(x(*value))) y1=(px(TOP)) y2=(px(floor)) {}
            text class="tick" text-anchor=(anchor(x(*value), label, WIDTH))
                x=(px(x(*value))) y=(px(floor + 16.0)) { (label) }
        }
        text class="faint" x="4" y="12" { (fit(&chart.y_name, WIDTH - 8.0)) }
        text class="faint" text-anchor="end" x=(px(WIDTH - RIGHT)) y=(px(HEIGHT - 6.0)) {
            (fit(&chart.x_name, WIDTH - left - RIGHT))
        }
        @for (series, line) in chart.lines.iter().take(SERIES_MAX).enumerate() {
            (draw(series, line, chart, &x, &y))
        }
        @let changes = chart.lines.iter().take(SERIES_MAX).enumerate();
        @let changes = changes.filter_map(|(series, line)| Some((series, line, line.change.as_ref()?)));
        @for (row, (series, line, (at, words))) in changes.enumerate() {
            g class={ "change s" (series) } {
                title { (line.label) ": " (words) }
                line x1=(px(x(*at))) x2=(px(x(*at))) y1=(px(TOP)) y2=(px(floor)) {}
                @let right = x(*at) + 5.0 + ems(words) * FONT <= WIDTH;
                text text-anchor=(if right { "start" } else { "end" })
                    x=(px(x(*at) + if right { 5.0 } else { -5.0 }))
                    y=(px(TOP + 12.0 + 15.0 * row as f64)) { (fit(words, WIDTH - left)) }
            }
        }
        @for (value, name) in chart.limits.iter().filter(|(value, _)| chart.y.holds(*value)) {
            g class="limit" {
                title { (name) }
                line x1=(px(left)) x2=(px(WIDTH - RIGHT)) y1=(px(y(*value))) y2=(px(y(*value))) {}
                text text-anchor="end" x=(px(WIDTH - RIGHT)) y=(px(y(*value) - 4.0)) {
                    (fit(name, WIDTH - RIGHT - left))
                }
            }
        }
        @for &(at, value) in &chart.rings {
            circle class="ring" cx=(px(x(at))) cy=(px(y(value))) r="9" { title { "changed" } }
        }
        path class="axis" d={ "M" (px(left)) " " (px(TOP)) "V" (px(floor)) "H" (px(WIDTH - RIGHT)) } {}
    };
    svg(
        &chart.id,
        &chart.title,
        &chart.desc,
        WIDTH,
        HEIGHT,
        &content,
    )
}

fn draw(
    series: usize,
    line: &ChartLine,
    chart: &LineChart<'_>,
    x: &dyn Fn(f64) -> f64,
    y: &dyn Fn(f64) -> f64,
) -> Markup {
    let points: Vec<(f64, f64)> = line
        .points
        .iter()
        .copied()
        .filter(|&(at, value)| chart.x.holds(at) && chart.y.holds(value))
        .collect();
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut d = String::new();
        for (at, value) in points {
            d.push(if d.is_empty() { 'M' } else { 'L' });
            d.push_str(&format!("{} {}", px(x(at)), px(y(value))));
        }
        d
    };
    // Lines of many points get a few markers, at other places for each series.
    let every = if line.marked {
        1
    } else {
        (points.len() / 5).max(1)
    };
    let first = if line.marked {
        0
    } else {
        series * every / SERIES_MAX
    };
    html! {
        g class={ "series s" (series) } {
            title { (line.label) }
            @if !line.band.is_empty() {
                @let there = line.band.iter().map(|&(at, low, _)| (at, low));
                @let back = line.band.iter().rev().map(|&(at, _, high)| (at, high));
                path class="ribbon" d={ (path(&mut there.chain(back))) "Z" } {}
            }
            path class="line" d=(path(&mut points.iter().copied())) {}
            @for &(at, value) in points.iter().skip(first).step_by(every) {
                (marker(series, x(at), y(value)))
            }
        }
    }
}

/// The names of a chart's lines with their markers, as text that flows.
pub(in crate::report) fn legend(names: &[&str]) -> Markup {
    html! {
        ul class="legend" {
            @for (series, name) in names.iter().take(SERIES_MAX).enumerate() {
                li {
                    svg class={ "series s" (series) } viewBox="0 0 26 12" aria-hidden="true" {
                        path class="line" d="M1 6h24" {}
                        (marker(series, 13.0, 6.0))
                    }
                    span { (name) }
                }
            }
        }
    }
}
