//! Numbers that look random and are the same on every machine.

/// The number mixed, so that neighbours have nothing in common (the finalizer of SplitMix64).
///
/// A multiplication alone is not enough: it makes places a constant distance apart, and a disk then
/// always moves its arm as far.
#[must_use]
pub fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_between_neighbours_differ() {
        let place = |number| (scattered(number) % 1_000_003) as f64;
        let distances: Vec<f64> = (0..1000)
            .map(|at| (place(at + 1) - place(at)).abs())
            .collect();
        let mean = distances.iter().sum::<f64>() / 1000.0;
        // Two independent places are a third apart on average, and the distances spread by 0.24.
        let squares: f64 = distances
            .iter()
            .map(|distance| (distance - mean).powi(2))
            .sum();
        let spread = (squares / 1000.0).sqrt();
        assert!((0.30..0.37).contains(&(mean / 1_000_003.0)), "{mean}");
        assert!((0.20..0.28).contains(&(spread / 1_000_003.0)), "{spread}");
    }
}
