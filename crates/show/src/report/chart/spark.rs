//! A few numbers as a line of text is high: the last rates of what runs now, over zero.

use maud::{Markup, html};

use super::drawing::{SERIES_MAX, px};

/// Natural width.
const WIDTH: f64 = 240.0;
/// Natural height.
const HEIGHT: f64 = 36.0;
/// Numbers it has room for: fewer leave the left of it empty, so that it moves at one pace.
const ROOM: usize = 60;

/// The chart, in the colour of a configuration (by index); what it shows in words is its name.
pub(in crate::report) fn spark(
    id: &str,
    name: &str,
    values: &[f64],
    configuration: usize,
) -> Markup {
    let values = &values[values.len().saturating_sub(ROOM)..];
    let most = values.iter().copied().fold(0.0, f64::max);
    // A step of the full width, however few the values: new ones come in at the right at one pace.
    let step = WIDTH / ROOM as f64;
    let left = WIDTH - step * values.len() as f64;
    let x = |at: usize| left + step * (at as f64 + 0.5);
    // Without any rate there is no scale: a flat line at the bottom.
    let y = |value: f64| match most > 0.0 && value.is_finite() {
        true => HEIGHT - 1.0 - (HEIGHT - 4.0) * (value / most),
        false => HEIGHT - 1.0,
    };
    let mut line = String::new();
    for (at, value) in values.iter().enumerate() {
        line.push(if at == 0 { 'M' } else { 'L' });
        line.push_str(&format!("{} {}", px(x(at)), px(y(*value))));
    }
    let area = match values.len() {
        0 => String::new(),
        some => format!(
            "{line}L{} {}L{} {}Z",
            px(x(some - 1)),
            px(HEIGHT),
            px(x(0)),
            px(HEIGHT)
        ),
    };
    html! {
        svg id=(id) class={ "spark s" (configuration % SERIES_MAX) } role="img" viewBox={ "0 0 " (px(WIDTH)) " " (px(HEIGHT)) }
            aria-label=(name) {
            line class="axis" x1="0" x2=(px(WIDTH)) y1=(px(HEIGHT - 0.5)) y2=(px(HEIGHT - 0.5)) {}
            path class="area" d=(area) {}
            path class="line" d=(line) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_its_frame_whatever_the_numbers() {
        for values in [
            vec![],
            vec![0.0],
            vec![5.0; 200],
            vec![f64::NAN, 1e300, 0.0],
        ] {
            let drawn = spark("s", "name", &values, 3).into_string();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            assert!(drawn.contains("aria-label=\"name\""));
        }
    }
}
