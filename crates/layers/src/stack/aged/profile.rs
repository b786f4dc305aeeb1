//! Which files lie in a file system that is in use, from published studies of file systems.

use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_system::draw::Draw;

/// A kind of content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Profile {
    /// The study and its figures, in words.
    pub(super) source: &'static str,
    sizes: Sizes,
    /// Bytes of a piece, where files are rewritten in place in pieces; otherwise they are replaced whole.
    pub(super) piece: Option<u64>,
}

/// Sizes of files, B.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sizes {
    /// All have this one.
    One(u64),
    /// Each from the first to the second one is as frequent.
    Even(u64, u64),
    /// Half of them are smaller than the median. Douceur and Bolosky found nearly all sizes to be spread evenly on both
    /// sides of it, by their logarithms (log-normal; SIGMETRICS 1999). The standard deviation of these, to base 2, follows
    /// from the mean: √(2 ln(mean ÷ median)) ÷ ln 2.
    Around { median: f64, spread: f64 },
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
            sizes: around_4_kib(3.9938),
            ..HOME
        },
        "home-2000" => Profile {
            source: "computers at work, 2000: median 4 KiB, mean 108 KB (Agrawal et al., FAST 2007)",
            sizes: around_4_kib(3.6907),
            ..HOME
        },
        "mail" => Profile {
            source: "messages of 500 to 10,000 B, each size as frequent (PostMark's defaults; Katcher, NetApp TR3022, 1997)",
            sizes: Sizes::Even(500, 10_000),
            piece: None,
        },
        "images" => Profile {
            source: "few large files that are rewritten in place, by 64 KiB (no study: stackrace's own)",
            sizes: Sizes::One(64_000_000),
            piece: Some(64 << 10),
        },
        "database" => Profile {
            source: "tables in segments of 1 GiB, rewritten by pages of 8 KiB (PostgreSQL, Database File Layout)",
            sizes: Sizes::One(1 << 30),
            piece: Some(8 << 10),
        },
    ],
    "home",
    "Which files: of computers at work by published studies of 2009, 2004 or 2000, a mail server's, few large ones as disk images are, or a database's.",
);

const HOME: Profile = Profile {
    source: "computers at work, 2009: median 4 KiB, mean 318 KB (Meyer and Bolosky, FAST 2011)",
    sizes: around_4_kib(4.2563),
    piece: None,
};

const fn around_4_kib(spread: f64) -> Sizes {
    Sizes::Around {
        median: 4096.0,
        spread,
    }
}

impl Profile {
    /// Draws the size of a file, B, from 1 to a largest one.
    pub(super) fn size(&self, draw: &mut Draw, largest: u64) -> u64 {
        let (median, spread) = match self.sizes {
            Sizes::One(size) => return size.min(largest).max(1),
            Sizes::Even(least, most) => {
                let most = most.min(largest).max(1);
                let least = least.min(most);
                return least + draw.below(most - least + 1);
            }
            Sizes::Around { median, spread } => (median, spread),
        };
        // What is larger than a share of the file system is drawn anew: one file must not fill it. A largest
        // one below the median would take many draws.
        for _ in 0..64 {
            let size = (median * power_of_2(spread * normal(draw))).ceil();
            if size <= largest as f64 {
                return (size as u64).max(1);
            }
        }
        largest.max(1)
    }
}

/// A number that is as good as drawn from the standard normal distribution: the sum of 48 even ones, whose variance is
/// 4. By sums and products alone, which every processor computes alike.
fn normal(draw: &mut Draw) -> f64 {
    let sum: f64 = (0..48).map(|_| draw.unit()).sum();
    (sum - 24.0) / 2.0
}

/// 2 to the power of `x`, by sums and products alone: the whole part is exact, the rest by the first terms of the series
/// of e^(x ln 2), which are right to 7 digits.
fn power_of_2(x: f64) -> f64 {
    let whole = x.floor();
    let rest = (x - whole) * std::f64::consts::LN_2;
    let terms = (1..=9).rev().map(f64::from);
    let series = terms.fold(1.0, |sum, number| 1.0 + rest / number * sum);
    // Sizes of files lie far within what an exponent can be.
    series * f64::powi(2.0, whole as i32)
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
    fn messages_have_the_sizes_that_postmark_gives_them() {
        let mail = PROFILE.of_word("mail").unwrap();
        let mut draw = Draw::new(7, 1);
        let sizes: Vec<u64> = (0..100_000)
            .map(|_| mail.size(&mut draw, u64::MAX))
            .collect();
        let [least, most] = [sizes.iter().min(), sizes.iter().max()].map(|size| *size.unwrap());
        assert!((500..520).contains(&least) && (9980..=10_000).contains(&most));
        let mean = sizes.iter().sum::<u64>() / 100_000;
        assert!((5200..5300).contains(&mean), "{mean}");
    }

    #[test]
    fn powers_of_2_are_right() {
        for (x, power) in [
            (0.0, 1.0),
            (10.0, 1024.0),
            (-3.0, 0.125),
            (0.5, std::f64::consts::SQRT_2),
        ] {
            assert!(
                (power_of_2(x) / power - 1.0_f64).abs() < 1e-7,
                "{x}: {}",
                power_of_2(x)
            );
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
