//! PostMark: what a run counted, its two reports, and the figures that follow.
//!
//! PostMark takes the time in whole seconds, as differences of `time(2)`, and a difference of 0
//! counts as 1: runs of under a few seconds have no usable rates in its reports. [`Tally`] keeps
//! nanoseconds, prints PostMark's reports from them as PostMark would have, and gives the same
//! figures in real time as a [`PostmarkReport`]; parsing gives a [`PostmarkReport`] of what PostMark printed.

use stackrace_base::event::Better;
use stackrace_base::event::Fact;
use stackrace_base::event::MetricHead;
use stackrace_base::printed::PrintedFigure;

/// Version of PostMark. All do the same and differ in what they print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Version {
    /// The version of August 2001: as deleted it prints the files created, and the terse rate of
    /// deletion alone is taken over the time of creation.
    V1_51,
    /// The last one; its banner says 1.51 too.
    #[default]
    V1_53,
}

/// Counts of one run and durations of its parts. Bytes; ns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tally {
    /// Time it began, by the wall clock: nanoseconds since 1970.
    pub began_ns: u64,
    /// Making the first files.
    pub creation_ns: u64,
    /// Executing the transactions.
    pub transactions_ns: u64,
    /// Deleting what was left.
    pub deletion_ns: u64,
    pub transactions: u64,
    pub created_alone: u64,
    pub created_mixed: u64,
    pub read: u64,
    pub appended: u64,
    pub deleted_mixed: u64,
    pub deleted_alone: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Bytes read, added up in single precision as PostMark does.
    pub read_as_float: f32,
    /// Bytes written, likewise.
    pub written_as_float: f32,
}

/// The figures of a report, in real time or as printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PostmarkReport {
    /// The whole run, seconds.
    pub elapsed_s: PrintedFigure,
    /// Its transactions, seconds.
    pub transactions_s: PrintedFigure,
    /// Per second, in the order of [`RATES`].
    pub rates: [PrintedFigure; RATES.len()],
    /// The configuration shown before it, if it was: names as in a study.
    pub settings: Vec<Fact>,
    /// Set if a part of the text is missing at either end, so that some figures are 0.
    pub cut_off: bool,
}

/// The rates, in the order of a terse report: name, unit.
pub(super) const RATES: [(&str, &str); 11] = [
    ("transactions", "op/s"),
    ("files created", "op/s"),
    ("files created alone", "op/s"),
    ("files created mixed", "op/s"),
    ("files read", "op/s"),
    ("files appended", "op/s"),
    ("files deleted", "op/s"),
    ("files deleted alone", "op/s"),
    ("files deleted mixed", "op/s"),
    ("read", "B/s"),
    ("written", "B/s"),
];

/// Metrics of a report, the primary one first.
pub fn metrics() -> Vec<MetricHead> {
    let rate = |(name, unit)| MetricHead::new(name, unit, Better::Higher);
    let times = ["elapsed", "transaction time"];
    let times = times.map(|name| MetricHead::new(name, "s", Better::Lower));
    RATES.map(rate).into_iter().chain(times).collect()
}

/// The value of each metric. Nothing done is no rate; neither is a rate that PostMark's whole
/// numbers round to 0.
pub fn values(report: &PostmarkReport) -> Vec<Option<PrintedFigure>> {
    let times = [report.elapsed_s, report.transactions_s];
    let all = report.rates.into_iter().chain(times);
    all.map(PrintedFigure::above_zero).collect()
}

impl Tally {
    /// The figures in real time.
    pub(super) fn report(&self) -> PostmarkReport {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let elapsed_ns = self.creation_ns + self.transactions_ns + self.deletion_ns;
        let per = |count: u64, ns: u64| {
            // A part that was not begun has no rate.
            if ns == 0 {
                0.0
            } else {
                count as f64 / seconds(ns)
            }
        };
        let exact = PrintedFigure::exact;
        PostmarkReport {
            elapsed_s: exact(seconds(elapsed_ns)),
            transactions_s: exact(seconds(self.transactions_ns)),
            rates: [
                per(self.transactions, self.transactions_ns),
                per(self.created(), elapsed_ns),
                per(self.created_alone, self.creation_ns),
                per(self.created_mixed, self.transactions_ns),
                per(self.read, self.transactions_ns),
                per(self.appended, self.transactions_ns),
                per(self.deleted(), elapsed_ns),
                per(self.deleted_alone, self.deletion_ns),
                per(self.deleted_mixed, self.transactions_ns),
                per(self.bytes_read, elapsed_ns),
                per(self.bytes_written, elapsed_ns),
            ]
            .map(exact),
            settings: Vec::new(),
            cut_off: false,
        }
    }

    pub(super) fn created(&self) -> u64 {
        self.created_alone + self.created_mixed
    }

    pub(super) fn deleted(&self) -> u64 {
        self.deleted_alone + self.deleted_mixed
    }
}
