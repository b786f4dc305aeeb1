//! What all charts are drawn with: coordinates, text that fits, markers, the frame.

use std::cell::RefCell;

use maud::{Markup, Render, html};

/// Series that can be told apart in one chart.
pub(in crate::report) const SERIES_MAX: usize = 8;

/// Size of a chart's text.
pub(super) const FONT: f64 = 12.0;

/// The label of a value on a horizontal axis, held within the drawing.
pub(super) struct Tick {
    /// Position of the value.
    pub(super) x: f64,
    /// Part of the label that lies there: `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
    /// The label; empty if there is no room for one.
    pub(super) label: String,
}

/// Labels of values, left to right, in a drawing of that width: one that would lie on the one before
/// it is left out.
pub(super) fn ticks_below(ticks: Vec<(f64, String)>, width: f64) -> Vec<Tick> {
    let mut free_from = f64::NEG_INFINITY;
    let mut placed = Vec::new();
    for (x, label) in ticks.into_iter().filter(|tick| !tick.1.is_empty()) {
        let room = ems(&label) * FONT;
        // A label centred at an edge would be cut off, so there it is drawn towards the middle.
        let (anchor, left) = if x + room / 2.0 > width {
            ("end", x - room)
        } else if x < room / 2.0 {
            ("start", x)
        } else {
            ("middle", x - room / 2.0)
        };
        // A label without room is left out; its tick stays.
        let label = if left >= free_from {
            free_from = left + room + 4.0;
            label
        } else {
            String::new()
        };
        placed.push(Tick { x, anchor, label });
    }
    placed
}

/// Room of a configuration's marker before its name.
pub(super) const MARK: f64 = 15.0;

/// A coordinate: one decimal is finer than any screen.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Greatest width of a text, in multiples of the font's size: characters of East Asian scripts and
/// symbols are square.
pub(super) fn ems(text: &str) -> f64 {
    text.chars()
        // No font comes with the page and none can be measured: wide estimates, so that text fits.
        .map(|c| match c {
            'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ' ' | '[' | ']' => 0.36,
            'm' | 'w' | 'M' | 'W' | '%' => 0.92,
            'A'..='Z' => 0.7,
            // From Hangul Jamo on, most scripts and symbols are as wide as they are high.
            c if u32::from(c) >= 0x1100 => 1.05,
            _ => 0.58,
        })
        .sum()
}

/// The text as far as it fits, with `…` where it is cut.
pub(super) fn fit(text: &str, width: f64) -> String {
    if ems(text) * FONT <= width {
        return text.to_owned();
    }
    let mut room = width / FONT - ems("…");
    let mut cut: String = text
        .chars()
        .take_while(|&c| {
            room -= ems(c.encode_utf8(&mut [0; 4]));
            room >= 0.0
        })
        .collect();
    cut.push('…');
    cut
}

/// A marker around a point, its shape chosen by the series.
pub(super) fn marker(series: usize, x: f64, y: f64) -> Markup {
    let r = 3.6;
    let path = |d: String| html! { path class={ "mark s" (series % SERIES_MAX) } d=(d) {} };
    let polygon = |points: &[(f64, f64)]| {
        let mut d = String::new();
        for (at, (dx, dy)) in points.iter().enumerate() {
            d.push(if at == 0 { 'M' } else { 'L' });
            d.push_str(&format!("{} {}", px(x + dx * r), px(y + dy * r)));
        }
        d.push('Z');
        path(d)
    };
    // A shape for each colour: for print, and for readers who see the colours alike. Where the colours begin
    // again, each has the next shape.
    match (series + series / SERIES_MAX) % SERIES_MAX {
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        5 => path(format!(
            "M{} {}h{}M{} {}v{}",
            px(x - r),
            px(y),
            px(2.0 * r),
            px(x),
            px(y - r),
            px(2.0 * r)
        )),
        6 => path(format!(
            "M{} {}l{r2} {r2}M{} {}l{r2} -{r2}",
            px(x - r),
            px(y - r),
            px(x - r),
            px(y + r),
            r2 = px(2.0 * r)
        )),
        7 => polygon(&[(-1.3, -0.6), (1.3, -0.6), (1.3, 0.6), (-1.3, 0.6)]),
        _ => html! {
            circle class={ "mark s" (series % SERIES_MAX) } cx=(px(x)) cy=(px(y)) r=(px(r)) {}
        },
    }
}

/// Width of a text, about: no font is measured.
pub(in crate::report) fn room(text: &str) -> f64 {
    ems(text) * FONT
}

/// The sign of a configuration beside its name: its colour and its marker.
pub(in crate::report) fn swatch(configuration: usize) -> Markup {
    LegendEntry::of(configuration, "").swatch()
}

/// Name of a plot: an identifier that is unique in the page, a title, and a sentence for those who do not see it.
pub(super) struct PlotName<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) desc: &'a str,
}

/// A chart as a value: the page draws it in its place, a picture draws it alone.
#[derive(Debug, Clone)]
pub(in crate::report) struct Plot {
    /// Unique in the page.
    pub(in crate::report) id: String,
    /// One line.
    pub(in crate::report) title: String,
    desc: String,
    /// Width and height, user units.
    pub(in crate::report) size: (f64, f64),
    content: Markup,
    /// The content of a plot whose marks lead to other parts of the page, without these links.
    unlinked: Option<Markup>,
    /// Its signs and what they mean.
    pub(in crate::report) legend: Vec<LegendEntry>,
}

