//! Random reads, writes, or a mix of both, in one file or several, laid out before.
//!
//! By default each block is visited at most once (`access = "once"`) and the phase ends with the
//! pass: a buffered random read can then not be answered by the cache it filled itself. With `passes` it
//! goes on, and drops the pages it read before each pass. All other
//! kinds of access draw with repeats and end by time, or after so many operations.

use stackrace_engine::{Op, PhaseOutcome};

use super::block::words::{self as word, block_size, fsync_every, time};
use super::block::{BlockIo, Frame, access, read_share};
use super::kept::{DataLayout, DataUse};
use super::kind::{Cost, Place, Slicing, Workload, WorkloadError, WorkloadKind};
use super::metric::{Figure, Latency};
use stackrace_base::setting::{OverShell, Refusal, Settings};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "random",
    summary: "random reads, writes or a mix, at any block size and queue depth",
    source: "the common core of fio rw=randread/randwrite/randrw and sysbench rndrd/rndwr/rndrw",
    settings: &[
        word::MODE.doc.required(),
        word::SIZE,
        word::FILES,
        word::READ_SHARE,
        block_size("4 KiB"),
        word::BLOCK_SIZES,
        word::ALIGN,
        word::THREADS,
        word::QUEUE_DEPTH,
        word::DIRECT,
        word::ACCESS.doc,
        word::SKEW,
        word::HOT_RANGE,
        word::HOT_SHARE,
        word::RATE,
        word::ARRIVALS.doc,
        word::THINK_TIME,
        fsync_every("0"),
        word::FSYNC_AT_END,
        word::DATA_ONLY,
        word::SYNC.doc,
        time("5 s", "Stop after this long."),
        word::PASSES,
        word::OPERATIONS,
        word::READ_FIRST,
        word::SAME_DATA,
        word::VERIFY,
        word::CONTENT.doc,
        word::COMPRESS_RATIO,
        word::DUPLICATES,
        word::ENGINE.doc,
    ],
    example: "random = { mode = \"read\", size = \"1 GiB\", block-size = \"4 KiB\", queue-depth = 16, direct = true }",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest("command = { run = \"fio …\", parse = \"fio\" }"),
    parse: |settings| Ok(Box::new(Random::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// Index of the metric an open loop is asked for: the 99th percentile of the first operation.
const PRIMARY_OPEN: usize = 4;

#[derive(Debug)]
struct Random {
    io: BlockIo,
}

impl Random {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        // The share decides everything else: which operations exist, what is made durable, what is
        // reported.
        let read_share = read_share(settings)?;
        let frame = Frame {
            access: access(settings)?,
            read_share,
            new_files: false,
        };
        Ok(Self {
            io: BlockIo::parse(settings, &frame)?,
        })
    }

    fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.io.read_share > 0.0 {
            ops.push(Op::Read);
        }
        if self.io.read_share < 1.0 {
            ops.push(Op::Write);
            // Listed even where it is never called: configurations may differ in how often it is.
            ops.push(Op::Fsync);
        }
        ops
    }

    /// The summary of operations in so many bytes `of_what`.
    fn words(&self, of_what: &str) -> String {
        let what = match self.io.read_share {
            1.0 => "random reads".to_owned(),
            0.0 => "random writes".to_owned(),
            share => format!("random mix of {} reads", unit::percent(share)),
        };
        format!(
            "{what} of {} in {of_what} {}, {} × queue depth {}{}{}{}",
            unit::weights(&self.io.block_sizes),
            unit::bytes(self.io.size),
            unit::counted(self.io.threads as usize, "thread"),
            self.io.queue_depth,
            self.io.access_words(),
            self.io.words(),
            match self.io.passes {
                1 => self.io.at_most(),
                _ => format!(", {}{}", self.io.passes_words(), self.io.at_most()),
            }
        )
    }
}

impl Workload for Random {
    fn summary(&self) -> String {
        let file = match self.io.files {
            1 => "a file of".to_owned(),
            files => format!("{} files of together", unit::count(files.into())),
        };
        self.words(&file)
    }

    fn summary_on_existing(&self) -> String {
        self.words("the first")
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![Figure::operations(), Figure::throughput()];
        for op in self.ops() {
            figures.extend(
                // Reads and writes apart: their latencies are seldom alike.
                [Latency::P50, Latency::P95, Latency::P99, Latency::P999]
                    .map(|which| Figure::latency(op, which)),
            );
        }
        self.io.figures(figures, PRIMARY_OPEN, &self.ops())
    }

    fn cost(&self) -> Cost {
        self.io.cost(true)
    }

    fn phases(&self) -> Vec<&'static str> {
        self.io.phases(match self.io.read_share {
            1.0 => "random read",
            0.0 => "random write",
            _ => "random mixed",
        })
    }

    fn on_existing(&self) -> Result<(), WorkloadError> {
        self.io.on_existing()
    }

    fn data_use(&self) -> DataUse {
        self.io.data_use()
    }

    fn data_layout(&self) -> Option<DataLayout> {
        self.io.data_layout()
    }

    fn uses_data_before(&self) -> bool {
        self.io.same_data
    }

    fn slicing(&self) -> Slicing {
        self.io.slicing()
    }

    fn operations_most(&self, op: &str) -> Option<u64> {
        self.io.operations_most(op)
    }

    fn offered_per_s(&self, phase: usize) -> Option<f64> {
        self.io.offered_per_s().filter(|_| phase == 0)
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.io.lay_out(place)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.io.measure(phase, place)
    }
}
