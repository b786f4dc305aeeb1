//! Where labels go, so that no two lie on each other.

use super::drawing::{FONT, ems};

/// Height of a line of text with a hair of room.
const LINE: f64 = FONT * 1.3;
/// Room between two labels side by side.
const GAP: f64 = 4.0;

/// A label where it would like to be.
#[derive(Debug, Clone)]
pub(super) struct Label {
    /// Its words.
    pub(super) text: String,
    /// Left end.
    pub(super) left: f64,
    /// Baseline.
    pub(super) y: f64,
}

impl Label {
    /// Returns true if its box meets another's.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let right = |label: &Self| label.left + ems(&label.text) * FONT + GAP;
        self.left < right(other) && other.left < right(self) && (self.y - other.y).abs() < LINE
    }
}

/// The labels, each moved up or down to the nearest free line between two baselines; `None` if
/// there is no free line left. The first one asked for is placed first, so the same labels always
/// go to the same places.
pub(super) fn spread(wanted: Vec<Label>, highest: f64, lowest: f64) -> Vec<Option<Label>> {
    let mut placed: Vec<Option<Label>> = Vec::new();
    for label in wanted {
        // `clamp` panics if its ends are crossed, as in a drawing lower than one line.
        let y = label.y.clamp(highest, lowest.max(highest));
        let steps = ((lowest - highest) / LINE).max(0.0) as usize + 1;
        // The nearest place first, above and below by turns.
        let mut places = (0..=steps).flat_map(|step| {
            let away = step as f64 * LINE;
            [y - away, y + away]
        });
        let free = places.find_map(|y| {
            let moved = Label { y, ..label.clone() };
            let inside = (highest..=lowest).contains(&y);
            let clear = !placed.iter().flatten().any(|other| other.meets(&moved));
            (inside && clear).then_some(moved)
        });
        placed.push(free);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn labels_never_lie_on_each_other_nor_leave_their_room(
            wanted in prop::collection::vec(("[a-zW ]{1,30}", 0.0..400.0, -50.0..400.0), 0..24)
        ) {
            let wanted: Vec<Label> = wanted
                .into_iter()
                .map(|(text, left, y)| Label { text, left, y })
                .collect();
            let placed = spread(wanted.clone(), 20.0, 220.0);
            prop_assert_eq!(placed.len(), wanted.len());
            let there: Vec<&Label> = placed.iter().flatten().collect();
            for (at, one) in there.iter().enumerate() {
                prop_assert!((20.0..=220.0).contains(&one.y));
                for other in &there[at + 1..] {
                    prop_assert!(!one.meets(other), "{:?} {:?}", one, other);
                }
            }
            // The first has the whole room.
            prop_assert!(placed.first().is_none_or(Option::is_some));
        }
    }

    #[test]
    fn a_label_with_room_stays_where_it_is() {
        let label = |left, y| Label {
            text: "disk".to_owned(),
            left,
            y,
        };
        let placed = spread(
            vec![label(0.0, 50.0), label(200.0, 50.0), label(4.0, 52.0)],
            0.0,
            100.0,
        );
        let lines: Vec<f64> = placed.into_iter().flatten().map(|label| label.y).collect();
        assert_eq!(lines[..2], [50.0, 50.0]);
        assert!((lines[2] - 52.0).abs() <= 2.0 * LINE && (lines[2] - 50.0).abs() >= LINE);
    }
}
