//! How like the recording a replay is: in numbers, and in a sentence.

use stackrace_engine::Op;
use stackrace_engine::replay::ReplayResults;

use stackrace_base::unit::{self, InWords, Rounded};

/// Time of a replay as a multiple of the recorded one, or its inverse, above which it is not like the application.
const TIME_MAX: f64 = 1.15;
/// Kinds of calls that are named, those with the most time.
const NAMED: usize = 4;

/// One kind of call: recorded, and replayed.
#[derive(Debug, Clone, Copy)]
pub struct OpFidelity {
    /// The kind.
    pub op: Op,
    /// Time of all of these calls, recorded and replayed, ns.
    pub time_ns: [f64; 2],
    /// 99th percentile of their times, ns.
    pub p99_ns: [f64; 2],
}

/// How like the recording a replay is on the storage where it was recorded. Pairs are recorded, replayed.
#[derive(Debug, Clone)]
pub struct Fidelity {
    /// File system that it was recorded on.
    pub file_system: String,
    /// Share of events that were lost.
    pub lost: f64,
    /// Share of the time on storage that is replayed.
    pub covered: f64,
    /// Share of the application's processor time that recording cost.
    pub cost: f64,
    /// Elapsed time, ns.
    pub elapsed_ns: [f64; 2],
    /// How results compare.
    pub results: ReplayResults,
    /// Kinds of calls, those with the most recorded time first.
    pub ops: Vec<OpFidelity>,
}

fn ratio([recorded, replayed]: [f64; 2]) -> f64 {
    replayed / recorded.max(1.0)
}

fn times(pair: [f64; 2]) -> String {
    format!("{} x", unit::decimals(ratio(pair), 2, Rounded::Nearest))
}

impl Fidelity {
    /// Time of the replay as a multiple of the recorded one.
    pub fn time(&self) -> f64 {
        ratio(self.elapsed_ns)
    }

    /// Whether its time is that of the application.
    pub fn holds(&self) -> bool {
        (1.0 / TIME_MAX..=TIME_MAX).contains(&self.time())
    }

    /// All of it, in sentences.
    pub fn words(&self) -> String {
        // The others hardly add to the time.
        let ops = self.ops.iter().take(NAMED).map(|op| {
            format!(
                "{} {} (p99 {}, recorded {})",
                op.op.name(),
                times(op.time_ns),
                unit::time_ns(op.p99_ns[1]),
                unit::time_ns(op.p99_ns[0])
            )
        });
        format!(
            "fidelity on {}, where it was recorded: time {} of the recorded one (without what recording took); {}; {} of {} results differ; {} of \
             events lost, recording cost about {}, {} of the time on storage is replayed",
            self.file_system,
            times(self.elapsed_ns),
            ops.collect::<Vec<_>>().join(", "),
            self.results.differing,
            self.results.calls,
            unit::percent(self.lost),
            unit::percent(self.cost),
            unit::percent(self.covered),
        )
    }
}

/// How many results differ, and the first of them.
pub(super) fn differing_words(results: &ReplayResults) -> String {
    let all = format!(
        "{} of {} results differ from the recorded ones",
        results.differing, results.calls
    );
    // Of threads at once, the first that was seen.
    let Some(first) = &results.first else {
        return all;
    };
    let name = match first.name.as_str() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    format!(
        "{all}; the first: {}{name} gave {}, recorded was {}",
        first.op.name(),
        result_words(first.replayed),
        result_words(first.recorded)
    )
}

/// A result of the kernel, in words.
fn result_words(result: i64) -> String {
    match i32::try_from(-result) {
        Ok(errno @ 1..) => std::io::Error::from_raw_os_error(errno).in_words(),
        _ => result.to_string(),
    }
}
