//! One file written, overwritten or read from beginning to end.
//!
//! `write` makes a new file, `rewrite` overwrites one that was laid out before, `read` reads one
//! that was laid out before. One pass unless `passes` says more: before each, a new file is begun, or
//! the pages of the file are dropped, as a second read would measure the cache. Writing ends with fsync inside the clock unless switched off.

use stackrace_engine::spec::AccessPattern;
use stackrace_engine::{Op, PhaseOutcome};

use super::block::words::{self as word, block_size, fsync_every, time};
use super::block::{BlockIo, Frame};
use super::kept::{DataLayout, DataUse};
use super::kind::{Cost, Place, Slicing, Workload, WorkloadError, WorkloadKind};
use super::metric::{Figure, Latency};
use stackrace_base::setting::{ChoiceDoc, OverShell, Refusal, Settings, choice};
use stackrace_base::unit;

const MODE: ChoiceDoc<Mode> = choice!(
    "mode",
    ["write" => Mode::Write, "rewrite" => Mode::Rewrite, "read" => Mode::Read],
    "",
    "Make a new file, overwrite one, or read one.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "sequential",
    summary: "one large file written, rewritten or read once from beginning to end",
    source: "the common core of dd, bonnie++ block I/O and fio rw=read/write",
    settings: &[
        MODE.doc.required(),
        word::SIZE,
        block_size("1 MiB"),
        word::THREADS,
        word::QUEUE_DEPTH,
        word::DIRECT,
        word::RATE,
        word::ARRIVALS.doc,
        word::THINK_TIME,
        fsync_every("0"),
        word::FSYNC_AT_END,
        word::DATA_ONLY,
        word::SYNC.doc,
        word::PREALLOCATE,
        time("", "Stop after this long even if the pass is not complete."),
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
    example: "sequential = { mode = \"write\", size = \"1 GiB\" }",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest("command = { run = \"fio …\", parse = \"fio\" }"),
    parse: |settings| Ok(Box::new(Sequential::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Write,
    Rewrite,
    Read,
}

/// Index of the metric an open loop is asked for: the 99th percentile of the first operation.
const PRIMARY_OPEN: usize = 3;

#[derive(Debug)]
struct Sequential {
    mode: Mode,
    io: BlockIo,
}

impl Sequential {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let mode = settings.choice(MODE)?;
        let frame = Frame {
            access: AccessPattern::Sequential,
            read_share: if mode == Mode::Read { 1.0 } else { 0.0 },
            new_files: mode == Mode::Write,
        };
        let io = BlockIo::parse(settings, &frame)?;
        Ok(Self { mode, io })
    }

    fn op(&self) -> Op {
        if self.mode == Mode::Read {
            Op::Read
        } else {
            Op::Write
        }
    }

    /// The summary that begins with what is done to so many bytes.
    fn words(&self, what: &str) -> String {
        // A read has nothing to sync, whatever the setting says.
        let at_end = self.mode != Mode::Read && self.io.durability.fsync_at_end;
        format!(
            "{what} {} {} in blocks of {}{}{}",
            unit::bytes(self.io.size),
            self.io.passes_words(),
            unit::weights(&self.io.block_sizes),
            self.io.words(),
            if at_end { ", fsync at the end" } else { "" }
        )
    }
}

impl Workload for Sequential {
    fn summary(&self) -> String {
        self.words(match self.mode {
            Mode::Write => "write a new file of",
            Mode::Rewrite => "overwrite a file of",
            Mode::Read => "read a file of",
        })
    }

    fn summary_on_existing(&self) -> String {
        self.words("read the first")
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![
            Figure::throughput(),
            Figure::operations(),
            Figure::latency(self.op(), Latency::P50),
            Figure::latency(self.op(), Latency::P99),
            Figure::latency(self.op(), Latency::P999),
        ];
        // One at the end is part of the time, and no distribution.
        if self.io.durability.fsync_every.is_some() {
            let all = [Latency::P50, Latency::P95, Latency::P99];
            figures.extend(all.map(|which| Figure::latency(Op::Fsync, which)));
        }
        self.io.figures(figures, PRIMARY_OPEN, &[self.op()])
    }

    fn cost(&self) -> Cost {
        Cost {
            // So many passes, so that it is known how much moves.
            measured_bytes: match self.io.passes {
                0 => None,
                passes => Some(self.io.moved_in_one_pass().saturating_mul(passes)),
            },
            ..self.io.cost(self.mode != Mode::Write)
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        self.io.phases(match self.mode {
            Mode::Write => "write",
            Mode::Rewrite => "rewrite",
            Mode::Read => "read",
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
        // Only the measured phase is paced: `verify` reads everything back as fast as it can.
        self.io.offered_per_s().filter(|_| phase == 0)
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        match self.mode {
            // A new file is the point of it.
            Mode::Write => Ok(()),
            Mode::Rewrite | Mode::Read => self.io.lay_out(place),
        }
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.io.measure(phase, place)
    }
}
