//! Numbers whose further digits are left out: a figure is the nearest one, and a bound still holds.

/// Direction in which the digits go that are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounded {
    /// To the nearest number: for a figure.
    Nearest,
    /// Never to a smaller number: for "at most".
    Up,
    /// Never to a larger number: for "at least".
    Down,
}

/// A number with so many decimals. A bound still holds as it is shown: 2.01 with one decimal is "at most 2.1".
pub fn decimals(value: f64, decimals: usize, rounded: Rounded) -> String {
    /// A number that differs from a shown one by less, in its last digit, is that one: 0.15 has no exact float.
    const SLACK: f64 = 1e-6;
    let last = [1.0, 10.0, 100.0, 1000.0][decimals.min(3)];
    let shown = match rounded {
        Rounded::Nearest => value,
        Rounded::Up => (value * last - SLACK).ceil() / last,
        Rounded::Down => (value * last + SLACK).floor() / last,
    };
    super::count::with_decimals(shown, decimals)
}

/// An end of an interval that excludes 1, where two decimals would read as 1: `1.004`. `None` where two are enough, or
/// four are too few.
pub fn not_one(end: f64) -> Option<String> {
    let reads_as_one = |places: i32| (end * 10_f64.powi(places)).round() == 10_f64.powi(places);
    let places = [3, 4].into_iter().find(|places| !reads_as_one(*places))?;
    reads_as_one(2).then(|| super::count::with_decimals(end, places as usize))
}

/// A share in percent, with two or three digits: `12 %`, `3.4 %`, `0.21 %`.
pub fn percent(share: f64) -> String {
    percent_rounded(share, Rounded::Nearest)
}

/// The same of a bound.
pub fn percent_rounded(share: f64, rounded: Rounded) -> String {
    let value = share * 100.0;
    // Two decimals would show a nought for what is there: nothing at all is another statement.
    match (value, rounded) {
        (0.0, _) => return "0 %".to_owned(),
        (v, Rounded::Nearest) if v.abs() < 0.005 => return "under 0.01 %".to_owned(),
        // Nor all of it for nearly all.
        (v, Rounded::Nearest) if (99.5..100.0).contains(&v) => {
            let decimals = if v < 99.95 { 1 } else { 2 };
            return match v < 99.995 {
                true => format!("{v:.decimals$} %"),
                false => "over 99.99 %".to_owned(),
            };
        }
        (v, Rounded::Down) if (0.0..0.01 - 1e-6).contains(&v) => return "0 %".to_owned(),
        _ => {}
    }
    // The limits lie where rounding would add a digit: 9.96 is shown as 10, not as 10.0.
    let [one, none] = match rounded {
        Rounded::Nearest => [0.95, 9.95],
        Rounded::Up => [0.9, 9.9].map(|limit| limit + 1e-6),
        Rounded::Down => [1.0, 10.0].map(|limit| limit - 1e-6),
    };
    let shown = match value.abs() {
        v if v >= none => 0,
        v if v >= one => 1,
        _ => 2,
    };
    format!("{} %", decimals(value, shown, rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_not_one_does_not_read_as_one() {
        let shown = [1.004, 0.996, 1.0002, 1.01, 1.0, 1.00001, 0.5].map(not_one);
        let expected = [
            Some("1.004"),
            Some("0.996"),
            Some("1.0002"),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(shown, expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn nothing_is_not_shown_for_what_is_there() {
        for (share, said) in [
            (0.0, "0 %"),
            (0.000_001, "under 0.01 %"),
            (0.000_06, "0.01 %"),
            (0.996, "99.6 %"),
            (0.9999, "99.99 %"),
            (0.999_99, "over 99.99 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), said);
        }
        assert_eq!(percent_rounded(0.000_001, Rounded::Up), "0.01 %");
        assert_eq!(percent_rounded(0.000_001, Rounded::Down), "0 %");
    }

    #[test]
    fn a_bound_that_is_shown_still_holds() {
        let both = |share| [Rounded::Down, Rounded::Up].map(|way| percent_rounded(share, way));
        for (share, least, most) in [
            (0.0201, "2.0 %", "2.1 %"),
            (0.02, "2.0 %", "2.0 %"),
            (0.15, "15 %", "15 %"),
            (0.0996, "9.9 %", "10 %"),
            (0.0095, "0.95 %", "1.0 %"),
            (0.00011, "0.01 %", "0.02 %"),
            (0.1201, "12 %", "13 %"),
            (1.0 - 0.97, "3.0 %", "3.0 %"),
        ] {
            assert_eq!(both(share), [least, most], "{share}");
        }
        for at in 1..5000 {
            let share = f64::from(at) / 13_337.0;
            let [least, most] =
                both(share).map(|text| text[..text.len() - 2].parse::<f64>().unwrap());
            assert!(
                least <= share * 100.0 + 1e-6 && share * 100.0 <= most + 1e-6,
                "{share}"
            );
        }
        assert_eq!(decimals(1.664, 2, Rounded::Up), "1.67");
        assert_eq!(decimals(0.0, 2, Rounded::Up), "0.00");
    }
}
