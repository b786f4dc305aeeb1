//! Whether the figures can be what they are taken for: controls, order, rounding, placement.

use super::figures::counts;
use super::obtained::unfit;
use crate::published::card::Card;
use crate::published::geometric_mean;
use crate::published::ratio::comparisons;
use crate::published::table::{PublishedFigure, PublishedTable, distinct};
use stackrace_base::unit;

/// Ratio below which a figure that cannot depend on a factor is a control: it shows what chance does.
const CONTROL: f64 = 1.05;

/// DRBD's protocols wait for less the earlier their letter: a figure of writes that rises from A
/// to C shows what chance (or another cause) does.
pub(super) fn order(card: &Card, table: &PublishedTable) -> Vec<String> {
    let Some(at) = card
        .factors
        .iter()
        .position(|factor| factor.name == "drbd_protocol")
    else {
        return Vec::new();
    };
    let rates = |protocol: &str| -> Vec<f64> {
        table
            .figures
            .iter()
            .filter(|f| f.levels[at] == protocol && f.metric.name == "block output")
            // A cluster file system waits for locks of its own, whatever DRBD does.
            .filter(|f| f.levels.iter().all(|level| level != "gfs2"))
            .filter_map(PublishedFigure::value)
            .collect()
    };
    let (least, most) = (rates("A"), rates("C"));
    let (Some(a), Some(c)) = (geometric_mean(&least), geometric_mean(&most)) else {
        return Vec::new();
    };
    // The expected order, and no evidence of anything.
    if a >= c {
        return Vec::new();
    }
    vec![format!(
        "protocol C, which waits for the peer's disk, wrote {:.2} times as fast as protocol A, \
         which waits for the own disk alone: waiting for more cannot be faster, so differences of \
         this size are chance here",
        c / a
    )]
}

/// Whole numbers so small that rounding moves their ratios.
pub(super) fn rounding(_: &Card, table: &PublishedTable) -> Vec<String> {
    let coarse = |figure: &PublishedFigure| {
        // From 20 on, rounding to a whole number moves a rate by at most 2.5 %.
        figure.original == "1/s" && figure.value().is_some_and(|v| v.fract() == 0.0 && v < 20.0)
    };
    let least = table
        .figures
        .iter()
        .filter(|f| coarse(f))
        .filter_map(PublishedFigure::value)
        .reduce(f64::min);
    let Some(least) = least else {
        return Vec::new();
    };
    vec![format!(
        "rates given as whole numbers below 20 a second: rounding alone is up to ±{:.0} % of them: {}",
        50.0 / least,
        counts(table, coarse)
    )]
}

/// A metric that hardly moves over the levels of a factor others move by far.
pub(super) fn control(card: &Card, table: &PublishedTable) -> Vec<String> {
    let all = comparisons(card, table);
    let unfit = unfit(table);
    let mut texts = Vec::new();
    for (factor, about) in card.factors.iter().enumerate() {
        let of: Vec<_> = all
            .iter()
            .filter(|c| c.factor == factor && !c.figures.iter().any(|at| unfit.contains(at)))
            .collect();
        let off = |ratio: f64| ratio.max(1.0 / ratio);
        // Only where the factor does something is a metric that stays still a control.
        if !of.iter().any(|comparison| off(comparison.ratio) > 2.0) {
            continue;
        }
        let names = distinct(of.iter().map(|comparison| comparison.on()));
        let still: Vec<String> = names
            .into_iter()
            .filter(|on| {
                let mut of = of.iter().filter(|comparison| comparison.on() == *on);
                // A single ratio may be near 1 by chance.
                of.clone().count() > 1 && of.all(|comparison| off(comparison.ratio) < CONTROL)
            })
            .collect();
        if !still.is_empty() {
            texts.push(format!(
                "{} moves other figures more than twofold and these by less than {:.0} %, a \
                 control: chance is about that large here: {}",
                about.name,
                (CONTROL - 1.0) * 100.0,
                still.join(", ")
            ));
        }
    }
    texts
}

/// Copies of one file that differ for every reader alike: where they lie differs, not who reads.
pub(super) fn placement(card: &Card, table: &PublishedTable) -> Vec<String> {
    let Some(factor) = card
        .factors
        .iter()
        .position(|f| f.name == "source_written_by")
    else {
        return Vec::new();
    };
    let all = comparisons(card, table);
    let of: Vec<_> = all.iter().filter(|c| c.factor == factor).collect();
    let low = of.iter().map(|c| c.ratio).fold(f64::INFINITY, f64::min);
    let high = of.iter().map(|c| c.ratio).fold(0.0, f64::max);
    let Some(first) = of
        .first()
        // Three readers at least, all in one direction: two may agree by chance.
        .filter(|_| of.len() > 2 && (high < 1.0 || low > 1.0))
    else {
        return Vec::new();
    };
    let off = |ratio: f64| (ratio.recip() - 1.0).abs() * 100.0;
    let (least, most) = (off(low).min(off(high)), off(low).max(off(high)));
    vec![format!(
        "every reader took {least:.0} to {most:.0} % {} over the copies not made by {}: where a \
         copy lies on the disks decides that, not the system that reads it",
        if high < 1.0 { "longer" } else { "less" },
        first.a
    )]
}

/// The rate a redundant pool fills a new disk at, and the rate it reads at meanwhile.
pub(super) fn resilver(card: &Card, _: &PublishedTable) -> Vec<String> {
    let Some([written, seconds, scan, allocated]) = card.stated.resilver else {
        return Vec::new();
    };
    // 10 %: stated times and sizes are rounded to two digits.
    let fits = (allocated / seconds / scan).max(scan * seconds / allocated) < 1.1;
    vec![format!(
        "the resilver wrote {} to the new disk; the stated {} is how fast the {:.2} TB allocated \
         were scanned{}",
        unit::bytes_per_second(written / seconds),
        unit::bytes_per_second(scan),
        allocated / 1e12,
        if fits {
            format!(
                " ({} by the time stated)",
                unit::bytes_per_second(allocated / seconds)
            )
        } else {
            format!(
                ", which contradicts the time stated ({})",
                unit::bytes_per_second(allocated / seconds)
            )
        }
    )]
}

/// Stated rates that a cache should have lifted.
pub(super) fn rotation(card: &Card, _: &PublishedTable) -> Vec<String> {
    let rate = |name: &str| {
        card.stated
            .about
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, rate)| *rate)
    };
    let (Some(read), Some(write)) = (rate("random read"), rate("random write")) else {
        return Vec::new();
    };
    // A cache that answers writes makes them faster than reads, as expected.
    if write >= read {
        return Vec::new();
    }
    vec![format!(
        "durable random writes at {:.2} times random reads: a battery-backed cache should answer \
         them without the disk, so it was off, passed by, or each write needed more than one \
         access",
        write / read
    )]
}
