//! The latencies that fio states of one direction, and what cannot be true of them together.
//!
//! Every operation is submitted (slat) and then completed (clat); both together are its whole latency (lat). A report
//! in which they do not fit was changed, or put together from two.
//!
//! Units: ns.

use stackrace_base::printed::PrintedFigure;

/// Share by which the mean of the sum may differ from the sum of the means: requests under way when fio ended are in
/// one of them.
const SUM_OFF: f64 = 0.1;
/// Share that rounding leaves open beside the last digit.
const ROUNDED: f64 = 0.002;
/// fio counts latencies in classes; a percentile is the middle of one, and may lie beyond the extremes by so much.
const CLASS: f64 = 1.0 / 32.0;
/// Without a time of submission it is short; so many times the completion is another unit.
const UNIT_OFF: f64 = 500.0;

/// Smallest, mean and largest of one kind of latency.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) least: PrintedFigure,
    pub(super) mean: PrintedFigure,
    pub(super) largest: PrintedFigure,
}

/// The kind of latency that percentiles are of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum PercentilesOf {
    #[default]
    Completion,
    Whole,
}

impl PercentilesOf {
    /// The words of a note.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Completion => "the completion latency (clat)",
            Self::Whole => "the whole latency (lat)",
        }
    }
}

impl Spread {
    /// Returns true if the mean lies between the extremes.
    pub(super) fn is_sound(self) -> bool {
        !below(self.mean, self.least) && !below(self.largest, self.mean)
    }

    /// Returns true if a percentile, known to `step`, may be of these latencies.
    pub(super) fn has(self, percentile: f64, step: f64) -> bool {
        let (least, most) = (self.least.value, self.largest.value);
        let slack = |of: PrintedFigure| of.value * CLASS + of.step + step;
        (least - slack(self.least)..=most + slack(self.largest)).contains(&percentile)
    }
}

/// Words for what the whole latency contradicts, if it does; `depth`: requests that may wait for each other.
pub(super) fn contradicted(
    whole: Spread,
    submission: Option<Spread>,
    completion: Option<Spread>,
    depth: u64,
) -> Option<&'static str> {
    let completion = completion?;
    let parts = [
        (whole.least, completion.least),
        (whole.mean, completion.mean),
        (whole.largest, completion.largest),
    ];
    if parts.iter().any(|(whole, part)| below(*whole, *part)) {
        return Some("the completion latency (clat), which is a part of it");
    }
    let Some(submission) = submission else {
        // Requests that wait for a thread of fio's (io_submit_mode=offload) wait in the whole latency alone.
        let most = UNIT_OFF.max(2.0 * depth as f64);
        let off = |whole: PrintedFigure, part: PrintedFigure| {
            whole.value > most * (part.value + part.step)
        };
        let both = off(whole.mean, completion.mean) && off(whole.largest, completion.largest);
        return both.then_some("the completion latency (clat), which is nearly all of it");
    };
    let sum = submission.mean + completion.mean;
    let slack = sum.step + whole.mean.step + SUM_OFF * sum.value;
    let fits = (whole.mean.value - sum.value).abs() <= slack;
    (!fits).then_some("the times of submission (slat) and completion (clat), whose sum it is")
}

/// Returns true if a figure is below another one by more than rounding.
fn below(one: PrintedFigure, other: PrintedFigure) -> bool {
    one.value + one.step + other.step + ROUNDED * other.value < other.value
}
