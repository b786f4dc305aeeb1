//! A large file written, then read, frame after frame: which video formats a storage can hold.
//!
//! Past the page cache where the file system allows it. Where it does not, each frame is flushed
//! before it counts as written, and reading starts cold. Every writing makes a new file, as a
//! recording does.

use std::num::NonZeroU64;

use stackrace_engine::spec::{
    AccessPattern, Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop,
};
use stackrace_engine::{Op, OpOutcome, PhaseOutcome, StartError};

use super::block::at_least_one;
use super::block::words::{QUEUE_DEPTH, block_size, time};
use super::kind::{Cost, Place, Workload, WorkloadError, WorkloadKind, advised, trouble_at};
use super::metric::{self, Latency};
use super::sustained::slowest;
use stackrace_base::event::MetricHead;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_base::video::{self, StreamRate, StreamRates};

const DIRECT: ChoiceDoc<Direct> = choice!(
    "direct",
    ["auto" => Direct::Auto, "always" => Direct::Always, "never" => Direct::Never],
    "auto",
    "O_DIRECT where possible, or not at all without it, or never.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "stream-video",
    summary: "a large file written, then read, and the video formats that would have kept up",
    source: "Blackmagic Disk Speed Test, as its manuals and tframetest's describe such a test",
    settings: &[
        SettingDoc::bytes("size", "5 GB", "Size of the file; 1 to 5 GB is usual."),
        SettingDoc::count("loops", "1", "Write and read so many times, at most 8."),
        time(
            "",
            "Each writing and reading goes on for so long, over the file again and again.",
        ),
        block_size("8 MiB"),
        QUEUE_DEPTH,
        DIRECT.doc,
        SettingDoc::share(
            "margin",
            "20 %",
            "Headroom a format must have over the rate it needs; manuals advise 20 to 100 %.",
        ),
    ],
    example: "stream-video = { size = \"2 GB\", loops = 2 }",
    level: true,
    parse: |settings| Ok(Box::new(StreamVideo::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// Width of a slice, ns: fine enough to find the slowest second, see [`super::sustained`].
const SLICE_NS: u64 = 2_000_000;
/// Names of the phases: writing and reading in turn.
const PHASES: [&str; 16] = [
    "write", "read", "write 2", "read 2", "write 3", "read 3", "write 4", "read 4", "write 5",
    "read 5", "write 6", "read 6", "write 7", "read 7", "write 8", "read 8",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direct {
    Auto,
    Always,
    Never,
}

#[derive(Debug)]
struct StreamVideo {
    /// Whole frames.
    size: u64,
    frame_bytes: u32,
    loops: usize,
    time_ns: Option<u64>,
    queue_depth: u32,
    direct: Direct,
    margin: f64,
}

impl StreamVideo {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let refuse = |name, message: String, help: &str| settings.refuse(name, message, help);
        let frame = settings.bytes("block-size")?;
        let frame_bytes = u32::try_from(frame)
            .ok()
            .filter(|frame| (4096..=64 << 20).contains(frame) && frame.is_multiple_of(4096));
        let frame_bytes = frame_bytes.ok_or_else(|| {
            let message = format!("block size {} does not work here", unit::bytes(frame));
            refuse(
                "block-size",
                message,
                "choose a multiple of 4 KiB, at most 64 MiB",
            )
        })?;
        // Whole frames: a last part of one would count as a frame of its own.
        let size = settings.bytes("size")? / frame * frame;
        if size == 0 {
            let message = format!("a file smaller than a block ({})", unit::bytes(frame));
            return Err(refuse("size", message, "write for example size = \"1 GB\""));
        }
        let loops = settings.count("loops")?;
        if !(1..=PHASES.len() as u64 / 2).contains(&loops) {
            return Err(refuse(
                "loops",
                format!("{loops} loops"),
                "write from 1 to 8",
            ));
        }
        let margin = settings.share("margin")?;
        Ok(Self {
            size,
            frame_bytes,
            loops: loops as usize,
            time_ns: settings.optional_lasting_ns("time")?,
            queue_depth: at_least_one(settings, "queue-depth")?,
            direct: settings.choice(DIRECT)?,
            margin,
        })
    }

    /// Makes the specification of a file of `bytes`, whole frames.
    fn spec(&self, write: bool, bytes: u64, direct: bool, place: &Place<'_>) -> Spec {
        // Read twice through the cache, the second time would measure memory.
        let again = self.time_ns.is_some() && (write || direct);
        let frames = bytes / u64::from(self.frame_bytes);
        Spec {
            targets: vec![IoTarget {
                path: place.directory.join("video"),
                bytes,
            }],
            block_sizes: vec![(self.frame_bytes, 1)],
            access: AccessPattern::Sequential,
            align: None,
            read_share: if write { 0.0 } else { 1.0 },
            threads: 1,
            queue_depth: self.queue_depth,
            direct,
            preallocate: false,
            durability: Durability {
                // A frame in the page cache is not recorded yet.
                fsync_every: NonZeroU64::new(u64::from(write && !direct)),
                fsync_in_write: write && !direct,
                data_only: write,
                fsync_at_end: write,
                ..Durability::default()
            },
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: Content::Random,
            stop: Stop {
                ops: (!again).then_some(frames),
                time_ns: self.time_ns,
            },
            engine: IoEngine::Auto,
            seed: place.seed,
            again: None,
            part: None,
            slice_ns: SLICE_NS,
        }
    }

    /// The rates of one direction over all loops: the slowest second of any.
    fn rate(outcomes: &[&PhaseOutcome]) -> Option<StreamRate> {
        // The slowest second decides: a recording breaks off where the storage falls behind once.
        let seconds = outcomes
            .iter()
            .map(|outcome| slowest(&outcome.series, outcome.slice_ns, video::WINDOW_NS));
        let slowest = seconds.collect::<Option<Vec<f64>>>()?;
        let moved = |outcome: &&PhaseOutcome| outcome.ops.iter().map(|op| op.bytes).sum::<u64>();
        let bytes: u64 = outcomes.iter().map(moved).sum();
        let elapsed_ns: u64 = outcomes.iter().map(|outcome| outcome.elapsed_ns).sum();
        let mean = bytes as f64 * 1e9 / elapsed_ns.max(1) as f64;
        Some(StreamRate {
            mean,
            // Of a phase that is shorter than a second, its last steps are not counted.
            slowest: slowest.into_iter().reduce(f64::min)?.min(mean),
        })
    }

    /// 99.9th percentile of the times of all frames, ns.
    fn frame_ns(outcomes: &[&PhaseOutcome], op: Op) -> Option<f64> {
        let mut all = outcomes
            .iter()
            .filter_map(|outcome| metric::of(outcome, op));
        let mut first: OpOutcome = all.next()?.clone();
        for other in all {
            first.latency.add(&other.latency).ok()?;
            first.latency_sum_ns += other.latency_sum_ns;
        }
        Some(metric::figure(
            &first.latency,
            first.latency_sum_ns,
            Latency::P999,
        ))
    }
}

impl Workload for StreamVideo {
    fn summary(&self) -> String {
        let cache = match self.direct {
            Direct::Auto => "O_DIRECT where possible",
            Direct::Always => "O_DIRECT",
            Direct::Never => "through the page cache, each flushed",
        };
        let long = self.time_ns.map_or(String::new(), |ns| {
            format!(", each for {}", unit::long_time(ns as f64 / 1e9))
        });
        let times = match self.loops {
            1 => String::new(),
            loops => format!(", {loops} times"),
        };
        format!(
            "write a file of {} in frames of {}, then read it{long}{times}, {cache}",
            unit::bytes(self.size),
            unit::bytes(self.frame_bytes.into()),
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        video::heads()
    }

    fn cost(&self) -> Cost {
        let passes = 2 * self.loops as u64;
        let timed = self.time_ns.map(|ns| ns.saturating_mul(passes));
        Cost {
            prepare_bytes: 0,
            measured_bytes: timed.is_none().then(|| self.size.saturating_mul(passes)),
            disk_bytes: self.size,
            measured_ns: timed,
            files: 1,
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        PHASES[..2 * self.loops].to_vec()
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let write = phase.is_multiple_of(2);
        let file = place.directory.join("video");
        let failed = |error: std::io::Error| trouble_at(&file, error);
        if write && phase > 0 {
            std::fs::remove_file(&file).map_err(failed)?;
        }
        // A writing that ran out of time may not have come to the end: what is there is read.
        let bytes = if write {
            self.size
        } else {
            let there = std::fs::metadata(&file).map_err(failed)?.len();
            let frame = u64::from(self.frame_bytes);
            there.min(self.size) / frame * frame
        };
        let run = |direct| {
            let spec = self.spec(write, bytes, direct, place);
            stackrace_engine::run(&spec, place.control)
        };
        let outcome = match (self.direct, run(self.direct != Direct::Never)) {
            // Found out by trying: what a file system accepts depends on its version and its
            // options.
            (Direct::Auto, Err(StartError::DirectRefused { .. })) => run(false),
            (_, done) => done,
        };
        outcome.map_err(|error| {
            let next = error.next();
            advised(error, &next)
        })
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let turn = |first| outcomes.iter().skip(first).step_by(2).collect::<Vec<_>>();
        let (written, read) = (turn(0), turn(1));
        let (Some(write), Some(played)) = (Self::rate(&written), Self::rate(&read)) else {
            return vec![None; video::heads().len()];
        };
        let rates = StreamRates {
            write,
            read: played,
            times: 1.0 + self.margin,
        };
        let frames = [
            Self::frame_ns(&written, Op::Write),
            Self::frame_ns(&read, Op::Read),
        ];
        video::values(&rates, frames)
    }
}
