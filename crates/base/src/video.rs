//! Which video formats a storage can record and play back: the rate each format needs, and the
//! measurements that decide.
//!
//! An uncompressed format needs width × height × bytes per pixel × frames per second: this gives
//! the figures of Blackmagic Design's DeckLink manual (10-bit YUV 4:2:2 at 1920×1080, 24 frames per
//! second: 126.6 MiB/s). Bytes per pixel: 8-bit YUV 4:2:2 2, 10-bit YUV 4:2:2 8/3 (v210: six pixels
//! in 16 bytes), 10-bit RGB 4, 12-bit RGB 4.5. Compressed formats are listed only if their vendor
//! publishes the rate.
//!
//! Recording and playback fail at the worst moment, not on average: the slowest second decides.
//! Units: bytes per second; MiB/s, as those manuals count, where people read.

use crate::event::{Better, MetricHead};
use crate::unit::UnitError;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// A way to store a pixel: the name and bytes per pixel, as a fraction.
type Codec = (&'static str, u32, u32);
/// Width, height, frames per second as written, as a fraction.
type Format = (u32, u32, &'static str, u32, u32);

const CODECS: [Codec; 4] = [
    ("8-bit YUV 4:2:2", 2, 1),
    ("10-bit YUV 4:2:2", 8, 3),
    ("10-bit RGB", 4, 1),
    ("12-bit RGB", 9, 2),
];

const FORMATS: [Format; 19] = [
    (720, 486, "29.97", 30_000, 1001),
    (720, 576, "25", 25, 1),
    (1280, 720, "50", 50, 1),
    (1280, 720, "60", 60, 1),
    (1920, 1080, "24", 24, 1),
    (1920, 1080, "25", 25, 1),
    (1920, 1080, "30", 30, 1),
    (1920, 1080, "50", 50, 1),
    (1920, 1080, "60", 60, 1),
    (2048, 1080, "24", 24, 1),
    (3840, 2160, "24", 24, 1),
    (3840, 2160, "25", 25, 1),
    (3840, 2160, "30", 30, 1),
    (3840, 2160, "50", 50, 1),
    (3840, 2160, "60", 60, 1),
    (4096, 2160, "24", 24, 1),
    (7680, 4320, "24", 24, 1),
    (7680, 4320, "60", 60, 1),
    (12_288, 6480, "24", 24, 1),
];

/// Apple's target rates at 1920×1080 and 29.97 frames per second, Mbit/s.
const PRORES: [(&str, u32); 2] = [
    ("ProRes 4444, 1920x1080 29.97", 330),
    ("ProRes 4444 XQ, 1920x1080 29.97", 500),
];

/// The rate a format needs, B/s.
fn needs((width, height, _, frames, seconds): Format, (_, bytes, pixels): Codec) -> f64 {
    // A frame of an interlaced format holds as many pixels as a progressive one.
    let pixels_per_s =
        f64::from(width) * f64::from(height) * f64::from(frames) / f64::from(seconds);
    pixels_per_s * f64::from(bytes) / f64::from(pixels)
}

/// Sources of the rates.
const UNCOMPRESSED: &str = "Blackmagic Design's Desktop Video manual, https://documents.blackmagicdesign.com/UserManuals/DesktopVideoManual.pdf";
const COMPRESSED: &str =
    "Apple's ProRes white paper, https://www.apple.com/final-cut-pro/docs/Apple_ProRes.pdf";

/// Every format with its name, the rate it needs in B/s, and the source.
fn named_rates() -> impl Iterator<Item = (String, f64, &'static str)> {
    let plain = FORMATS.into_iter().flat_map(|format| {
        let (width, height, frames, ..) = format;
        CODECS.into_iter().map(move |codec| {
            let name = format!("{width}x{height} {frames} {}", codec.0);
            (name, needs(format, codec), UNCOMPRESSED)
        })
    });
    // Vendors count megabits of a million bits.
    let packed = PRORES
        .into_iter()
        .map(|(name, megabits)| (name.to_owned(), f64::from(megabits) * 1e6 / 8.0, COMPRESSED));
    plain.chain(packed)
}

/// The format that these words name, the rate it needs in B/s, and who says so.
///
/// # Errors
/// There is none, or more than one of which it has all words.
pub fn rate_of(text: &str) -> Result<(String, f64, &'static str), UnitError> {
    let words = |text: &str| {
        let lower = text.to_lowercase();
        let words = lower.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let asked = words(text);
    let shared = |name: &str| {
        let own = words(name);
        asked.iter().filter(|word| own.contains(word)).count()
    };
    let most = named_rates().map(|(name, ..)| shared(&name)).max();
    // All words of ProRes 4444 are words of ProRes 4444 XQ, too.
    let fewest = |(name, ..): &(String, f64, &str)| words(name).len();
    let mut near: Vec<_> = named_rates()
        .filter(|(name, ..)| Some(shared(name)) == most && most > Some(0))
        .collect();
    near.sort_by_key(fewest);
    let whole = most == Some(asked.len()) && !near.is_empty();
    let clear = near.len() == 1
        || near
            .get(1)
            .is_some_and(|next| fewest(next) > fewest(&near[0]));
    if whole && clear {
        return Ok(near.swap_remove(0));
    }
    near.truncate(4);
    let names: Vec<&str> = near.iter().map(|(name, ..)| name.as_str()).collect();
    Err(UnitError {
        what: match whole {
            true => format!("\"{text}\" may be several formats"),
            false => format!("there is no video format \"{text}\""),
        },
        next: match names.is_empty() {
            true => "see: stackrace show video-formats".to_owned(),
            false => format!(
                "name one, as {}; see: stackrace show video-formats",
                names.join("; ")
            ),
        },
    })
}

/// One direction of the stream, B/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRate {
    /// Over the whole time.
    pub mean: f64,
    /// Over the slowest second.
    pub slowest: f64,
}

/// The measured rates of a storage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRates {
    /// Recording.
    pub write: StreamRate,
    /// Playing back.
    pub read: StreamRate,
    /// The factor on a format's rate that must be reached: 1 plus the margin.
    pub times: f64,
}

/// The metrics of a stream, in the order of [`values`].
pub fn heads() -> Vec<MetricHead> {
    let higher = |name| MetricHead::new(name, "B/s", Better::Higher);
    let lower = |name, unit| MetricHead::new(name, unit, Better::Lower);
    vec![
        higher(WRITE_SLOWEST),
        higher(WRITE_MEAN),
        lower("write frame time p99.9", "ns"),
        higher(READ_SLOWEST),
        higher(READ_MEAN),
        lower("read frame time p99.9", "ns"),
        lower(TIMES, "%"),
    ]
}

/// Length of the window of a slowest second, ns: a shorter phase has none.
pub const WINDOW_NS: u64 = 1_000_000_000;

/// Metric of the rate of the slowest second of recording.
pub const WRITE_SLOWEST: &str = "write slowest second";
const WRITE_MEAN: &str = "write throughput";
/// Metric of the rate of the slowest second of playing back.
pub const READ_SLOWEST: &str = "read slowest second";
const READ_MEAN: &str = "read throughput";
/// A setting, not a measurement. It is recorded so that the other values answer for every format.
const TIMES: &str = "asked of a format's rate";

/// The values of [`heads`]: rates, then the 99.9th percentiles of writing and reading a frame, ns.
pub fn values(rates: &StreamRates, frames_ns: [Option<f64>; 2]) -> Vec<Option<f64>> {
    vec![
        Some(rates.write.slowest),
        Some(rates.write.mean),
        frames_ns[0],
        Some(rates.read.slowest),
        Some(rates.read.mean),
        frames_ns[1],
        Some(rates.times * 100.0),
    ]
}

impl StreamRates {
    /// The rates among a workload's metrics, by name; `None`: it did not stream video.
    pub fn of(value: impl Fn(&str) -> Option<f64>) -> Option<StreamRates> {
        Some(StreamRates {
            write: StreamRate {
                mean: value(WRITE_MEAN)?,
                slowest: value(WRITE_SLOWEST)?,
            },
            read: StreamRate {
                mean: value(READ_MEAN)?,
                slowest: value(READ_SLOWEST)?,
            },
            times: value(TIMES)? / 100.0,
        })
    }

    /// Tells whether a format of this rate can be recorded and played back.
    fn fit(&self, needs: f64) -> Fit {
        let asked = needs * self.times;
        // Both directions: a recording that cannot be played back is useless.
        if self.write.slowest.min(self.read.slowest) >= asked {
            Fit::Yes
        } else if self.write.mean.min(self.read.mean) >= asked {
            Fit::MeanOnly
        } else {
            Fit::No
        }
    }

    /// One sentence that explains the answers.
    pub fn words(&self) -> String {
        let mib = |rate: f64| format!("{:.0}", rate / MIB);
        format!(
            "MiB/s a format needs, and whether it can be recorded and played back without dropping a \
             frame: yes, if the slowest second (write {}, read {}) is at least {:.0} % of it; mean \
             only, if no more than the mean is (write {}, read {}).",
            mib(self.write.slowest),
            mib(self.read.slowest),
            self.times * 100.0,
            mib(self.write.mean),
            mib(self.read.mean),
        )
    }
}

/// Fitness of a storage for the speed of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    MeanOnly,
    No,
}

