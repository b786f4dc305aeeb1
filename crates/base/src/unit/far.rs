//! Ratios far from 1.

use super::Rounded;

/// A ratio so far from 1 that only its first digit is worth reading, in plain digits: `20,000`, `0.0003`. The ends of an
/// interval that knows nothing may be of any size: `a million` and more, `a millionth` and less, are so named.
pub fn far(ratio: f64) -> String {
    far_rounded(ratio, Rounded::Nearest)
}

/// The same of a bound, which still holds as it is shown where it is above 1.
pub fn far_rounded(ratio: f64, rounded: Rounded) -> String {
    match ratio.abs() {
        r if r >= 999_500.0 => "over a million".to_owned(),
        r if r >= 1.0 => {
            let unit = if r >= 99_500.0 {
                1e5
            } else if r >= 9_950.0 {
                1e4
            } else {
                1e3
            };
            // One digit in front of zeros.
            let digit = match rounded {
                Rounded::Nearest => (ratio / unit).round(),
                Rounded::Up => (ratio / unit).ceil(),
                Rounded::Down => (ratio / unit).floor(),
            };
            super::count::count((digit * unit) as u64)
        }
        r if r >= 0.000_095 => format!("{ratio:.4}"),
        r if r >= 0.000_009_5 => format!("{ratio:.5}"),
        r if r >= 0.000_000_95 => format!("{ratio:.6}"),
        _ => "under a millionth".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_from_1_plain_digits_stand() {
        for (ratio, said) in [
            (12_060.0, "10,000"),
            (96_000.0, "100,000"),
            (160_000.0, "200,000"),
            (1e40, "over a million"),
            (0.000_31, "0.0003"),
            (0.000_082, "0.00008"),
            (1e-9, "under a millionth"),
        ] {
            assert_eq!(far(ratio), said);
        }
        assert_eq!(far_rounded(383_000.0, Rounded::Down), "300,000");
        assert_eq!(far_rounded(32_100.0, Rounded::Up), "40,000");
    }
}
