//! Which files lie in a file system that is in use, from published studies of file systems.

use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_engine::draw::Draw;

/// A kind of content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Profile {
    /// The study and its figures, in words.
    pub(super) source: &'static str,
    /// Median and mean of the sizes, B. Their logarithms are spread evenly around the median (log-normal), as
    /// Douceur and Bolosky found for nearly all sizes (SIGMETRICS 1999).
    sizes: [f64; 2],
    /// True if files are rewritten in place, in pieces; otherwise they are replaced whole.
    pub(super) in_place: bool,
}

/// Meyer and Bolosky, "A Study of Practical Deduplication", FAST 2011, have medians of 4 KiB in 2000, 2004 and 2009,
/// and the mean of 2009. Agrawal et al., "A Five-Year Study of File-System Metadata", FAST 2007, have the means of
/// 2000 and 2004. These medians and means are all that is taken from them.
pub(super) const PROFILE: ChoiceDoc<Profile> = choice!(
    "profile",
    [
        "home" => HOME,
        "home-2004" => Profile {
            source: "computers at work, 2004: median 4 KiB, mean 189 KB (Agrawal et al., FAST 2007)",
            sizes: [4096.0, 189e3],
            ..HOME
        },
        "home-2000" => Profile {
            source: "computers at work, 2000: median 4 KiB, mean 108 KB (Agrawal et al., FAST 2007)",
            sizes: [4096.0, 108e3],
            ..HOME
        },
        "images" => Profile {
            source: "few large files that are rewritten in place, by 64 KiB (no study: stackrace's own)",
            sizes: [64e6, 64e6],
            in_place: true,
        },
    ],
    "home",
    "Which files: of computers at work by published studies of 2009, 2004 or 2000, or a few large ones as disk images are.",
);

const HOME: Profile = Profile {
    source: "computers at work, 2009: median 4 KiB, mean 318 KB (Meyer and Bolosky, FAST 2011)",
    sizes: [4096.0, 318e3],
    in_place: false,
};

impl Profile {
    /// Draws the size of a file, B, from 1 to a largest one.
    pub(super) fn size(&self, draw: &mut Draw, largest: u64) -> u64 {
        let [median, mean] = self.sizes;
        // Of a log-normal distribution: mean / median = exp(σ² / 2).
        let sigma = (2.0 * (mean / median).ln()).max(0.0).sqrt();
        // What is larger than a share of the file system is drawn anew: one file must not fill it. A largest
        // one below the median would take many draws.
        for _ in 0..64 {
            let size = (median * (sigma * normal(draw)).exp()).ceil();
            if size <= largest as f64 {
                return (size as u64).max(1);
            }
        }
        largest.max(1)
    }
}

/// A number of the standard normal distribution (Box and Muller, 1958).
fn normal(draw: &mut Draw) -> f64 {
    // Never the logarithm of 0.
    let (radius, turn) = (1.0 - draw.unit(), draw.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_have_the_published_median_and_mean() {
        for (word, mean) in [("home", 318e3), ("home-2004", 189e3), ("home-2000", 108e3)] {
            let profile = PROFILE.of_word(word).unwrap();
            let mut draw = Draw::new(7, 1);
            let mut sizes: Vec<u64> = (0..1_000_000)
                .map(|_| profile.size(&mut draw, u64::MAX))
                .collect();
            sizes.sort_unstable();
            let median = sizes[sizes.len() / 2] as f64;
            assert!((median / 4096.0 - 1.0).abs() < 0.02, "{word}: {median}");
            let found = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            // Few large files carry half of the bytes, so that the mean of a million still varies.
            assert!((found / mean - 1.0).abs() < 0.3, "{word}: {found}");
        }
    }

    #[test]
    fn no_file_is_larger_than_it_may_be() {
        let mut draw = Draw::new(7, 1);
        for largest in [1, 5000, 1 << 20] {
            for word in PROFILE.words() {
                let profile = PROFILE.of_word(word).unwrap();
                let mut sizes = (0..1000).map(|_| profile.size(&mut draw, largest));
                assert!(sizes.all(|size| (1..=largest).contains(&size)), "{word}");
            }
        }
    }
}