impl Fit {
    fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::MeanOnly => "mean only",
            Self::No => "no",
        }
    }
}

/// Names of the columns: the format, then how its pixels are stored.
pub fn columns() -> Vec<String> {
    let codecs = CODECS.iter().map(|(name, ..)| (*name).to_owned());
    std::iter::once("format".to_owned()).chain(codecs).collect()
}

/// One row per format: its name, and under each column what it needs in MiB/s, with the answer if
/// there are rates to judge by. Compressed formats come last, in the first column of figures.
pub fn rows(rates: Option<&StreamRates>) -> Vec<Vec<String>> {
    let cell = |needs: f64| match rates {
        None => format!("{:.1}", needs / MIB),
        // Whole MiB/s: the answer beside the figure needs the room.
        Some(rates) => format!("{:.0} {}", needs / MIB, rates.fit(needs).word()),
    };
    let plain = FORMATS.iter().map(|format| {
        let (width, height, frames, ..) = format;
        let name = format!("{width}x{height} {frames}");
        let cells = CODECS.iter().map(|codec| cell(needs(*format, *codec)));
        std::iter::once(name).chain(cells).collect()
    });
    let packed = PRORES.iter().map(|(name, megabits)| {
        // Vendors count megabits of a million bits.
        let needs = f64::from(*megabits) * 1e6 / 8.0;
        let mut row = vec![(*name).to_owned(), cell(needs)];
        // The codec is part of the name, so the other columns stay empty.
        row.resize(1 + CODECS.len(), String::new());
        row
    });
    plain.chain(packed).collect()
}

