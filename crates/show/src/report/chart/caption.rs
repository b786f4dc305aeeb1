//! The words of a row: a name, whole, and the figure that belongs to it.
//!
//! Both stand on one line where there is room. Else the name has lines of its own, and the figure the last one.

use maud::{Markup, html};

use super::drawing::{FONT, ems, px};

/// Height of a line.
const LINE: f64 = 15.0;
/// Room between a name and its figure.
const GAP: f64 = 14.0;
/// Height of a letter above its baseline, with a hair of room, and below it.
const ABOVE: f64 = 11.5;
const BELOW: f64 = 3.5;

/// A name and a figure, laid out for a width.
pub(super) struct Caption<'a> {
    name: Vec<String>,
    figure: &'a str,
    /// Left end of the name and right end of the figure.
    ends: (f64, f64),
}

impl<'a> Caption<'a> {
    /// Lays out both between two ends.
    pub(super) fn new(name: &str, figure: &'a str, ends: (f64, f64)) -> Self {
        let width = ends.1 - ends.0;
        let taken = match figure {
            "" => 0.0,
            figure => ems(figure) * FONT + GAP,
        };
        let mut name = broken(name, width);
        let last = name.last().map_or(0.0, |last| ems(last) * FONT);
        if last + taken > width {
            // A line for the figure alone.
            name.push(String::new());
        }
        Self { name, figure, ends }
    }

    /// The words of the figure, as they stand at the right.
    pub(super) fn figure(&self) -> &str {
        self.figure
    }

    /// Height beyond that of one line.
    pub(super) fn more(&self) -> f64 {
        (self.name.len() - 1) as f64 * LINE
    }

    /// Draws it, `y` being the baseline of its first line. Nothing that was drawn before is seen through it.
    pub(super) fn draw(&self, y: f64) -> Markup {
        let (left, right) = self.ends;
        let under = |from: f64, to: f64, y: f64| {
            html! {
                rect class="under" x=(px(from)) y=(px(y - ABOVE)) width=(px(to - from)) height=(px(ABOVE + BELOW)) {}
            }
        };
        let last = y + self.more();
        html! {
            @for (at, line) in self.name.iter().enumerate() {
                @let y = y + at as f64 * LINE;
                @if !line.is_empty() {
                    (under(left, left + ems(line) * FONT, y))
                    text x=(px(left)) y=(px(y)) { (line) }
                }
            }
            @if !self.figure.is_empty() {
                (under(right - ems(self.figure) * FONT, right, last))
                text class="figure" x=(px(right)) y=(px(last)) text-anchor="end" { (self.figure) }
            }
        }
    }
}

/// A text in lines that fit a width: broken at blanks, and within a word that is longer than a line.
fn broken(text: &str, width: f64) -> Vec<String> {
    let fits = |line: &str| ems(line) * FONT <= width;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or("", String::as_str);
        let joined = match line.is_empty() {
            true => word.to_owned(),
            false => format!("{line} {word}"),
        };
        if fits(&joined) {
            lines.pop();
            lines.push(joined);
            continue;
        }
        if line.is_empty() {
            lines.pop();
        }
        lines.push(String::new());
        for letter in word.chars() {
            let line = lines.last().map_or("", String::as_str);
            let longer = format!("{line}{letter}");
            if line.is_empty() || fits(&longer) {
                lines.pop();
                lines.push(longer);
            } else {
                lines.push(letter.to_string());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_length_is_shown_whole_beside_or_above_its_figure() {
        let long = "ext4 on a mirror of 2 with journal against xfs on a mirror of 2 with reflink";
        for name in [
            "ext4",
            long,
            &"w".repeat(90),
            &"日本語".repeat(20),
            "a  b",
            "",
        ] {
            let caption = Caption::new(name, "1.18 (1.02 to 1.31)", (15.0, 352.0));
            let shown: String = caption.name.concat();
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&shown), letters(name));
            for line in &caption.name {
                assert!(ems(line) * FONT <= 337.0, "{line}");
            }
            let last = ems(caption.name.last().unwrap()) * FONT;
            assert!(last + ems(caption.figure) * FONT < 337.0, "{name}");
        }
        let short = Caption::new("ext4", "1.18 (1.02 to 1.31)", (15.0, 352.0));
        assert_eq!((short.name.len(), short.more()), (1, 0.0));
        // Words stay whole where they can.
        assert!(long.starts_with(&Caption::new(long, "", (0.0, 200.0)).name[0]));
        assert!(!Caption::new(long, "", (0.0, 200.0)).name[0].ends_with("mirr"));
    }
}
