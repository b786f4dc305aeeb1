//! Every plot of the page as a picture of its own: SVG that needs no page around it, and PNG.
//!
//! Page and pictures draw the same plots, so that none is missing and none differs. A picture gets what
//! the page has around it: the title, the legend, the colours, and where it is from.

#[cfg(feature = "png")]
pub(super) mod png;
mod style;

use maud::{Markup, PreEscaped, html};

use super::chart::{self, LegendEntry, Plot};
use super::html::{plots, written};
use super::screen::wrap;
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// Around the drawing, user units.
const BORDER: f64 = 10.0;
/// Distance from one line of text to the next.
const LINE: f64 = 18.0;
/// Characters of the title in a line: what fits above the narrowest chart.
const TITLE_COLUMNS: usize = 46;
/// A sign of the legend with the gap behind it.
const SIGN: f64 = 18.0;

/// A plot as a file of its own.
#[derive(Debug)]
pub struct Picture {
    /// Name of its file, without the ending: the same for every run of one study.
    pub name: String,
    /// Content of the picture, one line.
    pub title: String,
    /// The whole file.
    pub svg: String,
}

/// All plots of a run's page, in its order.
pub fn pictures(record: &Record, verdict: &Verdict) -> Vec<Picture> {
    let style = style::resolved(super::html::STYLE);
    let source = format!("{}, stackrace {}", record.head.run, record.head.stackrace);
    plots(record, verdict)
        .into_iter()
        .map(|plot| Picture {
            svg: written(whole(&plot, &style, &source)) + "\n",
            name: plot.id,
            title: plot.title,
        })
        .collect()
}

/// The picture as a file.
fn whole(plot: &Plot, style: &str, source: &str) -> Markup {
    let title = wrap(&plot.title, TITLE_COLUMNS);
    let above = BORDER + LINE * title.len() as f64 + 4.0;
    let rows = rows(plot);
    let below = above + plot.size.1 + 6.0;
    // The last line says where it is from.
    let height = below + LINE * (rows.len() + 1) as f64 + BORDER;
    let width = plot.size.0 + 2.0 * BORDER;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img"
            width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
            style { (PreEscaped(style)) }
            rect class="paper" width=(width) height=(height) {}
            @for (at, line) in title.iter().enumerate() {
                text class="group" x=(BORDER) y=(BORDER + LINE * at as f64 + 12.0) { (line) }
            }
            // Without links: they lead to other parts of a page that is not there.
            g transform={ "translate(" (BORDER) " " (above) ")" } { (plot.still()) }
            @for (at, row) in rows.iter().enumerate() {
                @for (left, entry) in row {
                    (sign(entry, *left, below + LINE * at as f64))
                }
            }
            text class="faint" x=(BORDER) y=(height - BORDER) { (source) }
        }
    }
}

/// The legend in rows as wide as the chart: each entry with its place from the left.
fn rows(plot: &Plot) -> Vec<Vec<(f64, &LegendEntry)>> {
    let mut rows: Vec<Vec<(f64, &LegendEntry)>> = Vec::new();
    let mut left = f64::INFINITY;
    for entry in &plot.legend {
        // A name is never cut here: the whole of it is nowhere else in the picture.
        let room = SIGN + chart::room(&entry.words) + SIGN;
        if left + room > BORDER + plot.size.0 {
            left = BORDER;
            rows.push(Vec::new());
        }
        if let Some(row) = rows.last_mut() {
            row.push((left, entry));
        }
        left += room;
    }
    rows
}

fn sign(entry: &LegendEntry, left: f64, top: f64) -> Markup {
    html! {
        g class=(entry.class) transform={ "translate(" (left) " " (top) ")" } { (entry.sign) }
        text x=(left + SIGN) y=(top + 10.0) { (entry.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::{RoundsRow, rounds};

    #[test]
    fn a_picture_leads_nowhere_and_is_escaped() {
        let row = RoundsRow {
            label: "4 < 5 &amp; 6".to_owned(),
            configuration: 0,
            mean: None,
            rounds: vec![(1, 5.0, "#trial-1".to_owned())],
        };
        let plot = rounds("a-1", "4 < 5 &amp; 6", "s", &[row]);
        let plot = plot.with(vec![LegendEntry::of(3, "one <")]);
        let picture = whole(&plot, "", "run & version").into_string();
        assert!(!picture.contains("<a "), "{picture}");
        assert!(!picture.contains("href"), "{picture}");
        assert!(picture.contains("4 &lt; 5 &amp;amp; 6</text>"), "{picture}");
        assert!(picture.contains("one &lt;</text>"), "{picture}");
        assert!(picture.contains("run &amp; version</text>"), "{picture}");
        assert_eq!(
            picture.matches("<g").count(),
            picture.matches("</g>").count()
        );
    }
}