/// One line of a legend.
#[derive(Debug, Clone)]
pub(in crate::report) struct LegendEntry {
    /// Class of the sign: its colour.
    pub(in crate::report) class: String,
    /// Side of the square that the sign fits into, user units.
    pub(in crate::report) side: f64,
    /// The sign, around the middle of that square.
    pub(in crate::report) sign: Markup,
    /// Meaning of the entry.
    pub(in crate::report) words: String,
}

impl LegendEntry {
    /// The entry of a configuration.
    pub(in crate::report) fn of(configuration: usize, words: &str) -> Self {
        Self {
            class: format!("s{}", configuration % SERIES_MAX),
            side: 12.0,
            // In the middle: markers reach about 5 units to each side.
            sign: marker(configuration, 6.0, 6.0),
            words: words.to_owned(),
        }
    }

    /// The sign alone, as an element of the page.
    pub(in crate::report) fn swatch(&self) -> Markup {
        let side = px(self.side);
        html! {
            svg class={ "swatch " (self.class) } viewBox={ "0 0 " (side) " " (side) } aria-hidden="true" {
                (self.sign)
            }
        }
    }
}

impl Plot {
    /// A plot without a legend.
    pub(super) fn new(name: PlotName<'_>, size: (f64, f64), content: Markup) -> Self {
        Self {
            id: name.id.to_owned(),
            title: name.title.to_owned(),
            desc: name.desc.to_owned(),
            size,
            content,
            unlinked: None,
            legend: Vec::new(),
        }
    }

    /// The same plot, whose marks are links; `unlinked` is its content without them.
    pub(super) fn linked(self, unlinked: Markup) -> Self {
        Self {
            unlinked: Some(unlinked),
            ..self
        }
    }

    /// The same plot with a legend.
    pub(in crate::report) fn with(self, legend: Vec<LegendEntry>) -> Self {
        Self { legend, ..self }
    }

    /// The drawing, without links.
    pub(in crate::report) fn still(&self) -> &Markup {
        self.unlinked.as_ref().unwrap_or(&self.content)
    }
}

/// The plot with its legend, as elements of the page.
impl Render for Plot {
    fn render(&self) -> Markup {
        let id = &self.id;
        // A group and no image, if its marks are links: the parts of an image are hidden from screen readers.
        let role = if self.unlinked.is_some() {
            "group"
        } else {
            "img"
        };
        html! {
            div class="chart" {
                svg id=(id) role=(role) viewBox={ "0 0 " (px(self.size.0)) " " (px(self.size.1)) }
                    aria-labelledby={ (id) "-t " (id) "-d" } {
                    title id={ (id) "-t" } { (self.title) }
                    desc id={ (id) "-d" } { (self.desc) }
                    (self.content)
                }
            }
            @if !self.legend.is_empty() {
                ul class="legend" {
                    @for entry in &self.legend { li { (entry.swatch()) span { (entry.words) } } }
                }
            }
        }
    }
}

/// The plots of a page, in its order.
#[derive(Debug, Default)]
pub(in crate::report) struct Gallery(RefCell<Vec<Plot>>);

impl Gallery {
    /// Keeps a plot; what is returned is its place in the page.
    pub(in crate::report) fn hang(&self, plot: Plot) -> Markup {
        // Drawn before it is kept: the page does not depend on the pictures made of it.
        let element = plot.render();
        self.0.borrow_mut().push(plot);
        element
    }

    /// Hangs a plot as [`Gallery::hang`], under its title.
    pub(in crate::report) fn captioned(&self, plot: Plot) -> Markup {
        html! { figure { figcaption { (plot.title) } (self.hang(plot)) } }
    }

    /// All that were kept.
    pub(in crate::report) fn into_plots(self) -> Vec<Plot> {
        self.0.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_the_room_there_is() {
        for width in [20.0, 100.0, 333.0] {
            for text in ["short", &"wide MW%".repeat(20), &"日本語".repeat(40)] {
                let cut = fit(text, width);
                assert!(ems(&cut) * FONT <= width + 1e-9, "{cut}");
                assert_eq!(cut.ends_with('…'), cut != text);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn labels_below_an_axis_never_lie_on_each_other(
            mut values in proptest::collection::vec((0.0..360.0_f64, "[0-9a-zM ]{1,12}"), 0..12)
        ) {
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let ticks = ticks_below(values, 360.0);
            let boxes: Vec<(f64, f64)> = ticks
                .iter()
                .filter(|tick| !tick.label.is_empty())
                .map(|tick| {
                    let room = ems(&tick.label) * FONT;
                    let left = match tick.anchor {
                        "end" => tick.x - room,
                        "start" => tick.x,
                        _ => tick.x - room / 2.0,
                    };
                    (left, left + room)
                })
                .collect();
            for pair in boxes.windows(2) {
                proptest::prop_assert!(pair[0].1 < pair[1].0, "{:?}", boxes);
            }
        }
    }

    #[test]
    fn every_series_has_a_shape_of_its_own() {
        let shapes: std::collections::BTreeSet<String> = (0..SERIES_MAX)
            .map(|series| {
                let shape = marker(series, 5.0, 5.0).into_string();
                shape.replace(&format!("s{series}"), "")
            })
            .collect();
        assert_eq!(shapes.len(), SERIES_MAX);
        // Colours begin again; with its shape each is still one of a kind.
        let marks = (0..5 * SERIES_MAX).map(|series| marker(series, 5.0, 5.0).into_string());
        let marks: std::collections::BTreeSet<String> = marks.collect();
        assert_eq!(marks.len(), 5 * SERIES_MAX);
    }
}
