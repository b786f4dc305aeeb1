//! Lines over an axis: block sizes, latencies, time.

use maud::{Markup, html};

use super::axis::Axis;
use super::drawing::{
    FONT, LegendEntry, Plot, PlotName, SERIES_MAX, ems, fit, marker, px, ticks_below,
};
use super::labels::{Label, spread};

/// Natural width.
const WIDTH: f64 = 360.0;
/// Natural height.
const HEIGHT: f64 = 250.0;
/// Room above the lines, for the name of the vertical axis.
const TOP: f64 = 28.0;
/// Room right of the lines.
const RIGHT: f64 = 14.0;
/// Room below the lines.
const BOTTOM: f64 = 46.0;

/// Fewer points than these are drawn as points alone: a line would claim to know what lies between.
const LINE_POINTS_MIN: usize = 8;

/// Room between such points of two lines.
const ASIDE: f64 = 8.0;

/// A series of points, joined where there are enough of them.
pub(in crate::report) struct ChartLine {
    /// Its name, shown in the legend.
    pub(in crate::report) label: String,
    /// Its colour and marker: of a configuration, its index.
    pub(in crate::report) series: usize,
    /// Points, left to right.
    pub(in crate::report) points: Vec<(f64, f64)>,
    /// Interval at a point: x, low, high.
    pub(in crate::report) band: Vec<(f64, f64, f64)>,
    /// Points are measured ones and are marked; else only some are, to tell the line.
    pub(in crate::report) marked: bool,
    /// Points of it with a ring around them.
    pub(in crate::report) rings: Vec<(f64, f64)>,
    /// Position of its change, on the horizontal axis, and in words: an upright with a label.
    pub(in crate::report) change: Option<(f64, String)>,
}

/// Axes, lines and texts of a chart.
pub(in crate::report) struct LineChart<'a> {
    /// Unique in the page.
    pub(in crate::report) id: String,
    /// For those who do not see it.
    pub(in crate::report) title: String,
    /// A sentence on the content of the chart.
    pub(in crate::report) desc: String,
    /// Horizontal axis.
    pub(in crate::report) x: Axis,
    /// Name of the horizontal axis, with its unit.
    pub(in crate::report) x_name: String,
    /// Label of a value on it.
    pub(in crate::report) x_label: &'a dyn Fn(f64) -> String,
    /// Vertical axis.
    pub(in crate::report) y: Axis,
    /// Name of the vertical axis, with its unit.
    pub(in crate::report) y_name: String,
    /// Label of a value on it.
    pub(in crate::report) y_label: &'a dyn Fn(f64) -> String,
    /// Lines, at most [`SERIES_MAX`]; further ones are not drawn.
    pub(in crate::report) lines: Vec<ChartLine>,
    /// Values that cannot be exceeded, with their names: dashed lines across.
    pub(in crate::report) limits: Vec<(f64, String)>,
}

/// The chart, with its lines as legend.
pub(in crate::report) fn line(chart: &LineChart<'_>) -> Plot {
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
    let x_ticks = x_ticks
        .into_iter()
        .map(|(value, label)| (x(value), label))
        .collect();
    let content = html! {
        @for (value, label) in &y_ticks {
            line class="grid" x1=(px(left)) x2=(px(WIDTH - RIGHT)) y1=(px(y(*value))) y2=(px(y(*value))) {}
            text class="tick" text-anchor="end" x=(px(left - 6.0)) y=(px(y(*value) + 4.0)) { (label) }
        }
        @for tick in ticks_below(x_ticks, WIDTH) {
            line class="grid" x1=(px(tick.x)) x2=(px(tick.x)) y1=(px(TOP)) y2=(px(floor)) {}
            text class="tick" text-anchor=(tick.anchor) x=(px(tick.x)) y=(px(floor + 19.0)) { (tick.label) }
        }
        text class="faint" x="4" y="12" { (fit(&chart.y_name, WIDTH - 8.0)) }
        text class="faint" text-anchor="end" x=(px(WIDTH - RIGHT)) y=(px(HEIGHT - 6.0)) {
            (fit(&chart.x_name, WIDTH - left - RIGHT))
        }
        // Callers spread more lines over several charts: colours and markers end here.
        @for (at, line) in chart.lines.iter().take(SERIES_MAX).enumerate() {
            (draw(at, line, chart, &x, &y))
        }
        (words(chart, (left, floor), &x, &y))
        path class="axis" d={ "M" (px(left)) " " (px(TOP)) "V" (px(floor)) "H" (px(WIDTH - RIGHT)) } {}
    };
    let lines = chart.lines.iter().take(SERIES_MAX);
    let name = PlotName {
        id: &chart.id,
        title: &chart.title,
        desc: &chart.desc,
    };
    Plot::new(name, (WIDTH, HEIGHT), content).with(
        lines
            .map(|line| LegendEntry::of(line.series, &line.label))
            .collect(),
    )
}

