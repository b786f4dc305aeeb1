//! One file written, overwritten or read from beginning to end.
//!
//! `write` makes a new file, `rewrite` overwrites one that was laid out before, `read` reads one
//! that was laid out before. One pass, never a second over the same data: a second pass of a read
//! would measure the cache. Writing ends with fsync inside the clock unless switched off.

use stackrace_engine::{Op, Outcome};

use super::block::{
    BlockIo, COMPRESS_RATIO, CONTENT, DIRECT, Defaults, ENGINE, FSYNC_AT_END, QUEUE_DEPTH, SIZE,
    THREADS,
};
use super::metric::{self, Latency};
use super::{Cost, Place, Trouble, Workload, WorkloadKind};
use crate::event::MetricHead;
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "sequential",
    summary: "one large file written, rewritten or read once from beginning to end",
    source: "the common core of dd, bonnie++ block I/O and fio rw=read/write",
    settings: &[
        SettingDoc {
            name: "mode",
            kind: Kind::Choice(&["write", "rewrite", "read"]),
            default: "",
            required: true,
            doc: "Make a new file, overwrite one, or read one.",
        },
        SIZE,
        SettingDoc {
            name: "block-size",
            kind: Kind::Bytes,
            default: "1 MiB",
            required: false,
            doc: "Bytes of one operation.",
        },
        THREADS,
        QUEUE_DEPTH,
        DIRECT,
        SettingDoc {
            name: "fsync-every",
            kind: Kind::Count,
            default: "0",
            required: false,
            doc: "fsync after so many writes; 0: never.",
        },
        FSYNC_AT_END,
        SettingDoc {
            name: "time",
            kind: Kind::Time,
            default: "",
            required: false,
            doc: "Stop after this long even if the pass is not complete.",
        },
        CONTENT,
        COMPRESS_RATIO,
        ENGINE,
    ],
    example: "sequential = { mode = \"write\", size = \"1 GiB\" }",
    parse: |settings| Ok(Box::new(Sequential::parse(settings)?)),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Write,
    Rewrite,
    Read,
}

#[derive(Debug)]
struct Sequential {
    mode: Mode,
    io: BlockIo,
}

impl Sequential {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let defaults = Defaults {
            block_size: 1 << 20,
            files: 1,
            fsync_every: 0,
        };
        let mut io = BlockIo::parse(settings, &defaults)?;
        let mode = match settings.text("mode")?.as_deref() {
            Some("rewrite") => Mode::Rewrite,
            Some("read") => Mode::Read,
            _ => Mode::Write,
        };
        io.read_share = if mode == Mode::Read { 1.0 } else { 0.0 };
        Ok(Self { mode, io })
    }

    fn op(&self) -> Op {
        if self.mode == Mode::Read {
            Op::Read
        } else {
            Op::Write
        }
    }
}

impl Workload for Sequential {
    fn summary(&self) -> String {
        let what = match self.mode {
            Mode::Write => "write a new file of",
            Mode::Rewrite => "overwrite a file of",
            Mode::Read => "read a file of",
        };
        let at_end = self.mode != Mode::Read && self.io.durability.fsync_at_end;
        format!(
            "{what} {} once in blocks of {}{}{}",
            unit::bytes(self.io.size),
            unit::bytes(u64::from(self.io.block_size)),
            self.io.fsync_words(),
            if at_end { ", fsync at the end" } else { "" }
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![
            metric::throughput_head(),
            metric::operations_head(),
            metric::latency_head(self.op(), Latency::P50),
            metric::latency_head(self.op(), Latency::P99),
        ]
    }

    fn cost(&self) -> Cost {
        Cost {
            measured_bytes: Some(self.io.size),
            ..self.io.cost(self.mode != Mode::Write)
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![match self.mode {
            Mode::Write => "write",
            Mode::Rewrite => "rewrite",
            Mode::Read => "read",
        }]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        match self.mode {
            Mode::Write => Ok(()),
            Mode::Rewrite | Mode::Read => self.io.lay_out(place),
        }
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        self.io.run(place)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; 4];
        };
        vec![
            metric::throughput(outcome),
            metric::operations(outcome),
            metric::latency(outcome, self.op(), Latency::P50),
            metric::latency(outcome, self.op(), Latency::P99),
        ]
    }
}
