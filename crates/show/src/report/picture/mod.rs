//! Every plot of the page as a picture of its own: SVG that needs no page around it, and PNG.
//!
//! A picture is cut out of the page and not drawn again, so that none is missing and none differs. It
//! gets what the page has around it: the title, the legend, the colours, and where it is from.

#[cfg(feature = "png")]
pub(super) mod png;
mod style;

use maud::{Markup, PreEscaped, html};

use super::html::{body, written};
use super::screen::wrap;
use super::{ReportOptions, chart};
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// Around the drawing, user units.
const BORDER: f64 = 10.0;
/// From one line of text to the next.
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
    /// What it shows, one line.
    pub title: String,
    /// The whole file.
    pub svg: String,
}

/// All plots of a run's page, in its order.
pub fn pictures(record: &Record, verdict: &Verdict) -> Vec<Picture> {
    let page = written(body(record, verdict, &ReportOptions::default()));
    let style = style::resolved(super::html::STYLE);
    let source = format!("{}, stackrace {}", record.head.run, record.head.stackrace);
    drawn(&page)
        .into_iter()
        .map(|drawn| Picture {
            name: drawn.id.to_owned(),
            svg: written(drawn.whole(&style, &source)) + "\n",
            title: drawn.title,
        })
        .collect()
}

/// A chart as it stands in the page.
struct Drawn<'a> {
    id: &'a str,
    title: String,
    width: f64,
    height: f64,
    /// What is in it, as markup.
    content: &'a str,
    legend: Vec<Entry<'a>>,
}

/// One line of a legend.
struct Entry<'a> {
    /// Class and markup of its sign.
    sign: (&'a str, &'a str),
    words: String,
}

/// What stands between two marks; none: one of them is not there.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(from)?;
    after.split_once(to).map(|(inside, _)| inside)
}

/// The charts of a page. Its markup is our own: attributes in one order, and `<` only where a tag begins.
fn drawn(page: &str) -> Vec<Drawn<'_>> {
    let parts = page.split("<svg id=\"").skip(1);
    parts.filter_map(one).collect()
}

/// One chart, from its id on.
fn one(part: &str) -> Option<Drawn<'_>> {
    let (svg, after) = part.split_once("</svg>")?;
    let (head, content) = svg.split_once('>')?;
    let (id, _) = head.split_once('"')?;
    let (width, height) = between(head, "viewBox=\"0 0 ", "\"")?.split_once(' ')?;
    let title = between(content, "<title", "</title>")?.split_once('>')?.1;
    // Where the figure ends, so does what belongs to the chart.
    let ends = ["</figure>", "</details>"];
    let end = ends.iter().filter_map(|end| after.find(end)).min();
    let figure = &after[..end.unwrap_or(0)];
    let legend = between(figure, "<ul class=\"legend\">", "</ul>").unwrap_or_default();
    Some(Drawn {
        id,
        title: plain(title),
        width: width.parse().ok()?,
        height: height.parse().ok()?,
        content,
        legend: legend.split("<li>").skip(1).filter_map(entry).collect(),
    })
}

fn entry(item: &str) -> Option<Entry<'_>> {
    let (class, rest) = item.split_once("<svg class=\"swatch ")?.1.split_once('"')?;
    let (_, sign) = rest.split_once('>')?;
    let (sign, words) = sign.split_once("</svg>")?;
    Some(Entry {
        sign: (class, sign),
        words: plain(between(words, "<span>", "</span>")?),
    })
}

/// A text of the page as it was before it was escaped.
fn plain(escaped: &str) -> String {
    // The ampersand last, or `&amp;lt;` would be read twice.
    escaped
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

/// A drawing without its links, which lead to other parts of the page.
fn unlinked(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once("<a ") {
        text.push_str(before);
        text.push_str("<g>");
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.replace("</a>", "</g>")
}

impl Drawn<'_> {
    /// The picture as a file.
    fn whole(&self, style: &str, source: &str) -> Markup {
        let title = wrap(&self.title, TITLE_COLUMNS);
        let above = BORDER + LINE * title.len() as f64 + 4.0;
        let rows = self.rows();
        let below = above + self.height + 6.0;
        // The last line says where it is from.
        let height = below + LINE * (rows.len() + 1) as f64 + BORDER;
        let width = self.width + 2.0 * BORDER;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img"
                width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
                style { (PreEscaped(style)) }
                rect class="paper" width=(width) height=(height) {}
                @for (at, line) in title.iter().enumerate() {
                    text class="group" x=(BORDER) y=(BORDER + LINE * at as f64 + 12.0) { (line) }
                }
                g transform={ "translate(" (BORDER) " " (above) ")" } {
                    (PreEscaped(unlinked(self.content)))
                }
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
    fn rows(&self) -> Vec<Vec<(f64, &Entry<'_>)>> {
        let mut rows: Vec<Vec<(f64, &Entry<'_>)>> = Vec::new();
        let mut left = f64::INFINITY;
        for entry in &self.legend {
            let room = SIGN + chart::room(&entry.words) + SIGN;
            if left + room > BORDER + self.width {
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
}

fn sign(entry: &Entry<'_>, left: f64, top: f64) -> Markup {
    let (class, sign) = entry.sign;
    html! {
        g class=(class) transform={ "translate(" (left) " " (top) ")" } { (PreEscaped(sign)) }
        text x=(left + SIGN) y=(top + 10.0) { (entry.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<figure><div class=\"chart\"><svg id=\"a-1\" role=\"img\" \
        viewBox=\"0 0 360 100\" aria-labelledby=\"x\"><title id=\"a-1-t\">4 &lt; 5 &amp;amp; 6</title>\
        <a href=\"#trial-1\" class=\"x\"><circle class=\"mark s0\"></circle></a></svg></div>\
        <ul class=\"legend\"><li><svg class=\"swatch s3\" viewBox=\"0 0 12 12\"><path d=\"M0\"></path>\
        </svg><span>one &lt;</span></li></ul></figure>\
        <details><svg id=\"b\" role=\"img\" viewBox=\"0 0 360 50\" aria-labelledby=\"x\">\
        <title id=\"b-t\">b</title></svg></details><ul class=\"legend\"><li>of another</li></ul>";

    #[test]
    fn each_chart_is_found_with_its_own_legend() {
        let found = drawn(PAGE);
        let ids: Vec<&str> = found.iter().map(|one| one.id).collect();
        assert_eq!(ids, ["a-1", "b"]);
        assert_eq!(found[0].title, "4 < 5 &amp; 6");
        assert_eq!((found[0].width, found[0].height), (360.0, 100.0));
        assert_eq!(found[0].legend[0].sign, ("s3", "<path d=\"M0\"></path>"));
        assert_eq!(found[0].legend[0].words, "one <");
        assert!(found[1].legend.is_empty());
    }

    #[test]
    fn a_picture_leads_nowhere_and_is_escaped_again() {
        let picture = drawn(PAGE)[0].whole("", "run & version").into_string();
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