/// Words within the drawing: uprights where a line changes, limits across, and their labels.
fn words(
    chart: &LineChart<'_>,
    (left, floor): (f64, f64),
    x: &dyn Fn(f64) -> f64,
    y: &dyn Fn(f64) -> f64,
) -> Markup {
    let changes: Vec<(&ChartLine, f64, &str)> = chart
        .lines
        .iter()
        .take(SERIES_MAX)
        .filter_map(|line| {
            line.change
                .as_ref()
                .map(|(at, words)| (line, *at, words.as_str()))
        })
        .collect();
    let limits: Vec<&(f64, String)> = chart
        .limits
        .iter()
        .filter(|(value, _)| chart.y.holds(*value))
        .collect();
    let right = WIDTH - RIGHT;
    let label = |text: &str, wanted: f64, y: f64| {
        let text = fit(text, right - left - 4.0);
        let last = right - ems(&text) * FONT;
        Label {
            // The left edge wins, since a text begins there.
            left: wanted.min(last).max(left + 4.0),
            text,
            y,
        }
    };
    // Changes first: the first ones get the places they want, and limits may move.
    let mut wanted: Vec<Label> = changes
        .iter()
        .map(|&(_, at, words)| label(words, x(at) + 5.0, TOP + 12.0))
        .collect();
    wanted.extend(
        limits
            .iter()
            .map(|(value, name)| label(name, right, y(*value) - 4.0)),
    );
    let placed = spread(wanted, TOP + 12.0, floor - 4.0);
    let (of_changes, of_limits) = placed.split_at(changes.len());
    let text = |label: &Option<Label>| {
        html! {
            @if let Some(label) = label {
                text x=(px(label.left)) y=(px(label.y)) { (label.text) }
            }
        }
    };
    html! {
        @for ((line, at, words), label) in changes.iter().zip(of_changes) {
            g class={ "change s" (line.series % SERIES_MAX) } {
                title { (line.label) ": " (words) }
                line x1=(px(x(*at))) x2=(px(x(*at))) y1=(px(TOP)) y2=(px(floor)) {}
                (text(label))
            }
        }
        @for ((value, name), label) in limits.iter().zip(of_limits) {
            g class="limit" {
                title { (name) }
                line x1=(px(left)) x2=(px(right)) y1=(px(y(*value))) y2=(px(y(*value))) {}
                (text(label))
            }
        }
    }
}

fn draw(
    at: usize,
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
    // `&mut dyn`: a band is drawn there and back as one path, from two kinds of iterators.
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut d = String::new();
        for (at, value) in points {
            d.push(if d.is_empty() { 'M' } else { 'L' });
            d.push_str(&format!("{} {}", px(x(at)), px(y(value))));
        }
        d
    };
    let few = line.points.len() < LINE_POINTS_MIN;
    // Lines of many points get a few markers, at other places for each series.
    let every = if line.marked || few {
        1
    } else {
        (points.len() / 5).max(1)
    };
    let first = if line.marked || few {
        0
    } else {
        at * every / SERIES_MAX
    };
    // Points of several lines at one place stand side by side, or they would hide each other.
    let count = chart.lines.len().min(SERIES_MAX);
    let at_same = |other: &ChartLine| {
        let mut own = line.points.iter();
        own.any(|own| other.points.iter().any(|its| its.0 == own.0))
    };
    let shares = chart.lines.iter().filter(|other| at_same(other)).count() > 1;
    let aside = match few && shares {
        true => (at as f64 - (count as f64 - 1.0) / 2.0) * ASIDE,
        false => 0.0,
    };
    html! {
        g class={ "series s" (line.series % SERIES_MAX) } data-configuration=(line.label) {
            title { (line.label) }
            @if few {
                // Few points: a line between them would suggest values that were never measured.
                @for &(at, low, high) in &line.band {
                    line class="end" x1=(px(x(at) + aside)) x2=(px(x(at) + aside)) y1=(px(y(low))) y2=(px(y(high))) {}
                }
            } @else if !line.band.is_empty() {
                @let there = line.band.iter().map(|&(at, low, _)| (at, low));
                @let back = line.band.iter().rev().map(|&(at, _, high)| (at, high));
                path class="ribbon" d={ (path(&mut there.chain(back))) "Z" } {}
            }
            @if !few { path class="line" d=(path(&mut points.iter().copied())) {} }
            @for &(at, value) in points.iter().skip(first).step_by(every) {
                (marker(line.series, x(at) + aside, y(value)))
            }
            @for &(at, value) in &line.rings {
                circle class="ring" cx=(px(x(at) + aside)) cy=(px(y(value))) r="9" { title { "changed" } }
            }
        }
    }
}
