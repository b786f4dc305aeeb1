//! Sysbench-style file I/O: six modes over several files, fsync at a cadence.
//!
//! Shares sysbench's vocabulary (modes, 1.5 reads a write, fsync after every 100 requests), not its
//! exact sequence. Data is random, not zeros: zeros compress to nothing on half of the file
//! systems this is meant to compare. With `fsync-every = 1` the fsync counts into the latency of
//! the write before it, as `--file-fsync-all` does.

use stackrace_engine::spec::{Access, Engine};
use stackrace_engine::{Op, Outcome};

use super::block::{
    BlockIo, COMPRESS_RATIO, CONTENT, DIRECT, Defaults, ENGINE, FSYNC_AT_END, SIZE, THREADS,
};
use super::metric::{self, Latency};
use super::{Cost, Place, Trouble, Workload, WorkloadKind};
use crate::event::{Better, MetricHead};
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

/// The modes as sysbench names them.
const MODES: [&str; 6] = ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"];

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "fileio",
    summary: "sysbench-style file I/O: six modes, several files, fsync at a cadence",
    source: "the modes and defaults of sysbench 1.0.20 fileio",
    settings: &[
        SettingDoc {
            name: "mode",
            kind: Kind::Choice(&MODES),
            default: "",
            required: true,
            doc: "Sequential write of new files, rewrite, read; random read, write, both.",
        },
        SIZE,
        SettingDoc {
            name: "files",
            kind: Kind::Count,
            default: "8",
            required: false,
            doc: "Number of files (sysbench: 128).",
        },
        SettingDoc {
            name: "block-size",
            kind: Kind::Bytes,
            default: "16 KiB",
            required: false,
            doc: "Bytes of one operation.",
        },
        THREADS,
        SettingDoc {
            name: "fsync-every",
            kind: Kind::Count,
            default: "100",
            required: false,
            doc: "fsync after so many writes of a thread; 0: never.",
        },
        FSYNC_AT_END,
        SettingDoc {
            name: "ratio",
            kind: Kind::Number,
            default: "1.5",
            required: false,
            doc: "Reads for each write in rndrw.",
        },
        DIRECT,
        SettingDoc {
            name: "time",
            kind: Kind::Time,
            default: "10 s",
            required: false,
            doc: "Stop after this long.",
        },
        CONTENT,
        COMPRESS_RATIO,
        ENGINE,
    ],
    example: "fileio = { mode = \"rndrw\", size = \"1 GiB\", fsync-every = 100 }",
    parse: |settings| Ok(Box::new(FileIo::parse(settings)?)),
};

const TIME_NS: u64 = 10_000_000_000;

#[derive(Debug)]
struct FileIo {
    mode: &'static str,
    io: BlockIo,
}

impl FileIo {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let defaults = Defaults {
            block_size: 16 << 10,
            files: 8,
            fsync_every: 100,
        };
        let mut io = BlockIo::parse(settings, &defaults)?;
        let asked = settings.text("mode")?.unwrap_or_default();
        let mode = MODES
            .into_iter()
            .find(|mode| *mode == asked)
            .unwrap_or(MODES[0]);
        let ratio = settings.number("ratio")?.unwrap_or(1.5);
        io.read_share = match mode {
            "seqrd" | "rndrd" => 1.0,
            "rndrw" => ratio / (ratio + 1.0),
            _ => 0.0,
        };
        if !mode.starts_with("seq") {
            io.access = Access::OncePerPass;
        }
        io.time_ns = io.time_ns.or(Some(TIME_NS));
        let each = io
            .durability
            .fsync_every
            .is_some_and(|every| every.get() == 1);
        io.durability.fsync_in_write = each;
        if io.engine == Engine::Uring && each && io.read_share < 1.0 {
            return Err(Refusal::at(
                settings.span_of("engine"),
                "a ring cannot count an fsync into the write before it",
                "write engine = \"sync\" or \"auto\", or another fsync-every",
            ));
        }
        Ok(Self { mode, io })
    }

    fn ops(&self) -> &'static [Op] {
        match self.mode {
            "seqrd" | "rndrd" => &[Op::Read],
            "rndrw" => &[Op::Read, Op::Write],
            _ => &[Op::Write],
        }
    }
}

impl Workload for FileIo {
    fn summary(&self) -> String {
        format!(
            "sysbench-style {} over {} files of together {}, blocks of {}, {} thread(s){}, at most {}",
            self.mode,
            self.io.files,
            unit::bytes(self.io.size),
            unit::bytes(u64::from(self.io.block_size)),
            self.io.threads,
            self.io.fsync_words(),
            unit::time_ns(self.io.time_ns.unwrap_or(TIME_NS) as f64)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![metric::operations_head(), metric::throughput_head()];
        for op in self.ops() {
            heads.extend(
                [Latency::Min, Latency::Mean, Latency::P95]
                    .map(|which| metric::latency_head(*op, which)),
            );
        }
        if self.io.read_share < 1.0 {
            heads.push(metric::head("fsyncs", "op/s", Better::Higher));
        }
        heads
    }

    fn cost(&self) -> Cost {
        self.io.cost(self.mode != "seqwr")
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![self.mode]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        match self.mode {
            "seqwr" => Ok(()),
            _ => self.io.lay_out(place),
        }
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        self.io.run(place)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; self.metrics().len()];
        };
        let mut values = vec![metric::operations(outcome), metric::throughput(outcome)];
        for op in self.ops() {
            values.extend(
                [Latency::Min, Latency::Mean, Latency::P95]
                    .map(|which| metric::latency(outcome, *op, which)),
            );
        }
        if self.io.read_share < 1.0 {
            values.push(
                metric::of(outcome, Op::Fsync)
                    .map(|entry| entry.count as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64),
            );
        }
        values
    }
}