/// The table as lines of text, at most 80 columns.
pub fn text(rates: Option<&StreamRates>) -> String {
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        let mut line = format!("{:<17}", cells[0]);
        for (at, cell) in cells.iter().enumerate().skip(1) {
            // A long name reaches into the columns it does not use.
            let taken = line.chars().count();
            let width = (17 + at * 15)
                .saturating_sub(taken)
                .max(cell.chars().count() + 1);
            line.push_str(&format!("{cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&columns());
    rows(rates).iter().for_each(|row| line(row));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mib(width: u32, height: u32, frames: &str, codec: usize) -> f64 {
        let is = |format: &&Format| (format.0, format.1, format.2) == (width, height, frames);
        needs(*FORMATS.iter().find(is).unwrap(), CODECS[codec]) / MIB
    }

    /// The figures of the DeckLink manual, in whole MiB/s; it writes 24PsF, 50i, 60i for frames.
    #[test]
    fn the_formula_gives_the_figures_of_the_manual() {
        for (width, height, frames, codec, printed) in [
            (720, 486, "29.97", 1, 27.0),
            (720, 576, "25", 1, 26.0),
            (1280, 720, "60", 1, 141.0),
            (1920, 1080, "24", 1, 127.0),
            (1920, 1080, "25", 1, 132.0),
            (1920, 1080, "30", 1, 158.0),
            (1280, 720, "60", 2, 211.0),
            (1920, 1080, "24", 2, 190.0),
            (1920, 1080, "25", 2, 198.0),
            (1920, 1080, "30", 2, 237.0),
        ] {
            assert_eq!(
                mib(width, height, frames, codec).round(),
                printed,
                "{width} {frames}"
            );
        }
        assert!((mib(12_288, 6480, "24", 3) - 8201.25).abs() < 0.01);
    }

    fn rates(slowest: f64, mean: f64, times: f64) -> StreamRates {
        let rate = StreamRate { mean, slowest };
        StreamRates {
            write: rate,
            read: rate,
            times,
        }
    }

    #[test]
    fn the_slowest_second_decides_and_the_margin_is_part_of_it() {
        assert_eq!(rates(120.0, 150.0, 1.2).fit(100.0), Fit::Yes);
        assert_eq!(rates(119.0, 150.0, 1.2).fit(100.0), Fit::MeanOnly);
        assert_eq!(rates(119.0, 119.0, 1.2).fit(100.0), Fit::No);
        let mut slow = rates(200.0, 200.0, 1.0);
        slow.read.slowest = 50.0;
        assert_eq!(
            slow.fit(100.0),
            Fit::MeanOnly,
            "a format that cannot be played back is not supported"
        );
    }

    #[test]
    fn metrics_become_the_rates_they_were_made_of() {
        let rates = rates(1e8, 2e8, 1.2);
        let values = values(&rates, [None, None]);
        let heads = heads();
        assert_eq!(heads.len(), values.len());
        let of = |name: &str| values[heads.iter().position(|head| head.name == name)?];
        assert_eq!(StreamRates::of(of), Some(rates));
        assert_eq!(StreamRates::of(|_| None), None);
    }

    #[test]
    fn the_table_fits_a_terminal() {
        for rates in [None, Some(rates(4e8, 9e9, 1.2))] {
            let text = text(rates.as_ref());
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1 + FORMATS.len() + PRORES.len());
        }
        insta::assert_snapshot!(text(Some(&rates(4e8, 9e8, 1.2))));
    }

    proptest! {
        /// A faster storage never loses a format.
        #[test]
        fn faster_is_never_worse(
            needs in 1e6..1e10, slowest in 1e5..1e10, more in 1.0..10.0, times in 1.0..3.0,
        ) {
            let worth = |fit| match fit {
                Fit::No => 0,
                Fit::MeanOnly => 1,
                Fit::Yes => 2,
            };
            let slow = rates(slowest, slowest * 1.5, times).fit(needs);
            let fast = rates(slowest * more, slowest * 1.5 * more, times).fit(needs);
            prop_assert!(worth(fast) >= worth(slow));
        }
    }
}
