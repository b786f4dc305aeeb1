//! How like the recording a replay is: in numbers, and in a sentence.

use stackrace_engine::Op;
use stackrace_engine::replay::ReplayResults;

use stackrace_base::event::Counted;
use stackrace_base::unit::{self, InWords, Rounded};
use stackrace_trace::trace::DeviceTotal;

/// Time of a replay as a multiple of the recorded one, or its inverse, above which it is not like the application.
const TIME_MAX: f64 = 1.15;
/// The same for bytes and flushes of the devices; smaller differences are those of a journal, which is
/// written now or later.
const DEVICE_MAX: f64 = 0.1;
const BYTES_MIN: u64 = 1 << 20;
const FLUSHES_MIN: u64 = 10;
const FLUSHED: &str = "flushed";
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
    /// What the devices did, recorded and replayed; none: that is not known.
    pub devices: [Option<DeviceTotal>; 2],
}

/// A figure of the devices: its verb, the recorded one and the replayed one, and the difference that does not matter.
type DeviceFigure = (&'static str, [u64; 2], u64);

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

    /// Adds what the devices did while it was replayed.
    pub fn counted(&mut self, counted: &Counted) {
        self.devices[1] = counted.storage().map(|storage| DeviceTotal {
            read_bytes: storage.read_bytes,
            written_bytes: storage.written_bytes,
            flushes: storage.flushes,
        });
    }

    /// What the replay is unlike the application in; none: it is like it.
    pub fn unlike(&self) -> Option<String> {
        if !(1.0 / TIME_MAX..=TIME_MAX).contains(&self.time()) {
            return Some(format!("it takes {} the time", times(self.elapsed_ns)));
        }
        let differs = |(_, [recorded, replayed], least): &DeviceFigure| {
            let most = (*recorded as f64 * DEVICE_MAX).max(*least as f64);
            recorded.abs_diff(*replayed) as f64 > most
        };
        let differing = self.device_figures().into_iter().find(differs);
        differing.map(|(verb, [recorded, replayed], _)| {
            let shown = |number| match verb {
                FLUSHED => format!("{} times", unit::count(number)),
                _ => unit::bytes(number),
            };
            format!(
                "the device {verb} {}, recorded were {} (whatever else uses the device counts, too)",
                shown(replayed),
                shown(recorded)
            )
        })
    }

    fn device_figures(&self) -> Vec<DeviceFigure> {
        let [Some(recorded), Some(replayed)] = self.devices else {
            return Vec::new();
        };
        let both = |figure: fn(&DeviceTotal) -> u64| [&recorded, &replayed].map(figure);
        let flushes = recorded.flushes.zip(replayed.flushes);
        let flushes = flushes.map(|(before, after)| (FLUSHED, [before, after], FLUSHES_MIN));
        [
            ("read", both(|device| device.read_bytes), BYTES_MIN),
            ("wrote", both(|device| device.written_bytes), BYTES_MIN),
        ]
        .into_iter()
        .chain(flushes)
        .collect()
    }

    fn device_words(&self) -> String {
        let figures = self.device_figures();
        if figures.is_empty() {
            return "what the device did is not known".to_owned();
        }
        let each = figures.iter().map(|(verb, [recorded, replayed], _)| {
            // Nothing of nothing is no ratio.
            match (*recorded, *replayed) {
                (0, 0) => format!("{verb} nothing, as recorded"),
                (0, _) => format!("{verb}, which was not recorded"),
                (recorded, replayed) => {
                    format!("{verb} {}", times([recorded as f64, replayed as f64]))
                }
            }
        });
        format!("the device {}", each.collect::<Vec<_>>().join(", "))
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
            "fidelity on {}, where it was recorded: time {} of the recorded one (without what recording took); {}; {}; {} of {} results differ; {} of \
             events lost, recording cost about {}, {} of the time on storage is replayed",
            self.file_system,
            times(self.elapsed_ns),
            ops.collect::<Vec<_>>().join(", "),
            self.device_words(),
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
